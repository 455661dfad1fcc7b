"""A user's own curriculum: "mine.py:EveryOther" is the class EveryOther of the file mine.py, whose code is run.

A configuration holds the path and a digest of the file, so that a changed file is noticed when a run goes on.
"""

import numpy as np

from internalize import own_code
from internalize.curricula.removal import Curriculum
from internalize.errors import UserError


def pin(spec: str) -> str:
    """`spec`, with a digest of the file that it names added, so that a configuration says which code it means."""
    file, name = own_code.split(spec)
    return f"{spec}@{own_code.digest_of(file)}" if ".py:" in spec and "@" not in name else spec


def load(spec: str) -> Curriculum:
    """The curriculum that "mine.py:EveryOther" names. Raises `UserError` for whatever is wrong with the file or the class."""
    file, name = own_code.split(spec)
    name, _, digest = name.partition("@")
    if digest and digest != own_code.digest_of(file):
        raise UserError(f"{file}: the file has changed since the run was configured; restore it, or start another run.")
    made = own_code.make(file, name)
    if not isinstance(made, Curriculum):
        raise UserError(f'{file}: "{name}" is not a subclass of internalize.Curriculum.')
    _check(made, f'{file}: "{name}"')
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
