"""A user's own task: "mine.py:MyTask" is the class MyTask of the file mine.py, called with the number of steps.

The shortest way to one is a subclass of `SequenceTask`, which brings the distributions and the held-out split.
"""

from functools import lru_cache

from internalize import own_code
from internalize.errors import UserError
from internalize.seeding import numpy_stream
from internalize.tasks.base import ANSWER, PADDING, Task, TaskFamily, Traces

_TRIED = 8  # traces that a task must be able to draw


@lru_cache(maxsize=16)  # a configuration makes its task many times
def load(spec: str, steps: int) -> Task:
    """The task that "mine.py:MyTask" names. Raises `UserError` for whatever is wrong with the file or the class."""
    task, who = own_code.make(spec, steps), own_code.who(spec)
    missing = [name for name in dir(Task) if not name.startswith("_") and name not in dir(task)]
    if missing:
        raise UserError(
            f"{who} is not a task, for it lacks {', '.join(missing)}; make it a subclass of internalize.SequenceTask."
        )
    try:
        traces = task.sample("uniform", _TRIED, numpy_stream(0, "check"), "train")
        wrong = _wrong(task, traces)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{who} fails at {steps} steps ({type(error).__name__}: {error}).") from None
    if wrong:
        raise UserError(f"{who}: {wrong}.")
    return task  # type: ignore[no-any-return]


def _wrong(task: Task, traces: Traces) -> str:
    """What of a few traces is not as `Task` says; "" if nothing."""
    written = traces.segment != PADDING
    if traces.tokens.shape != traces.segment.shape or len(traces) != _TRIED:
        return f"{_TRIED} traces have tokens of shape {traces.tokens.shape} and segments of shape {traces.segment.shape}"
    tokens = traces.tokens[written]
    if tokens.min() < 0 or tokens.max() >= len(task.tokens):
        return f"its traces hold the tokens {tokens.min()} to {tokens.max()}, but it names {len(task.tokens)}"
    if int(traces.segment.max()) >= task.units:
        return f"a trace has {int(traces.segment.max()) + 1} units, but units says {task.units}"
    if int(written.sum(axis=1).max()) > task.longest:
        return f"a trace has {int(written.sum(axis=1).max())} tokens, but longest says {task.longest}"
    if not (traces.segment == ANSWER).any(axis=1).all():
        return "a trace has no answer"
    return ""


OWN = TaskFamily("mine.py:MyTask for a class of your own", own_code.is_own, load, inline=own_code.pin)
