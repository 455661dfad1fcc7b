"""A user's own Python object: "mine.py:Thing" is what the file mine.py calls Thing, and the file's code is run.

A configuration holds the name with a digest of the file, "mine.py:Thing@digest", and is saved with the file's text (`sources`).
So a run is read with the code that it was made with, wherever that file is now and whatever became of it.
"""

import hashlib
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from internalize.errors import UserError

_texts: dict[str, str] = {}  # of files that were read, or came with a configuration, by digest


def is_own(spec: str) -> bool:
    """Whether `spec` names something in a file of the user's."""
    return ".py:" in spec


def pin(spec: str) -> str:
    """`spec` with the digest of its file added; unchanged where it has one, or names no file. Raises `UserError`."""
    file, _, digest = _parts(spec)
    return spec if digest or not is_own(spec) else f"{spec}@{_read(file)}"


def sources(*specs: str | None) -> dict[str, str]:
    """The texts of the files that pinned `specs` name, by digest: what a configuration is saved with."""
    digests = [_parts(spec)[2] for spec in specs if spec is not None and is_own(spec)]
    return {digest: _texts[digest] for digest in digests if digest in _texts}


def remember(texts: Mapping[str, str]) -> None:
    """Take in what `sources` gave. Raises `UserError` for a text that does not have its digest."""
    for digest, text in texts.items():
        if not isinstance(text, str) or _digest(text.encode()) != digest:
            raise UserError(f"the code that is saved with the configuration is not that of digest {digest}; it was edited.")
    _texts.update(texts)


def make(spec: str, *arguments: Any) -> Any:
    """What calling the name in `spec` with `arguments` gives. Raises `UserError` for whatever goes wrong in the file."""
    file, name, _ = _parts(spec)
    found = _module(spec).get(name)
    if found is None:
        raise UserError(f'{file}: there is no class "{name}" in it.')
    try:
        return found(*arguments)
    except Exception as error:
        raise UserError(f"{file}: cannot be used ({type(error).__name__}: {error}).") from None


def function(spec: str) -> Callable[..., Any]:
    """What `spec` names, to be called. Raises `UserError` for whatever goes wrong in the file."""
    file, name, _ = _parts(spec)
    found = _module(spec).get(name)
    if not callable(found):
        raise UserError(f'{file}: there is no function "{name}" in it.')
    return found  # type: ignore[no-any-return]


def digest_of(file: Path) -> str:
    """Eight hex digits that tell the file's content. Raises `UserError` when it cannot be read."""
    return _digest(_bytes(file))


def short(spec: str) -> str:
    """`spec` without folders and digest, to be shown; a spec that names no file stays as it is."""
    return spec.partition("@")[0].rpartition("/")[2] if is_own(spec) else spec


def who(spec: str) -> str:
    """File and name, as a message tells them."""
    file, name, _ = _parts(spec)
    return f'{file}: "{name}"'


def _parts(spec: str) -> tuple[Path, str, str]:
    """File, name and digest ("" where there is none) of "mine.py:Thing@digest"."""
    path, _, rest = spec.rpartition(".py:")
    name, _, digest = rest.partition("@")
    return Path(path + ".py"), name, digest


def _module(spec: str) -> dict[str, Any]:
    """What running the file defines. It is run once for each content, and is a module like others: dataclasses look for it."""
    file, _, digest = _parts(spec)
    if digest not in _texts:
        now = _read(file)
        if digest and now != digest:
            raise UserError(
                f"{file}: the file has changed since the run was configured, which was made before runs kept their code; "
                "restore it, or start another run."
            )
        digest = now
    name = f"internalize_own_{digest}"
    if name not in sys.modules:
        module = types.ModuleType(name)
        module.__file__ = str(file)
        sys.modules[name] = module
        try:
            exec(compile(_texts[digest], str(file), "exec"), module.__dict__)
        except Exception as error:
            del sys.modules[name]
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            raise UserError(f"{file}{line}: cannot be used ({type(error).__name__}: {error}).") from None
    return sys.modules[name].__dict__


def _read(file: Path) -> str:
    """The digest of a file, whose text is known from then on."""
    content = _bytes(file)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: it is not a text in UTF-8 ({error}).") from None
    digest = _digest(content)
    _texts[digest] = text
    return digest


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]
