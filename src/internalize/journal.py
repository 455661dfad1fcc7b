"""The journal of a training, metrics.jsonl: one JSON row for each thing measured or decided, appended as it happens."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from internalize.errors import UserError


def read_metrics(directory: Path) -> list[dict[str, Any]]:
    """The rows of the metrics.jsonl in a directory; a last one that is only half written is not there yet.

    Raises `UserError` with the line of the first bad row.
    """
    path = directory / "metrics.jsonl"
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


def kept_attempts(rows: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """For each stage that left its weights, the attempt that they are from; empty for journals that do not say so."""
    return {row["stage"]: row["attempt"] for row in rows if row["kind"] == "end" and row.get("saved")}
