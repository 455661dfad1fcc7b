"""A study of the smallest runs, and rows without any run."""

import json
from typing import Any

from internalize import api
from internalize.config import EvaluationConfig, ModelConfig, RunConfig
from internalize.curricula import Schedule
from internalize.studies import find
from internalize.studies.common import config
from internalize.studies.study import Study


def row(settings: dict[str, Any], seed: int, accuracy: float, ood: float) -> dict[str, Any]:
    """A row as `internalize show --rows` prints it."""
    made = api.configure(RunConfig(), **settings)
    splits = dict.fromkeys(made.test_splits(), ood) | {"uniform": accuracy}
    curve = [{"shown": shown, "step": 10, "accuracy": splits} for shown in (made.make_task().units, 0)]
    return {
        "command": made.command([seed]),
        "settings": json.loads(json.dumps(made.changed())),
        "seed": seed,
        "parameters": 10,
        "steps": 100,
        "seconds": 1.0,
        "accuracy": dict.fromkeys(("stage", "direct", "cot"), splits),
        "curve": curve,
        "machine": {"cores": 2},
    }


def tiny(name: str = "tiny") -> Study:
    def cells(scale: Any) -> list[RunConfig]:
        return [
            config(
                scale,
                ModelConfig(width=16, heads=4, mlp=16),
                task="C2",
                steps=6,
                curriculum=curriculum,
                schedule=Schedule("fixed", budget=12, check_every=6),
                evaluation=EvaluationConfig(splits=("biased:1:0.8",), samples=20, stage_samples=10, validation=10),
            )
            for curriculum in ("left", "e2e")
        ]

    return Study(name, "Is it small?", "Nothing.", "seed", cells, find("fig2").draw, {"laptop": 2, "paper": 2})
