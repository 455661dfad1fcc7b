from pathlib import Path

import pytest

import internalize.models.transformer as transformer
import reference
from internalize import ModelConfig, OptimizerConfig, RunConfig
from internalize.learners.sandbox import SandboxLearner
from internalize.models.attention import attention, torch_attention

STEPS = 50
TOLERANCE = 2e-4  # relative, at each of the 50 losses


@pytest.mark.parametrize("path", [attention, torch_attention])
@pytest.mark.parametrize("stage", [0, 5])
def test_loss_curves_agree_with_a_plain_implementation(
    path: object, stage: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformer, "attention", path)
    config = RunConfig(
        task="C3",
        steps=8,
        model=ModelConfig(layers=2, width=32, heads=8, mlp=64),
        optimizer=OptimizerConfig(batch=32, warmup=10),
    )
    run = SandboxLearner(config, 0, tmp_path)
    run.at.stage = stage
    batches = [run.draw(32) for _ in range(STEPS)]
    o = config.optimizer
    plain = reference.losses(run.model, batches, o.lr, (o.beta1, o.beta2), o.weight_decay, o.warmup, o.clip)
    ours = [float(run.step(batch)) for batch in batches]
    assert ours == pytest.approx(plain, rel=TOLERANCE)
    assert ours[-1] < ours[0]
