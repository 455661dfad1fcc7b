"""What several studies share: the paper's model, the laptop's models, and charts of success rates."""

from collections.abc import Sequence
from typing import Any

import polars

from internalize.config import EvaluationConfig, OptimizerConfig, RunConfig
from internalize.curricula import Schedule
from internalize.evaluation import wilson
from internalize.models import ModelConfig
from internalize.report.charts import Series, accuracy_chart
from internalize.studies.study import Figure, Scale, success_table

OOD = "biased:1:0.8"  # p = 0.8 is the paper's account's; which symbol is ours
MAIN = ModelConfig(layers=4, width=512, heads=128, mlp=2048)  # the paper's main model
WIDE = ModelConfig(layers=1, width=256, heads=64, mlp=512)  # at which plain left with uniform inputs succeeds for some seeds
SMALL = ModelConfig(layers=1, width=128, heads=32)  # with SHORT: the settings of Figure 1's pilot
SHORT = {
    "optimizer": OptimizerConfig(lr=5e-4, batch=64),
    "schedule": Schedule(budget=6000, stage_budget=1500, exhausted="rollback"),
}
COLORS = ("a", "b", "d", "c")


def config(scale: Scale, model: ModelConfig | None = None, **fields: Any) -> RunConfig:
    """One cell. Batch, learning rate and budgets are ours at either scale; fields of `RunConfig` may be given."""
    laptop = scale == "laptop"
    default: dict[str, Any] = {
        "model": model or (WIDE if laptop else MAIN),
        "optimizer": OptimizerConfig(lr=5e-4 if laptop else 2e-4),
        "schedule": Schedule(budget=8000, stage_budget=2500, exhausted="stop")
        if laptop
        else Schedule(budget=100_000, stage_budget=10_000, exhausted="stop"),
        "evaluation": EvaluationConfig(splits=(OOD, "biased:0:0.8", "sticky:0.8")),
    }
    return RunConfig(**{**default, **fields})


def splits(task: str) -> EvaluationConfig:
    """The splits of a task whose symbols are not 0, 1, ...: the headline and sticky."""
    return EvaluationConfig(splits=(RunConfig(task=task, steps=4).make_task().ood()[0], "sticky:0.8"))


def success_figures(frame: polars.DataFrame, title: str, *by: str) -> list[Figure]:
    """The table of successes of models that answer without a chain (or, for `cot`, with it), and histograms of accuracy."""
    last = frame.filter(polars.col("mode") == "stage")
    # A run whose chain is not gone has not internalized it: it counts as it answers without one.
    direct = frame.filter(polars.col("mode") == "direct")
    judged = polars.concat([direct.filter(polars.col("curriculum") != "cot"), last.filter(polars.col("curriculum") == "cot")])
    figures = [
        Figure(
            title,
            "Success: more than 95 % right on inputs that were never trained on; in brackets Wilson's 95 % interval. "
            "All but cot answer without a chain.",
            table=success_table(judged, *by),
        )
    ]
    for name, chosen in (("in", polars.col("split") == "uniform"), ("out of", polars.col("split") == polars.col("headline"))):
        figures.append(histogram(judged.filter(chosen), f"Accuracy {name} distribution, each seed", *by))
    return figures


def histogram(frame: polars.DataFrame, title: str, *by: str, bins: int = 10) -> Figure:
    """How many seeds have which accuracy, for each group."""
    lines: list[dict[str, Any]] = []
    for key, group in frame.group_by(by, maintain_order=True):
        counts = [0] * bins
        for value in group["accuracy"]:
            counts[min(bins - 1, int(value * bins))] += 1
        lines.append({**dict(zip(by, key, strict=True)), **{f"{at / bins:.1f}+": counts[at] for at in range(bins)}})
    return Figure(title, "The number of seeds in each tenth of accuracy.", table=polars.DataFrame(lines))


def mean_curve(frame: polars.DataFrame, split: str, label: str, color: str, x: str = "shown") -> list[Series]:
    """Mean accuracy over seeds at each x, with each seed as a thin line."""
    part = frame.filter(polars.col("split") == split).sort(x, descending=True)
    lines = [
        Series(
            f"{label}, seed {seed}", color, list(zip(group[x].to_list(), group["accuracy"].to_list(), strict=True)), thin=True
        )
        for (_, seed), group in part.group_by("run", "seed", maintain_order=True)
    ]
    means = part.group_by(x, maintain_order=True).agg(polars.col("accuracy").mean())
    return [*lines, Series(label, color, list(zip(means[x].to_list(), means["accuracy"].to_list(), strict=True)))]


def rate_chart(frame: polars.DataFrame, x: str, line: str, x_label: str, title: str) -> str:
    """Success rate with Wilson's interval against an integer column `x`, one line for each value of `line`."""
    series = []
    for index, ((name,), group) in enumerate(frame.group_by(line, maintain_order=True)):
        points, band = [], []
        for (at,), seeds in sorted(group.group_by(x), key=lambda pair: pair[0]):
            wins, n = int(seeds["success"].sum()), len(seeds)
            points.append((at, wins / n))
            band.append((at, *wilson(wins, n)))
        series.append(Series(str(name), COLORS[index % len(COLORS)], points, band=band))
    xs: Sequence[int] = sorted(frame[x].unique().to_list())
    return accuracy_chart(series, title, x_label, xs)
