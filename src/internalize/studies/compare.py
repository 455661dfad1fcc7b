"""The method benchmark: fixed tasks, budgets and splits, on which any curriculum gets a comparable row (ours)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars

from internalize.config import RunConfig
from internalize.curricula import RemovalConfig
from internalize.errors import UserError
from internalize.studies.common import CHAIN, DIRECT, INSIDE, MAIN, OUTSIDE, SHORT, SMALL, config, splits, success_figures
from internalize.studies.study import Figure, Scale, Study

METHODS = ("left", "left:2", "right", "inductive", "mixture", "e2e")
LAPTOP = (
    ("C2", 10, 1),
    ("C3", 8, 1),
    ("C4", 8, 1),
    ("S3", 6, 2),
)  # task, T, layers; S_3 fails with one layer on the pilot seeds
PAPER = (("C3", 15, 4), ("C5", 15, 4), ("S3", 15, 4), ("C3", 25, 4))
METHOD = ("curriculum", "hint", "removed", "smoothing", "replay")  # the columns of outcomes that say what a method is


def cells(scale: Scale, methods: Sequence[str] = METHODS, removal: RemovalConfig | None = None) -> list[RunConfig]:
    """Every task with every method: a curriculum, and how it removes."""
    laptop = scale == "laptop"
    return [
        config(
            scale,
            replace(SMALL if laptop else MAIN, layers=layers),
            task=task,
            steps=steps,
            curriculum=method,
            removal=removal or RemovalConfig(),
            evaluation=splits(task),
            **(SHORT if laptop else {}),
        )
        for method in dict.fromkeys(methods)
        for task, steps, layers in (LAPTOP if laptop else PAPER)
    ]


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """One row for each method, the best first; then each task."""
    names = polars.struct(METHOD).map_elements(_name, polars.String)
    frame = outcomes.with_columns(method=names, task=polars.format("{}, T = {}", "task", "T"))
    success = polars.col("success")
    by_task = frame.group_by("method", "task").agg(
        seeds=polars.col("seed").n_unique(),
        ID=success.filter(DIRECT & INSIDE).mean(),
        OOD=success.filter(DIRECT & OUTSIDE).mean(),
        chain=success.filter(CHAIN & INSIDE).mean(),
        steps=polars.col("steps").mean(),
    )
    methods = (
        by_task.group_by("method")
        .agg(
            polars.len().alias("tasks"),
            polars.col("seeds").min(),
            polars.col("ID", "OOD", "chain").mean().round(2),
            polars.col("steps").mean().cast(polars.Int64),
        )
        .sort("ID", "OOD", "method", descending=[True, True, False])
    )
    table = Figure(
        "Each method",
        "The share of seeds that succeed (more than 95 % right on inputs that were never trained on), averaged over the tasks: "
        "without a chain in (ID) and out of distribution (OOD), and with the full chain (chain). Steps: those that were taken.",
        table=methods,
    )
    return [table, *success_figures(frame, "Each task", "task", "method")]


def _name(method: dict[str, object]) -> str:
    """What people call a method: "left", or "left, replay 0.3"."""
    usual = RemovalConfig()
    options = [f"{name} {value}" for name, value in method.items() if name != "curriculum" and value != getattr(usual, name)]
    return ", ".join([str(method["curriculum"]), *options]).replace("hint True", "hint")


STUDY = Study(
    name="compare",
    title="Which curriculum succeeds on which task, at equal budgets?",
    claim="Ours. (The paper: left beats right, inductive beats left at one layer, the mixture does as well as the curriculum.)",
    unit="seed, for each task; the mean over tasks has no interval",
    cells=cells,
    draw=draw,
    seeds={"laptop": 5, "paper": 30},
)


def benchmark(methods: Sequence[str], removal: RemovalConfig) -> Study:
    """The benchmark of these curricula, "mine.py:MyCurriculum" included, which all remove as `removal` says."""
    return replace(STUDY, cells=partial(cells, methods=methods, removal=removal))


def comparable(rows: Sequence[dict[str, Any]], scale: Scale, file: Path) -> list[dict[str, Any]]:
    """Rows of the benchmark that were made elsewhere. Raises `UserError` for one that is not of it, with its line in `file`."""
    known = [_without_method(json.loads(json.dumps(cell.changed()))) for cell in cells(scale, METHODS[:1])]
    for number, row in enumerate(rows, 1):
        if _without_method(row["settings"]) not in known:
            raise UserError(
                f"{file}, line {number}: this row is not of the benchmark at {scale} scale (its settings differ in more than "
                "the curriculum); give a file that `internalize compare --rows` wrote."
            )
    return list(rows)


def _without_method(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in ("curriculum", "removal")}
