"""What is built in, found by looking into a package's folder: each task, curriculum or study is a file that no other lists."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from internalize.errors import UserError


@dataclass(frozen=True)
class Family:
    """Things of one kind whose names have a form in common. Subclasses say what is made of a name."""

    forms: str  # how the names are written: part of a list in help texts and messages
    knows: Callable[[str], bool]  # whether a name is of this family


F = TypeVar("F", bound=Family)


@dataclass(frozen=True)
class Registry(Generic[F]):
    """The families of a package: what its modules call `FAMILY`, and the user's own classes."""

    package: str
    kind: str  # in messages
    own: F

    def families(self) -> list[F]:
        """The user's own classes, then what is built in."""
        return [self.own, *registered(self.package, "FAMILY")]

    def forms(self) -> str:
        """How everything is written that can be named here."""
        own, *built_in = (family.forms for family in self.families())
        return f"{', '.join(built_in)}, and {own}"

    def find(self, name: str) -> F:
        """The family that `name` is of. Raises `UserError`."""
        for family in self.families():
            if family.knows(name):
                return family
        raise UserError(f'no {self.kind} is called "{name}"; known are {self.forms()}.')


def registered(package: str, constant: str) -> list[Any]:
    """What the modules of `package` call `constant`, by the modules' names; those without one are passed over."""
    modules = (import_module(f"{package}.{name}") for name in _names(*sys.modules[package].__path__))
    return [getattr(module, constant) for module in modules if hasattr(module, constant)]


@cache  # a configuration asks many times
def _names(*folders: str) -> list[str]:
    return [module.name for module in iter_modules(folders)]
