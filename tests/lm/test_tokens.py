from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from internalize import curricula
from internalize.curricula import RemovalConfig
from internalize.errors import UserError
from internalize.lm.example import word_tokenizer
from internalize.lm.records import Record, write
from internalize.lm.rows import Collate, Reading, StageRows, Stored
from internalize.lm.tokens import IGNORED, Template, add_specials, encode, show, view_of, view_with
from internalize.tasks import ANSWER, PROMPT

TEXTS = ["what is 12 + 30 ?", "first 12 + 30 = 42 .", "#### 42", "then it is 7.5 , or -3\n", "漢字 é #### 1"] * 3
RECORD = Record("what is 12 + 30 ?", ("12 + 30 = 42 .", "so it is 42 .", "it is"), "42")


def byte_level(bos: bool = False) -> Any:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    inner.train_from_iterator(TEXTS, trainer)
    if bos:
        inner.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")


def sentence_piece() -> Any:
    inner = Tokenizer(models.Unigram())
    inner.normalizer = normalizers.Replace(" ", "▁")
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False)
    inner.train_from_iterator([text.replace("\n", " \n") for text in TEXTS], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>", unk_token="<unk>", pad_token="</s>")


def chat(tokenizer: Any) -> Any:
    tokenizer.chat_template = (
        "{% for m in messages %}<s>{{ m.role }}\n{{ m.content }}</s>\n{% endfor %}"
        "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
    )
    return tokenizer


TOKENIZERS = {
    "byte-level BPE": (byte_level(), Template()),
    "byte-level BPE with BOS and EOS": (byte_level(bos=True), Template()),
    "chat template": (chat(byte_level(bos=True)), Template(chat=True)),
    "instruction": (byte_level(), Template(instruction="Think.")),
    "SentencePiece": (sentence_piece(), Template()),
    "words": (word_tokenizer(sorted({word for text in TEXTS for word in text.split()} | {"so"})), Template()),
}


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("units", ["step", "token"])
def test_the_parts_are_the_whole(name: str, units: Any) -> None:
    tokenizer, template = TOKENIZERS[name]
    tokens = encode(RECORD, tokenizer, template, units)
    text = "".join(piece for _, piece in template.pieces(RECORD, tokenizer))
    whole = tokenizer(text, add_special_tokens=not template.chat)["input_ids"]
    whole = whole if whole[-1] == tokenizer.eos_token_id else [*whole, tokenizer.eos_token_id]
    assert tokens.ids.tolist() == whole
    prompt = tokenizer(template.prompt(RECORD, tokenizer), add_special_tokens=not template.chat)["input_ids"]
    prompt = prompt if prompt[-1] != tokenizer.eos_token_id else prompt[:-1]
    assert tokens.prompt() == prompt
    assert sorted(tokens.segment, key=lambda s: (s != PROMPT, s == ANSWER, s)) == tokens.segment.tolist()
    answer = tokenizer.decode(tokens.answer(), skip_special_tokens=True)
    assert "".join(answer.split()) == "####42"
    marker = tokenizer.decode(tokens.answer()[: tokens.marker])
    assert "".join(marker.split()) == "####"
    if units == "step":
        assert tokens.units == 3
        for index, step in enumerate(RECORD.steps):
            said = tokenizer.decode(tokens.ids[tokens.segment == index], skip_special_tokens=True)
            assert "".join(said.split()) == "".join(step.split())
    else:
        assert tokens.units >= 9
        assert np.array_equal(np.unique(tokens.segment[tokens.segment >= 0]), np.arange(tokens.units))


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1).map(str.strip).filter(bool),
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1), max_size=3),
)
def test_any_text_becomes_its_parts(question: str, steps: list[str]) -> None:
    tokenizer = TOKENIZERS["byte-level BPE"][0]
    record = Record(question, tuple(steps), "1")
    tokens = encode(record, tokenizer, Template())
    for index, step in enumerate(steps):
        assert tokenizer.decode(tokens.ids[tokens.segment == index], skip_special_tokens=False) == f"{step}\n"


def test_a_token_that_belongs_to_two_parts_is_told() -> None:
    inner = Tokenizer(models.WordLevel({"a": 0, "b": 1, "q\na": 2, "\n": 3, "####": 4, "e": 5, " ": 6, "1": 7}, unk_token="e"))
    inner.pre_tokenizer = pre_tokenizers.Split("q\na", "isolated")
    merging = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="e")
    with pytest.raises(UserError, match="belong to two parts at once"):
        encode(Record("q", ("a",), "1"), merging, Template())


@given(
    st.integers(0, 6), st.sampled_from(["left", "left:2", "right", "left:50%", "inductive", "mixture", "e2e", "cot"]), st.data()
)
@settings(max_examples=60)
def test_what_a_stage_shows(steps: int, spec: str, data: st.DataObject) -> None:
    # Where every row has a hint, and where nothing is removed, asking for it is refused.
    hint = spec != "mixture" and data.draw(st.booleans())
    removed = "drop" if spec == "cot" else data.draw(st.sampled_from(["drop", "filler"]))
    tokenizer = word_tokenizer(["q", *map(str, range(7))])
    curriculum = curricula.make(spec, RemovalConfig(hint=hint, removed=removed))
    tokens = encode(Record("q", tuple(map(str, range(steps))), "6"), tokenizer, Template())
    specials = add_specials(tokenizer, curriculum, 6)
    stage = data.draw(st.integers(0, curriculum.stages(6) - 1))
    view = view_of(curriculum, tokens.units, stage, curriculum.stages(6), data.draw(st.floats(0, 1, exclude_max=True)))
    shown = show(tokens, view, specials)
    assert all(label in (IGNORED, token) for token, label in zip(shown.ids, shown.labels, strict=True))
    parts = list(zip(tokens.ids, tokens.segment, strict=True))
    kept = [token for token, which in parts if which == ANSWER or (which >= 0 and view.keep[which])]
    assert [label for label in shown.labels if label != IGNORED] == kept  # the loss is on what is written, and nothing else
    removed_tokens = sum(which >= 0 and not view.keep[which] for which in tokens.segment)
    extra = (view.hint is not None) + (removed_tokens if removed == "filler" else 0)
    assert len(shown.ids) == len(tokens.prompt()) + len(kept) + extra
    if view.hint is not None:
        assert tokenizer.convert_ids_to_tokens(shown.ids[len(tokens.prompt())]) == f"<|chain:{view.shown}|>"


def test_short_chains_are_through_sooner() -> None:
    curriculum = curricula.make("left")
    assert [view_of(curriculum, 2, stage, 5).shown for stage in range(5)] == [2, 1, 0, 0, 0]


@pytest.mark.parametrize("spec", ["left", "left:2", "right", "left:25%", "inductive", "inductive:stepwise"])
def test_rows_with_longer_chains_than_the_run_was_made_for_come_to_no_chain_with_its_last_stage(spec: str) -> None:
    curriculum = curricula.make(spec)
    stages = curriculum.stages(4)
    for units in (1, 4, 6, 30):
        shown = [view_of(curriculum, units, stage, stages).shown for stage in range(stages)]
        assert (shown[0], shown[-1]) == (units, 0)
        assert shown == sorted(shown, reverse=True)
        assert view_with(curriculum, units, stages - 1, stages, 0).shown == 0


def reading(tokenizer: Any, **options: Any) -> Reading:
    return Reading(tokenizer, Template(), "step", **{"longest": 100, **options})


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    records = [Record(f"q {n}", tuple(str(i) for i in range(n % 4)), str(n)) for n in range(7)]
    write(tmp_path / "data.jsonl", records)
    tokenizer = word_tokenizer(["q", *map(str, range(10))])
    return Stored.write(tmp_path / "data.jsonl", reading(tokenizer), tmp_path / "store")


def test_stored_rows_are_the_rows(stored: Stored) -> None:
    tokenizer = word_tokenizer(["q", *map(str, range(10))])
    assert len(stored) == 7
    for n in range(7):
        again = encode(Record(f"q {n}", tuple(str(i) for i in range(n % 4)), str(n)), tokenizer, Template())
        assert np.array_equal(stored[n].ids, again.ids)
        assert np.array_equal(stored[n].segment, again.segment)
    assert stored.units == 3


def test_every_pass_over_the_data_sees_every_row_once_in_another_order(stored: Stored) -> None:
    tokenizer = word_tokenizer(["q", *map(str, range(10))])
    curriculum = curricula.make("left")
    rows = StageRows(stored, curriculum, add_specials(tokenizer, curriculum, 3), 0, 4, 21, seed=0)
    seen = [tuple(rows[index]["input_ids"]) for index in range(21)]
    passes = [seen[start : start + 7] for start in (0, 7, 14)]
    assert all(sorted(one) == sorted(passes[0]) for one in passes)
    assert len(set(passes[0])) == 7
    assert passes[0] != passes[1]
    assert [tuple(rows[index]["input_ids"]) for index in (20, 3)] == [seen[20], seen[3]]  # a function of its number


def test_padding_is_neither_attended_to_nor_in_the_loss() -> None:
    batch = Collate(0)([{"input_ids": [5, 6, 7], "labels": [IGNORED, 6, 7]}, {"input_ids": [5], "labels": [5]}])
    assert batch["input_ids"].tolist() == [[5, 6, 7], [5, 0, 0]]
    assert batch["labels"].tolist() == [[IGNORED, 6, 7], [5, IGNORED, IGNORED]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]


def test_rows_that_are_too_long(tmp_path: Path) -> None:
    tokenizer = word_tokenizer(["q", *map(str, range(10))])
    path = tmp_path / "data.jsonl"
    write(path, [Record("q", (), "1"), Record("q " * 8, ("1", "2"), "3")])

    def read(**options: Any) -> list[Any]:
        return [tokens for _, tokens in reading(tokenizer, longest=12, **options).tokens(path, skipped.append)]

    skipped: list[int] = []
    with pytest.raises(UserError, match=r"data\.jsonl, line 2: the row has 16 tokens, and the model reads at most 12"):
        read()
    assert len(read(too_long="skip")) == 1
    assert skipped == [2]
    short, cut = read(too_long="truncate")
    assert len(cut.ids) == 12
    assert len(short.ids) == 5
    assert tokenizer.decode(cut.ids[cut.segment != PROMPT]).split() == ["1", "2", "####", "3", "<eos>"]
    write(path, [Record("q", tuple("1" * 9), "3")])
    with pytest.raises(UserError, match="chain and answer alone"):
        read(too_long="truncate")


TURNS = "{% for m in messages %}<s>{{ m.role }}\n{{ STRIPPED }}</s>\n{% endfor %}"
TEMPLATES = {
    # As models write them that always think, that can be told not to, and that only forget what they thought before.
    "opens": TURNS.replace("STRIPPED", "m.content.split('</think>')[-1]")
    + "{% if add_generation_prompt %}<s>a\n<think>\n{% endif %}",
    "switched": TURNS.replace("STRIPPED", "m.content.split('</think>')[-1]")
    + "{% if add_generation_prompt %}<s>a\n"
    + "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
    "forgets": TURNS.replace("STRIPPED", "m.content.split('</think>')[-1]") + "{% if add_generation_prompt %}<s>a\n{% endif %}",
}
TALK = (("system", "s"), ("user", "q"), ("assistant", "<think>b</think>a"), ("user", "q"))


def templated(template: str) -> Any:
    tokenizer = byte_level()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<s>", "</s>", "<think>", "</think>"]})
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("steps", [("a b", "b"), ()])
def test_a_conversation_is_asked_in_the_templates_own_form(name: str, steps: tuple[str, ...]) -> None:
    tokenizer, template = templated(TEMPLATES[name]), Template(chat=True, instruction="i")
    record = Record("s\nq\n<think>b</think>a\nq", steps, "42", turns=TALK)
    before = "<s>system\ns</s>\n<s>user\nq</s>\n<s>assistant\na</s>\n<s>user\ni\nq</s>\n<s>a\n"
    assert template.prompt(record, tokenizer) == before + ("" if name == "forgets" else "<think>\n")
    tokens = encode(record, tokenizer, template)
    closed = "" if name == "forgets" else "</think>\n\n"
    assert tokenizer.decode(tokens.answer()[:-1]) == f"{closed}#### 42"
    assert tokenizer.decode(tokens.answer()[: tokens.marker]) == f"{closed}####"
    assert tokens.units == len(steps)


def test_a_conversation_that_the_template_refuses_is_told() -> None:
    tokenizer = templated("{{ raise_exception('no system turns here') }}")
    with pytest.raises(UserError, match=r"refuses the turns system, user, assistant, user \(no system turns here\)"):
        Template(chat=True).prompt(Record("q", (), "1", turns=TALK), tokenizer)


def test_without_a_template_a_conversation_is_one_text() -> None:
    assert Template(instruction="i").prompt(Record("s\nq", (), "1", turns=TALK[:2]), byte_level()) == "i\ns\nq\n"
