"""The shape of a model."""

from dataclasses import dataclass
from typing import Literal

from internalize.checking import check_at_least, check_types
from internalize.errors import UserError


@dataclass(frozen=True)
class ModelConfig:
    """The shape of the transformer. The paper's main model is 4 layers, width 512, 128 heads, MLP 2048; the default is ours."""

    layers: int = 1
    """number of layers L"""
    width: int = 64
    """embedding dimension d"""
    heads: int = 16
    """attention heads H; must divide the width"""
    mlp: int = 256
    """hidden units of each MLP"""
    positions: Literal["absolute", "rotary", "none"] = "absolute"
    """position encoding: learnt absolute embeddings (paper), rotary, or none"""
    activation: Literal["gelu", "relu"] = "gelu"
    """activation of the MLPs"""
    norm: Literal["layer", "none"] = "layer"
    """pre-norm with LayerNorm, or no norm at all"""

    def __post_init__(self) -> None:
        check_types(self, "model.")
        check_at_least(self, 1, "layers", "width", "heads", "mlp", group="model.")
        if self.width % self.heads:
            raise UserError(
                f"model.width {self.width} cannot be divided among {self.heads} heads; make it a divisor of {self.width}."
            )
        if self.positions == "rotary" and (self.width // self.heads) % 2:
            raise UserError(f"rotary positions need heads of even dimension; width {self.width} / heads {self.heads} is odd.")
