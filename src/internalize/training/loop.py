"""Trains one seed of one configuration, stage by stage, and can be stopped and resumed at any check.

Files in the seed's directory:

    metrics.jsonl          one row for each training check and each evaluation, appended
    stages/<s>.safetensors the weights at the end of stage s
    certificate.json       where a slow and a fast system were trained: whether the fast one internalizes the slow one
    last.safetensors       weights, moments, random state and the length of metrics.jsonl at that moment; gone at the end
    result.json            the outcome, written last: a seed is finished if and only if it exists

Everything is a function of (configuration, seed): what is resumed continues exactly as it would have gone on. That holds
because state is saved only between blocks of `check_every` steps, and the data of a block is drawn at once.
"""

import json
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from internalize.checkpoint import (
    load_model,
    load_tensors,
    optimizer_tensors,
    restore_optimizer,
    save_model,
    save_tensors,
    write_whole,
)
from internalize.config import OptimizerConfig, RunConfig
from internalize.curricula import Standing, View, end_attempt
from internalize.errors import UserError
from internalize.evaluation import SUCCESS, Accuracy, certify, measure, wilson
from internalize.evaluation.certificate import draw
from internalize.journal import read_metrics
from internalize.models import Transformer, kernel
from internalize.provenance import provenance
from internalize.rendering import Batch, Vocabulary, render
from internalize.seeding import numpy_stream, torch_stream
from internalize.tasks import Traces
from internalize.training.data import held_out, training_set
from internalize.training.systems import stage_file, systems
from internalize.training.teacher import Teacher

SAVE_SECONDS = 20.0
RULED_OUT = 0.999  # confidence with which a quarter of the validation inputs may rule out that a stage is learnt

Course = Generator[int, float | None, dict[str, Any]]
Notify = Callable[[Mapping[str, Any]], None]


@dataclass
class Progress(Standing):
    """Where a run stands; saved with the weights."""

    step: int = 0  # optimizer steps so far
    stage_step: int = 0  # of which in this stage
    warmed: int = 0  # steps since the moments were last reset
    seconds: float = 0.0
    metrics_bytes: int = 0


class SeedRun:
    """One seed on its way from the first step to result.json."""

    def __init__(self, config: RunConfig, seed: int, directory: Path, notify: Notify, device: str = "cpu") -> None:
        self.config, self.seed, self.directory, self.notify = config, seed, directory, notify
        self.task, self.curriculum = config.make_task(), config.make_curriculum()
        self.vocabulary = Vocabulary.of(self.task)
        self.stages = self.curriculum.stages(self.task.units)
        self.model = new_model(config, seed).to(device)
        self.optimizer = new_optimizer(self.model, config.optimizer)
        self.data = numpy_stream(seed, "data")
        self.progress = Progress()
        self.device = device
        self.validation, self.test = held_out(config)
        self.training_set = training_set(config, seed)
        self.teacher: Teacher | None = None

    def run(self) -> dict[str, Any]:
        """Train to the end (or from where an earlier attempt was saved), write result.json and return it."""
        course, loss = self.course(), None
        while True:
            try:
                steps = course.send(loss)
            except StopIteration as end:  # at once, where only the result was missing
                return dict(end.value)
            loss = self._train(steps)

    def course(self) -> Course:
        """The run as a dialogue, so that whoever trains several seeds at once drives each through its own course.

        It yields the number of optimizer steps to take next and is sent their mean loss (None to begin with); in between it
        evaluates, saves and moves from stage to stage. Returns the content of result.json. Raises `UserError`.
        """
        (self.directory / "stages").mkdir(parents=True, exist_ok=True)
        self._restore()
        started = time.monotonic() - self.progress.seconds
        saved = time.monotonic()
        while self.progress.stage < self.stages:
            verdict = yield from self._block()
            self.progress.seconds = time.monotonic() - started
            if verdict != "continue":
                self._end_stage(verdict == "passed")
            if verdict != "continue" or time.monotonic() - saved > SAVE_SECONDS:
                self._save()
                saved = time.monotonic()
        return self._finish()

    def adopt(self, model: Transformer, **origin: Any) -> dict[str, Any]:
        """Judge `model` as it is instead of training one, and write result.json, where `origin` says where it comes from.

        For constructed transformers; the curriculum must have one stage.
        """
        (self.directory / "stages").mkdir(parents=True, exist_ok=True)
        (self.directory / "metrics.jsonl").unlink(missing_ok=True)
        self.model = model.to(self.device)
        self._end_stage(passed=True)
        return self._finish(**origin)

    # -- one block of steps -------------------------------------------------------------------------------------------

    def _block(self) -> Generator[int, float | None, Literal["continue", "passed", "exhausted"]]:
        """Train until the next check, and say how the stage stands."""
        at, schedule = self.progress, self.config.schedule
        if at.stage and self.teacher is None and self.config.labels != "true":
            self.learn_from(load_model(stage_file(self.directory, 0)))
        if at.stage_step == 0:
            self._evaluate("switch", {"stage": self.target()})
        limit = schedule.limit(at.stage, self.stages, at.step - at.stage_step)
        steps = min(schedule.check_every, limit - at.stage_step)
        loss = None
        if steps > 0:
            loss = yield steps
            if loss is None or not np.isfinite(loss):
                raise UserError(
                    f"seed {self.seed}: the loss is not finite at step {at.step} (stage {at.stage}); "
                    f"lower optimizer.lr ({self.config.optimizer.lr:g}) or optimizer.clip ({self.config.optimizer.clip:g})."
                )
        accuracies = {}
        if schedule.kind == "adaptive":
            accuracies = {name: accuracy.value for name, accuracy in self._validate().items()}
        row = {"stage": at.stage, "shown": self.target().shown, "step": at.step, "loss": loss, "validation": accuracies}
        self._write({"kind": "check", **row})
        if schedule.kind == "fixed":
            return "passed" if at.stage_step >= limit else "continue"
        if schedule.passes(accuracies, at.stage, at.stage_step):
            return "passed"
        return "exhausted" if at.stage_step >= limit else "continue"

    def _validate(self) -> dict[str, Accuracy]:
        """Accuracy on the validation inputs, on a quarter of them where those already rule the stage out.

        Most checks find a stage that is far from learnt; they need not cost what the decisive ones do.
        """
        judged_on = self._judged_on()
        few = {name: traces[: -(-len(traces) // 4)] for name, traces in judged_on.items()}
        found = self.measure(few, self.target())
        at_most = [wilson(accuracy.correct, accuracy.n, RULED_OUT)[1] for accuracy in found.values()]
        return found if min(at_most) < self.config.schedule.threshold else self.measure(judged_on, self.target())

    def _judged_on(self) -> dict[str, Traces]:
        """The validation inputs of the present stage: in the first one only those that have true labels."""
        with_labels = self.config.labelled_splits()
        return {name: traces for name, traces in self.validation.items() if self.progress.stage or name in with_labels}

    def _train(self, steps: int) -> float:
        """`steps` optimizer steps on fresh inputs. Returns the mean loss."""
        batch = self.config.optimizer.batch
        rows = self.draw(steps * batch)
        total = torch.zeros((), device=self.device)
        self.model.train()
        for start in range(0, steps * batch, batch):
            total += self.step(rows[start : start + batch])
        self.model.eval()
        return float(total) / steps

    def draw(self, count: int) -> Batch:
        """Training rows, fresh or from the finite set or the slow system's, each shown as one of the stage's views."""
        if self.teacher is not None:
            chosen = round(count * self.config.adversarial)
            traces = self.teacher.sample(count - chosen, self.data)
            if chosen:
                hard = self.teacher.disagreed(self.model, self.target(), chosen, self.data)
                traces = Traces.concatenate([traces, hard])[self.data.permutation(count)]
        elif self.training_set is None:
            traces = self.task.sample(self.config.labelled_inputs(), count, self.data, "train")
        else:
            traces = self.training_set[self.data.integers(len(self.training_set), size=count)]
        shares, views = zip(*self.curriculum.mixture(self.task.units, self.progress.stage), strict=True)
        which = self.data.choice(len(views), size=count, p=shares) if len(views) > 1 else None
        return render(traces, views, self.vocabulary, which, self.config.position_ids)

    def step(self, rows: Batch) -> Tensor:
        """One optimizer step. Returns the loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
        self.optimizer.zero_grad(set_to_none=True)
        loss = batch_loss(self.model, rows)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimizer.clip)
        self.optimizer.step()
        self.stepped()
        return loss.detach()

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        optimizer = self.config.optimizer
        return optimizer.lr * min(1.0, (self.progress.warmed + 1) / max(1, optimizer.warmup))

    def stepped(self) -> None:
        """Count an optimizer step."""
        self.progress.step += 1
        self.progress.stage_step += 1
        self.progress.warmed += 1

    def learn_from(self, slow: Transformer) -> None:
        """From now on `slow` labels the training rows, and the validation rows unless true answers filter what it writes."""
        config, view = self.config, self.curriculum.full(self.task.units)
        filtered = config.labels == "filtered"
        slow = slow.to(self.device).eval()
        self.teacher = Teacher(slow, self.task, view, config.position_ids, config.inputs, filtered)
        if not filtered:
            self.validation = {name: self.teacher.rewrite(traces) for name, traces in self.validation.items()}

    # -- stages -------------------------------------------------------------------------------------------------------

    def target(self) -> View:
        """The view that the present stage is judged by."""
        return self.curriculum.target(self.task.units, self.progress.stage)

    def _end_stage(self, passed: bool) -> None:
        at, schedule = self.progress, self.config.schedule
        lengths = {f"length {view.shown}": view for view in self.curriculum.judged(self.task.units, at.stage)}
        self._evaluate("adapted", self._modes() | lengths)
        self._record("validation", "adapted", lengths, self._judged_on())
        stage, attempt = at.stage, at.attempt
        move = end_attempt(schedule, at, self.stages, passed, spent=at.step >= schedule.budget)
        if move.save:
            save_model(stage_file(self.directory, stage), self.model, stage=stage)
        end = {"stage": stage, "attempt": attempt, "passed": passed, "saved": move.save, "step": at.step}
        self._write({"kind": "end", **end})
        if move.back is not None:
            self._write({"kind": "rollback", "stage": stage, "to": move.back, "step": at.step})
            if move.back < stage:
                self._take_up(move.back)
        if move.over:
            if not (move.save and at.last == stage):  # what the budget cut off is less than what was learnt before
                self._take_up(at.last)
            at.stage = at.last
            self._evaluate("final", self._modes() | {"direct": self.curriculum.direct(self.task.units)})
            at.stage = self.stages
        at.stage_step = 0
        if self.config.optimizer.reset or move.back is not None:
            self.optimizer = new_optimizer(self.model, self.config.optimizer)
            at.warmed = 0

    def _modes(self) -> dict[str, View]:
        """The views that the present stage's model is judged in, by name: as the stage shows it, and with the full chain."""
        return {"stage": self.target(), "cot": self.curriculum.full(self.task.units)}

    def _take_up(self, stage: int) -> None:
        """Go on with the weights from the end of an earlier stage."""
        self.model.load_state_dict(load_model(stage_file(self.directory, stage)).state_dict())

    def measure(self, splits: Mapping[str, Traces], view: View) -> dict[str, Accuracy]:
        """The present model's accuracy on each split when it writes what `view` shows."""
        return measure(self.model, self.vocabulary, splits, view, self.config.position_ids)

    def _evaluate(self, moment: str, views: dict[str, View]) -> None:
        """Test accuracy on every split, in each of the named modes."""
        samples = self.config.evaluation.samples if moment == "final" else self.config.evaluation.stage_samples
        test = {name: traces[:samples] for name, traces in self.test.items()}
        self._record("test", moment, views, test)

    def _record(self, part: str, moment: str, views: dict[str, View], splits: dict[str, Traces]) -> None:
        """Measure each view once, and write a row for each mode and split."""
        measured = {view: self.measure(splits, view) for view in dict.fromkeys(views.values())}
        for mode, view in views.items():
            for split, accuracy in measured[view].items():
                low, high = wilson(accuracy.correct, accuracy.n)
                self._write(
                    {
                        "kind": part,
                        "moment": moment,
                        "stage": self.progress.stage,
                        "attempt": self.progress.attempt,
                        "step": self.progress.step,
                        "mode": mode,
                        "shown": view.shown,
                        "split": split,
                        "accuracy": accuracy.value,
                        "low": low,
                        "high": high,
                        "n": accuracy.n,
                        "distinct": accuracy.distinct,
                    }
                )

    def _finish(self, **origin: Any) -> dict[str, Any]:
        tests = [row for row in read_metrics(self.directory) if row.get("moment") == "final"]
        final: dict[str, dict[str, float]] = {}
        for row in tests:
            final.setdefault(row["mode"], {})[row["split"]] = row["accuracy"]
        result = {
            "seed": self.seed,
            "stages": self.stages,
            "stages_reached": tests[0]["stage"] + 1,
            "steps": self.progress.step,
            "examples": self.progress.step * self.config.optimizer.batch,
            "parameters": self.model.parameter_count,
            "seconds": round(self.progress.seconds, 1),
            "attention": kernel(),
            "accuracy": final,
            "distinct": {row["split"]: row["distinct"] for row in tests},
            "success": {mode: {split: value > SUCCESS for split, value in splits.items()} for mode, splits in final.items()},
            **self._certify(tests[0]["stage"]),
            **origin,
            **provenance(),
        }
        write_whole(self.directory / "result.json", json.dumps(result, indent=1).encode())
        (self.directory / "last.safetensors").unlink(missing_ok=True)
        self.notify({"kind": "result", "seed": self.seed, **result})
        return result

    def _certify(self, last: int) -> dict[str, Any]:
        """Write certificate.json, where there are both a slow and a fast system, and return what of it the result keeps."""
        pair, samples = systems(self.config, self.directory, last, str(self.device)), self.config.evaluation.certificate
        if len(pair) < 2 or not samples:
            return {}
        splits = draw(self.task, self.config.test_splits(), samples, purpose="certificate at the end of a run")
        certificate = certify(pair["slow"], pair["fast"], self.task, splits, seed=self.seed)
        content = certificate.to_json()
        write_whole(self.directory / "certificate.json", json.dumps(content, indent=1).encode())
        gaps = {split["split"]: split["gap"] for split in content["splits"]}
        return {"certificate": {"internalized": certificate.internalized, "verdict": certificate.verdict, "gap": gaps}}

    # -- files --------------------------------------------------------------------------------------------------------

    def _write(self, row: dict[str, Any]) -> None:
        line = (json.dumps(row) + "\n").encode()
        with (self.directory / "metrics.jsonl").open("ab") as file:
            file.write(line)
        self.progress.metrics_bytes += len(line)
        self.notify({"seed": self.seed, "stages": self.stages, "seconds": self.progress.seconds, **row})

    def _save(self) -> None:
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"optimizer/{name}": value for name, value in optimizer_tensors(self.model, self.optimizer).items()}
        header = {"progress": asdict(self.progress), "data": self.data.bit_generator.state}
        save_tensors(self.directory / "last.safetensors", tensors, header)

    def _restore(self) -> None:
        """Go back to the last save, or to the very beginning; what metrics.jsonl holds beyond it is cut off."""
        path, metrics = self.directory / "last.safetensors", self.directory / "metrics.jsonl"
        if path.exists():
            try:
                self._load(path)
            except UserError as error:
                raise UserError(f"{error} Delete {self.directory} to train this seed from the beginning.") from None
        size = metrics.stat().st_size if metrics.exists() else 0
        if size < self.progress.metrics_bytes:
            raise UserError(
                f"{metrics}: it has {size:,} bytes, fewer than the {self.progress.metrics_bytes:,} that were saved. "
                f"Delete {self.directory} to train this seed from the beginning."
            )
        if metrics.exists():
            with metrics.open("r+b") as file:
                file.truncate(self.progress.metrics_bytes)

    def _load(self, path: Path) -> None:
        tensors, header = load_tensors(path)
        of = {
            part: {name.split("/", 1)[1]: value for name, value in tensors.items() if name.startswith(f"{part}/")}
            for part in ("model", "optimizer")
        }
        try:
            self.model.load_state_dict(of["model"])
            restore_optimizer(self.model, self.optimizer, of["optimizer"])
            self.progress = Progress(**header["progress"])
            self.data.bit_generator.state = header["data"]
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise UserError(f"{path}: it does not fit this run ({str(error).splitlines()[0]}).") from None


def new_model(config: RunConfig, seed: int) -> Transformer:
    """The untrained model of a seed. Its longest row is BOS, a hint and a full trace."""
    task = config.make_task()
    try:
        return Transformer(config.model, Vocabulary.of(task).size, task.longest + 2, torch_stream(seed, "weights"))
    except RuntimeError as error:  # torch's word for a lack of memory
        raise UserError(f"the model cannot be made ({str(error).splitlines()[0]}); make it smaller.") from None


def new_optimizer(model: Transformer, config: OptimizerConfig) -> torch.optim.AdamW:
    """AdamW with empty moments."""
    betas = (config.beta1, config.beta2)
    return torch.optim.AdamW(model.parameters(), config.lr, betas, weight_decay=config.weight_decay, fused=True)


def batch_loss(model: Transformer, rows: Batch) -> Tensor:
    """Mean cross-entropy over the chain and answer tokens of the batch."""
    device = next(model.parameters()).device
    tokens = torch.from_numpy(rows.tokens).to(device)
    positions = torch.from_numpy(rows.positions.copy()).to(device)
    target = torch.from_numpy(rows.target[:, rows.first + 1 :]).to(device)
    # The last column is never read: nothing comes after it.
    logits = model(tokens[:, :-1], positions[:, :-1], first=rows.first)
    return F.cross_entropy(logits[target], tokens[:, rows.first + 1 :][target])
