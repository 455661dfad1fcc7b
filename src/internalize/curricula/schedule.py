"""When a stage is over: after its share of the budget (fixed), or once it is learnt (adaptive); and what comes after it."""

from dataclasses import dataclass, field
from typing import Literal

from internalize.checking import check_at_least, check_types
from internalize.errors import UserError


@dataclass(frozen=True)
class Schedule:
    """Limits on optimizer steps, and the threshold of the adaptive schedule. The numbers are ours."""

    kind: Literal["adaptive", "fixed"] = "adaptive"
    """adaptive: a stage ends once every validation distribution passes; fixed: stages share the budget equally"""
    budget: int = 20_000
    """optimizer steps of the whole run at most (exactly, if fixed)"""
    stage_budget: int = 3_000
    """adaptive: steps after which a stage that is not learnt is given up; see `exhausted`"""
    first_stage: int = 0
    """adaptive: least steps of the first stage, however early it is learnt; with more of them the slow system stays right on
    inputs that it was not trained on"""
    exhausted: Literal["advance", "rollback", "stop"] = "advance"
    """adaptive: what then happens. advance: go on to the next stage all the same (the last stage takes all steps that
    remain); rollback: take up the weights from the end of the stage before and try again, one stage further back at each
    failure in a row; stop: end the run there"""
    threshold: float = 0.98
    """adaptive: validation accuracy, on each distribution, that ends a stage"""
    check_every: int = 50
    """adaptive: steps between looks at the validation accuracy; fixed: between progress reports"""

    def __post_init__(self) -> None:
        check_types(self, "schedule.")
        check_at_least(self, 1, "budget", "stage_budget", "check_every", group="schedule.")
        check_at_least(self, 0, "first_stage", group="schedule.")
        if not 0 < self.threshold <= 1:
            raise UserError(f"schedule.threshold is {self.threshold}; it must be above 0 and at most 1.")

    def limit(self, stage: int, stages: int, spent: int) -> int:
        """The steps that stage `stage` of `stages` may take, when the stages before it took `spent`."""
        if self.kind == "fixed":
            return self.budget * (stage + 1) // stages - self.budget * stage // stages
        left = self.budget - spent
        takes_rest = stages == 1 or (stage == stages - 1 and self.exhausted == "advance")
        most = max(self.stage_budget, self.first_stage) if stage == 0 else self.stage_budget
        return left if takes_rest else min(most, left)

    def passes(self, accuracies: dict[str, float], stage: int, steps: int) -> bool:
        """Whether the stage is learnt on every validation distribution after `steps`. Never under the fixed schedule."""
        enough = stage > 0 or steps >= self.first_stage
        return self.kind == "adaptive" and enough and all(value >= self.threshold for value in accuracies.values())


@dataclass
class Standing:
    """Where a run stands among its stages; saved with it."""

    stage: int = 0
    attempt: int = 0  # attempts at stages that are over
    failures: int = 0  # times that a stage was given up since one beyond `stuck` was learnt
    stuck: int = -1  # the stage that was given up last
    learnt: list[int] = field(default_factory=list)  # stages that were passed, in whichever attempt
    saved: list[int] = field(default_factory=list)  # stages whose weights are kept

    @property
    def last(self) -> int:
        """The last stage that left its weights: what the run has come to."""
        return max([*self.saved, *self.learnt])


@dataclass(frozen=True)
class Move:
    """What follows the end of an attempt at a stage.

    Attributes:
        save: the weights are now those of that stage. An attempt that was not passed replaces none that was.
        over: the run ends here, with the weights of `Standing.last`.
        back: the stage whose weights to take up, after a roll-back; None where training goes on with the present ones.
    """

    save: bool
    over: bool = False
    back: int | None = None


def end_attempt(schedule: Schedule, at: Standing, stages: int, passed: bool, spent: bool) -> Move:
    """Move `at` on from an attempt that is over.

    Args:
        schedule: says what follows a stage that was not learnt.
        at: where the run stands; changed to where it goes on. At the end of the run it stays at the stage of the attempt.
        stages: how many there are.
        passed: whether the stage was learnt.
        spent: whether the budget of the whole run is used up.
    """
    stage = at.stage
    save, back, over = passed or stage not in at.learnt, None, False
    if not passed and not spent and schedule.kind == "adaptive" and schedule.exhausted == "rollback":
        at.failures, at.stuck = at.failures + 1, stage
        back = stage - min(at.failures, stage)
        at.stage = min(back + 1, stage)
        save = back == stage  # of the first stage there is nothing to go back to, but what it has come to
    else:
        over = spent or stage == stages - 1 or (not passed and schedule.kind == "adaptive" and schedule.exhausted == "stop")
        at.failures = at.failures if stage < at.stuck else 0
        at.stage = stage if over else stage + 1
    at.attempt += 1
    at.learnt = sorted({*at.learnt, *([stage] if passed else [])})
    at.saved = sorted({*at.saved, *([stage] if save else [])})
    return Move(save, over, back)
