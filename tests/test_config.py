from dataclasses import replace
from typing import Any

import pytest

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
