"""Greedy generation and the accuracy of its answer, on named splits of inputs.

Accuracy is final-state accuracy after greedy autoregressive generation (paper): the model writes as many chain tokens as
the view shows, then the answer. Generation is batched, cached and deterministic.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from internalize.curricula import View
from internalize.models import Cache, Transformer
from internalize.rendering import Batch, PositionIds, Vocabulary, render
from internalize.seeding import numpy_stream
from internalize.tasks import Part, Task, Traces

ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class Accuracy:
    """Right answers among `n` independent draws from a split, of which `distinct` inputs differ."""

    correct: int
    n: int
    distinct: int

    @property
    def value(self) -> float:
        return self.correct / self.n


def draw_splits(task: Task, distributions: Sequence[str], count: int, part: Part) -> dict[str, Traces]:
    """`count` traces of each distribution from one part of the input space; the same ones whatever the run's seed."""
    return {name: task.sample(name, count, numpy_stream(0, f"{part} {name}"), part) for name in distributions}


def measure(
    model: Transformer,
    vocabulary: Vocabulary,
    splits: Mapping[str, Traces],
    view: View,
    position_ids: PositionIds = "compacted",
) -> dict[str, Accuracy]:
    """The accuracy on each split when the model writes what `view` shows. One pass over all splits together."""
    traces = Traces.concatenate(list(splits.values()))
    batch = render(traces, [view], vocabulary, position_ids=position_ids)
    right = ((generate(model, batch) == batch.tokens) | ~batch.answer).all(axis=1)
    accuracies, start = {}, 0
    for name, split in splits.items():
        correct = int(right[start : start + len(split)].sum())
        accuracies[name] = Accuracy(correct, len(split), len(np.unique(split.prompt(), axis=0)))
        start += len(split)
    return accuracies


def generate(model: Transformer, batch: Batch) -> np.ndarray:
    """`batch.tokens` (rows, columns) with every target column replaced by what the model writes greedily."""
    return write(model, batch).tokens


class Written(NamedTuple):
    """What a model wrote.

    tokens: (rows, columns), the batch's tokens with every target column replaced.
    probability: (rows, columns), how probable the model took each token that it wrote; 1 at other columns.
    """

    tokens: np.ndarray
    probability: np.ndarray


@torch.no_grad()
def write(model: Transformer, batch: Batch, temperature: float = 0.0, rng: np.random.Generator | None = None) -> Written:
    """Let the model write the target columns: greedily, or drawn with `rng` at a temperature above 0.

    Rows that have the same target columns are written together.
    """
    device = next(model.parameters()).device
    tokens, probability = batch.tokens.copy(), np.ones(batch.tokens.shape, np.float32)
    for columns, which in layouts(batch):
        for start in range(0, len(which), ROWS_AT_ONCE):
            rows = which[start : start + ROWS_AT_ONCE]
            read, positions = (torch.from_numpy(array[rows]).to(device) for array in (batch.tokens, batch.positions))
            drawn = rng.random((len(rows), len(columns))) if rng is not None and temperature else None
            draws = None if drawn is None else torch.from_numpy(drawn).to(device)
            written = _write(model, read, positions, columns, temperature, draws)
            tokens[rows], probability[rows] = (array.cpu().numpy() for array in written)
    return Written(tokens, probability)


def layouts(batch: Batch) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The different sets of target columns in a batch, and for each the rows that have them."""
    every = np.arange(len(batch))
    if (batch.target == batch.target[:1]).all():
        return [(np.flatnonzero(batch.target[0]), every)]
    patterns, which = np.unique(batch.target, axis=0, return_inverse=True)
    return [(np.flatnonzero(pattern), every[which.ravel() == at]) for at, pattern in enumerate(patterns)]


def _write(
    model: Transformer,
    tokens: Tensor,
    positions: Tensor,
    columns: NDArray[np.int64],
    temperature: float,
    draws: Tensor | None,
) -> tuple[Tensor, Tensor]:
    tokens = tokens.clone()
    probability = torch.ones(tokens.shape, device=tokens.device)
    for place, (column, logits) in enumerate(_steps(model, tokens, positions, columns)):
        if draws is None:
            chosen = logits.argmax(dim=-1)
        else:  # the inverse of the distribution function, so that numpy's stream decides
            steps = torch.softmax(logits.double() / temperature, dim=-1).cumsum(dim=-1)
            chosen = (steps < draws[:, place, None]).sum(dim=-1).clamp(max=logits.shape[-1] - 1)
        tokens[:, column] = chosen
        probability[:, column] = torch.softmax(logits.float(), dim=-1).gather(-1, chosen[:, None])[:, 0]
    return tokens, probability


def _steps(model: Transformer, tokens: Tensor, positions: Tensor, columns: NDArray[np.int64]) -> Iterator[tuple[int, Tensor]]:
    """Each column of `columns` with the logits of its token; the caller writes the token before it asks for the next."""
    cache, start = Cache(tokens.shape[1]), 0
    for column in map(int, columns):
        new = slice(start, column)
        yield column, model(tokens[:, new], positions[:, new], first=column - 1 - start, cache=cache)[:, -1]
        start = column


@torch.no_grad()
def stream(model: Transformer, batch: Batch) -> Iterator[tuple[int, int]]:
    """Each target column of a batch of one row with the token that the model writes there greedily, once it is written."""
    device = next(model.parameters()).device
    tokens, positions = torch.from_numpy(batch.tokens.copy()).to(device), torch.from_numpy(batch.positions.copy()).to(device)
    for column, logits in _steps(model, tokens, positions, np.flatnonzero(batch.target[0])):
        tokens[0, column] = logits[0].argmax()
        yield column, int(tokens[0, column])
