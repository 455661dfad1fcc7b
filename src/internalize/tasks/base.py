"""What a task is: something that samples traces. A trace is a prompt, the units a curriculum may take away, and an answer.

A `Traces` batch stores all of it as one array of tokens, with one segment number for each token: which unit it
belongs to, or that it is prompt, answer or padding. Units may have any number of tokens, and rows any number of units.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from internalize.registry import Family

Part = Literal["train", "validation", "test"]
Ints = NDArray[np.int64]

PROMPT, ANSWER, PADDING = -1, -2, -3  # segments; a number >= 0 is the index of a unit


NOTHING = -1  # in place of a token, where a row has none


def gather(tokens: Ints, flags: NDArray[np.bool_]) -> Ints:
    """The flagged tokens of each row, (rows, most in a row), padded with `NOTHING` on the right."""
    counts = flags.sum(axis=1)
    order = np.argsort(~flags, axis=1, kind="stable")[:, : int(counts.max(initial=0))]
    return np.where(np.arange(order.shape[1]) < counts[:, None], np.take_along_axis(tokens, order, axis=1), NOTHING)


def same_width(arrays: Sequence[Ints], fill: int = NOTHING) -> list[Ints]:
    """(rows, columns) arrays with `fill` on the right of those that have fewer columns than the widest."""
    arrays = [array if array.ndim == 2 else array.reshape(len(array), -1) for array in arrays]
    widest = max(array.shape[1] for array in arrays)
    return [np.pad(array, ((0, 0), (0, widest - array.shape[1])), constant_values=fill) for array in arrays]


class Trace(NamedTuple):
    """One example, as token ids of its task."""

    prompt: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]
    answer: tuple[int, ...]


@dataclass(frozen=True)
class Traces:
    """A batch of traces.

    tokens:  (rows, columns) token ids of the task: prompt, units and answer in the order in which they are written.
    segment: (rows, columns) PROMPT, ANSWER, PADDING or the index of the unit that the token belongs to.
    """

    tokens: Ints
    segment: Ints

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: slice | Ints) -> "Traces":
        return Traces(self.tokens[rows], self.segment[rows])

    @property
    def written(self) -> NDArray[np.bool_]:
        """(rows, columns): which tokens belong to the chain or the answer."""
        written: NDArray[np.bool_] = (self.segment >= 0) | (self.segment == ANSWER)
        return written

    def prompt(self) -> Ints:
        """(rows, prompt tokens), shorter ones padded with `NOTHING`."""
        return gather(self.tokens, self.segment == PROMPT)

    def answer(self) -> Ints:
        """(rows, answer tokens), shorter ones padded with `NOTHING`."""
        return gather(self.tokens, self.segment == ANSWER)

    def row(self, index: int) -> Trace:
        """One row as a `Trace`."""
        tokens, segment = self.tokens[index], self.segment[index]

        def part(which: int) -> tuple[int, ...]:
            return tuple(int(token) for token in tokens[segment == which])

        units = tuple(part(unit) for unit in range(int(segment.max()) + 1))
        return Trace(part(PROMPT), units, part(ANSWER))

    @staticmethod
    def concatenate(batches: "Sequence[Traces]") -> "Traces":
        """One batch from several, padded to the longest."""
        tokens, segment = [b.tokens for b in batches], [b.segment for b in batches]
        return Traces(np.concatenate(same_width(tokens, 0)), np.concatenate(same_width(segment, PADDING)))

    @staticmethod
    def of(rows: Sequence[Trace]) -> "Traces":
        """A batch from single traces of any lengths, padded to the longest."""
        tokens, segments = [], []
        for row in rows:
            pieces = [(PROMPT, row.prompt), *enumerate(row.units), (ANSWER, row.answer)]
            tokens.append([token for _, piece in pieces for token in piece])
            segments.append([which for which, piece in pieces for _ in piece])
        shape = (len(rows), max(map(len, tokens)))
        batch = Traces(np.zeros(shape, np.int64), np.full(shape, PADDING, np.int64))
        for index, (row_tokens, row_segment) in enumerate(zip(tokens, segments, strict=True)):
            batch.tokens[index, : len(row_tokens)] = row_tokens
            batch.segment[index, : len(row_segment)] = row_segment
        return batch


class Judge(Protocol):
    """What says which answers are right: all that the certificate needs to know of a task."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The name of each token id."""
        ...

    @property
    def inputs(self) -> int:
        """The number of possible inputs."""
        ...

    def every_input(self) -> Ints:
        """All possible inputs, for tasks that have few: (inputs, columns)."""
        ...

    def trace(self, inputs: Ints) -> Traces:
        """The traces of `inputs` (rows, columns)."""
        ...


class Task(Judge, Protocol):
    """What a curriculum can be applied to. Sampling takes the distribution of inputs as an argument."""

    @property
    def name(self) -> str: ...
    @property
    def units(self) -> int:
        """The number of units in a full chain."""
        ...

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The symbols of an input, by name."""
        ...

    @property
    def longest(self) -> int:
        """Tokens in a full trace."""
        ...

    @property
    def chance(self) -> float:
        """The accuracy of a uniform guess at the answer."""
        ...

    def ood(self) -> tuple[str, ...]:
        """The distributions that accuracy out of distribution is measured on; the first one is the headline."""
        ...

    def battery(self) -> tuple[str, ...]:
        """A longer list of such distributions, which together probe each way of leaving the training inputs."""
        ...

    def check(self, distribution: str) -> None:
        """Raise `UserError` unless `distribution` names one of this task's."""
        ...

    def sample(self, distribution: str, count: int, rng: np.random.Generator, part: Part) -> Traces:
        """`count` traces whose inputs follow `distribution`, restricted to the inputs of one part of the split."""
        ...

    def sample_inputs(self, distribution: str, count: int, rng: np.random.Generator, part: Part) -> Ints:
        """As `sample`, the inputs alone: (rows, columns)."""
        ...

    def encode(self, text: str) -> Traces:
        """The trace of one input that a user typed."""
        ...


@dataclass(frozen=True)
class TaskFamily(Family):
    """Tasks whose names have a form in common. A module of this folder that has a `FAMILY` adds it to those built in."""

    make: Callable[[str, int], Task]  # the task of a name, over inputs of so many symbols; raises `UserError`
    with_start: Callable[[str, int], Task] | None = None  # the same, with the start state drawn for each sequence
    inline: Callable[[str], str] = str  # a name that says all, where names are of files; raises `UserError`
