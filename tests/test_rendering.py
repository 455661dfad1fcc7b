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


@pytest.mark.parametrize("steps", [1, 2])
def test_the_shortest_chains(steps: int) -> None:
    task = make("C2", steps)
    traces = task.encode(" ".join("1" * steps))
    batch = render(traces, [curricula.make("left").full(task.units)], Vocabulary.of(task))
    assert batch.target.sum() == steps
