"""Semiautomata: a transition table is run over an input; the chain of thought is the list of states (paper, section 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from internalize.errors import UserError
from internalize.tasks.base import ANSWER, PROMPT, Ints, Task, TaskFamily, Traces
from internalize.tasks.distributions import Sampler
from internalize.tasks.sequences import SequenceTask


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
class Simulation(SequenceTask):
    """The task: given sigma_1..sigma_T, name the state q_T. Units: q_1..q_(T-1). Answer: q_T.

    Symbols and states of one name are one token, as for groups, whose alphabet is the group itself. With a sampled start, the
    prompt begins with a start state, each one equally likely.
    """

    automaton: Semiautomaton
    steps: int
    sampled_start: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UserError(f"steps is {self.steps}; a task needs at least 1.")

    @property
    def name(self) -> str:
        """The automaton's name."""
        return self.automaton.name

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The symbols, then the states that are no symbols."""
        return tuple(dict.fromkeys(self.automaton.symbols + self.automaton.states))

    @cached_property
    def symbol_tokens(self) -> Ints:
        """The token of each symbol."""
        return self._ids(self.automaton.symbols)

    @cached_property
    def state_tokens(self) -> Ints:
        """The token of each state."""
        return self._ids(self.automaton.states)

    def _ids(self, names: tuple[str, ...]) -> Ints:
        ids = {token: index for index, token in enumerate(self.tokens)}
        return np.array([ids[name] for name in names])

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The automaton's symbols."""
        return self.automaton.symbols

    @property
    def length(self) -> int:
        """The number of steps T."""
        return self.steps

    @property
    def units(self) -> int:
        """The number of states before the last."""
        return self.steps - 1

    @property
    def longest(self) -> int:
        """Tokens in a full trace."""
        return 2 * self.steps + self.lead

    @property
    def inputs(self) -> int:
        """The number of possible inputs."""
        return super().inputs * (len(self.automaton.states) if self.sampled_start else 1)

    @property
    def chance(self) -> float:
        """The accuracy of a guess."""
        return 1 / len(self.automaton.states)

    @property
    def lead(self) -> int:
        """One column for a sampled start state."""
        return int(self.sampled_start)

    def draw(self, draw: Sampler, count: int, rng: np.random.Generator) -> Ints:
        """`count` inputs: the start state, if it is sampled, then the symbols."""
        inputs = super().draw(draw, count, rng)
        if not self.sampled_start:
            return inputs
        return np.column_stack([rng.integers(len(self.automaton.states), size=count), inputs])

    def trace(self, inputs: Ints) -> Traces:
        """The traces of `inputs` (rows, T), symbol indices; a sampled start state stands in a column before them."""
        start, symbols = (inputs[:, 0], inputs[:, 1:]) if self.sampled_start else (None, inputs)
        states = self.state_tokens[self.automaton.run(symbols, start)]
        shown = [] if start is None else [self.state_tokens[start][:, None]]
        tokens = np.concatenate([*shown, self.symbol_tokens[symbols], states], axis=1)
        segment = [PROMPT] * inputs.shape[1] + [*range(self.units), ANSWER]
        return Traces(tokens, np.broadcast_to(np.array(segment), tokens.shape))

    def words(self) -> list[tuple[str, ...]]:
        """What each word of a typed input may be: a start state, if it is sampled, then symbols."""
        return [self.automaton.states] * self.lead + super().words()


def simulations(
    forms: str, knows: Callable[[str], bool], automaton: Callable[[str], Semiautomaton], inline: Callable[[str], str] = str
) -> TaskFamily:
    """The family of the tasks that simulate the automaton of a name."""

    def make(name: str, steps: int, sampled_start: bool = False) -> Task:
        return Simulation(automaton(name), steps, sampled_start)

    return TaskFamily(forms, knows, make, partial(make, sampled_start=True), inline)
