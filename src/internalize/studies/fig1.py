"""Figure 1, right: out-of-distribution accuracy as the chain is taken away."""

import polars

from internalize.config import EvaluationConfig, RunConfig
from internalize.report.charts import accuracy_chart
from internalize.studies.common import OOD, SHORT, SMALL, config, mean_curve
from internalize.studies.study import Figure, Scale, Study


def cells(scale: Scale) -> list[RunConfig]:
    """C_3 and C_4, plain left, uniform inputs."""
    if scale == "paper":
        return [config(scale, task=task, steps=25) for task in ("C3", "C4")]
    return [
        config(
            scale,
            SMALL,
            task=task,
            steps=8,
            evaluation=EvaluationConfig(splits=(OOD, "sticky")),
            **SHORT,
        )
        for task in ("C3", "C4")
    ]


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Accuracy against chain tokens, in and out of distribution, for each task."""
    figures = []
    for (task,), part in curves.group_by("task", maintain_order=True):
        headline = part["headline"][0]
        xs = sorted(part["shown"].unique().to_list(), reverse=True)
        series = mean_curve(part, "uniform", "in distribution", "a") + mean_curve(part, headline, "out of distribution", "b")
        title = f"{task}, T = {part['T'][0]}: accuracy as the chain is taken away"
        seeds = part["seed"].n_unique()
        figures.append(
            Figure(
                title,
                f"{seeds} seeds (thin), and their mean over those that reached the stage. Out of distribution: {headline}.",
                accuracy_chart(series, title, "chain tokens still written before the answer", xs),
            )
        )
    by = ("task", "shown")
    loss = (
        curves.filter(polars.col("split").is_in(["uniform"]) | (polars.col("split") == polars.col("headline")))
        .with_columns(split=polars.when(polars.col("split") == "uniform").then(polars.lit("ID")).otherwise(polars.lit("OOD")))
        .group_by(*by, "split", maintain_order=True)
        .agg(polars.col("accuracy").mean().round(3), seeds=polars.len())
        .pivot("split", index=[*by, "seeds"], values="accuracy")
    )
    return [*figures, Figure("The same in numbers", "Mean accuracy of the seeds that reached the stage.", table=loss)]


STUDY = Study(
    name="fig1",
    title="Does out-of-distribution accuracy fall as chain tokens are taken away?",
    claim="Out-of-distribution success falls progressively as tokens are removed; in distribution it does not (Figure 1).",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 4, "paper": 30},
)
