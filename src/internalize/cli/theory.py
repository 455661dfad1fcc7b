"""`internalize construct | parity | tree-parity | mlp-parity`."""

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from internalize.api import construct, verified
from internalize.checkpoint import write_whole
from internalize.cli.runs import changed, consecutive, progress_bar
from internalize.engine.settings import command_line
from internalize.errors import UserError
from internalize.evaluation import success_rate
from internalize.evaluation.statistics import needed, spread
from internalize.provenance import provenance
from internalize.report.charts import accuracy_chart, as_file, over_seeds
from internalize.terminal import terminal
from internalize.theory import (
    MLPParityConfig,
    ParityConfig,
    TreeParityConfig,
    internalize_parity,
    learn_tree_parity,
    train_mlp_parity,
)
from internalize.theory.constructions import Via
from internalize.theory.mlp_parity import Arm, Curve


@dataclasses.dataclass(frozen=True)
class Construct:
    """Write down the weights of a transformer that simulates an automaton exactly in one pass, and verify them."""

    task: Annotated[str, tyro.conf.Positional]
    """a counter such as C12; for --via scan any group or JSON file of an automaton"""
    steps: int = 25
    """input symbols T"""
    via: Via = "scan"
    """crt: residues of prime powers (paper, Theorem 3); scalar: two hidden units a layer (ours); count: one layer (ours);
    scan: parallel prefix of transition functions, any automaton (Liu et al. 2023)"""
    inputs: int = 1_000_000
    """inputs that are verified, at every position, where there are more than 2^20 in all"""
    out: Path = Path("runs")
    """directory of all runs; this one gets a directory of its own there"""
    write: bool = True
    """write the weights, as a run of one seed; --no-write only verifies"""
    json: bool = False
    """print one JSON object instead of a table"""

    def __call__(self) -> None:
        """Construct, verify, and show the outcome."""
        if self.inputs < 1:
            raise UserError(f"--inputs is {self.inputs}; it must be at least 1.")
        started = time.monotonic()
        with progress_bar("verifying inputs") as progress:
            if self.write:
                run = construct(self.task, steps=self.steps, via=self.via, inputs=self.inputs, out=self.out, progress=progress)
                where, made, checked = run.path, run.results[0]["construction"], run.results[0]["verification"]
            else:
                _, construction, verification = verified(self.task, self.steps, self.via, self.inputs, progress)
                where, made, checked = None, construction.summary(), dataclasses.asdict(verification)
        if self.json:
            outcome = {"directory": where and str(where), "construction": made, "verification": checked}
            _print_row("construct", self, started, **outcome)
            return
        table = Table("", "built", "stated bound", title=f"{self.task} over {self.steps} steps via {self.via}")
        table.add_row("layers", str(made["layers"]), made["bound_layers"])
        table.add_row("MLP width", f"{made['mlp']:,}", made["bound_mlp"])
        table.add_row("embedding", f"{made['width']:,}", "")
        table.add_row("parameters", f"{made['parameters']:,}", "")
        console = terminal()
        console.print(table)
        how = "all" if checked["exhaustive"] else "random and adversarial"
        console.print(
            f"Exact on {checked['inputs']:,} inputs ({how}) at all {checked['positions']:,} positions in float32; "
            f"smallest logit gap {checked['gap']:.3f}." + (f"\nWeights and page: {where}" if where else "")
        )


@dataclasses.dataclass(frozen=True)
class Parity(ParityConfig):
    """Internalize sparse parity with one-layer linear attention, provably (paper, Theorem 2), for many seeds side by side."""

    seeds: int = 30
    """how many seeds, each with its own support"""
    first_seed: int = 0
    """the first of them"""
    json: bool = False
    """print one JSON object instead of a table"""

    def __call__(self) -> None:
        """Run the algorithm, and show the invariant after every stage."""
        seeds = consecutive(self.seeds, self.first_seed)
        console, started = terminal(), time.monotonic()
        if self.samples < self.bound and not self.json:
            console.print(
                f"Note: batches of {self.samples:,} samples are below d^3 log(kT/.05) = {self.bound:,}; "
                "the theorem's guarantee does not hold, only what is measured here does."
            )
        with progress_bar("gradient steps") as progress:
            outcome = internalize_parity(self, list(seeds), progress)
        stages = outcome.invariant.sum(0).tolist()
        if self.json:
            measured = {
                "samples": self.samples,
                "updates": self.updates,
                "rate": self.rate,
                "bound": self.bound,
                "exact": outcome.exact.tolist(),
                "invariant": stages,
                "chain": outcome.chain.tolist(),
                "accuracy": outcome.accuracy.tolist(),
            }
            _print_row("parity", self, started, **measured)
            return
        if self.method == "internalize":
            table = Table("stage", "chain tokens", "invariant holds", title=f"parity of {self.support} of {self.bits} bits")
            for stage, holds in enumerate(stages, 1):
                table.add_row(str(stage), str(self.support - stage), f"{holds}/{self.seeds}")
            console.print(table)
        console.print(
            f"The final row computes the parity exactly: {_rate(outcome.exact)}; "
            f"mean accuracy without a chain {outcome.accuracy.mean():.3f}.\n"
            f"{self.updates} steps a stage of size {self.rate:.4g}, "
            f"{self.samples:,} samples each, {self.batches}; {time.monotonic() - started:.1f} s."
        )


@dataclasses.dataclass(frozen=True)
class TreeParity(TreeParityConfig):
    """Learn a binary-tree chain for parity in one gradient step with teacher forcing (Kim & Suzuki 2024), for many seeds."""

    seeds: int = 30
    """how many seeds, each with its own support"""
    first_seed: int = 0
    """the first of them"""
    json: bool = False
    """print one JSON object instead of a sentence"""

    def __call__(self) -> None:
        """Take the step, and show how many seeds write every chain token right."""
        seeds, started = consecutive(self.seeds, self.first_seed), time.monotonic()
        with progress_bar("seeds") as progress:
            outcome = learn_tree_parity(self, list(seeds), progress)
        if self.json:
            measured = {"samples": self.samples, "exact": outcome.exact.tolist(), "accuracy": outcome.accuracy.tolist()}
            _print_row("tree-parity", self, started, **measured)
            return
        print(
            f"Every row finds its two factors: {_rate(outcome.exact)}; "
            f"mean accuracy of the generated answer {outcome.accuracy.mean():.3f}.\n"
            f"One gradient step on {self.samples:,} samples; {time.monotonic() - started:.1f} s."
        )


_COLORS: dict[str, str] = {"direct": "c", "curriculum": "a", "mixture": "b", "shifted": "d"}


@dataclasses.dataclass(frozen=True)
class MLPParity(MLPParityConfig):
    """Noisy parity with a two-layer network: direct training, curriculum, mixture and shifted inputs at equal samples."""

    arm: tyro.conf.Suppress[Arm] = "curriculum"
    arms: tuple[Arm, ...] = ("direct", "curriculum", "mixture", "shifted")
    """direct: never a hint; curriculum: the stages in order, equally many steps each; mixture: a random stage for each
    example; shifted: never a hint, half of the inputs from biased bits"""
    seeds: int = 10
    """how many seeds, each with its own support"""
    first_seed: int = 0
    """the first of them"""
    chart: Path | None = None
    """write the curves to this SVG file"""
    json: bool = False
    """print one JSON row for each arm instead of a table"""

    def __call__(self) -> None:
        """Train every arm, and show the examples that each needs."""
        seeds = consecutive(self.seeds, self.first_seed)
        curves: dict[str, Curve] = {}
        title = f"parity of {self.support} of {self.bits} bits, noise {self.noise:g}"
        table = Table(title=title)
        for arm in self.arms:
            started, one = time.monotonic(), dataclasses.replace(self, arms=(arm,), arm=arm, chart=None)
            with progress_bar(f"{arm}: steps") as progress:
                curves[arm] = curve = train_mlp_parity(one, list(seeds), progress)
            measured = {"arm": arm, "samples": curve.samples.tolist(), "accuracy": curve.accuracy.round(4).tolist()}
            measured["samples_to_95"] = curve.samples_to()
            if self.json:
                _print_row("mlp-parity", one, started, **measured)
            cells = {"arm": arm, **learnt(measured)}
            if not table.columns:
                for name in cells:
                    table.add_column(name)
            table.add_row(*cells.values())
        if not self.json:
            terminal().print(table)
        if self.chart is not None:
            write_whole(self.chart, learning_curves(curves, title).encode())


def learnt(row: Mapping[str, Any]) -> dict[str, str]:
    """What a table tells of an arm's row: how it ends, and the examples that its seeds need."""
    reached = row["samples_to_95"]
    return {
        "final accuracy (least to greatest)": spread([curve[-1] for curve in row["accuracy"]]),
        "seeds that reach .95": str(success_rate([count is not None for count in reached])),
        "median examples to .95 (range of those that do)": needed(reached, row["samples"][-1]),
    }


def learning_curves(curves: dict[str, Curve], title: str) -> str:
    """Accuracy without hints against training examples: the mean of the seeds, with its 95 % interval."""
    xs = next(iter(curves.values())).samples.tolist()
    series = []
    for arm, curve in curves.items():
        lines = [("", list(zip(curve.samples.tolist(), seed, strict=True))) for seed in curve.accuracy.tolist()]
        series.append(over_seeds(lines, xs, arm, _COLORS[arm])[-1])
    return as_file(accuracy_chart(series, title, "training examples", xs))


def _print_row(name: str, command: Any, started: float, **measured: Any) -> None:
    """Print one JSON row: the command line that repeats it, what was measured, and where."""
    positional = [command.task] if name == "construct" else []
    settings = changed(command, "json", "chart", "arm", "out", "task")  # those change nothing that is measured
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({"command": command_line(name, settings, *positional), **measured, "seconds": seconds, **provenance()}))


def _rate(exact: Any) -> str:
    """The seeds that are exact, with Wilson's interval."""
    return f"{success_rate(exact.tolist())} seeds (Wilson 95 %)"
