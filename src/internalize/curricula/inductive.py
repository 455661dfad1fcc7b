"""Keeps every k-th state, with a stride that grows from stage to stage (paper; our reading)."""

from dataclasses import dataclass

import numpy as np

from internalize.curricula.removal import Curriculum, Flags, family


@dataclass(frozen=True)
class Inductive(Curriculum):
    """Keeps every k-th state, with a stride k that grows from stage to stage until none is left.

    The paper calls this curriculum inductive; its exact definition is not known to us. Strides double (1, 2, 4, ...) or grow by
    one (1, 2, 3, ...): each kept state must then be computed from the kept one before it and the k symbols in between.
    """

    doubling: bool = True

    def stages(self, units: int) -> int:
        return units.bit_length() + 1 if self.doubling else units + 1

    def keep(self, units: int, stage: int) -> Flags:
        stride = 2**stage if self.doubling else stage + 1
        kept: Flags = np.arange(1, units + 1) % stride == 0
        return kept


FAMILY = family(
    "inductive, inductive:stepwise",
    {"inductive": Inductive(), "inductive:doubling": Inductive(), "inductive:stepwise": Inductive(doubling=False)},
)
