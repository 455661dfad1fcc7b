"""Figure 1, right: out-of-distribution accuracy as the chain is taken away."""

import polars

from internalize.config import EvaluationConfig, RunConfig
from internalize.evaluation.statistics import spread
from internalize.studies.common import INSIDE, OOD, OUTSIDE, SHORT, SMALL, config, frontier_chart
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
    figures, lines = [], []
    for (task,), part in curves.group_by("task", maintain_order=True):
        headline, seeds = part["headline"][0], part.select("run", "seed").n_unique()
        title = f"{task}, T = {part['T'][0]}: accuracy as the chain is taken away"
        text = (
            f"{seeds} seeds (thin), and their mean over those that reached the stage, with its 95 % interval. "
            f"Out of distribution: {headline}."
        )
        figures.append(Figure(title, text, frontier_chart(part, title)))
        for (shown,), stage in part.sort("shown", descending=True, maintain_order=True).group_by("shown", maintain_order=True):
            ends = {name: stage.filter(chosen)["accuracy"].to_list() for name, chosen in (("ID", INSIDE), ("OOD", OUTSIDE))}
            reached = {"task": task, "chain tokens": shown, "seeds": f"{len(ends['ID'])} of {seeds}"}
            lines.append({**reached, **{name: spread(values) for name, values in ends.items()}})
    text = "Mean accuracy of the seeds that reached the stage (least to greatest)."
    return [*figures, Figure("The same in numbers", text, table=polars.DataFrame(lines))]


STUDY = Study(
    name="fig1",
    title="Does out-of-distribution accuracy fall as chain tokens are taken away?",
    claim="Out-of-distribution success falls progressively as tokens are removed; in distribution it does not (Figure 1).",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 4, "paper": 30},
)
