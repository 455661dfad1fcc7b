"""Some seeds of one configuration in a process of their own: `python -m internalize.launch.worker FD`, started by `local.py`.

Reads one JSON job from standard input; writes one JSON event a line to the open file descriptor FD, the last of them "done".
What anything prints goes elsewhere. It ends at once when its parent does.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from internalize.checking import check_device
from internalize.config import RunConfig
from internalize.engine.course import Course
from internalize.errors import UserError
from internalize.learners.sandbox import SandboxLearner
from internalize.learners.together import train_together


def main() -> None:
    """Run the job that standard input names."""
    job = json.loads(sys.stdin.readline())
    send = _sender(int(sys.argv[1]))
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(job["threads"])
    directory = Path()
    try:
        check_device(job["device"])
        with ExitStack() as locks:
            config, learners = RunConfig.from_json(job["config"]), []
            for one in job["seeds"]:
                directory = Path(one["directory"])
                directory.mkdir(parents=True, exist_ok=True)
                locks.enter_context(FileLock(directory / ".lock", timeout=job.get("patience", 0)))
                learners.append(SandboxLearner(config, one["seed"], directory, job["device"]))
            if len(learners) == 1:
                Course(learners[0], send).run()
            else:
                for seed, error in train_together(learners, send).items():
                    send({"kind": "error", "seed": seed, "message": str(error)})
    except Timeout:
        send({"kind": "error", "message": f"{directory}: another process is training this seed; wait for it or stop it."})
    except UserError as error:
        send({"kind": "error", "message": str(error)})
    except OSError as error:
        path = error.filename or directory
        send({"kind": "error", "message": f"{path}: cannot be written ({error.strerror or error})."})
    send({"kind": "done"})


def _sender(descriptor: int) -> Callable[[Mapping[str, Any]], None]:
    """Who is told events, and writes them to `descriptor`."""
    file = os.fdopen(descriptor, "w", encoding="utf-8")

    def send(event: Mapping[str, Any]) -> None:
        file.write(json.dumps(event) + "\n")
        file.flush()

    return send


def _die_with_parent() -> None:
    sys.stdin.read()  # returns only when the parent is gone, however it ended
    os._exit(1)


if __name__ == "__main__":
    main()
