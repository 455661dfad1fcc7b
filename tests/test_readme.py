import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import tyro

import internalize
from internalize.cli import RunCommand

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_every_number_comes_from_a_committed_row() -> None:
    checked = subprocess.run([sys.executable, ROOT / "docs" / "numbers.py", "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands, but for the budget and the sizes."""
    fit = internalize.fit
    small = {
        "schedule": {"budget": 30, "stage_budget": 2},
        "evaluation": {"samples": 20, "stage_samples": 20, "validation": 20},
    }

    def quick(**fields: object) -> internalize.Run:
        return fit(**fields, **small, out=tmp_path, quiet=True)

    monkeypatch.setattr(internalize, "fit", quick)
    (example,) = blocks("python")
    names: dict[str, object] = {}
    exec(example, names)
    assert names["run"].seeds == [0, 1, 2]
    assert (names["run"].path / "report.html").exists()


def test_the_commands_are_commands() -> None:
    lines = [line.split("#")[0].strip() for block in blocks("bash") for line in block.splitlines()]
    runs = [shlex.split(line)[2:] for line in lines if line.startswith("internalize run")]
    assert runs
    for arguments in runs:
        tyro.cli(RunCommand, args=arguments)
    targets = {line.split()[1] for line in lines if line.startswith("make ")}
    makefile = (ROOT / "Makefile").read_text()
    assert targets == {"demo", "test"}
    assert all(f"\n{target}:" in makefile for target in targets)
