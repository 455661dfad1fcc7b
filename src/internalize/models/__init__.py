"""Models: next-token predictors."""

from typing import TYPE_CHECKING

from internalize.models.config import ModelConfig
from internalize.models.cost import forward_operations

if TYPE_CHECKING:
    from internalize.models.attention import kernel
    from internalize.models.transformer import Cache, Transformer
else:
    from internalize.lazy import lazily

    # A configuration needs no torch.
    where = {"internalize.models.attention": "kernel", "internalize.models.transformer": "Cache Transformer"}
    __getattr__ = lazily(__name__, where)

__all__ = ["Cache", "ModelConfig", "Transformer", "forward_operations", "kernel"]
