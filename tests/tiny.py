"""The smallest run there is, for tests that need a run and not its outcome."""

import shlex
from typing import Any

TINY: dict[str, Any] = {
    "task": "C2",
    "steps": 6,
    "inputs": "uniform+dirichlet",
    "model": {"width": 16, "heads": 4, "mlp": 16},
    "optimizer": {"batch": 16},
    "schedule": {"kind": "fixed", "budget": 20, "check_every": 5},
    "evaluation": {"samples": 40, "stage_samples": 20, "validation": 20},
}
FLAGS = shlex.split(
    "--task C2 --steps 6 --inputs uniform+dirichlet --model.width 16 --model.heads 4 --model.mlp 16 --optimizer.batch 16 "
    "--schedule.kind fixed --schedule.budget 20 --schedule.check-every 5 "
    "--evaluation.samples 40 --evaluation.stage-samples 20 --evaluation.validation 20"
)
