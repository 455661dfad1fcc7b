from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internalize import tasks
from internalize.checkpoint import load_model
from internalize.config import EvaluationConfig, ModelConfig, OptimizerConfig, RunConfig
from internalize.curricula import Schedule, make
from internalize.engine.course import Course
from internalize.engine.journal import read_metrics
from internalize.errors import UserError
from internalize.evaluation import generate
from internalize.learners.sandbox import SandboxLearner
from internalize.learners.teacher import Teacher, agree
from internalize.models import Transformer
from internalize.rendering import Vocabulary, render
from internalize.seeding import torch_stream
from internalize.tasks import ANSWER, PROMPT, Task, Traces

TINY = RunConfig(
    task="C3",
    steps=6,
    inputs="uniform+biased:1:0.8",
    labels="slow",
    model=ModelConfig(width=16, heads=4, mlp=16),
    optimizer=OptimizerConfig(batch=16, warmup=5),
    schedule=Schedule("fixed", budget=72, check_every=4),
    evaluation=EvaluationConfig(samples=40, stage_samples=20, validation=20, splits=("uniform",)),
)


def untrained(task: Task) -> Transformer:
    """With weights so large that what it says depends on what it reads."""
    model = Transformer(TINY.model, Vocabulary.of(task).size, task.longest + 2, torch_stream(0, "weights")).eval()
    for parameter in model.parameters():
        parameter.data *= 30
    return model


def teacher(task: Task, inputs: str = "uniform", filtered: bool = False) -> Teacher:
    return Teacher(untrained(task), task, make("left").full(task.units), "compacted", inputs, filtered)


@pytest.mark.parametrize("name", ["C3", "S3:gen", "parity:3", "multiply"])
def test_what_the_slow_system_writes_becomes_the_trace(name: str) -> None:
    task = tasks.make(name, 3 if name == "multiply" else 6)
    true = task.sample("uniform", 30, np.random.default_rng(0), "train")
    slow = teacher(task)
    written = slow.rewrite(true)
    assert np.array_equal(written.segment, true.segment)
    assert np.array_equal(written.tokens[true.segment == PROMPT], true.tokens[true.segment == PROMPT])
    batch = render(true, [slow.view], Vocabulary.of(task))
    assert np.array_equal(render(written, [slow.view], Vocabulary.of(task)).tokens, generate(slow.model, batch))
    assert not np.array_equal(written.tokens, true.tokens)  # it knows nothing yet


def test_filtered_traces_are_right() -> None:
    task = tasks.make("C3", 6)
    kept = teacher(task, filtered=True).sample(200, np.random.default_rng(0))
    assert len(kept) == 200
    answers = task.trace(kept.prompt()).tokens[kept.segment == ANSWER]
    assert np.array_equal(kept.tokens[kept.segment == ANSWER], answers)
    unfiltered = teacher(task).sample(200, np.random.default_rng(0))
    assert not agree(unfiltered, task.trace(unfiltered.prompt())).all()


def test_a_slow_system_that_is_never_right_teaches_nothing() -> None:
    task = tasks.make("A5", 6)
    model = untrained(task)
    for parameter in model.parameters():
        parameter.data.zero_()  # it writes PAD, which is no answer
    hopeless = replace(teacher(task, filtered=True), model=model)
    with pytest.raises(UserError, match="right on almost none of the inputs uniform"):
        hopeless.sample(4, np.random.default_rng(0))


def test_adversarial_inputs_are_those_on_which_the_two_differ() -> None:
    task = tasks.make("C3", 6)
    slow, direct = teacher(task), make("left").direct(task.units)

    def share(student: Transformer, traces: Traces) -> float:
        asked = replace(slow, model=student, view=direct)
        return float(agree(asked.answered(traces), traces).mean())

    student = slow.model
    plain = share(student, slow.sample(100, np.random.default_rng(0)))
    hard = slow.disagreed(student, direct, 100, np.random.default_rng(0))
    assert len(hard) == 100
    assert np.array_equal(hard.tokens, slow.rewrite(hard).tokens)
    assert share(student, hard) < plain


@pytest.mark.parametrize("adversarial", [0.0, 0.5])
def test_only_the_first_stage_sees_true_labels_and_only_of_the_first_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adversarial: float
) -> None:
    config = replace(TINY, adversarial=adversarial)
    drawn: list[tuple[int, Any]] = []
    asked: list[tuple[int, str]] = []
    run = SandboxLearner(config, 0, tmp_path)

    def watch_draw(count: int, draw: Any = run.draw) -> Any:
        rows = draw(count)
        drawn.append((run.at.stage, rows))
        return rows

    sample = type(run.task).sample

    def watch_sample(self: Any, distribution: str, *rest: Any) -> Traces:
        asked.append((run.at.stage, distribution))
        return sample(self, distribution, *rest)

    monkeypatch.setattr(run, "draw", watch_draw)
    monkeypatch.setattr(type(run.task), "sample", watch_sample)
    Course(run).run()
    assert {distribution for stage, distribution in asked if stage == 0} == {"uniform"}
    assert {distribution for stage, distribution in asked if 0 < stage < 6} == {TINY.inputs}
    slow = teacher(run.task)
    slow = replace(slow, model=load_model(tmp_path / "stages" / "0.safetensors"))
    for stage, rows in drawn:
        count = len(rows)
        symbols = rows.tokens[:, 1:7] - Vocabulary.FIRST_TASK_TOKEN
        labelled = run.task.trace(symbols) if stage == 0 else slow.rewrite(run.task.trace(symbols))
        view = make("left").target(run.task.units, stage)
        assert np.array_equal(rows.tokens, render(labelled, [view], run.vocabulary).tokens), (stage, count)


def test_stages_are_judged_by_what_the_slow_system_says(tmp_path: Path) -> None:
    config = replace(TINY, schedule=Schedule(budget=40, stage_budget=5, first_stage=10, check_every=5, threshold=0.9))
    run = SandboxLearner(config, 0, tmp_path)
    true = run.validation
    Course(run).run()
    checks = [row for row in read_metrics(tmp_path) if row["kind"] == "check"]
    assert [row["step"] for row in checks if row["stage"] == 0] == [5, 10]  # not before its least steps
    assert set(checks[0]["validation"]) == {"uniform"}
    assert set(checks[-1]["validation"]) == {"uniform", "biased:1:0.8"}
    slow = replace(teacher(run.task), model=load_model(tmp_path / "stages" / "0.safetensors"))
    for name, traces in run.validation.items():
        assert np.array_equal(traces.tokens, slow.rewrite(true[name]).tokens)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"curriculum": "e2e"}, "no stage after one with the full chain"),
        ({"curriculum": "mixture"}, "no stage after one with the full chain"),
        ({"validation": ("biased:1:0.8",)}, "name one of them in validation"),
        ({"adversarial": 1.5}, "a share, from 0 to 1"),
        ({"adversarial": 0.5, "labels": "true"}, "set labels to slow"),
        ({"labels": "mine"}, "labels"),
    ],
)
def test_labels_that_make_no_sense(wrong: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        replace(TINY, **wrong)
