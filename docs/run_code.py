"""Runs every block of code of a page, from top to bottom in an empty directory: `python docs/run_code.py PAGE...`.

Python blocks share their names; `bash` blocks must end well; a block with a title is written to a file of that name.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "docs" / "quickstart.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCK = re.compile(r'^```(python|bash|json)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def run(page: Path) -> None:
    """Run a page's blocks here."""
    names: dict[str, Any] = {"__name__": "__main__"}
    sys.path.insert(0, ".")
    for count, found in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")), 1):
        language, title, code = found.groups()
        print(f"--- {page.name}, block {count}\n{code}", flush=True)
        if title:
            Path(title).write_text(code, encoding="utf-8")
        elif language == "python":
            exec(compile(code, f"{page.name}, block {count}", "exec"), names)
        elif language == "bash":
            subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True)
        else:
            raise ValueError(f"{page}: the JSON block {count} has no title, so nothing is done with it")


def main() -> None:
    """Run the pages that are named, or all; each in a process and a directory of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--here", action="store_true", help="in this process and directory")
    arguments = parser.parse_args()
    if arguments.here:
        for page in arguments.pages:
            run(page)
        return
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for page in map(Path.resolve, arguments.pages):
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "results").symlink_to(ROOT / "results")
            words = [sys.executable, __file__, "--here", str(page)]
            subprocess.run(words, cwd=directory, check=True, env={**os.environ, "PATH": path})
        print(f"=== {page.name}: all blocks ran in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
