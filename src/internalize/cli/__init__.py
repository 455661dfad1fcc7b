"""The command line. Thin: every command is a few calls of the library."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import tyro

from internalize.cli.certify import Certify
from internalize.cli.lm import LM_COMMANDS, Collect, Fit
from internalize.cli.look import Report, Watch
from internalize.cli.play import Play
from internalize.cli.probe import Probe
from internalize.cli.runs import Demo, Resume, RunCommand, Show
from internalize.cli.studies import STUDY_COMMANDS, Compare, Sweep
from internalize.cli.theory import Construct, MLPParity, Parity, TreeParity
from internalize.errors import UserError

GROUPS: dict[str, dict[str, Callable[..., Any]]] = {"lm": LM_COMMANDS, "study": STUDY_COMMANDS}


@dataclass(frozen=True)
class LM:
    """A language model and data of your own: internalize lm check | fit | show | certify | collect | example."""

    def __call__(self) -> None:
        """Name the commands."""
        _name("lm")


@dataclass(frozen=True)
class Studies:
    """The figures of the paper, from one command each: internalize study list | run | draw."""

    def __call__(self) -> None:
        """Name the commands."""
        _name("study")


def _name(group: str) -> None:
    raise UserError(f"name what to do: internalize {group} {' | '.join(GROUPS[group])}.")


COMMANDS: dict[str, Callable[..., Any]] = {
    "demo": Demo,
    "run": RunCommand,
    "resume": Resume,
    "show": Show,
    "report": Report,
    "watch": Watch,
    "play": Play,
    "certify": Certify,
    "probe": Probe,
    "construct": Construct,
    "parity": Parity,
    "tree-parity": TreeParity,
    "mlp-parity": MLPParity,
    "lm": LM,
    "study": Studies,
    "compare": Compare,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point. A user's mistake is one sentence and exit code 2."""
    command: Any = None
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        if words == ["--version"]:
            print(f"internalize {version('internalize')}")
            return
        group = words[0] if len(words) > 1 and words[0] in GROUPS else ""
        command = tyro.extras.subcommand_cli_from_dict(
            GROUPS[group] if group else COMMANDS,
            prog=f"internalize {group}".strip(),
            args=words[1:] if group else words,
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
        saved = isinstance(command, Demo | RunCommand | Resume | Fit | Collect | Sweep)
        goes_on = "the same command goes on from what was saved" if saved else "nothing was saved"
        print(f"internalize: interrupted; {goes_on}.", file=sys.stderr)
        sys.exit(130)
