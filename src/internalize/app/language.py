"""The playground on a language model: a run of `internalize lm fit`, or any folder with a causal language model."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock

import numpy as np

from internalize.app.player import SHOWN, Failures, Piece, Place, Verdict
from internalize.curricula import View
from internalize.errors import UserError
from internalize.lm.evaluation import SLACK, Speaker, ask, prompt_of, scorer
from internalize.lm.records import MARKER, Record
from internalize.lm.rows import Asked
from internalize.lm.runs import Folder, LMRun
from internalize.lm.tokens import Tokens, encode, stage_of, view_with
from internalize.tasks import PROMPT

READ = 200  # rows of each file
ASKED = 32  # rows among which failures are looked for
MEMORY = 4 * 2**30  # bytes of models that are kept
UNKNOWN = 512  # tokens at most that a model may write where nobody knows how many it needs


class LMPlayer:
    """A run, whose slider goes over its stages, or a folder, which is asked with its chain and without.

    Args:
        where: the run, or a folder (or a name on the Hub).
        data: files of questions by name; a run's own test files where none is given and they are still there.
    """

    def __init__(self, where: LMRun | str, data: Mapping[str, Path]) -> None:
        self.run = where if isinstance(where, LMRun) else None
        self.name = where.path.resolve().name if isinstance(where, LMRun) else where
        if self.run is not None and not self.run.stages():
            raise UserError(f"{self.run.path}: no stage is finished yet, so there is nothing to play with.")
        if self.run is not None and not data:
            data = {name: path for name, path in self.run.config.tests().items() if path.exists()}
        self.folder = self._folder(0)
        self.unit = self.folder.reading.units
        self.sets = {name: Asked.read(path, self.folder.reading, READ) for name, path in data.items()}
        self.known = {_plain(record.question): (record, row) for asked in self.sets.values() for record, row in _rows(asked)}
        if self.folder.curriculum.removed == "filler" and not self.known:
            raise UserError(f"{self.name}: how many fillers it reads is known from its test files only; name one with --data.")
        self.score = scorer(self.folder.score)
        first = self.folder.speaker([self.longest.units])
        size = 4 * sum(parameter.numel() for parameter in first.model.parameters())
        self._loading = Lock()
        self._speaker = lru_cache(maxsize=max(1, MEMORY // size))(
            lambda stage: self._folder(stage).speaker([self.longest.units]) if stage else first
        )

    @property
    def about(self) -> str:
        if self.run is None:
            return "a language model's folder, asked with its chain and without"
        config = self.run.config
        return f"{config.model}, curriculum {config.curriculum}, trained on {config.data}"

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.sets)

    @cached_property
    def places(self) -> list[Place]:
        if self.run is None:
            return [Place(self.longest.units, 0, {}), Place(0, 0, {})]
        found: dict[int, Place] = {}
        units = self.longest.units
        for row in self.run.stages():
            curriculum = self.folder.curriculum
            judged = curriculum.judged(units, stage_of(curriculum, units, row["stage"], self._stages))
            accuracy = row["adapted"] if len(judged) == 1 else {}
            found |= {view.shown: Place(view.shown, row["stage"], accuracy) for view in judged}
        return sorted(found.values(), key=lambda place: -place.shown)

    @property
    def _stages(self) -> int:
        """How many stages the run has."""
        return self.folder.curriculum.stages(self.folder.longest_chain or self.longest.units)

    @cached_property
    def longest(self) -> Tokens:
        """The row with the longest chain: what stands in for the chain of a question that no record has."""
        if self.known:
            return max((row for _, row in self.known.values()), key=lambda row: row.units)
        steps = ("1",) * max(1, self.folder.longest_chain)
        return encode(Record("1", steps, "1"), self.folder.reading.tokenizer, self.folder.reading.template, self.unit)

    def question(self, split: str, rng: np.random.Generator) -> str:
        records = self._set(split).records
        return records[int(rng.integers(len(records)))].question

    def write(self, text: str, place: Place) -> Iterator[Piece | Verdict]:
        if not text.strip():
            raise UserError("the question is empty; type one.")
        record, row = self.known.get(_plain(text), (None, None))
        speaker = self._model(place)
        row = row or self._unknown(text)
        prompt, most = prompt_of(row, self._view(row, place), speaker.specials)
        if record is None:
            most = max(most, UNKNOWN)
        longest = self.folder.reading.longest
        if len(prompt) >= longest:
            raise UserError(f"the question has {len(prompt):,} tokens, and the model reads {longest:,}; make it shorter.")
        return self._write(speaker.stream(prompt, most + SLACK), record)

    def _write(self, pieces: Iterator[tuple[str, float]], record: Record | None) -> Iterator[Piece | Verdict]:
        text, seconds = "", 0.0
        for piece, at in pieces:
            text, seconds = text + piece, at
            yield Piece(piece, MARKER in text, None)
        answer = text.rpartition(MARKER)[2].strip() if MARKER in text else None
        if record is not None:
            yield Verdict(answer, record.answer, answer is not None and self.score(answer, record), seconds)
            return
        units = f"{self.longest.units} {self.unit}{'s' if self.longest.units != 1 else ''}"
        note = f"No record has this question, so nobody knows its answer; it is asked as one with a chain of {units}."
        yield Verdict(answer, None, None, seconds, note)

    def failures(self, split: str, place: Place) -> Failures:
        asked = self._set(split)
        asked = replace(asked, records=asked.records[:ASKED], tokens=asked.tokens[:ASKED])
        written = ask(self._model(place), asked, [self._view(row, place) for row in asked.tokens])
        wrong = [
            (record.question, record.answer, one.answer or "no answer")
            for record, one in zip(asked.records, written, strict=True)
            if one.answer is None or not self.score(one.answer, record)
        ]
        return Failures(len(asked), len(wrong), wrong[:SHOWN])

    def _folder(self, stage: int) -> Folder:
        return Folder.open(self.name if self.run is None else str(self.run.folder(stage)))

    def _model(self, place: Place) -> Speaker:
        with self._loading:
            speaker: Speaker = self._speaker(place.stage)
        return speaker

    def _view(self, row: Tokens, place: Place) -> View:
        if self.run is not None:
            return view_with(self.folder.curriculum, row.units, place.stage, self._stages, place.shown)
        return self.folder.curriculum.full(row.units) if place.shown else self.folder.curriculum.direct(row.units)

    def _unknown(self, question: str) -> Tokens:
        """The row of a question that no record has: its own prompt, and the chain of the longest row."""
        reading = self.folder.reading
        prompt = encode(Record(question, (), "1"), reading.tokenizer, reading.template, reading.units).prompt()
        rest = self.longest.segment != PROMPT
        ids = np.concatenate([np.array(prompt, np.int32), self.longest.ids[rest]])
        segment = np.concatenate([np.full(len(prompt), PROMPT, np.int32), self.longest.segment[rest]])
        return Tokens(ids, segment, self.longest.marker)

    def _set(self, split: str) -> Asked:
        if split not in self.sets:
            there = ", ".join(self.sets) or "none; name one with --data"
            raise UserError(f'{self.name}: there is no file of questions called "{split}"; there is {there}.')
        return self.sets[split]


def _plain(question: str) -> str:
    """A question as it is looked up: a page's input has no line ends."""
    return " ".join(question.split())


def _rows(asked: Asked) -> Iterator[tuple[Record, Tokens]]:
    return zip(asked.records, asked.tokens, strict=True)
