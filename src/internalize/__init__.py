"""Make a transformer absorb its chain of thought (arXiv 2606.20937).

import internalize

run = internalize.fit(task="C3", steps=15, curriculum="left", inputs="uniform+dirichlet", seeds=3)
print(run.table())
run.report()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from internalize.api import certify, construct, fast_when_sure, fit
    from internalize.config import EvaluationConfig, OptimizerConfig, RunConfig
    from internalize.curricula import Curriculum, Schedule, View
    from internalize.errors import UserError
    from internalize.evaluation import Certificate, Procedure, Reply
    from internalize.models import ModelConfig, Transformer
    from internalize.runs import Answer, Run, load
    from internalize.tasks import SequenceTask, Task, Trace, Traces

    __version__: str
else:
    from internalize.lazy import lazily

    _get = lazily(
        __name__,
        {
            "internalize.api": "certify construct fast_when_sure fit",
            "internalize.config": "EvaluationConfig OptimizerConfig RunConfig",
            "internalize.curricula": "Curriculum Schedule View",
            "internalize.errors": "UserError",
            "internalize.evaluation": "Certificate Procedure Reply",
            "internalize.models": "ModelConfig Transformer",
            "internalize.runs": "Answer Run load",
            "internalize.tasks": "SequenceTask Task Trace Traces",
        },
    )

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("internalize")
        return _get(name)


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
