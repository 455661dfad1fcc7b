from pathlib import Path

import pytest

from internalize import RunConfig
from internalize.errors import UserError

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
    Path("mine.py").write_text(OWN + "# changed")
    assert RunConfig(curriculum="mine.py:HalfThenNone").hash() != config.hash()
    with pytest.raises(UserError, match=r"mine.py: the file has changed"):
        config.make_curriculum()


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


def test_a_curriculum_file_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"nowhere.py: cannot be read"):
        RunConfig(curriculum="nowhere.py:Mine")
