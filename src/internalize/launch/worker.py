"""One seed in a process of its own: `python -m internalize.launch.worker`, started by `local.py`.

Reads one JSON job from standard input; writes one JSON event a line to standard output. It ends at once when its parent does.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from internalize.config import RunConfig
from internalize.errors import UserError
from internalize.training import SeedRun


def main() -> None:
    """Run the job that standard input names."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(job["threads"])
    directory = Path(job["directory"])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with FileLock(directory / ".lock", timeout=0):
            SeedRun(RunConfig.from_json(job["config"]), job["seed"], directory, _send, job["device"]).run()
    except Timeout:
        _send({"kind": "error", "message": f"{directory}: another process is training this seed; wait for it or stop it."})
    except UserError as error:
        _send({"kind": "error", "message": str(error)})
    except OSError as error:
        _send({"kind": "error", "message": f"{directory}: cannot be written ({error.strerror or error})."})


def _send(event: Mapping[str, Any]) -> None:
    print(json.dumps(event), flush=True)


def _die_with_parent() -> None:
    sys.stdin.read()  # returns only when the parent is gone, however it ended
    os._exit(1)


if __name__ == "__main__":
    main()
