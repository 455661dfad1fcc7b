"""Training: one seed of one configuration, from the first step to its result."""

from internalize.training.data import check_data
from internalize.training.loop import SUCCESS, SeedRun, batch_loss, new_model, read_metrics

__all__ = ["SUCCESS", "SeedRun", "batch_loss", "check_data", "new_model", "read_metrics"]
