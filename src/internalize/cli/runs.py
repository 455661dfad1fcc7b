"""`internalize demo | run | resume | show`."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from internalize.config import ID, RunConfig
from internalize.errors import UserError
from internalize.launch import Ray
from internalize.terminal import terminal

if TYPE_CHECKING:  # what `--help` does not need is imported where it is used
    from rich.table import Table

    from internalize.runs import Run


@dataclass(frozen=True)
class Demo:
    """Watch a one-layer transformer fail end to end, learn with a chain, and absorb the chain (a few minutes)."""

    seed: int = 0
    """seed of all three trainings"""
    out: Path = Path("runs")
    """directory of all runs"""
    fresh: bool = False
    """train again although the demo was run before"""
    json: bool = False
    """print one JSON object instead of tables"""

    def __call__(self) -> None:
        """Run the demo."""
        from rich.table import Table

        from internalize.demo import run_demo

        outcome = run_demo(self.seed, self.out, self.fresh)
        if self.json:
            print(json.dumps({"arms": outcome.arms, "seconds": outcome.seconds}))
            return
        console = terminal()
        console.print(_stage_table(outcome.runs["left"], "The chain is taken away, one state at a time, from the left"))
        table = Table("regime", "chain tokens", "ID accuracy", "OOD accuracy", "steps", title=f"{outcome.title}: unseen inputs")
        for name, arm in outcome.arms.items():
            table.add_row(name, str(arm["chain"]), f"{arm['id']:.3f}", f"{arm['ood']:.3f}", f"{arm['steps']:,}")
        console.print(table)
        console.print(f"Chance is {outcome.chance:.3f}. The page with the curve: {outcome.report}")


@dataclass(frozen=True, kw_only=True)
class How:
    """How to train, whatever is trained."""

    processes: int | None = None
    """processes that train at once; left out: one for each core of a CPU, one for a GPU"""
    device: str = "cpu"
    """torch device"""
    together: int | None = None
    """seeds that one process trains at once; left out: 1 on a CPU, up to 32 on a GPU"""
    launcher: Literal["local", "ray"] = "local"
    """local: on this machine; ray: where Ray decides, with as many processes as the cluster has room for"""
    ray: Ray = field(default_factory=Ray)

    def how(self) -> dict[str, Any]:
        """As arguments of `train`. Raises `UserError`."""
        for flag in ("processes", "together"):
            value = getattr(self, flag)
            if value is not None and value < 1:
                raise UserError(f"--{flag} is {value}; it must be at least 1.")
        on_ray = self.launcher == "ray"
        if on_ray and self.processes is not None:
            raise UserError(
                "--processes is of the local launcher; Ray starts as many as --ray.cpus and --ray.gpus leave room for."
            )
        if not on_ray and self.ray != Ray():
            raise UserError("--ray.* needs --launcher ray.")
        local = {name: getattr(self, name) for name in ("processes", "device", "together")}
        return {**local, "ray": self.ray if on_ray else None}


@dataclass(frozen=True)
class RunCommand(How, RunConfig):
    """Train some seeds of one configuration, or go on with a run that was interrupted."""

    seeds: int = 1
    """how many seeds"""
    first_seed: int = 0
    """the first of them"""
    max_loss: float | None = None
    """name the shortest chain that loses at most this much accuracy against the full chain, chosen on validation inputs"""
    out: Path = Path("runs")
    """directory of all runs; this one gets a directory of its own there"""
    json: bool = False
    """print one JSON object instead of tables"""

    def __call__(self) -> None:
        """Train, then show the outcome."""
        from internalize.api import fit

        seeds = consecutive(self.seeds, self.first_seed)
        run = fit(self.config(), seeds=seeds, out=self.out, **self.how())
        print_run(run, self.json, self.max_loss)

    def config(self) -> RunConfig:
        """The run's configuration alone."""
        return RunConfig(**{entry.name: getattr(self, entry.name) for entry in fields(RunConfig)})


@dataclass(frozen=True)
class Resume(How):
    """Go on with every unfinished seed of a run, exactly as if it had not been interrupted."""

    directory: Annotated[Path, tyro.conf.Positional]
    """the run's directory"""
    json: bool = False
    """print one JSON object instead of tables"""

    def __call__(self) -> None:
        """Train on, then show the outcome."""
        from internalize.api import train
        from internalize.runs import load

        run = load(self.directory)
        train([run], run.unfinished, **self.how())
        print_run(run, self.json)


@dataclass(frozen=True)
class Show:
    """Show the outcome of a run: accuracy on every split, stage by stage and at the end."""

    directory: Annotated[Path, tyro.conf.Positional]
    """the run's directory"""
    json: bool = False
    """print one JSON object instead of tables"""
    max_loss: float | None = None
    """name the shortest chain that loses at most this much accuracy against the full chain, chosen on validation inputs"""
    rows: bool = False
    """print one JSON row for each seed, to be kept as a result"""

    def __call__(self) -> None:
        """Print it."""
        from internalize.runs import load

        run = load(self.directory)
        if self.rows:
            for row in run.rows():
                print(json.dumps(row))
        else:
            print_run(run, self.json, self.max_loss)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, told (done, in all)."""
    from rich.progress import Progress

    console = terminal(stderr=True)
    with Progress(*Progress.get_default_columns(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def changed(command: Any, *without: str) -> list[tuple[str, Any]]:
    """The settings of a command that differ from their defaults, but for those named `without`."""
    settings = [(entry, getattr(command, entry.name)) for entry in fields(command) if entry.name not in without]
    return [(entry.name, value) for entry, value in settings if value != entry.default]


def consecutive(seeds: int, first_seed: int) -> range:
    """The seeds that a command names. Raises `UserError`."""
    if seeds < 1 or first_seed < 0:
        raise UserError("--seeds must be at least 1, and --first-seed at least 0.")
    return range(first_seed, first_seed + seeds)


def check_loss(max_loss: float | None) -> None:
    """Raise `UserError` unless `--max-loss` is a loss of accuracy."""
    if max_loss is not None and not 0 <= max_loss < 1:
        raise UserError(f"--max-loss is {max_loss}; it must be at least 0 and below 1.")


def print_run(run: "Run", as_json: bool, max_loss: float | None = None) -> None:
    """Print a run's tables, or one JSON object."""
    from rich.table import Table

    check_loss(max_loss)
    frontier = run.frontier(max_loss)
    if as_json:
        outcome = {"directory": str(run.path), "config": run.config.to_json(), "splits": run.table().to_dicts()}
        outcome |= {"stages": run.stages().to_dicts(), "frontier": frontier.to_dicts()}
        print(json.dumps({**outcome, "seeds": run.results}))
        return
    console = terminal()
    if run.results[0]["stages_reached"] > 1:
        console.print(_stage_table(run, "Stage by stage"))
    seeds = f"{len(run.seeds)} seed" + "s" * (len(run.seeds) > 1)
    table = Table("inputs", "no chain", "success", "full chain", title=f"{run.path.name}: {seeds}, unseen inputs, final model")
    for row in run.table().to_dicts():
        spread = f" ({row['direct_min']:.3f} to {row['direct_max']:.3f})" if len(run.seeds) > 1 else ""
        success = f"{row['success']} [{row['success_low']:.2f}, {row['success_high']:.2f}]"
        table.add_row(row["split"], f"{row['direct']:.3f}{spread}", success, f"{row['full_chain']:.3f}")
    console.print(table)
    if max_loss is not None:
        for row in frontier.filter("chosen").to_dicts():
            console.print(
                f"Seed {row['seed']}: within {max_loss:g} of the full chain with {row['shown']} chain tokens "
                f"(test accuracy ID {row['id']:.3f}, OOD {row['ood']:.3f}; weights: stages/{row['stage']}.safetensors)."
            )
    console.print(f"Success: accuracy above 95 %, with Wilson's 95 % interval over seeds. Page: {run.page}")


def _stage_table(run: "Run", title: str) -> "Table":
    from rich.table import Table

    ood = run.config.test_splits()[1]
    table = Table("chain tokens", "ID at the switch", "ID adapted", f"OOD adapted ({ood})", "ID, full chain", title=title)
    rows = {(row["stage"], row["split"]): row for row in run.stages().to_dicts()}
    for (stage, split), row in rows.items():
        if split == ID:
            numbers = row["switch"], row["adapted"], rows[stage, ood]["adapted"], row["full_chain"]
            table.add_row(str(row["shown"]), *("-" if number is None else f"{number:.3f}" for number in numbers))
    return table
