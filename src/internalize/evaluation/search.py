"""Looks for the distribution of inputs on which a fast system is worst, within a family that `distributions.py` can name.

The family is `markov`: how often a symbol repeats the one before, and how frequent each symbol is. It holds uniform, biased and
sticky inputs and everything between. The search is the cross-entropy method (Rubinstein 1999) on the rate of disagreement with
the slow system, which needs no labels. It looks at validation inputs; what it finds must be measured on fresh ones. Each input
counts once, and distributions of few inputs are left out: the worst of those would be an accident of which were held out.
"""

from collections.abc import Callable

import numpy as np

from internalize.errors import UserError
from internalize.evaluation.certificate import ask, equal
from internalize.evaluation.procedures import Procedure
from internalize.seeding import numpy_stream
from internalize.tasks import Task

POPULATION, ELITE = 24, 6
VARIED = 0.25  # share of the samples of a distribution that must differ from each other
SMOOTHING = 0.3  # share of the old centre and spread that is kept


def worst_distribution(
    slow: Procedure,
    fast: Procedure,
    task: Task,
    *,
    samples: int = 256,
    rounds: int = 6,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[str, float]:
    """The distribution that was found, such as "markov:0.31:0.02:0.98", and the disagreement that was seen there.

    That rate is the best of many tries and therefore too high: certify on fresh draws of the distribution.

    Args:
        slow: what `fast` should answer.
        fast: the system that is tried.
        task: where inputs come from; they are drawn from the validation part.
        samples: inputs for each candidate.
        rounds: rounds of 24 candidates.
        seed: of the search.
        progress: told (rounds done, rounds in all).

    Raises:
        UserError: for a task with too few inputs.
    """
    rng, symbols = numpy_stream(seed, "search"), len(task.alphabet)
    centre, spread = np.zeros(symbols + 1), np.full(symbols + 1, 1.5)
    best = "uniform", -1.0
    for done in range(rounds):
        tries = centre + spread * rng.standard_normal((POPULATION, symbols + 1))
        if not done:  # begin with each symbol very frequent, as far as there is room
            corners = np.concatenate([level * np.eye(symbols) for level in (3.0, 4.5)])[: POPULATION // 2]
            tries[: len(corners)] = np.column_stack([np.full(len(corners), -3.0), corners])
        scores = np.full(POPULATION, -1.0)
        for index, logits in enumerate(tries):
            name = _name(logits)
            try:
                inputs = task.sample_inputs(name, samples, rng, "validation")
            except UserError:  # so narrow that the split by hash holds none out
                continue
            inputs = np.unique(inputs, axis=0)
            if len(inputs) < VARIED * samples:
                continue
            scores[index] = float((~equal(ask(slow, inputs, rng).answers, ask(fast, inputs, rng).answers)).mean())
            best = max(best, (name, float(scores[index])), key=lambda found: found[1])
        elite = tries[np.argsort(-scores)[:ELITE]]
        centre = SMOOTHING * centre + (1 - SMOOTHING) * elite.mean(axis=0)
        spread = SMOOTHING * spread + (1 - SMOOTHING) * elite.std(axis=0)
        if progress is not None:
            progress(done + 1, rounds)
    if best[1] < 0:
        raise UserError(
            f"{task.name} has {task.inputs:,} inputs, of which too few are held out to search among; "
            "certify without the search."
        )
    return best


def _name(logits: np.ndarray) -> str:
    stay = 0.01 + 0.97 / (1 + np.exp(-logits[0]))
    frequencies = np.exp(logits[1:] - logits[1:].max())
    return ":".join(["markov", f"{stay:.2f}", *(f"{max(value, 0.001):.3f}" for value in frequencies / frequencies.sum())])
