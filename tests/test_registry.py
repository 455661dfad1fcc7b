"""A task, a curriculum or a study is built in by one new file in its folder."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from internalize import RunConfig, curricula, studies, tasks
from internalize.errors import UserError

TASK = """
from internalize.tasks.base import TaskFamily
from internalize.tasks.parity import SparseParity

FAMILY = TaskFamily("xor (of all bits)", lambda name: name == "xor", lambda name, bits: SparseParity(bits, bits))
"""
CURRICULUM = """
from dataclasses import dataclass
import numpy as np
from internalize.curricula.removal import Curriculum, family

@dataclass(frozen=True)
class Leap(Curriculum):
    def stages(self, units):
        return 2

    def keep(self, units, stage):
        return np.full(units, stage == 0)

FAMILY = family("leap (all at once)", {"leap": Leap()})
"""
STUDY = """
from dataclasses import replace
from internalize.studies import fig1

STUDY = replace(fig1.STUDY, name="mine")
"""


@pytest.fixture
def _new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The folders of the packages, with a file more in each."""
    for package, text in ((tasks, TASK), (curricula, CURRICULUM), (studies, STUDY)):
        _add(tmp_path, package, text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / package.__name__)])
    yield
    for package in (tasks, curricula, studies):
        sys.modules.pop(f"{package.__name__}.new", None)
        vars(package).pop("new", None)


def _add(folder: Path, package: ModuleType, text: str) -> None:
    (folder / package.__name__).mkdir()
    (folder / package.__name__ / "new.py").write_text(text)


@pytest.mark.usefixtures("_new_files")
def test_one_new_file_is_enough() -> None:
    assert tasks.make("xor", 5).units == 4
    assert curricula.make("leap").stages(5) == 2
    assert curricula.make("leap", curricula.RemovalConfig(hint=True)).full(5).hint == 5
    assert "mine" in studies.studies()
    assert RunConfig(task="xor", steps=6, curriculum="leap").name().startswith("parity_6-T6-leap-uniform-")
    with pytest.raises(UserError, match=r'no task is called "Z9"; known are .*, xor \(of all bits\), .*mine.py:MyTask'):
        tasks.make("Z9", 5)
    with pytest.raises(UserError, match=r'no curriculum is called "up"; known are .*, leap \(all at once\), .*MyCurriculum'):
        curricula.make("up")
    with pytest.raises(UserError, match="no start state to sample"):
        tasks.make("xor", 5, sampled_start=True)


def test_help_lists_what_the_folders_hold(tmp_path: Path) -> None:
    _add(tmp_path, tasks, TASK)
    _add(tmp_path, curricula, CURRICULUM)
    program = "from internalize import cli, curricula, tasks\n"
    program += "for package in (tasks, curricula): package.__path__.append(package.__name__)\n"
    program += "cli.main(['run', '--help'])"
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = " ".join(ran.stdout.replace("\u2502", " ").split())
    for form in ("xor (of all bits)", "leap (all at once)", "parity:10", "inductive:stepwise", "mine.py:MyTask"):
        assert form in said


@pytest.mark.parametrize("name", ["C3", "lamp.json", "multiply", "parity:10", "mine.py:MyTask"])
def test_a_task_is_of_one_family(name: str) -> None:
    assert [family.knows(name) for family in tasks.FAMILIES.families()].count(True) == 1
