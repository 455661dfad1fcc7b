import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from internalize.api import configure, fit
from internalize.cli import main
from internalize.config import RunConfig
from internalize.errors import UserError
from internalize.launch import Job, Ray, ray, run_jobs, run_jobs_on_ray
from processes import worker_processes
from tiny import TINY

if not Path("/proc").exists():
    pytest.skip("looks for processes in /proc", allow_module_level=True)

CONFIG = configure(RunConfig(), **TINY)


def test_a_killed_worker_is_replaced_and_the_rows_are_those_of_this_machine(tmp_path: Path) -> None:
    config = configure(CONFIG, schedule={"kind": "fixed", "budget": 600, "check_every": 20})
    killed = []

    def kill(job: Job, event: dict) -> None:
        """Once, as soon as the first stage is saved: the process of Ray that waits for the training process."""
        if not killed and (job.directory / "stages" / "0.safetensors").exists():
            for process in worker_processes(tmp_path):
                killed.append(int((Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[1]))
                os.kill(killed[-1], signal.SIGKILL)

    there, here = (Job("seed 0", config, 0, tmp_path / name) for name in ("there", "here"))
    run_jobs_on_ray([there], kill, Ray())
    run_jobs([here], lambda *_: None)
    assert len(killed) == 1
    assert (tmp_path / "there" / "metrics.jsonl").read_text() == (tmp_path / "here" / "metrics.jsonl").read_text()


def test_a_directory_that_the_nodes_do_not_share_is_told(tmp_path: Path) -> None:
    job = Job("seed 0", CONFIG, 0, tmp_path / "seed-0")
    (told,) = ray._failures(SimpleNamespace(get=lambda _: 0), None, (job,))
    assert f"{tmp_path / 'seed-0'} is not written here; the directory of the runs must lie on a file system" in told
    assert not ray._failures(SimpleNamespace(get=lambda _: 1), None, (job,))  # its own error was told before


@pytest.mark.parametrize(
    ("cpus", "gpus", "message"), [(4, 0, "asks for 4 CPU.*has 2 in all"), (1, 0.5, "0.5 GPU.*has 0 in all")]
)
def test_more_than_the_cluster_has_is_refused_and_not_waited_for(cpus: float, gpus: float, message: str) -> None:
    with pytest.raises(UserError, match=message):
        ray._check_resources({"CPU": 2.0}, cpus, gpus)


def test_a_missing_ray_is_told_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"Ray is not installed; pip install 'internalize\[ray\]'"):
        fit(CONFIG, out=tmp_path, ray=Ray(), quiet=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--launcher", "ray", "--processes", "2"], "--processes is of the local launcher"),
        (["--ray.cpus", "2"], "--ray.* needs --launcher ray"),
        (["--launcher", "ray", "--ray.gpus", "-1"], "ray.gpus is -1"),
    ],
)
def test_flags_that_do_not_fit(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--out", str(tmp_path / "runs"), *words])
    assert end.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
