from hypothesis import given
from hypothesis import strategies as st

from internalize.tasks import PADDING, Trace, Traces

tokens = st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple)
traces = st.builds(Trace, tokens, st.lists(tokens, max_size=4).map(tuple), tokens)


@given(st.lists(traces, min_size=1, max_size=5))
def test_traces_of_any_lengths_are_kept_whole(rows: list[Trace]) -> None:
    batch = Traces.of(rows)
    assert [batch.row(index) for index in range(len(batch))] == rows
    assert (batch.tokens[batch.segment == PADDING] == 0).all()
