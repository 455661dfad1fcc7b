"""Where a result comes from: versions, machine and commit, written into every result."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


@cache
def _commit() -> str | None:
    """The commit of the checkout that this package runs from ("+" if it has changes), or None outside one."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(["git", "-C", str(here), *arguments], capture_output=True, text=True, check=True).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")) != here.parents[1]:
            return None  # installed inside somebody else's repository
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", str(here)) else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def provenance() -> dict[str, Any]:
    """Versions, commit, machine and the time of day, as JSON values."""
    import torch

    return {
        "versions": {
            "internalize": version("internalize"),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "commit": _commit(),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
        },
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
