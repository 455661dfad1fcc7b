import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock

import internalize
from internalize.api import configure
from internalize.config import RunConfig
from internalize.engine.course import Course
from internalize.errors import UserError
from internalize.launch import Job, run_jobs
from internalize.learners.sandbox import SandboxLearner
from processes import worker_processes
from tiny import TINY

CONFIG = configure(RunConfig(), **TINY)


def job(directory: Path, seed: int = 0, config: RunConfig = CONFIG) -> Job:
    return Job(f"seed {seed}", config, seed, directory / f"seed-{seed}")


def test_a_process_of_its_own_changes_nothing(tmp_path: Path) -> None:
    Course(SandboxLearner(CONFIG, 0, tmp_path / "here")).run()
    events = []
    run_jobs([job(tmp_path)], lambda job, event: events.append((job.label, event["kind"])))
    assert (tmp_path / "here" / "metrics.jsonl").read_text() == (tmp_path / "seed-0" / "metrics.jsonl").read_text()
    assert events[-2:] == [("seed 0", "result"), ("seed 0", "closed")]


def test_finished_seeds_are_not_trained_again(tmp_path: Path) -> None:
    run_jobs([job(tmp_path)], lambda *_: None)
    before = (tmp_path / "seed-0" / "result.json").stat().st_mtime_ns
    events = []
    run_jobs([job(tmp_path)], lambda *event: events.append(event))
    assert not events
    assert (tmp_path / "seed-0" / "result.json").stat().st_mtime_ns == before


def test_a_seed_that_is_being_trained_elsewhere_is_left_alone_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "seed-0").mkdir()
    with FileLock(tmp_path / "seed-0" / ".lock"), pytest.raises(UserError, match="seed-0: another process is training"):
        run_jobs([job(tmp_path), job(tmp_path, 1)], lambda *_: None)
    assert not (tmp_path / "seed-0" / "result.json").exists()
    assert (tmp_path / "seed-1" / "result.json").exists()


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "seed-0").write_text("a file is in the way")
    with pytest.raises(UserError, match="seed-0: cannot be written"):
        run_jobs([job(tmp_path)], lambda *_: None)


def test_one_process_can_train_several_seeds(tmp_path: Path) -> None:
    events = []
    run_jobs([job(tmp_path, seed) for seed in range(3)], lambda job, event: events.append((job.seed, event)), 1, together=2)
    for seed in range(3):
        assert json.loads((tmp_path / f"seed-{seed}" / "result.json").read_text())["seed"] == seed
        kinds = [event["kind"] for whose, event in events if whose == seed]
        assert kinds.count("result") == kinds.count("closed") == 1
    assert all(event.get("seed", whose) == whose for whose, event in events)
    order = [whose for whose, event in events if event["kind"] == "result"]
    assert order[-1] == 2  # the third one waited for the process of the first two


def test_a_failed_seed_among_several_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    seed = job(tmp_path, 1)
    seed.directory.mkdir()
    (seed.directory / "last.safetensors").write_bytes(b"damaged")
    with pytest.raises(UserError, match=r"seed-1/last.safetensors: this is not a checkpoint"):
        run_jobs([job(tmp_path), seed, job(tmp_path, 2)], lambda *_: None, together=3)
    assert [(tmp_path / f"seed-{index}" / "result.json").exists() for index in range(3)] == [True, False, True]


def test_a_worker_that_dies_is_told_with_how_to_go_on(tmp_path: Path) -> None:
    long = configure(CONFIG, schedule={"budget": 100_000})

    def kill(job: Job, event: dict) -> None:
        if event["kind"] == "check":
            for process in worker_processes(tmp_path):
                os.kill(process, signal.SIGKILL)

    with pytest.raises(UserError, match="seed 0: the training process ended by signal 9; run the same command again"):
        run_jobs([job(tmp_path, config=long)], kill)


NOISY = """
import sys, os
import numpy as np
from internalize import Curriculum

print("imported")

class Noisy(Curriculum):
    def stages(self, units):
        return 2

    def keep(self, units, stage):
        print("kept", units, flush=True)
        os.write(1, b"from a library in C\\n")
        {}
        return np.full(units, stage == 0)
"""


def noisy(directory: Path, does: str) -> RunConfig:
    (directory / "mine.py").write_text(NOISY.format(does))
    return configure(CONFIG, curriculum=f"{directory / 'mine.py'}:Noisy")


def test_own_code_and_libraries_may_print(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = noisy(tmp_path, "pass")
    capfd.readouterr()
    internalize.fit(config, seeds=2, out=tmp_path / "runs", processes=2)
    told = capfd.readouterr().err
    for seed in (0, 1):
        for line in ("imported", "kept 5", "from a library in C"):
            assert f"mine.py:Noisy seed {seed}: {line}\n" in told


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("_ = units == 5 and 1 / 0", r"ended with exit code 1 \(ZeroDivisionError: division by zero\); run the same command"),
        ("_ = units == 5 and sys.exit(0)", r"ended with exit code 0 \(from a library in C\); run the same command"),
        ("[os.write(int(sys.argv[1]), b'?\\n') for _ in '1' if units == 5]", r"sent '\?', which is no event"),
    ],
)
def test_own_code_that_ends_the_worker_or_sends_nonsense_ends_the_run(does: str, message: str, tmp_path: Path) -> None:
    """Only there: the configuration tries it on chains of 5 units too, so the units are those of another length."""
    does = does.replace("units == 5", "units == 7")
    config = configure(noisy(tmp_path, does), steps=8)
    with pytest.raises(UserError, match=message):
        run_jobs([job(tmp_path, config=config)], lambda *_: None)


def test_workers_end_with_a_killed_parent_and_the_run_goes_on_where_it_was(tmp_path: Path) -> None:
    config = json.dumps({**TINY, "schedule": {"kind": "fixed", "budget": 1200, "check_every": 20}})
    program = (
        f"import internalize, json; internalize.fit(**json.loads('''{config}'''), out={str(tmp_path / 'killed')!r}, quiet=True)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("killed/*/seed-0/stages/0.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert worker_processes(tmp_path)
    parent.kill()
    parent.wait()
    while worker_processes(tmp_path):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not list(tmp_path.glob("killed/*/seed-0/result.json"))
    fields = json.loads(config)
    killed = internalize.fit(**fields, out=tmp_path / "killed", quiet=True)
    whole = internalize.fit(**fields, out=tmp_path / "whole", quiet=True)
    assert killed.metrics(0) == whole.metrics(0)


pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
