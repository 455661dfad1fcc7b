"""One mixture distribution in place of a curriculum (paper, sections 5.2 and E.1).

Every row shows one of the stages of the left curriculum, and a hint token in front of the chain names its length, so one
model learns to answer with or without the chain. Equal shares of all lengths are our choice.
"""

from dataclasses import dataclass

import numpy as np

from internalize.curricula.left_right import Left
from internalize.curricula.removal import Curriculum, Flags, View, family


@dataclass(frozen=True)
class Mixture(Curriculum):
    """All chain lengths at once, each named by its hint."""

    hint: bool = True

    def stages(self, units: int) -> int:
        return 1

    def keep(self, units: int, stage: int) -> Flags:
        return np.zeros(units, bool)

    def mixture(self, units: int, stage: int) -> tuple[tuple[float, View], ...]:
        left = Left()
        lengths = left.stages(units)
        return tuple((1 / lengths, self.view(left.keep(units, step))) for step in range(lengths))

    def judged(self, units: int, stage: int) -> tuple[View, ...]:
        return tuple(view for _, view in self.mixture(units, stage))


FAMILY = family("mixture", {"mixture": Mixture()})
