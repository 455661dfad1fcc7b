"""Sparse parity: the XOR of k unknown bits among d (paper, sections 4 and 5). Units: the partial parities z_1..z_(k-1).

`parity:10` with 30 steps is the parity of 10 of 30 bits. The support is drawn once from (d, k), the same for every seed.
"""

from dataclasses import dataclass

import numpy as np

from internalize.errors import UserError
from internalize.seeding import numpy_stream
from internalize.tasks.base import ANSWER, PROMPT, Ints, TaskFamily, Traces
from internalize.tasks.sequences import SequenceTask


@dataclass(frozen=True)
class SparseParity(SequenceTask):
    """The parity of `size` of `bits` bits, with z_t the parity of the first t support bits."""

    bits: int
    size: int

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.bits:
            raise UserError(f"parity:{self.size} of {self.bits} bits: there must be between 1 and {self.bits} support bits.")

    @property
    def support(self) -> Ints:
        """The support's positions, in order: (size,)."""
        return np.sort(numpy_stream(0, f"parity {self.bits} {self.size}").permutation(self.bits)[: self.size])

    @property
    def name(self) -> str:
        """The task's name."""
        return f"parity:{self.size}"

    @property
    def tokens(self) -> tuple[str, ...]:
        """The two bits."""
        return ("0", "1")

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The two bits."""
        return self.tokens

    @property
    def length(self) -> int:
        """The number of bits."""
        return self.bits

    @property
    def units(self) -> int:
        """The number of partial parities before the last."""
        return self.size - 1

    @property
    def longest(self) -> int:
        """Tokens in a full trace."""
        return self.bits + self.size

    @property
    def chance(self) -> float:
        """The accuracy of a guess."""
        return 0.5

    def trace(self, inputs: Ints) -> Traces:
        """The traces of `inputs` (rows, bits)."""
        tokens = np.concatenate([inputs, inputs[:, self.support].cumsum(axis=1) % 2], axis=1)
        segment = [PROMPT] * self.bits + [*range(self.units), ANSWER]
        return Traces(tokens, np.broadcast_to(np.array(segment), tokens.shape))


def _make(name: str, bits: int) -> SparseParity:
    size = name.partition(":")[2]
    if not (size.isascii() and size.isdigit()):
        raise UserError(f'task "{name}": give the number of support bits, as in parity:10.')
    return SparseParity(bits, int(size))


FAMILY = TaskFamily("parity:10 (sparse parity)", lambda name: name.partition(":")[0] == "parity", _make)
