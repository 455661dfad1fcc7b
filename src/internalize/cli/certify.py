"""`internalize certify`."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Column, Table

from internalize.api import certify, fast_when_sure
from internalize.checkpoint import write_whole
from internalize.cli.runs import changed, progress_bar
from internalize.engine.settings import command_line
from internalize.errors import UserError
from internalize.evaluation import Certificate
from internalize.evaluation.certificate import Share
from internalize.evaluation.selective import Selective
from internalize.provenance import provenance
from internalize.terminal import terminal


@dataclass(frozen=True)
class Certify:
    """Does a fast system internalize a slow one? One hypothesis class, equal answers, less time (paper, Definition 1)."""

    slow: Annotated[str, tyro.conf.Positional]
    """a run's directory, or one of its systems: DIR:slow, DIR:fast, DIR:chain (the final model with its full chain), DIR:7
    (seven chain units), DIR:vote:9 (the majority of nine sampled chains); rule (the task's own); mine.py:Slow"""
    fast: Annotated[str | None, tyro.conf.Positional] = None
    """the same; left out, the fast system of the first directory"""
    seed: int | None = None
    """the seed whose systems are meant; left out, the first finished one"""
    splits: tuple[str, ...] = ()
    """distributions of inputs; left out, uniform and the task's whole battery"""
    samples: int = 2000
    """fresh test inputs for each split"""
    draw: int = 0
    """which draw of them: whoever has seen one, and changed something since, takes the next number"""
    epsilon: float = 0.05
    """loss of accuracy that is allowed"""
    confidence: float = 0.95
    """confidence of the intervals, over all splits at once"""
    ood_search: bool = False
    """also search for the distribution on which the fast system is worst, and certify on fresh draws of it"""
    max_risk: float | None = None
    """also answer at once only where the fast system is sure, so that such answers are wrong at most this often (calibrated on
    uniform validation inputs), and ask the slow one elsewhere"""
    out: Path | None = None
    """also write the certificate to this JSON file"""
    json: bool = False
    """print one JSON object instead of a table"""

    def __call__(self) -> None:
        """Measure, and show the certificate."""
        shared: dict[str, Any] = {name: getattr(self, name) for name in ("seed", "splits", "samples", "confidence")}
        if self.draw < 0:
            raise UserError(f"--draw is {self.draw}; it must be at least 0.")
        shared["number"] = self.draw
        with progress_bar("searching for the worst inputs" if self.ood_search else "asking both systems") as progress:
            certificate = certify(
                self.slow,
                self.fast,
                epsilon=self.epsilon,
                search=self.ood_search,
                progress=progress,
                **shared,
            )
            sure = None
            if self.max_risk is not None:
                sure = fast_when_sure(self.slow, self.fast, max_risk=self.max_risk, **shared)
        systems = [self.slow] if self.fast is None else [self.slow, self.fast]
        command = command_line("certify", changed(self, "slow", "fast", "out", "json"), *systems)
        tell(command, certificate, sure, [self.out] if self.out is not None else [], self.json)


def tell(command: str, certificate: Certificate, sure: Selective | None, out: Sequence[Path], as_json: bool) -> None:
    """Write a certificate to the files that are named, and print it as JSON or for people. Raises `UserError`."""
    also = {} if sure is None else {"fast_when_sure": asdict(sure)}
    text = json.dumps({"command": command, **certificate.to_json(), **also, **provenance()})
    for path in out:
        try:
            write_whole(path, text.encode())
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror}).") from None
    if as_json:
        print(text)
        return
    print_certificate(certificate)
    if sure is not None:
        print_selective(sure)


def print_certificate(certificate: Certificate) -> None:
    """Print a certificate for people."""
    console = terminal()
    title = f"slow: {certificate.slow}; fast: {certificate.fast}"
    numbers = [Column(name, no_wrap=True) for name in ("distinct", "agree", "slow wrong", "fast wrong", "loss")]
    table = Table(Column("inputs", overflow="fold"), *numbers, title=title)
    for split in certificate.splits:
        shares = [f"{share.value:.3f}" for share in (split.agreement, split.slow_risk, split.fast_risk)]
        style = None if split.within else "bold"
        table.add_row(split.split, f"{split.distinct:,}", *shares, _interval(split.gap), style=style)
    console.print(table)
    for example in certificate.examples[:3]:
        said = f"slow {' '.join(example.slow)}, fast {' '.join(example.fast)}, right {' '.join(example.truth)}"
        console.print(f"They differ on {' '.join(example.input)} ({example.split}): {said}.")
    seconds = certificate.costs["seconds"]
    console.print(
        f"{certificate.sentence} Seconds for an input, in batches: {seconds.slow:.2g} slow, {seconds.fast:.2g} fast "
        f"({seconds.ratio:.3g} times)."
    )


def print_selective(sure: Selective) -> None:
    """Print what answering at once only where it is sure does on each split."""
    console = terminal()
    title = f"fast when sure: confidence at least {sure.threshold:.6g}, else slow"
    inputs = Column("inputs", overflow="fold")
    table = Table(inputs, "answered at once", "of these wrong", "all answers wrong", "tokens written", title=title)
    for split, point in sure.chosen.items():
        shares = f"{point.coverage:.3f}", f"{point.fast_risk:.3f}", f"{point.risk:.3f}"
        table.add_row(split, *shares, f"{point.tokens:.2f}", style="bold" if point.fast_risk > sure.max_risk else None)
    console.print(table)
    console.print(
        f"The threshold is chosen on validation inputs, where answers given at once are wrong at most "
        f"{sure.max_risk:g} of the time with {100 * sure.confidence:.0f} % confidence; bold splits exceed it."
    )


def _interval(share: Share) -> str:
    if share.low == share.high:
        return f"{share.value:.3f}"
    return f"{share.value:.3f} [{share.low:.3f}, {share.high:.3f}]"
