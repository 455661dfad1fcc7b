"""Data and a small model made on the spot, so that everything runs without a download: multiplication (Deng et al. 2024), and
sums told in words, whose steps are sentences (ours).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from internalize import tasks
from internalize.errors import UserError
from internalize.lm import need, quiet
from internalize.lm.records import Record, read_all, write
from internalize.seeding import numpy_stream, torch_stream
from internalize.tasks import Part
from internalize.tasks.splits import in_part

Architecture = Literal["gpt2", "llama"]

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana")
THINGS = ("apples", "books", "coins", "eggs")
BOX = 3


@dataclass(frozen=True)
class Example:
    """Where an example was written: a model's folder, and files of records."""

    model: Path
    files: dict[str, Path]


def multiplication(digits: int, count: int, part: Part, seed: int = 0, distribution: str = "uniform") -> list[Record]:
    """`count` products of two numbers, digits least significant first; test pairs are never training pairs (hash split)."""
    task = tasks.make("multiply", digits)
    traces = task.sample(distribution, count, numpy_stream(seed, f"{part} {distribution} records"), part)

    def text(tokens: Any) -> str:
        return " ".join(task.tokens[int(token)] for token in tokens)

    rows = (traces.row(index) for index in range(count))
    return [Record(text(row.prompt), (text([t for unit in row.units for t in unit]),), text(row.answer)) for row in rows]


def story(length: int, count: int, part: Part, seed: int = 0, distribution: str = "uniform") -> list[Record]:
    """`count` stories of `length` events, whose chain says after each event how many things there are.

    Amounts are 0 to 2, and three things leave as a full box: what is counted is the rest. In "biased" stories four amounts in
    five are 2.
    """
    rng = numpy_stream(seed, f"{part} {distribution} stories")
    records: list[Record] = []
    while len(records) < count:
        name, thing = NAMES[rng.integers(len(NAMES))], THINGS[rng.integers(len(THINGS))]
        amounts = rng.integers(BOX, size=length)
        if distribution != "uniform":
            amounts = np.where(rng.random(length) < 0.8, BOX - 1, amounts)
        gives = rng.random(length) < 0.5
        # The split is a hash of what is computed, so that no test story is a training story with another name.
        code = np.where(gives, amounts, -amounts - 1)[None]
        if not in_part(code + BOX, part)[0]:
            continue
        total, events, steps = 0, [], []
        for amount, give in zip(amounts, gives, strict=True):
            total = (total + (int(amount) if give else -int(amount))) % BOX
            events.append(f"{name} {'gets' if give else 'loses'} {amount} {thing} .")
            steps.append(f"then {name} has {total} {thing} .")
        question = " ".join([*events, f"how many {thing} has {name} ?"])
        records.append(Record(question, tuple(steps[:-1]), str(total)))
    return records


def write_example(
    kind: Literal["multiply", "story"], size: int, architecture: Architecture, out: Path, rows: int = 20_000, seed: int = 0
) -> Example:
    """Write train, valid, test and out-of-distribution files, and an untrained model with its tokenizer, under `out`.

    Args:
        kind: "multiply" (`size` digits), or "story" (`size` events).
        size: how long.
        architecture: of the model: 2 layers, 4 heads, width 128 (as the sandbox: ours).
        out: a directory.
        rows: training rows; each other file has 1,000.
        seed: of data and weights.

    Raises:
        UserError: for sizes that make no sense.
    """
    need("transformers")
    quiet()
    if size < 1 or rows < 1:
        raise UserError(f"the size is {size} and the rows are {rows}; both must be at least 1.")
    make: Callable[..., list[Record]] = multiplication if kind == "multiply" else story
    other = "biased:9:0.8" if kind == "multiply" else "biased"
    files = {}
    out.mkdir(parents=True, exist_ok=True)
    wanted: list[tuple[str, int, Part, str]] = [
        ("train", rows, "train", "uniform"),
        ("valid", 1000, "validation", "uniform"),
        ("test", 1000, "test", "uniform"),
        ("biased", 1000, "test", other),
    ]
    for name, count, part, distribution in wanted:
        files[name] = out / f"{name}.jsonl"
        write(files[name], make(size, count, part, seed, distribution))
    words = sorted({word for path in files.values() for word in _words(path)})
    tokenizer = word_tokenizer(words)
    small_model(architecture, tokenizer, seed).save_pretrained(out / "model")
    tokenizer.save_pretrained(out / "model")
    return Example(out / "model", files)


def _words(path: Path) -> Iterator[str]:
    for record in read_all(path):
        for text in (record.question, *record.steps, record.answer):
            yield from text.split()


def word_tokenizer(words: list[str]) -> Any:
    """A tokenizer with one token for each word, line end and marker; spaces separate and are not tokens."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: index for index, word in enumerate(["<pad>", "<eos>", "<unk>", "\n", "####", *words])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("\n"), "isolated"),
            pre_tokenizers.Split(Regex(" +"), "removed"),
        ]
    )
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def small_model(architecture: Architecture, tokenizer: Any, seed: int = 0, longest: int = 256) -> Any:
    """An untrained model of 2 layers, 4 heads and width 128, built from a configuration alone."""
    import torch
    from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig

    ends = {
        "bos_token_id": tokenizer.eos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if architecture == "gpt2":
        shape: dict[str, Any] = {"n_positions": longest, "n_embd": 128, "n_layer": 2, "n_head": 4, "n_inner": 512, **ends}
        shape |= {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        # The same function as GPT-2's own, in one operation.
        config: Any = GPT2Config(vocab_size=len(tokenizer), activation_function="gelu_pytorch_tanh", **shape)
    else:
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            max_position_embeddings=longest,
            hidden_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            intermediate_size=384,
            **ends,
        )
    with torch.random.fork_rng():
        torch.manual_seed(torch_stream(seed, "weights").initial_seed())
        model: Any = AutoModelForCausalLM
        return model.from_config(config)
