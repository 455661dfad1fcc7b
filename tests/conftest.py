import os

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
