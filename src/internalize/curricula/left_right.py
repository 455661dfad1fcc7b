"""Curricula that remove a few units more at each stage (paper).

left removes the earliest states first: stage s shows q_(s+1)..q_T. right removes from the end of the chain: stage s shows
q_1..q_(T-1-s) and q_T. "left:2" removes two units at each stage, "left:25%" a quarter.
"""

import re
from dataclasses import dataclass

import numpy as np

from internalize.curricula.removal import Curriculum, CurriculumFamily, Flags
from internalize.errors import UserError


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


def _make(spec: str) -> Curriculum:
    name, _, amount = spec.partition(":")
    amount = amount if ":" in spec else "1"
    number, percent = amount.removesuffix("%"), amount.endswith("%")
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= (100 if percent else 10**6)):
        raise UserError(f'curriculum "{spec}": "{amount}" must be a number of units, at least 1, or 1% to 100%.')
    return (Left if name == "left" else Right)(remove=int(number), percent=percent)


FAMILY = CurriculumFamily(
    "left, left:2 (two units at a time), left:25% (a quarter of them), left:100% (all at once), right, right:2, right:25%",
    lambda spec: re.fullmatch("(left|right)(:[^:]*)?", spec) is not None,
    _make,
)
