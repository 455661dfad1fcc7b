"""What a run is trained on, and what it is judged on."""

import numpy as np

from internalize.config import RunConfig
from internalize.errors import UserError
from internalize.evaluation import draw_splits
from internalize.seeding import numpy_stream
from internalize.tasks import Traces

_BARREN_DRAWS = 10  # draws in a row without a new input, after which there are no more to be found


def held_out(config: RunConfig) -> tuple[dict[str, Traces], dict[str, Traces]]:
    """The validation and the test traces of each split: the same for every seed. Raises `UserError` where there are none."""
    task, evaluation = config.make_task(), config.evaluation
    most = max(evaluation.samples, evaluation.stage_samples)
    return (
        draw_splits(task, config.validation_splits(), evaluation.validation, "validation"),
        draw_splits(task, config.test_splits(), most, "test"),
    )


def training_set(config: RunConfig, seed: int) -> Traces | None:
    """A seed's finite training set of `config.train_size` distinct inputs, or None where every step draws fresh ones.

    Raises `UserError` when so many distinct inputs are not found.
    """
    task, size = config.make_task(), config.train_size
    if not size:
        return None
    rng = numpy_stream(seed, "training set")
    inputs = config.labelled_inputs()
    found = task.sample(inputs, size, rng, "train")
    barren = 0
    while True:
        found = found[np.sort(np.unique(found.tokens, axis=0, return_index=True)[1])]
        if len(found) >= size:
            return found[:size]
        grown = Traces.concatenate([found, task.sample(inputs, size, rng, "train")])
        barren = barren + 1 if len(np.unique(grown.tokens, axis=0)) == len(found) else 0
        if barren == _BARREN_DRAWS:
            raise UserError(
                f"train_size is {size:,}, but only {len(found):,} distinct training inputs are found for {config.task_name} "
                f"over {config.steps} steps with inputs {inputs}; make it smaller, or take more steps."
            )
        found = grown


def check_data(config: RunConfig) -> None:
    """Raise `UserError` unless all that a run needs can be drawn."""
    held_out(config)
    config.make_task().sample(config.inputs, 1, numpy_stream(0, "check"), "train")
    training_set(config, 0)
