"""Pages of the site that are made from what is there: the commands' help, and the quickstart as a notebook."""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jupytext
import nbformat
import tyro
from mkdocs.structure.files import File, Files

from internalize.cli import COMMANDS, GROUPS, load


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    files.append(File.generated(config, "commands.md", content=commands()))
    files.append(File.generated(config, "quickstart.ipynb", content=notebook(Path(config["docs_dir"]) / "quickstart.md")))
    return files


def commands() -> str:
    """The help of every command."""
    every = COMMANDS | {f"{group} {name}": command for group, of in GROUPS.items() for name, command in of.items()}
    parts = ["# Commands\n\nWhat `internalize COMMAND --help` says.\n"]
    for name, command in every.items():
        parts.append(f"## internalize {name}\n\n```text\n{help_of(name, load(command))}\n```\n")
    return "\n".join(parts)


def help_of(name: str, command: Any) -> str:
    """What a command prints for --help, without colours."""
    said = io.StringIO()
    with patch.dict("os.environ", NO_COLOR="1", TERM="dumb", COLUMNS="110"), redirect_stdout(said):
        try:
            tyro.cli(command, prog=f"internalize {name}", args=["--help"])
        except SystemExit:
            return said.getvalue().strip()
    raise AssertionError(f"{name} has no help")


def notebook(page: Path) -> str:
    """A page of Markdown as a notebook; its commands become `%%bash` cells."""
    text = page.read_text(encoding="utf-8").replace("(quickstart.ipynb)", "(quickstart.md)")
    made = jupytext.reads(text, fmt="md")
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.validate(made)
    return str(nbformat.writes(made))
