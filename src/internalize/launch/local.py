"""Runs seeds side by side on this machine.

On a CPU: one process of one thread for each core. One thread a process makes a seed's result independent of how many run
beside it, and small models gain nothing from more. On a GPU: one process that trains many seeds of a configuration at once.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
Worker = tuple["subprocess.Popen[str]", IO[str]]  # and its events, on a pipe of their own that nothing else writes to


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
            if event["kind"] == "closed":
                running.pop(group)
            elif event["kind"] == "error":
                failures.append(event["message"])
            tell(group, event, on_event)
    if failures:
        raise UserError(" ".join(failures))


def tell(group: Group, event: Event, on_event: Callable[[Job, Event], None]) -> None:
    """Report an event of a process to the job whose seed it names, or to all of the group; what it printed, to the first."""
    for job in group[:1] if event["kind"] == "said" else group:
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
    receiving, sending = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "internalize.launch.worker", str(sending)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=[sending],
        start_new_session=True,  # Ctrl-C reaches the parent alone, which then ends its workers
    )
    os.close(sending)
    assert process.stdin is not None
    process.stdin.write(json.dumps(work) + "\n")
    process.stdin.flush()  # and left open: its end tells the worker that its parent is gone
    return process, os.fdopen(receiving, encoding="utf-8", errors="replace")


def listen(worker: Worker, label: str) -> Iterator[Event]:
    """A worker's events, with each line that it prints as an event "said", and at its end an error if it ended without
    having done its work or having told why.
    """
    process, events = worker
    assert process.stdout is not None and process.stdin is not None
    lines: queue.Queue[tuple[IO[str], str]] = queue.Queue()
    sources = [process.stdout, events]
    for source in sources:
        threading.Thread(target=_read, args=(source, lines), daemon=True).start()
    last_said, failed, done = "no message", False, False
    while sources:
        source, line = lines.get()
        if not line:
            sources.remove(source)
            source.close()
        elif source is process.stdout:
            last_said = line.strip() or last_said
            yield {"kind": "said", "text": line.rstrip("\n")}
        elif (event := _event(line)) is None:
            failed = True
            process.kill()
            yield {
                "kind": "error",
                "message": f"{label}: the training process sent {line.strip()[:80]!r}, which is no event; own code must not "
                "write to descriptors that it did not open.",
            }
        else:
            failed |= event["kind"] == "error"
            done |= event["kind"] == "done"
            if event["kind"] != "done":
                yield event
    process.stdin.close()
    code = process.wait()
    if not failed and (code or not done):
        why = f"by signal {-code}" if code < 0 else f"with exit code {code} ({last_said})"
        yield {"kind": "error", "message": f"{label}: the training process ended {why}; run the same command again to resume."}


def _read(source: Iterable[str], lines: "queue.Queue[tuple[Any, str]]") -> None:
    """Pass on the lines of a pipe, and at its end an empty one."""
    for line in source:
        lines.put((source, line))
    lines.put((source, ""))


def _event(line: str) -> dict[str, Any] | None:
    """The event in a line; None where there is none."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("kind"), str) else None


def _pass_on(group: Group, worker: Worker, events: "queue.Queue[tuple[Group, Event]]") -> None:
    label = ", ".join(job.label for job in group)
    try:
        for event in listen(worker, label):
            events.put((group, event))
    except Exception as error:  # in a thread nobody would see it, and the run would wait for ever
        events.put((group, {"kind": "error", "message": f"{label}: its process cannot be heard ({error!r})."}))
    finally:
        events.put((group, {"kind": "closed"}))
