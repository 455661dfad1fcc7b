import os

import pytest
import torch

# One thread a process, as the launcher does it: tests run side by side, and results do not depend on the machine's cores.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
