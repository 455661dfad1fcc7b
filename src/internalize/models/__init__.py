"""Models: next-token predictors."""

from internalize.models.attention import kernel
from internalize.models.transformer import Cache, ModelConfig, Transformer

__all__ = ["Cache", "ModelConfig", "Transformer", "kernel"]
