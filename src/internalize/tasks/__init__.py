"""Tasks: what is computed. `make(name, steps)` gives the task of that name; `Trace` and `Traces` are its examples."""

from functools import lru_cache
from pathlib import Path

from internalize import own_code
from internalize.errors import UserError
from internalize.tasks.automaton_file import parse_automaton, read_automaton
from internalize.tasks.base import ANSWER, PADDING, PROMPT, Part, Task, Trace, Traces
from internalize.tasks.groups import group
from internalize.tasks.multiplication import Multiplication
from internalize.tasks.own import load
from internalize.tasks.parity import SparseParity
from internalize.tasks.semiautomata import Semiautomaton, Simulation
from internalize.tasks.sequences import SequenceTask

__all__ = ["ANSWER", "PADDING", "PROMPT", "Multiplication", "Part", "Semiautomaton", "SequenceTask", "Simulation"]
__all__ += ["SparseParity", "Task", "Trace", "Traces", "inline", "make", "semiautomaton"]


def make(name: str, steps: int, sampled_start: bool = False) -> Task:
    """The task called `name` over inputs of `steps` symbols. Raises `UserError`.

    Names: those of `semiautomaton`, "parity:<k>" (of `steps` bits), "multiply" (numbers of `steps` digits), and
    "mine.py:MyTask" for a class of the user's own.
    """
    kind, _, size = name.partition(":")
    own = own_code.is_own(name)
    if sampled_start and (own or kind in ("parity", "multiply")):
        raise UserError(f'task "{name}" has no start state to sample; leave out --start.')
    if own:
        return load(name, steps)
    if kind == "parity":
        if not (size.isascii() and size.isdigit()):
            raise UserError(f'task "{name}": give the number of support bits, as in parity:10.')
        return SparseParity(steps, int(size))
    if name == "multiply":
        return Multiplication(steps)
    return Simulation(semiautomaton(name), steps, sampled_start)


@lru_cache(maxsize=16)  # a configuration makes its task many times
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
    table = elements.table if alphabet != "gen" else elements.table[:, list(symbols)]
    return Semiautomaton(name, elements.names, names, table)


def inline(name: str) -> str:
    """`name`, so that a configuration is complete: for the path of an automaton's file the JSON text in it, and for a class of
    the user's own with the digest of its file.
    """
    return read_automaton(Path(name)) if name.endswith(".json") else own_code.pin(name)
