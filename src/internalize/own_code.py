"""A user's own Python object: "mine.py:Thing" is what the file mine.py calls Thing, and the file's code is run."""

import hashlib
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from internalize.errors import UserError


def split(spec: str) -> tuple[Path, str]:
    """The file and the name in "mine.py:Thing"."""
    path, _, name = spec.rpartition(".py:")
    return Path(path + ".py"), name


def make(file: Path, name: str) -> Any:
    """What calling `name` of `file` without arguments gives. Raises `UserError` for whatever goes wrong in the file."""
    found = _module(file).get(name)
    if found is None:
        raise UserError(f'{file}: there is no class "{name}" in it.')
    try:
        return found()
    except Exception as error:
        raise UserError(f"{file}: cannot be used ({type(error).__name__}: {error}).") from None


def _module(file: Path) -> dict[str, Any]:
    """What running the file defines."""
    module = types.ModuleType(file.stem)
    try:
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), module.__dict__)
    except Exception as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise UserError(f"{file}{line}: cannot be used ({type(error).__name__}: {error}).") from None
    return module.__dict__


def function(file: Path, name: str) -> Callable[..., Any]:
    """What `file` calls `name`, to be called. Raises `UserError` for whatever goes wrong in the file."""
    found = _module(file).get(name)
    if not callable(found):
        raise UserError(f'{file}: there is no function "{name}" in it.')
    return found  # type: ignore[no-any-return]


def digest_of(file: Path) -> str:
    """Eight hex digits that tell the file's content. Raises `UserError` when it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:8]
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None
