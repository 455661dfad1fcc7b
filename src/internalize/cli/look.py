"""`internalize report | watch`: runs on a page, and runs while they train."""

import time
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.live import Live
from rich.table import Table

from internalize.config import ID
from internalize.errors import UserError
from internalize.lm.report import write_lm_report
from internalize.lm.runs import is_lm_run
from internalize.lm.runs import load as load_lm
from internalize.report import write_report
from internalize.runs import Run, load
from internalize.terminal import terminal

SECONDS = 2.0  # between looks


@dataclass(frozen=True)
class Report:
    """Write one page about one run, or about several side by side; it opens offline."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """directories of runs, or one of a language model's run"""
    out: Path | None = None
    """the page; left out, report.html in the directory of a single run, or here"""
    open: bool = False
    """show it in the browser"""

    def __call__(self) -> None:
        """Write the page, and print where it is."""
        if not self.directories:
            raise UserError("name at least one run's directory.")
        of_lm = [directory for directory in self.directories if is_lm_run(directory)]
        if of_lm and len(self.directories) > 1:
            raise UserError(f"{of_lm[0]}: a language model's run has a page of its own; name it alone.")
        path = self.out or (self.directories[0] if len(self.directories) == 1 else Path()) / "report.html"
        try:
            if of_lm:
                write_lm_report(load_lm(of_lm[0]), path)
            else:
                write_report([self._finished(directory) for directory in self.directories], path)
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror}).") from None
        print(path)
        if self.open:
            webbrowser.open(path.resolve().as_uri())

    @staticmethod
    def _finished(directory: Path) -> Run:
        run = load(directory)
        if not run.seeds:
            raise UserError(f"{run.path}: no seed is finished yet, so there is nothing to report.")
        return run


@dataclass(frozen=True)
class Watch:
    """Watch runs while they train, here or in another terminal; it ends when no seed is left to finish."""

    directory: Annotated[Path, tyro.conf.Positional]
    """a run's directory, or a directory of runs"""
    once: bool = False
    """look once, and end"""

    def __call__(self) -> None:
        """Show a line for each seed, anew every two seconds."""
        console = terminal()
        if self.once:
            console.print(state(runs_in(self.directory))[0])
            return
        with Live(console=console, auto_refresh=False) as live:
            while True:
                table, unfinished = state(runs_in(self.directory))
                live.update(table, refresh=True)
                if not unfinished:
                    return
                time.sleep(SECONDS)


def runs_in(directory: Path) -> list[Run]:
    """The run in a directory, or all runs in its subdirectories. Raises `UserError` when there is none."""
    if is_lm_run(directory):
        raise UserError(
            f"{directory}: a language model's run is told where it trains; `internalize lm show` shows it afterwards."
        )
    if (directory / "config.json").exists():
        return [load(directory)]
    found = [path.parent for path in sorted(directory.glob("*/config.json")) if any(path.parent.glob("seed-*"))]
    if not found:
        raise UserError(f"{directory}: there is no run in it.")
    return [load(path) for path in found]


def state(runs: list[Run]) -> tuple[Table, int]:
    """A table with a line for each seed that was asked for, and the number of those that are not finished."""
    table = Table("run", "seed", "stage", "chain", "step", "loss", "ID", "OOD", "")
    unfinished = 0
    for run in runs:
        ood = run.config.test_splits()[1]
        for seed in sorted({*run.seeds, *run.unfinished}):
            done = seed in run.seeds
            unfinished += not done
            rows = run.metrics(seed)
            check: Any = next((row for row in reversed(rows) if row["kind"] == "check"), {})
            accuracy = {
                row["split"]: f"{row['accuracy']:.3f}"
                for row in rows
                if row["kind"] == "test" and row["mode"] == "stage" and row["moment"] == "adapted"
            }
            budget = run.config.schedule.budget
            stages = run.config.make_curriculum().stages(run.config.make_task().units)
            told = (
                [f"{check['stage'] + 1}/{stages}", check["shown"], f"{check['step']:,} of {budget:,}"] if check else ["-"] * 3
            )
            loss = "-" if check.get("loss") is None else f"{check['loss']:.3f}"
            words = [
                run.path.name,
                seed,
                *told,
                loss,
                accuracy.get(ID, "-"),
                accuracy.get(ood, "-"),
                "done" if done else "training" if rows else "waiting",
            ]
            table.add_row(*map(str, words))
    return table, unfinished
