import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")
from internalize.curricula import RemovalConfig, Schedule
from internalize.errors import UserError
from internalize.lm.baselines import baselines, read_baselines, train_baselines
from internalize.lm.config import LMConfig
from internalize.lm.evaluation import perplexity
from internalize.lm.pretrained import load_model, load_tokenizer
from internalize.lm.report import write_lm_report
from internalize.lm.runs import load
from internalize.lm.training import fit


@pytest.fixture
def config(example: Path, tmp_path: Path) -> LMConfig:
    """Rows that are learnt in a few steps: the answer is in the question."""
    names = ("Ada", "Ben", "Cleo", "Dan")
    rows = [{"question": f"{who} has {n}", "steps": [f"{who} has {n} ."], "answer": str(n)} for who in names for n in range(3)]
    data = tmp_path / "easy.jsonl"
    data.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = tmp_path / "text.txt"
    text.write_text("Ada has 2 apples . Ben has 1 books . " * 40)
    return LMConfig(
        model=str(example / "model"),
        data=data,
        valid=data,
        text=text,
        schedule=Schedule(budget=200, stage_budget=100, check_every=10),
        lr=3e-3,
        batch=8,
        warmup=5,
    )


def test_baselines_have_the_tokens_that_the_run_took(config: LMConfig, tmp_path: Path) -> None:
    run = load(fit(config, tmp_path / "runs"))
    tokens = run.result["tokens"]
    arms = baselines(run)
    first = next(row for row in run.metrics() if row["kind"] == "end")
    assert {name: arm.tokens for name, arm in arms.items()} == {
        **dict.fromkeys(("no chain", "fillers", "full chain", "no curriculum"), tokens),
        "own answers": tokens - first["tokens"],
    }
    table = train_baselines(run)
    assert [row["name"] for row in table] == ["left", *arms]
    assert table == read_baselines(run)
    slack = 10 * 8 * 20  # to the next check: steps, rows, more tokens than a row has
    assert all(row["tokens"] < arms[row["name"]].tokens + slack for row in table[1:])
    own = [json.loads(line) for line in (run.path / "baselines" / "own.jsonl").read_text().splitlines()]
    assert own
    assert all(row["question"].endswith(row["answer"]) for row in own)
    before = sorted((path, path.stat().st_mtime_ns) for path in run.path.glob("baselines/*/result.json"))
    assert len(before) == len(arms)
    assert train_baselines(run) == table
    assert sorted((path, path.stat().st_mtime_ns) for path in run.path.glob("baselines/*/result.json")) == before
    page = write_lm_report(run, tmp_path / "page.html").read_text()
    assert "Beside its baselines" in page
    assert "Perplexity of" in page
    (run.path / "baselines.json").write_text("[")
    with pytest.raises(UserError, match=r"baselines\.json: not valid JSON"):
        read_baselines(run)


def test_a_run_stops_when_its_tokens_are_spent(config: LMConfig, tmp_path: Path) -> None:
    schedule = Schedule(budget=90, stage_budget=40, check_every=5, threshold=1.0, exhausted="rollback")
    config = replace(config, schedule=schedule, tokens=700, lr=1e-9, text=None)
    run = load(fit(config, tmp_path / "runs"))
    assert run.result["steps"] % 5 == 0
    assert run.result["steps"] < 40
    assert 700 <= run.result["tokens"] < 700 + 5 * 8 * 20
    assert [row["tokens"] for row in run.metrics() if row["kind"] == "end"] == [run.result["tokens"]]


def test_a_run_without_its_full_chain_at_first_has_no_answers_of_its_own(config: LMConfig, tmp_path: Path) -> None:
    schedule = Schedule("fixed", budget=2)
    config = replace(config, curriculum="mixture", schedule=schedule, removal=RemovalConfig(), text=None)
    assert list(baselines(load(fit(config, tmp_path / "runs")))) == ["no chain", "fillers", "full chain", "no curriculum"]


def test_perplexity_is_that_of_the_tokens_given_those_before(config: LMConfig, tmp_path: Path) -> None:
    assert config.text is not None
    model, tokenizer = load_model(config.model), load_tokenizer(config.model)
    ids = tokenizer(config.text.read_text(), add_special_tokens=False)["input_ids"]
    losses = []
    for start in range(0, len(ids), 50):
        row = torch.tensor([ids[start : start + 50]])
        with torch.no_grad():
            chances = torch.log_softmax(model(row).logits[0, :-1], -1)
        losses += [-float(chances[at, token]) for at, token in enumerate(row[0, 1:])]
    expected = math.exp(sum(losses) / len(losses))
    assert perplexity(model, tokenizer, config.text, window=50) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"Ada", "fewer than two tokens"), (b"\xff\xfe\xff", "not a text in UTF-8")],
)
def test_texts_that_have_no_perplexity(config: LMConfig, tmp_path: Path, content: bytes | None, message: str) -> None:
    text = tmp_path / "other.txt"
    if content is not None:
        text.write_bytes(content)
    with pytest.raises(UserError, match=message):
        fit(replace(config, text=text), tmp_path / "runs")
    assert not list((tmp_path / "runs").glob("*/stages"))
