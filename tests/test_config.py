import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize import EvaluationConfig, ModelConfig, OptimizerConfig, RunConfig, UserError
from internalize.api import configure, seed_list


def test_the_hash_covers_what_differs_from_the_defaults() -> None:
    assert RunConfig().hash() == RunConfig(task="C3").hash()
    others = [RunConfig(task="C2"), RunConfig(model=ModelConfig(layers=2)), RunConfig(optimizer=OptimizerConfig(lr=1e-4))]
    assert len({config.hash() for config in [RunConfig(), *others]}) == 4
    # Old runs must keep their names: this value changes only with SCHEMA.
    assert RunConfig(task="C2", model=ModelConfig(layers=2)).hash() == "2e49be02"


def test_json_round_trip() -> None:
    config = RunConfig(task="S3", validation=("uniform", "sticky:0.9"), evaluation=EvaluationConfig(splits=("constant",)))
    assert RunConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    "change", [{"schema": 99}, {"colour": "red"}, {"model": {"colour": 1}}, {"model": 3}, {"optimizer": None}]
)
def test_json_of_another_version(change: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        RunConfig.from_json(RunConfig().to_json() | change)


def test_validation_is_uniform_and_every_part_of_the_inputs() -> None:
    assert RunConfig().validation_splits() == ("uniform",)
    assert RunConfig(inputs="dirichlet").validation_splits() == ("uniform", "dirichlet")
    assert RunConfig(inputs="sticky+uniform").validation_splits() == ("uniform", "sticky")
    assert RunConfig(validation=("blocks",)).validation_splits() == ("blocks",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"task": "Q9"},
        {"steps": 0},
        {"curriculum": "up"},
        {"inputs": "noise"},
        {"inputs": "biased:3:0.5"},
        {"validation": ["noise"]},
    ]
    + [{"optimizer": {name: value}} for name, value in {"lr": 0, "beta1": 1, "beta2": -0.1, "weight_decay": -1}.items()]
    + [{"optimizer": {name: value}} for name, value in {"warmup": -1, "clip": 0, "batch": 0}.items()]
    + [{"evaluation": {name: value}} for name, value in {"samples": 0, "stage_samples": 0, "validation": 0}.items()]
    + [{"evaluation": {"splits": ["noise"]}}, {"model": {"colour": 1}}, {"colour": 1}],
)
def test_bad_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        configure(RunConfig(), **wrong)


def test_groups_are_replaced_field_by_field() -> None:
    config = configure(RunConfig(optimizer=OptimizerConfig(batch=7)), optimizer={"lr": 0.1})
    assert config == replace(RunConfig(), optimizer=OptimizerConfig(batch=7, lr=0.1))


def test_seeds() -> None:
    assert seed_list(3) == [0, 1, 2]
    assert seed_list([5, 2]) == [5, 2]
    for wrong in (0, -1, [], [1, 1], [-1]):
        with pytest.raises(UserError):
            seed_list(wrong)


VALUES: Any = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.floats(allow_nan=True)
    | st.text(max_size=4)
    | st.lists(st.text(max_size=3))
) | st.sampled_from(["C3", "S3", "left", "uniform", "parity:2", "multiply", "sticky:0.5", {"width": 8}, {"lr": "fast"}])
PATHS = [(name,) for name in RunConfig().to_json()] + [
    (group, field) for group, fields in RunConfig().to_json().items() if isinstance(fields, dict) for field in fields
]


@given(st.dictionaries(st.sampled_from(PATHS), VALUES, max_size=3), st.sampled_from([None, *PATHS]))
def test_whatever_a_configuration_file_holds_is_a_configuration_or_one_sentence(
    changes: dict[tuple[str, ...], Any], gone: tuple[str, ...] | None
) -> None:
    values = json.loads(json.dumps(RunConfig().to_json()))
    for path, value in changes.items():
        inner = values
        for key in path[:-1]:
            inner = inner[key] if isinstance(inner.get(key), dict) else {}
        inner[path[-1]] = value
    if gone and len(gone) == 1:
        values.pop(gone[0])
    try:
        config = RunConfig.from_json(values)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"steps": "15"}, "steps is '15'; it must be of type int"),
        ({"steps": 2.5}, r"steps is 2\.5; it must be of type int"),
        ({"steps": True}, "steps is True; it must be a number"),
        ({"task": 3}, "task is 3; it must be of type str"),
        ({"optimizer": {"lr": "fast"}}, r"optimizer\.lr is 'fast'; it must be of type float"),
        ({"optimizer": {"lr": float("nan")}}, r"optimizer\.lr is nan"),
        ({"optimizer": {"clip": float("nan")}}, r"optimizer\.clip is nan"),
        ({"model": {"positions": "sinus"}}, r"model\.positions is 'sinus'; it must be of type Literal"),
        ({"schedule": {"exhausted": "weep"}}, r"schedule\.exhausted is 'weep'"),
        ({"removal": {"removed": "blank"}}, r"removal\.removed is 'blank'"),
        ({"position_ids": "own"}, "position_ids is 'own'"),
        ({"validation": 3}, "validation is 3"),
        ({"model": 3}, "model is 3"),
    ],
)
def test_values_of_the_wrong_type(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        configure(RunConfig(), **wrong)
