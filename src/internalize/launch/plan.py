"""What a run will cost, said before it starts."""

import math
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch

from internalize.config import RunConfig
from internalize.learners.sandbox import SandboxLearner
from internalize.models import kernel

_TIMED_STEPS = 5


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
            f"about {duration(self.seconds)} on this machine if the whole budget is needed"
            + ("" if kernel() == "c" else "\nNo C compiler is used here, so attention is torch's own, which takes longer.")
        )


def make_plan(config: RunConfig, seeds: int, processes: int) -> Plan:
    """Time a few steps and evaluations of the first and of the last stage, on one thread, and multiply by the budget."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        run = SandboxLearner(config, 0, Path())
        costs = [_stage_costs(run, stage) for stage in (0, run.stages - 1)]
    finally:
        torch.set_num_threads(threads)
    step, check, test = (sum(cost) / 2 for cost in zip(*costs, strict=True))
    budget, evaluation = config.schedule.budget, config.evaluation
    tests = 3 * run.stages + 3 * evaluation.samples / evaluation.stage_samples
    checks = budget / config.schedule.check_every if config.schedule.kind == "adaptive" else 0
    return Plan(
        parameters=run.model.parameter_count,
        longest=run.task.longest + 1 + run.curriculum.hint,
        stages=run.stages,
        inputs=run.task.inputs,
        examples=budget * config.optimizer.batch,
        distinct=config.train_size,
        seconds=-(-seeds // processes) * (budget * step + checks * check + tests * test),
    )


def _stage_costs(run: SandboxLearner, stage: int) -> tuple[float, float, float]:
    """Seconds of an optimizer step, of a look at the validation accuracy, and of an evaluation on all test splits."""
    run.at.stage = stage
    if stage and run.config.labels != "true":
        run.learn_from(run.model)  # untrained, and as costly as the slow system will be
    batch = run.config.optimizer.batch
    rows = run.draw((1 + _TIMED_STEPS) * batch)
    run.step(rows[:batch])  # warm-up
    samples = run.config.evaluation.stage_samples
    moments = [time.perf_counter()]
    for start in range(batch, len(rows), batch):
        run.step(rows[start : start + batch])
    moments.append(time.perf_counter())
    run.accuracy(run.validation, run.target())
    moments.append(time.perf_counter())
    run.accuracy({name: traces[:samples] for name, traces in run.test.items()}, run.target())
    moments.append(time.perf_counter())
    steps, check, test = (after - before for before, after in pairwise(moments))
    return steps / _TIMED_STEPS, check, test


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
