"""Figure 3: counters of every order, primes against composites."""

import polars

from internalize.config import RunConfig
from internalize.models import ModelConfig
from internalize.studies.common import DIRECT, INSIDE, OUTSIDE, SHORT, config, rate_chart, success_figures
from internalize.studies.study import Figure, Scale, Study

ORDERS = range(3, 18)


def cells(scale: Scale) -> list[RunConfig]:
    """C_3 to C_17, two MLP widths, three regimes."""
    if scale == "paper":
        models = [ModelConfig(layers=4, width=512, heads=128, mlp=mlp) for mlp in (256, 2048)]
        fields = {"steps": 15}
    else:
        models = [ModelConfig(layers=1, width=128, heads=32, mlp=mlp) for mlp in (128, 512)]
        fields = {"steps": 8}
    return [
        config(scale, model, task=f"C{n}", curriculum=curriculum, **fields, **(SHORT if scale == "laptop" else {}))
        for n in ORDERS
        for model in models
        for curriculum in ("left", "cot", "e2e")
    ]


def factors(n: int) -> int:
    """The sum of the prime powers of n: what Theorem 3's construction needs of width."""
    total, divisor = 0, 2
    while n > 1:
        power = 1
        while n % divisor == 0:
            n, power = n // divisor, power * divisor
        total += power if power > 1 else 0
        divisor += 1
    return total


def draw(outcomes: polars.DataFrame, curves: polars.DataFrame) -> list[Figure]:
    """Success against n for each width, and the order n as the unit: prime or not, n, and the sum of its prime powers."""
    direct = outcomes.filter(DIRECT & (polars.col("curriculum") == "left"))
    direct = direct.with_columns(n=polars.col("task").str.slice(1).cast(polars.Int64))
    figures = []
    for name, chosen in (("in", INSIDE), ("out of", OUTSIDE)):
        title = f"Success {name} distribution against n"
        chart = rate_chart(direct.filter(chosen), "n", "mlp", "n (the counter's order)", title)
        figures.append(Figure(title, "Left curriculum, no chain; one line for each MLP width, with Wilson's intervals.", chart))
    by_order = (
        direct.filter(INSIDE)
        .group_by("n", "mlp", maintain_order=True)
        .agg(success=polars.col("success").mean(), accuracy=polars.col("accuracy").mean().round(3), seeds=polars.len())
        .with_columns(
            prime=polars.col("n").is_in([3, 5, 7, 11, 13, 17]),
            prime_powers=polars.col("n").map_elements(factors, return_dtype=polars.Int64),
        )
        .sort("mlp", "n")
    )
    figures.append(Figure("Each order", "The unit of analysis is n: fifteen automata.", table=by_order))
    return figures + success_figures(outcomes, "Every regime", "task", "mlp", "curriculum")[:1]


STUDY = Study(
    name="primes",
    title="Are counters of prime order harder?",
    claim="Prime orders are harder to internalize than composite ones; n does not affect full-chain or end-to-end training "
    "(Figure 3).",
    unit="n: fifteen automata, with n itself and the sum of its prime powers as covariates; not the pooled seeds",
    cells=cells,
    draw=draw,
    seeds={"laptop": 3, "paper": 30},
)
