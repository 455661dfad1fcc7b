"""Tasks: what is computed. `make(name, steps)` gives the task of that name; `Trace` and `Traces` are its examples."""

from internalize.tasks.base import ANSWER, PADDING, PROMPT, Part, Task, Trace, Traces
from internalize.tasks.semiautomata import Semiautomaton, Simulation, semiautomaton

__all__ = ["ANSWER", "PADDING", "PROMPT", "Part", "Semiautomaton", "Simulation", "Task", "Trace", "Traces", "make"]


def make(name: str, steps: int) -> Task:
    """The task called `name` ("C3", "S4", ...) over inputs of `steps` symbols. Raises `UserError`."""
    return Simulation(semiautomaton(name), steps)
