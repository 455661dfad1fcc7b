"""What the settings of a run are, whatever learns. Seeds are not part of them.

A configuration is named by a hash of the fields that differ from their defaults, so that 10 seeds grow to 30 without
repeating any, and a new field with a default renames no old run.
"""

import dataclasses
import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from internalize import curricula, own_code
from internalize.curricula import Curriculum, RemovalConfig, Schedule
from internalize.errors import UserError

SANDBOX, LANGUAGE_MODEL = "sandbox", "language model"  # kinds of runs, as their config.json says


class Settings:
    """One configuration. A subclass is a frozen dataclass whose fields all have defaults; groups of them are dataclasses."""

    KIND: ClassVar[str]
    SCHEMA: ClassVar[int]  # part of the hash: raise it when old runs no longer mean the same
    COMMAND: ClassVar[str]  # that trains it
    RATE: ClassVar[str]  # the name of the learning rate

    curriculum: str
    removal: RemovalConfig
    schedule: Schedule

    def make_curriculum(self) -> Curriculum:
        return curricula.make(self.curriculum, self.removal)

    def test_splits(self) -> tuple[str, ...]:
        """What accuracy is told on: in distribution first, then the out-of-distribution ones, the headline first."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """What is trained, in a few words."""
        raise NotImplementedError

    @property
    def token_budget(self) -> int:
        """Training tokens at most; 0: as many as the schedule's steps have."""
        return 0

    @property
    def chance(self) -> float | None:
        """Accuracy of a guess, where it is known."""
        return None

    def stem(self) -> str:
        """The name of the run's directory, less the hash."""
        raise NotImplementedError

    def own(self) -> tuple[str | None, ...]:
        """Settings that may name code of the user's own."""
        return (self.curriculum,)

    @property
    def headline(self) -> str | None:
        """The out-of-distribution split that is told first, if there is one."""
        return (*self.test_splits(), None)[1]

    def changed(self) -> dict[str, Any]:
        """The fields that differ from their defaults, nested as they are."""
        return {
            entry.name: _plain(value)
            for entry in dataclasses.fields(self)  # type: ignore[arg-type]
            if (value := getattr(self, entry.name)) != (default := _default(entry))
            and (value := _changed(value, default)) != {}
        }

    def hash(self) -> str:
        """Eight hex digits that name this configuration."""
        text = json.dumps([self.SCHEMA, self.changed()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def name(self) -> str:
        """The name of the run's directory."""
        return file_name(self.stem()) + f"-{self.hash()}"

    def command(self, seeds: Sequence[int]) -> str:
        """The command line that trains this configuration on consecutive `seeds`."""
        which = [("seeds", len(seeds)), *([("first_seed", seeds[0])] if seeds[0] else [])]
        return command_line(self.COMMAND, flat(self.changed()) + which)

    def to_json(self) -> dict[str, Any]:
        """As JSON values, with the text of the user's own files that it names."""
        code = own_code.sources(*self.own())
        values = {"kind": self.KIND, "schema": self.SCHEMA, **_plain(dataclasses.asdict(self))}  # type: ignore[call-overload]
        return {**values, **({"code": code} if code else {})}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`. Raises `UserError` for fields that this version does not know."""
        if not isinstance(values, Mapping):
            raise UserError("the configuration must be a JSON object.")
        values = dict(values)
        values.pop("kind", None)
        if values.pop("schema", None) != cls.SCHEMA:
            raise UserError(
                f"the configuration is not of schema {cls.SCHEMA}; it was written by another version of internalize."
            )
        own_code.remember(values.pop("code", {}))
        try:
            for entry in dataclasses.fields(cls):  # type: ignore[arg-type]
                default = _default(entry)
                if dataclasses.is_dataclass(default) and not isinstance(default, type):
                    values[entry.name] = type(default)(**tuples(values[entry.name]))
                elif values.get(entry.name) is not None and entry.type in (Path, Path | None):
                    values[entry.name] = Path(values[entry.name])
            return cls(**tuples(values))
        except (TypeError, KeyError, AttributeError) as error:
            raise UserError(f"the configuration does not fit this version of internalize ({error}).") from None


def kind_of(values: Any) -> str | None:
    """Of which kind of run a configuration is, as JSON values: "sandbox" or "language model"; None for what is no run's."""
    if not isinstance(values, dict) or "schema" not in values:
        return None
    before = LANGUAGE_MODEL if isinstance(values.get("model"), str) else SANDBOX  # as long as runs did not say so
    return str(values.get("kind", before))


def command_line(command: str, settings: Iterable[tuple[str, Any]], *positional: str) -> str:
    """The line that calls `internalize <command>` with (dotted name, value) settings as flags."""
    words = ["internalize", *command.split(), *positional]
    for name, value in settings:
        group, dot, last = name.replace("_", "-").rpartition(".")
        words.append(f"--{group}{dot}{'no-' if value is False else ''}{last}")
        words += map(str, value if isinstance(value, tuple) else [] if isinstance(value, bool) else [value])
    return shlex.join(words)


def file_name(text: str) -> str:
    """`text` with an underscore for all that does not belong into the name of a file."""
    return re.sub(r"[^\w.+%()-]", "_", text)


def flat(values: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested settings as (dotted name, value)."""
    settings = []
    for name, value in values.items():
        settings += flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return settings


def tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with tuples for JSON's lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _default(entry: "dataclasses.Field[Any]") -> Any:
    return entry.default_factory() if entry.default_factory is not dataclasses.MISSING else entry.default


def _changed(value: Any, default: Any) -> Any:
    """What of a group differs from its default; any other value as it is."""
    if not dataclasses.is_dataclass(value):
        return value
    names = [entry.name for entry in dataclasses.fields(value)]
    return {name: getattr(value, name) for name in names if getattr(value, name) != getattr(default, name)}


def _plain(value: Any) -> Any:
    """`value` with text for paths."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return str(value) if isinstance(value, Path) else value
