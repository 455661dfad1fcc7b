"""The engine against a plain Hugging Face loop and against the machine's matrix products: `python -m benchmarks.engine`.

Ratios are of medians over repeats that are interleaved, so that a noisy machine hits both sides alike. Both sides may use
all cores, as one process with all threads or as seeds side by side with one thread each, and the baseline may use eager or
sdpa attention: a first round finds each side's fastest way, which is then repeated. A time is that of the whole work
(`jobs`) for one seed, with all cores shared among the seeds side by side.

With --json it prints one row, as they are kept in results/engine.jsonl. Needs transformers: pip install -e '.[lm]'.
"""

import argparse
import json
import shlex
import sys
from dataclasses import replace
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.work import PAPER, Cores, Job, matrix_rate, needed_operations
from internalize import ModelConfig, RunConfig
from internalize.launch import cores
from internalize.models import kernel
from internalize.provenance import provenance
from internalize.rendering import Vocabulary

STEPS = 15  # T
SMALL = ModelConfig(layers=1, width=64, heads=16, mlp=256)


def jobs(quick: bool) -> dict[str, Job]:
    """What is timed."""
    every, last = tuple(range(STEPS)), STEPS - 1
    many, few = (2, 1) if quick else (50, 3)
    small, paper = Job(SMALL, STEPS, 64, every, many), Job(PAPER, STEPS, 64, (0,), few)
    return {
        "small: step, full chain": replace(small, stages=(0,), steps=2 * many),
        "small: step, last stage": replace(small, stages=(last,), steps=2 * many),
        "small: left curriculum, training": small,
        "small: left curriculum, with evaluation": replace(small, evaluate=True),
        "small: evaluation, full chain": replace(small, stages=(0,), steps=0, evaluate=True),
        "paper: step, full chain": paper,
        "paper: step, last stage": replace(paper, stages=(last,)),
        "paper: evaluation, full chain": replace(paper, steps=0, evaluate=True),
    }


def measure(job: Job, repeats: int, machine: int) -> dict[str, Any]:
    """Seconds of every contender and way to use the cores, interleaved with the rate of matrix products."""
    ways = [(1, machine), (machine, 1)] if machine > 1 else [(1, 1)]
    runners = {
        f"{name}, {processes} x {threads}": Cores(name, job, processes, threads)
        for name in ("ours", "eager", "sdpa")
        for processes, threads in ways
    }
    first = {name: runner.seconds() for name, runner in runners.items()}
    best = {
        "ours": min((name for name in runners if name.startswith("ours")), key=first.__getitem__),
        "baseline": min((name for name in runners if not name.startswith("ours")), key=first.__getitem__),
    }
    seconds: dict[str, list[float]] = {name: [] for name in best.values()}
    rates = []
    for _ in range(repeats):
        rates.append(matrix_rate(machine))
        for name in best.values():
            seconds[name].append(runners[name].seconds())
    for runner in runners.values():
        runner.close()
    ours, theirs = seconds[best["ours"]], seconds[best["baseline"]]
    ratios = sorted(b / a for a, b in zip(ours, theirs, strict=True))
    vocabulary = Vocabulary.of(RunConfig(task="C3", steps=STEPS).make_task()).size
    share = needed_operations(job, vocabulary) / median(ours) / median(rates) if job.steps and not job.evaluate else None
    return {
        "ours": {"way": best["ours"], "seconds": median(ours), "least": min(ours), "most": max(ours)},
        "baseline": {"way": best["baseline"], "seconds": median(theirs), "least": min(theirs), "most": max(theirs)},
        "ratio": median(theirs) / median(ours),
        "ratios": [ratios[0], ratios[-1]],
        "roofline": share,
        "gflops": median(rates) / 1e9,
        "first_round": first,
    }


def main() -> None:
    """Time everything, and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few steps only: to see that it works")
    parser.add_argument("--json", action="store_true", help="print one JSON row")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="jobs whose name contains this")
    arguments = parser.parse_args()
    machine, console = cores(), Console(stderr=True)
    found = {}
    for name, job in jobs(arguments.quick).items():
        if arguments.only in name:
            console.print(f"timing: {name} ...")
            found[name] = measure(job, 1 if arguments.quick else arguments.repeats, machine)
    if arguments.json:
        command = shlex.join(["python", "-m", "benchmarks.engine", *sys.argv[1:]])
        print(json.dumps({"command": command, "attention": kernel(), "cores_used": machine, "jobs": found, **provenance()}))
        return
    table = Table(
        "", "ours, ms of the work", "baseline, ms", "ratio (range)", "of matrix rate", title=f"{machine} cores, medians"
    )
    for name, row in found.items():
        share = "-" if row["roofline"] is None else f"{row['roofline']:.0%}"
        low, high = row["ratios"]
        times = [f"{row[side]['seconds'] * 1e3:,.0f} ({row[side]['way']})" for side in ("ours", "baseline")]
        table.add_row(name, *times, f"{row['ratio']:.2f} ({low:.2f} to {high:.2f})", share)
    Console().print(table)


if __name__ == "__main__":
    main()
