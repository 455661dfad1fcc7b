"""When a stage is over: after its share of the budget (fixed), or once it is learnt (adaptive)."""

from dataclasses import dataclass
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
