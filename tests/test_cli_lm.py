import json
import shutil
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from internalize.cli import main
from internalize.config import RunConfig
from internalize.lm.config import LMConfig
from internalize.lm.example import write_example
from internalize.lm.pretrained import load_tokenizer


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("example")
    write_example("story", 3, "gpt2", out, rows=60)
    return out


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    try:
        main(["lm", *map(str, words)])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def flags(example: Path, **changes: object) -> list[object]:
    settings = {
        "model": example / "model",
        "data": example / "train.jsonl",
        "valid": example / "valid.jsonl",
        "schedule.budget": 6,
        "schedule.stage-budget": 2,
        "schedule.check-every": 2,
        "validation": 4,
        "samples": 4,
        "batch": 4,
        **changes,
    }
    return [word for name, value in settings.items() for word in (f"--{name}", value)]


def test_from_an_example_to_a_certificate(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "example", "story", "--size", 3, "--rows", 50, "--out", tmp_path / "mine")
    assert code == 0
    assert f"internalize lm fit --model {tmp_path / 'mine' / 'model'}" in said
    code, said, _ = run(capsys, "fit", *flags(example, out=tmp_path, test=example / "test.jsonl"), "--json", "--max-loss", 0.5)
    assert code == 0
    outcome = json.loads(said)
    assert outcome["steps"] == 6
    assert outcome["chosen"]["stage"] in (0, 1, 2)
    directory = outcome["directory"]
    code, said, _ = run(capsys, "show", directory, "--max-loss", 0.5)
    assert code == 0
    assert "no chain, answer forced" in " ".join(said.split())
    code, said, _ = run(capsys, "show", directory, "--rows")
    assert json.loads(said)["command"].startswith("internalize lm fit --model")
    out = tmp_path / "certificate.json"
    data = f"test={example / 'test.jsonl'}"
    risk = ["--valid", example / "valid.jsonl", "--max-risk", 0.3]
    code, said, _ = run(capsys, "certify", directory, directory, "--data", data, "--samples", 5, *risk, "--json", "--out", out)
    assert code == 0
    certificate = json.loads(said)
    assert certificate["command"].startswith(f"internalize lm certify {directory} {directory} --data")
    assert json.loads(out.read_text()) == certificate
    assert set(certificate["fast_when_sure"]["chosen"]) == {"test"}
    page = Path(directory, "report.html")
    assert "Did it internalize its chain?" not in page.read_text()
    code, said, _ = run(capsys, "certify", directory, "--data", data, "--samples", 5)
    assert code == 0
    assert json.loads(Path(directory, "certificate.json").read_text())["sentence"] in page.read_text()
    main(["report", directory, "--out", str(tmp_path / "page.html")])
    assert (tmp_path / "page.html").read_text() == page.read_text()
    with pytest.raises(SystemExit):
        main(["report", directory, directory])
    assert "name it alone" in capsys.readouterr().err
    questions, collected = tmp_path / "questions.jsonl", tmp_path / "own.jsonl"
    questions.write_text("".join((example / "train.jsonl").read_text().splitlines(keepends=True)[:3]))
    model = f"{directory}/stages/0"
    code, said, _ = run(
        capsys, "collect", "--model", model, "--data", questions, "--out", collected, "--samples", 2, "--most", 20
    )
    assert code == 0
    assert said.startswith("3 questions, 6 chains, ")


def test_a_tokenizer_without_pad(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(example / "model", tmp_path / "model")
    file = tmp_path / "model" / "tokenizer_config.json"
    settings = json.loads(file.read_text())
    del settings["pad_token"]
    file.write_text(json.dumps(settings))
    assert load_tokenizer(str(tmp_path / "model")).pad_token_id is None
    code, _, error = run(capsys, "fit", *flags(example, model=tmp_path / "model", out=tmp_path))
    assert code == 0, error


def test_check_lists_every_bad_row(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = (example / "train.jsonl").read_text().splitlines()
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join([good[0], "{", good[1], '{"question": "q", "steps": [], "answer": ""}', good[0]]))
    code, said, error = run(capsys, "check", bad, example / "train.jsonl", "--model", example / "model")
    assert code == 2
    assert "3 of 5 rows can be used" in said
    assert "line 2: not valid JSON" in said
    assert "line 4: the answer is empty" in said
    assert "1 questions occur again: lines 5" in said
    assert "2 of its questions are also in" in " ".join(said.split())
    assert error.startswith(f"internalize: {bad}, line 2: not valid JSON")
    code, said, _ = run(capsys, "check", example / "train.jsonl", "--json")
    (found,) = json.loads(said)
    assert code == 0
    assert (found["good"], found["steps"]) == (60, {"2": 60})
    assert [len(one) for one in found["shown"]] == [3, 3, 3]


def broken(example: Path, tmp_path: Path, name: str) -> list[object]:
    """The words of a command that cannot work."""
    data, valid = tmp_path / "data.jsonl", example / "valid.jsonl"
    rows = (example / "train.jsonl").read_text().splitlines(keepends=True)
    content: dict[str, bytes] = {
        "empty": b"",
        "json": "".join([rows[0], "{oops\n"]).encode(),
        "field": b'{"question": "q", "steps": []}\n',
        "answer": b'{"question": "q", "steps": [], "answer": " "}\n',
        "mixed": (rows[0] + '{"question": "q", "cot": "a", "answer": "1"}\n').encode(),
        "latin": '{"question": "é", "steps": [], "answer": "1"}\n'.encode("latin-1"),
        "long": json.dumps({"question": "Ada gets " * 200, "steps": [], "answer": "1"}).encode(),
    }
    if name in content:
        data.write_bytes(content[name])
        return ["fit", *flags(example, data=data, out=tmp_path)]
    model = tmp_path / "model"
    shutil.copytree(example / "model", model)
    if name == "pickle":
        (model / "model.safetensors").unlink()
        torch.save({}, model / "pytorch_model.bin")
    elif name == "no weights":
        (model / "model.safetensors").unlink()
    elif name == "damaged weights":
        (model / "model.safetensors").write_bytes(b"damaged")
    elif name == "no eos":
        settings = json.loads((model / "tokenizer_config.json").read_text())
        del settings["eos_token"]
        (model / "tokenizer_config.json").write_text(json.dumps(settings))
    elif name == "remote code":
        settings = json.loads((model / "config.json").read_text())
        settings |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"}}
        (model / "config.json").write_text(json.dumps(settings))
        (model / "mine.py").write_text("raise SystemExit('this code was run')")
    changes: dict[str, dict[str, object]] = {
        "no model": {"model": tmp_path / "none"},
        "ood": {"ood": "biased.jsonl"},
        "ood file": {"ood": f"x={tmp_path / 'none'}"},
        "score": {"score": f"{tmp_path / 'mine.py'}:score"},
        "curriculum": {"curriculum": "up"},
        "batch": {"batch": 0},
        "lr": {"lr": 0},
        "zero": {"removal.removed": "zero"},
        "few steps": {"schedule.kind": "fixed", "schedule.budget": 2},
        "valid is empty": {"valid": tmp_path / "empty"},
        "ood is test": {"ood": f"test={valid}"},
        "max loss": {"max-loss": 5},
    }
    if name == "valid is empty":
        (tmp_path / "empty").touch()
    settings = {"model": model, "valid": valid, "out": tmp_path, **changes.get(name, {})}
    return ["fit", *flags(example, **settings)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty", "data.jsonl: it has no rows"),
        ("json", "data.jsonl, line 2: not valid JSON"),
        ("field", 'data.jsonl, line 1: the field "answer" is missing'),
        ("answer", "data.jsonl, line 1: the answer is empty"),
        ("mixed", 'data.jsonl, line 2: its fields are those of the format "cot"'),
        ("latin", "data.jsonl, line 1: not UTF-8 text"),
        ("long", "data.jsonl, line 1: the row has 404 tokens, and the model reads at most 256"),
        ("pickle", "its weights are pickle files, which are never loaded; convert them to safetensors"),
        ("no weights", "it cannot be read"),
        ("damaged weights", "it cannot be"),
        ("no eos", "its tokenizer has no EOS token"),
        ("remote code", "which is never done"),
        ("no model", "none: there is no such folder"),
        ("ood", "write name=path"),
        ("ood file", "none: cannot be read"),
        ("score", "mine.py: cannot be read"),
        ("curriculum", 'no curriculum is called "up"'),
        ("batch", "batch is 0; it must be at least 1"),
        ("lr", "lr is 0.0; it must be above 0"),
        ("zero", "a language model takes drop or filler"),
        ("few steps", "schedule.budget is 2; 3 stages need at least a step each"),
        ("valid is empty", "empty: it has no rows"),
        ("ood is test", 'two test files are called "test"'),
        ("max loss", "--max-loss is 5.0"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    code, said, error = run(capsys, *broken(example, tmp_path, name))
    assert code == 2
    assert said == ""
    told = [line for line in error.splitlines() if line.startswith("internalize: ")]
    assert len(told) == 1
    assert message in told[0]
    assert "Traceback" not in error
    assert not list(tmp_path.glob("lm-*/stages/*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "nowhere"], "nowhere: this is not a run's directory"),
        (["check"], "name at least one file"),
        (["certify", "a", "b"], "--data is missing"),
        (["certify", "a", "b", "--data", "x=1", "x=2"], 'two files are called "x"'),
        (["collect", "--model", "m", "--data", "none.jsonl"], "none.jsonl: cannot be read"),
        (["collect", "--model", "m", "--data", "none.jsonl", "--samples", "0"], "must be at least 1"),
        (["example", "--size", "0"], "the size is 0"),
    ],
)
def test_other_commands_that_cannot_work(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, error = run(capsys, *words)
    assert code == 2
    assert message in " ".join(error.split())
    assert not list(tmp_path.iterdir())


def test_the_commands_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["lm"])
    assert end.value.code == 2
    assert "internalize lm check | fit | show | certify | collect | example" in capsys.readouterr().err


def test_without_the_extra(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("internalize.lm.find_spec", lambda name: None)
    code, _, error = run(capsys, "fit", *flags(example, out=tmp_path))
    assert code == 2
    assert 'transformers, accelerate is missing; install it with: pip install "internalize[lm]"' in error


def test_check_tells_conflicts_and_lost_roles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def line(answer: str, *roles: str) -> str:
        turns = [{"role": role, "content": "q"} for role in roles]
        return json.dumps({"messages": [*turns, {"role": "assistant", "content": f"a #### {answer}"}]})

    data = tmp_path / "data.jsonl"
    data.write_text("\n".join([line("1,000", "user"), line("1000", "user"), line("2", "user"), line("3", "system", "user")]))
    code, said, _ = run(capsys, "check", data)
    assert code == 0
    assert "2 questions occur again: lines 2, 3" in said
    assert "1 of them with another answer than at first: lines 3" in said
    assert "1 rows are conversations; without --chat their roles are lost" in said
    assert "conversations" not in run(capsys, "check", data, "--chat")[1]


def test_commands_of_the_other_kind_of_run_name_the_right_one(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox, model = tmp_path / "sandbox", tmp_path / "model"
    for directory, values in (
        (sandbox, RunConfig().to_json()),
        (model, LMConfig(model="gpt2", data=example / "train.jsonl", valid=example / "valid.jsonl").to_json()),
    ):
        directory.mkdir()
        (directory / "config.json").write_text(json.dumps(values))
    for command in ("show", "resume", "certify", "probe"):
        with pytest.raises(SystemExit):
            main([command, str(model)])
        assert f"a language model's run; show it with `internalize lm show {model}`" in capsys.readouterr().err
    for words in (["show", sandbox], ["certify", sandbox, "--data", example / "test.jsonl"]):
        code, _, error = run(capsys, *words)
        assert code == 2
        assert f"a run of the sandbox, not of a language model; show it with `internalize show {sandbox}`" in error
