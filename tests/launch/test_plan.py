import pytest

from internalize.config import RunConfig
from internalize.launch import duration, make_plan
from internalize.launch.plan import _count


def test_the_plan_tells_sizes_before_the_start() -> None:
    plan = make_plan(RunConfig(task="C3", steps=15), seeds=3, processes=2)
    assert plan.longest == 31
    assert plan.stages == 15
    assert plan.inputs == 3**15
    assert plan.examples == 20_000 * 128
    assert plan.seconds > 0
    assert "14,348,907 possible inputs" in plan.text()
    assert "inputs repeat" in plan.text()
    assert _count(2**20_000) == "3.9e6020"
    assert _count(10**15) == "1.0e15"
    assert "times as many inputs" in make_plan(RunConfig(task="C3", steps=25), 1, 1).text()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (3599, "59 min 59 s"), (7500, "2 h 05 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
