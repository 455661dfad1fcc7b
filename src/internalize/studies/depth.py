"""Figure 4: does depth help out of distribution? And width against depth at equal parameter budgets."""

from dataclasses import replace

import polars

from internalize.config import RunConfig
from internalize.models import ModelConfig
from internalize.studies.common import DIRECT, INSIDE, OUTSIDE, config, success_figures
from internalize.studies.study import Figure, Scale, Study


def cells(scale: Scale) -> list[RunConfig]:
    """C_2, C_3 and C_5 with one to eight layers."""
    paper = scale == "paper"
    base = ModelConfig(width=512, heads=128, mlp=2048) if paper else ModelConfig(width=128, heads=32, mlp=256)
    return [
        config(scale, replace(base, layers=layers), task=task, steps=15 if paper else 10)
        for task in ("C2", "C3", "C5")
        for layers in ((1, 2, 4, 8) if paper else (1, 2, 4))
    ]


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Success by depth, and each seed's accuracy in against out of distribution."""
    inside = outcomes.filter(DIRECT & INSIDE).select("run", "seed", "task", "layers", ID="accuracy")
    outside = outcomes.filter(DIRECT & OUTSIDE).select("run", "seed", OOD="accuracy")
    pairs = inside.join(outside, on=["run", "seed"]).drop("run").sort("task", "layers", "seed")
    scatter = Figure("Each seed", "Accuracy in and out of distribution, without a chain.", table=pairs)
    return [*success_figures(outcomes, "Success by depth", "task", "layers"), scatter]


STUDY = Study(
    name="depth",
    title="Does depth help out of distribution?",
    claim="Deeper models hold better out of distribution for C_2, not for C_3 and C_5 (Figure 4).",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 10, "paper": 30},
)
