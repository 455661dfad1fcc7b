"""Asks a language model: greedy, batched, with the cache; how often its answer is right, and how many tokens it wrote for it.

A model may think where nobody looks, so beside the answer each reply has the number of tokens written before it; and a model
can be made to answer at once, by writing the answer's marker for it (`forced`).
"""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from time import perf_counter
from typing import Any

import numpy as np

from internalize import own_code
from internalize.curricula import Curriculum, View
from internalize.errors import UserError
from internalize.evaluation.accuracy import Accuracy
from internalize.evaluation.procedures import Reply
from internalize.lm.pretrained import left_padded, pad_of, positions
from internalize.lm.records import MARKER, Record
from internalize.lm.rows import Asked
from internalize.lm.tokens import Specials, Tokens, show
from internalize.tasks import ANSWER, PROMPT, Trace, Traces

Scorer = Callable[[str, Record], bool]

SLACK = 8  # tokens that a model may write beyond the longest right answer
_NUMBER = re.compile(r"[-+]?[$€£]?[0-9,]*\.?[0-9]+%?|[-+]?[$€£]?[0-9][0-9,]*\.%?")


def normalise(answer: str) -> str:
    """An answer as it is compared: without surrounding blanks, case, a full stop at its end; numbers by value."""
    text = " ".join(answer.split()).lower().removesuffix(".")
    if not _NUMBER.fullmatch(text):
        return text
    # As text, so that numbers of any length are compared exactly.
    plain = re.sub(r"[,$€£%]", "", text)
    whole, _, part = plain.lstrip("+-").partition(".")
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    value = f"{whole}.{part}" if part else whole
    return f"-{value}" if plain.startswith("-") and value != "0" else value


def exact_match(answer: str, record: Record) -> bool:
    """Whether an answer is the record's (`normalise`)."""
    return normalise(answer) == normalise(record.answer)


def scorer(spec: str | None) -> Scorer:
    """`exact_match`, or a user's own `score(answer, record) -> bool`, named as mine.py:score. Raises `UserError`."""
    if spec is None:
        return exact_match
    if not own_code.is_own(spec):
        raise UserError(f'the scorer "{spec}" is not of the form mine.py:score.')
    return own_code.function(spec)


@dataclass(frozen=True)
class Written:
    """What a model wrote for one row.

    text: all of it; answer: what follows the marker, None where there is no marker; tokens: all that were written, the end
    included; before: those before the marker; probability: of the tokens from the marker on, as the model saw them.
    """

    text: str
    answer: str | None
    tokens: int
    before: int
    probability: float


@dataclass
class Speaker:
    """A language model with its tokenizer, in evaluation mode.

    Attributes:
        batch: rows at once.
    """

    model: Any
    tokenizer: Any
    specials: Specials
    batch: int = 64

    def write(self, prompts: Sequence[Sequence[int]], most: int) -> list[Written]:
        """Continue each prompt greedily, by at most `most` tokens."""
        import torch

        pad = pad_of(self.tokenizer)
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
        found: dict[int, Written] = {}
        was_training = self.model.training
        self.model.eval()
        device = next(self.model.parameters()).device
        for start in range(0, len(order), self.batch):
            chosen = order[start : start + self.batch]
            longest = max(len(prompts[index]) for index in chosen)
            most_here = max(1, min(most, positions(self.model.config) - longest))
            sure = _Sure()
            with torch.no_grad():
                sequences = self.model.generate(
                    **left_padded([prompts[index] for index in chosen], pad, device),
                    do_sample=False,
                    num_beams=1,
                    max_new_tokens=most_here,
                    eos_token_id=self.tokenizer.eos_token_id,
                    pad_token_id=pad,
                    logits_processor=[sure],
                    use_cache=True,
                )
            written = sequences[:, longest:].cpu().numpy()
            chances = torch.stack(sure.chances, dim=1)
            for index, row, chance in zip(chosen, written, chances.double().cpu().numpy(), strict=True):
                found[index] = self._written(row, chance)
        self.model.train(was_training)
        return [found[index] for index in range(len(prompts))]

    def stream(self, prompt: Sequence[int], most: int) -> Iterator[tuple[str, float]]:
        """What each token that continues a prompt greedily adds to the text, and the seconds since the start, as soon as it is
        written. A character of several tokens comes with its last one; the end has no text. Who reads no further stops it.
        """
        import torch

        device = next(self.model.parameters()).device
        arrived: Queue[tuple[int, float] | BaseException | None] = Queue()
        unread = Event()
        settings = {
            **left_padded([prompt], pad_of(self.tokenizer), device),
            "do_sample": False,
            "num_beams": 1,
            "max_new_tokens": max(1, min(most, positions(self.model.config) - len(prompt))),
            "eos_token_id": self.tokenizer.eos_token_id,
            "pad_token_id": pad_of(self.tokenizer),
        }

        def write() -> None:
            try:
                with torch.no_grad():
                    self.model.generate(**settings, streamer=_Passing(arrived, len(prompt), unread))
            except _Unread:
                pass
            except BaseException as error:  # told to whoever reads
                arrived.put(error)
            arrived.put(None)

        self.model.eval()
        Thread(target=write, daemon=True).start()
        written: list[int] = []
        told = ""
        try:
            while (token := arrived.get()) is not None:
                if isinstance(token, BaseException):
                    raise token
                written.append(token[0])
                text = self.tokenizer.decode(written, skip_special_tokens=True)
                new = "" if text.endswith("\N{REPLACEMENT CHARACTER}") else text[len(told) :]
                told += new
                yield new, token[1]
        finally:
            unread.set()

    def _written(self, row: np.ndarray, chances: np.ndarray) -> Written:
        ends = np.flatnonzero(row == self.tokenizer.eos_token_id)
        count = int(ends[0]) if len(ends) else len(row)
        text = self.tokenizer.decode(row[:count], skip_special_tokens=True)
        written = count + bool(len(ends))
        if MARKER not in text:
            return Written(text, None, written, count, float(np.exp(chances[:written].sum())))
        # The first token with which the text holds the marker ends it.
        before = bisect_left(
            range(count + 1), True, key=lambda at: MARKER in self.tokenizer.decode(row[:at], skip_special_tokens=True)
        )
        length = len(self.tokenizer(MARKER, add_special_tokens=False)["input_ids"])
        before = max(0, before - length)
        answer = text.rpartition(MARKER)[2].strip()
        return Written(text, answer, written, before, float(np.exp(chances[before:written].sum())))


class _Sure:
    """Told the logits of each token before it is written greedily (transformers' logits processor): keeps how probable the
    chosen one is, and nothing of the vocabulary's size.
    """

    def __init__(self) -> None:
        self.chances: list[Any] = []  # (rows,) log-probabilities, one for each token

    def __call__(self, ids: Any, logits: Any) -> Any:
        self.chances.append(logits.amax(dim=-1).float() - logits.float().logsumexp(dim=-1))
        return logits


class _Unread(Exception):
    """Nobody reads what is written any more."""


@dataclass
class _Passing:
    """What `generate` tells each token (transformers' streamer): first the prompt, then one token at a time."""

    arrived: "Queue[tuple[int, float] | BaseException | None]"
    prompt: int
    unread: Event
    started: float = field(default_factory=perf_counter)

    def put(self, tokens: Any) -> None:
        if self.unread.is_set():
            raise _Unread
        for token in tokens.flatten().tolist()[self.prompt :]:
            self.arrived.put((int(token), perf_counter() - self.started))
        self.prompt = 0

    def end(self) -> None:
        """Nothing follows; the thread says so itself."""


def prompt_of(tokens: Tokens, view: View, specials: Specials, forced: bool = False) -> tuple[list[int], int]:
    """What a model reads before it writes what `view` shows: the prompt, the hint, and fillers; the marker too, where forced.
    And how many tokens it is to write.

    Raises:
        UserError: where fillers stand between units that are to be written.
    """
    shown = show(tokens, view, specials)
    first = next(at for at, label in enumerate(shown.labels) if label >= 0)
    rest = shown.labels[first:]
    if any(label < 0 for label in rest):
        raise UserError("fillers after a unit that is shown cannot be asked for; take a curriculum that removes from the left.")
    marker = tokens.answer()[: tokens.marker] if forced and not view.shown else []
    return shown.ids[:first] + marker, len(rest)


def ask(speaker: Speaker, asked: Asked, views: Sequence[View], forced: bool = False) -> list[Written]:
    """What the model writes for each row, when row i is to be written as `views[i]` shows it."""
    asks = [prompt_of(t, view, speaker.specials, forced) for t, view in zip(asked.tokens, views, strict=True)]
    written = speaker.write([prompt for prompt, _ in asks], max(count for _, count in asks) + SLACK)
    if not forced:
        return written
    return [one if view.shown else _forced(one) for one, view in zip(written, views, strict=True)]


def _forced(written: Written) -> Written:
    """The marker was given, so what was written first is the answer; nothing after a further marker counts."""
    return Written(written.text, written.text.partition(MARKER)[0].strip(), written.tokens, 0, written.probability)


@dataclass(frozen=True)
class Outcome:
    """How a model did on some rows: right answers, and mean tokens written in all and before the answer."""

    accuracy: Accuracy
    tokens: float
    before: float
    unanswered: int

    @staticmethod
    def of(written: Iterable[Written], records: Sequence[Record], score: Scorer) -> "Outcome":
        """The outcome of `written` for `records`."""
        written = list(written)
        right = [one.answer is not None and score(one.answer, record) for one, record in zip(written, records, strict=True)]
        return Outcome(
            Accuracy(sum(right), len(right), len({record.question for record in records})),
            float(np.mean([one.tokens for one in written])),
            float(np.mean([one.before for one in written])),
            sum(one.answer is None for one in written),
        )


def perplexity(model: Any, tokenizer: Any, file: Path, batch: int = 8, window: int = 512, most: int = 50_000) -> float:
    """The perplexity of a text: the exponential of the mean loss of its tokens (the first `most` of them), in windows that each
    begin anew.

    Raises:
        UserError: for a file that cannot be read, or that has fewer than two tokens.
    """
    import torch

    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: it is not a text in UTF-8 ({error}).") from None
    ids = tokenizer(text[: 20 * most], add_special_tokens=False, verbose=False)["input_ids"][:most]
    window = min(window, positions(model.config))
    windows = [ids[start : start + window] for start in range(0, len(ids), window)]
    windows = [some for some in windows if len(some) > 1]  # the first token of each is only read
    if not windows:
        raise UserError(f"{file}: it has fewer than two tokens; give a longer text.")
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    total = count = 0.0
    with torch.no_grad():
        for start in range(0, len(windows), batch):
            for length in sorted({len(some) for some in windows[start : start + batch]}):
                rows = torch.tensor([some for some in windows[start : start + batch] if len(some) == length], device=device)
                losses = torch.nn.functional.cross_entropy(
                    model(rows).logits[:, :-1].flatten(0, 1).float(), rows[:, 1:].flatten(), reduction="sum"
                )
                total, count = total + float(losses), count + rows[:, 1:].numel()
    model.train(was_training)
    return math.exp(total / count)


# -- the certificate ---------------------------------------------------------------------------------------------------------


@dataclass
class Questions:
    """Named sets of rows as a task whose inputs are row numbers and whose answers are numbered texts.

    So the certificate of the sandbox can ask language models, which see texts, as it asks all other procedures.
    """

    sets: Mapping[str, Asked]
    score: Scorer
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def inputs(self) -> int:
        """The number of rows; they are a sample of all questions, so nothing is ever exact."""
        return len(self.records)

    def every_input(self) -> np.ndarray:
        """All row numbers: (rows, 1)."""
        return np.arange(len(self.records))[:, None]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The texts that have numbers."""
        return tuple(self.numbers)

    @cached_property
    def records(self) -> list[Record]:
        """All rows of all sets, one after the other."""
        return [record for asked in self.sets.values() for record in asked.records]

    @cached_property
    def rows(self) -> list[Tokens]:
        """Their tokens."""
        return [tokens for asked in self.sets.values() for tokens in asked.tokens]

    def splits(self) -> dict[str, np.ndarray]:
        """The row numbers of each set, (rows, 1); rows that are the same have the number of the first of them."""
        first: dict[tuple[str, str], int] = {}
        numbers = [first.setdefault((one.question, one.answer), row) for row, one in enumerate(self.records)]
        starts = np.cumsum([0, *(len(asked) for asked in self.sets.values())])
        return {name: np.array(numbers[starts[at] : starts[at + 1]])[:, None] for at, name in enumerate(self.sets)}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))

    def trace(self, inputs: np.ndarray) -> Traces:
        """Question and right answer of each row, as numbered texts."""
        chosen = [self.records[int(row)] for row in inputs[:, 0]]
        rows = [Trace((self.number(one.question),), (), (self.number(normalise(one.answer)),)) for one in chosen]
        if not rows:
            return Traces(np.empty((0, 2), np.int64), np.tile([PROMPT, ANSWER], (0, 1)))
        return Traces.of(rows)

    def answers(self, written: Sequence[Written], inputs: np.ndarray) -> np.ndarray:
        """The number of each answer, (rows, 1): that of the right one wherever the scorer takes it for right."""
        numbers = []
        for one, row in zip(written, inputs[:, 0], strict=True):
            record = self.records[int(row)]
            right = one.answer is not None and self.score(one.answer, record)
            said = normalise(record.answer) if right else "no answer" if one.answer is None else normalise(one.answer)
            numbers.append([self.number(said)])
        return np.array(numbers)


@dataclass(frozen=True)
class LMProcedure:
    """A language model that writes what a stage shows, asked by row number."""

    name: str
    speaker: Speaker
    questions: Questions
    curriculum: Curriculum
    direct: bool

    @property
    def hypothesis_class(self) -> dict[str, Any]:
        """The architecture and its sizes."""
        config = self.speaker.model.config.to_dict()
        names = ["model_type", "hidden_size", "n_embd", "num_hidden_layers", "n_layer", "num_attention_heads", "n_head"]
        names += ["intermediate_size", "n_inner", "vocab_size"]
        return {"kind": "language model", **{name: config[name] for name in names if name in config}}

    def __call__(self, inputs: np.ndarray, rng: np.random.Generator) -> Reply:
        """Answer the rows with these numbers, (rows, 1)."""
        rows = [self.questions.rows[int(row)] for row in inputs[:, 0]]
        records = [self.questions.records[int(row)] for row in inputs[:, 0]]
        view = self.curriculum.direct if self.direct else self.curriculum.full
        asked = Asked(self.questions.sets[next(iter(self.questions.sets))].path, records, rows)
        written = ask(self.speaker, asked, [view(row.units) for row in rows])
        read = np.array([len(row.prompt()) for row in rows], float)
        tokens = np.array([one.tokens for one in written], float)
        parameters = sum(parameter.numel() for parameter in self.speaker.model.parameters())
        return Reply(
            self.questions.answers(written, inputs),
            tokens,
            tokens,
            2.0 * parameters * (read + tokens),  # one multiplication and one addition for each weight and token
            np.array([one.probability if one.answer is not None else 0.0 for one in written]),
        )
