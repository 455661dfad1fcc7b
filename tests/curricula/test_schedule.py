from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.curricula import Schedule, Standing, end_attempt
from internalize.errors import UserError


@given(budget=st.integers(1, 10_000), stages=st.integers(1, 40))
def test_a_fixed_schedule_spends_its_whole_budget_evenly(budget: int, stages: int) -> None:
    schedule = Schedule("fixed", budget=budget)
    limits = [schedule.limit(stage, stages, spent=0) for stage in range(stages)]
    assert sum(limits) == budget
    assert max(limits) - min(limits) <= 1
    assert not schedule.passes({"uniform": 1.0}, 0, 100)


def test_an_adaptive_stage_passes_on_every_distribution_or_not_at_all() -> None:
    schedule = Schedule(threshold=0.9)
    assert schedule.passes({"uniform": 0.9, "dirichlet": 1.0}, 0, 0)
    assert not schedule.passes({"uniform": 1.0, "dirichlet": 0.89}, 0, 0)


def test_the_first_stage_may_have_a_least_length() -> None:
    schedule = Schedule(budget=1000, stage_budget=300, first_stage=500)
    assert not schedule.passes({"uniform": 1.0}, 0, 499)
    assert schedule.passes({"uniform": 1.0}, 0, 500)
    assert schedule.passes({"uniform": 1.0}, 1, 50)
    assert [schedule.limit(stage, 4, spent=0) for stage in (0, 1)] == [500, 300]


def test_an_adaptive_stage_has_a_budget_and_the_last_one_takes_the_rest() -> None:
    schedule = Schedule(budget=1000, stage_budget=300)
    assert schedule.limit(0, 4, spent=0) == 300
    assert schedule.limit(1, 4, spent=900) == 100
    assert schedule.limit(3, 4, spent=400) == 600
    assert schedule.limit(0, 1, spent=0) == 1000


@given(
    exhausted=st.sampled_from(["advance", "rollback", "stop"]),
    stages=st.integers(1, 6),
    outcomes=st.lists(st.booleans(), min_size=60, max_size=60),
    budget=st.integers(1, 60),
)
def test_no_learnt_stage_is_lost_and_only_weights_that_exist_are_taken_up(
    exhausted: Any, stages: int, outcomes: list[bool], budget: int
) -> None:
    schedule, at = Schedule(exhausted=exhausted), Standing()
    weights: dict[int, bool] = {}  # of each stage that left some: whether they passed
    for count, passed in enumerate(outcomes, 1):
        stage, before = at.stage, dict(weights)
        move = end_attempt(schedule, at, stages, passed, spent=count >= budget)
        if move.save:
            weights[stage] = passed
        assert all(weights[learnt] for learnt, had_passed in before.items() if had_passed)
        assert (at.attempt, at.saved) == (count, sorted(weights))
        assert at.learnt == [stage for stage in sorted(weights) if weights[stage]]
        assert at.last == max(weights)
        if move.back is not None:
            assert exhausted == "rollback" and move.back in weights
            assert at.stage in (move.back, move.back + 1) and at.stage <= stage
        if move.over:
            assert at.stage == stage
            break
        if passed:
            assert at.stage == stage + 1
    assert move.over or count < budget
    assert count <= max(budget, stages)


@pytest.mark.parametrize(
    "wrong",
    [{"budget": 0}, {"stage_budget": -1}, {"check_every": 0}, {"first_stage": -1}, {"threshold": 0.0}, {"threshold": 1.1}],
)
def test_bad_schedules(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=rf"schedule\.{next(iter(wrong))}"):
        Schedule(**wrong)
