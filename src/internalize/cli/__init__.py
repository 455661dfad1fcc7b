"""The command line. Thin: every command is a few calls of the library, and is imported when it is called."""

import ast
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from internalize.errors import UserError

# Where each command is: a module of this package, and a class whose fields are its flags.
COMMANDS = {
    "demo": "runs.Demo",
    "run": "runs.RunCommand",
    "resume": "runs.Resume",
    "show": "runs.Show",
    "report": "look.Report",
    "watch": "look.Watch",
    "play": "play.Play",
    "certify": "certify.Certify",
    "probe": "probe.Probe",
    "construct": "theory.Construct",
    "parity": "theory.Parity",
    "tree-parity": "theory.TreeParity",
    "mlp-parity": "theory.MLPParity",
    "compare": "studies.Compare",
}
GROUPS = {
    "lm": {
        "check": "lm.Check",
        "fit": "lm.Fit",
        "show": "lm.Show",
        "certify": "lm.Certify",
        "collect": "lm.Collect",
        "example": "lm.Example",
    },
    "study": {"list": "studies.List", "run": "studies.RunStudy", "draw": "studies.Draw"},
}
ABOUT = {"lm": "A language model and data of your own", "study": "The figures of the paper, from one command each"}
# The same command goes on where one of these was interrupted.
GOES_ON = {"runs.Demo", "runs.RunCommand", "runs.Resume", "studies.Compare", "studies.RunStudy", "lm.Fit", "lm.Collect"}


def load(place: str) -> Callable[..., Any]:
    """The class of a command."""
    module, _, name = place.partition(".")
    found: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point. A user's mistake is one sentence and exit code 2."""
    place = ""
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        if words == ["--version"]:
            from importlib.metadata import version

            print(f"internalize {version('internalize')}")
            return
        group = words[0] if words and words[0] in GROUPS else ""
        if group and len(words) == 1:
            raise UserError(f"name what to do: internalize {group} {' | '.join(GROUPS[group])}.")
        commands, prog, rest = (GROUPS[group], f"internalize {group}", words[1:]) if group else (COMMANDS, "internalize", words)
        import tyro

        if rest and rest[0] in commands:
            place = commands[rest[0]]
            command = tyro.cli(load(place), prog=f"{prog} {rest[0]}", args=rest[1:])
        else:  # help, completions, nothing or a mistake
            whole = any(word.startswith("--tyro-") for word in rest)
            listed = {name: load(found) if whole else _told(_about(found)) for name, found in commands.items()}
            if not group:
                groups = {name: f"{about}: internalize {name} {' | '.join(GROUPS[name])}." for name, about in ABOUT.items()}
                listed |= {name: _told(about) for name, about in groups.items()}
            command = tyro.extras.subcommand_cli_from_dict(
                listed,
                prog=prog,
                args=rest,
                description="Make a transformer absorb its chain of thought, and measure what it loses.",
            )
        command()
    except UserError as error:
        print(f"internalize: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print("internalize: out of memory; make the model, the batch or the number of steps smaller.", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        goes_on = "the same command goes on from what was saved" if place in GOES_ON else "nothing was saved"
        print(f"internalize: interrupted; {goes_on}.", file=sys.stderr)
        sys.exit(130)


def _about(place: str) -> str:
    """The first line of a command's help: read, not imported, so that a list of commands comes at once."""
    module, _, name = place.partition(".")
    classes = (node for node in _parsed(module).body if isinstance(node, ast.ClassDef) and node.name == name)
    return (ast.get_docstring(next(classes)) or "").partition("\n")[0]


@cache
def _parsed(module: str) -> ast.Module:
    return ast.parse((Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8"))


def _told(text: str) -> Callable[[], None]:
    """Stands for a command where commands are listed."""

    def command() -> None: ...

    command.__doc__ = text
    return command
