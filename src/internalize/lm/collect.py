"""Samples a model's own chains and keeps the good ones: what the model then internalizes is itself (paper, Definition 1).

A chain is kept when its answer is right, or, for questions without answers, when most of the sampled answers agree with it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from internalize.checking import check_device
from internalize.errors import UserError
from internalize.lm import need, quiet
from internalize.lm.evaluation import Scorer, normalise, scorer
from internalize.lm.pretrained import left_padded, load_model, load_tokenizer, pad_of, positions
from internalize.lm.records import MARKER, Record, Turns, flat_turns, to_json, turns_of
from internalize.lm.tokens import Template
from internalize.provenance import provenance


@dataclass(frozen=True)
class Question:
    """What is asked; without an answer where none is known."""

    line: int
    text: str
    answer: str | None
    turns: Turns = ()

    def record(self, answer: str = "") -> Record:
        """The question as a record without a chain."""
        return Record(self.text, (), answer, turns=self.turns)


@dataclass(frozen=True)
class Collected:
    """How many questions were asked, chains sampled and records written, and for how many questions no chain was good."""

    questions: int
    chains: int
    kept: int
    without: int


def questions(path: Path) -> Iterator[Question]:
    """The questions of a JSONL file: {"question"} or {"messages"}, whose last one is then the user's, and "answer" where it is
    known. Raises `UserError` with the line.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line.decode("utf-8-sig"))
                except ValueError as error:
                    raise UserError(f"{path}, line {number}: not a JSON row in UTF-8 ({error}).") from None
                turns: Turns = ()
                text = value.get("question") if isinstance(value, dict) else None
                if isinstance(value, dict) and "messages" in value:
                    try:
                        turns = turns_of(value["messages"])
                    except ValueError as error:
                        raise UserError(f"{path}, line {number}: {error}.") from None
                    text = flat_turns(turns)
                    if turns[-1][0] != "user":
                        raise UserError(f"{path}, line {number}: the last message is not the user's, so nothing is asked.")
                if not isinstance(text, str) or not text.strip():
                    raise UserError(f'{path}, line {number}: the field "question" is missing.')
                answer = value.get("answer")
                known = None if answer is None else str(answer).rpartition(MARKER)[2].strip()
                yield Question(number, text.strip(), known, turns)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None


def collect(
    model: str,
    data: Path,
    out: Path,
    *,
    samples: int = 8,
    keep: int = 1,
    temperature: float = 1.0,
    most: int = 512,
    template: Template | None = None,
    score: str | None = None,
    batch: int = 16,
    seed: int = 0,
    device: str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Collected:
    """Sample chains for each question, and write the good ones to `out` as records, one a line.

    Args:
        model: a folder or a Hub name.
        data: questions (see `questions`).
        out: a JSONL file. Beside it, OUT.rejected has the questions without a good chain. What both hold already is kept, and
            those questions are not asked again.
        samples: chains for each question.
        keep: different good chains that are written for a question at most; the shortest first.
        temperature: of the sampling.
        most: tokens of a chain and its answer at most.
        template: how the question is asked.
        score: as for `scorer`.
        batch: questions at once.
        seed: of the sampling.
        device: cpu or cuda.
        progress: told (questions done, in all).

    Raises:
        UserError: for files and models that cannot be read.
    """
    need("transformers")
    quiet()
    if samples < 1 or keep < 1 or most < 1 or not temperature > 0:
        raise UserError("samples, keep and most must be at least 1, and the temperature above 0.")
    every = list(questions(data))
    if not every:
        raise UserError(f"{data}: it has no questions; give a file with one a line.")
    template, judge = template or Template(), scorer(score)
    tokenizer = load_tokenizer(model)
    check_device(device)
    if not out.parent.is_dir():
        raise UserError(f"{out}: there is no directory {out.parent}; make it first.")
    network = load_model(model).to(device).eval()
    rejected = out.with_name(f"{out.name}.rejected")
    done = _done(out, data) | _done(rejected, data)
    left = [question for question in every if question.line not in done]
    chains = kept = without = 0
    origin = {"model": model, "temperature": temperature, "samples": samples, "seed": seed, "commit": provenance()["commit"]}
    with out.open("a", encoding="utf-8") as file, rejected.open("a", encoding="utf-8") as refused:
        for start in range(0, len(left), batch):
            some = left[start : start + batch]
            prompts = [template.prompt(question.record(), tokenizer) for question in some]
            texts = _sample(network, tokenizer, prompts, template, samples, temperature, most, seed, some[0].line)
            for question, written in zip(some, texts, strict=True):
                good = good_chains(question, written, judge)
                chains, kept, without = chains + len(written), kept + len(good[:keep]), without + (not good)
                source = {"collected": {"line": question.line, "file": str(data), **origin}}
                for record in good[:keep]:
                    file.write(json.dumps({**to_json(record), **source}, ensure_ascii=False) + "\n")
                if not good:
                    refused.write(json.dumps({"question": question.text, **source}, ensure_ascii=False) + "\n")
            file.flush()
            refused.flush()
            progress(len(done) + start + len(some), len(every))
    return Collected(len(left), chains, kept, without)


def good_chains(question: Question, written: list[str], judge: Scorer) -> list[Record]:
    """The different chains whose answer is right, or is that of most samples where none is known; the shortest first."""
    parsed = [parse(question.record(), text) for text in written]
    records = [record for record in parsed if record is not None]
    if question.answer is None:
        votes = Counter(normalise(record.answer) for record in records)
        winner, count = max(votes.items(), key=lambda vote: (vote[1], vote[0]), default=("", 0))
        records = [record for record in records if normalise(record.answer) == winner] if 2 * count > len(written) else []
    else:
        known = question.record(question.answer)
        records = [record for record in records if judge(record.answer, known)]
    different = {(record.steps, normalise(record.answer)): record for record in records}
    return sorted(different.values(), key=lambda record: (sum(map(len, record.steps)), record.steps))


def parse(asked: Record, text: str) -> Record | None:
    """What was asked, with the chain and the answer that a model wrote; None where there is no marker, more than one, or
    nothing after it.
    """
    chain, marker, answer = text.rpartition(MARKER)
    lines = tuple(line.strip() for line in chain.replace("<think>", "").replace("</think>", "").split("\n") if line.strip())
    said = answer.strip().split("\n")[0].strip()
    return replace(asked, steps=lines, answer=said, meta={}) if marker and said and MARKER not in chain else None


def _sample(
    model: Any,
    tokenizer: Any,
    prompts: list[str],
    template: Template,
    samples: int,
    temperature: float,
    most: int,
    seed: int,
    place: int,
) -> list[list[str]]:
    import torch

    from internalize.seeding import torch_stream

    pad = pad_of(tokenizer)
    ids = [tokenizer(prompt, add_special_tokens=not template.chat)["input_ids"] for prompt in prompts]
    ids = [row[:-1] if row[-1] == tokenizer.eos_token_id else row for row in ids]
    longest = max(map(len, ids))
    room = positions(model.config) - longest
    if room < 1:
        raise UserError(f"a question has {longest:,} tokens, and the model reads no more; leave it out.")
    device = next(model.parameters()).device
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(torch_stream(seed, f"chains {place}").initial_seed())
        written = model.generate(
            **left_padded(ids, pad, device),
            do_sample=True,
            temperature=temperature,
            top_k=0,
            num_return_sequences=samples,
            max_new_tokens=min(most, room),
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=pad,
        )
    texts = tokenizer.batch_decode(written[:, longest:], skip_special_tokens=True)
    return [texts[start : start + samples] for start in range(0, len(texts), samples)]


def _done(out: Path, data: Path) -> set[int]:
    """The lines of `data` whose chains `out` already holds; a half-written last line is cut off."""
    if not out.exists():
        return set()
    lines = out.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # JSON may hold other kinds of line ends
    lines = [] if lines == [""] else lines
    done, whole = set(), []
    for number, line in enumerate(lines, 1):
        try:
            source = json.loads(line)["collected"]
        except (ValueError, KeyError, TypeError):
            if number == len(lines):
                break
            raise UserError(
                f"{out}, line {number}: it was not written by `internalize lm collect`; choose another file."
            ) from None
        if source["file"] == str(data):
            done.add(source["line"])
        whole.append(line)
    out.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
    return done
