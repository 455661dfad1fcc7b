"""Live progress on standard error: one line for each seed that is running."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from internalize.config import ID
from internalize.launch.local import Job
from internalize.launch.plan import duration


@dataclass
class Line:
    """What is known of one seed."""

    budget: int
    headline: str  # the OOD split that is shown
    task: TaskID
    stage: str = "-"
    shown: str = "-"
    step: int = 0
    loss: str = "-"
    id: str = "-"
    ood: str = "-"
    left: str = "-"

    def update(self, event: Mapping[str, Any]) -> None:
        """Take in one event of the seed."""
        if event["kind"] == "check":
            self.stage, self.shown = f"{event['stage'] + 1}/{event['stages']}", str(event["shown"])
            self.step = event["step"]
            self.loss = "-" if event["loss"] is None else f"{event['loss']:.3f}"
            if ID in event["validation"]:
                self.id = f"{event['validation'][ID]:.3f}"
            if self.step and event["seconds"]:
                self.left = "≤ " + duration((self.budget - self.step) * event["seconds"] / self.step)
        elif event["kind"] == "test" and event["mode"] == "stage":
            if event["split"] == ID:
                self.id = f"{event['accuracy']:.3f}"
            elif event["split"] == self.headline:
                self.ood = f"{event['accuracy']:.3f}"


class Display:
    """Receives the events of all seeds and shows them, as moving lines on a terminal, else as one line a stage."""

    def __init__(self, console: Console, progress: Progress) -> None:
        self.console, self.progress = console, progress
        self.lines: dict[Job, Line] = {}

    def add(self, job: Job) -> None:
        """Announce a seed."""
        budget = job.config.schedule.budget
        task = self.progress.add_task(job.label, total=budget, text="waiting")
        self.lines[job] = Line(budget, job.config.test_splits()[1], task)

    def __call__(self, job: Job, event: Mapping[str, Any]) -> None:
        """Show one event of a seed."""
        line = self.lines[job]
        if event["kind"] == "said":  # whatever printed in its process, such as a print() in a curriculum of one's own
            self.console.print(f"{job.label}: {event['text']}", soft_wrap=True)
        elif event["kind"] == "result":
            took = f"done: {event['steps']:,} steps in {duration(event['seconds'])}"
            self.progress.update(line.task, completed=line.budget, text=took)
            if not self.console.is_terminal:
                self.console.print(f"{job.label}: {took}")
        elif event["kind"] == "error":
            self.progress.update(line.task, text="failed")
        elif event["kind"] in ("check", "test"):
            line.update(event)
            text = f"stage {line.stage}  chain {line.shown}  step {line.step:,}  loss {line.loss}  ID {line.id}  OOD {line.ood}"
            self.progress.update(line.task, completed=line.step, text=f"{text}  {line.left} left")
            stage_over = event.get("moment") == "adapted" and event["split"] == line.headline and event["mode"] == "stage"
            if stage_over and not self.console.is_terminal:
                self.console.print(f"{job.label}: {text}")


@contextmanager
def display(console: Console) -> Iterator[Display]:
    """A display that is live inside the block."""
    columns = TextColumn("{task.description}", markup=False), BarColumn(16), TextColumn("{task.fields[text]}", markup=False)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield Display(console, progress)
