"""The same on a language model and the user's own data: any causal LM of Hugging Face, with the same curricula.

    internalize lm check train.jsonl --model MODEL
    internalize lm fit --model MODEL --data train.jsonl --valid valid.jsonl

Records (question, steps, answer) are read by `records`, tokenized by `tokens` and kept on disk by `rows`; `training` runs one
`transformers.Trainer` for each stage; `evaluation` asks the models; `collect` samples a model's own chains; `example` makes
data and a small model on the spot. The extra is imported where it is used: `pip install "internalize[lm]"`.
"""

from importlib.util import find_spec

from internalize.errors import UserError


def quiet() -> None:
    """No progress bars and hints from transformers beside our own; warnings and errors stay."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def need(*packages: str) -> None:
    """Raise `UserError` unless the extra's packages are installed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise UserError(f'{", ".join(missing)} is missing; install it with: pip install "internalize[lm]"')
