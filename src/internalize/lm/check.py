"""`internalize lm check`: what is in a file of records, row by row, before anything is trained."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from internalize.curricula import Curriculum
from internalize.errors import UserError
from internalize.lm.evaluation import normalise
from internalize.lm.records import Record, Turns, read
from internalize.lm.rows import Reading
from internalize.lm.tokens import Tokens, add_specials, encode, show, view_of

EXAMPLES = 3


@dataclass
class Checked:
    """What was found in one file.

    bad: (line, what is wrong) of each row that cannot be used; duplicates: lines whose question was seen before in the file;
    conflicts: those of them whose answer is another one than at first; conversations: rows of more than one turn; overlap: for
    each other file, questions that both have; tokens: least, median, 90th percentile and most tokens in a row; shown: for three
    rows, what each stage shows.
    """

    path: str
    rows: int = 0
    good: int = 0
    bad: list[tuple[int, str]] = field(default_factory=list)
    duplicates: list[int] = field(default_factory=list)
    conflicts: list[int] = field(default_factory=list)
    conversations: int = 0
    overlap: dict[str, int] = field(default_factory=dict)
    steps: dict[int, int] = field(default_factory=dict)
    tokens: tuple[float, ...] = ()
    too_long: list[int] = field(default_factory=list)
    shown: list[list[str]] = field(default_factory=list)


def check(
    paths: Sequence[Path], curriculum: Curriculum, reading: Reading | None, format: str | None, delimiter: str | None
) -> list[Checked]:
    """Look at every row of every file. Without `reading` (no model is named) nothing is tokenized.

    Raises:
        UserError: for files that cannot be read at all.
    """
    seen: dict[str, set[Turns]] = {}
    found = []
    for path in paths:
        checked, lengths = Checked(str(path)), []
        questions: dict[Turns, str] = {}  # the first answer to each
        examples: list[tuple[Record, Tokens | None]] = []
        for row in read(path, format, delimiter):
            checked.rows += 1
            if row.record is None:
                checked.bad.append((row.line, row.error))
                continue
            tokens = None
            if reading is not None:
                try:
                    tokens = encode(row.record, reading.tokenizer, reading.template, reading.units)
                except UserError as error:
                    checked.bad.append((row.line, str(error)))
                    continue
                lengths.append(len(tokens.ids))
                if lengths[-1] > reading.longest:
                    checked.too_long.append(row.line)
            checked.good += 1
            answer = normalise(row.record.answer)
            if row.record.asked in questions:
                checked.duplicates.append(row.line)
            if questions.setdefault(row.record.asked, answer) != answer:
                checked.conflicts.append(row.line)
            checked.conversations += len(row.record.asked) > 1
            if len(examples) < EXAMPLES:
                examples.append((row.record, tokens))
            checked.steps[len(row.record.steps)] = checked.steps.get(len(row.record.steps), 0) + 1
        checked.steps = dict(sorted(Counter(checked.steps).items()))
        checked.overlap = {other: len(theirs & questions.keys()) for other, theirs in seen.items() if theirs & questions.keys()}
        if lengths:
            checked.tokens = tuple(float(value) for value in np.quantile(lengths, [0, 0.5, 0.9, 1]))
        checked.shown = [_stages(record, tokens, curriculum, reading) for record, tokens in examples]
        seen[str(path)] = set(questions)
        found.append(checked)
    return found


def _stages(record: Record, tokens: Tokens | None, curriculum: Curriculum, reading: Reading | None) -> list[str]:
    """What each stage shows of one row, as text."""
    if tokens is None or reading is None:
        units = len(record.steps)
        views = [curriculum.target(units, stage) for stage in range(curriculum.stages(units))]
        shown = [" ".join(step for step, kept in zip(record.steps, view.keep, strict=True) if kept) for view in views]
        return [f"{record.question} | {chain} | {record.answer}" for chain in shown]
    specials: Any = add_specials(reading.tokenizer, curriculum, tokens.units)
    stages = range(curriculum.stages(tokens.units))
    return [
        str(reading.tokenizer.decode(show(tokens, view_of(curriculum, tokens.units, stage, len(stages)), specials).ids))
        for stage in stages
    ]
