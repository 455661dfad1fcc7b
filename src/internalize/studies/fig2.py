"""Figure 2: end to end, chain of thought and left curriculum over tasks and lengths, in and out of distribution."""

import polars

from internalize.config import RunConfig
from internalize.models import ModelConfig
from internalize.studies.common import config, splits, success_figures
from internalize.studies.study import Figure, Scale, Study

TASKS = ("C3", "C5", "S3")


def cells(scale: Scale) -> list[RunConfig]:
    """Three regimes, three tasks, three lengths, uniform inputs. S_3 has more layers at laptop size."""
    lengths = {"laptop": (8, 10, 12), "paper": (15, 20, 25)}[scale]
    deep = ModelConfig(layers=3, width=128, heads=32, mlp=512)
    return [
        config(
            scale,
            deep if task == "S3" and scale == "laptop" else None,
            task=task,
            steps=steps,
            curriculum=curriculum,
            evaluation=splits(task),
        )
        for task in TASKS
        for steps in lengths
        for curriculum in ("left", "cot", "e2e")
    ]


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
