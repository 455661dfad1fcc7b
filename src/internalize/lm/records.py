"""Reads and writes (question, steps, answer) records in the formats that people have. Nothing is dropped silently: each row is
a record or a sentence that says what is wrong with it, and both carry their line.

    icot           question||chain #### answer                       (text, one a line; Deng et al. 2024)
    steps          {"question", "steps": [...], "answer"}             (Coconut's JSON, and our own JSONL)
    cot            {"question", "cot", "answer"}                      (CODI)
    gsm8k          {"question", "answer": "chain #### answer"}
    lightthinker   {"question", "thoughts_list": [...], "gt_output"}
    prompt         {"prompt", "completion"}                           (TRL)
    messages       {"messages": [{"role", "content"}, ...]}           (TRL, hosted APIs)
    alpaca         {"instruction", "input", "output"}
    word-problem   CSV with the columns seed,input,target

JSON is one object a line, or one list. A completion is <think>chain</think>answer, "chain #### answer" or "chain The answer
is: answer"; a message may have its chain beside its content, in "reasoning_content" or "reasoning". The messages before the
answer (system, several turns) stay turns, to be rendered by a chat template. A chain is cut into steps at <<...>> groups, else
at line ends, else at the ends of sentences.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from internalize.errors import UserError

Turns = tuple[tuple[str, str], ...]  # (role, content) of each message

MARKER = "####"
ROLES = ("system", "developer", "user", "assistant")
REASONING = ("reasoning_content", "reasoning")  # where servers of models that think put the chain
_GROUPS = re.compile(r"<<.*?>>")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SAID = re.compile(r"(?:the\s+)?(?:final\s+)?answer\s+is:?", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


@dataclass(frozen=True)
class Record:
    """One example.

    Attributes:
        question: all that is asked, as one text.
        turns: the same as (role, content) of each message, where it is a conversation; else empty.
        meta: whatever else its row had.
    """

    question: str
    steps: tuple[str, ...]
    answer: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    turns: Turns = ()

    @property
    def asked(self) -> Turns:
        """What is asked, as turns: two records with the same are one question."""
        return self.turns or (("user", self.question),)


@dataclass(frozen=True)
class Row:
    """A record with its line in the file, or why there is none."""

    line: int
    record: Record | None
    error: str = ""


class _Bad(ValueError):
    """A row that is no record; the text says why."""


def read(path: Path, format: str | None = None, delimiter: str | None = None) -> Iterator[Row]:
    """The rows of a file, one after the other, so that files may be larger than memory (but for one JSON list).

    Args:
        path: the file.
        format: one of those above; left out, it is told from the first row, and a row of another format is bad.
        delimiter: what separates the steps of a chain.

    Raises:
        UserError: when the file cannot be read, is empty, or is of no known format.
    """
    if format is not None and format not in FORMATS:
        raise UserError(f'no format is called "{format}"; known are {", ".join(FORMATS)}.')
    empty = True
    for row in _rows(path, format, delimiter):
        empty = False
        yield row
    if empty:
        raise UserError(f"{path}: it has no rows; give a file with one example a line.")


def read_all(path: Path, format: str | None = None, delimiter: str | None = None, what: str = "") -> Iterator[Record]:
    """The records of a file. Raises `UserError` for the first bad row."""
    for row in read(path, format, delimiter):
        if row.record is None:
            raise UserError(f"{path}, line {row.line}: {row.error}. `internalize lm check {path}` lists all such rows.")
        yield row.record


def write(path: Path, records: Iterable[Record], format: str = "steps") -> None:
    """Write records as icot text, or as JSON: a list for `.json`, else one object a line.

    Raises:
        UserError: for another format, and for text that icot cannot hold.
    """
    if format == "icot":
        lines = []
        for number, record in enumerate(records, 1):
            whole = f"{record.question}||{' '.join(record.steps)} {MARKER} {record.answer}"
            if "\n" in whole or "||" in record.question or MARKER in record.answer:
                raise UserError(
                    f'record {number}: icot text cannot hold a line end, "||" in a question or "{MARKER}" in an answer.'
                )
            lines.append(whole)
        text = "\n".join(lines) + "\n"
    elif format == "steps":
        values = [to_json(record) for record in records]
        text = json.dumps(values, ensure_ascii=False, indent=1) if path.suffix == ".json" else "".join(map(_line, values))
    else:
        raise UserError(f'"{format}" cannot be written; the formats to write are icot and steps.')
    path.write_text(text, encoding="utf-8")


def to_json(record: Record) -> dict[str, Any]:
    """A record as an object of the format "steps"."""
    turns = {"turns": messages_of(record.turns)} if record.turns else {}
    return {"question": record.question, "steps": list(record.steps), "answer": record.answer, **turns, **record.meta}


def messages_of(turns: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Turns as messages."""
    return [{"role": role, "content": content} for role, content in turns]


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


# -- rows of a file -------------------------------------------------------------------------------------------------------


def _rows(path: Path, format: str | None, delimiter: str | None) -> Iterator[Row]:
    try:
        with path.open("rb") as file:
            head = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
            file.seek(0)
            if format == "word-problem" or (format is None and head.startswith(b"seed,input,target")):
                yield from _read_csv(path)
            elif format == "icot" or (format is None and head[:1] not in (b"{", b"[")):
                yield from _read_lines(file, lambda line: _icot(line, delimiter))
            else:
                objects = _json_list(path) if head[:1] == b"[" else _read_json_lines(file)
                yield from _read_objects(objects, format, delimiter)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}).") from None


def _read_lines(file: Iterable[bytes], parse: Callable[[str], Record]) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            yield Row(number, parse(_text(line).rstrip("\r\n")))
        except _Bad as bad:
            yield Row(number, None, str(bad))


def _read_json_lines(file: Iterable[bytes]) -> Iterator[tuple[int, Any]]:
    """(line, value), or (line, the reason why there is none)."""
    for number, line in enumerate(file, 1):
        if line.strip():
            try:
                yield number, json.loads(_text(line))
            except _Bad as bad:
                yield number, bad
            except ValueError as error:
                yield number, _Bad(f"not valid JSON ({error})")


def _json_list(path: Path) -> Iterator[tuple[int, Any]]:
    """The values of one JSON list, each with the line that it begins in."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    line, counted = 1, 0
    while True:
        at = _skip(text, at, " \t\r\n,")
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 1] == "]":
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError as error:
            raise UserError(f"{path}, line {line}: not valid JSON ({error}); the list goes on no further.") from None
        yield line, value


def _skip(text: str, at: int, characters: str) -> int:
    while at < len(text) and text[at] in characters:
        at += 1
    return at


def _read_objects(objects: Iterable[tuple[int, Any]], format: str | None, delimiter: str | None) -> Iterator[Row]:
    first = format
    for number, value in objects:
        try:
            if isinstance(value, _Bad):
                raise value
            if not isinstance(value, dict):
                raise _Bad("not a JSON object")
            kind = format or _detect(value)
            first = first or kind
            if kind != first:
                raise _Bad(f'its fields are those of the format "{kind}", but the file is of the format "{first}"')
            yield Row(number, _PARSERS[kind](value, delimiter))
        except _Bad as bad:
            yield Row(number, None, str(bad))


def _read_csv(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", errors="strict", newline="") as file:
        reader = csv.DictReader(file)
        try:
            for value in reader:
                try:
                    yield Row(reader.line_num, _word_problem(value))
                except _Bad as bad:
                    yield Row(reader.line_num, None, str(bad))
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8.") from None


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Bad(f"not UTF-8 text (byte {error.start} of the line)") from None


# -- one row -------------------------------------------------------------------------------------------------------------


def split_chain(chain: str, delimiter: str | None = None) -> tuple[str, ...]:
    """The steps of a chain; see the module."""
    chain = chain.strip()
    if delimiter is not None:
        pieces = chain.split(delimiter)
    elif _GROUPS.search(chain) and not _GROUPS.sub("", chain).strip():
        pieces = _GROUPS.findall(chain)
    elif "\n" in chain:
        pieces = chain.split("\n")
    else:
        pieces = _SENTENCE_END.split(chain)
    return tuple(piece.strip() for piece in pieces if piece.strip())


def split_completion(text: str) -> tuple[str, str]:
    """The chain and the answer of a completion. Raises `_Bad` when they cannot be told apart."""
    if "</think>" in text:
        chain, _, answer = text.rpartition("</think>")
        chain = chain.replace("<think>", "", 1)
        return chain, answer.rpartition(MARKER)[2]
    if MARKER in text:
        chain, _, answer = text.rpartition(MARKER)
        return chain, answer
    said = list(_SAID.finditer(text))
    if said:
        return text[: said[-1].start()], text[said[-1].end() :].strip().removesuffix(".")
    raise _Bad(
        f'the chain and the answer cannot be told apart; write "{MARKER}" before the answer, or the chain in <think> tags'
    )


def _record(
    question: str,
    steps: Iterable[str],
    answer: str,
    value: Mapping[str, Any],
    *known: str,
    turns: Turns = (),
) -> Record:
    answer, question = answer.strip(), question.strip()
    if not question:
        raise _Bad("the question is empty")
    if not answer:
        raise _Bad("the answer is empty")
    meta = {name: entry for name, entry in value.items() if name not in known}
    if [role for role, _ in turns] == ["user"]:  # which is a question like any other
        turns = ()
    return Record(question, tuple(steps), answer, meta, turns)


def _field(value: Mapping[str, Any], name: str) -> str:
    if name not in value or value[name] is None:
        raise _Bad(f'the field "{name}" is missing')
    entry = value[name]
    if isinstance(entry, (int, float)) and not isinstance(entry, bool):
        return str(entry)
    if not isinstance(entry, str):
        raise _Bad(f'the field "{name}" must be text, not {type(entry).__name__}')
    return entry


def _texts(value: Mapping[str, Any], name: str) -> tuple[str, ...]:
    entry = value.get(name)
    if not isinstance(entry, list) or not all(isinstance(one, str) for one in entry):
        raise _Bad(f'the field "{name}" must be a list of texts')
    return tuple(one.strip() for one in entry if one.strip())


def _icot(line: str, delimiter: str | None) -> Record:
    question, bars, rest = line.partition("||")
    if not bars:
        raise _Bad('there is no "||" after the question')
    chain, marker, answer = rest.rpartition(MARKER)
    if not marker:
        raise _Bad(f'there is no "{MARKER}" before the answer')
    return _record(question, split_chain(chain, delimiter), answer, {})


def _steps(value: Mapping[str, Any], delimiter: str | None) -> Record:
    turns = turns_of(value["turns"]) if "turns" in value else ()
    known = "question", "steps", "answer", "turns"
    return _record(_field(value, "question"), _texts(value, "steps"), _field(value, "answer"), value, *known, turns=turns)


def _cot(value: Mapping[str, Any], delimiter: str | None) -> Record:
    steps = split_chain(_field(value, "cot"), delimiter)
    return _record(_field(value, "question"), steps, _field(value, "answer"), value, "question", "cot", "answer")


def _gsm8k(value: Mapping[str, Any], delimiter: str | None) -> Record:
    chain, answer = split_completion(_field(value, "answer"))
    return _record(_field(value, "question"), split_chain(chain, delimiter), answer, value, "question", "answer")


def _lightthinker(value: Mapping[str, Any], delimiter: str | None) -> Record:
    output = _field(value, "gt_output")
    boxed = _BOXED.findall(output)
    if boxed:
        answer = boxed[-1]
    else:
        try:
            answer = split_completion(output)[1]
        except _Bad:
            answer = output
    known = "question", "thoughts_list", "gt_output"
    return _record(_field(value, "question"), _texts(value, "thoughts_list"), answer, value, *known)


def _prompt(value: Mapping[str, Any], delimiter: str | None) -> Record:
    if isinstance(value.get("prompt"), list):
        both = [value["prompt"], value.get("completion")]
        turns = [turn for part in both if isinstance(part, list) for turn in part]
        return _messages({**value, "messages": turns}, delimiter, "prompt", "completion")
    chain, answer = split_completion(_field(value, "completion"))
    return _record(_field(value, "prompt"), split_chain(chain, delimiter), answer, value, "prompt", "completion")


def _messages(value: Mapping[str, Any], delimiter: str | None, *known: str) -> Record:
    messages: Any = value.get("messages")
    if value.get("tools"):
        raise _Bad("it has tools, and calls of tools are no chain of thought; leave such rows out")
    turns = turns_of(messages)
    if turns[-1][0] != "assistant":
        raise _Bad("the last message is not the assistant's")
    chain, answer = _said_by(messages[-1], turns[-1][1])
    return _record(flat_turns(turns[:-1]), split_chain(chain, delimiter), answer, value, "messages", *known, turns=turns[:-1])


def flat_turns(turns: Iterable[tuple[str, str]]) -> str:
    """Turns as one text, without their roles."""
    return "\n".join(content for _, content in turns)


def turns_of(messages: Any) -> Turns:
    """(role, content) of each message. Raises `ValueError` with what is wrong with them."""
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) and "role" in one for one in messages):
        raise _Bad('its messages must be a list of {"role", "content"}')
    for message in messages:
        if message["role"] in ("tool", "function") or message.get("tool_calls") or message.get("function_call"):
            raise _Bad("a message calls a tool, and calls of tools are no chain of thought; leave such rows out")
        if message["role"] not in ROLES:
            raise _Bad(f'the role of a message is "{message["role"]}"; known are {", ".join(ROLES)}')
    return tuple((message["role"], _content(message)) for message in messages)


def _content(message: Mapping[str, Any]) -> str:
    """The text of a message, which may be a list of parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return _field(message, "content")
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise _Bad(f'a part of a message is of type "{kind}"; only text can be read')
    return "".join(part["text"] for part in content)


def _said_by(message: Mapping[str, Any], content: str) -> tuple[str, str]:
    """The chain and the answer of the last message: its reasoning may stand beside its content."""
    for name in REASONING:
        if message.get(name):
            return _field(message, name), content.rpartition(MARKER)[2]
    return split_completion(content)


def _alpaca(value: Mapping[str, Any], delimiter: str | None) -> Record:
    chain, answer = split_completion(_field(value, "output"))
    more = value.get("input") or ""
    question = f"{_field(value, 'instruction')}\n{more}" if more else _field(value, "instruction")
    return _record(question, split_chain(chain, delimiter), answer, value, "instruction", "input", "output")


def _word_problem(value: Mapping[str, Any]) -> Record:
    question, target = _field(value, "input"), _field(value, "target").split()
    if len(question.split()) != len(target):
        raise _Bad(f"the input has {len(question.split())} elements, and the target {len(target)}")
    return _record(question, target[:-1], target[-1] if target else "", {"seed": value.get("seed")})


_PARSERS: dict[str, Callable[[Mapping[str, Any], str | None], Record]] = {
    "steps": _steps,
    "cot": _cot,
    "gsm8k": _gsm8k,
    "lightthinker": _lightthinker,
    "prompt": _prompt,
    "messages": _messages,
    "alpaca": _alpaca,
}
FORMATS = ("icot", *_PARSERS, "word-problem")
_KEYS = {
    "messages": {"messages"},
    "prompt": {"prompt", "completion"},
    "alpaca": {"instruction", "output"},
    "lightthinker": {"question", "thoughts_list"},
    "steps": {"question", "steps"},
    "cot": {"question", "cot"},
    "gsm8k": {"question", "answer"},
}


def _detect(value: Mapping[str, Any]) -> str:
    for name, keys in _KEYS.items():
        if keys <= value.keys():
            return name
    if "question" in value:
        raise _Bad('beside "question" there must be "steps" and "answer", "cot" and "answer", or "answer" with its chain')
    raise _Bad(f"its fields ({', '.join(map(str, value)) or 'none'}) are those of no known format; see --format")
