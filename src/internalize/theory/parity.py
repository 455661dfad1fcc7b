"""The provable algorithm (paper, Theorem 2 and Algorithm 2): sparse parity, internalized by one-layer linear attention.

    internalize parity --bits 30 --support 10

Inputs x are uniform on {0,1}^d; the target is the XOR of the bits at an unknown support i_1 .. i_k; the chain is z_t, the
XOR of the first t of them. The model predicts the next token at a position as sigma(<w, v>), where v are the tokens so far,
w is the weight row of that position, and sigma is a fixed triangle wave: 0 at even and 1 at odd integers.

    stage 1       sequence x, z_1 .. z_k: every row that predicts a chain token is trained
    stage 2 .. k  sequence x, z_t .. z_k: only the row of the last input bit is trained, to predict z_t at once
                  each stage: T gradient steps on the mean squared error, then every weight is rounded to an integer

The invariant: after stage t that row is -1 at i_1 .. i_t and 0 elsewhere. After stage k the model answers in one step.

The paper guarantees success with probability 1 - delta for a step size Theta(1/d), T = Theta(d) and batches of Omega(d^3
log(kT/delta)). Its constants, and the appendix with the exact algorithm, are not public. Ours: step size 1/d, T = 8d, every
batch fresh, the derivative at the kinks of sigma (where every stage begins) from the left, the trained row begun at 0, and
the row of z_t begun at -1 on z_t itself, which says "the next token is like this one".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from internalize.checking import check_at_least, check_types
from internalize.errors import UserError
from internalize.seeding import numpy_stream

DELTA = 0.05
AT_ONCE = 2**24  # numbers of a batch that are held at a time; larger batches stream
TEST = 10_000


@dataclass(frozen=True)
class ParityConfig:
    """The problem and the algorithm's constants; 0 takes the default of ours."""

    bits: int = 30
    """input bits d"""
    support: int = 10
    """support bits k"""
    batch: int = 0
    """samples in each gradient step B; 0: 8 d (ours, far below the theorem's bound)"""
    steps: int = 0
    """gradient steps in each stage T; 0: 8 d (ours)"""
    lr: float = 0.0
    """step size; 0: 1/d (ours)"""
    batches: Literal["fresh", "fixed"] = "fresh"
    """fresh: new samples at each step (as the theorem's union bound over all steps reads); fixed: one batch for each stage"""
    method: Literal["internalize", "e2e"] = "internalize"
    """e2e: the same row trained on the parity itself from the start, on as many samples as all stages together"""
    derivative: Literal["left", "right"] = "left"
    """which one-sided derivative of the triangle wave is taken at integers"""
    rounding: bool = True
    """round the weights after each stage"""
    chain_rows: Literal["copy", "zero"] = "copy"
    """how the rows of the chain tokens begin: at -1 on their own token, or at 0"""
    noise: float = 0.0
    """probability that a training label is flipped"""

    def __post_init__(self) -> None:
        check_types(self)
        check_problem(self.bits, self.support, self.noise)
        check_at_least(self, 0, "batch", "steps")
        if not (math.isfinite(self.lr) and self.lr >= 0):
            raise UserError(f"lr is {self.lr}; it must be a number of at least 0.")

    @property
    def samples(self) -> int:
        """B."""
        return self.batch or 8 * self.bits

    @property
    def updates(self) -> int:
        """T."""
        return self.steps or 8 * self.bits

    @property
    def rate(self) -> float:
        """The step size."""
        return self.lr or 1 / self.bits

    @property
    def bound(self) -> int:
        """The theorem's batch, d^3 log(kT/delta) with delta = .05 and its constant taken as 1 (ours)."""
        return math.ceil(self.bits**3 * math.log(self.support * self.updates / DELTA))


@dataclass(frozen=True)
class ParityOutcome:
    """What each seed came to.

    invariant: (seeds, stages) bool: after that stage the trained row is -1 on the first t support bits and 0 elsewhere.
    chain: (seeds,) bool: after stage 1 every row that predicts a chain token is right, too.
    exact: (seeds,) bool: the final row is odd on the support and even elsewhere, so that it computes the parity for every x.
    accuracy: (seeds,) of the final direct answer, on 10,000 fresh inputs with clean labels.
    """

    invariant: np.ndarray
    chain: np.ndarray
    exact: np.ndarray
    accuracy: np.ndarray


def check_problem(bits: int, support: int, noise: float) -> None:
    """Raise `UserError` unless there is a noisy parity of `support` of `bits` bits."""
    if not 1 <= support <= bits:
        raise UserError(f"support is {support}; it must be between 1 and the {bits} bits.")
    if not 0 <= noise < 0.5:
        raise UserError(f"noise is {noise}; it must be at least 0 and below 0.5.")


def wave(s: Tensor) -> Tensor:
    """sigma: the triangle wave with 0 at even and 1 at odd integers."""
    return 1 - (s.remainder(2) - 1).abs()


def slope(s: Tensor, side: str) -> Tensor:
    """sigma' at s, taken at integers from one side."""
    r = s.remainder(2)
    rising = (r > 0) & (r <= 1) if side == "left" else r < 1
    return rising.to(s.dtype) * 2 - 1


def internalize_parity(
    config: ParityConfig, seeds: list[int], progress: Callable[[int, int], None] | None = None
) -> ParityOutcome:
    """Run the algorithm for all seeds side by side; `progress` is told (gradient steps done, in all).

    Each seed has its own support, in its own order, and its own samples.
    """
    algorithm = _Algorithm(config, seeds, progress)
    k = config.support
    invariant = np.zeros((len(seeds), k), bool)
    chain = np.zeros(len(seeds), bool)
    if config.method == "e2e":
        algorithm.train_row(k, config.updates * k)
        invariant[:, -1] = algorithm.holds(k)
        return ParityOutcome(invariant, chain, algorithm.exact(), algorithm.accuracy())
    chain = algorithm.train_chain()
    invariant[:, 0] = algorithm.holds(1)
    for stage in range(2, k + 1):
        algorithm.train_row(stage, config.updates)
        invariant[:, stage - 1] = algorithm.holds(stage)
    return ParityOutcome(invariant, chain, algorithm.exact(), algorithm.accuracy())


class _Algorithm:
    """The state of all seeds. Shapes: S seeds, n samples of a chunk, d bits, k support bits."""

    def __init__(self, config: ParityConfig, seeds: list[int], progress: Callable[[int, int], None] | None) -> None:
        self.config, self.progress = config, progress
        support = [numpy_stream(seed, "support").permutation(config.bits)[: config.support] for seed in seeds]
        self.support = torch.from_numpy(np.stack(support))  # (S, k)
        self.samples = [numpy_stream(seed, "parity samples") for seed in seeds]
        self.test = [numpy_stream(seed, "parity test") for seed in seeds]
        self.row = torch.zeros(len(seeds), config.bits)  # of the last input bit
        self.done = 0

    def train_row(self, stage: int, updates: int) -> None:
        """Gradient steps of the last input bit's row towards z_stage."""

        def gradient(row: Tensor, x: Tensor) -> Tensor:
            target = self._flip(self._chain(x)[..., stage - 1])
            s = torch.bmm(x, row[..., None])[..., 0]
            error = (wave(s) - target) * slope(s, self.config.derivative)
            return torch.bmm(error[:, None], x)[:, 0]

        self.row = self._descend(self.row, gradient, updates)

    def train_chain(self) -> np.ndarray:
        """Stage 1: the rows of x_d and of z_1 .. z_(k-1), each towards the next token. Returns (S,) whether all are right."""
        d, k = self.config.bits, self.config.support
        own = torch.arange(1, k), torch.arange(d, d + k - 1)  # (row, column) of each chain token's weight on itself
        reads = torch.arange(d + k - 1) < d + torch.arange(k)[:, None]  # the row of z_t reads x and z_1 .. z_t
        rows = torch.zeros(len(self.support), k, d + k - 1)
        if self.config.chain_rows == "copy":
            rows[:, *own] = -1

        def gradient(rows: Tensor, x: Tensor) -> Tensor:
            z = self._chain(x)
            v = torch.cat([x, z[..., :-1]], dim=2)
            s = torch.bmm(v, rows.transpose(1, 2))
            error = (wave(s) - self._flip(z)) * slope(s, self.config.derivative)
            return torch.bmm(error.transpose(1, 2), v) * reads

        rows = self._descend(rows, gradient, self.config.updates)
        self.row = rows[:, 0, :d]
        right = torch.zeros_like(rows)
        right[:, *own] = -1
        right.scatter_(2, self.support[..., None], -1)
        return np.asarray((rows == right).flatten(1).all(1))

    def holds(self, stage: int) -> np.ndarray:
        """(S,) whether the trained row is -1 on the first `stage` support bits and 0 elsewhere."""
        right = torch.zeros_like(self.row).scatter_(1, self.support[:, :stage], -1)
        return np.asarray((self.row == right).all(1))

    def exact(self) -> np.ndarray:
        """(S,) whether the trained row computes the parity for every x: odd on the support, even elsewhere."""
        right = torch.zeros_like(self.row).scatter_(1, self.support, 1)
        return np.asarray((self.row.remainder(2) == right).all(1))

    def accuracy(self) -> np.ndarray:
        """(S,) of the direct answer, on fresh inputs."""
        x = self._draw(TEST, self.test)
        answer = wave(torch.bmm(x, self.row[..., None])[..., 0]).round()
        return np.asarray((answer == self._chain(x)[..., -1]).double().mean(1))

    def _descend(self, weights: Tensor, gradient: Callable[[Tensor, Tensor], Tensor], updates: int) -> Tensor:
        """T steps on the mean squared error, then rounding. A batch that does not fit is summed in chunks."""
        config = self.config
        width = config.bits + config.support
        chunk = max(1, min(config.samples, AT_ONCE // (len(weights) * width)))
        sizes = [min(chunk, config.samples - start) for start in range(0, config.samples, chunk)]
        fixed = None
        if config.batches == "fixed":
            if len(sizes) > 1:
                raise UserError(
                    f"a fixed batch of {config.samples:,} samples for {len(weights)} seeds does not fit; take fresh."
                )
            fixed = self._draw(sizes[0], self.samples)
        for _ in range(updates):
            total = torch.zeros_like(weights)
            for size in sizes:
                total += gradient(weights, self._draw(size, self.samples) if fixed is None else fixed)
            weights = weights - config.rate * 2 / config.samples * total
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, config.updates * config.support)
        return weights.round() if config.rounding else weights

    def _draw(self, count: int, streams: list[np.random.Generator]) -> Tensor:
        """(S, n, d) bits."""
        numbers = count * self.config.bits
        bits = [np.unpackbits(np.frombuffer(rng.bytes(-(-numbers // 8)), np.uint8), count=numbers) for rng in streams]
        return torch.from_numpy(np.stack(bits)).view(len(streams), count, self.config.bits).float()

    def _chain(self, x: Tensor) -> Tensor:
        """(S, n, k): z_1 .. z_k."""
        return x.gather(2, self.support[:, None].expand(-1, x.shape[1], -1)).cumsum(2).remainder(2)

    def _flip(self, labels: Tensor) -> Tensor:
        """Labels of which each is flipped with probability `noise`, by its seed's stream."""
        if not self.config.noise:
            return labels
        flips = np.stack([rng.random(labels.shape[1:]) < self.config.noise for rng in self.samples])
        return (labels + torch.from_numpy(flips)).remainder(2)
