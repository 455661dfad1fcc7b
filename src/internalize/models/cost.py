"""How many operations a transformer needs: multiplications and additions in products of weights and of attention."""

from internalize.models.config import ModelConfig


def forward_operations(shape: ModelConfig, vocabulary: int, new: int, used: int, cached: int = 0) -> float:
    """Operations of one forward pass for one row.

    `new` columns are read after `cached` ones, and the predictions of the last `used` of them are used. Only what is needed is
    counted: causal halves, and the last layer's queries at used columns only. A backward pass takes twice as many.
    """
    d, total = shape.width, 2.0 * shape.width * vocabulary * used
    for layer in range(shape.layers):
        queries = used if layer == shape.layers - 1 else new
        pairs = queries * (cached + new - queries) + queries * (queries + 1) / 2
        total += 2 * (2 * d * d * new + (2 * d * d + 2 * d * shape.mlp) * queries) + 4 * d * pairs
    return total
