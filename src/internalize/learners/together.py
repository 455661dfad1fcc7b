"""Trains several seeds of one configuration at once on one device: what fills a GPU with small models.

The weights of all seeds are stacked along a leading dimension, and one step computes all of them (`torch.func.vmap`).
Everything else stays each seed's own: initial weights, data, stage, adaptive schedule, evaluation, files. Seeds at different
stages share a step: shorter rows are padded on the right, where nothing reads them. A seed that is done, or has failed, leaves
the stack and stops costing.

The outcome equals that of separate runs: the data exactly, the weights to the tolerance of float arithmetic.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap

from internalize.engine.course import Course, Notify
from internalize.errors import UserError
from internalize.learners.sandbox import SandboxLearner
from internalize.rendering import Batch

EPSILON = 1e-8  # of AdamW, and 1e-6 of clipping: torch's defaults


def train_together(learners: Sequence[SandboxLearner], notify: Notify = lambda _: None) -> dict[int, UserError]:
    """Train seeds of one configuration to their ends. Returns the errors of those that failed."""
    of = {Course(learner, notify): learner for learner in learners}
    dialogues = {course: course.dialogue() for course in of}
    losses: dict[Course, float | None] = dict.fromkeys(of)
    errors: dict[int, UserError] = {}
    stack: Stack | None = None
    while dialogues:
        wanted: dict[Course, int] = {}
        for course, dialogue in list(dialogues.items()):
            try:
                wanted[course] = dialogue.send(losses[course])
            except StopIteration:
                del dialogues[course]
            except UserError as error:
                errors[course.seed] = error
                del dialogues[course]
        if wanted:
            training = [of[course] for course in wanted]
            if stack is None or training != stack.learners:
                stack = Stack(training)
            losses.update(zip(wanted, stack.train(list(wanted.values())), strict=True))
    return errors


class Stack:
    """The weights and moments of several seeds, (S, ...) for each parameter; every seed's model and optimizer hold views."""

    def __init__(self, learners: list[SandboxLearner]) -> None:
        self.learners = learners
        self.config = learners[0].config
        self.device = learners[0].device
        self.model = learners[0].model
        parameters = [dict(learner.model.named_parameters()) for learner in learners]
        self.weights = {name: torch.stack([own[name].detach() for own in parameters]) for name in parameters[0]}
        self.first = {name: torch.zeros_like(value) for name, value in self.weights.items()}
        self.second = {name: torch.zeros_like(value) for name, value in self.weights.items()}
        self.counts = torch.zeros(len(learners), device=self.device)
        for index, own in enumerate(parameters):
            for name, parameter in own.items():
                parameter.data = self.weights[name][index]
        self.gradients = vmap(grad_and_value(self._loss), in_dims=(0, 0, 0, 0, None))

    def train(self, steps: list[int]) -> list[float]:
        """So many optimizer steps for each seed, on data of its own. Returns the mean loss of each."""
        size = self.config.optimizer.batch
        for index, learner in enumerate(self.learners):
            self._attach(index, learner)
        tokens, positions, target, first = self._arrays(
            [learner.draw(n * size) for learner, n in zip(self.learners, steps, strict=True)]
        )
        totals = torch.zeros(len(self.learners), device=self.device)
        for step in range(max(steps)):
            training = [index for index, n in enumerate(steps) if step < n]
            rows = slice(step * size, (step + 1) * size)
            totals[training] += self._step(training, tokens[:, rows], positions[:, rows], target[:, rows], first)
        for learner, count in zip(self.learners, self.counts.tolist(), strict=True):
            for parameter in learner.model.parameters():
                learner.optimizer.state[parameter]["step"].fill_(count)
        return [total / n for total, n in zip(totals.tolist(), steps, strict=True)]

    def _step(self, training: list[int], tokens: Tensor, positions: Tensor, target: Tensor, first: int) -> Tensor:
        """One AdamW step of the seeds `training`. Returns their losses before it."""
        every = len(training) == len(self.learners)
        optimizer = self.config.optimizer
        rate = torch.tensor([self.learners[index].rate for index in training], device=self.device)

        def those(value: Tensor) -> Tensor:
            return value if every else value[training]

        weights = {name: those(value) for name, value in self.weights.items()}
        gradients, losses = self.gradients(weights, those(tokens), those(positions), those(target), first)
        squares = [gradient.flatten(1).pow(2).sum(1) for gradient in gradients.values()]
        clip = (optimizer.clip / (torch.stack(squares).sum(0).sqrt() + 1e-6)).clamp(max=1.0)
        self.counts[training] += 1
        count = self.counts[training]
        correction = 1 - optimizer.beta1**count, (1 - optimizer.beta2**count).sqrt()
        for name, gradient in gradients.items():
            shape = (-1,) + (1,) * (gradient.dim() - 1)
            gradient = gradient * clip.view(shape)
            first_moment = those(self.first[name]).lerp(gradient, 1 - optimizer.beta1)
            second_moment = those(self.second[name]).lerp(gradient * gradient, 1 - optimizer.beta2)
            decayed = weights[name] * (1 - rate * optimizer.weight_decay).view(shape)
            spread = second_moment.sqrt() / correction[1].view(shape) + EPSILON
            moved = decayed - (rate / correction[0]).view(shape) * first_moment / spread
            for held, value in ((self.weights, moved), (self.first, first_moment), (self.second, second_moment)):
                held[name][slice(None) if every else training] = value
        for index in training:
            self.learners[index].at.stepped()
        return torch.as_tensor(losses)

    def _loss(self, weights: dict[str, Tensor], tokens: Tensor, positions: Tensor, target: Tensor, first: int) -> Tensor:
        """As `batch_loss`, of one seed; padded columns are no targets."""
        logits = functional_call(self.model, weights, (tokens[:, :-1], positions[:, :-1], first))
        wanted, counts = tokens[:, first + 1 :], target[:, first + 1 :]
        losses = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none") * counts.flatten()
        return losses.sum() / counts.sum()

    def _arrays(self, batches: list[Batch]) -> tuple[Tensor, Tensor, Tensor, int]:
        """The rows of all seeds, padded to one shape and moved to the device: (S, rows, columns) each."""
        shape = len(batches), max(len(batch) for batch in batches), max(batch.tokens.shape[1] for batch in batches)
        tokens, positions, target = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, bool)
        for index, batch in enumerate(batches):
            place = index, slice(len(batch)), slice(batch.tokens.shape[1])
            tokens[place], positions[place], target[place] = batch.tokens, batch.positions, batch.target
        first = min(batch.first for batch in batches)
        tokens_, positions_, target_ = (torch.from_numpy(array).to(self.device) for array in (tokens, positions, target))
        return tokens_, positions_, target_, first

    def _attach(self, index: int, learner: SandboxLearner) -> None:
        """Make the moments of a seed's optimizer views of the stack; an optimizer that is new or restored brings its own."""
        for name, parameter in learner.model.named_parameters():
            state = learner.optimizer.state[parameter]
            moments = {"exp_avg": self.first[name][index], "exp_avg_sq": self.second[name][index]}
            if state and state["exp_avg"].data_ptr() == moments["exp_avg"].data_ptr():
                continue
            count = float(state["step"]) if state else 0.0
            self.counts[index] = count
            for entry, view in moments.items():
                view.copy_(state[entry]) if state else view.zero_()
            learner.optimizer.state[parameter] = {"step": torch.tensor(count), **moments}
