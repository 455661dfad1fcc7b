import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import tyro

import internalize
from internalize.cli import COMMANDS, GROUPS, load
from internalize.cli.runs import RunCommand

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_every_number_comes_from_a_committed_row() -> None:
    checked = subprocess.run([sys.executable, ROOT / "docs" / "write_numbers.py", "--check"], capture_output=True, text=True)
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
    example, _ = blocks("python")
    names: dict[str, object] = {}
    exec(example, names)
    assert names["run"].seeds == [0, 1, 2]
    assert (names["run"].path / "report.html").exists()


def test_the_commands_are_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the files that the README shows."""
    monkeypatch.chdir(tmp_path)
    (automaton,) = blocks("json")
    Path("lamp.json").write_text(automaton)
    Path("mine.py").write_text(blocks("python")[1])
    more = "".join((ROOT / "docs" / page).read_text() for page in ("language-models.md", "clusters.md"))
    lines = [line.split("#")[0].strip() for block in [*blocks("bash"), *blocks("bash", more)] for line in block.splitlines()]
    runs = [shlex.split(line)[2:] for line in lines if line.startswith("internalize run")]
    assert len(runs) == 3
    lamp = [tyro.cli(RunCommand, args=arguments).config() for arguments in runs][1]
    assert [lamp.make_curriculum().target(4, stage).shown for stage in range(3)] == [4, 2, 0]
    assert lamp.make_task().encode("press wait " * 6).row(0).answer == (2,)
    for line in lines:
        if line.startswith("internalize "):
            group, *rest = shlex.split(line)[1:]
            commands, words = (GROUPS[group], rest) if group in GROUPS else (COMMANDS, [group, *rest])
            tyro.cli(load(commands[words[0]]), args=words[1:])
    targets = {line.split()[1] for line in lines if line.startswith("make ")}
    makefile = (ROOT / "Makefile").read_text()
    assert targets == {"demo", "test"}
    assert all(f"\n{target}:" in makefile for target in targets)
