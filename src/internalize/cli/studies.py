"""`internalize study list | run | draw` and `internalize compare`."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from internalize.cli.runs import How, consecutive, progress_bar
from internalize.curricula import RemovalConfig
from internalize.errors import UserError
from internalize.launch import cores
from internalize.studies import find, studies
from internalize.studies.compare import benchmark, comparable
from internalize.studies.study import Scale, Study, cost, curves, draw, outcomes, read_rows, rows_of, run_study
from internalize.terminal import terminal

PILOT = 1000  # seeds from here on are for choosing settings (docs/protocol.md)


@dataclass(frozen=True)
class List:
    """The studies: what each asks, and how many cells it has."""

    json: bool = False
    """print one JSON object instead of a table"""

    def __call__(self) -> None:
        """Print them."""
        every = studies()
        if self.json:
            print(json.dumps({name: {"title": study.title, "claim": study.claim} for name, study in every.items()}))
            return
        table = Table("study", "question", "cells", "seeds")
        for name, study in every.items():
            scales: tuple[Scale, ...] = ("laptop", "paper")
            cells = ", ".join(f"{len(study.cells(scale))} {scale}" for scale in scales)
            table.add_row(name, study.title, cells, ", ".join(f"{study.seeds[scale]}" for scale in scales))
        terminal().print(table)


@dataclass(frozen=True, kw_only=True)
class Sweep(How):
    """How to train every cell of a study, and what becomes of its rows."""

    scale: Scale = "laptop"
    """laptop, or the paper's models and lengths"""
    seeds: int | None = None
    """seeds of each cell; left out, as many as the study asks for"""
    first_seed: int = 0
    """the first of them"""
    dry_run: bool = False
    """only say what it would cost"""
    out: Path = Path("runs")
    """directory of all runs; the page goes to OUT/studies/NAME.html"""
    rows: Path | None = None
    """also write the rows to this file, to be kept as a result"""

    def sweep(self, study: Study) -> list[dict[str, Any]] | None:
        """Say what the study costs and train it; its rows, or None after a dry run."""
        seeds = consecutive(study.seeds[self.scale] if self.seeds is None else self.seeds, self.first_seed)
        how = self.how()
        console = terminal(stderr=True)
        with progress_bar("timing") as told:
            needed = cost(study, self.scale, seeds, self.out, told)
        console.print(f"{study.title}\n{needed.text(self.processes or cores())}")
        if self.dry_run:
            return None
        runs = run_study(study, self.scale, seeds, self.out, **how)
        found = [row for row in rows_of(runs) if row["seed"] in seeds]  # pilot seeds may lie beside them
        if self.rows is not None:
            self.rows.parent.mkdir(parents=True, exist_ok=True)
            self.rows.write_text("".join(f"{json.dumps(row)}\n" for row in found), encoding="utf-8")
        return found

    def page(self, study: Study) -> Path:
        """Where the study's page is written."""
        return self.out / "studies" / f"{study.name}.html"


@dataclass(frozen=True)
class RunStudy(Sweep):
    """Train every cell of a study, or go on where it was interrupted, and draw it."""

    name: Annotated[str, tyro.conf.Positional]
    """which study; see `internalize study list`"""

    def __call__(self) -> None:
        """Say what it costs, train, draw."""
        study = find(self.name)
        found = self.sweep(study)
        if found is not None:
            print(draw(study, found, self.page(study)))


@dataclass(frozen=True)
class Compare(Sweep):
    """Compare curricula, your own included, on fixed tasks at equal budgets: one row for each method."""

    curricula: Annotated[tuple[str, ...], tyro.conf.Positional]
    """such as left, inductive, or mine.py:MyCurriculum"""
    removal: RemovalConfig = field(default_factory=RemovalConfig)
    against: Path | None = None
    """rows of other methods (a file of --rows), to be shown beside"""
    json: bool = False
    """print the rows of the table as one JSON list"""

    def __call__(self) -> None:
        """Say what it costs, train, print the table and where the page is."""
        if not self.curricula:
            raise UserError("name at least one curriculum, such as left or mine.py:MyCurriculum.")
        study = benchmark(self.curricula, self.removal)
        others = [] if self.against is None else comparable(read_rows(self.against), self.scale, self.against)
        found = self.sweep(study)
        if found is None:
            return
        page = draw(study, [*found, *others], self.page(study))
        table = study.draw(outcomes([*found, *others]), curves(found))[0]
        assert table.table is not None
        if self.json:
            print(json.dumps(table.table.to_dicts()))
            return
        shown = Table(*table.table.columns, title=f"{table.title}, {self.scale} scale", caption=table.text)
        for line in table.table.rows():
            shown.add_row(*map(str, line))
        terminal().print(shown, f"Each task and each seed: {page}")


@dataclass(frozen=True)
class Draw:
    """Draw a study again, from its runs or from a file of rows."""

    name: Annotated[str, tyro.conf.Positional]
    """which study"""
    scale: Scale = "laptop"
    """of its runs"""
    rows: Path | None = None
    """rows of `internalize show --rows` to draw instead of the runs"""
    first_seed: int = 0
    """the first seed that counts"""
    pilot: bool = False
    """also count seeds from 1000 on, on which settings are chosen"""
    out: Path = Path("runs")
    """directory of all runs; the page goes to OUT/studies/NAME.html"""

    def __call__(self) -> None:
        """Draw, and print where the page is."""
        study = find(self.name)
        found = rows_of(study.runs(self.scale, self.out)) if self.rows is None else read_rows(self.rows)
        found = [row for row in found if row["seed"] >= self.first_seed and (self.pilot or row["seed"] < PILOT)]
        print(draw(study, found, self.out / "studies" / f"{study.name}.html"))
