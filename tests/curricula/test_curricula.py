from itertools import pairwise
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize import curricula
from internalize.curricula import RemovalConfig
from internalize.errors import UserError

UNITS = st.integers(0, 30)
SPECS = [
    "e2e",
    "cot",
    "left",
    "right",
    "left:2",
    "right:3",
    "left:25%",
    "right:30%",
    "inductive",
    "inductive:stepwise",
    "mixture",
]


def kept(spec: str, units: int) -> list[list[int]]:
    curriculum = curricula.make(spec)
    return [np.flatnonzero(curriculum.keep(units, stage)).tolist() for stage in range(curriculum.stages(units))]


def test_what_each_stage_shows() -> None:
    assert kept("e2e", 3) == [[]]
    assert kept("cot", 3) == [[0, 1, 2]]
    assert kept("left", 3) == [[0, 1, 2], [1, 2], [2], []]
    assert kept("right", 3) == [[0, 1, 2], [0, 1], [0], []]
    assert kept("left:2", 3) == [[0, 1, 2], [2], []]
    assert kept("left:50%", 5) == [[0, 1, 2, 3, 4], [3, 4], []]
    assert kept("inductive", 5) == [[0, 1, 2, 3, 4], [1, 3], [3], []]
    assert kept("inductive:stepwise", 4) == [[0, 1, 2, 3], [1, 3], [2], [3], []]
    assert kept("right:2", 4) == [[0, 1, 2, 3], [0, 1], []]


@pytest.mark.parametrize("spec", SPECS)
@given(units=UNITS)
def test_laws_of_every_curriculum(spec: str, units: int) -> None:
    curriculum = curricula.make(spec)
    for stage in range(curriculum.stages(units)):
        shares, views = zip(*curriculum.mixture(units, stage), strict=True)
        assert sum(shares) == pytest.approx(1)
        assert all(len(view.keep) == units for view in views)
        assert curriculum.mixture(units, stage) == curricula.make(spec).mixture(units, stage)  # depends on nothing else
        assert all((view.hint == view.shown) if curriculum.hint else (view.hint is None) for view in views)
    last = curriculum.target(units, curriculum.stages(units) - 1)
    assert last.shown == (units if spec == "cot" else 0)


@pytest.mark.parametrize("spec", ["left", "right", "left:2", "right:3", "left:25%", "right:30%", "inductive"])
@given(units=UNITS)
def test_removal_starts_from_everything_and_never_gives_back(spec: str, units: int) -> None:
    stages = kept(spec, units)
    assert stages[0] == list(range(units))
    for before, after in pairwise(stages):
        assert set(after) <= set(before) if "%" in spec else set(after) < set(before)


@given(units=UNITS, smoothing=st.floats(0.5, 5), replay=st.floats(0, 0.9))
def test_smoothing_looks_ahead_and_replay_back(units: int, smoothing: float, replay: float) -> None:
    curriculum = curricula.make("left", RemovalConfig(smoothing=smoothing, replay=replay, hint=True))
    for stage in range(units + 1):
        shares = {view.shown: share for share, view in curriculum.mixture(units, stage)}
        assert sum(shares.values()) == pytest.approx(1)
        earlier = [shares.get(units - before, 0) for before in range(stage)]
        assert earlier == pytest.approx([replay / stage] * stage if stage else [])
        ahead = [shares[units - after] for after in range(stage, units + 1)]
        assert [b / a for a, b in pairwise(ahead)] == pytest.approx([exp(-smoothing)] * (units - stage))
        assert curriculum.target(units, stage).shown == units - stage


@given(units=UNITS)
def test_the_mixture_holds_every_stage_of_left_once(units: int) -> None:
    mixed = [view.keep for _, view in curricula.make("mixture").mixture(units, 0)]
    left = curricula.make("left")
    assert mixed == [left.target(units, stage).keep for stage in range(units + 1)]


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "up",
        "left:101%",
        "left:0%",
        "left:%",
        "inductive:3",
        "left:0",
        "left:-1",
        "left:x",
        "left:1:2",
        "e2e:1",
        "cot:2",
        "mixture:3",
        "LEFT",
    ],
)
def test_bad_specifications(spec: str) -> None:
    with pytest.raises(UserError):
        curricula.make(spec)


@pytest.mark.parametrize("wrong", [{"smoothing": -1.0}, {"replay": -0.1}, {"replay": 1.0}])
def test_bad_removal_settings(wrong: dict[str, float]) -> None:
    with pytest.raises(UserError, match=rf"removal\.{next(iter(wrong))}"):
        RemovalConfig(**wrong)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        ("mixture", {"replay": 0.3}),
        ("mixture", {"smoothing": 4.0}),
        ("mixture", {"hint": True}),
        ("e2e", {"smoothing": 4.0}),
        ("cot", {"replay": 0.3}),
        ("cot", {"removed": "filler"}),
    ],
)
def test_an_option_that_changes_nothing_is_refused(spec: str, options: dict) -> None:
    (name,) = options
    with pytest.raises(UserError, match=rf'removal\.{name} is .* changes nothing that "{spec}" shows'):
        curricula.make(spec, RemovalConfig(**options))


@pytest.mark.parametrize("options", [{"hint": True}, {"removed": "filler"}, {"smoothing": 4.0}, {"replay": 0.3}])
@pytest.mark.parametrize("spec", ["left", "right", "left:25%", "inductive", "inductive:stepwise"])
def test_curricula_with_stages_take_every_option(spec: str, options: dict) -> None:
    assert curricula.make(spec, RemovalConfig(**options)) != curricula.make(spec)
