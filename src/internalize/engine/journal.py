"""The journal of a seed, metrics.jsonl: one JSON row for each thing measured or decided, appended as it happens."""

import json
from collections.abc import Iterable
from pathlib import Path

from internalize.engine.rows import Row
from internalize.errors import UserError

FILE = "metrics.jsonl"


def append(directory: Path, row: Row) -> int:
    """Write a row at the end. Returns its length in bytes."""
    line = (json.dumps(row) + "\n").encode()
    with (directory / FILE).open("ab") as file:
        file.write(line)
    return len(line)


def cut(directory: Path, size: int) -> None:
    """Take off what was written after the first `size` bytes. Raises `UserError` where there are fewer."""
    path = directory / FILE
    there = path.stat().st_size if path.exists() else 0
    if there < size:
        raise UserError(
            f"{path}: it has {there:,} bytes, fewer than the {size:,} that were saved. "
            f"Delete {directory} to train this seed from the beginning."
        )
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(size)


def read_metrics(directory: Path) -> list[Row]:
    """The rows of the metrics.jsonl in a directory; a last one that is only half written is not there yet.

    Raises `UserError` with the line of the first bad row.
    """
    path = directory / FILE
    rows = []
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            if number == len(lines) and not line.endswith("\n"):
                break
            raise UserError(f"{path}, line {number}: not a JSON row; delete {directory} to train this seed again.") from None
    return rows


def kept_attempts(rows: Iterable[Row]) -> dict[int, int]:
    """For each stage that left its weights, the attempt that they are from; empty for journals that do not say so."""
    return {row["stage"]: row["attempt"] for row in rows if row["kind"] == "end" and row.get("saved")}
