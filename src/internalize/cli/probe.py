"""`internalize probe`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from internalize.api import probe_run
from internalize.cli.runs import changed, progress_bar
from internalize.engine.settings import command_line
from internalize.evaluation.probes import Probes, of_stages
from internalize.provenance import provenance
from internalize.terminal import terminal


@dataclass(frozen=True)
class Probe:
    """What a trained model knows where: linear probes of each state, activation patching, attention; along the stages."""

    directory: Annotated[Path, tyro.conf.Positional]
    """a run's directory; a constructed transformer's, too"""
    seed: int | None = None
    """whose models; left out, the first finished seed's"""
    stages: int = 4
    """how many stages at most, with the first and the last"""
    samples: int = 2000
    """training inputs to fit on; half as many test inputs judge"""
    inputs: str = "uniform"
    """their distribution"""
    json: bool = False
    """print one JSON object instead of tables"""

    def __call__(self) -> None:
        """Probe, write probes.json beside the seed's other files and into the page, and show it."""
        with progress_bar("probing") as progress:
            found = probe_run(
                self.directory,
                seed=self.seed,
                stages=self.stages,
                samples=self.samples,
                distribution=self.inputs,
                progress=progress,
            )
        if self.json:
            command = command_line("probe", changed(self, "directory", "json"), str(self.directory))
            print(json.dumps({"command": command, **of_stages(found), **provenance()}))
            return
        for stage, probes in found.items():
            print_probes(stage, probes)


def print_probes(stage: int, probes: Probes) -> None:
    """Print what was found in one stage's model."""
    console = terminal()
    head = ["state", "chance", "its own column", "untrained", "the answer's column", "untrained", "shuffled"]
    table = Table(*head, title=f"stage {stage}: accuracy of linear probes after the last layer")
    for t, name in enumerate(probes.targets):
        own = probes.place(t)
        values = [probes.chance[t], probes.accuracy[-1][own][t], probes.untrained[-1][own][t]]
        values += [part[-1][-1][t] for part in (probes.accuracy, probes.untrained, probes.shuffled)]
        table.add_row(name, *(f"{value:.3f}" for value in values))
    console.print(table)
    console.print(probes.sentence)
    if probes.restored is not None:
        best = [max(range(len(row)), key=row.__getitem__) for row in probes.restored]
        said = "; ".join(
            f"after layer {layer} at {probes.columns[column]} {probes.restored[layer][column]:.2f}"
            for layer, column in enumerate(best)
        )
        console.print(f"Patching one column of an input with one changed symbol restores the answer most often {said}.")
