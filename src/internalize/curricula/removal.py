"""Curricula: which units of the chain of thought are shown at each stage.

A curriculum is a pure function of (number of units, stage). It knows no model, no token and no optimizer.
Stage 0 shows the full chain, the last stage shows none of it.

On top of any of them: an answer-length hint, something in place of removed units, smoothing, and replay of earlier stages.

To write your own, subclass `Curriculum` and give `stages` and `keep`. Each curriculum that is built in has a file of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from internalize.registry import Family

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
class CurriculumFamily(Family):
    """Curricula whose names have a form in common. A module of this folder that has a `FAMILY` adds it to those built in."""

    make: Callable[[str], Curriculum]  # the curriculum of a name; raises `UserError`


def family(forms: str, curricula: Mapping[str, Curriculum]) -> CurriculumFamily:
    """A family of a few names."""
    return CurriculumFamily(forms, curricula.__contains__, curricula.__getitem__)
