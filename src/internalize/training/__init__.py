"""Training: one seed of one configuration, from the first step to its result."""

from internalize.training.data import check_data
from internalize.training.loop import SeedRun, batch_loss, new_model, read_metrics, stage_file

__all__ = ["SeedRun", "batch_loss", "check_data", "new_model", "read_metrics", "stage_file"]
