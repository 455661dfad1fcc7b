"""Tasks: what is computed. `make(name, steps)` gives the task of that name; `Trace` and `Traces` are its examples."""

from pathlib import Path

from internalize.errors import UserError
from internalize.tasks.automaton_file import parse_automaton, read_automaton
from internalize.tasks.base import ANSWER, PADDING, PROMPT, Part, Task, Trace, Traces
from internalize.tasks.groups import group
from internalize.tasks.semiautomata import Semiautomaton, Simulation

__all__ = ["ANSWER", "PADDING", "PROMPT", "Part", "Semiautomaton", "Simulation", "Task", "Trace", "Traces"]
__all__ += ["inline", "make", "semiautomaton"]


def make(name: str, steps: int, sampled_start: bool = False) -> Task:
    """The task called `name` over inputs of `steps` symbols. Raises `UserError`."""
    return Simulation(semiautomaton(name), steps, sampled_start)


def semiautomaton(name: str) -> Semiautomaton:
    """The semiautomaton of a group ("C3", "S3:gen", "C2xC3"; see groups.py) or of JSON text (see automaton_file.py)."""
    if name.startswith("{"):
        return parse_automaton(name)
    base, _, alphabet = name.partition(":")
    elements = group(base)
    symbols: tuple[int, ...] = tuple(range(len(elements.names)))
    if alphabet == "gen":
        # One symbol would leave nothing to choose, so the identity joins a lone generator.
        symbols = (0, *elements.generators) if len(elements.generators) == 1 else elements.generators
    elif ":" in name:
        raise UserError(f'task "{name}": only ":gen" can follow a group\'s name.')
    names = tuple(elements.names[symbol] for symbol in symbols)
    return Semiautomaton(name, elements.names, names, elements.table[:, list(symbols)])


def inline(name: str) -> str:
    """`name`, or the JSON text of an automaton where `name` is the path of its file, so that a configuration is complete."""
    return read_automaton(Path(name)) if name.endswith(".json") else name
