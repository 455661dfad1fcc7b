"""Models: next-token predictors."""

from internalize.models.attention import kernel
from internalize.models.cost import forward_operations
from internalize.models.transformer import Cache, ModelConfig, Transformer

__all__ = ["Cache", "ModelConfig", "Transformer", "forward_operations", "kernel"]
