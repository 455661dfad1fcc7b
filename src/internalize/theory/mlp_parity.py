"""Parity with a two-layer network (paper, section 5): direct training, a curriculum over hints, one mixture of all stages.

    internalize mlp-parity --arms direct curriculum mixture

Inputs x are uniform bits; the label is the XOR of k of them, flipped with probability `noise`. The network g reads (x, z),
where the hints z_1 .. z_(k-1) are the partial parities. Stage l = 1 .. k shows x, z_1 .. z_(k-l) and zeros, so that the last
stage has none. (The paper's text lets its index stop one stage short; the last stage is needed for a predictor without
hints.)

As an instance of Definition 1: the hypothesis h_theta is the subnetwork of g on x alone (all hints 0); its slow procedure
asks an oracle for the hints and runs g on (x, z). The network after the last stage internalizes that procedure if its h
agrees with it on all x.

The mixture draws a stage for each example. It is a generalized positive distribution shift (Medvedev et al. 2026): it adds
inputs made with knowledge of the target. `shifted` is a strict one, a covariate shift that knows nothing of it: half of its
inputs draw a bias of their own, uniform in (0, 1), for all bits. The paper's mixture sums k - 1 terms and divides by k; ours
has k stages of weight 1/k, the last of which is the target distribution itself.

Width, steps, batch and step size are not public: ours.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from internalize.checking import check_at_least, check_types
from internalize.errors import UserError
from internalize.seeding import numpy_stream, torch_stream
from internalize.tasks.base import Ints, Part
from internalize.tasks.splits import sample_part
from internalize.theory.parity import check_problem

TEST = 4096
Arm = Literal["direct", "curriculum", "mixture", "shifted"]
BLOCK = 50  # steps whose data are drawn at once


@dataclass(frozen=True)
class MLPParityConfig:
    """The problem, the network and its training. d, k and the noise are the paper's, all else is ours."""

    arm: Arm = "curriculum"
    """direct: never a hint; curriculum: the stages in order, equally many steps each; mixture: a random stage for each example;
    shifted: never a hint, half of the inputs from biased bits"""
    bits: int = 25
    """input bits d"""
    support: int = 12
    """support bits k"""
    noise: float = 0.1
    """probability that a training label is flipped"""
    inputs: Literal["signs", "bits"] = "signs"
    """what the network reads for a bit: -1 and +1, or 0 and 1; a zeroed hint is 0 in both"""
    zeroed: Literal["right", "left"] = "right"
    """which hints go first: from the right, the most informative ones (paper), or from the left"""
    train_size: int = 0
    """training inputs, drawn once for each seed with their (noisy) labels; 0: fresh ones at every step"""
    width: int = 512
    """hidden units"""
    steps: int = 18_000
    """optimizer steps in all"""
    batch: int = 256
    """examples in each step"""
    lr: float = 1e-3
    """Adam's step size"""
    check_every: int = 200
    """steps between measurements of the test accuracy"""

    def __post_init__(self) -> None:
        check_types(self)
        check_problem(self.bits, self.support, self.noise)
        check_at_least(self, 1, "width", "steps", "batch", "check_every")
        check_at_least(self, 0, "train_size")
        if not (math.isfinite(self.lr) and self.lr > 0):
            raise UserError(f"lr is {self.lr}; it must be above 0.")


@dataclass(frozen=True)
class Curve:
    """Accuracy of the predictor without hints, against noiseless parity, on inputs that are never trained on.

    samples: (checks,) training examples so far; accuracy: (seeds, checks).
    """

    samples: np.ndarray
    accuracy: np.ndarray

    def samples_to(self, accuracy: float = 0.95) -> list[int | None]:
        """For each seed, the training examples at the first check that reaches `accuracy`; None where none does (censored)."""
        reached = self.accuracy >= accuracy
        return [int(self.samples[row.argmax()]) if row.any() else None for row in reached]


def train_mlp_parity(config: MLPParityConfig, seeds: list[int], progress: Callable[[int, int], None] | None = None) -> Curve:
    """Train all seeds side by side, each with its own support, weights and data; `progress` is told (steps done, in all)."""
    data = [_Data(config, seed) for seed in seeds]
    weights = _initial(config, seeds)
    optimizer = torch.optim.Adam(weights, config.lr, fused=True)
    tests = [source.test() for source in data]
    test_x, test_y = (torch.stack(parts) for parts in zip(*tests, strict=True))
    samples, accuracy = [0], [_accuracy(weights, test_x, test_y)]
    for start in range(0, config.steps, BLOCK):
        steps = min(BLOCK, config.steps - start)
        blocks = [source.draw(start, steps) for source in data]
        x, y = (torch.stack(parts).view(len(seeds), steps, config.batch, -1) for parts in zip(*blocks, strict=True))
        for step in range(steps):
            optimizer.zero_grad(set_to_none=True)
            logit = _forward(weights, x[:, step])
            loss = F.binary_cross_entropy_with_logits(logit, y[:, step, :, 0], reduction="none").mean(1).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            done = start + step + 1
            if done % config.check_every == 0 or done == config.steps:
                samples.append(done * config.batch)
                accuracy.append(_accuracy(weights, test_x, test_y))
        if progress is not None:
            progress(start + steps, config.steps)
    return Curve(np.array(samples), np.stack(accuracy, axis=1))


class _Data:
    """The examples of one seed."""

    def __init__(self, config: MLPParityConfig, seed: int) -> None:
        self.config = config
        self.support = numpy_stream(seed, "support").permutation(config.bits)[: config.support]
        self.rng = numpy_stream(seed, "data")
        self.seed = seed
        self.fixed = self._inputs(config.train_size, "train", self.rng) if config.train_size else None
        self.labels = None if self.fixed is None else self._noisy(self.fixed)

    def draw(self, start: int, steps: int) -> tuple[Tensor, Tensor]:
        """(steps * batch, d + k - 1) network inputs and (steps * batch, 1) labels for the steps from `start` on."""
        config, count = self.config, steps * self.config.batch
        if self.fixed is None or self.labels is None:
            bits = self._inputs(count, "train", self.rng)
            labels = self._noisy(bits)
        else:
            chosen = self.rng.integers(config.train_size, size=count)
            bits, labels = self.fixed[chosen], self.labels[chosen]
        k = config.support
        if config.arm == "curriculum":
            shown = k - 1 - (start + np.arange(count) // config.batch) * k // config.steps
        elif config.arm == "mixture":
            shown = self.rng.integers(k, size=count)
        else:
            shown = np.zeros(count, np.int64)
        return self._read(bits, shown), torch.from_numpy(labels[:, None]).float()

    def test(self) -> tuple[Tensor, Tensor]:
        """Held-out network inputs without hints, and clean labels (TEST,)."""
        bits = self._inputs(TEST, "test", numpy_stream(self.seed, "test"), uniform=True)
        return self._read(bits, np.zeros(TEST, np.int64)), torch.from_numpy(self._chain(bits)[:, -1]).float()

    def _inputs(self, count: int, part: Part, rng: np.random.Generator, uniform: bool = False) -> Ints:
        """Bits of one part of the input space."""
        d = self.config.bits

        def draw(n: int) -> Ints:
            bits = rng.integers(2, size=(n, d))
            if self.config.arm == "shifted" and not uniform:
                own = rng.random((n, d)) < rng.random((n, 1))
                bits = np.where(rng.random((n, 1)) < 0.5, own, bits)
            return bits.astype(np.int64)

        return sample_part(draw, count, part, f"parity of {d} bits")

    def _chain(self, bits: Ints) -> Ints:
        """(rows, k): z_1 .. z_k."""
        chain: Ints = bits[:, self.support].cumsum(axis=1) % 2
        return chain

    def _noisy(self, bits: Ints) -> Ints:
        return (self._chain(bits)[:, -1] + (self.rng.random(len(bits)) < self.config.noise)) % 2

    def _read(self, bits: Ints, shown: Ints) -> Tensor:
        """What the network reads: `shown` hints, the others 0."""
        hints = self._chain(bits)[:, :-1]
        index = np.arange(hints.shape[1])
        visible = index < shown[:, None] if self.config.zeroed == "right" else index >= hints.shape[1] - shown[:, None]
        both = np.concatenate([bits, hints], axis=1)
        values = 2 * both - 1 if self.config.inputs == "signs" else both
        visible = np.concatenate([np.ones_like(bits, bool), visible], axis=1)
        return torch.from_numpy(np.where(visible, values, 0)).float()


def _initial(config: MLPParityConfig, seeds: list[int]) -> list[Tensor]:
    """W (S, d + k - 1, width), b (S, 1, width), v (S, width, 1), c (S, 1, 1): He's initialisation, zero biases."""
    reads = config.bits + config.support - 1
    streams = [torch_stream(seed, "weights") for seed in seeds]
    first = torch.stack([torch.randn(reads, config.width, generator=stream) for stream in streams]) * math.sqrt(2 / reads)
    last = torch.stack([torch.randn(config.width, 1, generator=stream) for stream in streams]) * math.sqrt(1 / config.width)
    zeros = torch.zeros(len(seeds), 1, config.width), torch.zeros(len(seeds), 1, 1)
    return [weight.requires_grad_() for weight in (first, zeros[0], last, zeros[1])]


def _forward(weights: list[Tensor], x: Tensor) -> Tensor:
    """Logits (S, n) of inputs (S, n, d + k - 1)."""
    first, bias, last, offset = weights
    return (torch.baddbmm(offset, torch.baddbmm(bias, x, first).relu(), last))[..., 0]


@torch.no_grad()
def _accuracy(weights: list[Tensor], x: Tensor, y: Tensor) -> np.ndarray:
    return np.asarray(((_forward(weights, x) > 0) == (y > 0.5)).double().mean(1))
