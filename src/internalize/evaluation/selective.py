"""Fast when sure, slow when not: what a model loses that answers at once only where it is confident.

The confidence of an answer is the probability that the model gives it. Above a threshold the fast answer counts, below it the
slow system is asked. The threshold is chosen on validation inputs, so that the risk among fast answers is at most `max_risk`
with the given confidence (Geifman and El-Yaniv 2017, with exact intervals and Bonferroni's correction over thresholds). That
promise is for inputs distributed like the validation ones; `curve` shows what it is worth on others.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from internalize.errors import UserError
from internalize.evaluation.certificate import ask, equal
from internalize.evaluation.procedures import Procedure, true_answers
from internalize.evaluation.statistics import clopper_pearson
from internalize.seeding import numpy_stream
from internalize.tasks.base import Ints, Judge

THRESHOLDS = 20  # candidates: quantiles of the confidence
NEVER = 2.0  # a threshold that no confidence reaches


@dataclass(frozen=True)
class Point:
    """What one threshold does on one split.

    coverage: share of inputs that are answered at once; fast_risk: how often those answers are wrong; risk: how often the
    cascade is wrong on all inputs; tokens, operations: its mean cost for an input.
    """

    threshold: float
    coverage: float
    fast_risk: float
    risk: float
    tokens: float
    operations: float


@dataclass(frozen=True)
class Selective:
    """A threshold, the share of the calibration inputs that it answers at once, what it does on each split, and, for each
    split, the whole curve from "always fast" to "always slow".
    """

    max_risk: float
    confidence: float
    threshold: float
    coverage: float
    chosen: dict[str, Point]
    curves: dict[str, list[Point]]


def select(
    fast: Procedure,
    slow: Procedure,
    task: Judge,
    calibration: Ints,
    splits: Mapping[str, Ints],
    max_risk: float,
    confidence: float = 0.95,
    seed: int = 0,
) -> Selective:
    """Choose the threshold on `calibration`, validation inputs (rows, columns), and measure it on `splits`, fresh ones."""
    threshold, coverage = calibrate(fast, task, calibration, max_risk, confidence, seed)
    curves = {name: curve(fast, slow, task, inputs, threshold, seed) for name, inputs in splits.items()}
    chosen = {name: next(point for point in points if point.threshold == threshold) for name, points in curves.items()}
    return Selective(max_risk, confidence, threshold, coverage, chosen, curves)


def calibrate(
    fast: Procedure, task: Judge, inputs: Ints, max_risk: float, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """The lowest threshold whose fast answers are wrong at most `max_risk` of the time, and its coverage of `inputs`.

    `inputs` (rows, columns) are validation inputs. Where no threshold is good enough, it is one that nothing reaches.
    """
    if not 0 < max_risk < 1:
        raise UserError(f"the largest risk is {max_risk}; it must be above 0 and below 1.")
    reply = ask(fast, inputs, numpy_stream(seed, "calibration"))
    wrong = ~equal(reply.answers, true_answers(task, inputs))
    candidates = np.unique(np.quantile(reply.confidence, np.linspace(0, 1, THRESHOLDS, endpoint=False), method="lower"))
    each = 1 - 2 * (1 - confidence) / len(candidates)  # one-sided, for all candidates at once
    for threshold in candidates:
        sure = reply.confidence >= threshold
        if clopper_pearson(int(wrong[sure].sum()), int(sure.sum()), each)[1] <= max_risk:
            return float(threshold), float(sure.mean())
    return NEVER, 0.0


def curve(fast: Procedure, slow: Procedure, task: Judge, inputs: Ints, threshold: float = NEVER, seed: int = 0) -> list[Point]:
    """Risk, coverage and cost on one split, for `threshold` and others from "always fast" to "always slow"."""
    rng = numpy_stream(seed, "risk and coverage")
    quick, thorough, truth = ask(fast, inputs, rng), ask(slow, inputs, rng), true_answers(task, inputs)
    quick_wrong, thorough_wrong = ~equal(quick.answers, truth), ~equal(thorough.answers, truth)
    levels = np.quantile(quick.confidence, np.linspace(0, 1, THRESHOLDS, endpoint=False), method="lower")
    points = []
    for level in np.unique([*levels, threshold, NEVER]):
        sure = quick.confidence >= level
        points.append(
            Point(
                float(level),
                float(sure.mean()),
                float(quick_wrong[sure].mean()) if sure.any() else 0.0,
                float(np.where(sure, quick_wrong, thorough_wrong).mean()),
                *(float((getattr(quick, cost) + ~sure * getattr(thorough, cost)).mean()) for cost in ("tokens", "operations")),
            )
        )
    return points
