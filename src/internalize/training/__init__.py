"""Training: seeds of one configuration, from the first step to their results."""

from internalize.training.data import check_data
from internalize.training.loop import SeedRun, batch_loss, new_model
from internalize.training.systems import stage_file, system, systems
from internalize.training.together import train_together

__all__ = ["SeedRun", "batch_loss", "check_data", "new_model", "stage_file", "system", "systems", "train_together"]
