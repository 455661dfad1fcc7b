import contextlib
import errno
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from internalize.checkpoint import load_model, load_tensors
from internalize.config import EvaluationConfig, ModelConfig, OptimizerConfig, RunConfig
from internalize.curricula import Schedule
from internalize.engine import course as engine
from internalize.engine.course import Course
from internalize.engine.journal import read_metrics
from internalize.errors import UserError
from internalize.evaluation import Accuracy
from internalize.learners.data import training_set
from internalize.learners.sandbox import SandboxLearner, batch_loss, new_model
from internalize.rendering import Vocabulary, render
from internalize.runs import Run

TINY = RunConfig(
    task="C2",
    steps=6,
    inputs="uniform+dirichlet",
    model=ModelConfig(width=16, heads=4, mlp=16),
    optimizer=OptimizerConfig(batch=16, warmup=5),
    schedule=Schedule("fixed", budget=72, check_every=4),
    evaluation=EvaluationConfig(samples=40, stage_samples=20, validation=20),
)


def train(
    config: RunConfig, directory: Path, seed: int = 0, notify: Callable[[Mapping[str, Any]], None] = lambda _: None
) -> dict:
    return Course(SandboxLearner(config, seed, directory), notify).run()


def outcome(directory: Path) -> tuple[dict[str, Any], str, list[torch.Tensor]]:
    """All that a seed leaves, less what depends on the clock."""
    result = json.loads((directory / "result.json").read_text())
    result = {name: value for name, value in result.items() if name not in ("seconds", "finished")}
    weights = [
        tensor for path in sorted((directory / "stages").iterdir()) for _, tensor in sorted(load_tensors(path)[0].items())
    ]
    return result, (directory / "metrics.jsonl").read_text(), weights


def same(one: Path, two: Path) -> bool:
    (result, metrics, weights), (result2, metrics2, weights2) = outcome(one), outcome(two)
    return result == result2 and metrics == metrics2 and all(map(torch.equal, weights, weights2))


def test_a_run_is_a_function_of_its_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(TINY, tmp_path / name, seed)
    assert same(tmp_path / "a", tmp_path / "b")
    assert not same(tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"optimizer": replace(TINY.optimizer, reset=False)},
        {"curriculum": "mixture"},
        {"labels": "slow", "adversarial": 0.5},
    ],
    ids=["left", "moments kept", "mixture", "slow labels"],
)
def test_what_is_resumed_is_bit_identical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]) -> None:
    config = replace(TINY, **change)
    train(config, tmp_path / "whole")
    monkeypatch.setattr(engine, "SAVE_SECONDS", 0)  # save at every check

    class Killed(Exception):
        pass

    events = len(read_metrics(tmp_path / "whole"))
    for stop_at in range(1, events, events // 8):
        seen = 0

        def stop(event: Mapping[str, Any], stop_at: int = stop_at) -> None:
            nonlocal seen
            seen += 1
            if seen == stop_at:
                raise Killed

        with pytest.raises(Killed):
            train(config, tmp_path / "stopped", notify=stop)
        with (tmp_path / "stopped" / "metrics.jsonl").open("a") as file:
            file.write('{"half a row')
        train(config, tmp_path / "stopped")
        assert same(tmp_path / "whole", tmp_path / "stopped")
        assert not (tmp_path / "stopped" / "last.safetensors").exists()
        shutil.rmtree(tmp_path / "stopped")


def test_every_arm_of_a_fixed_budget_takes_the_same_steps(tmp_path: Path) -> None:
    for curriculum in ("e2e", "cot", "left", "right", "left:2", "mixture"):
        result = train(replace(TINY, curriculum=curriculum), tmp_path / curriculum)
        assert result["steps"] == 72
        assert result["examples"] == 72 * 16


@pytest.mark.parametrize("curriculum", ["left", "right"])
def test_moments_are_reset_at_each_stage_only_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, curriculum: str
) -> None:
    steps: dict[bool, list[float]] = {}
    for reset in (True, False):
        counts = []

        def watch(self: SandboxLearner, rows: Any, counts: list[float] = counts, step: Any = SandboxLearner.step) -> Any:
            loss = step(self, rows)
            counts.append(float(next(iter(self.optimizer.state.values()))["step"]))
            return loss

        with monkeypatch.context() as patch:
            patch.setattr(SandboxLearner, "step", watch)
            config = replace(TINY, curriculum=curriculum, optimizer=replace(TINY.optimizer, reset=reset))
            train(config, tmp_path / str(reset))
        steps[reset] = counts
    assert steps[True] == [*range(1, 13)] * 6
    assert steps[False] == [*range(1, 73)]


def test_metrics_tell_of_the_switch_and_of_the_end_of_each_stage(tmp_path: Path) -> None:
    train(TINY, tmp_path)
    rows = [row for row in read_metrics(tmp_path) if row["kind"] == "test" and row["split"] == "uniform"]
    told = [(row["moment"], row["stage"], row["mode"], row["shown"]) for row in rows if not row["mode"].startswith("length")]
    expected = []
    for stage in range(6):
        shown = 5 - stage
        expected += [("switch", stage, "stage", shown), ("adapted", stage, "stage", shown), ("adapted", stage, "cot", 5)]
    expected += [("final", 5, "stage", 0), ("final", 5, "cot", 5), ("final", 5, "direct", 0)]
    assert told == expected
    assert {row["split"] for row in read_metrics(tmp_path) if row["kind"] == "test"} == set(TINY.test_splits())


def test_each_stage_leaves_its_model(tmp_path: Path) -> None:
    train(TINY, tmp_path)
    models = [load_model(tmp_path / "stages" / f"{stage}.safetensors") for stage in range(6)]
    assert all(model.config == TINY.model for model in models)
    assert not torch.equal(models[0].embedding.weight, models[5].embedding.weight)


def test_the_loss_is_that_of_chain_and_answer_in_a_plain_computation() -> None:
    task, curriculum = TINY.make_task(), replace(TINY, curriculum="mixture").make_curriculum()
    vocabulary = Vocabulary.of(task)
    traces = task.sample("uniform", 8, np.random.default_rng(0), "train")
    views = [view for _, view in curriculum.mixture(task.units, 0)]
    batch = render(traces, views, vocabulary, np.arange(8) % 6)
    model = new_model(TINY, 0)
    log_probabilities = model(torch.from_numpy(batch.tokens), torch.from_numpy(batch.positions.copy())).log_softmax(-1)
    losses = [
        -log_probabilities[row, column - 1, batch.tokens[row, column]]
        for row in range(8)
        for column in np.flatnonzero(batch.target[row])
    ]
    assert len(losses) == sum(view.shown + 1 for view in views) + sum(view.shown + 1 for view in views[:2])
    torch.testing.assert_close(batch_loss(model, batch), torch.stack(losses).mean())


def test_a_loss_that_is_not_finite_is_told(tmp_path: Path) -> None:
    config = replace(TINY, optimizer=replace(TINY.optimizer, lr=1e30, clip=1e30, warmup=0))
    with pytest.raises(UserError, match=r"seed 0: the loss is not finite at step \d+ \(stage 0\); lower optimizer.lr"):
        train(config, tmp_path)


def test_a_damaged_row_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"kind": "check"}\n{"kind": \n')
    with pytest.raises(UserError, match=r"metrics.jsonl, line 2: not a JSON row"):
        read_metrics(tmp_path)


def test_a_row_that_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"kind": "check"}\n{"kind": ')
    assert read_metrics(tmp_path) == [{"kind": "check"}]


def test_chain_is_learnt_where_end_to_end_is_at_chance(tmp_path: Path) -> None:
    config = RunConfig(
        task="C2",
        steps=10,
        optimizer=OptimizerConfig(batch=64),
        schedule=Schedule(budget=800, check_every=25, threshold=0.99),
        evaluation=EvaluationConfig(samples=300, splits=("biased:1:0.8",), stage_samples=50, validation=200),
    )
    with_chain = train(replace(config, curriculum="cot"), tmp_path / "cot")
    without = train(replace(config, curriculum="e2e"), tmp_path / "e2e")
    assert with_chain["success"]["cot"] == {"uniform": True, "biased:1:0.8": True}
    assert abs(without["accuracy"]["direct"]["uniform"] - 0.5) < 0.1
    assert without["steps"] >= with_chain["steps"]


@pytest.mark.parametrize(
    ("exhausted", "budget", "expected"),
    [
        ("advance", 400, "0 1 2 3 4 5 final"),
        ("stop", 400, "0 1 2 3 final"),
        # Back by one stage more at each failure, until the budget is spent.
        ("rollback", 40, "0 1 2 3 back-to-2 3 back-to-1 2 3 back-to-0 1 2 3 final"),
    ],
)
def test_what_happens_when_a_stage_is_not_learnt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exhausted: Any, budget: int, expected: str
) -> None:
    """Stage 3 never passes."""
    stage = -1

    def watch(event: Mapping[str, Any]) -> None:
        nonlocal stage
        stage = event.get("stage", stage)

    monkeypatch.setattr(Schedule, "passes", lambda self, accuracies, stage, steps: stage != 3)
    schedule = Schedule(budget=budget, stage_budget=4, check_every=4, exhausted=exhausted)
    result = train(replace(TINY, schedule=schedule), tmp_path, notify=watch)
    told = []
    for row in read_metrics(tmp_path):
        if row["kind"] == "rollback":
            told.append(f"back-to-{row['to']}")
        elif row["kind"] == "test" and row["split"] == "uniform" and row["mode"] == "stage" and row["moment"] != "switch":
            told.append("final" if row["moment"] == "final" else str(row["stage"]))
    assert " ".join(told) == expected
    assert result["stages_reached"] == (6 if exhausted == "advance" else 4)


def test_a_learnt_stage_is_never_lost_and_every_stage_that_is_told_has_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stage 3 never passes, and after three failures the budget ends in a second attempt at stage 1."""
    config = replace(TINY, schedule=Schedule(budget=30, stage_budget=4, check_every=4, exhausted="rollback"))
    run = Run(tmp_path / "run", config)
    run.create([0])
    directory = run.seed_directory(0)
    passes = {"0": True, "1": True, "2": True}
    learnt: list[torch.Tensor] = []

    def watch(event: Mapping[str, Any]) -> None:
        if event["kind"] == "rollback" and event["to"] == 0:
            passes["1"] = False
            learnt.append(load_model(directory / "stages" / "1.safetensors").embedding.weight.clone())

    monkeypatch.setattr(Schedule, "passes", lambda self, accuracies, stage, steps: passes.get(str(stage), False))
    result = train(config, directory, notify=watch)
    ends = [(row["stage"], row["passed"], row["saved"]) for row in read_metrics(directory) if row["kind"] == "end"]
    assert ends[-1] == (1, False, False)
    assert ends.count((3, False, False)) == 3
    assert torch.equal(load_model(directory / "stages" / "1.safetensors").embedding.weight, learnt[0])
    files = sorted(int(path.stem) for path in (directory / "stages").iterdir())
    assert files == [0, 1, 2]
    assert result["stages_reached"] == 3
    (row,) = run.rows()
    shown = [3 + 2 - stage for stage in files]
    assert [stage["shown"] for stage in row["curve"]] == shown
    assert run.stages()["shown"].unique(maintain_order=True).to_list() == shown
    for loss in (0.0, 1.0):
        chosen = run.frontier(loss)
        assert chosen["stage"].to_list() == files
    run.answer_with(3, "1 0 1 1 0 0")
    written = [row for row in read_metrics(directory) if row.get("moment") == "adapted" and row["stage"] == 2]
    at_end = {row["split"]: row for row in run.measured(0) if row["stage"] == 2 and row["moment"] == "adapted"}
    assert max(row["attempt"] for row in written if row["split"] == "uniform") == at_end["uniform"]["attempt"]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_at_twenty_moments_and_resumed_is_bit_identical(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kill -9` at random moments, most of them while a checkpoint is being written, as every check writes one."""
    monkeypatch.setattr(engine, "SAVE_SECONDS", 0)
    config = replace(TINY, schedule=Schedule("fixed", budget=1500, check_every=4))
    rng = np.random.default_rng(0)
    saved = tmp_path / "killed" / "last.safetensors"
    for _ in range(20):
        before = saved.stat().st_mtime_ns if saved.exists() else None
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                train(config, tmp_path / "killed")
            os._exit(0)
        while not saved.exists() or saved.stat().st_mtime_ns == before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert saved.exists()
    assert not (tmp_path / "killed" / "result.json").exists()
    monkeypatch.setattr(engine, "SAVE_SECONDS", 20)
    train(config, tmp_path / "killed")
    train(config, tmp_path / "whole")
    assert same(tmp_path / "killed", tmp_path / "whole")


def test_a_finite_training_set_is_distinct_and_all_that_is_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(TINY, steps=8, train_size=40)
    chosen = [training_set(config, seed).tokens for seed in (0, 0, 1)]
    assert len(np.unique(chosen[0], axis=0)) == 40
    assert (chosen[0] == chosen[1]).all()
    assert (chosen[0] != chosen[2]).any()
    trained_on = set()

    def watch(self: SandboxLearner, rows: Any, step: Any = SandboxLearner.step) -> Any:
        trained_on.update(tuple(row) for row in rows.tokens[:, 1:9].tolist())
        return step(self, rows)

    monkeypatch.setattr(SandboxLearner, "step", watch)
    train(config, tmp_path)
    vocabulary = Vocabulary.of(config.make_task())
    assert trained_on == {tuple(row) for row in vocabulary.task(chosen[0][:, :8]).tolist()}


def test_more_distinct_inputs_than_there_are() -> None:
    with pytest.raises(
        UserError, match=r"train_size is 100, but only \d\d distinct training inputs are found for C2 over 6 steps"
    ):
        training_set(replace(TINY, train_size=100), 0)


@pytest.fixture
def half_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a seed that was interrupted after it had been saved."""

    def stop(event: Mapping[str, Any]) -> None:
        if event.get("step") == 30:
            raise InterruptedError

    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr(engine, "SAVE_SECONDS", 0)
        train(replace(TINY, schedule=Schedule("fixed", budget=72, check_every=3)), tmp_path, notify=stop)
    return tmp_path


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"", lambda content: b"\x80\x04K\x01."])
def test_a_damaged_checkpoint_is_told_and_nothing_is_lost(half_done: Path, damage: Callable[[bytes], bytes]) -> None:
    last = half_done / "last.safetensors"
    last.write_bytes(damage(last.read_bytes()))
    before = {path: path.read_bytes() for path in half_done.rglob("*") if path.is_file()}
    with pytest.raises(UserError, match=r"last.safetensors: this is not a checkpoint .* damaged .* Delete"):
        train(TINY, half_done)
    assert {path: path.read_bytes() for path in half_done.rglob("*") if path.is_file()} == before


def test_a_checkpoint_of_another_model_is_told(half_done: Path) -> None:
    with pytest.raises(UserError, match=r"last.safetensors: it does not fit this run"):
        train(replace(TINY, model=ModelConfig(width=32, heads=4, mlp=16)), half_done)


def test_metrics_that_were_cut_are_told(half_done: Path) -> None:
    metrics = half_done / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:100])
    with pytest.raises(UserError, match=r"metrics.jsonl: it has 100 bytes, fewer than the [\d,]+ that were saved. Delete"):
        train(TINY, half_done)
    metrics.unlink()
    with pytest.raises(UserError, match="it has 0 bytes"):
        train(TINY, half_done)


def test_a_full_disk_leaves_no_half_written_file(half_done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = (half_done / "last.safetensors").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(os, "fsync", full)
        train(replace(TINY, schedule=Schedule("fixed", budget=72, check_every=3)), half_done)
    assert (half_done / "last.safetensors").read_bytes() == last
    assert not list(half_done.rglob(".*.safetensors*"))


def test_a_quarter_of_the_validation_inputs_can_rule_a_stage_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(TINY, schedule=Schedule(threshold=0.9), evaluation=EvaluationConfig(validation=400))
    run = SandboxLearner(config, 0, tmp_path)
    asked: list[int] = []

    def measure(right: float) -> Any:
        def measured(splits: Any, view: Any) -> dict[str, Accuracy]:
            asked.append(max(len(traces) for traces in splits.values()))
            return {name: Accuracy(round(right * len(traces)), len(traces), 1) for name, traces in splits.items()}

        return measured

    samples = 400
    for right, looks in ((0.1, [samples // 4]), (0.95, [samples // 4, samples])):
        asked.clear()
        monkeypatch.setattr(run, "accuracy", measure(right))
        assert all(value == right for value in run.validate().values())
        assert asked == looks


def test_a_run_that_was_killed_between_its_last_save_and_its_result_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(TINY, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(Course, "_finish", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(TINY, tmp_path / "cut")
    again = train(TINY, tmp_path / "cut")
    assert again["accuracy"] == whole["accuracy"]
    assert outcome(tmp_path / "cut")[1:2] == outcome(tmp_path / "whole")[1:2]
