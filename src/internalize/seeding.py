"""Independent random streams: one for each (seed, purpose).

Streams are spawned by `numpy.random.SeedSequence` and never by adding to a seed, so that neighbouring
seeds share nothing.
"""

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def numpy_stream(seed: int, purpose: str) -> np.random.Generator:
    """The numpy generator of `purpose` ("data", "test", ...) for run seed `seed`."""
    return np.random.Generator(np.random.PCG64(_sequence(seed, purpose)))


def torch_stream(seed: int, purpose: str) -> "torch.Generator":
    """The CPU torch generator of `purpose` for run seed `seed`."""
    import torch

    state = int(_sequence(seed, purpose).generate_state(1, np.uint64)[0])
    return torch.Generator().manual_seed(state & (2**63 - 1))


def _sequence(seed: int, purpose: str) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, zlib.crc32(purpose.encode())])
