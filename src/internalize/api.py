"""From Python: `fit` trains every seed of one configuration, `train` those of several, `construct` writes weights down."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from internalize.config import RunConfig, command_line, file_name
from internalize.errors import UserError
from internalize.launch import Job, cores, display, make_plan, run_jobs
from internalize.runs import Run
from internalize.tasks import Simulation, inline, make
from internalize.theory import Construction, Verification, verify
from internalize.theory import construct as exact
from internalize.theory.constructions import Via
from internalize.training import SeedRun, check_data


def fit(
    config: RunConfig | None = None,
    *,
    seeds: int | Sequence[int] = 1,
    out: str | Path = "runs",
    processes: int | None = None,
    device: str = "cpu",
    together: int | None = None,
    quiet: bool = False,
    **fields: Any,
) -> Run:
    """Train every seed of a configuration, skip those that are finished, and return the run.

    Args:
        config: the configuration to start from; the defaults when left out.
        seeds: how many seeds (0, 1, ...), or the seeds themselves.
        out: the directory of all runs; this one gets a directory of its own there.
        processes: processes that train at once; left out, one for each core of a CPU, and one for a GPU.
        device: a torch device, such as "cpu" or "cuda".
        together: seeds that one process trains at once; left out, 1 on a CPU and up to 32 on a GPU.
        quiet: say nothing on standard error.
        fields: fields of `RunConfig` to replace, such as `task="C3"`; groups take a mapping, as `optimizer={"lr": 3e-4}`.

    Raises:
        UserError: for a setting that makes no sense, and when a seed cannot be trained.

    An interrupted call continues where it was saved when it is made again.
    """
    config = configure(config or RunConfig(), **fields)
    run = Run(Path(out) / config.name(), config)
    train([run], seed_list(seeds), processes=processes, device=device, together=together, quiet=quiet)
    return run


def train(
    runs: Sequence[Run],
    seeds: Sequence[int],
    *,
    processes: int | None = None,
    device: str = "cpu",
    together: int | None = None,
    quiet: bool = False,
) -> None:
    """Train the given seeds of several runs side by side, with progress on standard error, and write their reports."""
    console = Console(stderr=True, quiet=quiet, highlight=False)
    check_device(device)
    for run in runs:
        check_data(run.config)  # what cannot be drawn is told before anything is written
    jobs = []
    for run in runs:
        run.create()
        every = [Job(f"{run.config.curriculum} seed {seed}", run.config, seed, run.seed_directory(seed)) for seed in seeds]
        unfinished = [job for job in every if not job.finished]
        if len(unfinished) < len(every):
            console.print(f"{run.path}: {len(every) - len(unfinished)} of {len(every)} seeds were finished before.")
        if unfinished and not quiet:
            plan = make_plan(run.config, len(unfinished), processes or cores())
            console.print(f"{run.config.curriculum}: {plan.text()}")
        jobs += unfinished
    with display(console) as show:
        for job in jobs:
            show.add(job)
        try:
            run_jobs(jobs, show, processes, device=device, together=together)
        finally:  # when some seeds fail, the page still shows the others
            for run in runs:
                if run.seeds:
                    run.report()


def construct(
    task: str,
    *,
    steps: int = 25,
    via: Via = "scan",
    inputs: int = 1_000_000,
    out: str | Path = "runs",
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Write down an exact transformer (`theory/constructions.py`), verify it, and return it as a run of one seed.

    Args:
        task: a counter such as "C12"; for `via="scan"` any group or the JSON file of an automaton.
        steps: input symbols T.
        via: the construction.
        inputs: inputs to verify where there are more than 2^20 in all.
        out: the directory of all runs; this one gets a directory of its own there.
        progress: told (inputs verified, inputs in all).

    Raises:
        UserError: when the construction is not for this automaton, or when it is not exact in float32. Nothing is written then.
    """
    problem, made, checked = verified(task, steps, via, inputs, progress)
    config = RunConfig(task=task, steps=steps, curriculum="e2e", model=made.model.config)
    check_data(config)
    run = Run(Path(out) / file_name(f"{problem.name}-T{steps}-{via}"), config)
    run.create()
    command = command_line("construct", [("steps", steps), ("via", via), ("inputs", inputs)], task)
    origin = {"command": command, "construction": made.summary(), "verification": dataclasses.asdict(checked)}
    SeedRun(config, 0, run.seed_directory(0), lambda _: None).adopt(made.model, **origin)
    run.report()
    return run


def verified(
    task: str, steps: int, via: Via, inputs: int, progress: Callable[[int, int], None] | None = None
) -> tuple[Simulation, Construction, Verification]:
    """The task, its construction and the outcome of the check, of which nothing is written. Raises `UserError`."""
    problem = make(inline(task), steps)
    if not isinstance(problem, Simulation):
        raise UserError(f'task "{task}" is not a semiautomaton; a construction simulates one, such as C12 or S3.')
    made = exact(problem, via)
    checked = verify(made.model, problem, inputs, progress=progress)
    if checked.errors:
        wrong = " ".join(checked.counterexample or ())
        raise UserError(
            f"{problem.name} over {steps} steps via {via} is not exact in float32: {checked.errors:,} of {checked.positions:,} "
            f"positions are wrong, the first after {wrong}. Take fewer steps; nothing was written."
        )
    return problem, made, checked


def check_device(device: str) -> None:
    """Raise `UserError` unless torch can put a tensor on `device`."""
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch raises either for a device that it lacks
        raise UserError(f'device "{device}" cannot be used: {str(error).splitlines()[0]}') from None


def configure(config: RunConfig, **fields: Any) -> RunConfig:
    """`config` with fields replaced. Raises `UserError` for a name that is not a field."""
    for name, value in fields.items():
        known = {entry.name for entry in dataclasses.fields(RunConfig)}
        if name not in known:
            raise UserError(f'"{name}" is not a setting of a run; the settings are {", ".join(sorted(known))}.')
        group = getattr(config, name)
        if dataclasses.is_dataclass(group) and isinstance(value, Mapping):
            try:
                fields[name] = dataclasses.replace(group, **value)  # type: ignore[type-var]
            except TypeError as error:
                raise UserError(f"{name}: {error}.") from None
        elif isinstance(value, list):
            fields[name] = tuple(value)
    return dataclasses.replace(config, **fields)


def seed_list(seeds: int | Sequence[int]) -> list[int]:
    """0..n-1 for a number, else the seeds as they are. Raises `UserError` for none, doubles and negative ones."""
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen or len(set(chosen)) < len(chosen) or min(chosen) < 0:
        raise UserError(f"seeds is {seeds}; give a number of at least 1, or a list of different seeds from 0 on.")
    return chosen
