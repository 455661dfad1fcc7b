"""Theory that runs: exact constructed transformers, the provable parity algorithm, parity with an MLP."""

from internalize.theory.constructions import VIAS, Construction, construct
from internalize.theory.mlp_parity import MLPParityConfig, train_mlp_parity
from internalize.theory.parity import ParityConfig, ParityOutcome, internalize_parity
from internalize.theory.tree_parity import TreeParityConfig, TreeParityOutcome, learn_tree_parity
from internalize.theory.verification import Verification, verify

__all__ = ["VIAS", "Construction", "MLPParityConfig", "ParityConfig", "ParityOutcome"]
__all__ += ["TreeParityConfig", "TreeParityOutcome", "Verification", "construct", "internalize_parity", "learn_tree_parity"]
__all__ += ["train_mlp_parity", "verify"]
