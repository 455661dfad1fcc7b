"""How long a command takes to begin: `python -m benchmarks.startup`, one JSON row for each, on one thread.

Each command line is timed as a process of its own, in turn with one that first imports whatever any command needs, as every
command did before imports were lazy; and the module of the training processes likewise. The ratio is the median of the pairs.
"""

import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import Any

from internalize.provenance import provenance

# All commands, and the packages that the old ones imported with them.
EAGER = "import scipy.stats, polars, jinja2, rich, internalize.api, internalize.cli as cli; "
EAGER += "[cli.load(c) for of in (cli.COMMANDS, *cli.GROUPS.values()) for c in of.values()]; "
LINES = ("--help", "--version", "run --help")
REPEATS = 7


def main() -> None:
    """Time every start."""
    for line in LINES:
        call = f"import sys; from internalize.cli import main; main({line.split()!r})"
        print(json.dumps({"start": f"internalize {line}", **compare(call, EAGER + call)}))
    worker = "import internalize.launch.worker"
    print(json.dumps({"start": "a training process", **compare(worker, EAGER + worker)}))


def compare(ours: str, eager: str, repeats: int = REPEATS) -> dict[str, Any]:
    """Seconds of both programs, and their ratio; a first pair is not counted."""
    pairs = [(seconds(ours), seconds(eager)) for _ in range(repeats + 1)][1:]
    ratios = sorted(one / other for one, other in pairs)
    return {
        "command": "python -m benchmarks.startup",
        "ours": median(one for one, _ in pairs),
        "eager": median(other for _, other in pairs),
        "ratio": median(ratios),
        "least": ratios[0],
        "most": ratios[-1],
        "repeats": repeats,
        **provenance(),
    }


def seconds(program: str) -> float:
    """How long a Python program takes, from its start to its end."""
    started = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=environment)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
