import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.errors import UserError
from internalize.lm.records import FORMATS, Record, Row, read, read_all, split_chain, write

Q, CHAIN, A = "How many?", ("<<1+1=2>>", "<<2*3=6>>"), "6"


def rows(tmp_path: Path, content: str | bytes, name: str = "data", **options: Any) -> list[Row]:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read(path, **options))


ONE_OF_EACH = {
    "icot": f"{Q}||{' '.join(CHAIN)} #### {A}\n",
    "steps": json.dumps({"question": Q, "steps": list(CHAIN), "answer": A}),
    "cot": json.dumps({"question": Q, "cot": " ".join(CHAIN), "answer": A}),
    "gsm8k": json.dumps({"question": Q, "answer": f"{CHAIN[0]}\n{CHAIN[1]}\n#### {A}"}),
    "lightthinker": json.dumps({"question": Q, "thoughts_list": list(CHAIN), "gt_output": "so it is \\boxed{6}."}),
    "prompt": json.dumps({"prompt": Q, "completion": f"<think>{' '.join(CHAIN)}</think> {A}"}),
    "messages": json.dumps(
        {"messages": [{"role": "user", "content": Q}, {"role": "assistant", "content": f"{' '.join(CHAIN)} #### {A}"}]}
    ),
    "alpaca": json.dumps({"instruction": Q, "input": "", "output": f"{' '.join(CHAIN)} The answer is: {A}."}),
    "word-problem": "seed,input,target\n3,1 2 0,1 0 0\n",
}


def test_every_format_has_an_example() -> None:
    assert set(ONE_OF_EACH) == set(FORMATS)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("told", [True, False])
def test_a_record_of_each_format(tmp_path: Path, format: str, told: bool) -> None:
    (row,) = rows(tmp_path, ONE_OF_EACH[format], format=format if told else None)
    assert row.record is not None, row.error
    if format == "word-problem":
        assert (row.record.question, row.record.steps, row.record.answer) == ("1 2 0", ("1", "0"), "0")
    else:
        assert (row.record.question, row.record.steps, row.record.answer) == (Q, CHAIN, A)


def test_a_list_of_prompts_and_completions(tmp_path: Path) -> None:
    value = {
        "prompt": [{"role": "system", "content": "Think."}, {"role": "user", "content": Q}],
        "completion": [{"role": "assistant", "content": f"<think>a\nb</think>{A}"}],
        "id": 7,
    }
    (row,) = rows(tmp_path, json.dumps(value))
    assert row.record == Record(f"Think.\n{Q}", ("a", "b"), A, {"id": 7}, (("system", "Think."), ("user", Q)))
    again = tmp_path / "again.jsonl"
    write(again, [row.record])
    assert [one.record for one in read(again)] == [row.record]


USER = {"role": "user", "content": Q}


@pytest.mark.parametrize(
    "last",
    [
        {"reasoning_content": "a\nb", "content": A},
        {"reasoning": "a\nb", "content": f"#### {A}"},
        {"content": [{"type": "text", "text": "<think>a\nb</think>"}, {"type": "text", "text": A}]},
    ],
)
def test_chains_as_servers_return_them(tmp_path: Path, last: dict[str, Any]) -> None:
    (row,) = rows(tmp_path, json.dumps({"messages": [USER, {"role": "assistant", **last}]}))
    assert row.record == Record(Q, ("a", "b"), A)


@pytest.mark.parametrize(
    ("messages", "more", "message"),
    [
        ([USER, {"role": "assistant", "content": A, "tool_calls": [{"id": "1"}]}], {}, "a message calls a tool"),
        ([USER, {"role": "tool", "content": "1"}, {"role": "assistant", "content": f"#### {A}"}], {}, "a message calls a tool"),
        ([USER, {"role": "assistant", "content": f"#### {A}"}], {"tools": [{"name": "f"}]}, "it has tools"),
        ([USER, {"role": "critic", "content": "no"}], {}, 'the role of a message is "critic"; known are system'),
        (
            [{"role": "user", "content": [{"type": "image_url", "url": "x"}]}],
            {},
            'is of type "image_url"; only text can be read',
        ),
        ([USER], {}, "the last message is not the assistant's"),
        ([], {}, 'its messages must be a list of {"role", "content"}'),
        ([{"role": "assistant", "content": f"#### {A}"}], {}, "the question is empty"),
        ([USER, {"role": "assistant", "reasoning": "a", "content": ""}], {}, "the answer is empty"),
    ],
)
def test_conversations_that_are_no_records(tmp_path: Path, messages: list[Any], more: dict[str, Any], message: str) -> None:
    (row,) = rows(tmp_path, json.dumps({"messages": messages, **more}))
    assert row.record is None
    assert message in row.error


def test_a_json_list_has_the_lines_of_its_values_and_keeps_other_fields(tmp_path: Path) -> None:
    values = [{"question": str(n), "steps": [], "answer": n, "more": [n]} for n in range(3)]
    found = rows(tmp_path, "\n" + json.dumps(values, indent=1))
    starts = [2 + 1 + 8 * n for n in range(3)]
    assert [row.line for row in found] == starts
    assert [row.record and (row.record.answer, row.record.meta) for row in found] == [(str(n), {"more": [n]}) for n in range(3)]


@pytest.mark.parametrize(
    ("chain", "delimiter", "steps"),
    [
        ("<<1+1=2>> <<2*2=4>>", None, ("<<1+1=2>>", "<<2*2=4>>")),
        ("so <<1+1=2>> it is", None, ("so <<1+1=2>> it is",)),
        ("one\n\ntwo\n", None, ("one", "two")),
        ("It is 1.5 long. So 3 fit! Yes", None, ("It is 1.5 long.", "So 3 fit!", "Yes")),
        ("a b c", " ", ("a", "b", "c")),
        ("", None, ()),
    ],
)
def test_a_chain_is_cut_into_steps(chain: str, delimiter: str | None, steps: tuple[str, ...]) -> None:
    assert split_chain(chain, delimiter) == steps


@pytest.mark.parametrize(
    ("answer", "kept"), [("-5", "-5"), ("1,234.50", "1,234.50"), ("a #### b", "b"), (" 0 ", "0"), ("- 3", "- 3")]
)
def test_answers_with_signs_and_marks_are_kept(tmp_path: Path, answer: str, kept: str) -> None:
    (row,) = rows(tmp_path, f"q||c #### {answer}\n")
    assert row.record is not None
    assert row.record.answer == kept


BAD = [
    (b"only a question\n", 'no "||"'),
    (b"q||chain without answer\n", 'no "####"'),
    (b"||c #### 1\n", "question is empty"),
    (b"q||c #### \n", "answer is empty"),
    (b'{"question": "q", "steps": ["a"]}\n', '"answer" is missing'),
    (b'{"question": "q", "steps": "a", "answer": "1"}\n', "must be a list of texts"),
    (b'{"question": 5, "steps": ["a"], "answer": null}\n', '"answer" is missing'),
    (b'{"question": ["q"], "steps": ["a"], "answer": "1"}\n', "must be text, not list"),
    (b'{"question": "q", "cot": null, "answer": "1"}\n', '"cot" is missing'),
    (b'{"question": "q", "answer": "just 5"}\n', "cannot be told apart"),
    (b'{"prompt": "q", "completion": "5"}\n', "cannot be told apart"),
    (b'{"messages": [{"role": "user", "content": "q"}]}\n', "not the assistant"),
    (b'{"messages": "q"}\n', "must be a list of"),
    (b'{"foo": 1}\n', "no known format"),
    (b'{"question": "q"}\n', 'beside "question"'),
    (b'{"question": "q", \n', "not valid JSON"),
    (b'[{"question": "q", "steps": [], "answer": "1"}, 5]', "not a JSON object"),
    (b'{"question": "\xff", "steps": [], "answer": "1"}\n', "not UTF-8"),
    (b"q\xff||c #### 1\n", "not UTF-8"),
    (b"seed,input,target\n3,1 2,1\n", "the input has 2 elements, and the target 1"),
]


@pytest.mark.parametrize(("content", "why"), BAD)
def test_a_bad_row_is_told_and_those_around_it_are_kept(tmp_path: Path, content: bytes, why: str) -> None:
    found = rows(tmp_path, content)
    (bad,) = [row for row in found if row.record is None]
    assert why in bad.error
    with pytest.raises(UserError, match=rf"data, line {bad.line}: "):
        list(read_all(tmp_path / "data"))


def test_rows_of_two_formats_in_one_file(tmp_path: Path) -> None:
    content = "\n".join([ONE_OF_EACH["steps"], ONE_OF_EACH["cot"], ONE_OF_EACH["steps"]])
    found = rows(tmp_path, content)
    assert [row.record is None for row in found] == [False, True, False]
    assert 'those of the format "cot", but the file is of the format "steps"' in found[1].error


@pytest.mark.parametrize(
    ("content", "options", "why"),
    [
        (b"", {}, "has no rows"),
        (b"\n\n", {}, "has no rows"),
        (b"x", {"format": "xml"}, 'no format is called "xml"'),
        (b'[{"question": "q", "steps": [], "answer": "1"}, {"que', {}, "line 1: not valid JSON"),
        (b'[{"question": "\xff"}]', {}, "not UTF-8 text"),
        (b"seed,input,target\n3,\xff,1\n", {}, "not UTF-8 text"),
    ],
)
def test_a_bad_file(tmp_path: Path, content: bytes, options: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        rows(tmp_path, content, **options)


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, b"\xef\xbb\xbf" + ONE_OF_EACH["steps"].encode())
    assert row.record is not None


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.jsonl: cannot be read"):
        list(read(tmp_path / "none.jsonl"))


words = st.text("abc 1=+.é漢", min_size=1, max_size=12).map(str.strip).filter(bool)
records = st.builds(Record, words, st.lists(words, max_size=3).map(tuple), words)


@given(st.lists(records, min_size=1, max_size=5), st.sampled_from([".json", ".jsonl"]))
def test_json_round_trip(tmp_path_factory: pytest.TempPathFactory, some: list[Record], suffix: str) -> None:
    path = tmp_path_factory.mktemp("data") / f"records{suffix}"
    write(path, some)
    assert list(read_all(path, "steps")) == some


@given(st.lists(st.tuples(words, st.lists(st.sampled_from(["<<1+1=2>>", "<<2*.5=1>>"]), max_size=3), words), min_size=1))
def test_icot_round_trip(tmp_path_factory: pytest.TempPathFactory, some: list[tuple[str, list[str], str]]) -> None:
    path = tmp_path_factory.mktemp("data") / "records.txt"
    made = [Record(question, tuple(steps), answer) for question, steps, answer in some]
    write(path, made, "icot")
    assert list(read_all(path, "icot")) == made


@pytest.mark.parametrize("record", [Record("a\nb", (), "1"), Record("a||b", (), "1"), Record("a", (), "#### 1")])
def test_what_icot_cannot_hold(tmp_path: Path, record: Record) -> None:
    with pytest.raises(UserError, match="record 1: icot text cannot hold"):
        write(tmp_path / "x", [record], "icot")
    assert not (tmp_path / "x").exists()
    with pytest.raises(UserError, match="formats to write"):
        write(tmp_path / "x", [record], "csv")


@given(st.binary(max_size=200))
def test_whatever_a_file_holds_is_rows_or_one_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("data") / "file"
    path.write_bytes(content)
    try:
        assert all((row.record is None) == bool(row.error) for row in read(path))
    except UserError as error:
        assert str(error).startswith(str(path))
