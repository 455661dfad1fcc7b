"""Ours: does broad coverage of the training inputs keep the internalized model robust, with and without extra labels?"""

import polars

from internalize.config import EvaluationConfig, OptimizerConfig, RunConfig
from internalize.curricula import Schedule
from internalize.models import ModelConfig
from internalize.studies.common import DIRECT, config, every_split, success_figures, success_table
from internalize.studies.study import Figure, Scale, Study

ARMS = (
    {"inputs": "uniform"},
    {"inputs": "uniform+dirichlet"},
    {"inputs": "uniform+dirichlet", "labels": "slow"},
    {"inputs": "uniform+dirichlet", "curriculum": "e2e"},
)


def cells(scale: Scale) -> list[RunConfig]:
    """Uniform inputs, broad ones with true labels, with the slow system's, and end to end with broad ones; equal budgets."""
    laptop = scale == "laptop"
    found = []
    for task in ("C3",) if laptop else ("C2", "C3", "C5"):
        for arm in ARMS:
            first = 3000 if arm.get("labels") == "slow" else 0
            fields = {
                "schedule": Schedule(budget=16_000, stage_budget=1500, first_stage=first, exhausted="rollback"),
                "optimizer": OptimizerConfig(),
                "evaluation": EvaluationConfig(),
            }
            model = ModelConfig() if laptop else None
            found.append(config(scale, model, task=task, steps=15, **(fields if laptop else {}), **arm))
    return found


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Success of each arm, on every split, and of the slow system that labels."""
    by = ("task", "curriculum", "inputs", "labels")
    columns = every_split(outcomes)
    every = success_table(outcomes.filter(DIRECT), *by, columns=columns)
    figures = [*success_figures(outcomes, "Success by training inputs", *by), Figure("Every split, no chain", table=every)]
    labels = curves.filter((polars.col("labels") != "true") & (polars.col("at") == polars.col("at").min().over("run", "seed")))
    if len(labels):
        slow = success_table(labels.with_columns(steps="at", left="shown"), *by, columns=columns)
        text = "At the end of the first stage, where all of the chain is shown and no label is the model's own."
        figures.append(Figure("The slow system that labels", text, table=slow))
    return figures


STUDY = Study(
    name="coverage",
    title="Do broad training inputs keep the internalized model robust, and can the slow system label them?",
    claim="Ours. (The paper: out-of-distribution accuracy falls, as uniform inputs do not teach a step to combine many.)",
    unit="seed",
    cells=cells,
    draw=draw,
    seeds={"laptop": 10, "paper": 30},
)
