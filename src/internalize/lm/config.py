"""The settings of `internalize lm fit`."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from internalize import curricula, own_code
from internalize.checking import check_at_least, check_types
from internalize.curricula import Curriculum, RemovalConfig, Schedule
from internalize.engine.settings import LANGUAGE_MODEL, command_line, file_name, flat
from internalize.errors import UserError
from internalize.lm.rows import TooLong
from internalize.lm.tokens import Units

SCHEMA = 1


@dataclass(frozen=True)
class LMConfig:
    """What is trained, on what, for how long. The numbers are ours unless said otherwise."""

    model: str = ""
    """a Hugging Face model: a folder, or a name on the Hub"""
    data: Path = Path()
    """training records (see `internalize lm check`)"""
    valid: Path = Path()
    """validation records: what stages are judged by"""
    test: Path | None = None
    """test records, on which nothing is chosen; left out, accuracy is told on the validation records"""
    ood: tuple[str, ...] = ()
    """further test records, each as name=path, such as harder=hard.jsonl"""
    text: Path | None = None
    """a text on which the perplexity of each stage is told, as a sign of what else the model forgets"""
    format: str | None = None
    """of the files; left out, it is told from their first rows"""
    delimiter: str | None = None
    """what separates the steps of a chain; left out: <<...>> groups, else line ends, else sentences"""
    units: Units = "step"
    """what a curriculum takes away at a time: a step, or a token of the chain"""
    curriculum: str = field(default="left", metadata={"help": f"what each stage shows: {curricula.FAMILIES.forms()}"})
    """what each stage shows; the help of `internalize lm fit` lists what can be named"""
    removal: RemovalConfig = field(default_factory=RemovalConfig)
    schedule: Schedule = field(default_factory=lambda: Schedule(budget=4000, stage_budget=1000, threshold=0.9, check_every=100))
    tokens: int = 0
    """training tokens at most, padding not counted (asked at each check); 0: as many as the schedule's steps have"""
    chat: bool = False
    """ask in the tokenizer's chat template, conversations as they are"""
    instruction: str = ""
    """text before each question"""
    too_long: TooLong = "error"
    """a row of more tokens than the model reads: error, skip (and count it), or truncate (the beginning of its question)"""
    score: str | None = None
    """a scorer of your own, mine.py:score, called with (answer, record); left out: equal, numbers by value"""
    lr: float = 5e-5
    """learning rate after warm-up (Deng et al. 2024)"""
    batch: int = 32
    """rows in a forward pass, of each process"""
    accumulate: int = 1
    """forward passes in an optimizer step"""
    warmup: int = 50
    """steps of linear warm-up at each stage"""
    weight_decay: float = 0.01
    """decoupled weight decay"""
    clip: float = 1.0
    """largest norm of the gradient"""
    beta2: float = 0.999
    """decay of the second moment"""
    bf16: bool = False
    """mixed precision"""
    lora: int = 0
    """rank of LoRA adapters, merged at the end of each stage; 0: all weights are trained"""
    validation: int = 256
    """validation rows asked at each check"""
    samples: int = 1000
    """rows of each test file asked at the switch to a stage and at its end; 0: all"""
    ask_batch: int = 128
    """rows asked at once"""
    device: str = "cpu"
    """cpu, or cuda; several processes, by torchrun or `accelerate launch`, take one device each"""
    seed: int = 0
    """seed of data order, views and whatever the model draws"""

    def __post_init__(self) -> None:
        check_types(self)
        check_at_least(self, 1, "batch", "accumulate", "validation", "ask_batch")
        check_at_least(self, 0, "warmup", "weight_decay", "lora", "samples", "seed", "tokens")
        for name in ("lr", "clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} is {getattr(self, name)}; it must be above 0.")
        if not self.model:
            raise UserError("model is missing; name a folder or a Hugging Face model.")
        for name in ("data", "valid"):
            if getattr(self, name) == Path():
                raise UserError(f"{name} is missing; name a file of records.")
        if self.removal.removed == "zero":
            raise UserError("removal.removed zero is for the sandbox; a language model takes drop or filler.")
        self.ood_paths()
        object.__setattr__(self, "curriculum", own_code.pin(self.curriculum))
        if self.score is not None:
            object.__setattr__(self, "score", own_code.pin(self.score))
        self.make_curriculum()

    def make_curriculum(self) -> Curriculum:
        return curricula.make(self.curriculum, self.removal)

    def ood_paths(self) -> dict[str, Path]:
        """The further test files by name."""
        named = {}
        for entry in self.ood:
            name, equals, path = entry.partition("=")
            if not equals or not name or not path:
                raise UserError(f'ood is "{entry}"; write name=path, such as harder=hard.jsonl.')
            if name in named or name == "test":
                raise UserError(f'two test files are called "{name}"; give each --ood file a name of its own.')
            named[name] = Path(path)
        return named

    def tests(self) -> dict[str, Path]:
        """All test files: "test" first."""
        return {"test": self.test or self.valid, **self.ood_paths()}

    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults, as JSON values."""
        values: dict[str, Any] = {}
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            default = entry.default_factory() if entry.default_factory is not dataclasses.MISSING else entry.default
            if dataclasses.is_dataclass(value):
                inner = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
                value = {name: one for name, one in inner.items() if one != getattr(default, name)}
                default = {}
            if value != default:
                values[entry.name] = str(value) if isinstance(value, Path) else value
        return values

    def name(self) -> str:
        """The name of the run's directory."""
        digest = hashlib.sha256(json.dumps([SCHEMA, self.changed()], sort_keys=True).encode()).hexdigest()[:8]
        curriculum = own_code.short(self.curriculum)
        return file_name(f"lm-{Path(self.model).name}-{self.data.stem}-{curriculum}") + f"-{digest}"

    def command(self) -> str:
        """The command line that trains this."""
        return command_line("lm fit", flat(self.changed()))

    def to_json(self) -> dict[str, Any]:
        """As JSON values, with the text of the user's own files that it names."""
        values: dict[str, Any] = json.loads(json.dumps({"kind": LANGUAGE_MODEL, "schema": SCHEMA, **asdict(self)}, default=str))
        code = own_code.sources(self.curriculum, self.score)
        return {**values, "code": code} if code else values

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "LMConfig":
        """The inverse of `to_json`. Raises `UserError`."""
        try:
            values = dict(values)
            values.pop("kind", None)
            own_code.remember(values.pop("code", {}))
            if values.pop("schema") != SCHEMA:
                raise UserError("the configuration was written by another version of internalize.")
            values |= {"removal": RemovalConfig(**values["removal"]), "schedule": Schedule(**values["schedule"])}
            values |= {name: Path(values[name]) for name in ("data", "valid", "test", "text") if values.get(name) is not None}
            return LMConfig(**{**values, "ood": tuple(values["ood"])})
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            raise UserError(f"the configuration does not fit this version of internalize ({error}).") from None
