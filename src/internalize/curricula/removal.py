"""Curricula: which units of the chain of thought are shown at each stage.

A curriculum is a pure function of (number of units, stage). It knows no model, no token and no optimizer.
Stage 0 shows the full chain, the last stage shows none of it:

    e2e        one stage, no chain (end to end)
    cot        one stage, the full chain
    left       removes the earliest states first: stage s shows q_(s+1)..q_T (paper)
    right      removes from the end of the chain: stage s shows q_1..q_(T-1-s) and q_T (paper)
    inductive  keeps every k-th state, with a stride that grows from stage to stage (paper; our reading)
    mixture    one stage that mixes all of left's stages, each named by an answer-length hint (paper; see mixture.py)

On top of any of them: an answer-length hint, something in place of removed units, smoothing, and replay of earlier stages.

To write your own, subclass `Curriculum` and give `stages` and `keep`.
"""

from dataclasses import dataclass
from math import exp
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


Removed = Literal["drop", "zero", "filler"]


@dataclass(frozen=True)
class View:
    """What one row shows: a keep-flag for each unit, the answer-length hint, if the row carries one, and what stands in for
    a removed unit: nothing, or a zero or a filler for each of its tokens.
    """

    keep: tuple[bool, ...]
    hint: int | None = None
    removed: Removed = "drop"

    @property
    def shown(self) -> int:
        """The number of units shown."""
        return sum(self.keep)


@dataclass(frozen=True)
class Curriculum:
    """The base of all curricula: subclasses say which units each stage keeps."""

    hint: bool = False  # each row names the number of units that it shows
    removed: Removed = "drop"  # what stands in for a removed unit
    smoothing: float = 0.0  # lambda: rows are o stages ahead with probability ~ exp(-lambda o) (Deng et al. 2024); 0: off
    replay: float = 0.0  # share of rows that show one of the earlier stages (ours)

    def stages(self, units: int) -> int:
        """The number of stages for a chain of `units` units."""
        raise NotImplementedError

    def keep(self, units: int, stage: int) -> Flags:
        """Which units stage `stage` shows: (units,) bool."""
        raise NotImplementedError

    def mixture(self, units: int, stage: int) -> tuple[tuple[float, View], ...]:
        """The views of a stage, with the share of rows that each is given."""
        shares = {stage: 1.0}
        if self.smoothing:
            ahead = range(self.stages(units) - stage)
            total = sum(exp(-self.smoothing * o) for o in ahead)
            shares = {stage + o: exp(-self.smoothing * o) / total for o in ahead}
        if self.replay and stage:
            shares = {ahead: share * (1 - self.replay) for ahead, share in shares.items()}
            shares |= dict.fromkeys(range(stage), self.replay / stage)
        return tuple((share, self.view(self.keep(units, of))) for of, share in shares.items())

    def target(self, units: int, stage: int) -> View:
        """The view that a stage is judged by."""
        return self.view(self.keep(units, stage))

    def judged(self, units: int, stage: int) -> tuple[View, ...]:
        """The views that a stage's model is to answer in: one for each point on the frontier of accuracy against length."""
        return (self.target(units, stage),)

    def full(self, units: int) -> View:
        """The view with the whole chain (the slow system)."""
        return self.view(np.ones(units, bool))

    def direct(self, units: int) -> View:
        """The view without any of it (the fast system)."""
        return self.view(np.zeros(units, bool))

    def view(self, keep: Flags) -> View:
        """The view that keeps the flagged units."""
        flags = tuple(bool(flag) for flag in keep)
        return View(flags, sum(flags) if self.hint else None, self.removed)


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


@dataclass(frozen=True)
class _Stepwise(Curriculum):
    remove: int = 1  # units removed at each stage; with `percent`, per cent of the chain
    percent: bool = False

    def stages(self, units: int) -> int:
        whole = 100 if self.percent else units
        return -(-whole // self.remove) + 1 if units else 1

    def gone(self, units: int, stage: int) -> int:
        """The number of units removed at a stage."""
        return min(units, -(-units * stage * self.remove // 100) if self.percent else stage * self.remove)


@dataclass(frozen=True)
class Left(_Stepwise):
    """Removes the earliest units first."""

    def keep(self, units: int, stage: int) -> Flags:
        return np.arange(units) >= self.gone(units, stage)


@dataclass(frozen=True)
class Right(_Stepwise):
    """Removes the latest units first (the answer always stays)."""

    def keep(self, units: int, stage: int) -> Flags:
        return np.arange(units) < units - self.gone(units, stage)


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
