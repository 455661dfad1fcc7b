"""The demo: one layer, one task, three regimes side by side. Its settings were chosen on other seeds; they are ours."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from internalize.api import train
from internalize.config import ID, EvaluationConfig, OptimizerConfig, RunConfig
from internalize.curricula import Schedule
from internalize.models import ModelConfig
from internalize.report import write_report
from internalize.runs import Run

ARMS = ("left", "cot", "e2e")  # the longest first, so that two cores finish together
STEPS = 14
RATES = {"left": 5e-4, "cot": 2e-3, "e2e": 1e-3}  # of four each, five for left, on a pilot seed (results/demo-pilot.jsonl)
MODEL = ModelConfig(width=128, heads=32)
SCHEDULE = Schedule(budget=10_000, threshold=0.99, stage_budget=1000, exhausted="rollback")


def demo_config(curriculum: str) -> RunConfig:
    """One arm. All arms share everything but the curriculum and the learning rate, and may take equally many steps."""
    return RunConfig(
        task="C2",
        steps=STEPS,
        curriculum=curriculum,
        model=MODEL,
        optimizer=OptimizerConfig(lr=RATES[curriculum], batch=64),
        schedule=SCHEDULE,
        evaluation=EvaluationConfig(splits=("biased:1:0.8", "sticky", "blocks"), validation=1000),
    )


@dataclass(frozen=True)
class DemoOutcome:
    """What the demo found."""

    title: str
    arms: dict[str, dict[str, Any]]
    seconds: float
    chance: float
    runs: dict[str, Run]
    report: Path


def run_demo(seed: int, out: Path, fresh: bool) -> DemoOutcome:
    """Train the three arms side by side, and write the page about them. Finished arms are reused unless `fresh`."""
    started = time.monotonic()
    runs = {arm: Run(out / demo_config(arm).name(), demo_config(arm)) for arm in ARMS}
    if fresh:
        for run in runs.values():
            shutil.rmtree(run.seed_directory(seed), ignore_errors=True)
    train(list(runs.values()), [seed])
    arms = {}
    for name in ("e2e", "cot", "left"):
        run = runs[name]
        result = run.results[run.seeds.index(seed)]
        accuracy = result["accuracy"]["stage"]
        units = run.config.make_task().units
        chain = run.config.make_curriculum().target(units, result["stages_reached"] - 1).shown
        headline = run.config.test_splits()[1]
        arms[name] = {"id": accuracy[ID], "ood": accuracy[headline], "chain": chain, "steps": result["steps"]}
    config, report = runs["left"].config, out / "demo.html"
    return DemoOutcome(
        title=f"{config.task_name} over {config.steps} steps",
        arms=arms,
        seconds=round(time.monotonic() - started, 1),
        chance=config.make_task().chance,
        runs=runs,
        report=write_report([runs["left"], runs["cot"], runs["e2e"]], report),
    )
