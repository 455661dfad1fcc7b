"""What a run will cost, said before it starts."""

import math
import time
from dataclasses import dataclass

import torch

from internalize.config import RunConfig
from internalize.rendering import Vocabulary, render
from internalize.seeding import numpy_stream
from internalize.training import batch_loss, new_model

_TIMED_STEPS = 3


@dataclass(frozen=True)
class Plan:
    """Sizes of one seed's run, and the longest that all seeds may take."""

    parameters: int
    longest: int  # tokens in the longest row
    stages: int
    inputs: int  # possible inputs
    examples: int  # training examples drawn at most
    distinct: int  # of a finite training set; 0: all examples are fresh
    seconds: float  # for all seeds at most, by timing a few steps here

    def text(self) -> str:
        """Two lines for people."""
        if self.distinct:
            unseen = f"from {self.distinct:,} distinct inputs"
        elif self.inputs >= 10 * self.examples:
            unseen = f"{self.inputs // self.examples:,} times as many inputs"
        else:
            unseen = "inputs repeat, test inputs are held out all the same"
        return (
            f"{self.parameters:,} parameters, rows of up to {self.longest} tokens, {self.stages} stage(s)\n"
            f"{_count(self.inputs)} possible inputs, at most {_count(self.examples)} examples a seed ({unseen}); "
            f"at most {duration(self.seconds)} on this machine"
        )


def make_plan(config: RunConfig, seeds: int, processes: int) -> Plan:
    """Time a few steps of the first and of the last stage on one thread, and multiply by the budget."""
    task, curriculum = config.make_task(), config.make_curriculum()
    vocabulary, stages = Vocabulary.of(task), curriculum.stages(task.units)
    traces = task.sample(config.inputs, config.optimizer.batch, numpy_stream(0, "plan"), "train")
    model = new_model(config, 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        step_seconds = []
        for stage in (0, stages - 1):
            views = [view for _, view in curriculum.mixture(task.units, stage)]
            rows = render(traces, [max(views, key=lambda view: view.shown)], vocabulary, position_ids=config.position_ids)
            batch_loss(model, rows)  # warm-up
            started = time.perf_counter()
            for _ in range(_TIMED_STEPS):
                batch_loss(model, rows).backward()  # type: ignore[no-untyped-call]
            step_seconds.append((time.perf_counter() - started) / _TIMED_STEPS)
    finally:
        torch.set_num_threads(threads)
    rounds = -(-seeds // processes)
    budget = config.schedule.budget
    return Plan(
        parameters=model.parameter_count,
        longest=task.longest + 1 + curriculum.hint,
        stages=stages,
        inputs=task.inputs,
        examples=budget * config.optimizer.batch,
        distinct=config.train_size,
        seconds=rounds * budget * sum(step_seconds) / 2,
    )


def duration(seconds: float) -> str:
    """A length of time for people: "45 s", "3 min 20 s", "2 h 05 min"."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def _count(number: int) -> str:
    if number < 10**12:
        return f"{number:,}"
    exponent = int(math.log10(number))
    return f"{number // 10 ** (exponent - 1) / 10:.1f}e{exponent}"
