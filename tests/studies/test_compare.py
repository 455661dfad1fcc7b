import json
import re
from pathlib import Path
from typing import Any

import pytest

from internalize.cli import main
from internalize.config import EvaluationConfig, ModelConfig, RunConfig
from internalize.curricula import RemovalConfig, Schedule
from internalize.errors import UserError
from internalize.studies import common, compare
from internalize.studies.study import curves, outcomes
from small_study import row

MINE = """
import numpy as np
from internalize import Curriculum

class OddFirst(Curriculum):
    def stages(self, units):
        return 3

    def keep(self, units, stage):
        return np.arange(units) % 2 >= stage if stage < 2 else np.zeros(units, bool)
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(MINE)
    return f"{tmp_path / 'mine.py'}:OddFirst"


def settings(*methods: str, **removal: Any) -> list[dict[str, Any]]:
    return [json.loads(json.dumps(cell.changed())) for cell in compare.cells("laptop", methods, RemovalConfig(**removal))]


def test_methods_differ_in_the_curriculum_alone(mine: str) -> None:
    ours, theirs = settings(mine), settings("left", replay=0.3)
    assert len(ours) == len(theirs) == len(compare.LAPTOP)
    for one, other in zip(ours, theirs, strict=True):
        assert {name for name in {*one, *other} if one.get(name) != other.get(name)} == {"curriculum", "removal"}


def test_the_better_method_comes_first(mine: str) -> None:
    rows = [row(one, seed, 0.5, 0.5) for one in settings("left", replay=0.3) for seed in (0, 1)]
    rows += [row(one, seed, 0.99, 0.5) for one in settings(mine)[:2] for seed in (0, 1)]
    table = compare.draw(outcomes(rows), curves(rows))[0].table
    assert table is not None
    assert table["method"].to_list() == ["mine.py:OddFirst", "left, replay 0.3"]
    assert table["ID"].to_list() == [1.0, 0.0]
    assert table["tasks"].to_list() == [2, 4]  # it is told that two tasks are missing


def test_rows_of_a_curriculum_whose_file_is_not_here_can_be_shown(mine: str, tmp_path: Path) -> None:
    rows = [row(one, 0, 0.99, 0.5) for one in settings(mine)]
    (tmp_path / "mine.py").unlink()
    assert set(outcomes(rows)["curriculum"]) == {"mine.py:OddFirst"}
    assert compare.comparable(rows, "laptop", tmp_path) == rows


def test_rows_of_other_settings_are_refused(tmp_path: Path) -> None:
    rows = [row(settings("left")[0], 0, 0.9, 0.9), row({"task": "C3", "steps": 6}, 0, 0.9, 0.9)]
    with pytest.raises(UserError, match=r"rows\.jsonl, line 2: this row is not of the benchmark at laptop scale"):
        compare.comparable(rows, "laptop", tmp_path / "rows.jsonl")


def test_the_command(mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def small(scale: Any, model: Any, **fields: Any) -> RunConfig:
        fields["evaluation"] = EvaluationConfig(splits=("biased:1:0.8",), samples=20, stage_samples=10, validation=10)
        fields["schedule"] = Schedule("fixed", budget=12, check_every=6)
        return common.config(scale, ModelConfig(width=16, heads=4, mlp=16), **fields)

    monkeypatch.setattr(compare, "config", small)
    monkeypatch.setattr(compare, "LAPTOP", (("C2", 6, 1),))
    rows = tmp_path / "rows.jsonl"
    main(["compare", "left", "--seeds", "1", "--out", str(tmp_path), "--rows", str(rows), "--json"])
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["method"], line["tasks"], line["seeds"], line["steps"]) == ("left", 1, 1, 12)
    main(["compare", mine, "--seeds", "1", "--out", str(tmp_path), "--against", str(rows)])
    said = capsys.readouterr().out
    assert "mine.py:OddFirst" in said
    assert re.search(r"left\s", said)
    assert (tmp_path / "studies" / "compare.html").exists()
    main(["compare", "left", "--out", str(tmp_path), "--dry-run"])
    assert "1 cells, 5 seeds each; 4 seeds are left" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name at least one curriculum"),
        (["leftish"], 'no curriculum is called "leftish"'),
        (["none.py:Mine"], "none.py: cannot be read"),
        (["left", "--against", "none.jsonl"], "none.jsonl: cannot be read"),
    ],
)
def test_what_cannot_be_compared(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["compare", *words, "--out", str(tmp_path / "runs")])
    assert end.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
