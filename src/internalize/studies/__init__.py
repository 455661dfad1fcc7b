"""Studies: each figure of the paper from one command. One file each; every module here with a `STUDY` is one.

    internalize study list
    internalize study run fig1 --scale laptop

A study is a function that gives run configurations and a function that draws their rows; adding one touches no other file.
"""

from internalize.errors import UserError
from internalize.registry import registered
from internalize.studies.study import Study


def studies() -> dict[str, Study]:
    """Every study by name."""
    return {study.name: study for study in registered(__name__, "STUDY")}


def find(name: str) -> Study:
    """The study called `name`. Raises `UserError`."""
    every = studies()
    if name not in every:
        raise UserError(f'no study is called "{name}"; there are {", ".join(every)}.')
    return every[name]
