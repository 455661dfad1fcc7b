from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.errors import UserError
from internalize.tasks import Semiautomaton, Simulation, make, semiautomaton
from internalize.tasks.semiautomata import symmetric


@given(
    table=st.integers(1, 5).flatmap(
        lambda states: st.integers(1, 4).flatmap(
            lambda symbols: st.lists(
                st.lists(st.integers(0, states - 1), min_size=symbols, max_size=symbols), min_size=states, max_size=states
            )
        )
    ),
    seed=st.integers(0, 99),
)
def test_states_are_the_fold_of_the_table(table: list[list[int]], seed: int) -> None:
    delta = np.array(table)
    names = tuple(map(str, range(delta.shape[0]))), tuple(map(str, range(delta.shape[1])))
    automaton = Semiautomaton("any", *names, delta)
    inputs = np.random.default_rng(seed).integers(delta.shape[1], size=(7, 6))
    states = automaton.run(inputs)
    for row in range(len(inputs)):
        state = 0
        for step, symbol in enumerate(inputs[row]):
            state = table[state][symbol]
            assert states[row, step] == state


@given(n=st.integers(2, 40), seed=st.integers(0, 99))
def test_a_counter_counts(n: int, seed: int) -> None:
    inputs = np.random.default_rng(seed).integers(n, size=(5, 9))
    assert (semiautomaton(f"C{n}").run(inputs) == inputs.cumsum(axis=1) % n).all()


@pytest.mark.parametrize("k", [2, 3, 4])
def test_symmetric_group_composes(k: int) -> None:
    group = symmetric(k)
    assert len(group.states) == factorial(k)
    for q, state in enumerate(group.states):
        for s, symbol in enumerate(group.symbols):
            assert group.states[group.delta[q, s]] == "".join(symbol[int(point)] for point in state)
    assert (np.sort(group.delta, axis=0) == np.arange(factorial(k))[:, None]).all()  # every symbol permutes the states
    assert (group.delta[0] == np.arange(factorial(k))).all()  # the start state is the identity


def test_s3_does_not_commute() -> None:
    delta = symmetric(3).delta
    assert (delta != delta.T).any()


def test_the_trace_of_an_input() -> None:
    task = make("C3", 4)
    trace = task.encode("1 2 2 1").row(0)
    assert trace.prompt == (1, 2, 2, 1)
    assert trace.units == ((1,), (0,), (2,))
    assert trace.answer == (0,)


def test_symbols_and_states_of_one_name_are_one_token() -> None:
    lamp = Semiautomaton("lamp", ("off", "on"), ("press", "off"), np.array([[1, 0], [0, 0]]))
    task = Simulation(lamp, 3)
    assert task.tokens == ("press", "off", "on")
    trace = task.encode("press press off").row(0)
    assert trace.prompt == (0, 0, 1)
    assert trace.units == ((2,), (1,))
    assert trace.answer == (1,)


@pytest.mark.parametrize("name", ["C1", "C0", "C1001", "S1", "S7", "Q8", "c3", "C", "", "C3 ", "C-3", "S3:gen"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UserError):
        semiautomaton(name)


@pytest.mark.parametrize(("text", "message"), [("1 2", "has 2 symbols; this task takes 3"), ("1 2 3", 'symbol 3 is "3"')])
def test_bad_typed_inputs(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make("C3", 3).encode(text)


def test_too_few_steps() -> None:
    with pytest.raises(UserError, match="at least 1"):
        make("C3", 0)
