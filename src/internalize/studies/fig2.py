"""Figure 2: end to end, chain of thought and left curriculum over tasks and lengths, in and out of distribution."""

from dataclasses import replace

import polars

from internalize.config import RunConfig
from internalize.studies.common import SHORT, SMALL, config, splits, success_figures
from internalize.studies.study import Figure, Scale, Study

TASKS = ("C3", "C5", "S3")


def cells(scale: Scale) -> list[RunConfig]:
    """Three tasks, three lengths, three regimes, uniform inputs; at laptop size S_3 has three layers instead of one.

    The full chain may not stop before half of the budget: left as soon as it passes in distribution, it fails out of it.
    """
    laptop = scale == "laptop"
    lengths = (8, 10, 12) if laptop else (15, 20, 25)
    deep = replace(SMALL, layers=3, mlp=512)
    found = []
    for task in TASKS:
        model = (deep if task == "S3" else SMALL) if laptop else None
        for steps in lengths:
            left = config(scale, model, task=task, steps=steps, evaluation=splits(task), **(SHORT if laptop else {}))
            half = left.schedule.budget // 2
            cot = replace(left, curriculum="cot", schedule=replace(left.schedule, first_stage=half))
            found += [left, cot, replace(left, curriculum="e2e")]
    return found


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Successes and histograms."""
    return success_figures(outcomes, "Success in and out of distribution", "task", "T", "curriculum")


STUDY = Study(
    name="fig2",
    title="Which regimes succeed in distribution, and which out of it?",
    claim="End to end fails, the full chain succeeds in and out of distribution, the left curriculum succeeds in distribution "
    "without a chain and less often out of it (Figure 2; an account gives 76.7 / 36.7 % for C_3 at T = 15).",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 10, "paper": 30},
)
