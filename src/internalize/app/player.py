"""What the playground asks of whatever it plays with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

SHOWN = 20  # failures at most


@dataclass(frozen=True)
class Piece:
    """A token as it was written. `right` is None where nobody knows what should stand there."""

    text: str
    answer: bool
    right: bool | None


@dataclass(frozen=True)
class Verdict:
    """The answer that the pieces hold, whether it is right (None: there is no answer; nobody knows), and the seconds that the
    model took.
    """

    answer: str | None
    truth: str | None
    right: bool | None
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Place:
    """A place of the slider: a model that was trained to write so many units, and its accuracy on each split where measured."""

    shown: int
    stage: int
    accuracy: Mapping[str, float]


@dataclass(frozen=True)
class Failures:
    """Of `asked` test inputs, `wrong` were answered wrongly; the first different ones as (input, right answer, answer)."""

    asked: int
    wrong: int
    shown: Sequence[tuple[str, str, str]]


class Player(Protocol):
    """A run, or a model, that can be asked. All methods raise `UserError` for what a user typed."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str:
        """A line for people."""
        ...

    @property
    def unit(self) -> str:
        """What the slider counts."""
        ...

    @property
    def places(self) -> Sequence[Place]:
        """From the longest chain to the shortest."""
        ...

    @property
    def splits(self) -> Sequence[str]:
        """Distributions of test inputs, or test files: in distribution first."""
        ...

    def question(self, split: str, rng: np.random.Generator) -> str:
        """A test input."""
        ...

    def write(self, text: str, place: Place) -> Iterator[Piece | Verdict]:
        """What the model of a place writes for an input, token by token, and last the verdict."""
        ...

    def failures(self, split: str, place: Place) -> Failures:
        """Test inputs of a split on which the model of a place is wrong."""
        ...
