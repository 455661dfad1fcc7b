import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from internalize import own_code
from internalize.curricula import RemovalConfig, Schedule, make
from internalize.errors import UserError
from internalize.lm.config import LMConfig
from internalize.lm.evaluation import Speaker, ask, scorer
from internalize.lm.pretrained import load_model, load_tokenizer, out_of_memory, readable
from internalize.lm.records import Record
from internalize.lm.rows import Asked, Reading
from internalize.lm.runs import Folder, certify, load, rows
from internalize.lm.tokens import Template, add_specials
from internalize.lm.training import Checks, Fit, fit


@pytest.fixture
def config(example: Path) -> LMConfig:
    return LMConfig(
        model=str(example / "model"),
        data=example / "train.jsonl",
        valid=example / "valid.jsonl",
        test=example / "test.jsonl",
        ood=(f"biased={example / 'biased.jsonl'}",),
        curriculum="left:2",
        schedule=Schedule(budget=20, stage_budget=6, check_every=3, threshold=1.0),
        lr=1e-3,
        batch=8,
        warmup=2,
        validation=6,
        samples=6,
        ask_batch=8,
    )


def metrics(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def weights(directory: Path) -> dict[str, torch.Tensor]:
    return {
        f"{path.parent.name}/{name}": tensor
        for path in sorted(directory.glob("stages/*/model.safetensors"))
        for name, tensor in load_file(path).items()
    }


def test_a_run_leaves_its_stages_and_what_was_measured(config: LMConfig, tmp_path: Path) -> None:
    directory = fit(config, tmp_path)
    told = [
        (row["moment"], row["stage"], row["mode"], row["step"]) for row in metrics(directory) if row.get("split") == "biased"
    ]
    assert told == [
        ("switch", 0, "stage", 0),
        ("adapted", 0, "stage", 6),
        ("adapted", 0, "cot", 6),
        ("switch", 1, "stage", 6),
        ("adapted", 1, "stage", 12),
        ("adapted", 1, "cot", 12),
        ("switch", 2, "stage", 12),
        ("adapted", 2, "stage", 20),  # the last stage takes what is left
        ("adapted", 2, "cot", 20),
        ("final", 2, "stage", 20),
        ("final", 2, "cot", 20),
        ("final", 2, "direct", 20),
        ("final", 2, "forced", 20),
    ]
    checks = [(row["stage"], row["step"]) for row in metrics(directory) if row["kind"] == "check"]
    assert checks == [(0, 3), (0, 6), (1, 9), (1, 12), (2, 15), (2, 18), (2, 20)]
    run = load(directory)
    assert [stage["shown"] for stage in run.stages()] == [3, 1, 0]
    assert run.result["steps"] == 20
    assert run.result["stages_reached"] == 3
    assert run.result["tokens"] == 160 * run_length(config) - shorter(config)
    assert not (directory / "trainer").exists()
    assert rows(run)[0]["command"].startswith("internalize lm fit --model ")
    assert run.choose(1.0)["stage"] == 2
    assert run.choose(0.0)["validation"] >= run.stages()[0]["validation"]
    assert fit(config, tmp_path) == directory  # finished: nothing is trained again


def run_length(config: LMConfig) -> int:
    """Tokens of a row with its full chain: every event, step and answer of a story has as many."""
    tokenizer = load_tokenizer(config.model)
    (tokens,) = Asked.read(config.data, Reading(tokenizer, Template(), "step", 256), 1).tokens
    return len(tokens.ids)


def shorter(config: LMConfig) -> int:
    """Tokens that 48 rows with one step and 64 with none save, of 7 a step."""
    return 48 * 2 * 7 + 64 * 3 * 7


def test_a_stage_needs_nothing_of_ours(config: LMConfig, tmp_path: Path) -> None:
    """Plain transformers asks a stage as we do, hint tokens included."""
    directory = fit(replace(config, removal=RemovalConfig(hint=True)), tmp_path)
    folder = directory / "stages" / "1"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    assert "<|chain:1|>" in (folder / "README.md").read_text()
    asked = Asked.read(config.test or config.valid, Reading(tokenizer, Template(), "step", 256), 5)
    curriculum = make("left:2", RemovalConfig(hint=True))
    speaker = Speaker(load_model(str(folder)), tokenizer, add_specials(tokenizer, curriculum, 3))
    ours = ask(speaker, asked, [curriculum.target(tokens.units, 1) for tokens in asked.tokens])
    for record, one in zip(asked.records, ours, strict=True):
        ids = tokenizer(f"{record.question}\n<|chain:1|>", return_tensors="pt")
        plain = model.generate(**ids, do_sample=False, max_new_tokens=18, pad_token_id=tokenizer.pad_token_id)
        said = tokenizer.decode(plain[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
        assert said.split()[: one.tokens] == one.text.split()[: one.tokens]


class Killed(Exception):
    pass


FIXED = Schedule("fixed", budget=9, check_every=2)


@pytest.mark.parametrize("change", [{}, {"schedule": FIXED}, {"accumulate": 2, "lora": 2}], ids=["adaptive", "fixed", "lora"])
def test_what_is_resumed_gives_the_same(config: LMConfig, tmp_path: Path, change: dict[str, Any]) -> None:
    if "lora" in change:
        pytest.importorskip("peft")
    config = replace(config, ood=(), samples=4, validation=4, **change)
    whole = fit(config, tmp_path / "whole")
    events = len(metrics(whole))
    for stop_at in (3, events // 2, events - 3) if not change else (events // 2,):
        seen = 0

        def stop(event: Mapping[str, Any], stop_at: int = stop_at) -> None:
            nonlocal seen
            seen += event["kind"] != "plan"
            if seen == stop_at:
                raise Killed

        with pytest.raises(Killed):
            fit(config, tmp_path / "stopped", stop)
        directory = next((tmp_path / "stopped").iterdir())
        with (directory / "metrics.jsonl").open("a") as file:
            file.write('{"half a row')
        fit(config, tmp_path / "stopped")
        assert metrics(directory) == metrics(whole)
        assert all(torch.equal(tensor, weights(directory)[name]) for name, tensor in weights(whole).items())
        shutil.rmtree(tmp_path / "stopped")


@pytest.mark.parametrize(
    ("exhausted", "expected"),
    [
        ("advance", [0, 1, 2]),
        ("stop", [0, 1]),
        # One stage further back at each failure: 1 -> end of 0 -> 1 again -> ..., until the budget is spent.
        ("rollback", [0, 1, 1, 1]),
    ],
)
def test_what_happens_when_a_stage_is_not_learnt(
    config: LMConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exhausted: Any, expected: list[int]
) -> None:
    monkeypatch.setattr(Fit, "validate", lambda self, model: float(self.state.stage != 1))
    schedule = Schedule(budget=21, stage_budget=6, check_every=3, threshold=0.9, exhausted=exhausted)
    directory = fit(replace(config, schedule=schedule), tmp_path)
    assert [row["stage"] for row in metrics(directory) if row["kind"] == "end"] == expected
    assert load(directory).result["stages_reached"] == max(expected) + 1
    if exhausted == "rollback":
        assert load(directory).result["steps"] == 21
        assert [(row["stage"], row["to"]) for row in metrics(directory) if row["kind"] == "rollback"] == [(1, 0), (1, 0)]


def test_small_batches_accumulated_are_one_large_batch(config: LMConfig, tmp_path: Path) -> None:
    schedule = Schedule("fixed", budget=3)
    whole = fit(replace(config, schedule=schedule, batch=8), tmp_path / "whole")
    parts = fit(replace(config, schedule=schedule, batch=2, accumulate=4), tmp_path / "parts")
    one, other = weights(whole), weights(parts)
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.allclose(tensor, other[name], atol=2e-5), name


def test_answers_depend_on_neither_batch_nor_padding(config: LMConfig, tmp_path: Path) -> None:
    directory = fit(config, tmp_path)
    folder = str(directory / "stages" / "0")
    tokenizer = load_tokenizer(folder)
    records = tmp_path / "mixed.jsonl"
    lines = (config.test or config.valid).read_text().splitlines()[:9]
    values = [json.loads(line) for line in lines]
    for at, value in enumerate(values):  # prompts of different lengths
        value["question"] = " ".join(value["question"].split()[5 * (at % 3) :])
    records.write_text("\n".join(map(json.dumps, values)))
    asked = Asked.read(records, Reading(tokenizer, Template(), "step", 256))
    curriculum = make("left:2")
    views = [curriculum.full(tokens.units) for tokens in asked.tokens]
    model = load_model(folder)
    said = [
        [one.text for one in ask(Speaker(model, tokenizer, add_specials(tokenizer, curriculum, 3), size), asked, views)]
        for size in (1, 4, 9, 9)
    ]
    assert said[0] == said[1] == said[2] == said[3]


def test_adapters_are_merged_into_a_plain_folder(config: LMConfig, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    directory = fit(replace(config, lora=4), tmp_path)
    before = load_file(Path(config.model) / "model.safetensors")
    after = load_file(directory / "stages" / "2" / "model.safetensors")
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))}


def test_the_certificate_of_a_run(config: LMConfig, tmp_path: Path) -> None:
    directory = fit(config, tmp_path)
    files = {"test": config.test or config.valid, "biased": config.ood_paths()["biased"]}
    certificate, sure = certify(directory, directory, files, valid=config.valid, max_risk=0.5, samples=20)
    assert [split.split for split in certificate.splits] == ["test", "biased"]
    assert certificate.same_class
    assert certificate.costs["tokens"].slow > certificate.costs["tokens"].fast
    assert sure is not None
    assert set(sure.chosen) == {"test", "biased"}
    with pytest.raises(UserError, match="name them with --valid"):
        certify(directory, directory, files, max_risk=0.5)
    same, _ = certify(directory / "stages" / "2", directory / "stages" / "2", {"test": files["test"]}, samples=5)
    assert same.splits[0].slow_risk.value >= 0


def test_a_check_stops_a_stage_that_is_learnt(config: LMConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fit, "validate", lambda self, model: 1.0)
    directory = fit(config, tmp_path)
    assert load(directory).result["steps"] == 9  # one check for each of three stages
    assert Checks.__doc__


def test_two_processes_cannot_train_one_run(config: LMConfig, tmp_path: Path) -> None:
    from filelock import FileLock

    directory = tmp_path / config.name()
    directory.mkdir()
    with FileLock(directory / ".lock"), pytest.raises(UserError, match="another process is training this run"):
        fit(config, tmp_path)


def test_a_damaged_run_is_told(config: LMConfig, tmp_path: Path) -> None:
    directory = tmp_path / config.name()
    directory.mkdir()
    (directory / "state.json").write_text("{")
    with pytest.raises(UserError, match=r"state\.json: it is damaged"):
        fit(config, tmp_path)
    (directory / "state.json").write_text(json.dumps({"metrics_bytes": 5}))
    (directory / "metrics.jsonl").write_text("")
    with pytest.raises(UserError, match=r"metrics\.jsonl: it was cut"):
        fit(config, tmp_path)
    with pytest.raises(UserError, match="not finished"):
        load(directory.parent / config.name()).result  # noqa: B018


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("You are trying to access a gated repo. 401 Client Error", "it is gated; ask for access on its page"),
        ("requires you to set the option `trust_remote_code=True`", "needs code of its own"),
        ("does not appear to have a file named model.safetensors, only pytorch_model.bin", "pickle files are never loaded"),
    ],
)
def test_what_the_hub_says_is_put_in_one_sentence(said: str, told: str) -> None:
    with pytest.raises(UserError, match=f"some/model: .*{told}"), readable("some/model"):
        raise OSError(f"{said}\nmore lines")


def test_a_lack_of_memory_is_advice() -> None:
    with pytest.raises(UserError, match="halve --batch"), out_of_memory(32):
        raise torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(RuntimeError, match="another"), out_of_memory(32):
        raise RuntimeError("another")


def test_an_attempt_that_the_budget_cuts_off_replaces_no_learnt_model(
    config: LMConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stage 1 is learnt once, stage 2 never; the second attempt at stage 1 is cut off by the budget."""
    learnt: list[int] = []

    def validate(self: Fit, model: Any) -> float:
        good = self.state.stage == 0 or (self.state.stage == 1 and not learnt)
        learnt.extend([1] if good and self.state.stage == 1 else [])
        return float(good)

    monkeypatch.setattr(Fit, "validate", validate)
    schedule = Schedule(budget=14, stage_budget=3, check_every=3, threshold=0.9, exhausted="rollback")
    directory = fit(replace(config, schedule=schedule), tmp_path)
    ends = [(row["stage"], row["passed"]) for row in metrics(directory) if row["kind"] == "end"]
    assert ends == [(0, True), (1, True), (2, False), (2, False), (1, False)]
    run = load(directory)
    stages = run.stages()
    assert [(stage["stage"], stage["passed"], stage["step"]) for stage in stages] == [(0, True, 3), (1, True, 6)]
    assert not (directory / "stages" / "2").exists()
    certificate, _ = certify(directory, directory, {"test": config.valid}, samples=4)
    assert certificate.fast.startswith(str(directory / "stages" / "1"))


def test_a_run_never_goes_on_with_other_data(config: LMConfig, example: Path, tmp_path: Path) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text((example / "train.jsonl").read_text())
    config = replace(config, data=data)
    fit(config, tmp_path / "runs")
    assert fit(config, tmp_path / "runs").exists()
    data.write_text("".join(data.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(UserError, match=r"train\.jsonl: it is not what it was when .* was begun"):
        fit(config, tmp_path / "runs")


def test_adapters_learn_the_hints_too(config: LMConfig, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    runs = [fit(replace(config, lora=2, removal=RemovalConfig(hint=True)), tmp_path / name) for name in ("a", "b")]
    one, other = (weights(run) for run in runs)
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())  # the new tokens begin alike, too
    words = len(load_tokenizer(config.model))
    first, last = (one[f"{stage}/transformer.wte.weight"] for stage in (0, 2))
    assert torch.equal(first[:words], last[:words])
    assert not torch.equal(first[words:], last[words:])
    assert first[words:].std(0).mean() > 1e-3  # and are told apart


def test_rows_that_fill_the_model_can_be_asked(config: LMConfig, tmp_path: Path) -> None:
    """A model that writes no end stops where its positions do."""
    tokenizer, model = load_tokenizer(config.model), load_model(config.model)
    speaker = Speaker(model, tokenizer, add_specials(tokenizer, make("left"), 3))
    (written,) = speaker.write([[5] * 250], 40)
    assert written.tokens <= 6


def test_what_cannot_be_asked_is_told_before_training(config: LMConfig, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="take a curriculum that removes from the left"):
        fit(replace(config, curriculum="right", removal=RemovalConfig(removed="filler")), tmp_path)
    with pytest.raises(UserError, match='device "nowhere" cannot be used'):
        fit(replace(config, device="nowhere"), tmp_path)


def test_two_processes_train_one_run_as_one_does(config: LMConfig, tmp_path: Path) -> None:
    alone = fit(replace(config, text=None), tmp_path / "one")
    half = replace(config, batch=config.batch // 2)
    words = [*shlex.split(half.command())[1:], "--out", str(tmp_path / "two")]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "internalize"]
    told = subprocess.run([*launch, *words], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("the last model") == 1
    (both,) = (tmp_path / "two").iterdir()
    left_out = ("low", "high", "seconds")
    for one, two in zip(metrics(alone), metrics(both), strict=True):
        assert {name: value for name, value in one.items() if name not in left_out} == {
            name: value for name, value in two.items() if name not in left_out
        }
    for name, tensor in weights(alone).items():
        torch.testing.assert_close(weights(both)[name], tensor, atol=1e-4, rtol=0)
    assert load(both).result["tokens"] == load(alone).result["tokens"]
    assert load(both).result["command"].startswith("torchrun --nproc_per_node 2 -m internalize lm fit ")
    (both / "result.json").unlink()
    with pytest.raises(UserError, match=r"it was begun with 2 process\(es\) and can only go on with as many, not with 1"):
        fit(half, tmp_path / "two")


def test_rows_are_tokenized_once(config: LMConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fit(config, tmp_path / "whole")
    directory = tmp_path / "runs" / config.name()
    data = directory / "data"

    def stop(event: Mapping[str, Any]) -> None:
        if event["kind"] == "check":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(config, tmp_path / "runs", stop)
    before = {path.name: path.stat().st_mtime_ns for path in data.iterdir()}
    with pytest.raises(KeyboardInterrupt):
        fit(config, tmp_path / "runs", stop)
    assert {path.name: path.stat().st_mtime_ns for path in data.iterdir()} == before
    (data / "ids.bin").write_bytes((data / "ids.bin").read_bytes()[:-4])  # damaged: it is written again
    fit(config, tmp_path / "runs")
    assert {path.name: path.stat().st_mtime_ns for path in data.iterdir()} != before
    assert metrics(directory) == metrics(whole)


OWN = """
import numpy as np
from internalize import Curriculum

class AllThenNone(Curriculum):
    def stages(self, units):
        return 2

    def keep(self, units, stage):
        return np.full(units, stage == 0)

def lenient(answer, record):
    return True
"""


def test_a_run_and_its_stages_are_read_with_the_users_code_that_they_were_made_with(
    config: LMConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    schedule = Schedule("fixed", budget=2, check_every=1)
    config = replace(config, curriculum=f"{file}:AllThenNone", score=f"{file}:lenient", schedule=schedule)
    directory = fit(config, tmp_path / "runs")
    assert "mine.py_AllThenNone" in directory.name
    for change in (lambda: file.write_text("1 / 0"), file.unlink):
        change()
        for read in (lambda: load(directory).config, lambda: Folder.open(str(directory / "stages" / "1"))):
            monkeypatch.setattr(own_code, "_texts", {})  # as in another process
            found = read()
            assert scorer(found.score)("anything", Record("q", (), "1"))
        assert Folder.open(str(directory / "stages" / "1")).curriculum.stages(5) == 2
