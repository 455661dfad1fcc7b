import numpy as np
import pytest

from internalize.errors import UserError
from internalize.tasks.distributions import NAMES, parts, sampler

SYMBOLS = ("0", "1", "2")
STEPS = 12


def draw(spec: str, count: int = 4000, seed: int = 0) -> np.ndarray:
    return sampler(spec, SYMBOLS)(len(SYMBOLS), STEPS, count, np.random.default_rng(seed))


FORMS = [{"counts": "counts:1:3:5", "markov": "markov:0.3:1:2:1"}.get(name, name) for name in NAMES]


@pytest.mark.parametrize(
    "spec", [*FORMS, "uniform+dirichlet", "biased:2:0.6+sticky:0.9+constant", "uniform+sticky~counts:0:3:5"]
)
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


def test_counts_gives_each_number_of_occurrences_equally_often() -> None:
    times = (draw("counts:1:3:5") == 1).sum(axis=1)
    assert np.bincount(times, minlength=6) / 4000 == pytest.approx([0, 0, 0, 1 / 3, 1 / 3, 1 / 3], abs=0.03)
    places = (draw("counts:1:3:5") == 1).mean(axis=0)
    assert places == pytest.approx([4 / STEPS] * STEPS, abs=0.03)
    assert (draw("counts:2:0:0") != 2).all()


def test_balanced_varies_the_order_of_one_multiset() -> None:
    inputs = draw("balanced")
    assert (np.sort(inputs, axis=1) == np.repeat([0, 1, 2], STEPS // 3)).all()
    assert len(np.unique(inputs, axis=0)) > 3000


def test_markov_has_its_frequencies_and_repeats() -> None:
    inputs = draw("markov:0.4:1:2:7", 20000)
    assert np.bincount(inputs.ravel()) / inputs.size == pytest.approx([0.1, 0.2, 0.7], abs=0.01)
    again = 0.4 + 0.6 * (0.1**2 + 0.2**2 + 0.7**2)
    assert (inputs[:, 1:] == inputs[:, :-1]).mean() == pytest.approx(again, abs=0.01)


def test_a_held_out_region_is_held_out_of_every_part() -> None:
    times = (draw("uniform+constant+sticky~counts:1:3:12") == 1).sum(axis=1)
    assert times.max() == 2
    assert parts("uniform+sticky~counts:1:3:12") == ("uniform~counts:1:3:12", "sticky~counts:1:3:12")
    with pytest.raises(UserError, match="leaves \\(almost\\) no sequence"):
        draw("constant~counts:1:0:12")
    with pytest.raises(UserError, match="no symbol occurs 13 times in 12 places"):
        draw("counts:1:13:14")
