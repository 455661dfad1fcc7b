from typing import get_args

import numpy as np
import pytest

from internalize.errors import UserError
from internalize.tasks import Part, make
from internalize.tasks.splits import in_part


def all_inputs(symbols: int, steps: int) -> np.ndarray:
    return np.stack(np.meshgrid(*[np.arange(symbols)] * steps, indexing="ij"), axis=-1).reshape(-1, steps)


def test_the_parts_share_out_the_input_space() -> None:
    inputs = all_inputs(3, 9)
    held = np.stack([in_part(inputs, part) for part in get_args(Part)])
    assert (held.sum(axis=0) == 1).all()
    assert held.mean(axis=1) == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_constant_sequences_are_never_trained_on() -> None:
    assert in_part(np.repeat(np.arange(5)[:, None], 9, axis=1), "test").all()


@pytest.mark.parametrize("distribution", ["uniform", "dirichlet", "biased:1:0.95", "sticky", "periodic", "blocks"])
def test_no_seed_trains_on_what_any_seed_is_tested_on(distribution: str) -> None:
    task = make("C2", 10)
    drawn = {
        part: {
            tuple(row)
            for seed in range(3)
            for row in task.sample(distribution, 3000, np.random.default_rng(seed), part).prompt().tolist()
        }
        for part in ("train", "validation", "test")
    }
    assert not drawn["train"] & drawn["test"]
    assert not drawn["train"] & drawn["validation"]
    assert not drawn["validation"] & drawn["test"]


def test_what_a_part_does_not_hold_is_an_error() -> None:
    with pytest.raises(UserError, match="the train part of the input space holds too few"):
        make("C2", 10).sample("constant", 10, np.random.default_rng(0), "train")
    with pytest.raises(UserError, match="C2, 1 steps, uniform: the train part"):
        make("C2", 1).sample("uniform", 10, np.random.default_rng(0), "train")
