"""A run on disk: open it, read its results, ask its trained models.

runs/<name>-<hash>/config.json      the configuration
runs/<name>-<hash>/report.html      the page about it
runs/<name>-<hash>/seed-<k>/        one seed's files (see training/loop.py)
"""

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from internalize.checkpoint import load_model, read_values, write_whole
from internalize.config import ID, RunConfig
from internalize.engine.journal import kept_attempts, read_metrics
from internalize.engine.rows import Measured, Row
from internalize.engine.settings import LANGUAGE_MODEL, kind_of
from internalize.errors import UserError
from internalize.evaluation import MajorityVote, ModelProcedure, Procedure, generate, success_rate
from internalize.learners.systems import stage_file, system, systems
from internalize.models import Transformer
from internalize.rendering import Vocabulary, render
from internalize.report import write_report

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Answer:
    """What a system wrote for one input: chain, answer, and whether the answer is right."""

    chain: tuple[str, ...]
    answer: tuple[str, ...]
    right: bool


@dataclass(frozen=True)
class Run:
    """A configuration and the directory of its seeds."""

    path: Path
    config: RunConfig

    def create(self, seeds: Sequence[int] = ()) -> None:
        """Make the directory, with one for each of `seeds`, so that it is known which were asked for; or check that an existing
        one holds this very configuration. Raises `UserError`.
        """
        file = self.path / "config.json"
        if file.exists() and load(self.path).config != self.config:
            raise UserError(f"{self.path}: this directory holds another configuration; choose another one with --out.")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(file, json.dumps(self.config.to_json(), indent=1).encode())
            for seed in seeds:
                self.seed_directory(seed).mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror}).") from None

    @property
    def page(self) -> Path:
        """Where the page about it is."""
        return self.path / "report.html"

    def seed_directory(self, seed: int) -> Path:
        """Where a seed keeps its files."""
        return self.path / f"seed-{seed}"

    @property
    def seeds(self) -> list[int]:
        """The finished seeds, in order."""
        found = (path.parent.name.removeprefix("seed-") for path in self.path.glob("seed-*/result.json"))
        return sorted(int(seed) for seed in found if seed.isdecimal())

    @property
    def unfinished(self) -> list[int]:
        """The seeds that were asked for and are not finished, in order."""
        asked = (path.name.removeprefix("seed-") for path in self.path.glob("seed-*"))
        return sorted({int(seed) for seed in asked if seed.isdecimal()} - set(self.seeds))

    @property
    def results(self) -> list[dict[str, Any]]:
        """result.json of each finished seed, in order. Raises `UserError` when there is none."""
        files = [self.seed_directory(seed) / "result.json" for seed in self.seeds]
        if not files:
            raise UserError(f"{self.path}: no seed is finished; run the same command again to train on.")
        try:
            return [json.loads(file.read_text()) for file in files]
        except ValueError as error:
            raise UserError(f"{self.path}: a result.json is damaged ({error}); delete it to finish that seed again.") from None

    def metrics(self, seed: int) -> list[Row]:
        """All rows of a seed's metrics.jsonl."""
        return read_metrics(self.seed_directory(seed))

    def measured(self, seed: int, part: str = "test") -> list[Measured]:
        """The accuracies of a seed on one part, by stage: for each stage that left weights, of the attempt they are from."""
        metrics = self.metrics(seed)
        kept = kept_attempts(metrics)

        def counts(row: Measured) -> bool:
            if "attempt" not in row:  # written before journals told attempts
                return stage_file(self.seed_directory(seed), row["stage"]).exists()
            return row["moment"] == "final" or row["attempt"] == kept.get(row["stage"])

        measured = [row for row in metrics if row["kind"] == "test" or row["kind"] == "validation"]
        rows = [row for row in measured if row["kind"] == part and counts(row)]
        last = {(row["moment"], row["stage"], row["mode"], row["split"]): row for row in rows}
        return sorted(last.values(), key=lambda row: row["stage"])

    def accuracies(self, mode: str) -> dict[str, list[float]]:
        """The final accuracy of each seed on each split; `mode` is "stage" (as last trained), "direct" or "cot"."""
        results = self.results
        return {split: [result["accuracy"][mode][split] for result in results] for split in results[0]["accuracy"][mode]}

    def table(self) -> "polars.DataFrame":
        """One row for each split: final accuracy without a chain and with the full chain, success over seeds, distinct inputs.

        Success is accuracy above 95 % (paper), with Wilson's 95 % interval over seeds.
        """
        import polars

        rows = []
        for split, direct in self.accuracies("direct").items():
            success = success_rate(direct)
            chain = self.accuracies("cot")[split]
            rows.append(
                {
                    "split": split,
                    "direct": _mean(direct),
                    "direct_min": min(direct),
                    "direct_max": max(direct),
                    "success": f"{success.wins}/{success.seeds}",
                    "success_low": success.low,
                    "success_high": success.high,
                    "full_chain": _mean(chain),
                    "distinct": self.results[0]["distinct"][split],
                }
            )
        return polars.DataFrame(rows)

    def stages(self) -> "polars.DataFrame":
        """One row for each stage and split: units shown, accuracy at the switch, after adaptation, and with the full chain."""
        import polars

        rows = [row | {"seed": seed} for seed in self.seeds for row in self.measured(seed)]
        frame = polars.DataFrame(rows, infer_schema_length=None)
        own, adapted = polars.col("mode") == "stage", polars.col("moment") == "adapted"
        accuracy = polars.col("accuracy")
        return frame.group_by("stage", "split", maintain_order=True).agg(
            shown=polars.col("shown").filter(own).first(),
            seeds=polars.col("seed").n_unique(),
            switch=accuracy.filter(own & (polars.col("moment") == "switch")).mean(),
            adapted=accuracy.filter(own & adapted).mean(),
            full_chain=accuracy.filter((polars.col("mode") == "cot") & adapted).mean(),
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row for each seed, complete enough to be kept: settings, outcome, stage curve, and where it comes from."""
        rows = []
        for seed, result in zip(self.seeds, self.results, strict=True):
            curve: dict[int, dict[str, Any]] = {}
            for row in self.measured(seed):
                if row["moment"] == "adapted" and row["mode"] == "stage":
                    point = {"stage": row["stage"], "shown": row["shown"], "step": row["step"], "accuracy": {}}
                    stage = curve.setdefault(row["stage"], point)
                    stage["accuracy"][row["split"]] = row["accuracy"]
            rows.append(
                {"command": self.command([seed]), "settings": self.config.changed(), **result, "curve": list(curve.values())}
            )
        return rows

    def frontier(self, max_loss: float | None = None) -> "polars.DataFrame":
        """Accuracy against chain length: one row for each seed and length that it was trained to answer with.

        `validation` is the least accuracy over the validation distributions, `id` and `ood` are test accuracies. With
        `max_loss`, `chosen` marks each seed's shortest chain that loses no more than that against the full chain on any
        validation distribution; the choice never sees the test inputs.

        Raises:
            UserError: with `max_loss`, when no stage was trained on the full chain.
        """
        import polars

        ood = self.config.test_splits()[1]
        rows = []
        for seed in self.seeds:
            points: dict[int, dict[str, dict[str, float]]] = {}
            stage_of: dict[int, int] = {}
            for part in ("validation", "test"):
                for row in self.measured(seed, part):
                    if row["moment"] == "adapted" and row["mode"].startswith("length"):
                        points.setdefault(row["shown"], {}).setdefault(part, {})[row["split"]] = row["accuracy"]
                        stage_of[row["shown"]] = row["stage"]
            full = points.get(self.config.make_task().units)
            if max_loss is not None and full is None:
                raise UserError(f"{self.path}: no stage was trained on the full chain, so there is nothing to compare with.")
            within = [
                shown
                for shown, point in points.items()
                if full and all(point["validation"][d] >= full["validation"][d] - (max_loss or 0) for d in full["validation"])
            ]
            for shown, point in points.items():
                rows.append(
                    {
                        "seed": seed,
                        "stage": stage_of[shown],
                        "shown": shown,
                        "validation": min(point["validation"].values()),
                        "id": point["test"][ID],
                        "ood": point["test"][ood],
                        **({} if max_loss is None else {"chosen": shown == min(within)}),
                    }
                )
        return polars.DataFrame(rows)

    def report(self) -> Path:
        """Write report.html, one page that needs nothing else, and return its path."""
        return write_report([self], self.page)

    def command(self, seeds: Sequence[int] | None = None) -> str:
        """The command line that makes this run, for some seeds or all finished ones."""
        made = self.results[0].get("command")  # a constructed transformer's own
        return str(made) if made else self.config.command(self.seeds if seeds is None else seeds)

    # -- asking the trained model ----------------------------------------------------------------------------------------

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.config.make_task())

    def systems(self, seed: int) -> dict[str, ModelProcedure]:
        """The trained systems of a seed: "slow" writes the full chain, "fast" none of it; either may be missing."""
        return systems(self.config, self.seed_directory(seed), self.last_stage(seed))

    def trained(self, shown: int, seed: int) -> ModelProcedure:
        """The model that was trained to write `shown` chain units.

        Raises:
            UserError: when no model of this run was trained to write so many.
        """
        curriculum, units = self.config.make_curriculum(), self.config.make_task().units
        stages = range(self.last_stage(seed) + 1)
        known = {view.shown: (stage, view) for stage in stages for view in curriculum.judged(units, stage)}
        if shown not in known:
            lengths = ", ".join(map(str, sorted(known)))
            raise UserError(f"{self.path}: no model here was trained to write {shown} chain units; trained were {lengths}.")
        stage, view = known[shown]
        return system(self.config, self.seed_directory(seed), stage, view)

    def procedure(self, which: str, seed: int | None = None) -> Procedure:
        """One of the systems that a seed left behind, to be asked.

        Args:
            which: "slow" (full chain, as first learnt), "fast" (no chain), "chain" (the final model with the full chain), a
                number of chain units, or "vote:9" (the majority of 9 chains that slow draws at temperature 1, or at 0.7 with
                "vote:9:0.7").
            seed: whose; of the first finished seed by default.

        Raises:
            UserError: for any other name, and for a system that was not trained.
        """
        seed = self.seed(seed)
        kind, *numbers = which.split(":")
        if kind.isascii() and kind.isdigit() and not numbers:
            return self.trained(int(kind), seed)
        if kind == "chain" and not numbers:
            view = self.config.make_curriculum().full(self.config.make_task().units)
            return system(self.config, self.seed_directory(seed), self.last_stage(seed), view)
        votes = kind == "vote" and 1 <= len(numbers) <= 2
        if not votes and (kind not in ("slow", "fast") or numbers):
            raise UserError(
                f'{self.path}: no system is called "{which}"; there are slow, fast, chain, a number of chain units, and vote:9.'
            )
        systems = self.systems(seed)
        name = "slow" if votes else kind
        if name not in systems:
            chain = "the full chain" if name == "slow" else "no chain"
            raise UserError(f'{self.path}: no stage of "{self.config.curriculum}" trained a model that writes {chain}.')
        if not votes:
            return systems[name]
        try:
            count, temperature = int(numbers[0]), float((numbers[1:] or ["1"])[0])
        except ValueError:
            raise UserError(f'"{which}": give the number of chains and their temperature, as in vote:9:0.7.') from None
        if not 0 < temperature < math.inf:
            raise UserError(f'"{which}": the temperature must be above 0.')
        return MajorityVote(dataclasses.replace(systems[name], temperature=temperature), count)

    def model(self, stage: int, seed: int) -> Transformer:
        """A seed's model from the end of a stage. Raises `UserError` for a damaged file."""
        return load_model(stage_file(self.seed_directory(seed), stage))

    def probes(self, seed: int) -> dict[str, Any] | None:
        """What `probe_run` found in a seed's models, as JSON values."""
        return read_values(self.seed_directory(seed) / "probes.json")

    def certificate(self, seed: int) -> dict[str, Any] | None:
        """The certificate that was made at the end of a seed's training, as JSON values."""
        return read_values(self.seed_directory(seed) / "certificate.json")

    def last_stage(self, seed: int) -> int:
        """The last stage that a seed was trained at."""
        return int(self.results[self.seeds.index(seed)]["stages_reached"]) - 1

    def answer(self, text: str, seed: int | None = None) -> dict[str, Answer]:
        """What the slow and the fast system write for one input, such as "1 0 2 ..."; of the first finished seed by default."""
        return {name: self._answer(text, system) for name, system in self.systems(self.seed(seed)).items()}

    def answer_with(self, shown: int, text: str, seed: int | None = None) -> Answer:
        """What the model that was trained to write `shown` chain units writes for one input.

        Raises:
            UserError: when no model of this run was trained to write so many.
        """
        return self._answer(text, self.trained(shown, self.seed(seed)))

    def seed(self, seed: int | None) -> int:
        """`seed`, or the first finished one. Raises `UserError` for a seed that is not finished."""
        finished = self.seeds
        if not finished or (seed is not None and seed not in finished):
            which = "no seed is" if seed is None else f"seed {seed} is not"
            raise UserError(f"{self.path}: {which} finished; finished are {', '.join(map(str, finished)) or 'none'}.")
        return finished[0] if seed is None else seed

    def _answer(self, text: str, system: ModelProcedure) -> Answer:
        traces = self.config.make_task().encode(text)
        batch = render(traces, [system.view], self._vocabulary, position_ids=system.position_ids)
        written = generate(system.model, batch)
        right = bool(((written == batch.tokens) | ~batch.answer).all())
        chain, answer = written[batch.target & ~batch.answer], written[batch.answer]
        return Answer(tuple(self._vocabulary.text(chain)), tuple(self._vocabulary.text(answer)), right)


def load(path: str | Path) -> "Run":
    """The run in a directory that `fit` or `internalize run` made. Raises `UserError`."""
    path = Path(path)
    file = path / "config.json"
    if not file.exists():
        raise UserError(f"{path}: this is not a run's directory (it has no config.json).")
    try:
        values = json.loads(file.read_text())
    except ValueError as error:
        raise UserError(f"{file}: not valid JSON ({error}).") from None
    if kind_of(values) == LANGUAGE_MODEL:
        raise UserError(
            f"{path}: this is a language model's run; show it with `internalize lm show {path}`, certify it with "
            "`internalize lm certify`, and go on with it by the `internalize lm fit` that began it."
        )
    return Run(path, RunConfig.from_json(values))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
