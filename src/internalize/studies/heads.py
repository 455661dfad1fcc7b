"""Many small heads against few large ones."""

import polars

from internalize.config import RunConfig
from internalize.models import ModelConfig
from internalize.studies.common import config, success_figures
from internalize.studies.study import Figure, Scale, Study


def cells(scale: Scale) -> list[RunConfig]:
    """Equal width, four to width / 4 heads."""
    if scale == "paper":
        return [config(scale, ModelConfig(1, 512, heads, 2048), task="C2", steps=25) for heads in (4, 16, 64, 128)]
    return [config(scale, ModelConfig(1, 128, heads, 256), task="C2", steps=12) for heads in (4, 8, 16, 32)]


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Success by the number of heads."""
    return success_figures(outcomes, "Success by the number of heads", "heads")


STUDY = Study(
    name="heads",
    title="Do many small heads beat few large ones?",
    claim="128 heads beat 4 (account: 93.3 against 16.7 % for C_2 at T = 25).",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 10, "paper": 30},
)
