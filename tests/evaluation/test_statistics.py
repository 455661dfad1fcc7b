import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.evaluation import wilson


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
