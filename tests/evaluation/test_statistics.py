import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.evaluation import success_rate, wilson
from internalize.evaluation.statistics import mean_interval, median_needed, needed, spread


def test_known_values() -> None:
    # Agresti & Coull 1998 and any statistics package: 0/10, 5/10, 81/263.
    assert wilson(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 0) == (0, 1)


@given(trials=st.integers(1, 1000), share=st.floats(0, 1))
def test_it_holds_the_share_and_mirrors(trials: int, share: float) -> None:
    successes = round(trials * share)
    low, high = wilson(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    assert wilson(trials - successes, trials) == pytest.approx((1 - high, 1 - low))


def test_the_interval_of_a_mean() -> None:
    # Student's t with 4 degrees of freedom is 2.776 at 95 %; the standard error of these five is sqrt(0.00025).
    assert mean_interval([0.5, 0.55, 0.5, 0.45, 0.5]) == pytest.approx(
        (0.5 - 2.7764 * 0.0158114, 0.5 + 2.7764 * 0.0158114), abs=1e-5
    )
    assert mean_interval([0.9, 1.0]) == (pytest.approx(0.3147, abs=1e-4), 1)
    assert mean_interval([0.7, 0.7, 0.7]) == pytest.approx((0.7, 0.7))


def test_statistics_in_words() -> None:
    assert str(success_rate([True, True, False, True])) == "3/4 [0.30, 0.95]"
    assert spread([0.5, 1.0, 0.75]) == "0.750 (0.500 to 1.000)"


def test_a_seed_that_does_not_get_there_needs_more_than_any_that_does() -> None:
    assert median_needed([3000, None, 1000]) == 3000
    assert needed([3000, None, 1000], 5000) == "3,000 (1,000 to 3,000)"
    assert needed([1000, None], 5000) == "more than 5,000 (1,000)"
    assert needed([None], 5000) == "more than 5,000"
