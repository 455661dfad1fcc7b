"""Semiautomata: a transition table is run over an input; the chain of thought is the list of states (paper, section 3)."""

from dataclasses import dataclass, field
from math import comb

import numpy as np

from internalize.errors import UserError
from internalize.tasks.base import ANSWER, PROMPT, Ints, Part, Traces
from internalize.tasks.distributions import sampler
from internalize.tasks.splits import sample_part

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

    def run(self, inputs: Ints, start: Ints | None = None) -> Ints:
        """The states q_1..q_T along `inputs` (rows, T), from the states `start` (rows,) or from the start state: (rows, T).

        One table look-up a step for the whole batch.
        """
        states = np.empty_like(inputs)
        state = np.full(len(inputs), self.start) if start is None else start
        for step in range(inputs.shape[1]):
            state = self.delta[state, inputs[:, step]]
            states[:, step] = state
        return states


@dataclass(frozen=True)
class Simulation:
    """The task: given sigma_1..sigma_T, name the state q_T. Units: q_1..q_(T-1). Answer: q_T.

    Symbols and states of one name are one token, as for the groups here, whose alphabet is the group itself.
    """

    automaton: Semiautomaton
    steps: int
    sampled_start: bool = False  # the prompt begins with a start state of its own, each one equally likely
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
        return 2 * self.steps + self.sampled_start

    @property
    def inputs(self) -> int:
        starts = len(self.automaton.states) if self.sampled_start else 1
        return int(starts * len(self.automaton.symbols) ** self.steps)

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
        symbols, states = len(self.automaton.symbols), len(self.automaton.states)

        def inputs(n: int) -> Ints:
            drawn = draw(symbols, self.steps, n, rng)
            return np.column_stack([rng.integers(states, size=n), drawn]) if self.sampled_start else drawn

        what = f"{self.name}, {self.steps} steps, {distribution}"
        return self.trace(sample_part(inputs, count, part, what, skip=int(self.sampled_start)))

    def trace(self, inputs: Ints) -> Traces:
        """The traces of `inputs` (rows, T), symbol indices; a sampled start state stands in a column before them."""
        start, symbols = (inputs[:, 0], inputs[:, 1:]) if self.sampled_start else (None, inputs)
        states = self._state_tokens[self.automaton.run(symbols, start)]
        shown = [] if start is None else [self._state_tokens[start][:, None]]
        tokens = np.concatenate([*shown, self._symbol_tokens[symbols], states], axis=1)
        segment = [PROMPT] * inputs.shape[1] + [*range(self.units), ANSWER]
        return Traces(tokens, np.broadcast_to(np.array(segment), tokens.shape))

    def encode(self, text: str) -> Traces:
        """The trace of symbols separated by spaces or commas, such as "1 0 2" (with one-letter names also "102").

        A sampled start state is given first.
        """
        names = [self.automaton.states] * self.sampled_start + [self.automaton.symbols] * self.steps
        words = text.replace(",", " ").split()
        if len(words) == 1 and all(len(name) == 1 for name in self.tokens):
            words = list(words[0])
        if len(words) != len(names):
            first = "a start state and " if self.sampled_start else ""
            raise UserError(f"the input has {len(words)} words; this task takes {first}{self.steps} symbols.")
        for place, (word, known) in enumerate(zip(words, names, strict=True), 1):
            if word not in known:
                kind = "states" if known is self.automaton.states and place == 1 and self.sampled_start else "symbols"
                raise UserError(f'word {place} of the input is "{word}"; the {kind} of {self.name} are {", ".join(known)}.')
        return self.trace(np.array([[known.index(word) for word, known in zip(words, names, strict=True)]]))
