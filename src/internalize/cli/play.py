"""`internalize play`."""

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from internalize.app.language import LMPlayer
from internalize.app.player import Player
from internalize.app.sandbox import SandboxPlayer
from internalize.app.server import HOST, listen, need, serve
from internalize.errors import UserError
from internalize.lm.runs import is_lm_run, union
from internalize.lm.runs import load as load_lm
from internalize.runs import load

MOST = 2  # side by side


@dataclass(frozen=True)
class Play:
    """A page on this machine on which one run, or two side by side, are asked: with their chain, with less of it, at once."""

    directories: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """runs, constructed transformers, language models' runs, or their folders"""
    seed: int | None = None
    """whose models; left out, the first finished seed's"""
    data: tuple[str, ...] = ()
    """questions for language models: paths, or name=path; left out, a run's own test files"""
    port: int = 8000
    """of the page; 0: a free one"""
    open: bool = False
    """show it in the browser"""

    def __call__(self) -> None:
        """Serve the page until Ctrl-C."""
        need()
        if not 1 <= len(self.directories) <= MOST:
            raise UserError(f"{len(self.directories)} directories are named; name one run, or two to see side by side.")
        players = [self._player(directory.resolve()) for directory in self.directories]
        for player in players:
            if not player.places:
                raise UserError(f"{player.name}: no stage was measured, so there is nothing to play with.")
        opened = listen(self.port)
        address = f"http://{HOST}:{opened.getsockname()[1]}"
        print(f"{address} (Ctrl-C stops it)", flush=True)
        if self.open:
            webbrowser.open(address)
        serve(players, opened)
        print("Stopped.")

    def _player(self, directory: Path) -> Player:
        if is_lm_run(directory):
            return LMPlayer(load_lm(directory), union(self.data))
        if any(directory.glob("*.safetensors")):
            return LMPlayer(str(directory), union(self.data))
        if self.data:
            raise UserError(f"--data is for language models; {directory} is not one.")
        return SandboxPlayer(load(directory), self.seed)
