"""Intervals."""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

SUCCESS = 0.95  # a run succeeds when its accuracy exceeds this (paper)


class SuccessRate(NamedTuple):
    """How many seeds succeed, with Wilson's 95 % interval for the share."""

    wins: int
    seeds: int
    low: float
    high: float


def success_rate(accuracies: Sequence[float]) -> SuccessRate:
    """The success rate over seeds, given the accuracy of each."""
    wins = sum(accuracy > SUCCESS for accuracy in accuracies)
    return SuccessRate(wins, len(accuracies), *wilson(wins, len(accuracies)))


def wilson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion (Wilson 1927): (low, high). With no trials it is (0, 1)."""
    if not trials:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    spread = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = (centre - spread) / scale if successes else 0.0  # exactly, where rounding would miss it
    high = (centre + spread) / scale if successes < trials else 1.0
    return low, high
