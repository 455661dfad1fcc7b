"""Curricula and schedules: what is shown at each stage, and when a stage is over."""

from internalize.curricula.mixture import Mixture
from internalize.curricula.removal import ChainOfThought, Curriculum, EndToEnd, Left, Right, View
from internalize.curricula.schedule import Schedule
from internalize.errors import UserError

__all__ = ["ChainOfThought", "Curriculum", "EndToEnd", "Left", "Mixture", "Right", "Schedule", "View", "make"]

NAMES = ("e2e", "cot", "left", "right", "mixture")


def make(spec: str) -> Curriculum:
    """The curriculum that `spec` names: e2e, cot, left, right or mixture; "left:2" removes two units at each stage."""
    name, *arguments = spec.split(":")
    if name in ("left", "right") and len(arguments) <= 1:
        remove = arguments[0] if arguments else "1"
        if not (remove.isascii() and remove.isdigit() and int(remove) >= 1):
            raise UserError(f'curriculum "{spec}": "{remove}" must be a whole number of units, at least 1.')
        return (Left if name == "left" else Right)(remove=int(remove))
    if not arguments and name == "e2e":
        return EndToEnd()
    if not arguments and name == "cot":
        return ChainOfThought()
    if not arguments and name == "mixture":
        return Mixture()
    raise UserError(
        f'no curriculum is called "{spec}"; known are {", ".join(NAMES)}, and left:2 or right:2 to remove two units at a time.'
    )
