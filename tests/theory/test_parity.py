import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from internalize import UserError
from internalize.theory import ParityConfig, TreeParityConfig, internalize_parity, learn_tree_parity
from internalize.theory.parity import slope, wave


@given(st.integers(-50, 50))
def test_the_wave_is_the_parity_at_integers(n: int) -> None:
    s = torch.tensor([float(n)])
    assert wave(s).item() == n % 2
    step = 0.25
    assert slope(s, "left").item() == (wave(s) - wave(s - step)).item() / step
    assert slope(s, "right").item() == (wave(s + step) - wave(s)).item() / step


def test_the_invariant_holds_after_every_stage() -> None:
    outcome = internalize_parity(ParityConfig(bits=16, support=5), [0, 1, 2])
    assert outcome.invariant.all()
    assert outcome.chain.all()
    assert outcome.exact.all()
    assert (outcome.accuracy == 1).all()


def test_seeds_side_by_side_equal_seeds_alone() -> None:
    config = ParityConfig(bits=10, support=4, batch=2, steps=20)  # so few samples that seeds differ
    together = internalize_parity(config, list(range(8)))
    alone = [internalize_parity(config, [seed]) for seed in range(8)]
    assert 0 < together.exact.sum() < 8
    assert together.exact.tolist() == [bool(one.exact[0]) for one in alone]
    assert (together.invariant == np.concatenate([one.invariant for one in alone])).all()


def test_streamed_batches_equal_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ParityConfig(bits=8, support=3, batch=512, steps=40)
    whole = internalize_parity(config, [0])
    monkeypatch.setattr("internalize.theory.parity.AT_ONCE", 11 * 100)
    streamed = internalize_parity(config, [0])
    assert whole.invariant.tolist() == streamed.invariant.tolist()
    with pytest.raises(UserError, match="does not fit; take fresh"):
        internalize_parity(ParityConfig(bits=8, support=3, batch=512, batches="fixed"), [0])


def test_end_to_end_fails_on_the_same_samples() -> None:
    outcome = internalize_parity(ParityConfig(bits=16, support=8, method="e2e"), [0, 1, 2, 3])
    assert not outcome.exact.any()
    assert (outcome.accuracy < 0.6).all()


def test_without_rounding_the_invariant_is_lost() -> None:
    outcome = internalize_parity(ParityConfig(bits=16, support=8, rounding=False), [0, 1])
    assert not outcome.invariant.any()
    assert not outcome.exact.any()


def test_the_right_derivative_turns_the_sign_and_stays_exact() -> None:
    outcome = internalize_parity(ParityConfig(bits=16, support=5, derivative="right"), [0, 1])
    assert not outcome.invariant.any()
    assert outcome.exact.all()


def test_label_noise_and_zero_rows_of_the_chain() -> None:
    assert internalize_parity(ParityConfig(bits=16, support=5, noise=0.1), [0, 1]).exact.all()
    zero = internalize_parity(ParityConfig(bits=16, support=5, chain_rows="zero"), [0, 1])
    assert not zero.chain.any()  # the slow system is not learnt, yet the fast one is: true chain tokens are its labels
    assert zero.exact.all()


def test_a_tree_is_learnt_in_one_step() -> None:
    told: list[tuple[int, int]] = []
    outcome = learn_tree_parity(TreeParityConfig(bits=16, support=8), [0, 1, 2], lambda *at: told.append(at))
    assert outcome.exact.all()
    assert (outcome.accuracy == 1).all()
    assert told == [(1, 3), (2, 3), (3, 3)]
    few = learn_tree_parity(TreeParityConfig(bits=16, support=8, batch=50), [0, 1, 2])
    assert not few.exact.any()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"support": 31}, "support is 31; it must be between 1 and the 30 bits"),
        ({"support": 0}, "support is 0"),
        ({"batch": -1}, "batch is -1"),
        ({"steps": -2}, "steps is -2"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"noise": 0.5}, "noise is 0.5"),
        ({"bits": 2.5}, "bits is 2.5; it must be of type int"),
    ],
)
def test_settings_without_sense(values: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ParityConfig(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [{"support": 6}, {"support": 64}, {"support": 1}, {"batch": -1}])
def test_trees_without_sense(values: dict[str, int]) -> None:
    with pytest.raises(UserError):
        TreeParityConfig(**values)
