"""The playground on a run of the sandbox, or on a constructed transformer."""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from time import perf_counter

import numpy as np

from internalize.app.player import SHOWN, Failures, Piece, Place, Verdict
from internalize.config import ID
from internalize.errors import UserError
from internalize.evaluation import ModelProcedure, generate
from internalize.evaluation.accuracy import stream
from internalize.rendering import Batch, Vocabulary, render
from internalize.runs import Run
from internalize.seeding import numpy_stream
from internalize.tasks import Traces

ASKED = 500  # test inputs among which failures are looked for


class SandboxPlayer:
    """One seed of a run. Raises `UserError` where no seed is finished, or this one is not."""

    unit = "chain token"

    def __init__(self, run: Run, seed: int | None = None) -> None:
        self.run, self.seed = run, run.seed(seed)
        self.task = run.config.make_task()
        self.vocabulary = Vocabulary.of(self.task)
        self._system = lru_cache(maxsize=None)(lambda shown: run.trained(shown, self.seed))

    @property
    def name(self) -> str:
        return self.run.path.name

    @property
    def about(self) -> str:
        config = self.run.config
        symbols = ", ".join(self.task.alphabet)
        how = f"curriculum {config.curriculum}, trained on {config.inputs} inputs, seed {self.seed}"
        return f"{config.task_name}, {config.steps} steps ({symbols}); {how}"

    @cached_property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.run.config.test_splits())

    @cached_property
    def places(self) -> list[Place]:
        frontier = self.run.frontier().to_dicts()
        ood = self.splits[1]
        found = [
            Place(row["shown"], row["stage"], {ID: row["id"], ood: row["ood"]}) for row in frontier if row["seed"] == self.seed
        ]
        return sorted(found, key=lambda place: -place.shown)

    def question(self, split: str, rng: np.random.Generator) -> str:
        return self._text(self._draw(split, 1, rng), 0)

    def write(self, text: str, place: Place) -> Iterator[Piece | Verdict]:
        traces = self.task.encode(text)
        system = self._model(place)
        batch = render(traces, [system.view], self.vocabulary, position_ids=system.position_ids)
        return self._write(system, batch, traces)

    def _write(self, system: ModelProcedure, batch: Batch, traces: Traces) -> Iterator[Piece | Verdict]:
        right, seconds, answer = True, 0.0, list[str]()
        steps = stream(system.model, batch)
        while True:
            started = perf_counter()  # what the reader takes is not the model's time
            step = next(steps, None)
            seconds += perf_counter() - started
            if step is None:
                break
            column, token = step
            is_answer, name = bool(batch.answer[0, column]), self.vocabulary.text([token])[0]
            agrees = token == batch.tokens[0, column]
            if is_answer:
                right, answer = right and bool(agrees), [*answer, name]
            yield Piece(name, is_answer, bool(agrees))
        yield Verdict(" ".join(answer), self._truth(traces, 0), right, seconds)

    def failures(self, split: str, place: Place) -> Failures:
        traces = self._draw(split, ASKED, numpy_stream(0, f"playground {split}"))
        system = self._model(place)
        batch = render(traces, [system.view], self.vocabulary, position_ids=system.position_ids)
        written = generate(system.model, batch)
        wrong = np.flatnonzero(((written != batch.tokens) & batch.answer).any(axis=1))
        shown = {
            self._text(traces, int(row)): (
                self._truth(traces, int(row)),
                " ".join(self.vocabulary.text(written[row][batch.answer[row]])),
            )
            for row in wrong
        }
        return Failures(ASKED, len(wrong), [(text, *answers) for text, answers in list(shown.items())[:SHOWN]])

    def _model(self, place: Place) -> ModelProcedure:
        return self._system(place.shown)

    def _draw(self, split: str, count: int, rng: np.random.Generator) -> Traces:
        if split not in self.splits:
            raise UserError(f'{self.name}: there are no "{split}" inputs here; there are {", ".join(self.splits)}.')
        return self.task.sample(split, count, rng, "test")

    def _text(self, traces: Traces, row: int) -> str:
        return " ".join(self.task.tokens[token] for token in traces.row(row).prompt)

    def _truth(self, traces: Traces, row: int) -> str:
        return " ".join(self.task.tokens[token] for token in traces.row(row).answer)
