"""What a study is, how it is run, and how its rows become one table.

plan -> run -> collect: finished seeds are skipped, an interrupted study goes on, a seed that fails is tried once more and then
reported with its reason while the others go on. Rows are those of `internalize show --rows`, so that a study can be drawn from
its runs or from a committed file of rows.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import polars

from internalize.api import configure, train
from internalize.checkpoint import write_whole
from internalize.config import RunConfig
from internalize.errors import UserError
from internalize.evaluation import SUCCESS, wilson
from internalize.launch import Plan, make_plan
from internalize.report import render_page
from internalize.runs import Run

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
    configs: dict[str, dict[str, Any]] = {}
    for row in rows:
        about = _about(row, configs)
        for mode, splits in row["accuracy"].items():
            for split, accuracy in splits.items():
                lines.append({**about, "mode": mode, "split": split, "accuracy": accuracy, "success": accuracy > SUCCESS})
    return polars.DataFrame(lines, infer_schema_length=None)


def curves(rows: Sequence[Mapping[str, Any]]) -> polars.DataFrame:
    """One line for each seed, stage and split: the number of units shown, and accuracy after adaptation."""
    lines = []
    configs: dict[str, dict[str, Any]] = {}
    for row in rows:
        about = _about(row, configs)
        for stage in row["curve"]:
            for split, accuracy in stage["accuracy"].items():
                lines.append({**about, "shown": stage["shown"], "at": stage["step"], "split": split, "accuracy": accuracy})
    return polars.DataFrame(lines, infer_schema_length=None)


def _about(row: Mapping[str, Any], configs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Settings and circumstances of a row; `configs` remembers the settings that were seen."""
    key = json.dumps(row["settings"], sort_keys=True)
    if key not in configs:
        configs[key] = _settings(row["settings"])
    return {
        **configs[key],
        **{name: row[name] for name in ("seed", "parameters", "steps", "seconds")},
        "left": row["curve"][-1]["shown"] if row["curve"] else None,
        "commit": row.get("commit"),
        "cores": row.get("machine", {}).get("cores"),
    }


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a configuration. Of a curriculum in somebody's file that need not lie here, the name is enough."""
    curriculum, _, digest = settings.get("curriculum", RunConfig.curriculum).partition("@")
    config = configure(RunConfig(), **{**settings, "curriculum": RunConfig.curriculum if digest else curriculum})
    model, optimizer = config.model, config.optimizer
    return {
        "run": config.hash() + digest,
        "task": config.task_name,
        "T": config.steps,
        "curriculum": curriculum.rpartition("/")[2],
        **{name: getattr(config, name) for name in ("inputs", "labels")},
        **{name: getattr(model, name) for name in ("layers", "width", "heads", "mlp")},
        "positions": model.positions if config.position_ids == "compacted" else f"{model.positions}, kept",
        **{name: getattr(config.removal, name) for name in ("hint", "removed", "smoothing", "replay")},
        **{name: getattr(optimizer, name) for name in ("reset", "beta2", "lr", "batch")},
        "budget": config.schedule.budget,
        "headline": config.test_splits()[1],
    }


def success_table(frame: polars.DataFrame, *by: str) -> polars.DataFrame:
    """Seeds that succeed, for each group: in and out of distribution (the headline split), with Wilson's 95 % intervals."""
    lines = []
    for key, group in frame.group_by(by, maintain_order=True):
        line: dict[str, Any] = dict(zip(by, key, strict=True))
        for name, chosen in (("ID", polars.col("split") == "uniform"), ("OOD", polars.col("split") == polars.col("headline"))):
            part = group.filter(chosen)
            wins, seeds = int(part["success"].sum()), len(part)
            low, high = wilson(wins, seeds)
            line |= {
                f"{name} success": f"{wins}/{seeds} [{low:.2f}, {high:.2f}]",
                f"{name} accuracy": round(float(part["accuracy"].mean() or 0), 3),  # type: ignore[arg-type]
            }
        line["steps"] = int(group["steps"].mean() or 0)  # type: ignore[arg-type]
        lines.append(line)
    return polars.DataFrame(lines)


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
