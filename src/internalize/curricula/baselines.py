"""What curricula are compared with, one stage each: the answer alone (e2e, end to end), or the full chain before it (cot)."""

from dataclasses import dataclass

import numpy as np

from internalize.curricula.removal import Curriculum, Flags, family


@dataclass(frozen=True)
class EndToEnd(Curriculum):
    """The answer alone."""

    def stages(self, units: int) -> int:
        return 1

    def keep(self, units: int, stage: int) -> Flags:
        return np.zeros(units, bool)


@dataclass(frozen=True)
class ChainOfThought(Curriculum):
    """The full chain, then the answer."""

    def stages(self, units: int) -> int:
        return 1

    def keep(self, units: int, stage: int) -> Flags:
        return np.ones(units, bool)


FAMILY = family("e2e, cot", {"e2e": EndToEnd(), "cot": ChainOfThought()})
