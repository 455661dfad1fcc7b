"""Definition 1 of the paper as a measurement: does a fast system internalize a slow one?

The definition asks for one hypothesis class, equal answers on all inputs, and less time; in its relaxed form, for expected
losses on a distribution D that differ by at most epsilon. A `Certificate` states each of these with an interval that holds for
all distributions at once, and never more than was measured: "exact" is said only where every input was asked.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

import numpy as np

from internalize.errors import UserError
from internalize.evaluation.procedures import Procedure, Reply, true_answers
from internalize.evaluation.statistics import clopper_pearson, paired_difference
from internalize.seeding import numpy_stream
from internalize.tasks import Task
from internalize.tasks.base import NOTHING, Ints, Judge, same_width

EXHAUSTIVE = 2**16  # inputs up to which all of them are asked
EXAMPLES = 5  # disagreements that are written down for each split
TIMED_ROWS, TIMED_REPEATS = 256, 5
ROWS_AT_ONCE = 8192

Verdict = Literal["exact", "within", "in part", "no"]


@dataclass(frozen=True)
class Share:
    """A share of inputs, or a difference of shares, and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Example:
    """An input on which the systems disagree, and what they and the task say."""

    split: str
    input: tuple[str, ...]
    slow: tuple[str, ...]
    fast: tuple[str, ...]
    truth: tuple[str, ...]


@dataclass(frozen=True)
class SplitCertificate:
    """One distribution.

    n: fresh independent draws, of which `distinct` differ; agreement: how often fast says what slow says; slow_risk, fast_risk:
    how often each is wrong; gap: fast_risk - slow_risk, from the same inputs (the relaxed definition's epsilon); within: the
    gap's upper bound is at most the epsilon that was asked for. `exhaustive`: the draws are all inputs there are, once each, so
    that values are facts and intervals have no width.
    """

    split: str
    n: int
    distinct: int
    agreement: Share
    slow_risk: Share
    fast_risk: Share
    gap: Share
    within: bool
    exhaustive: bool = False


@dataclass(frozen=True)
class Cost:
    """What one answer costs on average over all inputs asked, and how many times more the slow one does."""

    slow: float
    fast: float

    @property
    def ratio(self) -> float:
        """Slow divided by fast."""
        return self.slow / self.fast if self.fast else float("inf")


@dataclass(frozen=True)
class Certificate:
    """What was measured about a slow and a fast system, as JSON values; see `SplitCertificate` and `Cost`.

    differences: how the hypothesis classes differ, empty where they are the same. confidence: of each kind of interval, for
    all splits at once (Bonferroni). costs: tokens, passes, operations, and seconds for an input, timed in batches of 256.
    """

    slow: str
    fast: str
    epsilon: float
    confidence: float
    differences: tuple[str, ...]
    splits: tuple[SplitCertificate, ...]
    costs: dict[str, Cost]
    examples: tuple[Example, ...] = field(default=(), repr=False)

    @property
    def same_class(self) -> bool:
        """Whether both are of one hypothesis class."""
        return not self.differences

    @property
    def faster(self) -> bool:
        """Whether the fast system needs fewer passes or tokens, and no more of any; operations decide between equals."""
        fewer = [self.costs[name].fast - self.costs[name].slow for name in ("tokens", "passes", "operations")]
        return max(fewer[:2]) <= 0 and min(fewer) < 0

    @property
    def verdict(self) -> Verdict:
        """exact: equal on all inputs; within: a gap of at most epsilon on every split; in part: on some; no: on none."""
        if any(split.exhaustive and split.agreement.value == 1 for split in self.splits):
            return "exact"
        within = [split.within for split in self.splits]
        return "within" if all(within) else "in part" if any(within) else "no"

    @property
    def internalized(self) -> bool:
        """Whether the definition holds: one class, less time, and answers that are equal, or within epsilon everywhere."""
        return self.same_class and self.faster and self.verdict in ("exact", "within")

    @property
    def sentence(self) -> str:
        """All of it in words."""
        sure = f"{100 * self.confidence:.0f} %"
        worst = max(self.splits, key=lambda split: split.gap.high)
        if self.verdict == "exact":
            said = f"the same answer on every one of {self.splits[0].n:,} inputs"
        elif self.verdict == "within":
            said = (
                f"within {self.epsilon:g} on all {len(self.splits)} splits, with {sure} confidence at once (the worst, "
                f"{worst.split}, loses at most {worst.gap.high:.3f})"
            )
        else:
            bad = [split.split for split in self.splits if not split.within]
            said = (
                f"within {self.epsilon:g} on {len(self.splits) - len(bad)} of {len(self.splits)} splits, with {sure} "
                f"confidence at once; not on {', '.join(bad)}; on {worst.split} the fast system loses "
                f"{worst.gap.value:.3f} (at least {worst.gap.low:.3f})"
            )
        cost = f"{self.costs['tokens'].ratio:.3g} times the tokens, {self.costs['operations'].ratio:.3g} times the operations"
        but = "" if self.same_class else f" They are of different hypothesis classes ({'; '.join(self.differences)})."
        if not self.faster:
            but += " The fast system is no faster."
        return f"{'Internalized' if self.internalized else 'Not internalized'}: {said}. The slow system takes {cost}.{but}"

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        costs = {name: {**asdict(cost), "ratio": cost.ratio} for name, cost in self.costs.items()}
        said = {name: getattr(self, name) for name in ("internalized", "verdict", "sentence", "same_class", "faster")}
        values: dict[str, Any] = json.loads(json.dumps({**said, **asdict(self), "costs": costs}))
        return values


def certify(
    slow: Procedure,
    fast: Procedure,
    task: Judge,
    splits: Mapping[str, Ints],
    *,
    epsilon: float = 0.05,
    confidence: float = 0.95,
    seed: int = 0,
    exhaustive: bool = True,
) -> Certificate:
    """Measure whether `fast` internalizes `slow` (paper, Definition 1).

    Args:
        slow: the procedure P(h): whatever can be asked.
        fast: the system that should answer as it does.
        task: what is right.
        splits: fresh inputs of each distribution, (rows, columns): no choice may have been made on them.
        epsilon: the loss of accuracy that is allowed.
        confidence: of each kind of interval, over all splits at once.
        seed: of procedures that sample.
        exhaustive: also ask every input, where there are at most 2^16.

    Raises:
        UserError: for an epsilon or a confidence outside (0, 1), and when there is nothing to ask.
    """
    for name, value in (("epsilon", epsilon), ("confidence", confidence)):
        if not 0 < value < 1:
            raise UserError(f"{name} is {value}; it must be above 0 and below 1.")
    if not splits or not all(len(inputs) for inputs in splits.values()):
        raise UserError("there is nothing to certify on; give at least one split, and at least one input for each.")
    rng = numpy_stream(seed, "certificate")
    each = 1 - (1 - confidence) / len(splits)  # Bonferroni
    found, examples, asked = [], [], []
    if exhaustive and task.inputs <= EXHAUSTIVE:
        every = _ask(slow, fast, task, task.every_input(), rng)
        found.append(_split("every input", every, epsilon, None))
        examples += _examples("every input", every, task)
        asked.append(every)
    for name, inputs in splits.items():
        answered = _ask(slow, fast, task, inputs, rng)
        found.append(_split(name, answered, epsilon, each))
        examples += _examples(name, answered, task)
        asked.append(answered)
    return Certificate(
        slow.name,
        fast.name,
        epsilon,
        confidence,
        _differences(slow.hypothesis_class, fast.hypothesis_class),
        tuple(found),
        _costs(asked) | {"seconds": _seconds(slow, fast, next(iter(splits.values())), rng)},
        tuple(examples),
    )


def draw(
    task: Task, distributions: tuple[str, ...], count: int, number: int = 0, purpose: str = "certificate"
) -> dict[str, Ints]:
    """`count` fresh test inputs of each distribution, from a stream of `purpose` that nothing else uses; another one for each
    `number`, so that whoever has looked at one draw can ask for the next.
    """
    return {name: task.sample_inputs(name, count, numpy_stream(number, f"{purpose} {name}"), "test") for name in distributions}


@dataclass(frozen=True)
class _Asked:
    inputs: Ints
    slow: Reply
    fast: Reply
    truth: Ints

    @property
    def same(self) -> np.ndarray:
        return equal(self.slow.answers, self.fast.answers)


def equal(a: Ints, b: Ints) -> np.ndarray:
    """(rows,) bool: which rows of two arrays of answers are the same."""
    a, b = same_width([a, b])
    return np.asarray((a == b).all(axis=1))


def ask(procedure: Procedure, inputs: Ints, rng: np.random.Generator) -> Reply:
    """The procedure's reply to `inputs`, asked some thousands at a time."""
    replies = [procedure(inputs[start : start + ROWS_AT_ONCE], rng) for start in range(0, len(inputs), ROWS_AT_ONCE)]
    answers = np.concatenate(same_width([one.answers for one in replies]))
    costs = ("tokens", "passes", "operations", "confidence")
    return Reply(answers, *(np.concatenate([getattr(one, name) for one in replies]) for name in costs))


def _ask(slow: Procedure, fast: Procedure, task: Judge, inputs: Ints, rng: np.random.Generator) -> _Asked:
    return _Asked(inputs, ask(slow, inputs, rng), ask(fast, inputs, rng), true_answers(task, inputs))


def _split(name: str, asked: _Asked, epsilon: float, confidence: float | None) -> SplitCertificate:
    """`confidence` None: the inputs are all there are, so nothing is estimated."""
    n, same = len(asked.inputs), asked.same
    slow_wrong, fast_wrong = (~equal(one.answers, asked.truth) for one in (asked.slow, asked.fast))

    def share(which: np.ndarray) -> Share:
        count = int(which.sum())
        return Share(count / n, *(clopper_pearson(count, n, confidence) if confidence else (count / n,) * 2))

    only_fast, only_slow = int((fast_wrong & ~slow_wrong).sum()), int((slow_wrong & ~fast_wrong).sum())
    value = (only_fast - only_slow) / n
    gap = Share(value, *(paired_difference(only_fast, only_slow, n, confidence) if confidence else (value, value)))
    return SplitCertificate(
        name,
        n,
        len(np.unique(asked.inputs, axis=0)),
        share(same),
        share(slow_wrong),
        share(fast_wrong),
        gap,
        gap.high <= epsilon,
        confidence is None,
    )


def _examples(split: str, asked: _Asked, task: Judge) -> list[Example]:
    rows = np.flatnonzero(~asked.same)[:EXAMPLES]
    traces = task.trace(asked.inputs[rows])

    def text(tokens: Any) -> tuple[str, ...]:
        known = len(task.tokens)
        return tuple(task.tokens[token] if 0 <= token < known else "?" for token in map(int, tokens) if token != NOTHING)

    return [
        Example(
            split, text(traces.row(at).prompt), *(text(a[row]) for a in (asked.slow.answers, asked.fast.answers, asked.truth))
        )
        for at, row in enumerate(rows)
    ]


def _differences(slow: Mapping[str, Any], fast: Mapping[str, Any]) -> tuple[str, ...]:
    names = dict.fromkeys([*slow, *fast]) if slow.get("kind") == fast.get("kind") else ["kind"]
    return tuple(f"{n}: {slow.get(n)} and {fast.get(n)}" for n in names if slow.get(n) != fast.get(n))


def _costs(asked: list[_Asked]) -> dict[str, Cost]:
    def mean(system: str, cost: str) -> float:
        return float(np.concatenate([getattr(getattr(one, system), cost) for one in asked]).mean())

    return {cost: Cost(mean("slow", cost), mean("fast", cost)) for cost in ("tokens", "passes", "operations")}


def _seconds(slow: Procedure, fast: Procedure, inputs: Ints, rng: np.random.Generator) -> Cost:
    """Seconds for one input in a batch of `TIMED_ROWS`: the median of interleaved repeats."""
    rows = inputs[:TIMED_ROWS]
    times: dict[str, list[float]] = {"slow": [], "fast": []}
    for _ in range(TIMED_REPEATS):
        for name, system in (("slow", slow), ("fast", fast)):
            started = time.perf_counter()
            system(rows, rng)
            times[name].append((time.perf_counter() - started) / len(rows))
    return Cost(**{name: median(values) for name, values in times.items()})
