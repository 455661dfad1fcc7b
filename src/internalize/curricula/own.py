"""A user's own curriculum: "mine.py:EveryOther" is the class EveryOther of the file mine.py, whose code is run."""

import numpy as np

from internalize import own_code
from internalize.curricula.removal import Curriculum, CurriculumFamily
from internalize.errors import UserError


def load(spec: str) -> Curriculum:
    """The curriculum that "mine.py:EveryOther" names. Raises `UserError` for whatever is wrong with the file or the class."""
    made = own_code.make(spec)
    if not isinstance(made, Curriculum):
        raise UserError(f"{own_code.who(spec)} is not a subclass of internalize.Curriculum.")
    _check(made, own_code.who(spec))
    return made


def _check(curriculum: Curriculum, who: str) -> None:
    """Try a curriculum on chains of several lengths. Raises `UserError` for what is no curriculum."""
    for units in (0, 1, 2, 5, 14):
        try:
            stages = curriculum.stages(units)
            shown = [np.asarray(curriculum.keep(units, stage)) for stage in range(stages)]
        except Exception as error:
            raise UserError(f"{who} fails for {units} units ({type(error).__name__}: {error}).") from None
        if stages < 1:
            raise UserError(f"{who} has {stages} stages for {units} units; it needs at least 1.")
        if any(keep.shape != (units,) or keep.dtype != bool for keep in shown):
            raise UserError(f"{who}: keep(units, stage) must return {units} booleans for {units} units.")


OWN = CurriculumFamily("mine.py:MyCurriculum for a class of your own", own_code.is_own, load)
