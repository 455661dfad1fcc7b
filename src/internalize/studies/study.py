"""What a study is, how it is run, and how its rows become one table.

plan -> run -> collect: finished seeds are skipped, an interrupted study goes on, a seed that fails is tried once more and then
reported with its reason while the others go on. Rows are those of `internalize show --rows`, so that a study can be drawn from
its runs or from a committed file of rows.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars

from internalize import own_code
from internalize.api import configure, train
from internalize.checkpoint import write_whole
from internalize.config import ID, RunConfig
from internalize.engine.settings import flat
from internalize.errors import UserError
from internalize.evaluation import SUCCESS
from internalize.launch import Plan, make_plan
from internalize.report import render_page
from internalize.runs import Run

MEASURED = {"steps", "seed", "shown", "split", "mode", "accuracy"}  # columns of a study that are no settings

Scale = Literal["laptop", "paper"]
Cells = Callable[[Scale], list[RunConfig]]


@dataclass(frozen=True)
class Figure:
    """One figure or table: a title, what it shows in words, a chart as SVG, a table, or both."""

    title: str
    text: str = ""
    chart: str = ""
    table: polars.DataFrame | None = None


@dataclass(frozen=True)
class Study:
    """A question, the runs that answer it, and how their outcome is drawn.

    Attributes:
        name: what the command calls it.
        title: the question.
        claim: what the paper says; an account of the paper is called one.
        unit: the unit of analysis.
        cells: the configurations at a scale.
        draw: figures from the outcomes (`outcomes`) and the stage curves (`curves`).
        seeds: how many at a scale, unless told.
    """

    name: str
    title: str
    claim: str
    unit: str
    cells: Cells
    draw: Callable[[polars.DataFrame, polars.DataFrame], list[Figure]]
    seeds: Mapping[Scale, int]

    def runs(self, scale: Scale, out: Path) -> list[Run]:
        """Its runs, in `out`."""
        return [Run(out / config.name(), config) for config in self.cells(scale)]


@dataclass(frozen=True)
class Cost:
    """What is left to do of a study."""

    cells: int
    seeds: int
    unfinished: int
    core_hours: float  # at most: if every seed needs its whole budget

    def text(self, processes: int) -> str:
        """One line for people."""
        return (
            f"{self.cells} cells, {self.seeds} seeds each; {self.unfinished} seeds are left to train: at most "
            f"{self.core_hours:.1f} core-hours, {self.core_hours / processes:.1f} hours on {processes} core(s)."
        )


def cost(study: Study, scale: Scale, seeds: Sequence[int], out: Path, told: Callable[[int, int], None]) -> Cost:
    """What a study will cost at most; a few steps of each shape that is not finished are timed, on one core."""
    runs = study.runs(scale, out)
    plans: dict[str, Plan] = {}
    seconds, unfinished = 0.0, 0
    for number, run in enumerate(runs):
        left = len(set(seeds) - set(run.seeds))
        unfinished += left
        if left:
            shape = _shape(run.config)
            if shape not in plans:
                plans[shape] = make_plan(run.config, 1, 1)
            seconds += left * plans[shape].seconds
        told(number + 1, len(runs))
    return Cost(len(runs), len(seeds), unfinished, seconds / 3600)


def _shape(config: RunConfig) -> str:
    """Cells of equal cost: those that differ in nothing but the learning rate and the names of equally large groups."""
    task = config.make_task()
    values = dataclasses.asdict(config) | {"task": (task.longest, len(task.tokens), len(task.alphabet))}
    values["optimizer"] = {**values["optimizer"], "lr": 0}
    return json.dumps(values, sort_keys=True, default=str)


def run_study(
    study: Study,
    scale: Scale,
    seeds: Sequence[int],
    out: Path,
    **how: Any,
) -> list[Run]:
    """Train what is not finished; return all runs. Seeds that fail are tried once more. `how`: as for `train`.

    Raises:
        UserError: at the end, with the reason of every seed that failed twice; all others are finished then.
    """
    runs = study.runs(scale, out)
    try:
        train(runs, seeds, plan=False, **how)
    except UserError:
        train(runs, seeds, plan=False, **how)
    return runs


# -- rows ----------------------------------------------------------------------------------------------------------------


def rows_of(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """The rows of the finished seeds of several runs."""
    return [row for run in runs if run.seeds for row in run.rows()]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows from a file with one JSON object a line. Raises `UserError`."""
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            row["settings"], row["accuracy"], row["curve"]
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path}, line {number}: this is not a row of `internalize show --rows`.") from None
        rows.append(row)
    return rows


def outcomes(rows: Sequence[Mapping[str, Any]]) -> polars.DataFrame:
    """One line for each seed, mode and split: settings, accuracy and success, steps, seconds, and where it comes from."""
    lines = []
    runs: dict[str, dict[str, Any]] = {}
    for row in rows:
        about = _about(row, runs)
        for mode, splits in row["accuracy"].items():
            for split, accuracy in splits.items():
                lines.append({**about, "mode": mode, "split": split, "accuracy": accuracy, "success": accuracy > SUCCESS})
    return _with_settings(lines, runs)


def curves(rows: Sequence[Mapping[str, Any]]) -> polars.DataFrame:
    """One line for each seed, stage and split: settings, the number of units shown, and accuracy after adaptation."""
    lines = []
    runs: dict[str, dict[str, Any]] = {}
    for row in rows:
        about = _about(row, runs)
        for stage in row["curve"]:
            for split, accuracy in stage["accuracy"].items():
                lines.append({**about, "shown": stage["shown"], "at": stage["step"], "split": split, "accuracy": accuracy})
    return _with_settings(lines, runs)


def _with_settings(lines: list[dict[str, Any]], runs: Mapping[str, dict[str, Any]]) -> polars.DataFrame:
    """`lines` with the settings of each one's run."""
    settings = polars.DataFrame(list({values["run"]: values for values in runs.values()}.values()), infer_schema_length=None)
    frame = polars.DataFrame(lines, infer_schema_length=None)
    return frame.join(settings, on="run", how="left", maintain_order="left") if lines else frame


def _about(row: Mapping[str, Any], runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Whose row it is, and its circumstances; `runs` remembers the settings that were seen."""
    key = json.dumps(row["settings"], sort_keys=True)
    if key not in runs:
        runs[key] = _settings(row["settings"])
    return {
        "run": runs[key]["run"],
        **{name: row[name] for name in ("seed", "parameters", "steps", "seconds")},
        "left": still_shown(row),
        "commit": row.get("commit"),
        "cores": row.get("machine", {}).get("cores"),
        "headline": next((split for split in next(iter(row["accuracy"].values())) if split != ID), ID),
    }


def still_shown(row: Mapping[str, Any]) -> int | None:
    """The units that the final model still writes: those of the last stage that left its weights. Rows of earlier versions may
    have points of stages beyond it, and number none.
    """
    last = row.get("stages_reached", len(row["curve"])) - 1
    return next((point["shown"] for at, point in enumerate(row["curve"]) if point.get("stage", at) == last), None)


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a configuration: the names that studies use, and every setting by its own name, and by the last part of
    it where no other is called so. Of a task or a curriculum in somebody's file that need not lie here, the name is enough.
    """
    own = {name: value for name, value in settings.items() if name in ("task", "curriculum") and own_code.is_own(value)}
    unread = {*own, *(("inputs", "validation", "evaluation") if "task" in own else ())}  # these speak of the task's symbols
    config = configure(RunConfig(), **{name: value for name, value in settings.items() if name not in unread})
    values = dict(flat(dataclasses.asdict(config))) | dict(flat({name: settings[name] for name in unread if name in settings}))
    last = Counter(name.rpartition(".")[2] for name in values)
    short = {name.rpartition(".")[2]: value for name, value in values.items() if last[name.rpartition(".")[2]] == 1}
    told = {
        "run": config.hash() + "".join(value.partition("@")[2] for value in own.values()),
        "task": own_code.short(own.get("task", config.task_name)),
        "T": config.steps,
        "curriculum": own_code.short(values["curriculum"]),
        "positions": config.model.positions if config.position_ids == "compacted" else f"{config.model.positions}, kept",
        "budget": config.schedule.budget,
    }
    every = {name: value for name, value in {**values, **short}.items() if name not in MEASURED} | told
    return {name: ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value for name, value in every.items()}


# -- the page ------------------------------------------------------------------------------------------------------------


def draw(study: Study, rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write the study's page, and beside it its outcomes as Parquet. Raises `UserError` when there are no rows."""
    if not rows:
        raise UserError(f"{study.name}: no seed is finished yet; run the study first.")
    frame = outcomes(rows)
    figures = study.draw(frame, curves(rows))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        page = render_page("study.html", "internalize.studies", study=study, figures=figures, commands=commands(rows))
        write_whole(path, page.encode())
        frame.write_parquet(path.with_suffix(".parquet"))
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).") from None
    return path


def commands(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The commands that made the rows, one for each."""
    return list(dict.fromkeys(str(row["command"]) for row in rows))
