"""Training of `internalize lm fit` against a plain `transformers.Trainer` on the same rows: `python -m benchmarks.lm`.

The plain side gets rows that were rendered and padded before; ours draws the order and the views and renders as it goes. Both
take the same steps from the same weights; repeats are interleaved, and the ratio is of the medians. With --json it prints one
row, as kept in results/lm-throughput.jsonl.
"""

import argparse
import json
import shlex
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from internalize.curricula import Schedule
from internalize.lm.config import LMConfig
from internalize.lm.example import write_example
from internalize.lm.training import Checks, Fit
from internalize.provenance import provenance


class Unlooked(Checks):
    """No checks, so that training alone is timed."""

    def look(self, trainer: Any, control: Any, model: Any) -> Any:
        return control


def seconds(run: Fit, steps: int, plain: bool) -> float:
    """The time that `steps` steps take, from the model that was given."""
    run.begin()
    trainer = run.trainer(steps, Unlooked(run, steps))
    if plain:
        trainer.train_dataset = [trainer.train_dataset[index] for index in range(len(trainer.train_dataset))]
    started = time.perf_counter()
    trainer.train()
    return time.perf_counter() - started


def main() -> None:
    """Time both sides, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        example = write_example("multiply", 3, "gpt2", Path(folder), rows=2000)
        config = LMConfig(
            model=str(example.model),
            data=example.files["train"],
            valid=example.files["valid"],
            units="token",
            batch=64,
            schedule=Schedule("fixed", budget=25 * options.steps),
        )
        run = Fit(config, Path(folder), lambda _: None)
        times: dict[str, list[float]] = {"ours": [], "plain": []}
        for repeat in range(options.repeats + 1):
            for side in ("ours", "plain") if repeat % 2 else ("plain", "ours"):
                times[side].append(seconds(run, options.steps, side == "plain"))
    times = {side: found[1:] for side, found in times.items()}  # the first ones warm up
    ratio = median(times["plain"]) / median(times["ours"])
    ratios = sorted(plain / ours for plain, ours in zip(times["plain"], times["ours"], strict=True))
    if options.json:
        command = "python -m benchmarks.lm " + shlex.join(sys.argv[1:])
        print(json.dumps({"command": command, "seconds": times, "throughput ratio": ratio, **provenance()}))
        return
    print(f"throughput of ours / plain Trainer: {ratio:.3f} (repeats from {ratios[0]:.3f} to {ratios[-1]:.3f})")


if __name__ == "__main__":
    main()
