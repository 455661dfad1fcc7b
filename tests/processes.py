"""Looks for training processes in /proc."""

from pathlib import Path


def worker_processes(directory: Path) -> list[int]:
    """The training processes that have files open below `directory`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text()
            files = [str(file.readlink()) for file in (process / "fd").iterdir()]
        except OSError:
            continue
        if "internalize.launch.worker" in command and any(file.startswith(str(directory)) for file in files):
            found.append(int(process.name))
    return found
