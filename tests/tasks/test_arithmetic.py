import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.errors import UserError
from internalize.tasks import Multiplication, SparseParity, make


def text(task: Multiplication, written: str) -> str:
    trace = task.encode(written).row(0)
    chain = [token for unit in trace.units for token in unit]
    prompt, steps, answer = (" ".join(task.tokens[token] for token in part) for part in (trace.prompt, chain, trace.answer))
    return f"{prompt}||{steps} #### {answer}"


def test_the_chain_is_that_of_deng_et_al() -> None:
    """Two lines of their 4x4 validation file."""
    expected = [
        "5 6 3 2 * 7 4 3 4||5 5 5 6 1 + 0 0 6 4 9 0 ( 5 5 1 1 1 1 ) + 0 0 5 9 0 7 0 ( 5 5 6 0 2 8 0 ) + 0 0 0 0 6 4 9 0"
        " #### 5 5 6 0 8 2 0 1",
        "6 9 1 5 * 6 4 4 7||6 7 1 1 3 + 0 4 8 7 0 2 ( 6 1 0 9 3 2 ) + 0 0 4 8 7 0 2 ( 6 1 4 7 1 3 2 ) + 0 0 0 2 7 3 6 3"
        " #### 6 1 4 9 8 6 8 3",
    ]
    for line in expected:
        assert text(Multiplication(4), line.split("||")[0]) == line
    assert Multiplication(3).units == 24


@given(st.integers(1, 9), st.data())
def test_products_are_right(digits: int, data: st.DataObject) -> None:
    a, b = (data.draw(st.integers(10 ** (digits - 1), 10**digits - 1)) for _ in range(2))
    task = Multiplication(digits)
    trace = task.encode(" ".join(str(a)[::-1] + str(b)[::-1])).row(0)
    assert int("".join(map(str, reversed(trace.answer)))) == a * b
    assert len(trace.answer) == 2 * digits
    assert len(trace.units) == task.units


@pytest.mark.parametrize("distribution", ["uniform", "biased:0:0.9", "dirichlet"])
def test_numbers_have_all_their_digits(distribution: str) -> None:
    prompt = Multiplication(3).sample(distribution, 500, np.random.default_rng(0), "train").prompt()
    assert prompt[:, 2].min() > 0
    assert prompt[:, 6].min() > 0
    assert prompt[:, 0].min() == 0


@given(st.integers(1, 20), st.data())
def test_parity_is_of_the_support_alone(bits: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, bits))
    task = SparseParity(bits, size)
    assert len(set(task.support.tolist())) == size
    written = data.draw(st.lists(st.integers(0, 1), min_size=bits, max_size=bits))
    trace = task.encode(" ".join(map(str, written))).row(0)
    partial, expected = 0, []
    for position in task.support:
        partial ^= written[position]
        expected.append(partial)
    assert [token for unit in trace.units for token in unit] + list(trace.answer) == expected


def test_the_support_is_spread_and_fixed() -> None:
    assert (SparseParity(30, 10).support == SparseParity(30, 10).support).all()
    assert SparseParity(30, 10).support.tolist() != list(range(10))


@pytest.mark.parametrize(
    ("name", "steps", "message"),
    [
        ("parity", 10, "as in parity:10"),
        ("parity:x", 10, "as in parity:10"),
        ("parity:0", 10, "between 1 and 10 support bits"),
        ("parity:11", 10, "between 1 and 10 support bits"),
        ("multiply", 0, "1 to 9 digits; steps is 0"),
        ("multiply", 10, "1 to 9 digits; steps is 10"),
        ("multiply:3", 3, 'no task is called "multiply:3"'),
    ],
)
def test_bad_names(name: str, steps: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make(name, steps)


def test_they_have_no_start_state() -> None:
    with pytest.raises(UserError, match="no start state"):
        make("multiply", 3, sampled_start=True)


def test_a_leading_zero_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be 0"):
        Multiplication(2).encode("1 0 * 1 1")
