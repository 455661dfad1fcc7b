"""The settings of the sandbox: a task, a curriculum, a model, and how it is trained."""

from dataclasses import dataclass, field
from typing import Literal

from internalize import curricula, own_code, tasks
from internalize.checking import check_at_least, check_types
from internalize.curricula import RemovalConfig, Schedule
from internalize.engine.settings import SANDBOX, Settings
from internalize.errors import UserError
from internalize.models import ModelConfig
from internalize.rendering import PositionIds
from internalize.tasks import Task
from internalize.tasks.distributions import held_out, parts


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW. The betas and the reset of the moments at each stage are the paper's; the other numbers are ours."""

    lr: float = 1e-3
    """learning rate after warm-up"""
    beta1: float = 0.9
    """decay of the first moment"""
    beta2: float = 0.95
    """decay of the second moment"""
    weight_decay: float = 0.01
    """decoupled weight decay"""
    warmup: int = 100
    """steps of linear warm-up after each reset of the moments"""
    clip: float = 1.0
    """largest norm of the gradient"""
    batch: int = 128
    """fresh sequences in each step"""
    reset: bool = True
    """reset both moments (and warm up again) at the start of each stage"""

    def __post_init__(self) -> None:
        check_types(self, "optimizer.")
        if not self.lr > 0:
            raise UserError(f"optimizer.lr is {self.lr}; it must be above 0.")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"optimizer.{name} is {getattr(self, name)}; it must be at least 0 and below 1.")
        check_at_least(self, 0, "weight_decay", "warmup", group="optimizer.")
        if not self.clip > 0:
            raise UserError(f"optimizer.clip is {self.clip}; it must be above 0.")
        check_at_least(self, 1, "batch", group="optimizer.")


@dataclass(frozen=True)
class EvaluationConfig:
    """Accuracy on inputs that are never trained on."""

    splits: tuple[str, ...] = ()
    """out-of-distribution splits, the first one the headline; battery: a long list of them; none: the task's own list"""
    samples: int = 1000
    """test sequences drawn for each split, for the final accuracy"""
    stage_samples: int = 250
    """test sequences for each split at the switch to a stage and at its end"""
    validation: int = 512
    """validation sequences drawn for each distribution that a stage must pass on"""
    certificate: int = 1000
    """fresh test sequences drawn for each split, for the certificate at the end; 0: none is made"""

    def __post_init__(self) -> None:
        check_types(self, "evaluation.")
        check_at_least(self, 1, "samples", "stage_samples", "validation", group="evaluation.")
        check_at_least(self, 0, "certificate", group="evaluation.")


@dataclass(frozen=True)
class RunConfig(Settings):
    """One task, one curriculum, one model, one optimizer."""

    KIND = SANDBOX
    SCHEMA = 1
    COMMAND = "run"
    RATE = "optimizer.lr"

    task: str = field(default="C3", metadata={"help": f"what is computed: {tasks.FAMILIES.forms()}"})
    """what is computed; the help of `internalize run` lists what can be named"""
    steps: int = 15
    """input symbols T: the length of the sequence, or the digits of each number"""
    curriculum: str = field(default="left", metadata={"help": f"what each stage shows: {curricula.FAMILIES.forms()}"})
    """what each stage shows; the help of `internalize run` lists what can be named"""
    inputs: str = "uniform"
    """distribution of the training inputs: uniform, biased:1:0.8, dirichlet:0.5, sticky:0.8, periodic, blocks:4, a mixture
    such as uniform+dirichlet, or uniform~counts:1:10:15 without a region"""
    labels: Literal["true", "slow", "filtered"] = "true"
    """who writes the training chains and answers. true: the task's rule; slow: from the second stage on the slow system, which
    is the model at the end of the first one (trained on the first part of `inputs`), so that the other parts need no labels;
    filtered: as slow, but only where its answer is right"""
    adversarial: float = 0.0
    """share of the rows, from the second stage on, that is chosen where the present model and the slow system disagree"""
    train_size: int = 0
    """distinct training inputs, drawn once for each seed; 0: fresh inputs at every step"""
    validation: tuple[str, ...] = ()
    """distributions on which a stage must pass; none: uniform and every part of the training inputs"""
    start: Literal["fixed", "sampled"] = "fixed"
    """the start state: always the same, or drawn for each sequence and shown before it"""
    position_ids: PositionIds = "compacted"
    """compacted: positions count what is written; kept: those of the row with its full chain"""
    removal: RemovalConfig = field(default_factory=RemovalConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: Schedule = field(default_factory=Schedule)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        check_types(self)
        check_at_least(self, 0, "train_size")
        object.__setattr__(self, "task", tasks.inline(self.task))
        object.__setattr__(self, "curriculum", own_code.pin(self.curriculum))
        task, _ = self.make_task(), self.make_curriculum()
        for distribution in (*self.validation_splits(), *self.test_splits(), self.inputs):
            task.check(distribution)
        self._check_labels()

    def _check_labels(self) -> None:
        if not 0 <= self.adversarial <= 1:
            raise UserError(f"adversarial is {self.adversarial}; it is a share, from 0 to 1.")
        if self.labels == "true":
            if self.adversarial:
                raise UserError(
                    f"adversarial is {self.adversarial}; it needs a slow system to disagree with: set labels to slow."
                )
            return
        curriculum, units = self.make_curriculum(), self.make_task().units
        if curriculum.stages(units) < 2 or curriculum.target(units, 0) != curriculum.full(units):
            raise UserError(
                f'labels is "{self.labels}", but "{self.curriculum}" has no stage after one with the full chain; take a '
                "curriculum such as left, or set labels to true."
            )
        if not set(self.labelled_splits()) & set(self.validation_splits()):
            raise UserError(
                f'labels is "{self.labels}", so the first stage is judged on {" or ".join(self.labelled_splits())} inputs; '
                "name one of them in validation."
            )

    def make_task(self) -> Task:
        return tasks.make(self.task, self.steps, self.start == "sampled")

    def validation_splits(self) -> tuple[str, ...]:
        """The distributions on which a stage must pass."""
        return self.validation or tuple(dict.fromkeys((ID + held_out(self.inputs), *parts(self.inputs))))

    def labelled_inputs(self) -> str:
        """The distribution of the training inputs that come with true labels: of the slow system's labels, the first part's."""
        return self.inputs if self.labels == "true" else parts(self.inputs)[0]

    def labelled_splits(self) -> tuple[str, ...]:
        """The validation distributions with true labels."""
        if self.labels == "true":
            return self.validation_splits()
        return tuple(dict.fromkeys((ID + held_out(self.inputs), self.labelled_inputs())))

    def test_splits(self) -> tuple[str, ...]:
        """The in-distribution split, then the out-of-distribution ones, the headline first."""
        splits = self.evaluation.splits or self.make_task().ood()
        return (ID, *(name for split in splits for name in (self.make_task().battery() if split == BATTERY else (split,))))

    @property
    def task_name(self) -> str:
        """The task's name, short where `task` is the text of an automaton."""
        return self.make_task().name

    @property
    def title(self) -> str:
        """Its task and the length of its inputs."""
        return f"{self.task_name} over {self.steps} steps"

    @property
    def chance(self) -> float:
        """Accuracy of a guess."""
        return self.make_task().chance

    def stem(self) -> str:
        """The name of the run's directory, less the hash."""
        return f"{self.task_name}-T{self.steps}-{own_code.short(self.curriculum)}-{self.inputs}"

    def own(self) -> tuple[str, ...]:
        """Settings that may name code of the user's own."""
        return self.task, self.curriculum


BATTERY = "battery"  # in evaluation.splits: the task's whole battery
ID = "uniform"  # the in-distribution split is uniform inputs, whatever a run trains on (paper)
