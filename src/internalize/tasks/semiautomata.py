"""Semiautomata: a transition table is run over an input; the chain of thought is the list of states (paper, section 3).

C<n>   counters: states and symbols 0..n-1, the next state is (state + symbol) mod n
S<k>   the symmetric group on k points, written as words such as "021"; every element is a symbol (ours:
       the paper does not say which alphabet it takes); the next state is the symbol applied after the state
"""

import itertools
import re
from dataclasses import dataclass, field
from math import comb

import numpy as np

from internalize.errors import UserError
from internalize.tasks.base import ANSWER, PROMPT, Ints, Part, Traces
from internalize.tasks.distributions import sampler
from internalize.tasks.splits import sample_part

LARGEST_COUNTER = 1000
LARGEST_SYMMETRIC = 6
ENOUGH = 200  # sequences of a kind, so that some are held out


@dataclass(frozen=True, eq=False)
class Semiautomaton:
    """A = (states, symbols, delta) with a start state.

    delta: (states, symbols) int64, the index of the next state.
    """

    name: str
    states: tuple[str, ...]
    symbols: tuple[str, ...]
    delta: Ints
    start: int = 0

    def run(self, inputs: Ints) -> Ints:
        """The states q_1..q_T along `inputs` (rows, T): (rows, T). One table look-up a step for the whole batch."""
        states = np.empty_like(inputs)
        state = np.full(len(inputs), self.start)
        for step in range(inputs.shape[1]):
            state = self.delta[state, inputs[:, step]]
            states[:, step] = state
        return states


def counter(n: int) -> Semiautomaton:
    """C_n, addition modulo n."""
    names = tuple(str(i) for i in range(n))
    return Semiautomaton(f"C{n}", names, names, np.add.outer(np.arange(n), np.arange(n)) % n)


def symmetric(k: int) -> Semiautomaton:
    """S_k with all of its elements as symbols, from the identity."""
    elements = np.array(list(itertools.permutations(range(k))))
    names = tuple("".join(map(str, element)) for element in elements)
    # The product "symbol after state" sends i to symbol[state[i]]; elements are ordered, so a base-k code finds it.
    products = np.stack([elements[:, element] for element in elements])  # (state, symbol, point)
    place = k ** np.arange(k)[::-1]
    return Semiautomaton(f"S{k}", names, names, np.searchsorted(elements @ place, products @ place))


def semiautomaton(name: str) -> Semiautomaton:
    """The semiautomaton called `name`. Raises `UserError` for an unknown name or a table that would be too large."""
    match = re.fullmatch(r"([CS])(\d{1,6})", name)
    if match is None:
        raise UserError(f'no task is called "{name}"; known are counters C2, C3, ... and symmetric groups S3, S4, ...')
    family, size = match[1], int(match[2])
    largest = LARGEST_COUNTER if family == "C" else LARGEST_SYMMETRIC
    if not 2 <= size <= largest:
        raise UserError(f'task "{name}": the number must lie between 2 and {largest}.')
    return counter(size) if family == "C" else symmetric(size)


@dataclass(frozen=True)
class Simulation:
    """The task: given sigma_1..sigma_T, name the state q_T. Units: q_1..q_(T-1). Answer: q_T.

    Symbols and states of one name are one token, as for the groups here, whose alphabet is the group itself.
    """

    automaton: Semiautomaton
    steps: int
    tokens: tuple[str, ...] = field(init=False)
    _symbol_tokens: Ints = field(init=False, repr=False)
    _state_tokens: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UserError(f"steps is {self.steps}; a task needs at least 1.")
        tokens = tuple(dict.fromkeys(self.automaton.symbols + self.automaton.states))
        ids = {token: index for index, token in enumerate(tokens)}
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "_symbol_tokens", np.array([ids[name] for name in self.automaton.symbols]))
        object.__setattr__(self, "_state_tokens", np.array([ids[name] for name in self.automaton.states]))

    @property
    def name(self) -> str:
        return self.automaton.name

    @property
    def units(self) -> int:
        return self.steps - 1

    @property
    def longest(self) -> int:
        return 2 * self.steps

    @property
    def inputs(self) -> int:
        return int(len(self.automaton.symbols) ** self.steps)

    @property
    def chance(self) -> float:
        return 1 / len(self.automaton.states)

    def ood(self) -> tuple[str, ...]:
        first, second = self.automaton.symbols[:2]
        always = f"biased:{second}:0.8", f"biased:{first}:0.8", f"biased:{second}:0.95", "sticky:0.8", "constant"
        # Where only a few sequences are periodic or blocks, the hash may hold none of them out.
        n = len(self.automaton.symbols)
        enough = {"periodic": n ** (self.steps // 2) >= ENOUGH, "blocks:4": comb(self.steps - 1, 3) * n**4 >= ENOUGH}
        return (*always, *(name for name, there in enough.items() if there))

    def check(self, distribution: str) -> None:
        sampler(distribution, self.automaton.symbols)

    def sample(self, distribution: str, count: int, rng: np.random.Generator, part: Part) -> Traces:
        draw = sampler(distribution, self.automaton.symbols)
        symbols = len(self.automaton.symbols)
        inputs = sample_part(
            lambda n: draw(symbols, self.steps, n, rng), count, part, f"{self.name}, {self.steps} steps, {distribution}"
        )
        return self.trace(inputs)

    def trace(self, inputs: Ints) -> Traces:
        """The traces of `inputs` (rows, T), symbol indices."""
        states = self.automaton.run(inputs)
        tokens = np.concatenate([self._symbol_tokens[inputs], self._state_tokens[states]], axis=1)
        segment = [PROMPT] * self.steps + [*range(self.units), ANSWER]
        return Traces(tokens, np.broadcast_to(np.array(segment), tokens.shape))

    def encode(self, text: str) -> Traces:
        """The trace of symbols separated by spaces or commas, such as "1 0 2" (with one-letter symbols also "102")."""
        names = self.automaton.symbols
        words = text.replace(",", " ").split()
        if len(words) == 1 and all(len(name) == 1 for name in names):
            words = list(words[0])
        for place, word in enumerate(words, 1):
            if word not in names:
                raise UserError(f'input symbol {place} is "{word}"; the symbols of {self.name} are {", ".join(names)}.')
        if len(words) != self.steps:
            raise UserError(f"the input has {len(words)} symbols; this task takes {self.steps}.")
        return self.trace(np.array([[names.index(word) for word in words]]))
