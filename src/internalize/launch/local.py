"""Runs seeds side by side on this machine.

On a CPU: one process of one thread for each core. One thread a process makes a seed's result independent of how many run
beside it, and small models gain nothing from more. On a GPU: one process that trains many seeds of a configuration at once.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from internalize.config import RunConfig
from internalize.errors import UserError

TOGETHER = 32  # seeds that one process trains at once on a GPU

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """One seed to train; `label` names it to people."""

    label: str
    config: RunConfig
    seed: int
    directory: Path

    @property
    def finished(self) -> bool:
        return (self.directory / "result.json").exists()


Group = tuple[Job, ...]  # seeds of one configuration, trained by one process
Worker = tuple["subprocess.Popen[str]", IO[str]]  # and what it writes on standard error


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(
    jobs: Sequence[Job],
    on_event: Callable[[Job, Event], None],
    processes: int | None = None,
    threads: int = 1,
    device: str = "cpu",
    together: int | None = None,
) -> None:
    """Train all jobs that are not finished, in their order, and report each event with its job.

    A process trains up to `together` seeds of one configuration at once. Left out, that is 1 on a CPU, where it gains
    little (docs/performance.md), and 32 in a single process elsewhere. A job that fails does not stop the others. Raises
    `UserError` with every failure at the end. When interrupted, workers are ended; what they had saved stays.
    """
    on_cpu = device == "cpu"
    waiting = grouped(jobs, device, together)
    processes = processes or (max(1, cores() // threads) if on_cpu else 1)
    events: queue.Queue[tuple[Group, Event]] = queue.Queue()
    failures: list[str] = []
    with _workers() as running:
        while waiting or running:
            while waiting and len(running) < processes:
                group = waiting.pop(0)
                worker = start(work_of(group, threads, device))
                running[group] = worker[0]
                threading.Thread(target=_pass_on, args=(group, worker, events), daemon=True).start()
            group, event = events.get()
            if event["kind"] == "end":
                running.pop(group)
            elif event["kind"] == "error":
                failures.append(event["message"])
            tell(group, event, on_event)
    if failures:
        raise UserError(" ".join(failures))


def tell(group: Group, event: Event, on_event: Callable[[Job, Event], None]) -> None:
    """Report an event of a process to the job whose seed it names, or to all of the group."""
    for job in group:
        if event.get("seed", job.seed) == job.seed:
            on_event(job, event)


@contextmanager
def _workers() -> Iterator[dict[Group, "subprocess.Popen[str]"]]:
    """The running workers; none outlives the block."""
    running: dict[Group, subprocess.Popen[str]] = {}
    try:
        yield running
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def grouped(jobs: Sequence[Job], device: str, together: int | None) -> list[Group]:
    """Unfinished jobs of one configuration in groups that one process trains, in their order."""
    together = together or (1 if device == "cpu" else TOGETHER)
    by_config: dict[str, list[Job]] = {}
    for job in jobs:
        if not job.finished:
            by_config.setdefault(json.dumps(job.config.to_json()), []).append(job)
    return [tuple(some[start : start + together]) for some in by_config.values() for start in range(0, len(some), together)]


def work_of(group: Group, threads: int, device: str) -> dict[str, Any]:
    """What a worker is asked to do, as JSON."""
    seeds = [{"seed": job.seed, "directory": str(job.directory.resolve())} for job in group]
    label = ", ".join(job.label for job in group)
    return {"label": label, "config": group[0].config.to_json(), "seeds": seeds, "threads": threads, "device": device}


def start(work: Mapping[str, Any]) -> Worker:
    """Start a process that does `work`. It ends with the process that started it."""
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `listen`
    process = subprocess.Popen(
        [sys.executable, "-m", "internalize.launch.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends its workers
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(work) + "\n")
    process.stdin.flush()  # and left open: its end tells the worker that its parent is gone
    return process, errors


def listen(worker: Worker, label: str) -> Iterator[Event]:
    """A worker's events, and at its end an error if it ended without one."""
    process, errors = worker
    assert process.stdout is not None
    failed = False
    for line in process.stdout:
        event = json.loads(line)
        failed |= event["kind"] == "error"
        yield event
    code = process.wait()
    if code and not failed:
        errors.seek(0)
        why = f"by signal {-code}" if code < 0 else f"with exit code {code}: {errors.read().strip() or 'no message'}"
        yield {"kind": "error", "message": f"{label}: the training process ended {why}; run the same command again to resume."}
    errors.close()
    process.stdout.close()
    if process.stdin is not None:
        process.stdin.close()


def _pass_on(group: Group, worker: Worker, events: "queue.Queue[tuple[Group, Event]]") -> None:
    for event in listen(worker, ", ".join(job.label for job in group)):
        events.put((group, event))
    events.put((group, {"kind": "end"}))
