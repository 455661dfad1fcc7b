import numpy as np
import pytest

from internalize.errors import UserError
from internalize.tasks.distributions import NAMES, sampler

SYMBOLS = ("0", "1", "2")
STEPS = 12


def draw(spec: str, count: int = 4000, seed: int = 0) -> np.ndarray:
    return sampler(spec, SYMBOLS)(len(SYMBOLS), STEPS, count, np.random.default_rng(seed))


@pytest.mark.parametrize("spec", [*NAMES, "uniform+dirichlet", "biased:2:0.6+sticky:0.9+constant"])
def test_every_distribution_draws_symbols_reproducibly(spec: str) -> None:
    inputs = draw(spec)
    assert inputs.shape == (4000, STEPS)
    assert set(np.unique(inputs)) <= {0, 1, 2}
    assert (inputs == draw(spec)).all()
    assert (inputs != draw(spec, seed=1)).any()


def test_uniform() -> None:
    assert np.bincount(draw("uniform").ravel()) / (4000 * STEPS) == pytest.approx([1 / 3] * 3, abs=0.01)


def test_biased_gives_the_symbol_its_probability_and_shares_the_rest() -> None:
    assert np.bincount(draw("biased:2:0.7").ravel()) / (4000 * STEPS) == pytest.approx([0.15, 0.15, 0.7], abs=0.01)
    assert np.bincount(draw("biased").ravel()) / (4000 * STEPS) == pytest.approx([0.1, 0.8, 0.1], abs=0.01)


def test_dirichlet_varies_frequencies_between_sequences() -> None:
    shares = (draw("dirichlet:0.5") == 0).mean(axis=1)
    assert shares.mean() == pytest.approx(1 / 3, abs=0.02)
    assert shares.std() > 2 * (draw("uniform") == 0).mean(axis=1).std()
    assert (draw("dirichlet:1e6") == 0).mean(axis=1).std() == pytest.approx((1 / 3 * 2 / 3 / STEPS) ** 0.5, rel=0.1)


def test_sticky_repeats_with_its_probability() -> None:
    inputs = draw("sticky:0.7")
    assert (inputs[:, 1:] == inputs[:, :-1]).mean() == pytest.approx(0.7 + 0.3 / 3, abs=0.01)


def test_periodic_has_a_period_up_to_its_longest() -> None:
    inputs = draw("periodic:3")
    periods = [(inputs[:, period:] == inputs[:, :-period]).all(axis=1) for period in (2, 3)]
    assert np.logical_or(*periods).all()
    assert not periods[0].all()
    halves = draw("periodic")
    assert np.logical_or.reduce([(halves[:, p:] == halves[:, :-p]).all(axis=1) for p in range(2, 7)]).all()


def test_constant_and_blocks() -> None:
    assert (draw("constant") == draw("constant")[:, :1]).all()
    changes = (draw("blocks:3")[:, 1:] != draw("blocks:3")[:, :-1]).sum(axis=1)
    assert changes.max() == 2


def test_a_mixture_draws_from_its_parts_equally() -> None:
    inputs = draw("uniform+constant")
    assert (inputs == inputs[:, :1]).all(axis=1).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    "spec",
    [
        *("", "normal", "Uniform", "uniform:1", "constant:1", "uniform+", "uniform+normal"),
        *("biased:7:0.5", "biased:1:0", "biased:1:1", "biased:1:x", "biased:1:nan", "biased:1:0.5:2"),
        *("dirichlet:0", "dirichlet:inf", "sticky:1", "periodic:1", "periodic:2.5", "blocks:1", "blocks:-2"),
    ],
)
def test_bad_specifications(spec: str) -> None:
    with pytest.raises(UserError):
        sampler(spec, SYMBOLS)
