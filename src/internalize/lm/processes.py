"""Several processes that train one run (`torchrun`, `accelerate launch`): each has a copy of the model, trains on its share of
every batch and asks its share of the questions; the first of them writes.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from internalize.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """This process among those that train the run.

    Attributes:
        rank: its number; the first one is 0.
        size: how many there are.
        device: where this one computes.
    """

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    @staticmethod
    def here(device: str) -> "Processes":
        """As the launcher says; alone without one. Raises `UserError` for ways to split a model that cannot be asked."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return Processes(device=device)
        for name in ("FSDP", "DEEPSPEED"):
            if os.environ.get(f"ACCELERATE_USE_{name}", "").lower() == "true":
                raise UserError(
                    f"{name} splits the model, and a stage is judged by asking it whole; launch with --multi_gpu, and "
                    "train adapters (--lora 16) or in mixed precision (--bf16) where memory is short."
                )
        from accelerate import PartialState

        state = PartialState(cpu=device == "cpu")
        return Processes(state.process_index, state.num_processes, str(state.device))

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and tells."""
        return self.rank == 0

    def share(self, every: list[T]) -> list[T]:
        """Its part of a list that all have."""
        return every[self.rank :: self.size]

    def gather(self, mine: Sequence[T]) -> list[T]:
        """The whole list again, from everyone's part of it."""
        if self.size == 1:
            return list(mine)
        from accelerate.utils import gather_object

        parts = gather_object([list(mine)])
        return [parts[at % self.size][at // self.size] for at in range(sum(map(len, parts)))]

    def wait(self) -> None:
        """Until all are here."""
        if self.size > 1:
            from accelerate import PartialState

            PartialState().wait_for_everyone()

    def end(self) -> None:
        """End this process at once, whose work is done, if there are others: threads of torch's that nobody joined can abort it
        at an ordinary end, and the launcher then ends the others too.
        """
        if self.size > 1:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
