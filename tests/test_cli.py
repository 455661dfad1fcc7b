import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tyro

import internalize
from internalize import EvaluationConfig, ModelConfig, OptimizerConfig, RunConfig, Schedule, api, cli, demo
from internalize.cli.runs import RunCommand
from tiny import FLAGS

ROOT = Path(__file__).parents[1]


def test_run_and_show_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["run", *FLAGS, "--seeds", "2", "--out", str(tmp_path), "--json"])
    told = capsys.readouterr()
    outcome = json.loads(told.out)
    assert [seed["seed"] for seed in outcome["seeds"]] == [0, 1]
    assert outcome["splits"][0]["split"] == "uniform"
    assert "parameters" in told.err
    assert "left seed 1: done" in told.err
    cli.main(["show", outcome["directory"], "--json"])
    assert json.loads(capsys.readouterr().out) == outcome


def test_tables_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["run", *FLAGS, "--out", str(tmp_path)])
    told = capsys.readouterr().out
    assert "ID at the switch" in told
    assert "biased:1:0.8" in told
    cli.main(["run", *FLAGS, "--out", str(tmp_path)])
    assert "1 of 1 seeds were finished before" in capsys.readouterr().err


def test_the_demo_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SCHEDULE", Schedule(budget=30, stage_budget=10, check_every=10))
    monkeypatch.setattr(demo, "STEPS", 6)
    cli.main(["demo", "--json", "--out", str(tmp_path)])
    outcome = json.loads(capsys.readouterr().out)
    assert set(outcome) == {"arms", "seconds"}
    assert set(outcome["arms"]) == {"e2e", "cot", "left"}
    for arm in outcome["arms"].values():
        assert 0 <= arm["id"] <= 1
        assert 0 <= arm["ood"] <= 1
    assert (tmp_path / "demo.html").exists()
    cli.main(["demo", "--out", str(tmp_path)])
    assert "chain tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(),
        RunConfig(
            task="S3",
            validation=("uniform", "sticky:0.9"),
            model=ModelConfig(positions="rotary"),
            optimizer=OptimizerConfig(lr=3e-4, reset=False),
            schedule=Schedule(check_every=10),
            evaluation=EvaluationConfig(splits=("constant", "biased:021:0.8")),
        ),
    ],
)
def test_the_command_repeats_the_run(config: RunConfig) -> None:
    words = shlex.split(config.command([4, 5, 6]))
    assert words[:2] == ["internalize", "run"]
    parsed = tyro.cli(RunCommand, args=words[2:])
    assert (parsed.seeds, parsed.first_seed) == (3, 4)
    assert parsed.config() == config


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("run --task Z9", 'no task is called "Z9"'),
        ("run --task nowhere.json", "nowhere.json: cannot be read"),
        ("run --steps 0", "steps is 0"),
        ("run --curriculum up", 'no curriculum is called "up"'),
        ("run --inputs biased:7:0.8", 'no symbol "7"; the symbols are 0, 1, 2'),
        ("run --inputs biased:1:1.5", "must be a number between 0 and 1"),
        ("run --model.width 30", "30 cannot be divided among 16 heads"),
        ("run --seeds 0", "--seeds must be at least 1"),
        ("run --processes 0", "--processes is 0"),
        ("run --together 0", "--together is 0"),
        ("run --device abacus", 'device "abacus"'),
        ("run --task C2 --steps 2 --inputs uniform", "holds too few such inputs"),
        ("run --inputs constant", "the validation part of the input space holds too few"),
        ("run --task C2 --steps 6 --train-size 999", "train_size is 999, but only"),
        ("run --train-size -1", "train_size is -1"),
        ("resume nowhere", "nowhere: this is not a run's directory"),
        ("show nowhere", "nowhere: this is not a run's directory"),
        ("construct S3 --via crt", "S3 is not a counter C_n"),
        ("construct C64 --steps 500 --via count", "Take at most 130 steps"),
        ("construct C3 --steps 0", "steps is 0"),
        ("construct parity:3", 'task "parity:3" is not a semiautomaton'),
        ("construct C3 --inputs 0", "--inputs is 0"),
        ("parity --support 31", "support is 31; it must be between 1 and the 30 bits"),
        ("parity --seeds 0", "--seeds must be at least 1"),
        ("tree-parity --support 6", "a tree needs a power of two"),
        ("mlp-parity --noise 0.7", "noise is 0.7"),
        ("mlp-parity --first-seed -1", "--first-seed at least 0"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    arguments: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments.split())
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.splitlines()[-1].startswith("internalize: ")
    assert message in error
    assert "Traceback" not in error
    assert not list(tmp_path.glob("**/*.json"))


@pytest.mark.parametrize(
    "arguments",
    ["parity --support 2.5", "construct C3 --via magic", "mlp-parity --arms best"],
)
def test_a_value_of_the_wrong_kind_exits_with_2(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments.split())
    assert exit_.value.code == 2
    assert arguments.split()[-1] in capsys.readouterr().err


def test_an_unknown_flag_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["run", "--colour", "red"])
    assert exit_.value.code == 2
    assert "--colour" in capsys.readouterr().err


def test_interrupted_from_the_keyboard(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "internalize", "run", *FLAGS, "--schedule.budget", "600", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/seed-0/metrics.jsonl")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.splitlines()[-1] == "internalize: interrupted; the same command goes on from what was saved."
    assert "Traceback" not in error
    (run,) = tmp_path.iterdir()
    assert internalize.load(run).unfinished == [0]
    resume = [sys.executable, "-m", "internalize", "resume", str(run)]
    subprocess.run(resume, check=True, capture_output=True)
    assert internalize.load(run).seeds == [0]


def test_resume_knows_the_seeds_that_had_not_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(api, "run_jobs", killed)
        cli.main(["run", *FLAGS, "--seeds", "3", "--out", str(tmp_path)])
    assert end.value.code == 130
    (path,) = tmp_path.iterdir()
    assert internalize.load(path).unfinished == [0, 1, 2]
    cli.main(["watch", str(path), "--once"])
    assert capsys.readouterr().out.count("waiting") == 3
    cli.main(["resume", str(path)])
    assert internalize.load(path).seeds == [0, 1, 2]


def test_the_version_has_one_source(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["--version"])
    (said,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert capsys.readouterr().out == f"internalize {said}\n"
    assert internalize.__version__ == said
    assert f"\nversion: {said}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {said} " in (ROOT / "CHANGELOG.md").read_text()
