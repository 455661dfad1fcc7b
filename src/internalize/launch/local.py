"""Runs seeds side by side on this machine: one process of one thread for each core.

One thread a process makes a seed's result independent of how many run beside it, and small models gain nothing from more.
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


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_jobs(
    jobs: Sequence[Job],
    on_event: Callable[[Job, Event], None],
    processes: int | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> None:
    """Train all jobs that are not finished, in their order, and report each event with its job.

    A job that fails does not stop the others. Raises `UserError` with every failure at the end. When interrupted, workers
    are ended; what they had saved stays.
    """
    waiting = [job for job in jobs if not job.finished]
    processes = processes or max(1, cores() // threads)
    events: queue.Queue[tuple[Job, Event]] = queue.Queue()
    failures: list[str] = []
    with _workers() as running:
        while waiting or running:
            while waiting and len(running) < processes:
                job = waiting.pop(0)
                running[job] = _start(job, threads, device, events)
            job, event = events.get()
            if event["kind"] == "end":
                running.pop(job)
            elif event["kind"] == "error":
                failures.append(event["message"])
            on_event(job, event)
    if failures:
        raise UserError(" ".join(failures))


@contextmanager
def _workers() -> Iterator[dict[Job, "subprocess.Popen[str]"]]:
    """The running workers; none outlives the block."""
    running: dict[Job, subprocess.Popen[str]] = {}
    try:
        yield running
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _start(job: Job, threads: int, device: str, events: "queue.Queue[tuple[Job, Event]]") -> "subprocess.Popen[str]":
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by the thread that reads it
    process = subprocess.Popen(
        [sys.executable, "-m", "internalize.launch.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends its workers
    )
    assert process.stdin is not None
    description = {"config": job.config.to_json(), "seed": job.seed, "directory": str(job.directory.resolve())}
    process.stdin.write(json.dumps({**description, "threads": threads, "device": device}) + "\n")
    process.stdin.flush()  # and left open: its end tells the worker that its parent is gone
    threading.Thread(target=_listen, args=(job, process, errors, events), daemon=True).start()
    return process


def _listen(job: Job, process: "subprocess.Popen[str]", errors: IO[str], events: "queue.Queue[tuple[Job, Event]]") -> None:
    """Pass a worker's events on; then say how it ended."""
    assert process.stdout is not None
    failed = False
    for line in process.stdout:
        event = json.loads(line)
        failed |= event["kind"] == "error"
        events.put((job, event))
    code = process.wait()
    if code and not failed:
        errors.seek(0)
        why = f"by signal {-code}" if code < 0 else f"with exit code {code}: {errors.read().strip() or 'no message'}"
        message = f"{job.label}: the training process ended {why}; run the same command again to resume."
        events.put((job, {"kind": "error", "message": message}))
    errors.close()
    process.stdout.close()
    if process.stdin is not None:
        process.stdin.close()
    events.put((job, {"kind": "end"}))
