"""Work that is timed, in processes of its own, so that either side may use the cores as it likes best.

A contender prepares a piece of work once; each call then does the same amount of it. `Cores` runs one copy in each of its
processes at the same time and reports the wall time of the slowest.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from internalize import EvaluationConfig, ModelConfig, OptimizerConfig, RunConfig
from internalize.learners.sandbox import SandboxLearner
from internalize.models import forward_operations

VALIDATION = 1024
PAPER = ModelConfig(layers=4, width=512, heads=128, mlp=2048)  # the paper's main model


@dataclass(frozen=True)
class Job:
    """An amount of work: `steps` optimizer steps at each of `stages`, and an evaluation after each where `evaluate` is set."""

    shape: ModelConfig
    task_steps: int
    batch: int
    stages: tuple[int, ...]
    steps: int
    evaluate: bool = False


def ours(job: Job) -> Callable[[], None]:
    """The project's own learner."""
    config = RunConfig(
        task="C3",
        steps=job.task_steps,
        model=job.shape,
        optimizer=OptimizerConfig(batch=job.batch),
        evaluation=EvaluationConfig(validation=VALIDATION),
    )
    run = SandboxLearner(config, 0, Path(tempfile.mkdtemp()))

    def work() -> None:
        for stage in job.stages:
            run.at.stage = stage
            if job.steps:
                run.train(job.steps)
            if job.evaluate:
                run.accuracy(run.validation, run.target())

    return work


def theirs(job: Job, attention: str) -> Callable[[], None]:
    """The baseline."""
    from benchmarks.baseline import Baseline

    baseline = Baseline(job.shape, job.task_steps, job.batch, attention)

    def work() -> None:
        for stage in job.stages:
            baseline.train(stage, job.steps)
            if job.evaluate:
                baseline.evaluate(stage, VALIDATION)

    return work


CONTENDERS: dict[str, Callable[[Job], Callable[[], None]]] = {
    "ours": ours,
    "eager": lambda job: theirs(job, "eager"),
    "sdpa": lambda job: theirs(job, "sdpa"),
}


class Cores:
    """One contender on some processes of some threads each."""

    def __init__(self, contender: str, job: Job, processes: int, threads: int) -> None:
        self.processes = processes
        context = multiprocessing.get_context("spawn")
        self.ends = []
        for _ in range(processes):
            near, far = context.Pipe()
            context.Process(target=_serve, args=(far, contender, job, threads), daemon=True).start()
            self.ends.append(near)
        self.warm = False

    def seconds(self) -> float:
        """Wall time of the work for one seed: that of all processes together, divided by their number."""
        if not self.warm:
            self._all("ready")
            self.warm = True
        return max(self._all("go")) / self.processes

    def close(self) -> None:
        """Let the processes end."""
        for end in self.ends:
            end.send("stop")

    def _all(self, word: str) -> list[float]:
        for end in self.ends:
            end.send(word)
        return [end.recv() for end in self.ends]


def _serve(end: Connection, contender: str, job: Job, threads: int) -> None:
    torch.set_num_threads(threads)
    work: Any = None
    while (word := end.recv()) != "stop":
        if word == "ready":
            work = CONTENDERS[contender](job)
            CONTENDERS[contender](replace(job, stages=job.stages[:1], steps=min(job.steps, 2)))()  # warm-up
        started = time.perf_counter()
        if word == "go":
            work()
        end.send(time.perf_counter() - started)


def matrix_rate(threads: int, size: int = 2048) -> float:
    """Operations a second of a float32 matrix product on `threads` threads, the best of some."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    a, best = torch.randn(size, size), float("inf")
    for _ in range(8):
        started = time.perf_counter()
        torch.mm(a, a)
        best = min(best, time.perf_counter() - started)
    torch.set_num_threads(before)
    return 2 * size**3 / best


def needed_operations(job: Job, vocabulary: int) -> float:
    """Operations that training needs for all steps of the job; a backward pass takes twice those of its forward pass."""
    forward = sum(
        forward_operations(job.shape, vocabulary, new=2 * job.task_steps - stage, used=job.task_steps - stage)
        for stage in job.stages
    )
    return 3 * forward * job.batch * job.steps
