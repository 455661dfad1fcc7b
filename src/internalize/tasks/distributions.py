"""Distributions over sequences of symbols, named by short specifications.

    uniform             every symbol equally likely
    biased:1:0.8        symbol "1" with probability 0.8, the others share the rest equally (the paper's OOD inputs)
    dirichlet:0.5       each sequence draws its own symbol frequencies from a symmetric Dirichlet(0.5)
    sticky:0.8          each symbol repeats the one before with probability 0.8, else it is drawn uniformly
    periodic:7          each sequence repeats a random word of 2 to 7 symbols (by default up to half the sequence)
    constant            one symbol throughout
    blocks:4            four constant blocks, cut at random places
    counts:1:3:5        symbol "1" occurs 3 to 5 times, each number equally often; the others share the other places equally
    balanced            every symbol equally often, as nearly as the length allows, in random order: only order varies
    markov:0.3:1:2      each symbol repeats the one before with probability 0.3, else it is drawn with the frequencies 1 : 2
    uniform+dirichlet   each sequence comes from one of the parts, with equal probability
    dirichlet~counts:1:3:5   dirichlet, without the sequences in which symbol "1" occurs 3 to 5 times

Parameters may be left out; those above are the defaults (for `biased`, the second symbol of the alphabet).
All samplers work on whole batches: there is no Python loop over sequences. Only `biased` is the paper's; the others are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from internalize.errors import UserError
from internalize.tasks.base import Ints

Flags = NDArray[np.bool_]
Sampler = Callable[[int, int, int, np.random.Generator], Ints]  # (symbols, steps, count, rng) -> (count, steps)

NAMES = ("uniform", "biased", "dirichlet", "sticky", "periodic", "constant", "blocks", "counts", "balanced", "markov")
FORMS = f"{', '.join(NAMES)}, mixtures such as uniform+dirichlet, and uniform~counts:1:3:5 without a region of counts"
MOST_ROUNDS = 1000  # of drawing again what a held-out region takes away


def parts(spec: str) -> tuple[str, ...]:
    """The distributions that a mixture such as "uniform+dirichlet" is made of; what is held out is held out of each."""
    mixture, without, region = spec.partition("~")
    return tuple(part + without + region for part in mixture.split("+"))


def held_out(spec: str) -> str:
    """The end of a specification that says which region is left out, such as "~counts:1:3:5"; "" where none is."""
    _, without, region = spec.partition("~")
    return without + region


def sampler(spec: str, symbols: tuple[str, ...]) -> Sampler:
    """The sampler that `spec` names, for an alphabet of named `symbols`. Raises `UserError` for a bad specification."""
    samplers = [_single(part, symbols) for part in parts(spec)]
    return samplers[0] if len(samplers) == 1 else _Mixed(tuple(samplers))


def _single(spec: str, symbols: tuple[str, ...]) -> Sampler:
    spec, without, region = spec.partition("~")
    if without:
        counts = _single(region, symbols)
        if not isinstance(counts, _Counts):
            raise UserError(f'distribution "{spec}~{region}": only a region of counts can be left out, such as ~counts:1:3:5.')
        return _Without(_single(spec, symbols), counts, f"{spec}~{region}")
    name, *arguments = spec.split(":")
    if name == "counts" and len(arguments) == 3:
        least = _whole(spec, arguments[1:], 0, low=0)
        return _Counts(spec, _index(spec, arguments[0], symbols), least, _whole(spec, arguments[2:], 0, low=least))
    if name == "markov" and len(arguments) == 1 + len(symbols):
        stay = _number(spec, arguments[:1], 0, low=0, high=1)
        frequencies = [_number(spec, [text], 0, low=0, high=np.inf) for text in arguments[1:]]
        return _Markov(stay, tuple(value / sum(frequencies) for value in frequencies))
    if name == "balanced" and not arguments:
        return _balanced
    if name == "biased" and len(arguments) <= 2:
        symbol = arguments[0] if arguments else symbols[1]
        return _Biased(_index(spec, symbol, symbols), _number(spec, arguments[1:], 0.8, low=0, high=1))
    if name == "dirichlet" and len(arguments) <= 1:
        return _Dirichlet(_number(spec, arguments, 0.5, low=0, high=np.inf))
    if name == "sticky" and len(arguments) <= 1:
        return _Sticky(_number(spec, arguments, 0.8, low=0, high=1))
    if name == "periodic" and len(arguments) <= 1:
        return _Periodic(_whole(spec, arguments, 0, low=2))
    if name == "blocks" and len(arguments) <= 1:
        return _Blocks(_whole(spec, arguments, 4, low=2))
    if name == "uniform" and not arguments:
        return _uniform
    if name == "constant" and not arguments:
        return _constant
    if name in NAMES:
        example = {"counts": "counts:1:3:5", "markov": "markov:0.3" + ":1" * len(symbols)}.get(name, name)
        raise UserError(f'distribution "{spec}" has the wrong number of parameters; an example of the form is {example}.')
    raise UserError(f'no distribution is called "{spec}"; known are {FORMS}.')


def _index(spec: str, symbol: str, symbols: tuple[str, ...]) -> int:
    if symbol not in symbols:
        raise UserError(f'distribution "{spec}": no symbol "{symbol}"; the symbols are {", ".join(symbols)}.')
    return symbols.index(symbol)


def _number(spec: str, arguments: list[str], default: float, low: float, high: float) -> float:
    try:
        value = float(arguments[0]) if arguments else default
    except ValueError:
        value = np.nan
    if not low < value < high:
        between = f"between {low:g} and {high:g}, both excluded" if np.isfinite(high) else f"above {low:g}"
        raise UserError(f'distribution "{spec}": "{arguments[0]}" must be a number {between}.')
    return value


def _whole(spec: str, arguments: list[str], default: int, low: int) -> int:
    if not arguments:
        return default
    if not arguments[0].isascii() or not arguments[0].isdigit() or int(arguments[0]) < low:
        raise UserError(f'distribution "{spec}": "{arguments[0]}" must be a whole number of at least {low}.')
    return int(arguments[0])


def _uniform(symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
    return rng.integers(symbols, size=(count, steps))


def _constant(symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
    return np.repeat(rng.integers(symbols, size=(count, 1)), steps, axis=1)


def _others(symbol: int, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
    """(count, steps) symbols other than `symbol`, each equally likely."""
    others = rng.integers(symbols - 1, size=(count, steps))
    others += others >= symbol
    return others


def _drawn_at(stay: float, steps: int, count: int, rng: np.random.Generator) -> Ints:
    """(count, steps): the place whose draw each symbol repeats, where every place repeats the one before with `stay`."""
    fresh = rng.random((count, steps)) >= stay
    fresh[:, 0] = True
    places: Ints = np.maximum.accumulate(np.where(fresh, np.arange(steps), 0), axis=1)
    return places


@dataclass(frozen=True)
class _Biased:
    symbol: int
    probability: float

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        others = _others(self.symbol, symbols, steps, count, rng)
        return np.where(rng.random((count, steps)) < self.probability, self.symbol, others)


@dataclass(frozen=True)
class _Dirichlet:
    concentration: float

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        frequencies = rng.dirichlet(np.full(symbols, self.concentration), size=count)
        edges = frequencies.cumsum(axis=1)[:, None, :-1]
        symbol: Ints = (rng.random((count, steps, 1)) > edges).sum(axis=2)
        return symbol


@dataclass(frozen=True)
class _Sticky:
    stay: float

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        drawn_at = _drawn_at(self.stay, steps, count, rng)
        return np.take_along_axis(_uniform(symbols, steps, count, rng), drawn_at, axis=1)


@dataclass(frozen=True)
class _Periodic:
    longest: int  # 0: half the sequence

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        longest = self.longest or max(2, steps // 2)
        words = rng.integers(symbols, size=(count, longest))
        periods = rng.integers(2, longest + 1, size=(count, 1))
        return np.take_along_axis(words, np.arange(steps) % periods, axis=1)


@dataclass(frozen=True)
class _Blocks:
    blocks: int

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        cuts = rng.integers(1, max(steps, 2), size=(count, 1, self.blocks - 1))
        block = (np.arange(steps)[None, :, None] >= cuts).sum(axis=2)
        return np.take_along_axis(rng.integers(symbols, size=(count, self.blocks)), block, axis=1)


def _balanced(symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
    return rng.permuted(np.broadcast_to(np.arange(steps) % symbols, (count, steps)), axis=1)


@dataclass(frozen=True)
class _Markov:
    stay: float
    frequencies: tuple[float, ...]

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        drawn_at = _drawn_at(self.stay, steps, count, rng)
        return np.take_along_axis(rng.choice(symbols, size=(count, steps), p=self.frequencies), drawn_at, axis=1)


@dataclass(frozen=True)
class _Counts:
    spec: str
    symbol: int
    least: int
    most: int

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        if self.least > steps:
            raise UserError(f'distribution "{self.spec}": no symbol occurs {self.least} times in {steps} places.')
        times = rng.integers(self.least, min(self.most, steps) + 1, size=(count, 1))
        chosen = rng.permuted(np.broadcast_to(np.arange(steps), (count, steps)), axis=1) < times
        return np.where(chosen, self.symbol, _others(self.symbol, symbols, steps, count, rng))

    def holds(self, inputs: Ints) -> Flags:
        """Which sequences lie in the region: (rows,) bool."""
        times = (inputs == self.symbol).sum(axis=1)
        inside: Flags = (self.least <= times) & (times <= self.most)
        return inside


@dataclass(frozen=True)
class _Without:
    draw: Sampler
    region: _Counts
    spec: str

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        inputs = self.draw(symbols, steps, count, rng)
        for _ in range(MOST_ROUNDS):
            again = np.flatnonzero(self.region.holds(inputs))
            if not len(again):
                return inputs
            inputs[again] = self.draw(symbols, steps, len(again), rng)
        raise UserError(f'distribution "{self.spec}": the region leaves (almost) no sequence of {steps} symbols.')


@dataclass(frozen=True)
class _Mixed:
    samplers: tuple[Sampler, ...]

    def __call__(self, symbols: int, steps: int, count: int, rng: np.random.Generator) -> Ints:
        which = rng.integers(len(self.samplers), size=count)
        inputs = np.empty((count, steps), np.int64)
        for index, draw in enumerate(self.samplers):
            rows = which == index
            inputs[rows] = draw(symbols, steps, int(rows.sum()), rng)
        return inputs
