from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize import curricula
from internalize.curricula import View
from internalize.rendering import Vocabulary, render
from internalize.tasks import Trace, Traces, make

TASK = make("C3", 5)
VOCABULARY = Vocabulary.of(TASK)
TRACES = TASK.encode("1 2 0 1 1")  # states 1 0 0 1 2


def text(view: View) -> str:
    return " ".join(VOCABULARY.text(render(TRACES, [view], VOCABULARY).tokens[0]))


def test_what_is_written_at_each_stage() -> None:
    left, right, mixture = (curricula.make(name) for name in ("left", "right", "mixture"))
    assert text(left.target(4, 0)) == "BOS 1 2 0 1 1 1 0 0 1 2"
    assert text(left.target(4, 3)) == "BOS 1 2 0 1 1 1 2"
    assert text(left.target(4, 4)) == "BOS 1 2 0 1 1 2"
    assert text(right.target(4, 3)) == "BOS 1 2 0 1 1 1 2"
    assert text(right.target(4, 2)) == "BOS 1 2 0 1 1 1 0 2"
    assert text(mixture.full(4)) == "BOS 1 2 0 1 1 LEN_4 1 0 0 1 2"
    assert text(mixture.direct(4)) == "BOS 1 2 0 1 1 LEN_0 2"


def test_the_loss_covers_chain_and_answer_only() -> None:
    batch = render(TRACES, [curricula.make("mixture").full(4)], VOCABULARY)
    assert batch.target[0].tolist() == [False] * 7 + [True] * 5
    assert batch.answer[0].tolist() == [False] * 11 + [True]
    assert batch.first == 6
    assert (batch.positions == np.arange(12)).all()


def test_rows_with_views_of_their_own_are_padded_and_padding_is_no_target() -> None:
    mixture = curricula.make("mixture")
    traces = TASK.sample("uniform", 6, np.random.default_rng(0), "train")
    which = np.array([0, 4, 2, 4, 0, 1])
    views = [view for _, view in mixture.mixture(4, 0)]
    batch = render(traces, views, VOCABULARY, which)
    for row, view in enumerate(which):
        alone = render(traces[row : row + 1], [views[view]], VOCABULARY)
        length = alone.tokens.shape[1]
        assert (batch.tokens[row, :length] == alone.tokens[0]).all()
        assert (batch.target[row, :length] == alone.target[0]).all()
        assert (batch.tokens[row, length:] == VOCABULARY.PAD).all()
        assert not batch.target[row, length:].any()
        assert not batch.answer[row, length:].any()


tokens = st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple)


@given(
    st.lists(st.builds(Trace, tokens, st.lists(tokens, min_size=3, max_size=3).map(tuple), tokens), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.booleans(),
)
def test_traces_of_any_lengths(rows: list[Trace], keep: list[bool], hinted: bool) -> None:
    vocabulary = Vocabulary(tuple("abcdef"), 3)
    view = View(tuple(keep), sum(keep) if hinted else None)
    batch = render(Traces.of(rows), [view], vocabulary)
    for index, row in enumerate(rows):
        shown = [token for unit, kept in zip(row.units, keep, strict=True) if kept for token in unit]
        hint = [f"LEN_{sum(keep)}"] if hinted else []
        written = ["BOS", *("abcdef"[i] for i in row.prompt), *hint, *("abcdef"[i] for i in [*shown, *row.answer])]
        assert vocabulary.text(batch.tokens[index])[: len(written)] == written
        assert (batch.tokens[index, len(written) :] == vocabulary.PAD).all()
        assert batch.target[index].sum() == len(shown) + len(row.answer)
        assert batch.answer[index].sum() == len(row.answer)
        assert batch.target[index].argmax() > batch.first


@pytest.mark.parametrize("removed", ["zero", "filler"])
def test_something_may_stand_for_a_removed_unit(removed: Any) -> None:
    token = {"zero": "PAD", "filler": "FILLER"}[removed]
    view = View((False, True, False, True), hint=2, removed=removed)
    batch = render(TRACES, [view], VOCABULARY)
    assert " ".join(VOCABULARY.text(batch.tokens[0])) == f"BOS 1 2 0 1 1 LEN_2 {token} 0 {token} 1 2"
    assert np.flatnonzero(batch.target[0]).tolist() == [8, 10, 11]
    assert batch.first == 7


def test_kept_positions_are_those_of_the_full_row() -> None:
    for hint, answer in ((None, 10), (1, 11)):
        batch = render(TRACES, [View((False, False, True, False), hint)], VOCABULARY, position_ids="kept")
        assert batch.positions[0, -2:].tolist() == [answer - 2, answer]
        assert batch.positions[0, : batch.first + 1].tolist() == list(range(batch.first + 1))


@pytest.mark.parametrize("position_ids", ["compacted", "kept"])
@pytest.mark.parametrize("removed", ["drop", "zero", "filler"])
@given(keep=st.lists(st.booleans(), min_size=4, max_size=4), hinted=st.booleans(), seed=st.integers(0, 9))
def test_what_is_shown_can_be_read_back(position_ids: Any, removed: Any, keep: list[bool], hinted: bool, seed: int) -> None:
    traces = TASK.sample("uniform", 3, np.random.default_rng(seed), "train")
    view = View(tuple(keep), sum(keep) if hinted else None, removed)
    batch = render(traces, [view], VOCABULARY, position_ids=position_ids)
    for index in range(3):
        trace = traces.row(index)
        shown = [unit[0] for unit, kept in zip(trace.units, keep, strict=True) if kept]
        assert (batch.tokens[index][batch.target[index]] == VOCABULARY.task(np.array([*shown, *trace.answer]))).all()
        assert (np.diff(batch.positions[index]) > 0).all()
        assert batch.tokens[index, 1:6].tolist() == VOCABULARY.task(np.array(trace.prompt)).tolist()


@pytest.mark.parametrize("steps", [1, 2])
def test_the_shortest_chains(steps: int) -> None:
    task = make("C2", steps)
    traces = task.encode(" ".join("1" * steps))
    batch = render(traces, [curricula.make("left").full(task.units)], Vocabulary.of(task))
    assert batch.target.sum() == steps
