from typing import Any

import pytest
import torch

from internalize.errors import UserError
from internalize.models import Cache, ModelConfig, Transformer

SHAPES = [
    {"layers": layers, "positions": positions, "activation": activation, "norm": norm}
    for layers, positions, activation, norm in [
        (1, "absolute", "gelu", "layer"),
        (2, "rotary", "relu", "layer"),
        (3, "none", "gelu", "none"),
        (2, "absolute", "relu", "none"),
    ]
]
VOCABULARY, LENGTH, ROWS, COLUMNS = 11, 14, 3, 12


def model(seed: int = 0, **shape: Any) -> Transformer:
    config = ModelConfig(**{"width": 16, "heads": 4, "mlp": 24, **shape})
    return Transformer(config, VOCABULARY, LENGTH, torch.Generator().manual_seed(seed)).double()


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(VOCABULARY, (ROWS, COLUMNS), generator=torch.Generator().manual_seed(1))
    return tokens, torch.arange(COLUMNS).expand(ROWS, -1)


@pytest.mark.parametrize("shape", SHAPES)
def test_skipping_unused_columns_changes_neither_logits_nor_gradients(shape: dict[str, Any]) -> None:
    tokens, positions = batch()
    outcomes = []
    for first, rest in ((0, 7), (7, 0)):
        network = model(**shape)
        logits = network(tokens, positions, first=first)[:, rest:]
        logits.square().mean().backward()
        outcomes.append((logits, [parameter.grad for parameter in network.parameters()]))
    (whole, whole_gradients), (short, short_gradients) = outcomes
    torch.testing.assert_close(short, whole)
    for one, other in zip(short_gradients, whole_gradients, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_with_a_cache_equals_reading_at_once(shape: dict[str, Any]) -> None:
    tokens, positions = batch()
    network, cache = model(**shape).requires_grad_(False), Cache(COLUMNS)
    whole = network(tokens, positions)
    pieces = [network(tokens[:, a:b], positions[:, a:b], cache=cache) for a, b in ((0, 5), (5, 6), (6, 7), (7, 12))]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_column_sees_what_follows(shape: dict[str, Any]) -> None:
    tokens, positions = batch()
    changed = tokens.clone()
    changed[:, 8:] = (changed[:, 8:] + 1) % VOCABULARY
    network = model(**shape)
    torch.testing.assert_close(network(tokens, positions)[:, :8], network(changed, positions)[:, :8])


def test_positions_matter_unless_there_are_none() -> None:
    tokens, positions = batch()
    for kind, matters in (("absolute", True), ("rotary", True), ("none", False)):
        network = model(layers=2, positions=kind)
        moved = positions.clone()
        moved[:, 6:] += 2
        assert torch.allclose(network(tokens, positions), network(tokens, moved)) is not matters


def test_rotary_depends_on_distance_only() -> None:
    tokens, positions = batch()
    network = model(layers=2, positions="rotary")
    torch.testing.assert_close(network(tokens, positions), network(tokens, positions + 5))


def test_size_is_that_of_the_papers_formula() -> None:
    network = Transformer(ModelConfig(layers=3, width=32, heads=8, mlp=48), VOCABULARY, LENGTH)
    matrices = sum(parameter.numel() for name, parameter in network.layers.named_parameters() if parameter.dim() == 2)
    assert matrices == 3 * (4 * 32**2 + 2 * 32 * 48)


def test_weights_come_from_the_generator_alone() -> None:
    same, other = model(), model(seed=1)
    torch.manual_seed(5)
    for one, two in zip(model().parameters(), same.parameters(), strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(other.embedding.weight, same.embedding.weight)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"width": 30, "heads": 4}, "30 cannot be divided among 4 heads"),
        ({"layers": 0}, "model.layers is 0"),
        ({"mlp": -1}, "model.mlp is -1"),
        ({"width": 12, "heads": 4, "positions": "rotary"}, "even dimension"),
    ],
)
def test_bad_shapes(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        ModelConfig(**wrong)
