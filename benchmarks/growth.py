"""How the cost of a training step grows: `python -m benchmarks.growth`, one JSON row for each setting, on one thread.

From a middle setting (T 15, d 64, L 1, 16 heads, batch 64, full chain) one size is changed at a time; then the number of seeds
that one process trains together. A time is the median of some repeats; memory is the process's peak, in a process of its own.
"""

import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from internalize import ModelConfig, OptimizerConfig, RunConfig
from internalize.learners.sandbox import SandboxLearner
from internalize.learners.together import Stack
from internalize.models import kernel
from internalize.provenance import provenance

MIDDLE = {"T": 15, "d": 64, "L": 1, "seeds": 1}
SETTINGS = [
    MIDDLE,
    *({**MIDDLE, "T": steps} for steps in (30, 60, 120)),
    *({**MIDDLE, "d": width} for width in (128, 256, 512)),
    *({**MIDDLE, "L": layers} for layers in (2, 4, 8)),
    *({**MIDDLE, "seeds": seeds} for seeds in (2, 4, 8, 16)),
]
STEPS, REPEATS = 4, 5


def main() -> None:
    """Time every setting, each in a fresh process."""
    context = multiprocessing.get_context("spawn")
    for setting in SETTINGS:
        with context.Pool(1) as pool:
            found = pool.apply(measure, (setting,))
        print(json.dumps({"command": "python -m benchmarks.growth", **setting, **found, "attention": kernel(), **provenance()}))


def measure(setting: dict[str, int]) -> dict[str, Any]:
    """Milliseconds of a step of one seed, and the peak memory."""
    torch.set_num_threads(1)
    width = setting["d"]
    shape = ModelConfig(layers=setting["L"], width=width, heads=width // 4, mlp=4 * width)
    config = RunConfig(task="C3", steps=setting["T"], model=shape, optimizer=OptimizerConfig(batch=64))
    runs = [SandboxLearner(config, seed, Path(tempfile.mkdtemp())) for seed in range(setting["seeds"])]
    train: Callable[[], object]
    if len(runs) == 1:
        train = lambda: runs[0].train(STEPS)  # noqa: E731
    else:
        stack = Stack(runs)
        train = lambda: stack.train([STEPS] * len(runs))  # noqa: E731
    train()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        train()
        times.append(time.perf_counter() - started)
    scale = 1e3 / STEPS / len(runs)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    spread = {"least": scale * min(times), "most": scale * max(times)}
    return {"milliseconds_per_seed": scale * median(times), **spread, "memory_bytes": memory}


if __name__ == "__main__":
    main()
