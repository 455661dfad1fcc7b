"""The split of a task's input space into train, validation and test, by a hash of the input.

The split belongs to the task: it depends on neither the seed nor the distribution, so no input that any seed is
tested on is ever trained on, whatever the distributions. One tenth of all inputs is for validation and one tenth for test.
Constant sequences are in no part: there are too few of them to split, so they are kept for the test on the distribution
"constant" alone. (As part of the test inputs of other distributions they would weigh ten times too much.)
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from internalize.errors import UserError
from internalize.tasks.base import Ints, Part

TENTHS: dict[Part, tuple[int, ...]] = {"test": (0,), "validation": (1,), "train": tuple(range(2, 10))}
MOST_DRAWS = 2**21


def in_part(inputs: Ints, part: Part, skip: int = 0) -> NDArray[np.bool_]:
    """Which rows of `inputs` (rows, length) lie in `part`: (rows,) bool.

    Whether a sequence is constant is asked of the columns from `skip` on; those before are no part of the sequence.
    """
    held: NDArray[np.bool_] = np.isin(_hash(inputs) % np.uint64(10), TENTHS[part]) & ~_constant(inputs[:, skip:])
    return held


def sample_part(draw: Callable[[int], Ints], count: int, part: Part, what: str, skip: int = 0) -> Ints:
    """`count` inputs from `draw(n) -> (n, length)`, conditioned on lying in `part`, by rejection.

    Raises `UserError` when `part` holds (almost) none of what `draw` gives.
    """
    kept: list[Ints] = []
    missing, drawn = count, int(count * 11 / len(TENTHS[part])) + 16
    spent = 0
    while spent < MOST_DRAWS:
        inputs = draw(drawn)
        spent += drawn
        only_constant = part == "test" and _constant(inputs[:, skip:]).all()
        inputs = (inputs if only_constant else inputs[in_part(inputs, part, skip)])[:missing]
        kept.append(inputs)
        missing -= len(inputs)
        if not missing:
            return np.concatenate(kept)
        drawn = min(2 * drawn, MOST_DRAWS // 16)
    raise UserError(
        f"{what}: the {part} part of the input space holds too few such inputs ({count - missing} of {count} found); "
        "take another distribution or more steps."
    )


def _constant(inputs: Ints) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (inputs == inputs[:, :1]).all(axis=1)
    return same


def _hash(inputs: Ints) -> NDArray[np.uint64]:
    """A 64-bit hash of each row: one multiply-xorshift round (splitmix64) for each symbol."""
    state = np.full(len(inputs), 0x9E3779B97F4A7C15, np.uint64)
    for column in inputs.T.astype(np.uint64):
        state = (state ^ (column + np.uint64(1))) * np.uint64(0xBF58476D1CE4E5B9)
        state ^= state >> np.uint64(29)
    state *= np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(32))
