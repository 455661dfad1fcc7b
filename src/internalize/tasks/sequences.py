"""What all tasks share whose input is a sequence of symbols from one alphabet: distributions and held-out sampling."""

from abc import ABC, abstractmethod
from math import comb

import numpy as np

from internalize.errors import UserError
from internalize.tasks.base import Ints, Part, Traces
from internalize.tasks.distributions import Sampler, sampler
from internalize.tasks.splits import sample_part

ENOUGH = 200  # sequences of a kind, so that some are held out


class SequenceTask(ABC):
    """A task whose input is `length` symbols of an `alphabet`. Subclasses say what is computed from it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The task's name."""

    @property
    @abstractmethod
    def tokens(self) -> tuple[str, ...]:
        """The name of each token id."""

    @property
    @abstractmethod
    def alphabet(self) -> tuple[str, ...]:
        """The input symbols."""

    @property
    @abstractmethod
    def length(self) -> int:
        """The number of input symbols."""

    @property
    @abstractmethod
    def units(self) -> int:
        """The number of units in a full chain."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """Tokens in a full trace."""

    @property
    @abstractmethod
    def chance(self) -> float:
        """The accuracy of a uniform guess at the answer."""

    @abstractmethod
    def trace(self, inputs: Ints) -> Traces:
        """The traces of `inputs` (rows, length), symbol indices."""

    @property
    def inputs(self) -> int:
        """The number of possible inputs."""
        return int(len(self.alphabet) ** self.length)

    def ood(self) -> tuple[str, ...]:
        """The default splits out of distribution; the first is the headline (paper), the others are ours."""
        first, second = self.alphabet[:2]
        always = f"biased:{second}:0.8", f"biased:{first}:0.8", f"biased:{second}:0.95", "sticky:0.8", "constant"
        # Where only a few sequences are periodic or blocks, the hash may hold none of them out.
        n = len(self.alphabet)
        enough = {"periodic": n ** (self.length // 2) >= ENOUGH, "blocks:4": comb(self.length - 1, 3) * n**4 >= ENOUGH}
        return (*always, *(name for name, there in enough.items() if there))

    def check(self, distribution: str) -> None:
        """Raise `UserError` unless `distribution` names a distribution over this alphabet."""
        sampler(distribution, self.alphabet)

    def sample(self, distribution: str, count: int, rng: np.random.Generator, part: Part) -> Traces:
        """`count` traces whose inputs follow `distribution`, restricted to one part of the split."""
        draw = sampler(distribution, self.alphabet)
        what = f"{self.name}, {self.length} symbols, {distribution}"
        return self.trace(sample_part(lambda n: self.draw(draw, n, rng), count, part, what, self.lead))

    @property
    def lead(self) -> int:
        """The number of columns of an input that stand before its symbols."""
        return 0

    def draw(self, draw: Sampler, count: int, rng: np.random.Generator) -> Ints:
        """`count` inputs: (rows, lead + length)."""
        return draw(len(self.alphabet), self.length, count, rng)

    def encode(self, text: str) -> Traces:
        """The trace of an input that a user typed: words separated by spaces or commas, or one word of one-letter symbols."""
        known = self.words()
        words = text.replace(",", " ").split()
        if len(words) == 1 and all(len(name) == 1 for name in self.tokens):
            words = list(words[0])
        if len(words) != len(known):
            lead = "a start state and " if self.lead else ""
            raise UserError(f"the input has {len(words)} words; {self.name} takes {lead}{self.length} symbols here.")
        for place, (word, names) in enumerate(zip(words, known, strict=True), 1):
            if word not in names:
                raise UserError(f'word {place} of the input is "{word}"; it must be one of {", ".join(names)}.')
        return self.trace(np.array([[names.index(word) for word, names in zip(words, known, strict=True)]]))

    def words(self) -> list[tuple[str, ...]]:
        """What each word of a typed input may be."""
        return [self.alphabet] * self.length
