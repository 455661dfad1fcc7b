"""Does a model simulate a semiautomaton exactly? Every prefix of every input is checked, and the smallest logit gap kept."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from internalize.models import Transformer
from internalize.rendering import Vocabulary
from internalize.seeding import numpy_stream
from internalize.tasks import Simulation
from internalize.tasks.base import Ints
from internalize.tasks.distributions import sampler

EXHAUSTIVE = 2**20
FEW = 64  # symbols up to which a Dirichlet draw is cheap
ADVERSARIAL = ("constant", "periodic", "blocks", "sticky:0.95", "dirichlet:0.1")


@dataclass(frozen=True)
class Verification:
    """What was checked.

    inputs: sequences of T symbols; exhaustive: they are all there are; positions: prefixes checked, each an input of its own;
    errors: positions where the greatest logit is not on the right state; gap: the least, over positions, of the right
    state's logit minus the greatest other one (positive if and only if there is no error); counterexample: the symbols
    of the first wrong prefix, by name.
    """

    inputs: int
    exhaustive: bool
    positions: int
    errors: int
    gap: float
    counterexample: tuple[str, ...] | None


@torch.no_grad()
def verify(
    model: Transformer,
    task: Simulation,
    inputs: int = 1_000_000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Verification:
    """Check the model's direct answer at every position, in the model's own precision.

    All inputs are checked where there are at most 2^20, else `inputs` of them: first the adversarial ones, which are constant
    sequences, one symbol raised to each count among another, periodic, in blocks, sticky and of extreme frequencies; then
    uniform ones. `progress` is told (inputs done, inputs in all).
    """
    vocabulary = Vocabulary.of(task)
    symbols = len(task.automaton.symbols)
    total = symbols**task.steps
    exhaustive = total <= EXHAUSTIVE
    count = total if exhaustive else inputs
    symbol_ids = torch.from_numpy(vocabulary.task(task.symbol_tokens))
    state_ids = torch.from_numpy(vocabulary.task(task.state_tokens))
    # The widest array of a chunk, logits or hidden units, is kept to some 64 MB.
    widest = max(vocabulary.size, model.config.mlp, (task.steps + 1) * model.config.heads)
    chunk = max(1, min(8192, 2**24 // (widest * (task.steps + 1))))
    positions = torch.arange(task.steps + 1)
    done, errors, gap, counterexample = 0, 0, math.inf, None
    source = _all(symbols, task.steps, chunk) if exhaustive else _drawn(task, inputs, chunk, seed)
    for rows in source:
        tokens = torch.cat([torch.full((len(rows), 1), vocabulary.BOS), symbol_ids[torch.from_numpy(rows)]], dim=1)
        logits = model(tokens, positions.expand_as(tokens), first=1)
        truth = state_ids[torch.from_numpy(task.automaton.run(rows))][..., None]
        right = logits.gather(-1, truth)
        margin = right[..., 0] - logits.scatter(-1, truth, -math.inf).amax(-1)
        gap = min(gap, float(margin.min()))
        wrong = ~(margin > 0)  # a tie, and a NaN, is wrong
        if counterexample is None and wrong.any():
            row, column = (int(value) for value in wrong.nonzero()[0])
            counterexample = tuple(task.automaton.symbols[symbol] for symbol in rows[row, : column + 1])
        errors += int(wrong.sum())
        done += len(rows)
        if progress is not None:
            progress(done, count)
    return Verification(done, exhaustive, done * task.steps, errors, gap, counterexample)


def _all(symbols: int, steps: int, chunk: int) -> Iterator[Ints]:
    """Every input, in order."""
    places = symbols ** np.arange(steps - 1, -1, -1)
    for start in range(0, symbols**steps, chunk):
        index = np.arange(start, min(start + chunk, symbols**steps))
        yield index[:, None] // places % symbols


def _drawn(task: Simulation, inputs: int, chunk: int, seed: int) -> Iterator[Ints]:
    """`inputs` inputs: extreme ones first, half adversarial, half uniform."""
    rng = numpy_stream(seed, "verify")
    extreme = _extreme(len(task.automaton.symbols), task.steps, rng)[:inputs]
    yield from (extreme[start : start + chunk] for start in range(0, len(extreme), chunk))
    left = inputs - len(extreme)
    broad = [name for name in ADVERSARIAL if len(task.alphabet) <= FEW or name != "dirichlet:0.1"]
    names = [*broad, *["uniform"] * len(broad)]
    for index, name in enumerate(names):
        share = left // len(names) + (index < left % len(names))
        draw = sampler(name, task.alphabet)
        for start in range(0, share, chunk):
            yield task.draw(draw, min(chunk, share - start), rng)


def _extreme(symbols: int, steps: int, rng: np.random.Generator) -> Ints:
    """Constant sequences, and for pairs of symbols every count of the one among the other: at the end, and in random places."""
    pairs = [(a, b) for a in (0, 1, symbols // 2, symbols - 1) for b in (0, 1, symbols - 1) if a < symbols and b < symbols]
    rows = [np.repeat(np.arange(min(symbols, 1000))[:, None], steps, axis=1)]
    for a, b in dict.fromkeys(pairs):
        ends = np.where(np.arange(steps) < np.arange(steps + 1)[:, None], a, b)
        rows += [ends, rng.permuted(ends, axis=1)]
    return np.unique(np.concatenate(rows), axis=0)
