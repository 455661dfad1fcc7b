import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

# One thread a process, as the launcher does it: tests run side by side, and results do not depend on the machine's cores.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

# How fast a machine is, or how busy, fails no test.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data and a small untrained model."""
    from internalize.lm.example import write_example

    out = tmp_path_factory.mktemp("example")
    write_example("story", 4, "gpt2", out, rows=200)
    return out
