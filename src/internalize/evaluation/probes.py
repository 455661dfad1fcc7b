"""What a model knows where: linear probes of the residual stream, activation patching and attention, on a prompt's columns.

The states q_1..q_T of a chain are what the model was taught to write; once it answers at once, is each of them still computed,
and where? A probe is a multinomial logistic regression from the residual at a layer and column to the state, fitted on training
inputs and judged on test inputs. Two controls say what a probe finds anyway: the same on an untrained model of the same shape,
and with labels that are shuffled over rows. (Method: ours, after the usual practice.)
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from internalize.curricula import View
from internalize.errors import UserError
from internalize.models import Transformer
from internalize.models.transformer import Layer, rotate
from internalize.rendering import Vocabulary, render
from internalize.seeding import numpy_stream
from internalize.tasks import Task, Traces

STEPS, RATE, DECAY = 150, 0.1, 1e-3  # of the probes' full-batch Adam, on standardised features
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Probes:
    """What was found in one model.

    columns, targets: names; layer 0 is the embedding, layer l what the l-th layer gives.
    accuracy, shuffled, untrained: [layer][column][target], test accuracy of the probe and of its two controls.
    chance: [target], how often the most frequent value occurs.
    restored: [layer][column], activation patching: one symbol of an input is changed so that the model's answer changes; how
        often putting back the residual of one column restores the answer. None where no answer changed.
    attention: [layer][head][column], mean attention that the answer's column pays.
    answer: how often the model's next token is right: the first of its chain where a chain is shown, else of its answer.
    """

    columns: tuple[str, ...]
    targets: tuple[str, ...]
    accuracy: list[list[list[float]]]
    shuffled: list[list[list[float]]]
    untrained: list[list[list[float]]]
    chance: list[float]
    restored: list[list[float]] | None
    attention: list[list[list[float]]]
    answer: float

    @property
    def own(self) -> dict[str, float]:
        """Mean accuracy, over t, of reading q_t from the last layer at the column of the t-th symbol; and of the controls."""
        return {
            name: float(np.mean([getattr(self, name)[-1][self.place(t)][t] for t in range(len(self.targets))]))
            for name in ("accuracy", "shuffled", "untrained")
        }

    def place(self, target: int) -> int:
        """The column of the symbol that leads to a target: the last symbols go with the last targets."""
        symbols = [at for at, name in enumerate(self.columns) if name.startswith("s_")]
        return symbols[max(0, len(symbols) - len(self.targets) + target)]

    @property
    def sentence(self) -> str:
        """What it says, in words."""
        own, last = self.own, self.accuracy[-1][-1]
        beyond = [name for name, value, low in zip(self.targets, last, self.chance, strict=True) if value > (1 + low) / 2]
        there = f"{', '.join(beyond)} can" if beyond else "nothing can"
        return (
            f"After the last layer, the state that each symbol leads to can be read at that symbol's column with accuracy "
            f"{own['accuracy']:.3f} (untrained {own['untrained']:.3f}, shuffled labels {own['shuffled']:.3f}); at the answer's "
            f"own column, {there} be read more than half-way above chance."
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "own": self.own, "sentence": self.sentence}


@torch.no_grad()
def residuals(model: Transformer, tokens: Tensor, positions: Tensor) -> Tensor:
    """The residual stream, (layers + 1, rows, columns, width): after the embedding and after each layer."""
    x = model.embedding(tokens)
    if model.position is not None:
        x = x + model.position(positions)
    found = [x]
    for index, layer in enumerate(model.layers):
        found.append(layer(found[-1], positions, 0, None, index))
    return torch.stack(found)


def probe(
    model: Transformer,
    untrained: Transformer,
    task: Task,
    view: View,
    *,
    samples: int = 2000,
    distribution: str = "uniform",
    seed: int = 0,
) -> Probes:
    """Probe a model that answers as `view` says.

    Args:
        model: the trained one.
        untrained: of the same shape, for the control.
        task: its chain and answer are what is looked for.
        view: how the row is written; only the columns of its prompt (and hint) are looked at.
        samples: inputs to fit on; half as many, of the test part, judge.
        distribution: of the inputs.
        seed: of the inputs, the shuffling and the changed symbols.

    Raises:
        UserError: for too few samples, and for a task whose inputs cannot be drawn.
    """
    if samples < 20:
        raise UserError(f"samples is {samples}; probes need at least 20.")
    fit, judge = (
        task.sample(distribution, count, numpy_stream(seed, f"probe {part}"), part)  # type: ignore[arg-type]
        for part, count in (("train", samples), ("test", samples // 2))
    )
    rows = [_prompt(task, view, traces) for traces in (fit, judge)]
    labels = [_targets(traces) for traces in (fit, judge)]
    order = numpy_stream(seed, "shuffled labels").permutation(samples)
    features = [residuals(model, *row) for row in rows]
    accuracy = _accuracies(features[0], features[1], labels[0], labels[1])
    shuffled = _accuracies(features[0], features[1], labels[0][order], labels[1])
    plain = [residuals(untrained, *row) for row in rows]
    control = _accuracies(plain[0], plain[1], labels[0], labels[1])
    chance = [float(np.bincount(column).max() / len(column)) for column in labels[1].T]
    answer = float((_answers(model, features[1][-1]) == _next(task, view, judge)).mean())
    return Probes(
        _column_names(fit.prompt().shape[1], view, rows[0][0].shape[1]),
        tuple(f"q_{t + 1}" for t in range(labels[0].shape[1])),
        accuracy.tolist(),
        shuffled.tolist(),
        control.tolist(),
        chance,
        _restored(model, task, view, judge, seed),
        _attention(model, features[1], rows[1][1]),
        answer,
    )


def _prompt(task: Task, view: View, traces: Traces) -> tuple[Tensor, Tensor]:
    """Tokens and positions of what stands before the first token that is written."""
    batch = render(traces, [view], Vocabulary.of(task))
    return (
        torch.from_numpy(batch.tokens[:, : batch.first + 1].copy()),
        torch.from_numpy(batch.positions[:, : batch.first + 1].copy()),
    )


def _next(task: Task, view: View, traces: Traces) -> NDArray[np.int64]:
    """(rows,): the task token that is right after the prompt."""
    batch = render(traces, [view], Vocabulary.of(task))
    found: NDArray[np.int64] = batch.tokens[:, batch.first + 1] - Vocabulary.FIRST_TASK_TOKEN
    return found


def _targets(traces: Traces) -> NDArray[np.int64]:
    """(rows, targets): the tokens of chain and answer."""
    found: NDArray[np.int64] = traces.tokens[traces.written].reshape(len(traces), -1)
    return found


def _column_names(symbols: int, view: View, columns: int) -> tuple[str, ...]:
    hint = ["hint"] if view.hint is not None else []
    rest = columns - 1 - symbols - len(hint)  # what stands in for removed units
    return ("BOS", *(f"s_{t + 1}" for t in range(symbols)), *hint, *(f"gone_{t + 1}" for t in range(rest)))


def _accuracies(fit: Tensor, judge: Tensor, labels: NDArray[np.int64], truth: NDArray[np.int64]) -> Floats:
    """(layers + 1, columns, targets): test accuracy of the classifier of each layer and column."""
    classes = int(max(labels.max(), truth.max())) + 1
    wanted = torch.from_numpy(labels)
    found = np.empty((fit.shape[0], fit.shape[2], labels.shape[1]))
    for layer in range(fit.shape[0]):
        x, z = (part[layer].transpose(0, 1) for part in (fit, judge))  # (columns, rows, width)
        mean, spread = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-6
        x, z = (x - mean) / spread, (z - mean) / spread
        columns, _, width = x.shape
        weights = torch.zeros(columns, width, labels.shape[1] * classes, requires_grad=True)
        offsets = torch.zeros(columns, 1, labels.shape[1] * classes, requires_grad=True)
        optimizer = torch.optim.Adam([weights, offsets], RATE)
        targets = wanted.expand(columns, *wanted.shape).flatten()
        for _ in range(STEPS):
            optimizer.zero_grad()
            logits = (x @ weights + offsets).reshape(-1, classes)
            # Each column and target is a problem of its own: the mean over rows, summed over problems.
            loss = F.cross_entropy(logits, targets, reduction="sum") / len(labels) + DECAY * weights.pow(2).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        scores = (z @ weights + offsets).detach().reshape(*z.shape[:2], labels.shape[1], classes)
        found[layer] = (scores.argmax(-1).numpy() == truth).mean(1)
    return found


def _answers(model: Transformer, last: Tensor) -> NDArray[np.int64]:
    """(rows,): the task token that the model writes after its prompt, from the residual (rows, columns, width)."""
    with torch.no_grad():
        chosen: NDArray[np.int64] = model.unembedding(model.norm(last[:, -1])).argmax(-1).numpy()
    return chosen - Vocabulary.FIRST_TASK_TOKEN


@torch.no_grad()
def _restored(model: Transformer, task: Task, view: View, traces: Traces, seed: int) -> list[list[float]] | None:
    """[layer][column]: how often the clean residual there restores the clean answer of an input with one changed symbol."""
    rng = numpy_stream(seed, "changed symbols")
    inputs = traces.prompt()
    place = rng.integers(inputs.shape[1], size=len(inputs))
    changed = inputs.copy()
    row = np.arange(len(inputs))
    symbols = len(task.alphabet)
    changed[row, place] = (changed[row, place] + rng.integers(1, symbols, size=len(inputs))) % symbols
    (clean_tokens, positions), (tokens, _) = (_prompt(task, view, task.trace(some)) for some in (inputs, changed))
    clean, dirty = residuals(model, clean_tokens, positions), residuals(model, tokens, positions)
    said = _answers(model, clean[-1])
    differ = np.flatnonzero(said != _answers(model, dirty[-1]))
    if not len(differ):
        return None
    clean, dirty, positions, said = clean[:, differ], dirty[:, differ], positions[differ], said[differ]
    found = np.empty((len(clean), clean.shape[2]))
    for layer in range(len(clean)):
        for column in range(clean.shape[2]):
            x = dirty[layer].clone()
            x[:, column] = clean[layer][:, column]
            for index in range(layer, len(model.layers)):
                x = model.layers[index](x, positions, 0, None, index)
            found[layer, column] = (_answers(model, x) == said).mean()
    values: list[list[float]] = found.tolist()
    return values


@torch.no_grad()
def _attention(model: Transformer, features: Tensor, positions: Tensor) -> list[list[list[float]]]:
    """[layer][head][column]: mean attention of the last column."""
    found: list[list[list[float]]] = []
    for index, layer in enumerate(model.layers):
        assert isinstance(layer, Layer)
        y = layer.norm_attention(features[index])
        query, key = layer.query(y), layer.key_value(y).chunk(2, dim=2)[0]
        if layer.rotary:
            query, key = rotate(query, positions, layer.heads), rotate(key, positions, layer.heads)
        q = query[:, -1].reshape(len(y), layer.heads, -1)
        k = key.reshape(*y.shape[:2], layer.heads, -1)
        weights = torch.softmax(torch.einsum("bhk,bnhk->bhn", q, k) / q.shape[2] ** 0.5, dim=2)
        found.append(weights.mean(0).tolist())
    return found


def along(stages: int, most: int) -> list[int]:
    """At most `most` of the stages, evenly spaced, with the first and the last."""
    return sorted({round(at) for at in np.linspace(0, stages - 1, min(most, stages))})


def of_stages(found: Mapping[int, Probes]) -> dict[str, Any]:
    """Probes by stage as JSON values."""
    return {"stages": {str(stage): probes.to_json() for stage, probes in found.items()}}
