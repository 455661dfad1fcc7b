"""What all tasks share whose input is a sequence of symbols from one alphabet: distributions and held-out sampling."""

from abc import ABC, abstractmethod
from math import comb

import numpy as np

from internalize.errors import UserError
from internalize.tasks.base import Ints, Part, Traces
from internalize.tasks.distributions import Sampler, sampler
from internalize.tasks.splits import sample_part

ENOUGH = 200  # sequences of a kind, so that some are held out
FEW = 8  # symbols up to which the battery looks at each of them


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
    def units(self) -> int:
        """The number of units in a full chain; unless a subclass says it, that of one trace."""
        return int(self._one().segment.max()) + 1

    @property
    def longest(self) -> int:
        """Tokens in a full trace; unless a subclass says it, those of one trace."""
        return int(self._one().tokens.shape[1])

    def _one(self) -> Traces:
        return self.trace(np.zeros((1, self.length), np.int64))

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
        return (*always, *(name for name in ("periodic", "blocks:4") if self._enough(name)))

    def battery(self) -> tuple[str, ...]:
        """The long list of splits out of distribution (ours): each symbol more often and rarely, order, repetition, counts.

        Of a large alphabet, the first symbol, the second, the middle and the last stand for all.
        """
        n, top = len(self.alphabet), self.length - self.length // 5
        chosen = self.alphabet if n <= FEW else tuple(self.alphabet[place] for place in (0, 1, n // 2, n - 1))
        biased = [f"biased:{symbol}:{p}" for p in (0.6, 0.8, 0.95) for symbol in chosen]
        rare = [f"biased:{symbol}:0.02" for symbol in chosen] if n > 2 else []
        others = ["sticky:0.8", "sticky:0.95", "blocks:2", "blocks:4", "periodic", "balanced", "dirichlet:0.5", "dirichlet:0.1"]
        counts = [f"counts:{symbol}:{top}:{self.length - 1}" for symbol in chosen]
        return (*biased, *rare, "constant", *(name for name in others + counts if self._enough(name)))

    def _enough(self, distribution: str) -> bool:
        """Whether there are so many of its sequences that the split by hash holds some out."""
        n, length = len(self.alphabet), self.length
        kind, *numbers = distribution.split(":")
        many = ENOUGH
        if kind == "counts":
            many = sum(comb(length, times) * (n - 1) ** (length - times) for times in range(int(numbers[1]), length))
        elif kind == "blocks":
            many = comb(length - 1, int(numbers[0]) - 1) * n ** int(numbers[0])
        elif kind == "periodic":
            many = n ** (length // 2)
        elif kind == "balanced":
            many = comb(length, -(-length // n))
        return bool(many >= ENOUGH)

    def check(self, distribution: str) -> None:
        """Raise `UserError` unless `distribution` names a distribution over this alphabet."""
        sampler(distribution, self.alphabet)

    def sample(self, distribution: str, count: int, rng: np.random.Generator, part: Part) -> Traces:
        """`count` traces whose inputs follow `distribution`, restricted to one part of the split."""
        return self.trace(self.sample_inputs(distribution, count, rng, part))

    def sample_inputs(self, distribution: str, count: int, rng: np.random.Generator, part: Part) -> Ints:
        """`count` inputs that follow `distribution`, restricted to one part of the split: (rows, lead + length)."""
        draw = sampler(distribution, self.alphabet)
        what = f"{self.name}, {self.length} symbols, {distribution}"
        return sample_part(lambda n: self.draw(draw, n, rng), count, part, what, self.lead)

    def every_input(self) -> Ints:
        """All possible inputs, in order: (inputs, lead + length)."""
        sizes = [len(names) for names in self.words()]
        return np.indices(sizes).reshape(len(sizes), -1).T

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
