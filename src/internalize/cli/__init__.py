"""The command line. Thin: every command is a few calls of the library."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from internalize.cli.certify import Certify
from internalize.cli.runs import Demo, Resume, RunCommand, Show
from internalize.cli.theory import Construct, MLPParity, Parity, TreeParity
from internalize.errors import UserError

COMMANDS: dict[str, Callable[..., Any]] = {
    "demo": Demo,
    "run": RunCommand,
    "resume": Resume,
    "show": Show,
    "certify": Certify,
    "construct": Construct,
    "parity": Parity,
    "tree-parity": TreeParity,
    "mlp-parity": MLPParity,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point. A user's mistake is one sentence and exit code 2."""
    command: Any = None
    try:
        command = tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="internalize",
            args=arguments,
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
        saved = isinstance(command, Demo | RunCommand | Resume)
        goes_on = "the same command goes on from what was saved" if saved else "nothing was saved"
        print(f"internalize: interrupted; {goes_on}.", file=sys.stderr)
        sys.exit(130)
