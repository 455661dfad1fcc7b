"""What the engine asks of whatever learns: a transformer of the sandbox, or a language model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from torch import Tensor

from internalize.curricula import Standing
from internalize.engine.rows import Result, Written
from internalize.engine.settings import Settings
from internalize.evaluation import Accuracy, Certificate, wilson

RULED_OUT = 0.999  # confidence with which a quarter of the validation inputs may rule out that a stage is learnt


@dataclass
class Progress(Standing):
    """Where a seed stands; saved with its weights."""

    step: int = 0  # optimizer steps so far
    stage_step: int = 0  # of which in this attempt at a stage
    warmed: int = 0  # steps since the moments were last reset
    tokens: int = 0  # trained on so far, padding not counted, by learners that count them
    seconds: float = 0.0
    metrics_bytes: int = 0

    def stepped(self, tokens: int = 0) -> None:
        """Count an optimizer step."""
        self.step += 1
        self.stage_step += 1
        self.warmed += 1
        self.tokens += tokens


@dataclass(frozen=True)
class Score:
    """Accuracy on one split in one mode; `told` is what else the learner says of it."""

    mode: str
    shown: int
    split: str
    accuracy: Accuracy
    told: Written = field(default_factory=lambda: Written())


class Learner(Protocol):
    """One seed's model with its data. Of several processes that train one model, each has such a learner.

    Attributes:
        at: where it stands, shared with the course: the learner counts steps and tokens, the course moves from stage to stage.
        modes: what the final model is asked in: "stage", "cot", "direct", ...
        first: whether this process writes files and tells what happens.
        directory: of the seed.
    """

    at: Progress

    @property
    def config(self) -> Settings: ...
    @property
    def seed(self) -> int: ...
    @property
    def directory(self) -> Path: ...
    @property
    def modes(self) -> Sequence[str]: ...
    @property
    def first(self) -> bool: ...
    @property
    def stages(self) -> int: ...

    def enter(self) -> None:
        """Make ready to train at the present stage, at its beginning or after a restart."""
        ...

    def train(self, steps: int) -> float:
        """Take optimizer steps; their mean loss."""
        ...

    def shown(self) -> int:
        """Units that the present stage shows (of the longest chain)."""
        ...

    def lengths(self) -> Iterable[int]:
        """Numbers of units that the present stage is judged in."""
        ...

    def validate(self) -> Mapping[str, float]:
        """Accuracy on what the present stage is judged by."""
        ...

    def measure(self, part: Literal["test", "validation"], modes: Sequence[str], final: bool) -> Iterable[Score]:
        """Accuracy of the present model on every split of a part, in each of the modes ("length 7" among them)."""
        ...

    def perplexity(self) -> float | None:
        """On the text that is to be remembered, if there is one."""
        ...

    def leave(self) -> None:
        """An attempt at a stage is over: what was added for training alone is merged into the model."""
        ...

    def save_stage(self, stage: int) -> None:
        """Keep the present model as that of a stage."""
        ...

    def take_up(self, stage: int) -> None:
        """Go on with the model from the end of a stage."""
        ...

    def renew(self, anyway: bool) -> None:
        """A new optimizer for what follows, where the settings want one at each stage, or anyway."""
        ...

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that training needs to go on, but `at`: tensors, and JSON values."""
        ...

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """The inverse of `state`. Raises `UserError`, or what torch raises, for what does not fit."""
        ...

    def certify(self, last: int) -> Certificate | None:
        """Whether the model of the last stage internalizes that of the first one, where there are both."""
        ...

    def about(self) -> Result:
        """What the result tells of it."""
        ...

    def wait(self) -> None:
        """Until all processes are here."""
        ...


def decisive(ask: Callable[[float], dict[str, Accuracy]], threshold: float) -> dict[str, float]:
    """Accuracy on validation inputs, on a quarter of them where those already rule out that a stage is learnt.

    Most checks find a stage that is far from learnt; they need not cost what the decisive ones do.

    Args:
        ask: measures on a share of the inputs of each distribution.
        threshold: of the schedule.
    """
    found = ask(0.25)
    at_most = [wilson(accuracy.correct, accuracy.n, RULED_OUT)[1] for accuracy in found.values()]
    if min(at_most) >= threshold:
        found = ask(1.0)
    return {name: accuracy.value for name, accuracy in found.items()}
