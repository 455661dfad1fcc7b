import json
import subprocess
import sys
from pathlib import Path

import pytest

from internalize import RunConfig, fit, own_code
from internalize.errors import UserError
from tiny import TINY

OWN = """
from dataclasses import dataclass
import numpy as np
from internalize import Curriculum

@dataclass(frozen=True)
class HalfThenNone(Curriculum):
    def stages(self, units):
        return 3

    def keep(self, units, stage):
        return np.arange(units) >= [0, units // 2, units][stage]
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_curriculum_of_the_users_own() -> None:
    Path("mine.py").write_text(OWN)
    config = RunConfig(curriculum="mine.py:HalfThenNone")
    assert "mine.py_HalfThenNone" in config.name()
    curriculum = config.make_curriculum()
    assert [curriculum.target(4, stage).shown for stage in range(3)] == [4, 2, 0]
    assert RunConfig.from_json(config.to_json()) == config
    Path("mine.py").write_text(OWN.replace("return 3", "return 2"))
    assert RunConfig(curriculum="mine.py:HalfThenNone").hash() != config.hash()
    assert config.make_curriculum().stages(4) == 3
    assert RunConfig(curriculum="mine.py:HalfThenNone").make_curriculum().stages(4) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("class HalfThenNone", "class Other", 'there is no class "HalfThenNone"'),
        ("(Curriculum)", "", "is not a subclass"),
        ("return 3", "return 0", "has 0 stages for 0 units"),
        ("return 3", "return 4", r"fails for 0 units \(IndexError"),
        ("np.arange(units) >=", "np.arange(units) +", "must return 0 booleans"),
        ("np.arange(units) >=", "np.arange(units + 1) >=", "must return 0 booleans"),
        ("return 3", "return (", r"mine.py, line \d+: cannot be used \(SyntaxError"),
        ("import numpy as np", "import nothing_of_the_kind", "cannot be used"),
    ],
)
def test_what_is_no_curriculum(old: str, new: str, message: str) -> None:
    assert old in OWN
    Path("mine.py").write_text(OWN.replace(old, new))
    with pytest.raises(UserError, match=message):
        RunConfig(curriculum="mine.py:HalfThenNone")


def test_a_run_is_read_with_the_code_that_it_was_made_with() -> None:
    """From another folder and process, when the file is another one, or gone; but not when the saved code was edited."""
    Path("mine.py").write_text(OWN)
    run = fit(**{**TINY, "curriculum": "mine.py:HalfThenNone"}, processes=1, quiet=True)
    for change in (lambda: Path("mine.py").write_text("1 / 0"), Path("mine.py").unlink):
        change()
        command = [sys.executable, "-m", "internalize", "show", str(run.path.resolve())]
        told = subprocess.run(command, cwd="/", capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
    values = json.loads((run.path / "config.json").read_text())
    ((digest, text),) = values["code"].items()
    values["code"][digest] = text + "# edited"
    with pytest.raises(UserError, match=f"is not that of digest {digest}; it was edited"):
        RunConfig.from_json(values)


def test_a_run_from_before_code_was_kept_needs_its_file_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.py").write_text(text := OWN + "# as it was")
    values = RunConfig(curriculum="mine.py:HalfThenNone").to_json()
    del values["code"]
    monkeypatch.setattr(own_code, "_texts", {})  # as in another process
    assert RunConfig.from_json(values).make_curriculum().stages(4) == 3
    monkeypatch.setattr(own_code, "_texts", {})
    Path("mine.py").write_text(text + ", and is no more")
    with pytest.raises(UserError, match=r"mine.py: the file has changed since the run was configured"):
        RunConfig.from_json(values)


def test_own_code_may_have_dataclass_fields_and_future_annotations() -> None:
    text = OWN.replace("class HalfThenNone(Curriculum):", "class HalfThenNone(Curriculum):\n    size: int = 3\n")
    Path("mine.py").write_text("from __future__ import annotations\n" + text.replace("return 3", "return self.size"))
    assert RunConfig(curriculum="mine.py:HalfThenNone").make_curriculum().stages(4) == 3


def test_a_curriculum_file_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"nowhere.py: cannot be read"):
        RunConfig(curriculum="nowhere.py:Mine")
