"""Curricula: which units of the chain of thought are shown at each stage.

A curriculum is a pure function of (number of units, stage). It knows no model, no token and no optimizer.
Stage 0 shows the full chain, the last stage shows none of it:

    e2e     one stage, no chain (end to end)
    cot     one stage, the full chain
    left    removes the earliest states first: stage s shows q_(s+1)..q_T (paper)
    right   removes from the end of the chain: stage s shows q_1..q_(T-1-s) and q_T (paper)
    mixture one stage that mixes all of left's stages and names each by an answer-length hint (paper; see mixture.py)

To write your own, subclass `Curriculum` and give `stages` and `keep`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class View:
    """What one row shows: a keep-flag for each unit, and the answer-length hint, if the row carries one."""

    keep: tuple[bool, ...]
    hint: int | None = None

    @property
    def shown(self) -> int:
        """The number of units shown."""
        return sum(self.keep)


@dataclass(frozen=True)
class Curriculum:
    """The base of all curricula. `hint` says whether each row names the number of units that it shows."""

    hint: bool = False

    def stages(self, units: int) -> int:
        """The number of stages for a chain of `units` units."""
        raise NotImplementedError

    def keep(self, units: int, stage: int) -> NDArray[np.bool_]:
        """Which units stage `stage` shows: (units,) bool."""
        raise NotImplementedError

    def mixture(self, units: int, stage: int) -> tuple[tuple[float, View], ...]:
        """The views of a stage with the share of rows that each is given; one view unless a subclass mixes."""
        return ((1.0, self.view(self.keep(units, stage))),)

    def target(self, units: int, stage: int) -> View:
        """The view that a stage is judged by: the one that shows least."""
        return min((view for _, view in self.mixture(units, stage)), key=lambda view: view.shown)

    def full(self, units: int) -> View:
        """The view with the whole chain (the slow system)."""
        return self.view(np.ones(units, bool))

    def direct(self, units: int) -> View:
        """The view without any of it (the fast system)."""
        return self.view(np.zeros(units, bool))

    def view(self, keep: NDArray[np.bool_]) -> View:
        flags = tuple(bool(flag) for flag in keep)
        return View(flags, sum(flags) if self.hint else None)


@dataclass(frozen=True)
class EndToEnd(Curriculum):
    """The answer alone."""

    def stages(self, units: int) -> int:
        return 1

    def keep(self, units: int, stage: int) -> NDArray[np.bool_]:
        return np.zeros(units, bool)


@dataclass(frozen=True)
class ChainOfThought(Curriculum):
    """The full chain, then the answer."""

    def stages(self, units: int) -> int:
        return 1

    def keep(self, units: int, stage: int) -> NDArray[np.bool_]:
        return np.ones(units, bool)


@dataclass(frozen=True)
class _Stepwise(Curriculum):
    remove: int = 1  # units removed at each stage

    def stages(self, units: int) -> int:
        return -(-units // self.remove) + 1


@dataclass(frozen=True)
class Left(_Stepwise):
    """Removes the earliest units first."""

    def keep(self, units: int, stage: int) -> NDArray[np.bool_]:
        return np.arange(units) >= stage * self.remove


@dataclass(frozen=True)
class Right(_Stepwise):
    """Removes the latest units first (the answer always stays)."""

    def keep(self, units: int, stage: int) -> NDArray[np.bool_]:
        return np.arange(units) < units - stage * self.remove
