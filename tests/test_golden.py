"""What five tiny runs measure is what it was: see golden.py."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import golden

KNOWN = Path(__file__).with_name("golden.jsonl")


def test_nothing_that_is_measured_has_changed() -> None:
    known = [json.loads(line) for line in KNOWN.read_text().splitlines()]
    found = [{"run": name, **row} for name, rows in golden.measured().items() for row in rows]
    assert [_exactly(row) for row in found] == [_exactly(row) for row in known]
    for row, before in zip(found, known, strict=True):
        for name, value in row.items():
            if isinstance(value, float):
                # Machines round differently; over so few steps that moves hardly any answer.
                assert value == pytest.approx(before[name], abs=0.11), (row["run"], row["kind"], row["step"], name)


def _exactly(row: dict[str, Any]) -> dict[str, Any]:
    """What is equal on every machine: all but measured numbers."""
    measured = {"validation"} if row["kind"] == "check" else set()
    return {name: value for name, value in row.items() if not isinstance(value, float) and name not in measured}
