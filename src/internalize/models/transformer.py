"""A decoder-only transformer, small enough to read: GPT-2's shape with three choices of position encoding.

Differences from GPT-2: no dropout; norms may be left out; the output matrix is not tied to the embedding; the last layer is
computed only at the columns from which a prediction is used (nothing else reads the others).

Shapes: B rows, N columns, D width, H heads, K = D / H head dimension, V vocabulary.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from internalize.models.attention import attention
from internalize.models.config import ModelConfig


class Cache:
    """Keys and values of the columns read so far, with room for `columns`: (B, columns, 2D) for each layer."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.layers: dict[int, tuple[Tensor, int]] = {}

    def extend(self, layer: int, key_value: Tensor) -> Tensor:
        """Add new columns (B, n, 2D) to a layer, and return all that it holds."""
        if layer not in self.layers:
            self.layers[layer] = key_value.new_empty(key_value.shape[0], self.columns, key_value.shape[2]), 0
        held, start = self.layers[layer]
        end = start + key_value.shape[1]
        held[:, start:end] = key_value
        self.layers[layer] = held, end
        return held[:, :end]


class Layer(nn.Module):
    """Attention, then MLP, each with a residual connection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.rotary = config.positions == "rotary"
        self.gelu = config.activation == "gelu"
        norm = (lambda: nn.LayerNorm(config.width)) if config.norm == "layer" else nn.Identity
        self.norm_attention = norm()
        self.query = nn.Linear(config.width, config.width)
        self.key_value = nn.Linear(config.width, 2 * config.width)
        self.attention_out = nn.Linear(config.width, config.width)
        self.norm_mlp = norm()
        self.mlp_in = nn.Linear(config.width, config.mlp)
        self.mlp_out = nn.Linear(config.mlp, config.width)

    def forward(self, x: Tensor, positions: Tensor, first: int, cache: Cache | None, index: int) -> Tensor:
        """x: (B, N, D) for the new columns. Returns (B, N - first, D), the columns from `first` on."""
        y = self.norm_attention(x)
        query, key_value = self.query(y[:, first:]), self.key_value(y)
        if self.rotary:
            key, value = key_value.chunk(2, dim=2)
            query = rotate(query, positions[:, first:], self.heads)
            key_value = torch.cat([rotate(key, positions, self.heads), value], dim=2)
        if cache is not None:
            key_value = cache.extend(index, key_value)
        x = x[:, first:] + self.attention_out(attention(query, key_value, self.heads))
        hidden = self.mlp_in(self.norm_mlp(x))
        update: Tensor = self.mlp_out(F.gelu(hidden) if self.gelu else F.relu(hidden))
        return x + update


class Transformer(nn.Module):
    """Next-token predictor over a vocabulary of `vocabulary` ids and at most `length` columns.

    `generator` makes the initial weights reproducible; without one they are left to be loaded.
    """

    def __init__(self, config: ModelConfig, vocabulary: int, length: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config, self.vocabulary, self.length = config, vocabulary, length
        self.embedding = nn.Embedding(vocabulary, config.width, padding_idx=0)  # id 0 is embedded as zero, always
        self.position = nn.Embedding(length, config.width) if config.positions == "absolute" else None
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width) if config.norm == "layer" else nn.Identity()
        self.unembedding = nn.Linear(config.width, vocabulary, bias=False)
        if generator is not None:
            self._initialise(generator)

    def forward(self, tokens: Tensor, positions: Tensor, first: int = 0, cache: Cache | None = None) -> Tensor:
        """Logits of the token after each column from `first` on.

        tokens, positions: (B, N) of the new columns (all columns when there is no cache). Returns (B, N - first, V).
        """
        x = self.embedding(tokens)
        if self.position is not None:
            x = x + self.position(positions)
        last = len(self.layers) - 1
        for index, layer in enumerate(self.layers):
            x = layer(x, positions, first if index == last else 0, cache, index)
        logits: Tensor = self.unembedding(self.norm(x))
        return logits

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def _initialise(self, generator: torch.Generator) -> None:
        """GPT-2's initialisation: N(0, 0.02), residual projections scaled down with depth, zero biases."""
        residual = 0.02 / math.sqrt(2 * len(self.layers))
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if parameter.dim() == 1:
                    parameter.fill_(1.0 if name.endswith("weight") else 0.0)
                else:
                    std = residual if name.endswith(("attention_out.weight", "mlp_out.weight")) else 0.02
                    parameter.normal_(0, std, generator=generator)
            self.embedding.weight[0] = 0


def rotate(x: Tensor, positions: Tensor, heads: int) -> Tensor:
    """Rotary encoding (Su et al. 2021), base 10000, of each head: x (B, N, D), positions (B, N)."""
    x = x.reshape(*x.shape[:2], heads, -1)
    half = x.shape[-1] // 2
    frequency = 10_000.0 ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
    angle = positions[:, :, None, None].to(x.dtype) * frequency
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(2)
