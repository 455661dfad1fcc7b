"""A second shape of chain for parity: a binary tree, learnt in one gradient step with teacher forcing (Kim & Suzuki 2024).

    internalize tree-parity --bits 30 --support 8

Inputs x are uniform signs; the target is the product of k = 2^m of them. The chain is a binary tree: k / 2 products of pairs
of support bits, then products of pairs of these, and so on to the root, which is the answer. One layer of softmax attention
predicts the next token at position p as phi(sum_j softmax(w_p)_j v_j) of the tokens v before, with a fixed phi(s) = -cos(pi
s): 1 at +-1 and -1 at 0, so that attending to both factors alike gives their product. All w start at 0, that is uniform
attention, and take one step down the squared error of all chain tokens. Each row's gradient is greatest at its two factors,
by about pi^2 / M^2 for M tokens before. The size of the step is ours: 10 M^2 / pi^2, after which the factors have nearly all
of the attention.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from internalize.checking import check_at_least, check_types
from internalize.errors import UserError
from internalize.seeding import numpy_stream

TEST = 10_000
CHUNK = 2**14
ADVANTAGE = 10.0  # logit by which the step raises the factors over the other tokens


@dataclass(frozen=True)
class TreeParityConfig:
    """The problem, and the samples of its one gradient step."""

    bits: int = 30
    """input bits d"""
    support: int = 8
    """support bits k, a power of two"""
    batch: int = 0
    """samples in the gradient step; 0: 64 d^2 (ours)"""

    def __post_init__(self) -> None:
        check_types(self)
        if not 2 <= self.support <= self.bits or self.support & (self.support - 1):
            raise UserError(f"support is {self.support}; a tree needs a power of two between 2 and the {self.bits} bits.")
        check_at_least(self, 0, "batch")

    @property
    def samples(self) -> int:
        """Samples of the gradient step."""
        return self.batch or 64 * self.bits**2


@dataclass(frozen=True)
class TreeParityOutcome:
    """For each seed: whether every row attends most to its two factors, and the accuracy of the generated answer."""

    exact: np.ndarray
    accuracy: np.ndarray


def learn_tree_parity(
    config: TreeParityConfig, seeds: list[int], progress: Callable[[int, int], None] | None = None
) -> TreeParityOutcome:
    """One gradient step for each seed, then generation of the chain on 10,000 fresh inputs; `progress` is told of the seeds."""
    outcomes = []
    for done, seed in enumerate(seeds, 1):
        outcomes.append(_learn(config, seed))
        if progress is not None:
            progress(done, len(seeds))
    exact, accuracy = zip(*outcomes, strict=True)
    return TreeParityOutcome(np.array(exact), np.array(accuracy))


def _learn(config: TreeParityConfig, seed: int) -> tuple[bool, float]:
    d, k = config.bits, config.support
    leaves = numpy_stream(seed, "support").permutation(d)[:k]
    # Node n (column d + n) is the product of two columns: first pairs of leaves, then pairs of earlier nodes.
    columns = [*leaves.tolist(), *range(d, d + k - 2)]
    factors = torch.tensor(columns).view(k - 1, 2)
    samples, test = numpy_stream(seed, "parity samples"), numpy_stream(seed, "parity test")
    before = d + torch.arange(k - 1)  # tokens that a row reads
    reads = torch.arange(d + k - 1) < before[:, None]

    total = torch.zeros(k - 1, d + k - 1)
    for start in range(0, config.samples, CHUNK):
        v = _sequences(min(CHUNK, config.samples - start), d, factors, samples)
        mean = (v @ reads.T.float()) / before  # (n, k - 1)
        error = (_link(mean) - v[:, d:]) * math.pi * torch.sin(math.pi * mean)
        total += (error.T @ v - (error * mean).sum(0)[:, None]) / before[:, None]
    step = ADVANTAGE * before.float() ** 2 / math.pi**2
    weights = torch.where(reads, -step[:, None] * total / config.samples, -math.inf)

    truth = _sequences(TEST, d, factors, test)
    written = truth.clone()
    written[:, d:] = 0
    for node in range(k - 1):  # generation: the model reads what it wrote
        attention = weights[node].softmax(0)
        written[:, d + node] = _link(written @ attention).sign()
    top = weights.topk(2, dim=1).indices.sort(1).values
    exact = bool((top == factors.sort(1).values).all())
    return exact, float((written[:, -1] == truth[:, -1]).double().mean())


def _link(s: Tensor) -> Tensor:
    """phi."""
    return -torch.cos(math.pi * s)


def _sequences(count: int, bits: int, factors: Tensor, rng: np.random.Generator) -> Tensor:
    """(count, d + k - 1): signs, then the nodes of the tree."""
    v = torch.ones(count, bits + len(factors))
    v[:, :bits] = torch.from_numpy(rng.integers(2, size=(count, bits), dtype=np.int8)) * 2.0 - 1
    for node, (a, b) in enumerate(factors.tolist()):
        v[:, bits + node] = v[:, a] * v[:, b]
    return v
