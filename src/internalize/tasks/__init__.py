"""Tasks: what is computed. `make(name, steps)` gives the task of that name; `Trace` and `Traces` are its examples.

Names come in families, one file each; every module here with a `FAMILY` is one, so adding a task touches no other file.
"""

from internalize.errors import UserError
from internalize.registry import Registry
from internalize.tasks.base import ANSWER, PADDING, PROMPT, Part, Task, TaskFamily, Trace, Traces
from internalize.tasks.groups import semiautomaton
from internalize.tasks.multiplication import Multiplication
from internalize.tasks.own import OWN
from internalize.tasks.parity import SparseParity
from internalize.tasks.semiautomata import Semiautomaton, Simulation
from internalize.tasks.sequences import SequenceTask

__all__ = ["ANSWER", "FAMILIES", "PADDING", "PROMPT", "Multiplication", "Part", "Semiautomaton", "SequenceTask", "Simulation"]
__all__ += ["SparseParity", "Task", "TaskFamily", "Trace", "Traces", "inline", "make", "semiautomaton"]

FAMILIES = Registry(__name__, "task", OWN)


def make(name: str, steps: int, sampled_start: bool = False) -> Task:
    """The task called `name` (see `FAMILIES.forms`) over inputs of `steps` symbols. Raises `UserError`."""
    family = FAMILIES.find(name)
    if not sampled_start:
        return family.make(name, steps)
    if family.with_start is None:
        raise UserError(f'task "{name}" has no start state to sample; leave out --start.')
    return family.with_start(name, steps)


def inline(name: str) -> str:
    """`name`, so that a configuration is complete: for the path of an automaton's file the JSON text in it, and for a class of
    the user's own with the digest of its file. Raises `UserError`.
    """
    return FAMILIES.find(name).inline(name)
