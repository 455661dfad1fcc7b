"""A transformer of the sandbox that learns a task: the learner of one seed."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from internalize.checkpoint import load_model, optimizer_tensors, restore_optimizer, save_model
from internalize.config import OptimizerConfig, RunConfig
from internalize.curricula import View
from internalize.engine.learner import Progress, Score, decisive
from internalize.engine.rows import Result
from internalize.errors import UserError
from internalize.evaluation import Accuracy, Certificate, certify, measure
from internalize.evaluation.certificate import draw
from internalize.learners.data import held_out, training_set
from internalize.learners.systems import stage_file, systems
from internalize.learners.teacher import Teacher
from internalize.models import Transformer, kernel
from internalize.rendering import Batch, Vocabulary, render
from internalize.seeding import numpy_stream, torch_stream
from internalize.tasks import Traces


class SandboxLearner:
    """One seed: its model, its data, and what they are judged on (see `engine.learner.Learner`)."""

    modes = ("stage", "cot", "direct")
    first = True

    def __init__(self, config: RunConfig, seed: int, directory: Path, device: str = "cpu") -> None:
        self.config, self.seed, self.directory, self.device = config, seed, directory, device
        self.task, self.curriculum = config.make_task(), config.make_curriculum()
        self.vocabulary = Vocabulary.of(self.task)
        self.stages = self.curriculum.stages(self.task.units)
        self.model = new_model(config, seed).to(device)
        self.optimizer = new_optimizer(self.model, config.optimizer)
        self.data = numpy_stream(seed, "data")
        self.at = Progress()
        self.validation, self.test = held_out(config)
        self.training_set = training_set(config, seed)
        self.teacher: Teacher | None = None

    # -- training -----------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """From the second stage on, have the slow system write the labels, if the settings say so."""
        if self.at.stage and self.teacher is None and self.config.labels != "true":
            self.learn_from(load_model(stage_file(self.directory, 0)))

    def train(self, steps: int) -> float:
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
        shares, views = zip(*self.curriculum.mixture(self.task.units, self.at.stage), strict=True)
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
        self.at.stepped()
        return loss.detach()

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        optimizer = self.config.optimizer
        return optimizer.lr * min(1.0, (self.at.warmed + 1) / max(1, optimizer.warmup))

    def learn_from(self, slow: Transformer) -> None:
        """From now on `slow` labels the training rows, and the validation rows unless true answers filter what it writes."""
        config, view = self.config, self.curriculum.full(self.task.units)
        filtered = config.labels == "filtered"
        slow = slow.to(self.device).eval()
        self.teacher = Teacher(slow, self.task, view, config.position_ids, config.inputs, filtered)
        if not filtered:
            self.validation = {name: self.teacher.rewrite(traces) for name, traces in self.validation.items()}

    def renew(self, anyway: bool) -> None:
        """Empty moments, and warm up again."""
        if self.config.optimizer.reset or anyway:
            self.optimizer = new_optimizer(self.model, self.config.optimizer)
            self.at.warmed = 0

    # -- measuring ----------------------------------------------------------------------------------------------------

    def target(self) -> View:
        """The view that the present stage is judged by."""
        return self.curriculum.target(self.task.units, self.at.stage)

    def shown(self) -> int:
        """Units that the present stage shows."""
        return self.target().shown

    def lengths(self) -> Iterable[int]:
        """Numbers of units that the present stage is judged in."""
        return [view.shown for view in self.curriculum.judged(self.task.units, self.at.stage)]

    def validate(self) -> dict[str, float]:
        """Accuracy on the validation inputs, by distribution."""
        judged_on = self._judged_on()

        def ask(share: float) -> dict[str, Accuracy]:
            some = {name: traces[: -int(-len(traces) * share // 1)] for name, traces in judged_on.items()}
            return self.accuracy(some, self.target())

        return decisive(ask, self.config.schedule.threshold)

    def measure(self, part: Literal["test", "validation"], modes: Sequence[str], final: bool) -> Iterable[Score]:
        """Accuracy on every split of a part, in each of the modes. Each view is measured once."""
        views = {mode: self._view(mode) for mode in modes}
        samples = self.config.evaluation.samples if final else self.config.evaluation.stage_samples
        splits = {name: traces[:samples] for name, traces in self.test.items()} if part == "test" else self._judged_on()
        measured = {view: self.accuracy(splits, view) for view in dict.fromkeys(views.values())}
        for mode, view in views.items():
            for split, accuracy in measured[view].items():
                yield Score(mode, view.shown, split, accuracy)

    def accuracy(self, splits: Mapping[str, Traces], view: View) -> dict[str, Accuracy]:
        """The present model's accuracy on each split when it writes what `view` shows."""
        return measure(self.model, self.vocabulary, splits, view, self.config.position_ids)

    def perplexity(self) -> None:
        """There is no text."""
        return

    def certify(self, last: int) -> Certificate | None:
        """On fresh test inputs, where both systems were trained."""
        pair, samples = systems(self.config, self.directory, last, str(self.device)), self.config.evaluation.certificate
        if len(pair) < 2 or not samples:
            return None
        splits = draw(self.task, self.config.test_splits(), samples, purpose="certificate at the end of a run")
        return certify(pair["slow"], pair["fast"], self.task, splits, seed=self.seed)

    def about(self) -> Result:
        """Its size, and what it was trained on."""
        return {
            "examples": self.at.step * self.config.optimizer.batch,
            "parameters": self.model.parameter_count,
            "attention": kernel(),
        }

    def _view(self, mode: str) -> View:
        units = self.task.units
        if mode.startswith("length "):
            judged = self.curriculum.judged(units, self.at.stage)
            return next(view for view in judged if mode == f"length {view.shown}")
        return {"stage": self.target(), "cot": self.curriculum.full(units), "direct": self.curriculum.direct(units)}[mode]

    def _judged_on(self) -> dict[str, Traces]:
        """The validation inputs of the present stage: in the first one only those that have true labels."""
        with_labels = self.config.labelled_splits()
        return {name: traces for name, traces in self.validation.items() if self.at.stage or name in with_labels}

    # -- keeping ------------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Nothing was added for training."""

    def save_stage(self, stage: int) -> None:
        """Write the weights."""
        save_model(stage_file(self.directory, stage), self.model, stage=stage)

    def take_up(self, stage: int) -> None:
        """Go on with the weights from the end of a stage."""
        self.model.load_state_dict(load_model(stage_file(self.directory, stage)).state_dict())

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Weights, moments, and where the stream of data is."""
        tensors = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"optimizer/{name}": value for name, value in optimizer_tensors(self.model, self.optimizer).items()}
        return tensors, {"data": self.data.bit_generator.state}

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        of = {
            part: {name.split("/", 1)[1]: value for name, value in tensors.items() if name.startswith(f"{part}/")}
            for part in ("model", "optimizer")
        }
        self.model.load_state_dict(of["model"])
        restore_optimizer(self.model, self.optimizer, of["optimizer"])
        self.data.bit_generator.state = values["data"]

    def wait(self) -> None:
        """One process trains."""


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
