"""Many seeds at once on a GPU against one at a time: `python -m benchmarks.gpu`.

Prints the time of a step of S seeds together and of one alone, the ratio, the memory, and the share of the card's peak that the
needed operations make up. `--device cpu --tiny` runs the same on a CPU with a small shape, to see that it works.
"""

import argparse
import json
import shlex
import sys
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.work import PAPER, Job, needed_operations
from internalize import ModelConfig, OptimizerConfig, RunConfig
from internalize.learners.sandbox import SandboxLearner
from internalize.learners.together import Stack
from internalize.provenance import provenance
from internalize.rendering import Vocabulary

TINY = ModelConfig(layers=1, width=16, heads=4, mlp=32)


def main() -> None:
    """Time both, and print one JSON row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=20, help="optimizer steps that are timed")
    parser.add_argument("--peak", type=float, default=989e12, help="operations a second at most (H200, dense bf16)")
    parser.add_argument("--tiny", action="store_true", help="a small shape")
    arguments = parser.parse_args()
    shape = TINY if arguments.tiny else PAPER
    job = Job(shape, 15, 64, (0,), arguments.steps)
    config = RunConfig(task="C3", steps=15, model=shape, optimizer=OptimizerConfig(batch=job.batch))
    alone, _ = measure(config, 1, job.steps, arguments.device)
    together, memory = measure(config, arguments.seeds, job.steps, arguments.device)
    operations = needed_operations(job, Vocabulary.of(config.make_task()).size) * arguments.seeds
    row = {
        "command": shlex.join(["python", "-m", "benchmarks.gpu", *sys.argv[1:]]),
        "seeds": arguments.seeds,
        "milliseconds_alone": 1e3 * alone / job.steps,
        "milliseconds_together": 1e3 * together / job.steps,
        "ratio": arguments.seeds * alone / together,
        "share_of_peak": operations / together / arguments.peak,
        "memory_bytes": memory,
        **provenance(),
    }
    print(json.dumps(row))


def measure(config: RunConfig, seeds: int, steps: int, device: str) -> tuple[float, int | None]:
    """Seconds of `steps` optimizer steps of all seeds together, and the peak of GPU memory."""
    runs = [SandboxLearner(config, seed, Path(tempfile.mkdtemp()), device) for seed in range(seeds)]
    stack = Stack(runs)
    stack.train([2] * seeds)  # warm-up
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    wait()
    started = time.perf_counter()
    stack.train([steps] * seeds)
    wait()
    return time.perf_counter() - started, torch.cuda.max_memory_allocated() if device.startswith("cuda") else None


if __name__ == "__main__":
    main()
