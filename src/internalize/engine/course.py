"""The course of a seed, stage by stage; it can be stopped and resumed at any check.

Files in the seed's directory:

    metrics.jsonl          one row for each training check and each evaluation, appended
    stages/                the model at the end of each stage
    certificate.json       where a slow and a fast system were trained: whether the fast one internalizes the slow one
    last.safetensors       weights, moments, random state and the length of metrics.jsonl at that moment; gone at the end
    result.json            the outcome, written last: a seed is finished if and only if it exists

Everything is a function of (configuration, seed): what is resumed continues exactly as it would have gone on. That holds
because state is saved only between blocks of `check_every` steps, and the data of a block depends on nothing that a block
before it left in memory alone.
"""

import json
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from internalize.checkpoint import load_tensors, save_tensors, write_whole
from internalize.curricula import end_attempt
from internalize.engine import journal
from internalize.engine.learner import Learner, Progress
from internalize.engine.rows import Measured, Result, Row, Text
from internalize.errors import UserError
from internalize.evaluation import SUCCESS, wilson
from internalize.provenance import provenance

SAVE_SECONDS = 20.0
SAVE_SHARE = 20  # a save that takes a second is followed by so many seconds without one

Dialogue = Generator[int, float | None, Result]
Notify = Callable[[Mapping[str, Any]], None]


class Course:
    """One seed on its way from the first step to result.json."""

    def __init__(self, learner: Learner, notify: Notify = lambda _: None) -> None:
        self.learner, self.notify = learner, notify
        self.seed, self.directory = learner.seed, learner.directory
        self.schedule = learner.config.schedule
        self.begun = 0.0

    @property
    def at(self) -> Progress:
        """Where it stands."""
        return self.learner.at

    def run(self) -> Result:
        """Train to the end (or from where an earlier attempt was saved), write result.json and return it."""
        dialogue, loss = self.dialogue(), None
        while True:
            try:
                steps = dialogue.send(loss)
            except StopIteration as end:  # at once, where only the result was missing
                result: Result = end.value
                return result
            loss = self.learner.train(steps)

    def dialogue(self) -> Dialogue:
        """The course as a dialogue, so that whoever trains several seeds at once drives each through its own.

        It yields the number of optimizer steps to take next and is sent their mean loss (None to begin with); in between it
        evaluates, saves and moves from stage to stage. Returns the content of result.json. Raises `UserError`.
        """
        if self.learner.first:
            (self.directory / "stages").mkdir(parents=True, exist_ok=True)
        self._restore()
        self.learner.wait()
        self.begun = time.monotonic() - self.at.seconds
        saved, pause = time.monotonic(), SAVE_SECONDS
        while self.at.stage < self.learner.stages:
            verdict = yield from self._block()
            self.at.seconds = time.monotonic() - self.begun
            if verdict != "continue":
                self._end_stage(verdict == "passed")
            if verdict != "continue" or time.monotonic() - saved > pause:
                started = time.monotonic()
                self._save()
                saved = time.monotonic()
                pause = max(SAVE_SECONDS, SAVE_SHARE * (saved - started)) if SAVE_SECONDS else 0.0
        return self._finish()

    def adopt(self, **origin: Any) -> Result:
        """Judge the learner's model as it is instead of training it, and write result.json; `origin` says where it comes from.

        For constructed transformers; the curriculum must have one stage.
        """
        (self.directory / "stages").mkdir(parents=True, exist_ok=True)
        (self.directory / journal.FILE).unlink(missing_ok=True)
        self._end_stage(passed=True)
        return self._finish(**origin)

    # -- one block of steps -------------------------------------------------------------------------------------------

    def _block(self) -> Generator[int, float | None, Literal["continue", "passed", "exhausted"]]:
        """Train until the next check, and say how the stage stands."""
        at, schedule, learner = self.at, self.schedule, self.learner
        learner.enter()
        if at.stage_step == 0:
            if not at.attempt:
                self._remember("given")
            self._measure("test", "switch", ["stage"])
        limit = schedule.limit(at.stage, learner.stages, at.step - at.stage_step)
        steps = min(schedule.check_every, limit - at.stage_step)
        loss = None
        if steps > 0:
            loss = yield steps
            if loss is None or not math.isfinite(loss):
                raise UserError(
                    f"seed {self.seed}: the loss is not finite at step {at.step} (stage {at.stage}); lower "
                    f"{learner.config.RATE}, or the largest norm of the gradient (clip)."
                )
        validation = dict(learner.validate()) if schedule.kind == "adaptive" else {}
        row: Row = {
            "kind": "check",
            "stage": at.stage,
            "shown": learner.shown(),
            "step": at.step,
            "loss": loss,
            "validation": validation,
        }
        self._write(row)
        over = at.stage_step >= limit or self._tokens_spent()
        if schedule.kind == "fixed":
            return "passed" if over else "continue"
        if schedule.passes(validation, at.stage, at.stage_step):
            return "passed"
        return "exhausted" if over else "continue"

    def _tokens_spent(self) -> bool:
        return 0 < self.learner.config.token_budget <= self.at.tokens

    # -- stages -------------------------------------------------------------------------------------------------------

    def _end_stage(self, passed: bool) -> None:
        at, learner = self.at, self.learner
        learner.leave()
        lengths = [f"length {shown}" for shown in learner.lengths()]
        self._measure("test", "adapted", ["stage", "cot", *lengths])
        self._measure("validation", "adapted", lengths)
        self._remember("adapted")
        stage, attempt = at.stage, at.attempt
        spent = at.step >= self.schedule.budget or self._tokens_spent()
        move = end_attempt(self.schedule, at, learner.stages, passed, spent)
        if move.save:
            learner.save_stage(stage)
        self._write({"kind": "end", "stage": stage, "attempt": attempt, "passed": passed, "saved": move.save, "step": at.step})
        if move.back is not None:
            self._write({"kind": "rollback", "stage": stage, "to": move.back, "step": at.step})
            if move.back < stage:
                learner.take_up(move.back)
        if move.over:
            if not (move.save and at.last == stage):  # what the budget cut off is less than what was learnt before
                learner.take_up(at.last)
            at.stage = at.last
            self._measure("test", "final", learner.modes)
            self._remember("final")
            at.stage = learner.stages
        at.stage_step = 0
        learner.renew(anyway=move.back is not None)

    def _measure(self, part: Literal["test", "validation"], moment: Any, modes: Sequence[str]) -> None:
        """Measure, and write a row for each mode and split."""
        at = self.at
        for score in self.learner.measure(part, modes, final=moment == "final"):
            low, high = wilson(score.accuracy.correct, score.accuracy.n)
            row: Measured = {
                "kind": part,
                "moment": moment,
                "stage": at.stage,
                "attempt": at.attempt,
                "step": at.step,
                "mode": score.mode,
                "shown": score.shown,
                "split": score.split,
                "accuracy": score.accuracy.value,
                "low": low,
                "high": high,
                "n": score.accuracy.n,
                "distinct": score.accuracy.distinct,
            }
            self._write({**row, **score.told})

    def _remember(self, moment: Literal["given", "adapted", "final"]) -> None:
        """Write how well the text that is to be remembered is known, if there is one."""
        value, at = self.learner.perplexity(), self.at
        if value is not None:
            row: Text = {
                "kind": "text",
                "moment": moment,
                "stage": at.stage,
                "attempt": at.attempt,
                "step": at.step,
                "perplexity": value,
            }
            self._write(row)

    def _finish(self, **origin: Any) -> Result:
        if not self.learner.first:
            self.learner.wait()
            return {}
        rows, at = journal.read_metrics(self.directory), self.at
        tests = [row for row in rows if row["kind"] == "test" and row["moment"] == "final"]
        texts = {str(row["moment"]): row["perplexity"] for row in rows if row["kind"] == "text" and row["moment"] != "adapted"}
        accuracy = _by_mode(tests, "accuracy")
        last = tests[0]["stage"]
        result: Result = {
            "seed": self.seed,
            "stages": self.learner.stages,
            "stages_reached": last + 1,
            "steps": at.step,
            "seconds": round(at.seconds, 1),
            **self.learner.about(),
            "accuracy": accuracy,
            "distinct": {row["split"]: row["distinct"] for row in tests},
            "success": {mode: {split: value > SUCCESS for split, value in of.items()} for mode, of in accuracy.items()},
        }
        if "tokens" in tests[0]:
            result["written"], result["before_answer"] = _by_mode(tests, "tokens"), _by_mode(tests, "before_answer")
        if texts:
            result["perplexity"] = texts
        result |= {**self._certify(last), **origin, **provenance()}  # type: ignore[typeddict-item]
        write_whole(self.directory / "result.json", json.dumps(result, indent=1).encode())
        (self.directory / "last.safetensors").unlink(missing_ok=True)
        self.notify({"kind": "result", "seed": self.seed, **result})
        self.learner.wait()
        return result

    def _certify(self, last: int) -> dict[str, Any]:
        """Write certificate.json, where there are both a slow and a fast system, and return what of it the result keeps."""
        certificate = self.learner.certify(last)
        if certificate is None:
            return {}
        content = certificate.to_json()
        write_whole(self.directory / "certificate.json", json.dumps(content, indent=1).encode())
        gaps = {split["split"]: split["gap"] for split in content["splits"]}
        return {"certificate": {"internalized": certificate.internalized, "verdict": certificate.verdict, "gap": gaps}}

    # -- files --------------------------------------------------------------------------------------------------------

    def _write(self, row: Row) -> None:
        if not self.learner.first:
            return
        if row["kind"] in ("check", "end") and self.at.tokens:
            row = {**row, "tokens": self.at.tokens}  # type: ignore[assignment]
        self.at.metrics_bytes += journal.append(self.directory, row)
        self.notify({"seed": self.seed, "stages": self.learner.stages, "seconds": self.at.seconds, **row})

    def _save(self) -> None:
        if self.learner.first:
            tensors, values = self.learner.state()
            save_tensors(self.directory / "last.safetensors", tensors, {"progress": asdict(self.at), **values})

    def _restore(self) -> None:
        """Go back to the last save, or to the very beginning; what metrics.jsonl holds beyond it is cut off."""
        path = self.directory / "last.safetensors"
        if path.exists():
            try:
                self._load(path)
            except UserError as error:
                raise UserError(f"{error} Delete {self.directory} to train this seed from the beginning.") from None
        if self.learner.first:
            journal.cut(self.directory, self.at.metrics_bytes)

    def _load(self, path: Path) -> None:
        tensors, header = load_tensors(path)
        try:
            self.learner.at = Progress(**header["progress"])
            self.learner.restore(tensors, header)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise UserError(f"{path}: it does not fit this run ({str(error).splitlines()[0]}).") from None


def _by_mode(tests: Sequence[Measured], name: Literal["accuracy", "tokens", "before_answer"]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in tests:
        found.setdefault(row["mode"], {})[row["split"]] = row[name]
    return found
