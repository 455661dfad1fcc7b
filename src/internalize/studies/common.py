"""What several studies share: the paper's model, the laptop's models, tables of success and charts with intervals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import polars

from internalize.config import ID, EvaluationConfig, OptimizerConfig, RunConfig
from internalize.curricula import Schedule
from internalize.evaluation import success_rate
from internalize.models import ModelConfig
from internalize.report.charts import Series, accuracy_chart, over_seeds
from internalize.studies.study import Figure, Scale

OOD = "biased:1:0.8"  # p = 0.8 is the paper's account's; which symbol is ours
MAIN = ModelConfig(layers=4, width=512, heads=128, mlp=2048)  # the paper's main model
WIDE = ModelConfig(layers=1, width=256, heads=64, mlp=512)  # at which plain left with uniform inputs succeeds for some seeds
SMALL = ModelConfig(layers=1, width=128, heads=32)  # with SHORT: the settings of Figure 1's pilot
SHORT = {
    "optimizer": OptimizerConfig(lr=5e-4, batch=64),
    "schedule": Schedule(budget=6000, stage_budget=1500, exhausted="rollback"),
}
COLORS = ("a", "b", "d", "c")

# Which lines of `outcomes` are meant. A run whose chain is not gone has not internalized it: it counts as it answers without
# one; `cot` alone never gives it up.
INSIDE, OUTSIDE = polars.col("split") == ID, polars.col("split") == polars.col("headline")
DIRECT, CHAIN = polars.col("mode") == "direct", polars.col("mode") == "cot"
ANSWERS = polars.when(polars.col("curriculum") == "cot").then(polars.col("mode") == "stage").otherwise(DIRECT)
COLUMNS = {
    "ID": ANSWERS & INSIDE,
    "OOD": ANSWERS & OUTSIDE,
    "worst split": ANSWERS,
    "ID, full chain": CHAIN & INSIDE,
    "OOD, full chain": CHAIN & OUTSIDE,
}


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


def success_table(frame: polars.DataFrame, *by: str, columns: Mapping[str, polars.Expr] = COLUMNS) -> polars.DataFrame:
    """For each group of outcomes, or of points of curves: the mean accuracy of what each of `columns` selects, and the seeds
    that succeed with Wilson's 95 % interval; of several splits, each seed's worst counts. Then how many seeds still show how
    many units, and the steps that were taken on average.
    """
    lines = []
    for key, group in frame.group_by(by, maintain_order=True):
        line: dict[str, Any] = dict(zip(by, key, strict=True))
        for name, chosen in columns.items():
            worst = group.filter(chosen).group_by("run", "seed").agg(polars.col("accuracy").min())["accuracy"].to_list()
            line[name] = f"{mean(worst):.3f}; {success_rate(worst)}" if worst else None
        seeds = group.unique(("run", "seed"))
        left = Counter(seeds["left"].drop_nulls().to_list())
        line["units still shown: seeds"] = ", ".join(f"{units}: {left[units]}" for units in sorted(left)) or None
        budgets = " or ".join(f"{budget:,}" for budget in sorted(set(seeds["budget"])))
        lines.append({**line, "steps": f"{mean(seeds['steps']):,.0f} of {budgets}"})
    return polars.DataFrame(lines, infer_schema_length=None)


def every_split(frame: polars.DataFrame) -> dict[str, polars.Expr]:
    """A column for each split."""
    return {split: polars.col("split") == split for split in frame["split"].unique(maintain_order=True)}


def success_figures(frame: polars.DataFrame, title: str, *by: str) -> list[Figure]:
    """The table of successes of models that answer without a chain (or, for `cot`, with it), and histograms of accuracy."""
    figures = [
        Figure(
            title,
            "Mean accuracy on inputs that were never trained on; then the seeds that succeed (more than 95 % right), with "
            "Wilson's 95 % interval; of all splits, each seed's worst counts. All but cot answer without a chain, except where "
            "the same final model is asked to write all of it (full chain).",
            table=success_table(frame, *by),
        )
    ]
    for name, chosen in (("in", INSIDE), ("out of", OUTSIDE)):
        figures.append(histogram(frame.filter(ANSWERS & chosen), f"Accuracy {name} distribution, each seed", *by))
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


def frontier_chart(frame: polars.DataFrame, title: str, *more: Series) -> str:
    """Accuracy in and out of distribution against the units shown: the mean over seeds with its interval, each seed as a thin
    line, and `more` lines.
    """
    xs = sorted(frame["shown"].unique().to_list(), reverse=True)
    series: list[Series] = []
    for chosen, label, color in ((INSIDE, "in distribution", "a"), (OUTSIDE, "out of distribution", "b")):
        seeds = (
            frame.filter(chosen)
            .sort("shown", descending=True, maintain_order=True)
            .group_by("run", "seed", maintain_order=True)
        )
        lines = [(f"seed {seed}", group.select("shown", "accuracy").rows()) for (_, seed), group in seeds]
        series += over_seeds(lines, xs, label, color)
    return accuracy_chart([*series, *more], title, "chain tokens still written before the answer", xs)


def rate_chart(frame: polars.DataFrame, x: str, line: str, x_label: str, title: str) -> str:
    """Success rate with Wilson's interval against an integer column `x`, one line for each value of `line`."""
    series = []
    for index, ((name,), group) in enumerate(frame.group_by(line, maintain_order=True)):
        points, band = [], []
        for (at,), seeds in sorted(group.group_by(x), key=lambda pair: pair[0]):
            rate = success_rate(seeds["accuracy"].to_list())
            points.append((at, rate.wins / rate.seeds))
            band.append((at, rate.low, rate.high))
        series.append(Series(str(name), COLORS[index % len(COLORS)], points, band=band))
    xs: Sequence[int] = sorted(frame[x].unique().to_list())
    return accuracy_chart(series, title, x_label, xs)
