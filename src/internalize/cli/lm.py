"""`internalize lm check | fit | show | certify | collect | example`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from internalize import curricula
from internalize.cli.certify import tell
from internalize.cli.runs import changed, check_loss, progress_bar
from internalize.curricula import RemovalConfig
from internalize.engine.settings import command_line
from internalize.errors import UserError
from internalize.lm import need, quiet
from internalize.lm.baselines import read_baselines, train_baselines
from internalize.lm.check import Checked, check
from internalize.lm.collect import collect
from internalize.lm.config import LMConfig
from internalize.lm.example import Architecture, write_example
from internalize.lm.pretrained import load_tokenizer, longest_row
from internalize.lm.processes import Processes
from internalize.lm.report import MODES, write_lm_report
from internalize.lm.rows import Reading
from internalize.lm.runs import CERTIFICATE, LMRun, certify, load, rows, union
from internalize.lm.tokens import Template, Units
from internalize.lm.training import fit
from internalize.terminal import terminal


@dataclass(frozen=True)
class Fit(LMConfig):
    """Take the chain of thought away from a language model, piece by piece, or go on with a run that was interrupted."""

    max_loss: float | None = None
    """name the shortest chain that loses at most this much accuracy against the first stage, chosen on validation records"""
    baselines: bool = False
    """afterwards also train what it is to be compared with, at as many training tokens: no chain, fillers, the full chain, no
    curriculum, and the model's own right answers without their chains"""
    out: Path = Path("runs")
    """directory of all runs; this one gets a directory of its own there"""
    json: bool = False
    """print one JSON object instead of tables"""

    def __call__(self) -> None:
        """Train, then show the outcome."""
        check_loss(self.max_loss)
        config = LMConfig(**{entry.name: getattr(self, entry.name) for entry in fields(LMConfig)})
        processes = Processes.here(config.device)
        self._fit(config, processes.first)
        processes.end()

    def _fit(self, config: LMConfig, first: bool) -> None:
        console = terminal(stderr=True)
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with Progress(*columns, console=console, disable=not first) as bar:
            task = bar.add_task("reading")
            run = load(fit(config, self.out, lambda event: _told(event, bar, task)))
            if self.baselines:
                train_baselines(run, lambda name: lambda event: _told(event, bar, task, f"{name}: "))
        if not first:  # of several processes, one tells
            return
        page = write_lm_report(run, run.path / "report.html")
        print_lm_run(run, self.json, self.max_loss)
        if not self.json:
            print(f"Report: {page}")


@dataclass(frozen=True)
class Show:
    """Show the outcome of a run: accuracy and tokens at each stage, and at the end."""

    directory: Annotated[Path, tyro.conf.Positional]
    """the run's directory"""
    max_loss: float | None = None
    """name the shortest chain that loses at most this much accuracy against the first stage, chosen on validation records"""
    json: bool = False
    """print one JSON object instead of tables"""
    rows: bool = False
    """print one JSON row, to be kept as a result"""

    def __call__(self) -> None:
        """Print it."""
        run = load(self.directory)
        if self.rows:
            for row in rows(run):
                print(json.dumps(row))
        else:
            print_lm_run(run, self.json, self.max_loss)


@dataclass(frozen=True)
class Check:
    """Look at files of records before anything is trained: bad rows with their lines, lengths, duplicates, overlap, stages."""

    files: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """files of records; overlap is told for each pair"""
    model: str | None = None
    """also tokenize, for this model"""
    format: str | None = None
    """of the files; left out, it is told from their first rows"""
    delimiter: str | None = None
    """what separates the steps of a chain"""
    units: Units = "step"
    """what a curriculum takes away at a time"""
    curriculum: str = "left"
    """whose stages are shown for three rows"""
    chat: bool = False
    """ask in the tokenizer's chat template, conversations as they are"""
    instruction: str = ""
    """text before each question"""
    json: bool = False
    """print one JSON object instead of text"""

    def __call__(self) -> None:
        """Check; rows that cannot be used make the exit code 2."""
        if not self.files:
            raise UserError("name at least one file of records.")
        curriculum = curricula.make(self.curriculum, RemovalConfig())
        reading = None
        if self.model is not None:
            need("transformers")
            quiet()
            template = Template(self.chat, self.instruction)
            reading = Reading(load_tokenizer(self.model), template, self.units, longest_row(self.model))
        found = check(self.files, curriculum, reading, self.format, self.delimiter)
        if self.json:
            print(json.dumps([asdict(one) for one in found]))
        else:
            for one in found:
                print_checked(one, self.chat)
        bad = [(one.path, line, why) for one in found for line, why in one.bad]
        if bad:
            path, line, why = bad[0]
            raise UserError(f"{path}, line {line}: {why}. {len(bad):,} row(s) cannot be used.")


@dataclass(frozen=True)
class Certify:
    """Does the fast model internalize the slow one, on your data? One class, equal answers, less time (paper, Definition 1)."""

    slow: Annotated[str, tyro.conf.Positional]
    """a model's folder, which writes its chain; or a run's directory: its first stage"""
    fast: Annotated[str | None, tyro.conf.Positional] = None
    """a model's folder, which answers at once; or a run's directory: its last stage; left out, that of the first directory,
    in which the certificate is then kept and shown in the report"""
    data: tuple[str, ...] = ()
    """test records, on which no choice was made: paths, or name=path"""
    valid: Path | None = None
    """validation records, for --max-risk"""
    max_risk: float | None = None
    """also answer at once only where the fast model is sure, so that such answers are wrong at most this often"""
    score: str | None = None
    """a scorer of your own, mine.py:score"""
    epsilon: float = 0.05
    """loss of accuracy that is allowed"""
    confidence: float = 0.95
    """confidence of the intervals, over all files at once"""
    samples: int = 0
    """rows of each file; 0: all"""
    ask_batch: int = 128
    """rows asked at once"""
    out: Path | None = None
    """also write the certificate to this JSON file"""
    json: bool = False
    """print one JSON object instead of a table"""

    def __call__(self) -> None:
        """Measure, and show the certificate."""
        if not self.data:
            raise UserError("--data is missing; name at least one file of test records.")
        certificate, sure = certify(
            self.slow,
            self.fast or self.slow,
            union(self.data),
            valid=self.valid,
            max_risk=self.max_risk,
            score=self.score,
            epsilon=self.epsilon,
            confidence=self.confidence,
            batch=self.ask_batch,
            samples=self.samples,
        )
        systems = [self.slow] if self.fast is None else [self.slow, self.fast]
        command = command_line("lm certify", changed(self, "slow", "fast", "out", "json"), *systems)
        run = Path(self.slow) if self.fast is None and (Path(self.slow) / "stages").is_dir() else None
        kept = [path for path in (self.out, run and run / CERTIFICATE) if path is not None]
        tell(command, certificate, sure, kept, self.json)
        if run is not None and (run / "result.json").exists():
            write_lm_report(load(run), run / "report.html")


@dataclass(frozen=True)
class Collect:
    """Sample a model's own chains and keep those whose answer is right (or is what most say): data to internalize itself."""

    model: str
    """a folder, or a Hub name"""
    data: Path
    """questions, one JSON object a line: "question", and "answer" where it is known"""
    out: Path = Path("collected.jsonl")
    """file of records; what it holds already is kept"""
    samples: int = 8
    """chains for each question"""
    keep: int = 1
    """different good chains that are kept for a question at most"""
    temperature: float = 1.0
    """of the sampling"""
    most: int = 512
    """tokens of a chain and its answer at most"""
    chat: bool = False
    """ask in the tokenizer's chat template, conversations as they are"""
    instruction: str = ""
    """text before each question, such as: think step by step, a step a line, and end with #### and the answer"""
    score: str | None = None
    """a scorer of your own, mine.py:score"""
    batch: int = 16
    """questions at once"""
    seed: int = 0
    """of the sampling"""
    device: str = "cpu"
    """cpu or cuda"""

    def __call__(self) -> None:
        """Sample, and say how much was kept."""
        settings = {
            entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name not in ("chat", "instruction")
        }
        with progress_bar("asking") as progress:
            found = collect(**settings, template=Template(self.chat, self.instruction), progress=progress)
        print(
            f"{found.questions:,} questions, {found.chains:,} chains, {found.kept:,} records written to {self.out}; "
            f"{found.without:,} questions have no good chain."
        )


@dataclass(frozen=True)
class Example:
    """Write data and a small untrained model, so that everything can be tried without a download."""

    kind: Annotated[Literal["multiply", "story"], tyro.conf.Positional] = "multiply"
    """multiply: products of two numbers with the chain of Deng et al.; story: sums told in words, a sentence a step"""
    size: int = 3
    """digits, or events of a story"""
    architecture: Architecture = "gpt2"
    """of the model"""
    rows: int = 20_000
    """training rows"""
    seed: int = 0
    """of data and weights"""
    out: Path = Path("example")
    """directory"""

    def __call__(self) -> None:
        """Write them, and say what to do next."""
        example = write_example(self.kind, self.size, self.architecture, self.out, self.rows, self.seed)
        units = "token" if self.kind == "multiply" else "step"
        files = example.files
        print(f"Written to {self.out}. Next:")
        print(
            f"internalize lm fit --model {example.model} --data {files['train']} --valid {files['valid']} "
            f"--test {files['test']} --ood biased={files['biased']} --units {units} --lr 0.0005"
        )


def _told(event: Mapping[str, Any], bar: Progress, task: Any, name: str = "") -> None:
    """What a run says while it trains."""
    if event["kind"] == "plan":
        bar.console.print(name + event["text"])
    elif event["kind"] == "check" and event["validation"] is not None:
        bar.update(
            task,
            description=f"{name}stage {event['stage'] + 1}/{event['stages']}  step {event['step']:,}  "
            f"valid {event['validation']:.3f}",
        )
    elif event["kind"] == "test" and event["mode"] == "stage" and event["moment"] == "adapted":
        bar.console.print(
            f"{name}stage {event['stage'] + 1}/{event['stages']}  shown {event['shown']}  step {event['step']:,}  "
            f"{event['split']} {event['accuracy']:.3f}  tokens {event['tokens']:.1f}"
        )


def print_checked(found: Checked, chat: bool) -> None:
    """Print what was found in one file."""
    console = terminal()
    steps = ", ".join(f"{count:,} with {steps} steps" for steps, count in found.steps.items())
    console.print(f"{found.path}: {found.good:,} of {found.rows:,} rows can be used ({steps}).")
    for line, why in found.bad:
        console.print(f"  line {line}: {why}")
    if found.tokens:
        least, middle, many, most = found.tokens
        console.print(f"  tokens in a row: {least:.0f} to {most:.0f}, median {middle:.0f}, 90th percentile {many:.0f}")
    if found.too_long:
        console.print(f"  {len(found.too_long):,} rows have more tokens than the model reads: lines {_some(found.too_long)}")
    if found.duplicates:
        console.print(f"  {len(found.duplicates):,} questions occur again: lines {_some(found.duplicates)}")
    if found.conflicts:
        console.print(f"  {len(found.conflicts):,} of them with another answer than at first: lines {_some(found.conflicts)}")
    if found.conversations and not chat:
        console.print(f"  {found.conversations:,} rows are conversations; without --chat their roles are lost")
    for other, count in found.overlap.items():
        console.print(f"  {count:,} of its questions are also in {other}")
    for row in found.shown:
        console.print("  what the stages show:")
        for stage, text in enumerate(row):
            console.print(f"    {stage}: {text!r}")


def _some(lines: list[int]) -> str:
    return ", ".join(map(str, lines[:10])) + (" ..." if len(lines) > 10 else "")


def print_lm_run(run: LMRun, as_json: bool, max_loss: float | None) -> None:
    """Print a run's stages and final accuracy, or one JSON object."""
    check_loss(max_loss)
    chosen = None if max_loss is None else run.choose(max_loss)
    if as_json:
        known = read_baselines(run)
        beside = {"baselines": known} if known else {}
        print(json.dumps({"directory": str(run.path), **rows(run)[0], "chosen": chosen, **beside}))
        return
    console = terminal()
    names = list(run.config.tests())
    headers = [f"{name}{extra}" for name in names for extra in (" at the switch", "")]
    texts = ["perplexity of the text"] if run.config.text else []
    table = Table("stage", "shown", "step", *headers, "tokens written", *texts, title=f"{run.path.name}: exact match")
    for stage in run.stages():
        numbers = [stage[moment].get(name) for name in names for moment in ("switch", "adapted")]
        cells = ["-" if number is None else f"{number:.3f}" for number in numbers]
        table.add_row(
            str(stage["stage"]),
            str(stage["shown"]),
            f"{stage['step']:,}",
            *cells,
            f"{stage['tokens'][names[0]]:.1f}",
            *([f"{stage['perplexity']:.4g}"] if texts else []),
        )
    console.print(table)
    if texts:
        console.print(f"Perplexity of {run.config.text} before training: {run.result['perplexity']['given']:.4g}")
    final = Table("mode", "file", "accuracy", "95 %", "tokens written", "of them before the answer", title="the last model")
    for mode, named in MODES.items():
        for name, row in run.result["final"].get(mode, {}).items():
            interval = f"{row['low']:.3f} to {row['high']:.3f}"
            final.add_row(
                named, name, f"{row['accuracy']:.3f}", interval, f"{row['tokens']:.1f}", f"{row['before_answer']:.1f}"
            )
    console.print(final)
    _print_baselines(read_baselines(run), names, console)
    if run.config.test is None:
        console.print('No test file was given: "test" is the validation file, on which stages were judged.')
    if chosen is not None:
        console.print(
            f"Within {max_loss:g} of the first stage on the validation records: {chosen['shown']} {run.config.units}s shown, "
            f"{run.folder(chosen['stage'])}"
        )
    else:
        console.print(f"Models: {run.path / 'stages'}")


def _print_baselines(table: list[dict[str, Any]], names: list[str], console: Console) -> None:
    if not table:
        return
    columns = [f"{name} (95 %)" for name in names]
    shown = Table("trained as", *columns, "tokens written", "training tokens", title="beside its baselines")
    for row in table:
        cells = [row["files"][name] for name in names]
        right = [f"{one['accuracy']:.3f} ({one['low']:.3f} to {one['high']:.3f})" for one in cells]
        shown.add_row(row["name"], *right, f"{cells[0]['tokens']:.1f}", f"{row['tokens']:,}")
    console.print(shown)
