import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from internalize.models import kernel
from internalize.models.attention import HEAD_DIMENSIONS, attention, torch_attention

needs_the_kernel = pytest.mark.skipif(kernel() != "c", reason="no C compiler, or INTERNALIZE_ATTENTION=torch")


def numbers(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@needs_the_kernel
@settings(max_examples=60)
@given(
    rows=st.integers(1, 3),
    heads=st.integers(1, 35),
    dimension=st.sampled_from(HEAD_DIMENSIONS),
    new=st.integers(1, 20),
    before=st.integers(0, 20),
    size=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 99),
)
def test_the_kernel_equals_torch(rows: int, heads: int, dimension: int, new: int, before: int, size: float, seed: int) -> None:
    width = heads * dimension
    query = (numbers(seed, rows, new, width) * size).requires_grad_()
    key_value = numbers(seed + 1, rows, new + before, 2 * width).requires_grad_()
    up = numbers(seed + 2, rows, new, width)
    out = attention(query, key_value, heads)
    exact = torch_attention(query.double(), key_value.double(), heads)
    gradients = torch.autograd.grad(out, (query, key_value), up)
    wanted = torch.autograd.grad(exact, (query, key_value), up.double())
    torch.testing.assert_close(out.double(), exact, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=1e-3, atol=1e-4 * max(1.0, size))


@needs_the_kernel
def test_parts_of_larger_tensors_and_several_threads() -> None:
    held = numbers(0, 5, 40, 2 * 64)
    query = numbers(1, 5, 9, 64)[:, 2:]  # as a cache and the last layer give them
    alone = attention(query, held[:, :20], 16)
    torch.testing.assert_close(alone, torch_attention(query, held[:, :20], 16), rtol=1e-4, atol=1e-5)
    torch.set_num_threads(3)
    try:
        assert torch.equal(attention(query, held[:, :20], 16), alone)
    finally:
        torch.set_num_threads(1)


@needs_the_kernel
def test_extreme_scores_stay_finite() -> None:
    query = torch.full((1, 4, 16), 1e4, requires_grad=True)
    key_value = numbers(0, 1, 4, 32) * 1e3
    out = attention(query, key_value, 4)
    out.sum().backward()
    assert out.isfinite().all()
    assert query.grad is not None
    assert query.grad.isfinite().all()


def test_other_shapes_and_precisions_are_torchs() -> None:
    for query, key_value, heads in (
        (numbers(0, 2, 3, 96), numbers(1, 2, 5, 192), 3),  # heads of dimension 32
        (numbers(0, 2, 3, 8).double(), numbers(1, 2, 5, 16).double(), 2),
    ):
        assert torch.equal(attention(query, key_value, heads), torch_attention(query, key_value, heads))


@pytest.mark.parametrize("environment", [{"INTERNALIZE_ATTENTION": "torch"}, {"CC": "/nowhere/cc"}])
def test_without_a_compiler_torch_is_used_and_said(environment: dict[str, str], tmp_path: Path) -> None:
    code = "from internalize.models import kernel; print(kernel())"
    environment = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)} | environment
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == "torch\n"
