"""Studies: each figure of the paper from one command. One file each; every module here with a `STUDY` is one.

    internalize study list
    internalize study run fig1 --scale laptop

A study is a function that gives run configurations and a function that draws their rows; adding one touches no other file.
"""

from importlib import import_module
from pkgutil import iter_modules

from internalize.errors import UserError
from internalize.studies.study import Study


def studies() -> dict[str, Study]:
    """Every study by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [module.STUDY for module in modules if hasattr(module, "STUDY")]
    return {study.name: study for study in found}


def find(name: str) -> Study:
    """The study called `name`. Raises `UserError`."""
    every = studies()
    if name not in every:
        raise UserError(f'no study is called "{name}"; there are {", ".join(every)}.')
    return every[name]
