"""Runs of `internalize lm fit` on disk: their outcome, the stage to take, and whether it internalized the first one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from internalize import curricula, own_code
from internalize.checkpoint import read_values
from internalize.curricula import Curriculum, RemovalConfig
from internalize.engine.journal import kept_attempts, read_metrics
from internalize.engine.settings import LANGUAGE_MODEL, SANDBOX, kind_of
from internalize.errors import UserError
from internalize.evaluation import Certificate
from internalize.evaluation import certify as compare
from internalize.evaluation.selective import Selective, select
from internalize.lm import need, quiet
from internalize.lm.config import LMConfig
from internalize.lm.evaluation import LMProcedure, Questions, Speaker, scorer
from internalize.lm.pretrained import load_model, load_tokenizer, longest_row
from internalize.lm.rows import Asked, Reading
from internalize.lm.tokens import Template, add_specials
from internalize.lm.training import STAGE_FILE

CERTIFICATE = "certificate.json"  # in a run's directory


@dataclass(frozen=True)
class LMRun:
    """A finished run."""

    path: Path
    config: LMConfig

    @cached_property
    def result(self) -> dict[str, Any]:
        """result.json. Raises `UserError` when the run is not finished."""
        file = self.path / "result.json"
        result = read_values(file)
        if result is None:
            raise UserError(f"{self.path}: it is not finished; give its command again to go on.")
        return result

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl."""
        return list(map(dict, read_metrics(self.path)))

    def stages(self) -> list[dict[str, Any]]:
        """One entry for each stage that left its model: units shown, step, whether it was passed, accuracy at the switch and
        after adaptation on each test file (with its 95 % interval over questions), validation accuracy, tokens written, and
        perplexity on the text that is to be remembered, if there is one.
        Of several attempts it is the one that the model is from.
        """
        metrics = self.metrics()
        ends = [row for row in metrics if row["kind"] == "end"]
        attempt = kept_attempts(read_metrics(self.path)) or {
            row["stage"]: row["attempt"] for row in sorted(ends, key=lambda row: row["passed"])
        }
        passed = {row["stage"]: row["passed"] for row in ends if row["attempt"] == attempt.get(row["stage"])}
        found: dict[int, dict[str, Any]] = {}
        for row in metrics:
            if row["kind"] == "text" and row["moment"] == "adapted" and row["attempt"] == attempt.get(row["stage"]):
                if row["stage"] in found:
                    found[row["stage"]]["perplexity"] = row["perplexity"]
                continue
            if row.get("mode") != "stage" or row["attempt"] != attempt.get(row["stage"]):
                continue
            if not self.folder(row["stage"]).exists():
                continue
            empty = {"stage": row["stage"], "switch": {}, "adapted": {}, "interval": {}, "tokens": {}}
            stage = found.setdefault(row["stage"], empty)
            stage |= {"shown": row["shown"], "step": row["step"], "passed": passed[row["stage"]]}
            if row["kind"] == "validation":
                stage["validation"] = row["accuracy"]
            else:
                stage[row["moment"]][row["split"]] = row["accuracy"]
                stage["tokens"][row["split"]] = row["tokens"]
                if row["moment"] == "adapted":
                    stage["interval"][row["split"]] = (row["low"], row["high"])
        return [found[stage] for stage in sorted(found)]

    def choose(self, max_loss: float) -> dict[str, Any]:
        """The stage with the shortest chain whose validation accuracy is within `max_loss` of the first stage's.

        The choice never sees the test files.
        """
        stages = [stage for stage in self.stages() if "validation" in stage]
        if not stages or stages[0]["stage"]:
            raise UserError(
                f"{self.path / 'stages'}: the model of the first stage is gone, so there is nothing to compare with."
            )
        good = [stage for stage in stages if stage["validation"] >= stages[0]["validation"] - max_loss]
        return min(good, key=lambda stage: stage["shown"])

    def folder(self, stage: int) -> Path:
        """A stage's model."""
        return self.path / "stages" / str(stage)

    def certificate(self) -> dict[str, Any] | None:
        """The certificate of its last stage against its first, as JSON values; None before `internalize lm certify DIR`."""
        return read_values(self.path / CERTIFICATE)


def is_lm_run(path: Path) -> bool:
    """Whether a directory is a language model's run, finished or not; False for whatever else."""
    return _kind(path) == LANGUAGE_MODEL


def _kind(path: Path) -> str | None:
    try:
        return kind_of(json.loads((path / "config.json").read_text()))
    except (OSError, ValueError):
        return None


def load(path: str | Path) -> LMRun:
    """The run in a directory. Raises `UserError`."""
    path = Path(path)
    try:
        values = json.loads((path / "config.json").read_text())
    except OSError:
        raise UserError(f"{path}: this is not a run's directory (it has no config.json).") from None
    except ValueError as error:
        raise UserError(f"{path / 'config.json'}: not valid JSON ({error}).") from None
    if kind_of(values) == SANDBOX:
        raise UserError(
            f"{path}: this is a run of the sandbox, not of a language model; show it with `internalize show {path}`, certify "
            "it with `internalize certify`."
        )
    return LMRun(path, LMConfig.from_json(values))


@dataclass(frozen=True)
class Folder:
    """A model's folder (or its name on the Hub), and how it is asked.

    Attributes:
        score: as for `scorer`.
        longest_chain: units of the longest chain that it was trained on; 0 where that is not known.
    """

    name: str
    curriculum: Curriculum
    reading: Reading
    score: str | None
    longest_chain: int

    @staticmethod
    def open(name: str) -> "Folder":
        """Read the tokenizer and what a run left beside the weights; without that, as a model that writes steps. Raises
        `UserError`.
        """
        need("transformers")
        quiet()
        settings: dict[str, Any] = {"template": {}, "units": "step", "curriculum": "left", "removal": {}}
        about = Path(name) / STAGE_FILE
        if about.exists():
            settings |= json.loads(about.read_text())
            own_code.remember(settings.get("code", {}))
        template, how = Template(**settings["template"]), settings.get("reading", {})
        return Folder(
            name,
            curricula.make(settings["curriculum"], RemovalConfig(**settings["removal"])),
            Reading(load_tokenizer(name), template, settings["units"], longest_row(name), **how),
            settings.get("score"),
            settings.get("longest_chain", 0),
        )

    def speaker(self, units: Sequence[int] = (), batch: int = 128) -> Speaker:
        """The model, to be asked for chains of these numbers of units. Raises `UserError`."""
        longest = max([self.longest_chain, *units])
        specials = add_specials(self.reading.tokenizer, self.curriculum, longest)
        return Speaker(load_model(self.name), self.reading.tokenizer, specials, batch)


def system(
    where: str | Path, direct: bool, questions: Mapping[str, Path], score: str | None = None, batch: int = 128, samples: int = 0
) -> LMProcedure:
    """A model's folder as a procedure that answers the rows of `questions`, with its full chain or at once.

    Args:
        where: a stage's folder, any other Hugging Face folder or name, or a run's directory: then its first stage (full chain)
            or its last one (at once).
        direct: without a chain.
        questions: files of records by name.
        score: as for `scorer`.
        batch: rows at once.
        samples: rows of each file; 0: all.
    """
    folder = Path(where)
    if (folder / "stages").is_dir() or _kind(folder) == SANDBOX:
        run = load(folder)
        if not run.stages():
            raise UserError(f"{run.path}: no stage is finished yet, so there is no model to ask.")
        folder = run.folder(run.stages()[-1]["stage"] if direct else 0)
    model = Folder.open(str(folder if folder.is_dir() else where))
    sets = {name: Asked.read(path, model.reading, samples) for name, path in questions.items()}
    speaker = model.speaker([tokens.units for asked in sets.values() for tokens in asked.tokens], batch)
    name = f"{model.name} {'without a chain' if direct else 'with its chain'}"
    return LMProcedure(name, speaker, Questions(sets, scorer(score or model.score)), model.curriculum, direct)


def certify(
    slow: str | Path,
    fast: str | Path,
    data: Mapping[str, Path],
    *,
    valid: Path | None = None,
    max_risk: float | None = None,
    score: str | None = None,
    epsilon: float = 0.05,
    confidence: float = 0.95,
    batch: int = 128,
    samples: int = 0,
) -> tuple[Certificate, Selective | None]:
    """Does the fast model internalize the slow one, on each of the named files of records (paper, Definition 1)?

    Args:
        slow, fast: as `system`'s `where`; slow writes its chain, fast none.
        data: test files by name, on which no choice was made.
        valid: validation records, on which the threshold for `max_risk` is chosen.
        max_risk: also answer at once only where the fast model is sure, so that such answers are wrong at most this often.
        score, batch, samples: as for `system`.
        epsilon, confidence: as for the sandbox's `certify`.
    """
    if "calibration" in data and valid is not None:
        raise UserError('a test file is called "calibration", which is what --valid is called; name it otherwise.')
    files = dict(data) if valid is None else {**data, "calibration": valid}
    if max_risk is not None and valid is None:
        raise UserError("--max-risk needs validation records to choose the threshold on; name them with --valid.")
    systems = [system(where, direct, files, score, batch, samples) for where, direct in ((slow, False), (fast, True))]
    # One set of numbers for both, so that equal answers have equal numbers.
    questions = systems[0].questions
    systems[1].questions.numbers = questions.numbers
    splits = questions.splits()
    calibration = splits.pop("calibration", None)
    certificate = compare(systems[0], systems[1], questions, splits, epsilon=epsilon, confidence=confidence, exhaustive=False)
    sure = None
    if max_risk is not None and calibration is not None:
        sure = select(systems[1], systems[0], questions, calibration, splits, max_risk, confidence)
    return certificate, sure


def rows(run: LMRun) -> list[dict[str, Any]]:
    """The run as a result row."""
    return [{**run.result, "curve": run.stages()}]


def union(names: Sequence[str]) -> dict[str, Path]:
    """Files by name from "name=path" entries; a bare path is called by its stem. Raises `UserError` for doubles."""
    files: dict[str, Path] = {}
    for entry in names:
        name, equals, path = entry.partition("=")
        name, path = (name, path) if equals else (Path(entry).stem, entry)
        if name in files:
            raise UserError(f'two files are called "{name}"; name them, as in {name}1={path}.')
        files[name] = Path(path)
    return files
