import json
import sys
from collections.abc import Callable

import pytest

from benchmarks import gpu, growth, startup
from benchmarks.work import CONTENDERS, Job, matrix_rate, needed_operations
from internalize import ModelConfig

SHAPE = ModelConfig(layers=2, width=8, heads=2, mlp=16)


def test_the_gpu_benchmark_runs_on_a_cpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu", "--device", "cpu", "--tiny", "--seeds", "3", "--steps", "2"])
    gpu.main()
    row = json.loads(capsys.readouterr().out)
    assert row["seeds"] == 3
    assert row["ratio"] > 0
    assert row["memory_bytes"] is None


@pytest.mark.parametrize("seeds", [1, 2])
def test_growth_is_measured(seeds: int) -> None:
    found = growth.measure({"T": 4, "d": 8, "L": 1, "seeds": seeds})
    assert 0 < found["least"] <= found["milliseconds_per_seed"] <= found["most"]
    assert found["memory_bytes"] > 1e7


def test_needed_operations_are_counted_by_hand() -> None:
    # One layer, T = 2, full chain: 4 columns are read and the last 2 are used.
    job = Job(ModelConfig(layers=1, width=8, heads=2, mlp=16), 2, 1, (0,), 1)
    projections = 2 * (4 * 2 * 64 + 2 * 2 * 64 + 2 * 2 * 8 * 16)  # keys and values of 4 columns; queries, outputs, MLP of 2
    attention = 4 * 8 * (3 + 4)  # the two queries see 3 and 4 columns: scores and sums
    unembedding = 2 * 8 * 10 * 2
    assert needed_operations(job, 10) == 3 * (projections + attention + unembedding)


def test_the_engine_does_the_work_of_a_job() -> None:
    work: Callable[[], None] = CONTENDERS["ours"](Job(SHAPE, 5, 4, (0, 4), 2, evaluate=True))
    work()
    assert matrix_rate(1, 64) > 0


def test_the_baseline_learns_and_generates() -> None:
    pytest.importorskip("transformers")
    CONTENDERS["eager"](Job(SHAPE, 5, 4, (0, 4), 2, evaluate=True))()


def test_starts_are_compared() -> None:
    found = startup.compare("1", "2", repeats=2)
    assert 0 < found["least"] <= found["ratio"] <= found["most"]
    assert found["repeats"] == 2
