import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from internalize import EvaluationConfig, ModelConfig, OptimizerConfig, RunConfig, Schedule
from internalize.checkpoint import load_tensors
from internalize.engine.course import Course
from internalize.engine.journal import read_metrics
from internalize.learners.sandbox import SandboxLearner
from internalize.learners.together import train_together

CONFIG = RunConfig(
    task="C2",
    steps=5,
    model=ModelConfig(layers=2, width=16, heads=4, mlp=32),
    optimizer=OptimizerConfig(batch=32, lr=3e-3, warmup=5),
    schedule=Schedule(budget=120, stage_budget=30, check_every=7, threshold=0.9, exhausted="rollback"),
    evaluation=EvaluationConfig(samples=30, stage_samples=20, validation=40, splits=("biased:1:0.8",)),
)
SEEDS = (0, 1, 2)


def draws(run: SandboxLearner, log: list[Any]) -> SandboxLearner:
    """Keep what the run draws."""
    draw = run.draw

    def kept(count: int) -> Any:
        batch = draw(count)
        log.append(batch.tokens)
        return batch

    run.draw = kept  # type: ignore[method-assign]
    return run


@pytest.fixture(params=[torch.float32, torch.float64])
def precision(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(torch.float32)


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # torch's own attention, in double precision
@pytest.mark.parametrize("schedule", [CONFIG.schedule, Schedule("fixed", budget=50, check_every=8)])
def test_seeds_together_equal_seeds_alone(schedule: Schedule, precision: torch.dtype, tmp_path: Path) -> None:
    config = replace(CONFIG, schedule=schedule)
    alone: dict[int, list[Any]] = {seed: [] for seed in SEEDS}
    together: dict[int, list[Any]] = {seed: [] for seed in SEEDS}
    for seed in SEEDS:
        Course(draws(SandboxLearner(config, seed, tmp_path / f"alone-{seed}"), alone[seed])).run()
    runs = [draws(SandboxLearner(config, seed, tmp_path / f"together-{seed}"), together[seed]) for seed in SEEDS]
    assert train_together(runs) == {}
    steps = set()
    for seed in SEEDS:
        assert len(alone[seed]) == len(together[seed])
        assert all((a == b).all() for a, b in zip(alone[seed], together[seed], strict=True))
        rows = [read_metrics(tmp_path / f"{how}-{seed}") for how in ("alone", "together")]
        for a, b in zip(*rows, strict=True):
            assert (a.get("loss") or 0.0) == pytest.approx(b.get("loss") or 0.0, rel=1e-3)
            assert {k: v for k, v in a.items() if k != "loss"} == {k: v for k, v in b.items() if k != "loss"}
        weights = [load_tensors(tmp_path / f"{how}-{seed}" / "stages" / "0.safetensors")[0] for how in ("alone", "together")]
        for name, value in weights[0].items():
            # AdamW makes rounding noise large where a gradient is nearly 0, so weights are compared closely in float64 only. A
            # bias of the keys has no gradient but noise: it shifts all scores of a query alike.
            part = slice(config.model.width if name.endswith("key_value.bias") else 0, None)
            tolerance = {"rtol": 1e-6, "atol": 1e-8} if precision == torch.float64 else {"rtol": 0.1, "atol": 5e-3}
            torch.testing.assert_close(weights[1][name][part], value[part], **tolerance)
        steps.add(json.loads((tmp_path / f"together-{seed}" / "result.json").read_text())["steps"])
    if schedule.kind == "adaptive":
        assert len({len(rows) for rows in together.values()} | steps) > 1  # seeds went through their stages at their own pace


def test_a_seed_that_fails_stops_costing_and_the_others_go_on(tmp_path: Path) -> None:
    runs = [SandboxLearner(CONFIG, seed, tmp_path / str(seed)) for seed in SEEDS]
    with torch.no_grad():
        runs[1].model.unembedding.weight.fill_(torch.inf)
    (failed,) = train_together(runs).items()
    assert failed[0] == 1
    assert "seed 1: the loss is not finite" in str(failed[1])
    assert [(tmp_path / str(seed) / "result.json").exists() for seed in SEEDS] == [True, False, True]


def test_seeds_together_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("internalize.engine.course.SAVE_SECONDS", 0.0)

    def runs(where: str) -> list[SandboxLearner]:
        return [SandboxLearner(CONFIG, seed, tmp_path / f"{where}-{seed}") for seed in SEEDS]

    train_together(runs("whole"))
    stopped, count = runs("cut"), 0

    def stop(_: Any) -> None:
        nonlocal count
        count += 1
        if count == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_together(stopped, stop)
    assert train_together(runs("cut")) == {}
    for seed in SEEDS:
        results = [json.loads((tmp_path / f"{how}-{seed}" / "result.json").read_text()) for how in ("whole", "cut")]
        assert results[0]["accuracy"] == results[1]["accuracy"]
        assert results[0]["steps"] == results[1]["steps"]
