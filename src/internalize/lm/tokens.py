"""How a record becomes tokens: prompt, units that a curriculum can take away, answer.

A row is written

    question \n [hint] step \n step \n ... #### answer EOS

and tokenized once, as a whole; each token then belongs to the part in which its characters lie. So removing a unit leaves the
other tokens as they were, and what a model reads in training is what a plain tokenizer gives for the same text: a token that
would straddle a boundary, or a prompt that is tokenized otherwise by itself, is an error with its line.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from internalize.curricula import Curriculum, View
from internalize.errors import UserError
from internalize.lm.records import MARKER, Record, messages_of
from internalize.tasks import ANSWER, PROMPT

Units = Literal["step", "token"]
Numbers = NDArray[np.int32]

IGNORED = -100  # the label of a token that is not in the loss (transformers' convention)
THINK, THOUGHT = "<think>", "</think>"
HINT = "<|chain:{}|>"  # stands at the end of the prompt and names the number of units that follow
FILLER = "<|filler|>"  # stands in for each token of a removed unit


@dataclass(frozen=True)
class Template:
    """The text around the parts of a record.

    The chat template of a model that thinks (one that opens a <think> block for the answer, or that writes an empty one when it
    is told not to think) has the chain in that block: the prompt opens it, and the answer closes it before its marker.

    Attributes:
        chat: write the question in the tokenizer's chat template: a conversation's own turns, or else one turn of the user's.
        instruction: text before each question, in the user's last turn.
    """

    chat: bool = False
    instruction: str = ""

    def prompt(self, record: Record, tokenizer: Any) -> str:
        """The text that the model continues. Raises `UserError` for a conversation that the chat template refuses."""
        if not self.chat:
            return f"{self._asked(record.question)}\n"
        last = max((at for at, (role, _) in enumerate(record.asked) if role == "user"), default=-1)
        turns = [(role, self._asked(content) if at == last else content) for at, (role, content) in enumerate(record.asked)]
        text = _rendered(tokenizer, turns)
        return f"{text}{THINK}\n" if thinks(tokenizer) and not _opens(text) else text

    def _asked(self, question: str) -> str:
        return f"{self.instruction}\n{question}" if self.instruction else question

    def marked(self, tokenizer: Any) -> str:
        """What stands between the chain and the answer."""
        return f"{THOUGHT}\n\n{MARKER}" if self.chat and thinks(tokenizer) else MARKER

    def pieces(self, record: Record, tokenizer: Any) -> list[tuple[int, str]]:
        """(segment, text): the prompt, each step, and the answer with its marker."""
        steps = [(index, f"{step}\n") for index, step in enumerate(record.steps)]
        answer = f"{self.marked(tokenizer)} {record.answer}"
        return [(PROMPT, self.prompt(record, tokenizer)), *steps, (ANSWER, answer)]


@lru_cache(maxsize=4)
def thinks(tokenizer: Any) -> bool:
    """Whether a tokenizer's chat template is that of a model that thinks before it answers. One that only takes the thoughts
    out of earlier turns is not.
    """
    turns = [("user", "?")]
    text = _rendered(tokenizer, turns)
    return _opens(text) or THINK in _rendered(tokenizer, turns, enable_thinking=False)


def _opens(text: str) -> bool:
    return text.rstrip().endswith(THINK)


def _rendered(tokenizer: Any, turns: list[tuple[str, str]], **options: Any) -> str:
    from jinja2 import TemplateError

    try:
        return str(tokenizer.apply_chat_template(messages_of(turns), tokenize=False, add_generation_prompt=True, **options))
    except (TemplateError, ValueError) as error:
        raise UserError(
            f"the chat template refuses the turns {', '.join(role for role, _ in turns)} ({str(error).splitlines()[0]}); leave "
            "such rows out, or ask without the template."
        ) from None


@dataclass(frozen=True)
class Tokens:
    """A row's token ids, and the segment of each: PROMPT, ANSWER or the index of its unit.

    `marker` is the number of the answer's tokens that are the marker and not the answer itself.
    """

    ids: Numbers
    segment: Numbers
    marker: int

    @property
    def units(self) -> int:
        """The number of units of its chain."""
        return int(self.segment.max(initial=-1)) + 1

    def prompt(self) -> list[int]:
        """The ids of the prompt."""
        return [int(token) for token in self.ids[self.segment == PROMPT]]

    def answer(self) -> list[int]:
        """The ids of the marker, the answer and the end."""
        return [int(token) for token in self.ids[self.segment == ANSWER]]


def encode(record: Record, tokenizer: Any, template: Template, units: Units = "step") -> Tokens:
    """Tokenize a record.

    Raises:
        UserError: when a token straddles two parts, or the prompt alone is tokenized otherwise. The caller adds the line.
    """
    pieces = template.pieces(record, tokenizer)
    text = "".join(piece for _, piece in pieces)
    ids, spans = _tokenize(text, tokenizer, template)
    ends = np.cumsum([len(piece) for _, piece in pieces])
    starts, stops = np.array(spans).T
    first, last = (np.searchsorted(ends, at, side="right") for at in (starts, np.maximum(starts, stops - 1)))
    if (first != last).any():
        raise UserError(
            f"the token {tokenizer.decode([ids[int(np.argmax(first != last))]])!r} would belong to two parts at once; "
            "end the question and each step with a character that this tokenizer does not merge with the next."
        )
    segment = np.array([which for which, _ in pieces], np.int32)[first]
    alone = _tokenize(pieces[0][1], tokenizer, template)[0]
    if ids[: int((segment == PROMPT).sum())] != alone:
        raise UserError(
            "the question is tokenized otherwise when it stands alone; a model could not be asked as it was trained."
        )
    marked = int(ends[-2]) + len(template.marked(tokenizer))
    marker = int(((segment == ANSWER) & (stops <= marked)).sum())
    if units == "token":
        segment = _single(segment, spans, text)
    return Tokens(np.array([*ids, tokenizer.eos_token_id], np.int32), np.append(segment, np.int32(ANSWER)), marker)


def _single(segment: Numbers, spans: list[tuple[int, int]], text: str) -> Numbers:
    """Each token of the chain as a unit of its own; a line end alone belongs to the token before it."""
    blank = np.array([not text[start:end].strip() for start, end in spans])
    chain = segment >= 0
    new = chain & ~(blank & np.append(False, segment[1:] == segment[:-1]))
    return np.where(chain, new.cumsum() - 1, segment).astype(np.int32)


def _tokenize(text: str, tokenizer: Any, template: Template) -> tuple[list[int], list[tuple[int, int]]]:
    """Token ids and the characters of each. Tokens that stand for no text (such as BOS) count to the first character."""
    # A chat template writes its own special tokens.
    encoded = tokenizer(text, add_special_tokens=not template.chat, return_offsets_mapping=True, verbose=False)
    ids, spans = list(encoded["input_ids"]), [tuple(span) for span in encoded["offset_mapping"]]
    while ids and spans[-1] == (0, 0) and len(ids) > 1:  # an EOS that the tokenizer adds; it is written once, after the answer
        ids.pop()
        spans.pop()
    return ids, spans


@dataclass(frozen=True)
class Shown:
    """A row as a stage shows it: input ids, and labels (`IGNORED` where nothing is to be predicted)."""

    ids: list[int]
    labels: list[int]


def show(tokens: Tokens, view: View, specials: "Specials") -> Shown:
    """What `view` shows of a row, with the loss on chain and answer only."""
    keep = np.array(view.keep, bool)
    chain = tokens.segment >= 0
    removed = chain.copy()
    removed[chain] = ~keep[tokens.segment[chain]] if len(keep) else False
    ids = np.where(removed, specials.filler, tokens.ids) if view.removed == "filler" else tokens.ids
    written = np.ones_like(removed) if view.removed == "filler" else ~removed
    target = ((chain & ~removed) | (tokens.segment == ANSWER))[written]
    ids = ids[written]
    at = int((tokens.segment == PROMPT).sum())
    if view.hint is not None:
        ids, target = np.insert(ids, at, specials.hint(view.hint)), np.insert(target, at, False)
    return Shown(ids.tolist(), np.where(target, ids, IGNORED).tolist())


def view_of(curriculum: Curriculum, units: int, stage: int, stages: int, share: float | None = None) -> View:
    """The view of a row with `units` units at stage `stage` of a run of `stages`: the one that the stage is judged by, or that
    of a place in [0, 1) among the shares of its mixture.
    """
    at = stage_of(curriculum, units, stage, stages)
    if share is None:
        return curriculum.target(units, at)
    shares, views = zip(*curriculum.mixture(units, at), strict=True)
    place = int(np.searchsorted(np.cumsum(shares), share * sum(shares), side="right"))
    chosen: View = views[min(place, len(views) - 1)]
    return chosen


def stage_of(curriculum: Curriculum, units: int, stage: int, stages: int) -> int:
    """Where in its own stages a row with `units` units is at stage `stage` of a run of `stages`. Rows with short chains are
    through sooner, and stay at their last stage; those with longer chains than the run was made for come to it with the run's
    last.
    """
    last = curriculum.stages(units) - 1
    return last if stage >= stages - 1 else min(stage, last)


def view_with(curriculum: Curriculum, units: int, stage: int, stages: int, shown: int) -> View:
    """Of the views that a stage is judged in, the one with `shown` units; or with all that a row of fewer has."""
    judged = {view.shown: view for view in curriculum.judged(units, stage_of(curriculum, units, stage, stages))}
    return judged[min(shown, max(judged))]


@dataclass(frozen=True)
class Specials:
    """Ids of the tokens that a curriculum needs beside those of the tokenizer."""

    filler: int
    hints: tuple[int, ...]

    @property
    def all(self) -> list[int]:
        """The ids of all of them."""
        return [*self.hints, *([self.filler] if self.filler >= 0 else [])]

    def hint(self, shown: int) -> int:
        """The id of the token that announces `shown` units."""
        return self.hints[min(shown, len(self.hints) - 1)]


def add_specials(tokenizer: Any, curriculum: Curriculum, units: int) -> Specials:
    """Add to the tokenizer what the curriculum needs: a hint for each number of units, or a filler."""
    hints = [HINT.format(shown) for shown in range(units + 1)] if curriculum.hint else []
    filler = [FILLER] if curriculum.removed == "filler" else []
    if hints or filler:
        tokenizer.add_special_tokens({"additional_special_tokens": [*hints, *filler]})
    ids = tokenizer.convert_tokens_to_ids([*hints, *filler])
    return Specials(int(ids[-1]) if filler else -1, tuple(int(one) for one in ids[: len(hints)]))
