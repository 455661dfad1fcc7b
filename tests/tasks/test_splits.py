from typing import get_args

import numpy as np
import pytest

from internalize.errors import UserError
from internalize.tasks import Part, make
from internalize.tasks.splits import in_part


def all_inputs(symbols: int, steps: int) -> np.ndarray:
    return np.stack(np.meshgrid(*[np.arange(symbols)] * steps, indexing="ij"), axis=-1).reshape(-1, steps)


def test_the_parts_share_out_the_input_space_less_the_constant_sequences() -> None:
    inputs = all_inputs(3, 9)
    held = np.stack([in_part(inputs, part) for part in get_args(Part)])
    constant = (inputs == inputs[:, :1]).all(axis=1)
    assert (held.sum(axis=0) == ~constant).all()
    assert held.mean(axis=1) == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_constant_sequences_are_tested_on_by_their_own_distribution_alone() -> None:
    task, rng = make("C2", 12), np.random.default_rng(0)
    prompts = {
        name: task.sample(name, 2000, rng, "test").prompt() for name in ("constant", "dirichlet:0.1", "uniform+constant")
    }
    assert {tuple(row) for row in prompts["constant"].tolist()} == {(0,) * 12, (1,) * 12}
    for name in ("dirichlet:0.1", "uniform+constant"):
        assert not (prompts[name] == prompts[name][:, :1]).all(axis=1).any()


@pytest.mark.parametrize("distribution", ["uniform", "dirichlet", "biased:1:0.95", "sticky", "periodic:8", "blocks:5"])
def test_no_seed_trains_on_what_any_seed_is_tested_on(distribution: str) -> None:
    task = make("C2", 16)
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
    with pytest.raises(UserError, match="C2, 1 symbols, uniform: the train part"):
        make("C2", 1).sample("uniform", 10, np.random.default_rng(0), "train")
