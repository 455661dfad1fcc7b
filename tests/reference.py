"""A plain transformer and training loop, with none of the project's shortcuts: what every faster path must agree with.

Every column is computed in every layer, attention is written out, the loss is masked at the end, and AdamW is PyTorch's
default one. Weights and batches are taken from a run, so that nothing but the arithmetic differs.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from internalize.models import Transformer
from internalize.rendering import Batch


def logits(model: Transformer, weights: dict[str, Tensor], tokens: Tensor, positions: Tensor) -> Tensor:
    """(B, N, V) by explicit matrices; learnt absolute positions, LayerNorm and GELU."""
    config = model.config
    x = weights["embedding.weight"][tokens] + weights["position.weight"][positions]
    columns = tokens.shape[1]
    causal = torch.ones(columns, columns, dtype=torch.bool).tril()
    for index in range(config.layers):
        at = f"layers.{index}."
        y = norm(x, weights, at + "norm_attention")
        key, value = linear(y, weights, at + "key_value").chunk(2, dim=-1)
        q, k, v = (
            part.view(*part.shape[:2], config.heads, -1).transpose(1, 2)
            for part in (linear(y, weights, at + "query"), key, value)
        )
        scores = (q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])).masked_fill(~causal, -math.inf)
        attended = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        x = x + linear(attended, weights, at + "attention_out")
        hidden = F.gelu(linear(norm(x, weights, at + "norm_mlp"), weights, at + "mlp_in"))
        x = x + linear(hidden, weights, at + "mlp_out")
    return norm(x, weights, "norm") @ weights["unembedding.weight"].T


def norm(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    """LayerNorm, written out."""
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled * weights[name + ".weight"] + weights[name + ".bias"]


def linear(x: Tensor, weights: dict[str, Tensor], name: str) -> Tensor:
    """An affine map."""
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def losses(
    model: Transformer, batches: list[Batch], lr: float, betas: tuple[float, float], decay: float, warmup: int, clip: float
) -> list[float]:
    """The loss before each step of training on `batches`."""
    weights = {name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()}
    optimizer = torch.optim.AdamW(weights.values(), lr, betas, weight_decay=decay, foreach=False, fused=False)
    curve = []
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / warmup)
        tokens, positions = torch.from_numpy(batch.tokens), torch.from_numpy(batch.positions.copy())
        found = logits(model, weights, tokens, positions)[:, :-1].log_softmax(-1).gather(2, tokens[:, 1:, None])[..., 0]
        target = torch.from_numpy(batch.target[:, 1:])
        loss = -(found * target).sum() / target.sum()
        optimizer.zero_grad()
        loss.backward()
        weights["embedding.weight"].grad[0] = 0  # padding stays zero
        total = torch.stack([value.grad.norm() for value in weights.values()]).norm()
        for value in weights.values():
            value.grad *= min(1.0, clip / (float(total) + 1e-6))
        optimizer.step()
        curve.append(loss.item())
    return curve
