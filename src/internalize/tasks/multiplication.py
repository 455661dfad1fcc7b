"""Multiplication of two N-digit numbers, digits least significant first, with the chain of Deng et al. 2024.

`multiply` with 3 steps is 3x3-digit multiplication. 365 * 247 is written

    5 6 3 * 7 4 2 || 5 5 5 2 + 0 0 6 4 1 ( 5 5 1 7 1 ) + 0 0 0 3 7 0 #### 5 5 1 0 9 0

The chain has the partial products of the first number with each digit of the second, shifted, and in brackets the running
sums. A unit is one token. The most significant digit of a number is never 0: where one is drawn, another digit is.
"""

from dataclasses import dataclass

import numpy as np

from internalize.errors import UserError
from internalize.tasks.base import ANSWER, PROMPT, Ints, TaskFamily, Traces
from internalize.tasks.distributions import Sampler
from internalize.tasks.sequences import SequenceTask

TIMES, PLUS, OPEN, CLOSE = 10, 11, 12, 13
MOST_DIGITS = 9  # the product then fits in 64 bits


@dataclass(frozen=True)
class Multiplication(SequenceTask):
    """The product of two numbers of `digits` digits."""

    digits: int

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise UserError(f"multiply takes 1 to {MOST_DIGITS} digits; steps is {self.digits}.")

    @property
    def name(self) -> str:
        """The task's name."""
        return "multiply"

    @property
    def tokens(self) -> tuple[str, ...]:
        """Digits and signs."""
        return (*"0123456789", "*", "+", "(", ")")

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The ten digits."""
        return tuple("0123456789")

    @property
    def length(self) -> int:
        """The digits of both numbers."""
        return 2 * self.digits

    @property
    def inputs(self) -> int:
        """The number of pairs."""
        return int((9 * 10 ** (self.digits - 1)) ** 2)

    @property
    def units(self) -> int:
        """Tokens of the chain."""
        return self.longest - 4 * self.digits - 1

    @property
    def longest(self) -> int:
        """Tokens in a full trace."""
        return int(self.trace(np.ones((1, 2 * self.digits), np.int64)).tokens.shape[1])

    @property
    def chance(self) -> float:
        """The accuracy of a guess at every digit of the product."""
        return float(0.1 ** (2 * self.digits))

    def draw(self, draw: Sampler, count: int, rng: np.random.Generator) -> Ints:
        """`count` pairs of numbers: (rows, 2 digits)."""
        inputs = super().draw(draw, count, rng)
        for last in (self.digits - 1, 2 * self.digits - 1):
            inputs[:, last] = np.where(inputs[:, last] == 0, rng.integers(1, 10, size=count), inputs[:, last])
        return inputs

    def every_input(self) -> Ints:
        """All pairs of numbers: (pairs, 2 digits)."""
        pairs = super().every_input()
        wanted: Ints = pairs[(pairs[:, [self.digits - 1, 2 * self.digits - 1]] != 0).all(axis=1)]
        return wanted

    def trace(self, inputs: Ints) -> Traces:
        """The traces of `inputs` (rows, 2 digits): the digits of both numbers, least significant first."""
        n, rows = self.digits, len(inputs)
        place = 10 ** np.arange(n)
        first, second = inputs[:, :n], inputs[:, n:]
        number, total = first @ place, np.zeros(rows, np.int64)

        def sign(token: int) -> Ints:
            return np.full((rows, 1), token)

        chain: list[Ints] = []
        for step in range(n):
            product = number * second[:, step] * 10**step
            total = total + product
            chain += ([sign(PLUS)] if step else []) + [_digits(product, n + 1 + step)]
            if 0 < step < n - 1:
                chain += [sign(OPEN), _digits(total, n + 1 + step), sign(CLOSE)]
        units = sum(piece.shape[1] for piece in chain)
        tokens = np.concatenate([first, sign(TIMES), second, *chain, _digits(total, 2 * n)], axis=1)
        segment = [PROMPT] * (2 * n + 1) + [*range(units)] + [ANSWER] * (2 * n)
        return Traces(tokens, np.broadcast_to(np.array(segment), tokens.shape))

    def encode(self, text: str) -> Traces:
        """The trace of two numbers of N digits, least significant first, such as "5 6 * 7 4"."""
        traces = super().encode(text.replace("*", " "))
        if 0 in traces.tokens[0, [self.digits - 1, 2 * self.digits]]:
            raise UserError("the last digit of each number is its most significant one and cannot be 0.")
        return traces


def _digits(numbers: Ints, count: int) -> Ints:
    """(rows, count) decimal digits, least significant first."""
    return numbers[:, None] // 10 ** np.arange(count) % 10


FAMILY = TaskFamily("multiply", lambda name: name == "multiply", lambda _, digits: Multiplication(digits))
