"""Five tiny runs and all that they measure: `python tests/golden.py FILE` writes it.

A change of the engine that is not meant to change any outcome leaves the file as it is, byte for byte on one machine; the
committed one is compared with a tolerance (test_golden.py), as machines round differently.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from internalize.config import EvaluationConfig, ModelConfig, OptimizerConfig, RunConfig
from internalize.curricula import RemovalConfig, Schedule
from internalize.engine.course import Course
from internalize.engine.journal import read_metrics
from internalize.learners.sandbox import SandboxLearner

FIXED = Schedule("fixed", budget=48, check_every=8)
BACK = Schedule(budget=88, stage_budget=8, check_every=8, exhausted="rollback")
TINY = RunConfig(
    task="C2",
    steps=6,
    inputs="uniform+dirichlet",
    model=ModelConfig(width=16, heads=4, mlp=16),
    optimizer=OptimizerConfig(batch=16, warmup=5),
    schedule=FIXED,
    evaluation=EvaluationConfig(samples=40, stage_samples=20, validation=20, certificate=20),
)
SANDBOX = {
    "end to end": replace(TINY, curriculum="e2e"),
    "roll-back": replace(TINY, schedule=BACK, optimizer=replace(TINY.optimizer, lr=5e-3)),
    "mixture with replay": replace(TINY, curriculum="mixture"),
    "hints, fillers, smoothing": replace(TINY, removal=RemovalConfig(hint=True, removed="filler", smoothing=2.0, replay=0.2)),
    "slow labels, adversarial": replace(TINY, labels="slow", adversarial=0.5, curriculum="left:2"),
}


def sandbox(config: RunConfig, directory: Path) -> list[Any]:
    """The rows of one seed."""
    Course(SandboxLearner(config, 0, directory)).run()
    return read_metrics(directory)


def language_model(directory: Path) -> list[Any]:
    """The rows of one run of a language model."""
    from internalize.lm.config import LMConfig
    from internalize.lm.example import write_example
    from internalize.lm.training import fit

    write_example("story", 3, "gpt2", directory, rows=60)
    config = LMConfig(
        model=str(directory / "model"),
        data=directory / "train.jsonl",
        valid=directory / "valid.jsonl",
        ood=(f"biased={directory / 'biased.jsonl'}",),
        schedule=Schedule(budget=20, stage_budget=4, check_every=2, exhausted="rollback"),
        lr=1e-3,
        batch=8,
        warmup=2,
        validation=6,
        samples=6,
        accumulate=2,
    )
    return read_metrics(fit(config, directory / "runs"))


def every() -> dict[str, Callable[[Path], list[dict[str, Any]]]]:
    """The runs by name, each to be made in a directory of its own."""
    of = {name: lambda directory, config=config: sandbox(config, directory) for name, config in SANDBOX.items()}
    return {**of, "language model": language_model}


def measured() -> dict[str, list[dict[str, Any]]]:
    """The rows of each run. Adaptive ones pass every stage but the third, so that no rounding decides where they go."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, patch.object(Schedule, "passes", _passes):
        return {name: make(Path(folder) / str(at)) for at, (name, make) in enumerate(every().items())}


def _passes(schedule: Schedule, accuracies: dict[str, float], stage: int, steps: int) -> bool:
    return schedule.kind == "adaptive" and stage != 2


if __name__ == "__main__":
    lines = [json.dumps({"run": name, **row}) for name, rows in measured().items() for row in rows]
    Path(sys.argv[1]).write_text("".join(f"{line}\n" for line in lines))
