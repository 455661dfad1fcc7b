from pathlib import Path

import pytest

from internalize import RunConfig, fit
from internalize.cli import main
from internalize.errors import UserError
from internalize.studies.study import curves, outcomes
from tiny import TINY

OWN = """
import numpy as np
from internalize import SequenceTask, Traces

class RunningMax(SequenceTask):
    name = "max"
    alphabet = tokens = ("a", "b", "c")
    chance = 1 / 3
    length = 0

    def __init__(self, steps):
        self.length = steps

    def trace(self, inputs):
        tokens = np.concatenate([inputs, np.maximum.accumulate(inputs, axis=1)], axis=1)
        segment = [-1] * self.length + [*range(self.length - 1), -2]
        return Traces(tokens, np.broadcast_to(np.array(segment), tokens.shape))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)


def test_a_task_of_ones_own_is_trained_and_asked_like_others() -> None:
    run = fit(**{**TINY, "task": "mine.py:RunningMax", "inputs": "uniform"}, processes=1, quiet=True)
    assert run.path.name.startswith("max-T6-left-uniform-")
    Path("mine.py").unlink()
    assert len(run.answer("abacab")["slow"].chain) == 5
    assert "biased:b:0.8" in run.accuracies("direct")
    rows = run.rows()
    for frame in (outcomes(rows), curves(rows)):
        assert set(frame["task"]) == {"mine.py:RunningMax"}
        assert set(frame["headline"]) == {"biased:b:0.8"}


def test_names_of_distributions_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """:b: is no emoji."""
    run = fit(**{**TINY, "task": "mine.py:RunningMax", "inputs": "uniform"}, processes=1, quiet=True)
    main(["show", str(run.path)])
    assert "biased:b:0.8" in capsys.readouterr().out


def test_the_whole_path_of_the_file_does_not_name_the_run(tmp_path: Path) -> None:
    config = RunConfig(task=f"{tmp_path}/mine.py:RunningMax", steps=6)
    assert config.task_name == "max"
    assert RunConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("class RunningMax", "class Other", 'there is no class "RunningMax"'),
        ("(SequenceTask)", "", "is not a task, for it lacks .*battery.*; make it a subclass of internalize.SequenceTask"),
        ("def __init__(self, steps):", "def __init__(self):", r"mine.py: cannot be used \(TypeError"),
        ("    chance = 1 / 3\n", "", r"mine.py: cannot be used \(TypeError: .* abstract"),
        ("np.maximum.accumulate", "np.maximum.accumulates", r'"RunningMax" fails at 6 steps \(AttributeError'),
        ("inputs, axis=1)], axis=1)", "inputs, axis=1)], axis=1) + 1", "hold the tokens 1 to 3, but it names 3"),
        ("length = 0", "length = 0; longest = 2", "a trace has 12 tokens, but longest says 2"),
        ("length = 0", "length = 0; units = 3", "a trace has 5 units, but units says 3"),
        ("length - 1), -2]", "length - 1), -1]", "a trace has no answer"),
    ],
)
def test_what_is_no_task(old: str, new: str, message: str) -> None:
    assert old in OWN
    Path("mine.py").write_text(OWN.replace(old, new))
    with pytest.raises(UserError, match=message):
        RunConfig(task="mine.py:RunningMax", steps=6)


def test_an_own_task_has_no_start_to_sample() -> None:
    with pytest.raises(UserError, match="has no start state to sample"):
        RunConfig(task="mine.py:RunningMax", start="sampled")
