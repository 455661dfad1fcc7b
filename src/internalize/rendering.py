"""Turns traces and a curriculum's views into what a model reads. Training and evaluation both call `render`, so that the
removal of units exists once.

A row is written as

    BOS  prompt  [hint]  shown units  answer

and the loss covers the shown units and the answer only. A removed unit is dropped, or a zero or a filler stands for each of its
tokens. Position ids are compacted (they count what is written) or kept (those of the row with its full chain).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from internalize.curricula import View
from internalize.tasks import ANSWER, PADDING, PROMPT, Task, Traces
from internalize.tasks.base import Ints

PositionIds = Literal["compacted", "kept"]

_HINT = -4  # the segment of the hint token, which only a rendered row has


@dataclass(frozen=True)
class Vocabulary:
    """Token ids of a model: PAD, BOS, FILLER, then the task's tokens, then one hint token for each number of shown units.

    Hint tokens are part of every vocabulary, so that models of one task are of one hypothesis class whatever the curriculum.
    """

    names: tuple[str, ...]
    units: int

    PAD = 0  # embedded as zero: also what stands for a removed unit that is zeroed
    BOS = 1
    FILLER = 2
    FIRST_TASK_TOKEN = 3

    @staticmethod
    def of(task: Task) -> "Vocabulary":
        return Vocabulary(task.tokens, task.units)

    @property
    def size(self) -> int:
        return self.FIRST_TASK_TOKEN + len(self.names) + self.units + 1

    def task(self, tokens: Ints) -> Ints:
        """Ids of the task's `tokens`."""
        return tokens + self.FIRST_TASK_TOKEN

    def hint(self, shown: int) -> int:
        """The id of the token that announces `shown` units."""
        return self.FIRST_TASK_TOKEN + len(self.names) + shown

    def text(self, ids: Sequence[int] | Ints) -> list[str]:
        """The names of `ids`."""
        specials = ("PAD", "BOS", "FILLER")
        hints = tuple(f"LEN_{shown}" for shown in range(self.units + 1))
        every = specials + self.names + hints
        return [every[int(token)] for token in ids]


@dataclass(frozen=True)
class Batch:
    """Rows that a model can read.

    tokens:    (rows, columns) ids, padded on the right.
    positions: (rows, columns) position ids.
    target:    (rows, columns) bool: the token is predicted (chain or answer) and counts in the loss.
    answer:    (rows, columns) bool: the token belongs to the answer.
    first:     the first column whose next token is a target in some row; no prediction before it is needed.
    """

    tokens: Ints
    positions: Ints
    target: NDArray[np.bool_]
    answer: NDArray[np.bool_]
    first: int

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: slice) -> "Batch":
        return Batch(self.tokens[rows], self.positions[rows], self.target[rows], self.answer[rows], self.first)


def render(
    traces: Traces,
    views: Sequence[View],
    vocabulary: Vocabulary,
    which: Ints | None = None,
    position_ids: PositionIds = "compacted",
) -> Batch:
    """Write `traces` as `views[which[row]]` shows each row; `which` may be left out when there is one view.

    All views must put the same in place of removed units.
    """
    rows = len(traces)
    which = np.zeros(rows, np.int64) if which is None else which
    keep = np.array([view.keep for view in views], bool).reshape(len(views), -1)
    hints = np.array([vocabulary.PAD if view.hint is None else vocabulary.hint(view.hint) for view in views])

    # The full row, in the order in which it is written.
    hint = hints[which][:, None]
    tokens = np.concatenate([np.full((rows, 1), vocabulary.BOS), hint, vocabulary.task(traces.tokens)], axis=1)
    segment = np.concatenate(
        [np.full((rows, 1), PROMPT), np.where(hint == vocabulary.PAD, PADDING, _HINT), traces.segment], axis=1
    )
    order = np.argsort(
        np.select([segment == PROMPT, segment == _HINT, segment == PADDING], [0, 1, 3], default=2), axis=1, kind="stable"
    )
    tokens, segment = np.take_along_axis(tokens, order, axis=1), np.take_along_axis(segment, order, axis=1)
    positions = np.broadcast_to(np.arange(segment.shape[1]), segment.shape)

    is_unit = segment >= 0
    removed = np.zeros_like(is_unit)
    if keep.shape[1]:
        removed = is_unit & ~np.take_along_axis(keep[which], np.maximum(segment, 0), axis=1)
    target = (is_unit & ~removed) | (segment == ANSWER)
    stand_in = {"drop": None, "zero": vocabulary.PAD, "filler": vocabulary.FILLER}[views[0].removed]
    if stand_in is None:
        written = (segment != PADDING) & ~removed
    else:
        written = segment != PADDING
        tokens = np.where(removed, stand_in, tokens)

    # Close the gaps.
    columns = int(written.sum(axis=1).max())
    order = np.argsort(~written, axis=1, kind="stable")[:, :columns]
    tokens, written, target, segment, positions = (
        np.take_along_axis(array, order, axis=1) for array in (tokens, written, target, segment, positions)
    )
    target &= written
    return Batch(
        tokens=np.where(written, tokens, vocabulary.PAD),
        positions=positions if position_ids == "kept" else np.broadcast_to(np.arange(columns), (rows, columns)),
        target=target,
        answer=target & (segment == ANSWER),
        first=int(target.argmax(axis=1).min()) - 1,
    )
