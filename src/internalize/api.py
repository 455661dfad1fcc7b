"""From Python: `fit` trains every seed of one configuration, `train` those of several, `construct` writes weights
down, `certify` asks whether a fast system internalizes a slow one, `probe_run` looks into the models."""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from internalize import own_code
from internalize.checking import check_device
from internalize.checkpoint import write_whole
from internalize.config import ID, RunConfig
from internalize.engine.course import Course
from internalize.engine.settings import command_line, file_name, tuples
from internalize.errors import UserError
from internalize.evaluation import Certificate, Procedure, Rule, worst_distribution
from internalize.evaluation import certify as compare
from internalize.evaluation.certificate import draw
from internalize.evaluation.probes import Probes, along, of_stages, probe
from internalize.evaluation.selective import Selective, select
from internalize.launch import Job, Ray, cores, display, make_plan, run_jobs, run_jobs_on_ray
from internalize.learners.data import check_data
from internalize.learners.sandbox import SandboxLearner, new_model
from internalize.runs import Run, load
from internalize.seeding import numpy_stream
from internalize.tasks import Simulation, Task, inline, make
from internalize.terminal import terminal
from internalize.theory import Construction, Verification, verify
from internalize.theory import construct as exact
from internalize.theory.constructions import Via


def fit(
    config: RunConfig | None = None,
    *,
    seeds: int | Sequence[int] = 1,
    out: str | Path = "runs",
    processes: int | None = None,
    device: str = "cpu",
    together: int | None = None,
    ray: Ray | None = None,
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
        ray: the Ray cluster that trains, if not this process's machine; it decides how many processes train at once.
        quiet: say nothing on standard error.
        fields: fields of `RunConfig` to replace, such as `task="C3"`; groups take a mapping, as `optimizer={"lr": 3e-4}`.

    Raises:
        UserError: for a setting that makes no sense, and when a seed cannot be trained.

    An interrupted call continues where it was saved when it is made again.
    """
    config = configure(config or RunConfig(), **fields)
    run = Run(Path(out) / config.name(), config)
    train([run], seed_list(seeds), processes=processes, device=device, together=together, ray=ray, quiet=quiet)
    return run


def train(
    runs: Sequence[Run],
    seeds: Sequence[int],
    *,
    processes: int | None = None,
    device: str = "cpu",
    together: int | None = None,
    ray: Ray | None = None,
    quiet: bool = False,
    plan: bool = True,
) -> None:
    """Train the given seeds of several runs side by side, with progress on standard error, and write their reports.

    `plan` says before the start what each will cost; the other arguments are those of `fit`.
    """
    console = terminal(stderr=True, quiet=quiet)
    if ray is None:
        check_device(device)
    for run in runs:
        check_data(run.config)  # what cannot be drawn is told before anything is written
    jobs = []
    for run in runs:
        run.create(seeds)
        every = [
            Job(f"{own_code.short(run.config.curriculum)} seed {seed}", run.config, seed, run.seed_directory(seed))
            for seed in seeds
        ]
        unfinished = [job for job in every if not job.finished]
        if len(unfinished) < len(every):
            console.print(f"{run.path}: {len(every) - len(unfinished)} of {len(every)} seeds were finished before.")
        if unfinished and plan and not quiet:
            planned = make_plan(run.config, len(unfinished), processes or cores())
            console.print(f"{own_code.short(run.config.curriculum)}: {planned.text()}")
        jobs += unfinished
    with display(console) as show:
        for job in jobs:
            show.add(job)
        trained = [run for run in runs if any(job.directory.parent == run.path for job in jobs)]
        try:
            if ray is None:
                run_jobs(jobs, show, processes, device=device, together=together)
            else:
                run_jobs_on_ray(jobs, show, ray, device, together)
        except BaseException:  # some seeds failed, or it was interrupted: the page still shows the others, and hides no error
            for run in trained:
                with suppress(Exception):
                    _page(run)
            raise
        for run in runs:
            if run in trained or not run.page.exists():
                _page(run)


def _page(run: Run) -> None:
    """Draw a run's page, if a seed is finished. Raises `UserError` when it cannot be written."""
    if run.seeds:
        try:
            run.report()
        except OSError as error:
            raise UserError(f"{run.page}: cannot be written ({error.strerror}); the run itself is saved.") from None


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
    learner = SandboxLearner(config, 0, run.seed_directory(0))
    learner.model = made.model
    Course(learner).adopt(**origin)
    run.report()
    return run


def certify(
    slow: str | Path | Procedure,
    fast: str | Path | Procedure | None = None,
    *,
    task: Task | None = None,
    seed: int | None = None,
    splits: Sequence[str] = (),
    samples: int = 2000,
    number: int = 0,
    epsilon: float = 0.05,
    confidence: float = 0.95,
    search: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """Does the fast system internalize the slow one (paper, Definition 1)?

    Args:
        slow: a `Procedure`, or where to find one: a run's directory, with the system behind a colon ("DIR:slow", "DIR:7",
            "DIR:vote:9"; see `Run.procedure`), "rule" (the task's own), or a class of your own ("mine.py:Slow"). A bare
            directory means its slow system.
        fast: the same; a bare directory means its fast system. Left out: that of the run that `slow` names.
        task: what is asked; left out, that of the run.
        seed: of which seed; left out, of the first finished one.
        splits: distributions of inputs; left out, uniform and the task's whole battery.
        samples: fresh test inputs of each.
        number: of the draw; each number gives other fresh inputs.
        epsilon: the loss of accuracy that is allowed.
        confidence: of each kind of interval, over all splits at once.
        search: also look for the distribution on which fast is worst, and certify on fresh draws of it.
        progress: told (rounds of the search done, in all).

    Raises:
        UserError: for what cannot be found or asked, and for two runs of different tasks.
    """
    slow, fast, asked = _systems(slow, fast, task, seed)
    if samples < 1:
        raise UserError(f"samples is {samples}; it must be at least 1.")
    names = tuple(splits) or (ID, *asked.battery())
    if search:
        worst, _ = worst_distribution(slow, fast, asked, progress=progress)
        names = (*names, worst)
    fresh = draw(asked, names, samples, number)
    return compare(slow, fast, asked, fresh, epsilon=epsilon, confidence=confidence, seed=seed or 0)


def fast_when_sure(
    slow: str | Path | Procedure,
    fast: str | Path | Procedure | None = None,
    *,
    max_risk: float,
    task: Task | None = None,
    seed: int | None = None,
    splits: Sequence[str] = (),
    samples: int = 2000,
    number: int = 0,
    calibration: Sequence[str] = (ID,),
    confidence: float = 0.95,
) -> Selective:
    """Answer at once where the fast system is confident, else ask the slow one (ours). What is not named here is as for
    `certify`.

    Args:
        max_risk: how often the answers that are given at once may be wrong, on inputs like those of the calibration.
        calibration: distributions of the validation inputs that the threshold is chosen on, in equal shares.
        confidence: that the risk is kept.

    Raises:
        UserError: as `certify`, and for a risk outside (0, 1).
    """
    slow, fast, asked = _systems(slow, fast, task, seed)
    if samples < 1:
        raise UserError(f"samples is {samples}; it must be at least 1.")
    stream = numpy_stream(0, "calibration inputs")
    inputs = np.concatenate([asked.sample_inputs(name, samples, stream, "validation") for name in calibration])
    fresh = draw(asked, tuple(splits) or (ID, *asked.battery()), samples, number)
    return select(fast, slow, asked, inputs, fresh, max_risk, confidence, seed or 0)


def probe_run(
    directory: str | Path,
    *,
    seed: int | None = None,
    stages: int = 4,
    samples: int = 2000,
    distribution: str = ID,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[int, Probes]:
    """Probe the models of a run along its stages (ours); write probes.json in the seed's directory, and draw the page anew.

    Args:
        directory: of the run.
        seed: whose models; the first finished one by default.
        stages: how many stages at most, evenly spaced, with the first and the last.
        samples, distribution: as for `evaluation.probes.probe`.
        progress: told (stages done, in all).

    Returns:
        What was found, by stage.

    Raises:
        UserError: for a seed that is not finished, and for numbers that make no sense.
    """
    run = load(directory)
    chosen = run.seed(seed)
    if stages < 1:
        raise UserError(f"stages is {stages}; it must be at least 1.")
    task, curriculum = run.config.make_task(), run.config.make_curriculum()
    task.check(distribution)
    untrained = new_model(run.config, chosen)
    picked = along(run.last_stage(chosen) + 1, stages) if stages > 1 else [run.last_stage(chosen)]
    found = {}
    for number, stage in enumerate(picked):
        view = curriculum.target(task.units, stage)
        model = run.model(stage, chosen)
        found[stage] = probe(model, untrained, task, view, samples=samples, distribution=distribution)
        progress(number + 1, len(picked))
    write_whole(run.seed_directory(chosen) / "probes.json", json.dumps(of_stages(found)).encode())
    run.report()
    return found


def _systems(
    slow: str | Path | Procedure, fast: str | Path | Procedure | None, task: Task | None, seed: int | None
) -> tuple[Procedure, Procedure, Task]:
    """Both systems, and the task that is asked."""
    if fast is None:
        fast = slow if isinstance(slow, Procedure) else _place(slow)[0]
    runs = [load(_place(system)[0]) for system in (slow, fast) if not isinstance(system, Procedure) and _place(system)[0]]
    tasks = {run.path: run.config.make_task() for run in runs}
    asked = task or next(iter(tasks.values()), None)
    if asked is None:
        raise UserError("neither system is a run's; name a run's directory for one of them, so that there is a task.")
    for path, other in tasks.items():
        if (other.name, other.longest, other.inputs) != (asked.name, asked.longest, asked.inputs):
            raise UserError(
                f"{path}: its task is {other.name} with other inputs than {asked.name} here; certify runs of one task."
            )
    return _system(slow, "slow", asked, seed), _system(fast, "fast", asked, seed), asked


def _place(where: str | Path) -> tuple[str, str]:
    """The run's directory and the system's name in "DIR:which"; no directory for "rule" and "mine.py:Slow"."""
    text = str(where)
    if text == "rule" or own_code.is_own(text):
        return "", text
    directory, _, which = text.partition(":")
    return directory, which


def _system(where: str | Path | Procedure, default: str, task: Task, seed: int | None) -> Procedure:
    """The procedure that `where` names."""
    if isinstance(where, Procedure):
        return where
    directory, which = _place(where)
    if directory:
        return load(directory).procedure(which or default, seed)
    if which == "rule":
        return Rule(task)
    made = own_code.make(which)
    if not isinstance(made, Procedure):
        raise UserError(f"{own_code.who(which)} is not a procedure: it needs a name, a hypothesis_class, and to be callable.")
    return made


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


def configure(config: RunConfig, **fields: Any) -> RunConfig:
    """`config` with fields replaced. Raises `UserError` for a name that is not a field."""
    for name, value in fields.items():
        known = {entry.name for entry in dataclasses.fields(RunConfig)}
        if name not in known:
            raise UserError(f'"{name}" is not a setting of a run; the settings are {", ".join(sorted(known))}.')
        group = getattr(config, name)
        if dataclasses.is_dataclass(group) and isinstance(value, Mapping):
            try:
                fields[name] = dataclasses.replace(group, **tuples(value))  # type: ignore[type-var]
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
