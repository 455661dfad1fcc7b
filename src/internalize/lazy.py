"""Packages that import what they offer when it is first asked for (PEP 562), so that who needs little waits little."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, where: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose `where` says, for names separated by blanks, the module that has them."""
    modules = {name: module for module, names in where.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
