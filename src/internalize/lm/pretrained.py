"""Tokenizers and models of Hugging Face: safetensors only, no code of theirs, and one sentence for what cannot be read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from internalize.errors import UserError


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model. Raises `UserError` when there is none that tells where its tokens come from, or no EOS."""
    from transformers import AutoTokenizer

    with readable(model):
        tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    if len(tokenizer) <= len(tokenizer.all_special_ids):  # transformers makes an empty one where there are no files
        raise UserError(f"{model}: it has no tokenizer; save the model's tokenizer beside its weights.")
    if not tokenizer.is_fast:
        raise UserError(
            f"{model}: its tokenizer does not say which characters a token covers; take a model with a fast tokenizer."
        )
    if tokenizer.eos_token_id is None:
        raise UserError(f"{model}: its tokenizer has no EOS token, so an answer could not end; add one and save it.")
    return tokenizer


def load_model(model: str) -> Any:
    """A causal language model from safetensors. Raises `UserError`."""
    import torch
    from transformers import AutoModelForCausalLM

    with readable(model):
        return AutoModelForCausalLM.from_pretrained(model, use_safetensors=True, trust_remote_code=False, dtype=torch.float32)


def longest_row(model: str) -> int:
    """Tokens that a model can read."""
    from transformers import AutoConfig

    with readable(model):
        config = AutoConfig.from_pretrained(model, trust_remote_code=False)
    return positions(config)


def positions(config: Any) -> int:
    """Tokens that a model with this configuration can read."""
    found = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions", "max_seq_len")]
    return min((int(number) for number in found if number), default=10**9)


def pad_of(tokenizer: Any) -> int:
    """The token that pads rows: the tokenizer's own, or EOS, which the attention mask hides."""
    pad = tokenizer.pad_token_id
    return int(pad if pad is not None else tokenizer.eos_token_id)


def left_padded(prompts: Sequence[Sequence[int]], pad: int, device: Any) -> dict[str, Any]:
    """Prompts of different lengths as one batch that can be continued: `input_ids` and `attention_mask`."""
    import torch

    longest = max(map(len, prompts))
    ids = [[pad] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {"input_ids": torch.tensor(ids, device=device), "attention_mask": torch.tensor(mask, device=device)}


class readable:
    """Turns what transformers raises for a model that cannot be read into one sentence."""

    def __init__(self, model: str) -> None:
        self.model = model

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, (UserError, KeyboardInterrupt)):
            return
        text = str(error)
        folder = Path(self.model).is_dir()
        if "gated" in text or "401" in text or "403" in text:
            why = "it is gated; ask for access on its page, then log in with `hf auth login`"
        elif folder and any(Path(self.model).glob("*.bin")) and not any(Path(self.model).glob("*.safetensors")):
            why = "its weights are pickle files, which are never loaded; convert them to safetensors"
        elif "safetensors" in text and "pytorch_model" in text:
            why = "it has no safetensors weights, and pickle files are never loaded; take another version of it"
        elif "trust_remote_code" in text:
            why = "it needs code of its own to be run, which is never done; take a model that transformers knows"
        elif not folder and (self.model.count("/") > 1 or self.model.startswith((".", "/"))):
            why = "there is no such folder"
        elif folder or Path(self.model).exists() or isinstance(error, OSError):
            why = f"it cannot be read ({text.strip().splitlines()[0] if text.strip() else type(error).__name__})"
        else:
            why = f"it cannot be used ({text.strip().splitlines()[0] if text.strip() else type(error).__name__})"
        raise UserError(f"{self.model}: {why}.") from None


class out_of_memory:
    """Turns a lack of memory in training on `rows` rows at once into advice."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        import torch

        short = isinstance(error, (torch.OutOfMemoryError, MemoryError)) or (
            isinstance(error, RuntimeError) and "allocate memory" in str(error)
        )
        if short:
            raise UserError(
                f"out of memory with {self.rows} rows at once; halve --batch and double --accumulate (the step stays the "
                "same), or train adapters with --lora 16, or use --bf16. The same command then goes on."
            ) from None
