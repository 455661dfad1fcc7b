"""Causal attention: torch's own, except for many small heads on a CPU, where a kernel in C (attention.c) is faster.

The paper's models have heads of dimension 4, for which general kernels are not made. The kernel is compiled once, with the
machine's C compiler, into the user's cache directory. Where there is none, torch's attention is used; `kernel()` says which
one it is, and so does every result. INTERNALIZE_ATTENTION=torch switches the kernel off.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

HEAD_DIMENSIONS = (2, 4, 8, 16)  # that the kernel is compiled for
FLAGS = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-shared", "-fPIC"]


def attention(query: Tensor, key_value: Tensor, heads: int) -> Tensor:
    """Causal softmax attention of the last n columns to all N columns.

    query: (B, n, D); key_value: (B, N, 2D), the keys, then the values, of every column. Returns (B, n, D). A column's D numbers
    are its heads side by side.
    """
    dimension = query.shape[2] // heads
    small = dimension in HEAD_DIMENSIONS and query.dtype == torch.float32 and query.device.type == "cpu"
    if small and kernel() == "c":
        attended: Tensor = _Kernel.apply(query, key_value, heads)[0]  # type: ignore[no-untyped-call]
        return attended
    return torch_attention(query, key_value, heads)


def torch_attention(query: Tensor, key_value: Tensor, heads: int) -> Tensor:
    """The same by torch alone, on any device and in any precision."""
    parts = (query, *key_value.chunk(2, dim=2))
    q, k, v = (part.reshape(*part.shape[:2], heads, -1).transpose(1, 2) for part in parts)
    new, total = q.shape[2], k.shape[2]
    if new == 1:
        attended = F.scaled_dot_product_attention(q, k, v)
    elif new == total:
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        mask = torch.ones(new, total, dtype=torch.bool, device=query.device).tril(total - new)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return attended.transpose(1, 2).flatten(2)


def kernel() -> str:
    """Which attention small heads on a CPU get here: "c" or "torch"."""
    return "torch" if _library() is None else "c"


class _Kernel(torch.autograd.Function):
    """The kernel, split over torch's threads by rows, so that results do not depend on their number.

    `torch.func` may map it over a leading dimension of seeds: attention has no weights, so seeds are only more rows.
    """

    @staticmethod
    def forward(query: Tensor, key_value: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        """The output, and what the backward pass needs of the softmax."""
        if query.stride(2) != 1 or key_value.stride(2) != 1:
            query, key_value = query.contiguous(), key_value.contiguous()
        lanes = _loaded().attention_lanes()
        out = query.new_empty(query.shape)
        stats = query.new_empty(query.shape[0], query.shape[1], -(-heads // lanes), 2, lanes)

        def part(rows: slice) -> None:
            q, kv = query[rows], key_value[rows]
            sizes = q.shape[2] // heads, len(q), heads, q.shape[1], kv.shape[1]
            arrays = q, q.stride(0), q.stride(1), kv, kv.stride(0), kv.stride(1), out[rows], stats[rows]
            _call("attention_forward", *sizes, *arrays)

        _over_threads(part, len(query))
        return out, stats

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: tuple[Tensor, Tensor]) -> None:
        query, key_value, ctx.heads = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(query, key_value, *output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        d_query, d_kv = _KernelBackward.apply(*ctx.saved_tensors, gradients[0], ctx.heads)  # type: ignore[no-untyped-call]
        return d_query, d_kv, None

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], query: Tensor, key_value: Tensor, heads: int) -> Any:
        rows = [_rows(value, dim, info.batch_size) for value, dim in zip((query, key_value), dims, strict=False)]
        return _seeds(_Kernel.apply(*rows, heads), info.batch_size), (0, 0)  # type: ignore[no-untyped-call]


class _KernelBackward(torch.autograd.Function):
    """The gradients of `_Kernel`, a function of its own so that it can be mapped over seeds, too."""

    @staticmethod
    def forward(
        query: Tensor, key_value: Tensor, out: Tensor, stats: Tensor, d_out: Tensor, heads: int
    ) -> tuple[Tensor, Tensor]:
        query, out, stats, d_out = query.contiguous(), out.contiguous(), stats.contiguous(), d_out.contiguous()
        key_value = key_value if key_value.stride(2) == 1 else key_value.contiguous()
        d_query, d_kv = query.new_empty(query.shape), query.new_empty(key_value.shape)

        def part(rows: slice) -> None:
            q, kv = query[rows], key_value[rows]
            sizes = q.shape[2] // heads, len(q), heads, q.shape[1], kv.shape[1]
            arrays = q, kv, kv.stride(0), kv.stride(1), out[rows], d_out[rows], stats[rows], d_query[rows], d_kv[rows]
            _call("attention_backward", *sizes, *arrays)

        _over_threads(part, len(query))
        return d_query, d_kv

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(*output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        raise NotImplementedError("the attention kernel has no second derivative; set INTERNALIZE_ATTENTION=torch")

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *inputs: Any) -> Any:
        *tensors, heads = inputs
        rows = [_rows(value, dim, info.batch_size) for value, dim in zip(tensors, dims, strict=False)]
        return _seeds(_KernelBackward.apply(*rows, heads), info.batch_size), (0, 0)  # type: ignore[no-untyped-call]


def _rows(value: Tensor, dim: int | None, seeds: int) -> Tensor:
    """A tensor that is mapped over its dimension `dim`, or shared by all seeds, as (seeds * rows, ...)."""
    value = value.expand(seeds, *value.shape) if dim is None else value.movedim(dim, 0)
    return value.flatten(0, 1)


def _seeds(outputs: tuple[Tensor, ...], seeds: int) -> tuple[Tensor, ...]:
    """The inverse of `_rows`."""
    return tuple(value.reshape(seeds, -1, *value.shape[1:]) for value in outputs)


def _over_threads(part: Any, rows: int) -> None:
    """Call `part` on slices that make up all rows, one for each of torch's threads. The kernel runs without Python's lock."""
    threads = min(torch.get_num_threads(), rows)
    if threads <= 1:
        part(slice(0, rows))
        return
    edges = [rows * index // threads for index in range(threads + 1)]
    list(_pool(threads).map(part, [slice(edges[index], edges[index + 1]) for index in range(threads)]))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def _call(name: str, *arguments: Any) -> None:
    values = [argument.data_ptr() if isinstance(argument, Tensor) else argument for argument in arguments]
    if getattr(_loaded(), name)(*values):
        raise MemoryError


def _loaded() -> ctypes.CDLL:
    library = _library()
    assert library is not None
    return library


@cache
def _library() -> ctypes.CDLL | None:
    """The compiled kernel, or None where it is switched off or there is no working compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if os.environ.get("INTERNALIZE_ATTENTION") == "torch" or not compiler:
        return None
    source = Path(__file__).with_name("attention.c")
    try:
        key = hashlib.sha256("\0".join([source.read_text(), compiler, *FLAGS, _processor()]).encode()).hexdigest()[:16]
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "internalize"
        file = folder / f"attention-{key}.so"
        if not file.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                made = Path(scratch) / file.name
                subprocess.run([compiler, *FLAGS, str(source), "-lm", "-o", str(made)], check=True, capture_output=True)
                made.replace(file)
        library = ctypes.CDLL(str(file))
    except (OSError, RuntimeError, subprocess.CalledProcessError):  # RuntimeError: no home directory
        return None
    i, p, s = ctypes.c_int, ctypes.c_void_p, ctypes.c_ssize_t
    library.attention_forward.argtypes = [i, i, i, i, i, p, s, s, p, s, s, p, p]
    library.attention_backward.argtypes = [i, i, i, i, i, p, p, s, s, p, p, p, p, p]
    return library


def _processor() -> str:
    """What tells apart machines that share a home directory."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith(("flags", "Features"))), platform.machine())
    except OSError:
        return platform.machine() + platform.processor()
