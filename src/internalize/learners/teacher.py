"""The slow system as a teacher: from the second stage on it writes the chains and answers that the model learns.

Then no label is needed beyond those of the first stage: the model absorbs what it computes itself, on whatever inputs
are proposed (paper, Definition 1: the fast system is to agree with the slow one; the proposals are ours).
"""

from dataclasses import dataclass

import numpy as np

from internalize.curricula import View
from internalize.errors import UserError
from internalize.evaluation.accuracy import write
from internalize.models import Transformer
from internalize.rendering import PositionIds, Vocabulary, render
from internalize.tasks import ANSWER, Task, Traces
from internalize.tasks.base import Ints

_MOST_ROUNDS = 100  # of drawing again what was wrong, after which the slow system knows too little to teach
_CANDIDATES = 4  # inputs looked at for each one that is to be adversarial


@dataclass(frozen=True)
class Teacher:
    """A slow system and the inputs that it labels.

    Attributes:
        model: writes what `view` shows, greedily.
        inputs: the distribution of the inputs that it is given.
        filtered: keep only the traces whose answer is right (Yu et al. 2024, "Distilling System 2 into System 1").
    """

    model: Transformer
    task: Task
    view: View
    position_ids: PositionIds
    inputs: str
    filtered: bool = False

    def rewrite(self, traces: Traces) -> Traces:
        """`traces` with the chain and the answer that the slow system writes for their prompts."""
        batch = render(traces, [self.view], Vocabulary.of(self.task), position_ids=self.position_ids)
        tokens = traces.tokens.copy()
        # `render` keeps the order of the tokens, so row by row they are the same ones.
        tokens[traces.written] = write(self.model, batch).tokens[batch.target] - Vocabulary.FIRST_TASK_TOKEN
        return Traces(tokens, traces.segment)

    def sample(self, count: int, rng: np.random.Generator) -> Traces:
        """`count` training traces that the slow system wrote. Raises `UserError` where filtering leaves almost none."""
        found: list[Traces] = []
        missing = count
        for _ in range(_MOST_ROUNDS):
            true = self.task.sample(self.inputs, missing, rng, "train")
            traces = self.rewrite(true)
            if self.filtered:
                traces = traces[np.flatnonzero(agree(traces, true))]
            found.append(traces)
            missing -= len(traces)
            if not missing:
                return Traces.concatenate(found)
        raise UserError(
            f"the slow system is right on almost none of the inputs {self.inputs}, so nothing is left to learn from; "
            "let it learn for longer (schedule.first_stage), or take other inputs."
        )

    def disagreed(self, student: Transformer, view: View, count: int, rng: np.random.Generator) -> Traces:
        """As `sample`, first the traces whose answer `student`, which writes what `view` shows, does not give.

        Of several times as many inputs as wanted, those are kept; where they are too few, others fill up the rest.
        """
        traces = self.sample(count * _CANDIDATES, rng)
        asked = Teacher(student, self.task, view, self.position_ids, self.inputs)
        same = agree(asked.answered(traces), traces)
        return traces[np.argsort(same, kind="stable")[:count]]

    def answered(self, traces: Traces) -> Traces:
        """`traces` with the answer that the model writes after what `view` shows; the chain stays as it is."""
        batch = render(traces, [self.view], Vocabulary.of(self.task), position_ids=self.position_ids)
        tokens = traces.tokens.copy()
        tokens[traces.segment == ANSWER] = write(self.model, batch).tokens[batch.answer] - Vocabulary.FIRST_TASK_TOKEN
        return Traces(tokens, traces.segment)


def agree(one: Traces, other: Traces) -> Ints:
    """(rows,) bool: whether two traces of the same inputs have the same answer."""
    same: Ints = ((one.tokens == other.tokens) | (one.segment != ANSWER)).all(axis=1)
    return same
