"""The slow and the fast system that a seed's training leaves behind, as procedures."""

from pathlib import Path

from internalize.checkpoint import load_model
from internalize.config import RunConfig
from internalize.curricula import View
from internalize.evaluation import ModelProcedure


def stage_file(directory: Path, stage: int) -> Path:
    """Where a seed's directory holds the weights from the end of a stage."""
    return directory / "stages" / f"{stage}.safetensors"


def system(config: RunConfig, directory: Path, stage: int, view: View, device: str = "cpu") -> ModelProcedure:
    """The model from the end of a stage, writing what `view` shows. Raises `UserError` for a damaged file."""
    task = config.make_task()
    chain = f"{view.shown} chain unit{'s' if view.shown != 1 else ''}" if view.shown else "no chain"
    model = load_model(stage_file(directory, stage)).to(device)
    return ModelProcedure(f"stage {stage} with {chain}", model, task, view, config.position_ids)


def systems(config: RunConfig, directory: Path, last: int, device: str = "cpu") -> dict[str, ModelProcedure]:
    """ "slow" writes the full chain, "fast" none of it; `last` is the last stage that was trained.

    Slow is the model at the end of the first stage, fast the one at the end of the last; either is missing where no stage
    trained it.
    """
    curriculum, units = config.make_curriculum(), config.make_task().units
    found = {}
    for name, stage, view in (("slow", 0, curriculum.full(units)), ("fast", last, curriculum.direct(units))):
        if view in [shown for _, shown in curriculum.mixture(units, stage)]:
            found[name] = system(config, directory, stage, view, device)
    return found
