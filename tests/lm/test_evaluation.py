import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers")
from transformers import GPT2Config, GPT2LMHeadModel

from internalize.errors import UserError
from internalize.lm.collect import Question, collect, good_chains, parse, questions
from internalize.lm.evaluation import Outcome, Questions, Speaker, Written, _forced, exact_match, normalise, scorer
from internalize.lm.example import multiplication, story, word_tokenizer, write_example
from internalize.lm.records import Record, read_all
from internalize.lm.rows import Asked
from internalize.lm.tokens import Specials


@pytest.mark.parametrize(
    ("one", "other"),
    [("1,234", "1234"), ("$5.00", "5"), ("-3", "-3.0"), ("Tom is a lempus.", "tom is a  lempus"), (".5", "0.5"), ("50%", "50")],
)
def test_the_same_answers(one: str, other: str) -> None:
    assert exact_match(one, Record("", (), other))


@pytest.mark.parametrize(("one", "other"), [("1 2 3", "123"), ("-3", "3"), ("1,2", "3"), ("", "0"), ("nan", "0"), ("1 0", "1")])
def test_different_answers(one: str, other: str) -> None:
    assert not exact_match(one, Record("", (), other))


@given(st.integers(-(10**12), 10**12))
def test_numbers_are_compared_by_value(number: int) -> None:
    assert normalise(f"{number:,}") == normalise(f"{number}.0") == str(number)


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_tokens_before_the_answer_are_counted() -> None:
    tokenizer = word_tokenizer(["a", "b", "1"])
    speaker = Speaker(None, tokenizer, Specials(-1, ()))
    ids = tokenizer("a b \n #### 1")["input_ids"]
    row = np.array([*ids, tokenizer.eos_token_id, 7, 7])
    chances = np.log(np.full(len(row), 0.5))
    written = speaker._written(row, chances)
    assert (written.answer, written.tokens, written.before) == ("1", 6, 3)
    assert written.probability == pytest.approx(0.5**3)  # marker, answer, end
    none = speaker._written(np.array(tokenizer("a b a")["input_ids"]), chances)
    assert (none.answer, none.tokens, none.before) == (None, 3, 3)


def test_long_numbers_and_wild_ones_are_compared_as_they_are() -> None:
    assert normalise("1" * 29 + "2") != normalise("1" * 29 + "3")
    assert normalise("1e9999999") == "1e9999999"
    assert normalise("12e1234567") == "12e1234567"
    assert normalise("-0") == normalise("0.00") == "0"


def test_a_forced_answer_is_what_comes_first() -> None:
    hidden = Written("9 3 4 #### 5", "5", 6, 4, 1.0)
    assert _forced(hidden).answer == "9 3 4"


def test_an_outcome() -> None:
    written = [Written("", "1", 4, 1, 1.0), Written("", None, 6, 6, 1.0), Written("", "2", 2, 0, 1.0)]
    outcome = Outcome.of(written, [Record(q, (), "1") for q in "aab"], exact_match)
    assert (outcome.accuracy.correct, outcome.accuracy.n, outcome.accuracy.distinct) == (1, 3, 2)
    assert (outcome.tokens, outcome.unanswered) == (4, 1)


def test_a_scorer_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def close(answer, record):\n    return abs(float(answer) - float(record.answer)) < 1\n")
    score = scorer(f"{file}:close")
    assert score("3.5", Record("", (), "3"))
    with pytest.raises(UserError, match='no function "far"'):
        scorer(f"{file}:far")
    with pytest.raises(UserError, match=r"of the form mine\.py:score"):
        scorer("close")


def test_right_answers_have_the_number_of_the_truth() -> None:
    records = [Record("a", (), "10"), Record("b", (), "2"), Record("a", (), "10")]
    asked = Asked(Path("x"), records, [])
    task = Questions({"x": asked}, exact_match)
    assert task.splits()["x"].tolist() == [[0], [1], [0]]  # the same row twice is one input
    inputs = task.splits()["x"]
    written = [Written("", "10.0", 1, 0, 1.0), Written("", "5", 1, 0, 1.0), Written("", None, 1, 0, 1.0)]
    truth = task.trace(inputs).tokens[:, 1:]
    assert (task.answers(written, inputs) == truth).ravel().tolist() == [True, False, False]


def test_good_chains() -> None:
    texts = ["a\n#### 4", "a b\n#### 5", "a\n#### 4.0", "longer\n#### 4", "nothing", "x #### 1 #### 4", "#### "]
    known = good_chains(Question(1, "q", "4"), texts, exact_match)
    assert [(record.steps, record.answer) for record in known] == [(("a",), "4.0"), (("longer",), "4")] or [
        record.steps for record in known
    ] == [("a",), ("longer",)]
    assert good_chains(Question(1, "q", "9"), texts, exact_match) == []
    voted = good_chains(Question(1, "q", None), texts[:4], exact_match)
    assert [record.steps for record in voted] == [("a",), ("longer",)]
    assert good_chains(Question(1, "q", None), ["#### 1", "#### 2"], exact_match) == []  # no majority


def test_what_a_model_wrote() -> None:
    asked = Record("s\nq", (), "", turns=(("system", "s"), ("user", "q")))
    assert parse(asked, "<think>one\n two\n</think>\n#### 5\nmore") == replace(asked, steps=("one", "two"), answer="5")
    assert parse(asked, "no marker") is None


def test_questions_may_be_conversations(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    turns = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "q"}]}]
    file.write_text(json.dumps({"messages": turns, "answer": "#### 5"}))
    assert list(questions(file)) == [Question(1, "s\nq", "5", (("system", "s"), ("user", "q")))]
    file.write_text(json.dumps({"messages": [*turns, {"role": "assistant", "content": "5"}]}))
    with pytest.raises(UserError, match=r"line 1: the last message is not the user's, so nothing is asked"):
        list(questions(file))


def test_collecting_goes_on_where_it_stopped(tmp_path: Path) -> None:
    example = write_example("multiply", 1, "llama", tmp_path / "example", rows=10)
    data, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    data.write_text('{"question": "2 * 3"}\n\n{"question": "4 * 4", "answer": "6 1"}\n')
    assert [(one.line, one.answer) for one in questions(data)] == [(1, None), (3, "6 1")]
    found = collect(str(example.model), data, out, samples=3, most=8)
    assert (found.questions, found.chains) == (2, 6)
    assert found.kept + found.without == 2
    again = collect(str(example.model), data, out, samples=3, most=8)
    assert again.questions == 0
    assert len(list(out.read_text().splitlines())) == found.kept
    for record in read_all(out) if found.kept else ():
        assert record.meta["collected"]["file"] == str(data)
    out.write_text('{"a": 1}\n{"b": 2}\n')
    with pytest.raises(UserError, match=r"line 1: it was not written by"):
        collect(str(example.model), data, out)


def test_multiplication_is_right_and_its_test_pairs_are_never_trained_on() -> None:
    def number(digits: str) -> int:
        return int("".join(digits.split())[::-1])

    parts = {part: multiplication(2, 300, part) for part in ("train", "test")}  # type: ignore[arg-type]
    for record in parts["train"]:
        one, other = record.question.split(" * ")
        assert number(one) * number(other) == number(record.answer)
    assert not {record.question for record in parts["train"]} & {record.question for record in parts["test"]}


def test_stories_are_right_and_no_test_story_is_a_training_story_with_other_names() -> None:
    def sums(record: Record) -> tuple[int, ...]:
        words = record.question.split(" . ")[:-1]
        return tuple(int(event.split()[2]) * (1 if event.split()[1] == "gets" else -1) for event in words)

    def events(record: Record) -> tuple[str, ...]:
        return tuple(" ".join(event.split()[1:3]) for event in record.question.split(" . ")[:-1])

    parts = {part: story(5, 200, part) for part in ("train", "validation", "test")}  # type: ignore[arg-type]
    for record in parts["train"]:
        assert sum(sums(record)) % 3 == int(record.answer)
        assert [int(step.split()[3]) for step in record.steps] == [sum(sums(record)[: n + 1]) % 3 for n in range(4)]
    kinds = {part: {events(record) for record in some} for part, some in parts.items()}
    assert not kinds["train"] & kinds["test"]


def small(vocabulary: int) -> tuple[Any, Any]:
    tokenizer = word_tokenizer(["a", "b", "1"])
    config = GPT2Config(
        vocab_size=vocabulary, n_positions=128, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1, pad_token_id=0
    )
    torch.manual_seed(0)
    return GPT2LMHeadModel(config).eval(), tokenizer


def test_the_probability_of_what_was_written_is_that_of_the_model() -> None:
    model, tokenizer = small(len(word_tokenizer(["a", "b", "1"])))
    prompts = [tokenizer(text)["input_ids"] for text in ("a b", "b a a b 1", "1")]
    rows: list[tuple[np.ndarray, np.ndarray]] = []

    class Seen(Speaker):
        def _written(self, row: np.ndarray, chances: np.ndarray) -> Written:
            rows.append((row, chances))
            return super()._written(row, chances)

    Seen(model, tokenizer, Specials(-1, ()), batch=2).write(prompts, 6)
    for prompt, (row, chances) in zip(sorted(prompts, key=len), rows, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *row.tolist()]])).logits[0, len(prompt) - 1 : -1]
        end = next((at for at, token in enumerate(row) if token == tokenizer.eos_token_id), len(row) - 1)
        expected = logits.log_softmax(-1).gather(-1, torch.tensor(row)[:, None])[: end + 1, 0]
        np.testing.assert_allclose(chances[: end + 1], expected, atol=1e-5)


def test_asking_keeps_nothing_of_the_size_of_the_vocabulary_for_each_token() -> None:
    vocabulary = 5_003
    model, tokenizer = small(vocabulary)
    alive: list[int] = []

    def count(*_: Any) -> None:
        found = [thing for thing in gc.get_objects() if type(thing) is torch.Tensor and vocabulary in thing.shape]
        alive.append(len(found))

    model.register_forward_pre_hook(count)
    Speaker(model, tokenizer, Specials(-1, ()), batch=4).write([tokenizer("a b")["input_ids"]] * 4, 16)
    assert len(alive) == 16
    assert max(alive) <= 4  # of the last step, whatever was written before
