"""Wide and shallow against deep and narrow at equal numbers of parameters."""

import polars

from internalize.config import OptimizerConfig, RunConfig
from internalize.models import ModelConfig
from internalize.studies.common import config, success_figures
from internalize.studies.study import Figure, Scale, Study

# (layers, width, heads, mlp) of about equally many weights: L (4 d^2 + 2 d w). Head dimension 4, so heads follow the width.
LAPTOP = (
    ((1, 128, 32, 256), (4, 64, 16, 128)),  # 0.13 million
    ((1, 256, 64, 512), (4, 128, 32, 256)),  # 0.52 million
    ((2, 256, 64, 512), (8, 128, 32, 256)),  # 1.05 million
)
PAPER = (
    ((4, 512, 128, 256), (16, 256, 64, 128)),  # 5.2 million (the first: paper)
    ((4, 512, 128, 2048), (16, 256, 64, 1024)),  # 12.6 million
    ((4, 512, 128, 4096), (25, 344, 86, 512)),  # 21.0 and 20.6 million (account); 344 has 86 heads of dimension 4
)


def cells(scale: Scale) -> list[RunConfig]:
    """Each shape with three learning rates: the best one of each counts, chosen on the pilot seeds."""
    task, steps, budgets = ("C3", 10, LAPTOP) if scale == "laptop" else ("C7", 25, PAPER)
    return [
        config(scale, ModelConfig(*shape), task=task, steps=steps, optimizer=OptimizerConfig(lr=rate))
        for pair in budgets
        for shape in pair
        for rate in (2e-4, 5e-4, 1e-3)
    ]


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Success of every shape and learning rate."""
    return success_figures(outcomes, "Success by shape", "layers", "width", "mlp", "lr")


STUDY = Study(
    name="shape",
    title="Does width beat depth at equal parameters?",
    claim="Wide and shallow models beat deep and narrow ones at 5, 12 and 20 million parameters (account: 73.3 against 6.7 % "
    "for C_7 at T = 25).",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 5, "paper": 30},
)
