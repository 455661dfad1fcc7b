"""The reset of the moments at each stage, and the second moment's decay."""

import polars

from internalize.config import OptimizerConfig, RunConfig
from internalize.models import ModelConfig
from internalize.studies.common import config, success_figures
from internalize.studies.study import Figure, Scale, Study


def cells(scale: Scale) -> list[RunConfig]:
    """Reset or not, beta2 = .95 (paper) or .999."""
    laptop = scale == "laptop"
    model = ModelConfig(1, 128, 32, 256) if laptop else None
    fields = {"task": "C2", "steps": 12} if laptop else {"task": "C3", "steps": 15}
    rate = 5e-4 if laptop else 2e-4
    return [
        config(scale, model, optimizer=OptimizerConfig(lr=rate, beta2=beta2, reset=reset), **fields)
        for beta2 in (0.95, 0.999)
        for reset in (True, False)
    ]


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Success of the four optimizers."""
    return success_figures(outcomes, "Success by optimizer", "beta2", "reset")


STUDY = Study(
    name="optimizer",
    title="Does the reset of the moments matter?",
    claim="The moments are reset at each stage, with betas (0.9, 0.95); what that gains is not told.",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 10, "paper": 30},
)
