"""Figure 5, bottom: one mixture of all chain lengths against the curriculum."""

import polars

from internalize.config import OptimizerConfig, RunConfig
from internalize.curricula import RemovalConfig, Schedule
from internalize.models import ModelConfig
from internalize.studies.common import config, success_figures
from internalize.studies.study import Figure, Scale, Study


def cells(scale: Scale) -> list[RunConfig]:
    """Left, left with replay and hints, and the mixture, at equal budgets."""
    laptop = scale == "laptop"
    fields = {"task": "C2", "steps": 10} if laptop else {"task": "C3", "steps": 15}
    if laptop:
        fields |= {
            "schedule": Schedule(budget=15_000, stage_budget=1500, exhausted="rollback"),
            "optimizer": OptimizerConfig(lr=1e-3, batch=64),
        }
    model = ModelConfig(1, 128, 32, 256) if laptop else None
    arms = (("left", RemovalConfig()), ("left", RemovalConfig(hint=True, replay=0.3)), ("mixture", RemovalConfig()))
    return [config(scale, model, curriculum=curriculum, removal=removal, **fields) for curriculum, removal in arms]


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Success without a chain, and of the same final model with its full chain."""
    return success_figures(outcomes, "Success by curriculum", "curriculum", "hint", "replay")


STUDY = Study(
    name="mixture",
    title="Does one mixture with length hints replace the curriculum?",
    claim="A mixture of all stages with an answer-length hint succeeds as the curriculum does, and the one model keeps its "
    "chain, which holds out of distribution (Figure 5).",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 5, "paper": 30},
)
