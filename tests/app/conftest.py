from collections.abc import Iterator

import pytest
from playing import playground

import internalize
from tiny import TINY


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[internalize.Run]:
    """One that was hardly trained, and an exact one."""
    out = tmp_path_factory.mktemp("runs")
    trained = internalize.fit(**TINY, seeds=2, processes=1, out=out, quiet=True)
    return [trained, internalize.construct("C2", steps=6, via="count", out=out)]


@pytest.fixture(scope="session")
def address(runs: list[internalize.Run]) -> Iterator[str]:
    """Both of them, being played with."""
    with playground(*(run.path for run in runs)) as address:
        yield address
