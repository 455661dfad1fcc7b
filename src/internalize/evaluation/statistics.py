"""Intervals."""

from collections.abc import Sequence
from math import inf, sqrt
from statistics import NormalDist, mean, median
from typing import NamedTuple

from scipy.special import betaincinv, stdtrit

SUCCESS = 0.95  # a run succeeds when its accuracy exceeds this (paper)


class SuccessRate(NamedTuple):
    """How many seeds succeed, with Wilson's 95 % interval for the share."""

    wins: int
    seeds: int
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.wins}/{self.seeds} [{self.low:.2f}, {self.high:.2f}]"


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


def mean_interval(accuracies: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval for the mean of at least two accuracies of independent seeds, cut to [0, 1]: (low, high)."""
    n = len(accuracies)
    centre = sum(accuracies) / n
    deviation = sqrt(sum((value - centre) ** 2 for value in accuracies) / (n - 1))
    spread = float(stdtrit(n - 1, (1 + confidence) / 2)) * deviation / sqrt(n)
    return max(0.0, centre - spread), min(1.0, centre + spread)


def spread(values: Sequence[float]) -> str:
    """The mean, the least and the greatest, in words."""
    return f"{mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def median_needed(counts: Sequence[int | None]) -> float:
    """The median of what seeds need; None, a seed that does not get there, counts as infinitely much."""
    return median(inf if count is None else count for count in counts)


def needed(counts: Sequence[int | None], most: int) -> str:
    """`median_needed` in words, or that it is more than the `most` that was given; and the range of seeds that get there."""
    middle, reached = median_needed(counts), [count for count in counts if count is not None]
    text = f"{middle:,.0f}" if middle < inf else f"more than {most:,}"
    ends = dict.fromkeys(f"{end(reached):,}" for end in (min, max)) if reached else {}
    return f"{text} ({' to '.join(ends)})" if ends else text


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval for a proportion (Clopper and Pearson 1934): (low, high). With no trials it is (0, 1)."""
    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return low, high


def paired_difference(only_first: int, only_second: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """An interval for the difference of two proportions measured on the same trials: (low, high).

    `only_first` and `only_second` count the trials on which just one of the two holds. Each share has its exact interval at
    half the error, so that the difference is covered with at least `confidence`: conservative, and right for any sample (ours).
    """
    half = (1 + confidence) / 2
    first, second = clopper_pearson(only_first, trials, half), clopper_pearson(only_second, trials, half)
    return first[0] - second[1], first[1] - second[0]
