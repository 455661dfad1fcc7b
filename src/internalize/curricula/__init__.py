"""Curricula and schedules: what is shown at each stage, and when a stage is over. `make(spec)` gives the curriculum of a name.

Their names come in families, one file each; every module here with a `FAMILY` is one, so adding one touches no other file.
"""

from dataclasses import dataclass, fields, replace

from internalize.checking import check_types
from internalize.curricula.baselines import ChainOfThought, EndToEnd
from internalize.curricula.inductive import Inductive
from internalize.curricula.left_right import Left, Right
from internalize.curricula.mixture import Mixture
from internalize.curricula.own import OWN
from internalize.curricula.removal import Curriculum, CurriculumFamily, Removed, View
from internalize.curricula.schedule import Move, Schedule, Standing, end_attempt
from internalize.errors import UserError
from internalize.registry import Registry

__all__ = [
    "FAMILIES",
    "ChainOfThought",
    "Curriculum",
    "CurriculumFamily",
    "EndToEnd",
    "Inductive",
    "Left",
    "Mixture",
    "Move",
    "RemovalConfig",
    "Right",
    "Schedule",
    "Standing",
    "View",
    "end_attempt",
    "make",
]

FAMILIES = Registry(__name__, "curriculum", OWN)


@dataclass(frozen=True)
class RemovalConfig:
    """How units are removed, whatever the curriculum."""

    hint: bool = False
    """a token in front of the chain names the number of units shown (the mixture always has it)"""
    removed: Removed = "drop"
    """what stands in for a removed unit: nothing, or a zero or a filler for each of its tokens"""
    smoothing: float = 0.0
    """lambda of Deng et al. 2024: a row is o stages ahead with probability ~ exp(-lambda o); 0: off"""
    replay: float = 0.0
    """share of rows that show one of the earlier stages, so that the chain is not forgotten (ours)"""

    def __post_init__(self) -> None:
        check_types(self, "removal.")
        if not self.smoothing >= 0:
            raise UserError(f"removal.smoothing is {self.smoothing}; it must be at least 0.")
        if not 0 <= self.replay < 1:
            raise UserError(f"removal.replay is {self.replay}; it must be at least 0 and below 1.")


def make(spec: str, options: RemovalConfig | None = None) -> Curriculum:
    """The curriculum that `spec` names (see `FAMILIES.forms`), with `options` set. Raises `UserError`."""
    options, curriculum = options or RemovalConfig(), FAMILIES.find(spec).make(spec)
    for entry in fields(options):
        value = getattr(options, entry.name)
        if value == entry.default:
            continue
        changed = replace(curriculum, **{entry.name: value})
        if all(_shows(changed, units) == _shows(curriculum, units) for units in (1, 2, 5, 14)):
            raise UserError(
                f'removal.{entry.name} is {value}, which changes nothing that "{spec}" shows; leave it out, or take another '
                "curriculum."
            )
        curriculum = changed
    return curriculum


def _shows(curriculum: Curriculum, units: int) -> list[object]:
    """What each stage shows of a chain of `units` units, and to which share of the rows."""
    shown: list[object] = []
    for stage in range(curriculum.stages(units)):
        views = (*((share, view) for share, view in curriculum.mixture(units, stage)), (0.0, curriculum.target(units, stage)))
        # What stands in for removed units is seen only where some are removed.
        shown.append([(share, view.keep, view.hint, "" if all(view.keep) else view.removed) for share, view in views])
    return shown
