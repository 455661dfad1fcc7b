"""Make a transformer absorb its chain of thought (arXiv 2606.20937).

import internalize

run = internalize.fit(task="C3", steps=15, curriculum="left", inputs="uniform+dirichlet", seeds=3)
print(run.table())
run.report()
"""

from importlib.metadata import version

from internalize.api import certify, construct, fast_when_sure, fit
from internalize.config import EvaluationConfig, OptimizerConfig, RunConfig
from internalize.curricula import Curriculum, Schedule, View
from internalize.errors import UserError
from internalize.evaluation import Certificate, Procedure, Reply
from internalize.models import ModelConfig, Transformer
from internalize.runs import Answer, Run, load
from internalize.tasks import SequenceTask, Task, Trace, Traces

__version__ = version("internalize")

__all__ = [
    "Answer",
    "Certificate",
    "Curriculum",
    "EvaluationConfig",
    "ModelConfig",
    "OptimizerConfig",
    "Procedure",
    "Reply",
    "Run",
    "RunConfig",
    "Schedule",
    "SequenceTask",
    "Task",
    "Trace",
    "Traces",
    "Transformer",
    "UserError",
    "View",
    "certify",
    "construct",
    "fast_when_sure",
    "fit",
    "load",
]
