"""Curricula and schedules: what is shown at each stage, and when a stage is over."""

from dataclasses import dataclass, replace

from internalize.checking import check_types
from internalize.curricula.mixture import Mixture
from internalize.curricula.own import load, pin
from internalize.curricula.removal import ChainOfThought, Curriculum, EndToEnd, Inductive, Left, Removed, Right, View
from internalize.curricula.schedule import Schedule
from internalize.errors import UserError

__all__ = [
    "ChainOfThought",
    "Curriculum",
    "EndToEnd",
    "Inductive",
    "Left",
    "Mixture",
    "RemovalConfig",
    "Right",
    "Schedule",
    "View",
    "make",
    "pin",
]

FORMS = (
    "e2e, cot, left, left:2, left:25%, right, right:2, right:25%, inductive, inductive:stepwise, mixture, "
    "and mine.py:MyCurriculum for a class of your own"
)


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
    """The curriculum that `spec` names (see `FORMS`). "left:2" removes two units at each stage, "left:25%" a quarter."""
    options = options or RemovalConfig()
    curriculum = _base(spec)
    return replace(
        curriculum,
        hint=options.hint or curriculum.hint,
        removed=options.removed,
        smoothing=options.smoothing,
        replay=options.replay,
    )


def _base(spec: str) -> Curriculum:
    if ".py:" in spec:
        return load(spec)
    name, *arguments = spec.split(":")
    if name in ("left", "right") and len(arguments) <= 1:
        amount = (arguments or ["1"])[0]
        number, percent = amount.removesuffix("%"), amount.endswith("%")
        if not (number.isascii() and number.isdigit() and 1 <= int(number) <= (100 if percent else 10**6)):
            raise UserError(f'curriculum "{spec}": "{amount}" must be a number of units, at least 1, or 1% to 100%.')
        return (Left if name == "left" else Right)(remove=int(number), percent=percent)
    whole = {
        "e2e": EndToEnd(),
        "cot": ChainOfThought(),
        "inductive": Inductive(),
        "inductive:doubling": Inductive(),
        "inductive:stepwise": Inductive(doubling=False),
        "mixture": Mixture(),
    }
    if spec not in whole:
        raise UserError(f'no curriculum is called "{spec}"; known are {FORMS}.')
    return whole[spec]
