"""Training: one seed of one configuration, from the first step to its result."""

from internalize.training.loop import SUCCESS, SeedRun, batch_loss, held_out, new_model, read_metrics

__all__ = ["SUCCESS", "SeedRun", "batch_loss", "held_out", "new_model", "read_metrics"]
