"""Procedures: systems that can only be asked, which is all that the definition of internalization needs of them.

A `Procedure` gets inputs and gives answers, with what they cost. A trained model that writes a chain of a certain length is
one (`ModelProcedure`), the same model's majority vote over sampled chains is another (`MajorityVote`), and so are the task's
own rule (`Rule`) and a model that is fast where it is sure and slow elsewhere (`Cascade`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from internalize.curricula import View
from internalize.errors import UserError
from internalize.evaluation.accuracy import layouts, write
from internalize.models import Transformer, forward_operations
from internalize.rendering import PositionIds, Vocabulary, render
from internalize.tasks import Task
from internalize.tasks.base import Ints, Judge, gather, same_width

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reply:
    """Answers to some inputs, and what they cost.

    answers:    (rows, answer tokens) task tokens, shorter ones padded with -1, or whatever integers the procedure answers with.
    tokens:     (rows,) tokens written, the answer included.
    passes:     (rows,) forward passes of a network, or steps of an algorithm.
    operations: (rows,) multiplications and additions.
    confidence: (rows,) how probable the procedure takes its answer to be; 1 where it does not say.
    """

    answers: Ints
    tokens: Floats
    passes: Floats
    operations: Floats
    confidence: Floats


@runtime_checkable
class Procedure(Protocol):
    """A system that answers inputs, and can be asked as often as one likes."""

    @property
    def name(self) -> str:
        """What to call it."""
        ...

    @property
    def hypothesis_class(self) -> Mapping[str, Any]:
        """What members of its hypothesis class have in common, such as the shape of a network; weights are not part of it."""
        ...

    def __call__(self, inputs: Ints, rng: np.random.Generator) -> Reply:
        """Answer `inputs` (rows, ...); whatever is drawn is drawn from `rng`."""
        ...


def reply(answers: Ints, tokens: float, passes: float, operations: float, confidence: Floats | None = None) -> Reply:
    """A `Reply` in which every row costs the same."""
    rows = len(answers)
    cost = [np.full(rows, float(each)) for each in (tokens, passes, operations)]
    return Reply(answers, cost[0], cost[1], cost[2], np.ones(rows) if confidence is None else confidence)


@dataclass(frozen=True)
class ModelProcedure:
    """A transformer that writes what `view` shows, then its answer; greedily, or drawn at a `temperature` above 0."""

    name: str
    model: Transformer
    task: Task
    view: View
    position_ids: PositionIds = "compacted"
    temperature: float = 0.0

    @property
    def hypothesis_class(self) -> dict[str, Any]:
        """The shape of the transformer, its vocabulary and its longest row."""
        shape = asdict(self.model.config)
        return {"kind": "transformer", **shape, "vocabulary": self.model.vocabulary, "length": self.model.length}

    def __call__(self, inputs: Ints, rng: np.random.Generator) -> Reply:
        """Answer `inputs` (rows, length), symbol indices."""
        # The trace gives the row its layout; the model never reads the columns that it is to write.
        batch = render(self.task.trace(inputs), [self.view], Vocabulary.of(self.task), position_ids=self.position_ids)
        written = write(self.model, batch, self.temperature, rng)
        answers = gather(written.tokens - Vocabulary.FIRST_TASK_TOKEN, batch.answer)
        tokens, operations = batch.target.sum(axis=1).astype(float), np.zeros(len(inputs))
        for columns, rows in layouts(batch):
            starts = np.concatenate([[0], columns[:-1]])
            operations[rows] = sum(
                forward_operations(self.model.config, self.model.vocabulary, int(column - start), 1, int(start))
                for start, column in zip(starts, columns, strict=True)
            )
        confidence = np.where(batch.answer, written.probability, 1.0).prod(axis=1)
        return Reply(answers, tokens, tokens, operations, confidence)


@dataclass(frozen=True)
class MajorityVote:
    """The answer that most of `votes` sampled chains of a model end in; of equally many, the smallest answer."""

    voter: ModelProcedure
    votes: int

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise UserError(f"a majority vote needs at least 1 chain, not {self.votes}.")
        if not self.voter.temperature:
            raise UserError("a majority vote needs chains drawn at a temperature above 0; greedy ones are all the same.")

    @property
    def name(self) -> str:
        """Who votes, and how often."""
        return f"{self.voter.name}, majority of {self.votes}"

    @property
    def hypothesis_class(self) -> dict[str, Any]:
        """That of the voter."""
        return self.voter.hypothesis_class

    def __call__(self, inputs: Ints, rng: np.random.Generator) -> Reply:
        """Answer `inputs` by vote; the confidence is the share of votes."""
        replies = [self.voter(inputs, rng) for _ in range(self.votes)]
        stacked = np.stack(same_width([one.answers for one in replies]))  # (votes, rows, answer tokens)
        agreement = (stacked[:, None] == stacked[None]).all(axis=3).sum(axis=1)  # (votes, rows): how many say the same
        order = np.lexsort((*stacked.transpose(2, 0, 1)[::-1], -agreement), axis=0)[0]
        rows = np.arange(len(inputs))
        cost = [np.sum([getattr(one, each) for one in replies], axis=0) for each in ("tokens", "passes", "operations")]
        return Reply(stacked[order, rows], cost[0], cost[1], cost[2], agreement[order, rows] / self.votes)


@dataclass(frozen=True)
class Rule:
    """The task's own rule, step by step: right by definition, and no network."""

    task: Task

    @property
    def name(self) -> str:
        """Whose rule it is."""
        return f"the rule of {self.task.name}"

    @property
    def hypothesis_class(self) -> dict[str, Any]:
        """Not one of networks."""
        return {"kind": "rule"}

    def __call__(self, inputs: Ints, rng: np.random.Generator) -> Reply:
        """Answer `inputs`; each unit and the answer is one step of one operation."""
        steps = self.task.units + 1
        return reply(true_answers(self.task, inputs), steps, steps, steps)


@dataclass(frozen=True)
class Cascade:
    """Fast where it is sure, slow where it is not: the fast answer counts where its confidence is at least `threshold`."""

    fast: Procedure
    slow: Procedure
    threshold: float

    @property
    def name(self) -> str:
        """Both, and the threshold."""
        return f"{self.fast.name} where its confidence is at least {self.threshold:.6g}, else {self.slow.name}"

    @property
    def hypothesis_class(self) -> Mapping[str, Any]:
        """That of the fast system."""
        return self.fast.hypothesis_class

    def __call__(self, inputs: Ints, rng: np.random.Generator) -> Reply:
        """Answer `inputs`; a row that is passed on costs both."""
        fast = self.fast(inputs, rng)
        unsure = np.flatnonzero(fast.confidence < self.threshold)
        if not len(unsure):
            return fast
        slow = self.slow(inputs[unsure], rng)
        answers = same_width([fast.answers, slow.answers])
        merged = replace(fast, **{n: v.copy() for n, v in (vars(fast) | {"answers": answers[0]}).items()})
        merged.answers[unsure], merged.confidence[unsure] = answers[1], slow.confidence
        for cost in ("tokens", "passes", "operations"):
            getattr(merged, cost)[unsure] += getattr(slow, cost)
        return merged


def true_answers(task: Judge, inputs: Ints) -> Ints:
    """(rows, answer tokens): the right answers, as task tokens."""
    return task.trace(inputs).answer()
