from typing import Any

import numpy as np
import pytest
import torch

from internalize import curricula
from internalize.config import ModelConfig, RunConfig
from internalize.evaluation import ModelProcedure, draw_splits, generate, measure
from internalize.evaluation.certificate import equal
from internalize.evaluation.procedures import true_answers
from internalize.learners.sandbox import new_model
from internalize.models import Transformer
from internalize.rendering import Vocabulary, render
from internalize.tasks import Trace, Traces, make
from internalize.tasks.base import NOTHING

CONFIG = RunConfig(task="C3", steps=6, model=ModelConfig(layers=2, width=16, heads=4, mlp=16))
TASK = CONFIG.make_task()
VOCABULARY = Vocabulary.of(TASK)
OFFSET = int(VOCABULARY.task(np.zeros(1, np.int64))[0])


@pytest.mark.parametrize("position_ids", ["compacted", "kept"])
@pytest.mark.parametrize("removed", ["drop", "zero", "filler"])
@pytest.mark.parametrize("name", ["left", "right", "inductive", "mixture"])
def test_generation_equals_the_plain_loop_and_is_deterministic(name: str, removed: Any, position_ids: Any) -> None:
    model = new_model(CONFIG, seed=3).double()
    curriculum = curricula.make(name, curricula.RemovalConfig(removed=removed))
    traces = TASK.sample("uniform", 20, np.random.default_rng(0), "test")
    for view in (curriculum.full(5), curriculum.target(5, curriculum.stages(5) // 2), curriculum.direct(5)):
        batch = render(traces, [view], VOCABULARY, position_ids=position_ids)
        tokens, positions = torch.from_numpy(batch.tokens), torch.from_numpy(batch.positions.copy())
        for column in np.flatnonzero(batch.target[0]):
            tokens[:, column] = model(tokens[:, :column], positions[:, :column])[:, -1].argmax(dim=-1)
        written = generate(model, batch)
        assert (written == tokens.numpy()).all()
        assert (written[:, : batch.first + 1] == batch.tokens[:, : batch.first + 1]).all()
        assert (written == generate(model, batch)).all()


def test_accuracy_judges_the_answer_alone() -> None:
    class Oracle(torch.nn.Module):
        """Writes state 0 in the chain, whatever is right, and then an answer that is right when the first symbol is 1."""

        def __init__(self) -> None:
            super().__init__()
            self.unused = torch.nn.Parameter(torch.zeros(1))

        def forward(self, tokens: torch.Tensor, positions: torch.Tensor, first: int, cache: dict) -> torch.Tensor:
            if not hasattr(cache, "prompt"):
                cache.prompt = tokens[:, 1:7] - OFFSET
            states = cache.prompt.cumsum(dim=1) % 3
            right = states[:, -1] if int(positions[0, -1]) == 11 else torch.zeros_like(states[:, -1])
            right = torch.where(cache.prompt[:, 0] == 1, right, (right + 1) % 3)
            return torch.nn.functional.one_hot(right + OFFSET, VOCABULARY.size)[:, None]

    splits = draw_splits(TASK, ["uniform", "biased:1:0.8", "constant"], 300, "test")
    measured = measure(Oracle(), VOCABULARY, splits, curricula.make("cot").full(5))
    for name, split in splits.items():
        prompt = split.prompt()
        assert measured[name].value == pytest.approx((prompt[:, 0] == 1).mean())
        assert measured[name].n == 300
        assert measured[name].distinct == len({tuple(row) for row in prompt.tolist()})
    assert measured["constant"].distinct == 3


def test_test_inputs_do_not_depend_on_other_splits_or_calls() -> None:
    alone = draw_splits(TASK, ["sticky"], 50, "test")["sticky"]
    beside = draw_splits(make("C3", 6), ["uniform", "sticky"], 50, "test")["sticky"]
    assert (alone.tokens == beside.tokens).all()


RAGGED = [Trace((1, 2), ((3,), (4, 5), (6,)), (7,)), Trace((1, 2, 3), (), (4, 5)), Trace((9,), ((8, 8),), (1, 2, 3))]


@pytest.mark.parametrize("spec", ["cot", "left", "e2e", "right"])
@pytest.mark.parametrize("removed", ["drop", "filler"])
def test_rows_of_different_lengths_are_written_and_judged_as_each_alone(spec: str, removed: Any) -> None:
    vocabulary = Vocabulary(tuple("0123456789"), units=3)
    model = Transformer(ModelConfig(width=16, heads=4, mlp=16), vocabulary.size, 24, torch.Generator().manual_seed(1)).double()
    options = curricula.RemovalConfig(removed=removed if spec != "cot" else "drop")
    view = curricula.make(spec, options).target(3, 1)
    alone = [generate(model, render(Traces.of([row]), [view], vocabulary))[0] for row in RAGGED]
    traces = Traces.of(RAGGED * 40)
    batch = render(traces, [view], vocabulary)
    written = generate(model, batch)
    for row, tokens in enumerate(written):
        whole = alone[row % 3]
        assert (tokens[: len(whole)] == whole).all()
        assert (tokens[len(whole) :] == vocabulary.PAD).all()
    # Of rows whose answer is what the model writes, all are right, and where any token of it is another one, none is.
    own = [
        row._replace(answer=tuple(int(t) for t in whole[-len(row.answer) :] - 3))
        for row, whole in zip(RAGGED, alone, strict=True)
    ]
    wrong = [row._replace(answer=(*row.answer[:-1], (row.answer[-1] + 1) % 10)) for row in own]
    measured = measure(model, vocabulary, {"own": Traces.of(own), "wrong": Traces.of(wrong[:2])}, view)
    assert (measured["own"].correct, measured["own"].distinct) == (3, 3)
    assert measured["wrong"].correct == 0


def test_costs_and_answers_of_rows_of_different_lengths() -> None:
    rows = [RAGGED[0], RAGGED[1]]

    class Two:
        """A task with two inputs."""

        tokens, units, longest = tuple("0123456789"), 3, 9

        def trace(self, inputs: np.ndarray) -> Traces:
            return Traces.of([rows[int(row)] for row in inputs[:, 0]])

    vocabulary = Vocabulary(Two.tokens, units=3)
    model = Transformer(ModelConfig(width=16, heads=4, mlp=16), vocabulary.size, 24, torch.Generator().manual_seed(1))
    system = ModelProcedure("it", model, Two(), curricula.make("cot").full(3))  # type: ignore[arg-type]
    both, alone = (system(np.array(which), np.random.default_rng(0)) for which in ([[0], [1]], [[1]]))
    assert both.tokens.tolist() == [5, 2]
    assert both.operations[1] == alone.operations[0]
    assert both.confidence[1] == pytest.approx(alone.confidence[0])
    assert (both.answers[1] == alone.answers[0]).all()
    assert both.answers[0, 1] == NOTHING
    assert true_answers(Two(), np.array([[0], [1]])).tolist() == [[7, NOTHING], [4, 5]]  # type: ignore[arg-type]
    assert equal(np.array([[7]]), np.array([[7, NOTHING]])).all()
    assert equal(np.array([7]), np.array([[7, NOTHING]])).all()  # as a procedure of one's own may answer
