"""Tokenized rows: on disk where they are trained on, so that data may be larger than memory; in memory where they are asked."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from internalize.checkpoint import read_values, write_whole
from internalize.curricula import Curriculum
from internalize.errors import UserError
from internalize.lm.records import Record, read
from internalize.lm.tokens import Shown, Specials, Template, Tokens, Units, encode, show, view_of
from internalize.seeding import numpy_stream
from internalize.tasks import PROMPT

ROWS_FILE = "rows.json"  # beside the rows, written last

TooLong = Literal["error", "skip", "truncate"]


@dataclass(frozen=True)
class Reading:
    """How files become rows; one for all files of a run.

    Attributes:
        format, delimiter: as for `records.read`.
        template, units: as for `tokens.encode`.
        longest: tokens that the model can read, one hint included.
        too_long: what to do with a row of more: an error, leave it out (and count it), or cut the beginning of its question.
    """

    tokenizer: Any
    template: Template
    units: Units
    longest: int
    format: str | None = None
    delimiter: str | None = None
    too_long: TooLong = "error"

    def tokens(self, path: Path, skipped: Callable[[int], None]) -> Iterator[tuple[Record, Tokens]]:
        """The rows of a file; `skipped` is told the line of each one that is left out. Raises `UserError` with the line."""
        for row in read(path, self.format, self.delimiter):
            if row.record is None:
                raise UserError(f"{path}, line {row.line}: {row.error}. `internalize lm check {path}` lists all such rows.")
            try:
                tokens = encode(row.record, self.tokenizer, self.template, self.units)
            except UserError as error:
                raise UserError(f"{path}, line {row.line}: {error}") from None
            over = len(tokens.ids) - self.longest
            if over > 0 and self.too_long == "error":
                raise UserError(
                    f"{path}, line {row.line}: the row has {len(tokens.ids):,} tokens, and the model reads at most "
                    f"{self.longest:,}; shorten it, or pass --too-long skip or --too-long truncate."
                )
            if over > 0 and self.too_long == "skip":
                skipped(row.line)
                continue
            if over > 0:
                if over >= (tokens.segment == PROMPT).sum():
                    raise UserError(
                        f"{path}, line {row.line}: chain and answer alone have more than {self.longest:,} tokens; leave such "
                        "rows out with --too-long skip."
                    )
                tokens = Tokens(tokens.ids[over:], tokens.segment[over:], tokens.marker)
            yield row.record, tokens


@dataclass(frozen=True)
class Asked:
    """Rows to be asked: the records and their tokens, in memory."""

    path: Path
    records: list[Record]
    tokens: list[Tokens]
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.records)

    @staticmethod
    def read(path: Path, reading: Reading, most: int = 0) -> "Asked":
        """The rows of a file, or its first `most`. Raises `UserError`."""
        skipped: list[int] = []
        records, tokens = [], []
        for record, row in reading.tokens(path, skipped.append):
            records.append(record)
            tokens.append(row)
            if most and len(records) == most:
                break
        if not records:
            raise UserError(f"{path}: every row is too long; take a model that reads more tokens.")
        return Asked(path, records, tokens, len(skipped))


@dataclass(frozen=True)
class Stored:
    """Tokenized rows on disk, mapped into memory."""

    ids: np.ndarray  # all tokens of all rows
    segment: np.ndarray
    ends: np.ndarray  # where each row ends
    units: int  # of the longest chain
    skipped: int

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> Tokens:
        part = slice(int(self.ends[index - 1]) if index else 0, int(self.ends[index]))
        return Tokens(np.asarray(self.ids[part]), np.asarray(self.segment[part]), 0)

    @staticmethod
    def write(path: Path, reading: Reading, directory: Path) -> "Stored":
        """Tokenize a file into `directory`. Raises `UserError`."""
        directory.mkdir(parents=True, exist_ok=True)
        skipped: list[int] = []
        ends: list[int] = []
        units = 0
        (directory / ROWS_FILE).unlink(missing_ok=True)
        with (directory / "ids.bin").open("wb") as ids, (directory / "segment.bin").open("wb") as segment:
            for _, tokens in reading.tokens(path, skipped.append):
                ids.write(tokens.ids.astype(np.int32).tobytes())
                segment.write(tokens.segment.astype(np.int32).tobytes())
                ends.append((ends[-1] if ends else 0) + len(tokens.ids))
                units = max(units, tokens.units)
        if not ends:
            raise UserError(f"{path}: every row is too long; take a model that reads more tokens.")
        np.array(ends, np.int64).tofile(directory / "ends.bin")
        about = {"rows": len(ends), "tokens": ends[-1], "units": units, "skipped": len(skipped)}
        write_whole(directory / ROWS_FILE, json.dumps(about).encode())
        return Stored.open(directory)

    @staticmethod
    def there(directory: Path) -> bool:
        """Whether `write` came to its end in `directory`, and left what it says."""
        about = read_values(directory / ROWS_FILE)
        sizes = {name: path.stat().st_size for path in directory.glob("*.bin") for name in [path.stem]}
        return about is not None and sizes == {
            "ids": 4 * about["tokens"],
            "segment": 4 * about["tokens"],
            "ends": 8 * about["rows"],
        }

    @staticmethod
    def open(directory: Path) -> "Stored":
        """What `write` left in `directory`."""
        about = json.loads((directory / ROWS_FILE).read_text(encoding="utf-8"))
        ids, segment = (np.memmap(directory / f"{name}.bin", np.int32, "r") for name in ("ids", "segment"))
        return Stored(ids, segment, np.fromfile(directory / "ends.bin", np.int64), about["units"], about["skipped"])


@dataclass(frozen=True)
class StageRows:
    """The training rows of one stage, in the order in which they are seen: a dataset for `transformers.Trainer`.

    Row i is a function of (seed, stage, i): a new permutation for each pass over the data, and a view drawn for each row. So
    what is resumed sees exactly the rows that it would have seen.
    """

    rows: Stored
    curriculum: Curriculum
    specials: Specials
    stage: int
    stages: int
    count: int
    seed: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        shown = self.shown(index)
        return {"input_ids": shown.ids, "labels": shown.labels}

    def shown(self, index: int) -> Shown:
        """Row `index` as it is shown."""
        again, place = divmod(index, len(self.rows))
        tokens = self.rows[int(self._order(again)[place])]
        share = float(numpy_stream(self.seed, f"view {self.stage} {index}").random())
        return show(tokens, view_of(self.curriculum, tokens.units, self.stage, self.stages, share), self.specials)

    def _order(self, again: int) -> np.ndarray:
        cached: dict[int, np.ndarray] = self.__dict__.setdefault("_orders", {})
        if again not in cached:
            cached.clear()
            cached[again] = numpy_stream(self.seed, f"order {self.stage} {again}").permutation(len(self.rows))
        return cached[again]


@dataclass(frozen=True)
class Collate:
    """Pads rows on the right to the longest of a batch; padding is never attended to nor in the loss."""

    pad: int

    def __call__(self, rows: list[dict[str, list[int]]]) -> dict[str, Any]:
        import torch

        longest = max(len(row["input_ids"]) for row in rows)

        def padded(name: str, value: int) -> Any:
            return torch.tensor([row[name] + [value] * (longest - len(row[name])) for row in rows])

        mask = torch.tensor([[1] * len(row["input_ids"]) + [0] * (longest - len(row["input_ids"])) for row in rows])
        return {"input_ids": padded("input_ids", self.pad), "labels": padded("labels", -100), "attention_mask": mask}
