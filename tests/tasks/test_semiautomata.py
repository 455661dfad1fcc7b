import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.errors import UserError
from internalize.tasks import Semiautomaton, Simulation, make, semiautomaton


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


def test_a_sampled_start_state_is_shown_and_counts_as_input() -> None:
    task = make("C3", 4, sampled_start=True)
    assert (task.inputs, task.longest) == (3 * 3**4, 9)
    trace = task.encode("2 1 2 2 1").row(0)
    assert trace.prompt == (2, 1, 2, 2, 1)
    assert trace.units == ((0,), (2,), (1,))
    assert trace.answer == (2,)
    traces = make("C3", 9, sampled_start=True).sample("uniform", 600, np.random.default_rng(0), "train")
    assert np.bincount(traces.prompt()[:, 0]) / 600 == pytest.approx([1 / 3] * 3, abs=0.08)
    constant = make("C3", 9, sampled_start=True).sample("constant", 600, np.random.default_rng(0), "test").prompt()
    assert len(np.unique(constant, axis=0)) == 9


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 2", "has 2 words; C3 takes 3 symbols here"), ("1 2 3", 'word 3 of the input is "3"'), ("", "has 0 words")],
)
def test_bad_typed_inputs(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make("C3", 3).encode(text)


def test_too_few_steps() -> None:
    with pytest.raises(UserError, match="at least 1"):
        make("C3", 0)
