"""Automata from a user's JSON file:

    {
      "name": "lamp",
      "states": ["off", "on"],
      "symbols": ["press", "wait"],
      "delta": {
        "off": {"press": "on", "wait": "off"},
        "on": {"press": "off", "wait": "on"}
      },
      "start": "off"
    }

`name` may be left out (the file's name is taken). Everything is checked, and a mistake is told with its line.
"""

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from internalize.errors import UserError
from internalize.tasks.base import Ints
from internalize.tasks.groups import LARGEST
from internalize.tasks.semiautomata import Semiautomaton, simulations

_NAME = re.compile(r"[A-Za-z0-9_.\-()]{1,40}")  # what can be typed as an input, named in a distribution and in a path
_FIELDS = {"name", "states", "symbols", "delta", "start"}


def read_automaton(path: Path) -> str:
    """The canonical JSON text of an automaton file, which `parse_automaton` reads. Raises `UserError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text; save the file as UTF-8.") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None
    return canonical(parse_automaton(text, str(path), path.stem))


def parse_automaton(text: str, where: str = "the automaton", name: str = "automaton") -> Semiautomaton:
    """The automaton that JSON `text` describes. Raises `UserError`, which names `where` and the line."""
    try:
        values = json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}, line {error.lineno}: not valid JSON ({error.msg}).") from None
    except RecursionError:
        raise UserError(f"{where}: nested too deeply.") from None
    reader = _Reader(text, where)
    return reader.automaton(values, name)


def canonical(automaton: Semiautomaton) -> str:
    """One line of JSON that holds all of an automaton."""
    rows = {
        state: {symbol: automaton.states[target] for symbol, target in zip(automaton.symbols, row, strict=True)}
        for state, row in zip(automaton.states, automaton.delta, strict=True)
    }
    values = {"name": automaton.name, "states": automaton.states, "symbols": automaton.symbols, "delta": rows}
    return json.dumps(values | {"start": automaton.states[automaton.start]}, ensure_ascii=False)


class _Object(dict[str, Any]):
    """A JSON object that remembers a key that stood twice in it."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        keys = [key for key, _ in pairs]
        self.twice = next((key for key in keys if keys.count(key) > 1), None) if len(self) < len(keys) else None


class _Reader:
    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where

    def automaton(self, values: Any, name: str) -> Semiautomaton:
        if not isinstance(values, _Object):
            raise self.error(f"the file must hold one JSON object with {', '.join(sorted(_FIELDS))}")
        self.no_double(values, "the file")
        unknown = sorted(set(values) - _FIELDS)
        if unknown:
            raise self.error(f"{show(unknown[0])} is not a field; the fields are {', '.join(sorted(_FIELDS))}", unknown[0])
        missing = sorted(_FIELDS - {"name"} - set(values))
        if missing:
            raise self.error(f'"{missing[0]}" is missing')
        name = values.get("name", name)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise self.error("name must be 1 to 40 letters, digits or _ . - ( )", "name")
        states, symbols = self.names(values, "states", 1), self.names(values, "symbols", 2)
        entries = len(states) * len(symbols)
        if entries > LARGEST**2:
            raise self.error(f"the table would have {entries:,} entries; at most {LARGEST**2:,} are supported")
        start = values["start"]
        if not isinstance(start, str) or start not in states:
            raise self.error(f"start is {show(start)}, which is not one of the states", "start")
        return Semiautomaton(name, states, symbols, self.table(values["delta"], states, symbols), states.index(start))

    def names(self, values: _Object, field: str, least: int) -> tuple[str, ...]:
        names = values[field]
        if not isinstance(names, list) or len(names) < least:
            raise self.error(f"{field} must be a list of at least {least} name{'s' * (least > 1)}", field)
        seen = set()
        for name in names:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise self.error(f"{field} has {show(name)}; a name is 1 to 40 letters, digits or _ . - ( )", field)
            if name in seen:
                raise self.error(f'{field} has "{name}" twice', field)
            seen.add(name)
        return tuple(names)

    def table(self, delta: Any, states: tuple[str, ...], symbols: tuple[str, ...]) -> Ints:
        if not isinstance(delta, _Object):
            raise self.error("delta must be an object with a row for each state", "delta")
        self.no_double(delta, "delta")
        state_of, symbol_of = ({name: index for index, name in enumerate(names)} for names in (states, symbols))
        table = np.full((len(states), len(symbols)), -1)
        for state, row in delta.items():
            if state not in state_of:
                raise self.error(f"delta has a row for {show(state)}, which is not one of the states", "delta", state)
            if not isinstance(row, _Object):
                raise self.error(f"delta[{show(state)}] must be an object with a next state for each symbol", "delta", state)
            self.no_double(row, f"delta[{show(state)}]", state)
            for symbol, target in row.items():
                if symbol not in symbol_of:
                    what = f"delta[{show(state)}] has {show(symbol)}, which is not one of the symbols"
                    raise self.error(what, "delta", state, symbol)
                if not isinstance(target, str) or target not in state_of:
                    what = f"delta[{show(state)}][{show(symbol)}] is {show(target)}, which is not one of the states"
                    raise self.error(what, "delta", state, symbol)
                table[state_of[state], symbol_of[symbol]] = state_of[target]
        for state, symbol in np.argwhere(table < 0)[:1]:
            keys = ("delta", states[state]) if states[state] in delta else ("delta",)
            raise self.error(f'the transition of state "{states[state]}" under symbol "{symbols[symbol]}" is missing', *keys)
        return table

    def no_double(self, values: _Object, what: str, *keys: str) -> None:
        if values.twice is not None:
            raise self.error(f"{what} has {show(values.twice)} twice", *(("delta", *keys) if keys else ()), values.twice)

    def error(self, what: str, *keys: str) -> UserError:
        """The error, with the line on which the last of the nested `keys` stands, as far as they are found."""
        at = 0
        for depth, key in enumerate(keys):
            nested = r"\s*:\s*\{" if keys[0] == "delta" and depth < min(2, len(keys) - 1) else r"\s*:"
            found = re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + nested).search(self.text, at)
            if not found:
                break
            at = found.start() if depth == len(keys) - 1 else found.end()
        line = f", line {self.text.count(chr(10), 0, at) + 1}" if keys else ""
        return UserError(f"{self.where}{line}: {what}.")


def show(value: Any) -> str:
    """`value` as short JSON on one line."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


def _inline(name: str) -> str:
    return read_automaton(Path(name)) if name.endswith(".json") else name


_parsed = lru_cache(maxsize=16)(parse_automaton)  # a configuration makes its task many times
FAMILY = simulations(
    "JSON files of automata",
    lambda name: name.startswith("{") or name.endswith(".json"),
    lambda name: _parsed(_inline(name)),
    _inline,
)
