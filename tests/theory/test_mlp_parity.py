from typing import Any

import numpy as np
import pytest

from internalize import UserError
from internalize.theory import MLPParityConfig, train_mlp_parity
from internalize.theory.mlp_parity import Curve, _Data

SMALL: dict[str, Any] = {"bits": 10, "support": 4, "steps": 1600, "batch": 64, "width": 64, "lr": 3e-3}


def test_the_curriculum_learns_a_small_parity() -> None:
    curve = train_mlp_parity(MLPParityConfig(**SMALL), [0, 1])
    assert curve.samples[-1] == 1600 * 64
    assert (curve.accuracy[:, 0] < 0.6).all()
    assert (curve.accuracy[:, -1] > 0.95).all()
    assert all(reached is not None for reached in curve.samples_to())


def test_seeds_side_by_side_equal_seeds_alone() -> None:
    config = MLPParityConfig(**SMALL | {"steps": 60, "arm": "mixture", "check_every": 20})
    together = train_mlp_parity(config, [3, 4])
    for index, seed in enumerate((3, 4)):
        alone = train_mlp_parity(config, [seed])
        assert np.abs(alone.accuracy[0] - together.accuracy[index]).max() < 0.01


def test_samples_to_an_accuracy_are_censored() -> None:
    curve = Curve(np.array([0, 10, 20]), np.array([[0.5, 0.96, 0.94], [0.5, 0.5, 0.6]]))
    assert curve.samples_to() == [10, None]
    assert curve.samples_to(0.6) == [10, 20]


@pytest.mark.parametrize("zeroed", ["right", "left"])
def test_the_stages_zero_the_hints_from_one_side(zeroed: Any) -> None:
    config = MLPParityConfig(**SMALL | {"steps": 4, "batch": 3, "zeroed": zeroed})
    x, y = _Data(config, 0).draw(0, 4)
    assert set(x[:, :10].unique().tolist()) == {-1.0, 1.0}
    shown = (x[:, 10:] != 0).view(4, 3, 3).int().tolist()
    rows = {"right": [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]], "left": [[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]]}
    assert shown == [[row] * 3 for row in rows[zeroed]]
    assert set(y.unique().tolist()) == {0.0, 1.0}


def test_hints_are_partial_parities_and_labels_are_noisy() -> None:
    config = MLPParityConfig(**SMALL | {"steps": 4, "batch": 4000, "inputs": "bits"})
    data = _Data(config, 1)
    x, y = data.draw(0, 1)
    bits = x[:, :10].numpy().astype(int)
    chain = bits[:, data.support].cumsum(1) % 2
    assert (x[:, 10:].numpy() == chain[:, :3]).all()
    assert 0.08 < (y[:, 0].numpy() != chain[:, 3]).mean() < 0.12


def test_a_finite_set_keeps_its_labels_and_shifted_inputs_are_biased() -> None:
    config = MLPParityConfig(**SMALL | {"train_size": 20, "steps": 4, "batch": 200, "arm": "direct"})
    x, y = _Data(config, 0).draw(0, 4)
    seen = {(tuple(row.tolist()), label) for row, label in zip(x, y[:, 0].tolist(), strict=True)}
    assert len(seen) <= 20
    shifted, _ = _Data(MLPParityConfig(**SMALL | {"arm": "shifted", "batch": 4000}), 0).draw(0, 1)
    uniform, _ = _Data(MLPParityConfig(**SMALL | {"arm": "direct", "batch": 4000}), 0).draw(0, 1)
    assert shifted[:, :10].sum(1).var() > 1.5 * uniform[:, :10].sum(1).var()


@pytest.mark.parametrize(
    "values",
    [
        {"support": 26},
        {"width": 0},
        {"steps": 0},
        {"batch": 0},
        {"lr": 0.0},
        {"noise": 0.6},
        {"train_size": -1},
        {"arm": "best"},
    ],
)
def test_settings_without_sense(values: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        MLPParityConfig(**values)
