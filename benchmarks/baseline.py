"""What a researcher would otherwise write: a Hugging Face GPT-2 of the same shape, a plain loop, and `generate`.

Written fairly: its rows get shorter with the chain, padding never occurs, AdamW is fused, dropout is off, and it may use eager
or sdpa attention, whichever is faster.
"""

import numpy as np
import torch
import transformers
from transformers import GPT2Config, GPT2LMHeadModel

from internalize import ModelConfig

transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]

BOS, FIRST = 0, 1  # the states and symbols of C_3 are 1, 2, 3


class Baseline:
    """One seed of C_3 over `steps` symbols with a left curriculum."""

    def __init__(self, shape: ModelConfig, steps: int, batch: int, attention: str, seed: int = 0) -> None:
        torch.manual_seed(seed)
        config = GPT2Config(
            vocab_size=FIRST + 4,
            n_positions=2 * steps + 2,
            n_embd=shape.width,
            n_layer=shape.layers,
            n_head=shape.heads,
            n_inner=shape.mlp,
            resid_pdrop=0,
            embd_pdrop=0,
            attn_pdrop=0,
            bos_token_id=BOS,
            eos_token_id=None,
            pad_token_id=FIRST + 3,  # never occurs
            attn_implementation=attention,
        )
        self.model = GPT2LMHeadModel(config)
        self.steps, self.batch = steps, batch
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3, (0.9, 0.95), fused=True)
        self.rng = np.random.default_rng(seed)

    def rows(self, count: int, stage: int) -> torch.Tensor:
        """BOS, symbols, and the states that stage `stage` still shows: (count, 1 + 2 steps - stage)."""
        symbols = self.rng.integers(3, size=(count, self.steps))
        states = symbols.cumsum(axis=1)[:, stage:] % 3
        start = np.full((count, 1), BOS)
        return torch.from_numpy(np.concatenate([start, symbols + FIRST, states + FIRST], axis=1))

    def train(self, stage: int, steps: int) -> None:
        """Optimizer steps on fresh rows, with the loss on the states alone."""
        self.model.train()
        for _ in range(steps):
            tokens = self.rows(self.batch, stage)
            labels = tokens.clone()
            labels[:, : 1 + self.steps] = -100
            self.optimizer.zero_grad(set_to_none=True)
            self.model(input_ids=tokens, labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, stage: int, count: int) -> float:
        """Accuracy of the last state, written greedily after the shown ones."""
        self.model.eval()
        tokens = self.rows(count, stage)
        prompt = tokens[:, : 1 + self.steps]
        new = self.steps - stage
        written = self.model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=new, min_new_tokens=new, do_sample=False
        )
        return float((written[:, -1] == tokens[:, -1]).double().mean())
