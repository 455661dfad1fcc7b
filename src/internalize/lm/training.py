"""`internalize lm fit`: takes the chain away from a language model, one `transformers.Trainer` for each stage.

    DIR/config.json        the settings
    DIR/data/              the training rows as tokens
    DIR/metrics.jsonl      one row for each check and each evaluation
    DIR/stages/<s>/        the model at the end of stage s: a Hugging Face folder, hint tokens and model card included
    DIR/trainer/           Trainer's own checkpoint of the present stage; gone at the end
    DIR/state.json         where the run stands: replaced whole, after what it speaks of was written
    DIR/result.json        the outcome, written last

An interrupted run goes on from the Trainer's last checkpoint when the same command is given again: it sees the rows that it
would have seen (`rows.StageRows`). Weights are safetensors; the optimizer's state is the Trainer's own file, which torch reads
with `weights_only`.
"""

import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from internalize import own_code
from internalize.checking import check_device
from internalize.checkpoint import write_whole
from internalize.curricula import Standing, View, end_attempt
from internalize.engine.journal import read_metrics
from internalize.errors import UserError
from internalize.evaluation import wilson
from internalize.launch.plan import duration
from internalize.lm import need, quiet
from internalize.lm.config import LMConfig
from internalize.lm.evaluation import Outcome, Speaker, ask, perplexity, prompt_of, scorer
from internalize.lm.pretrained import load_model, load_tokenizer, longest_row, out_of_memory, pad_of
from internalize.lm.processes import Processes
from internalize.lm.rows import Asked, Collate, Reading, StageRows, Stored
from internalize.lm.tokens import FILLER, HINT, Template, add_specials, view_of, view_with
from internalize.own_code import digest_of
from internalize.provenance import provenance

ViewOf = Callable[[int], View]  # of a row with so many units
Notify = Callable[[Mapping[str, Any]], None]
STAGE_FILE = "internalize.json"  # in a stage's folder: how its model is asked
CONTENT_FILE = "contents.json"  # digests of the files that a run is made from


def fit(config: LMConfig, out: str | Path = "runs", notify: Notify = lambda _: None) -> Path:
    """Train, or go on from where an earlier attempt was saved; return the run's directory.

    Every process that `torchrun` starts calls this; `notify` is told by the first one alone.

    Raises:
        UserError: for data, models and settings that cannot be used, each in one sentence; nothing is lost.
    """
    need("transformers", "accelerate", *(["peft"] if config.lora else []))
    quiet()
    check_device(config.device)
    processes = Processes.here(config.device)
    directory = Path(out) / config.name()
    made_from = contents(config)
    _same_content(directory, made_from)
    if (directory / "result.json").exists():
        return directory
    if not processes.first:
        Fit(config, directory, lambda _: None, processes).run()
    else:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            write_whole(directory / "config.json", json.dumps(config.to_json(), indent=1).encode())
            write_whole(directory / CONTENT_FILE, json.dumps(made_from, indent=1).encode())
        except OSError as error:
            raise UserError(f"{directory}: cannot be written ({error.strerror}).") from None
        try:
            with FileLock(directory / ".lock", timeout=0):
                Fit(config, directory, notify, processes).run()
        except Timeout:
            raise UserError(f"{directory}: another process is training this run; wait for it or stop it.") from None
    return directory


def contents(config: LMConfig) -> dict[str, str]:
    """A digest of every file that a run is made from, so that it never goes on with others under the same names."""
    model = Path(config.model)
    paths = [config.data, config.valid, *config.tests().values(), model / "config.json", model / "tokenizer.json"]
    paths += [config.text] if config.text else []
    return {str(path): digest_of(path) for path in paths if path.exists()}


def _same_content(directory: Path, now: Mapping[str, str]) -> None:
    file = directory / CONTENT_FILE
    if not file.exists():
        return
    before = json.loads(file.read_text())
    changed = [name for name in before if before[name] != now.get(name)]
    if changed:
        raise UserError(
            f"{changed[0]}: it is not what it was when {directory} was begun; put it back, choose another --out, or delete "
            "that directory."
        )


@dataclass
class State(Standing):
    """Where a run stands."""

    step: int = 0  # optimizer steps of finished attempts at stages
    tokens: int = 0  # tokens trained on in those, padding not counted
    metrics_bytes: int = 0
    checkpoint: str = ""  # of the Trainer, within the present stage
    source: str = ""  # the folder in stages/ that the present stage began with; "": the model that was given
    processes: int = 1  # that train: each step has so many times `batch` rows
    seconds: float = 0.0


class Fit:
    """One run."""

    def __init__(self, config: LMConfig, directory: Path, notify: Notify, processes: Processes | None = None) -> None:
        self.config, self.directory, self.notify = config, directory, notify
        self.processes = processes or Processes(device=config.device)
        self.curriculum = config.make_curriculum()
        self.score = scorer(config.score)
        self.state = self._restored()
        self.tokenizer = load_tokenizer(config.model)
        longest = longest_row(config.model)
        reading = Reading(
            self.tokenizer,
            Template(config.chat, config.instruction),
            config.units,
            longest - bool(self.curriculum.hint),
            config.format,
            config.delimiter,
            config.too_long,
        )
        self.valid = Asked.read(config.valid, reading, config.validation)
        self.tests = {name: Asked.read(path, reading, config.samples) for name, path in config.tests().items()}
        # The file, the tokenizer and the settings are those of the run (`_same_content`), so an earlier attempt's rows will do.
        if self.processes.first and not Stored.there(directory / "data"):
            Stored.write(config.data, reading, directory / "data")
        self.processes.wait()
        self.rows = Stored.open(directory / "data")
        self.units = max([self.rows.units, *(t.units for t in self.valid.tokens)])
        self.specials = add_specials(self.tokenizer, self.curriculum, self.units)
        self.stages = self.curriculum.stages(self.units)
        tokens = self.valid.tokens[0]
        for stage in range(self.stages):  # a view that cannot be asked for is told now, and not at its stage
            prompt_of(tokens, self._view(tokens.units, stage), self.specials)
        if config.schedule.kind == "fixed" and config.schedule.budget < self.stages:
            raise UserError(f"schedule.budget is {config.schedule.budget}; {self.stages} stages need at least a step each.")
        self.model: Any = None
        self.started = time.monotonic() - self.state.seconds

    def run(self) -> None:
        """Train to the end, and write result.json."""
        self.begin()
        self.notify({"kind": "plan", "text": self.plan()})
        with out_of_memory(self.config.batch):
            while self.state.stage < self.stages:
                self._train_stage()
            self._test_last()
        if self.processes.first:
            self._finish()
        self.processes.wait()

    def _test_last(self) -> None:
        """The model that is kept last, on every test file: as its stage shows it, with its chain, without one, and forced."""
        last = self.state.last
        self.model = load_model(str(self._stage(last))).to(self.processes.device)
        views: dict[str, ViewOf] = {"stage": lambda units: self._view(units, last)}
        views |= {"cot": self.curriculum.full, "direct": self.curriculum.direct, "forced": self.curriculum.direct}
        outcomes = {mode: self._outcomes(self.tests, view, mode == "forced") for mode, view in views.items()}
        self.state.stage = last
        self._record("test", "final", outcomes)
        self._record_text("final")

    def begin(self) -> None:
        """Load the model that the present stage begins with, with room for the tokens that were added."""
        source = self.directory / "stages" / self.state.source if self.state.source else self.config.model
        self.model = load_model(str(source)).to(self.processes.device)
        added = len(self.tokenizer) - self.model.get_input_embeddings().num_embeddings
        if added > 0:
            from transformers import set_seed

            set_seed(self.config.seed)  # the new tokens begin at random
            self.model.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)

    def plan(self) -> str:
        """What it will cost, for people; a few passes are timed."""
        import torch

        config = self.config
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        trained = parameters if not config.lora else 0
        memory = 4 * parameters + 12 * trained  # weights; gradients and two moments
        rows = StageRows(self.rows, self.curriculum, self.specials, 0, self.stages, config.batch, 0)
        batch = Collate(pad_of(self.tokenizer))([rows[index] for index in range(config.batch)])
        batch = {name: value.to(self.processes.device) for name, value in batch.items()}
        times = []
        with out_of_memory(config.batch):
            for _ in range(3):
                started = time.perf_counter()
                self.model(**batch).loss.backward()
                times.append(time.perf_counter() - started)
        self.model.zero_grad(set_to_none=True)
        if torch.cuda.is_available() and config.device != "cpu":
            torch.cuda.synchronize()
        steps, limited = config.schedule.budget, ""
        if config.tokens:
            in_a_step = int(batch["attention_mask"].sum()) * config.accumulate * self.processes.size
            steps = min(steps, -(-config.tokens // in_a_step))
            limited = f" and {config.tokens:,} tokens"
        seconds = min(times) * config.accumulate * steps
        skipped = f", {self.rows.skipped:,} skipped as too long" if self.rows.skipped else ""
        return (
            f"{parameters:,} parameters; about {memory / 2**30:.2g} GiB for weights, gradients and moments, and "
            f"{self.stages * 4 * parameters / 2**30:.2g} GiB on disk for {self.stages} stage(s)\n"
            f"{len(self.rows):,} training rows{skipped}, chains of up to {self.units} {config.units}s; at most "
            f"{config.schedule.budget:,} steps of {self.step_rows} rows{limited}: about {duration(seconds)} "
            f"of training if the whole budget is needed, and the asking in between"
        )

    @property
    def step_rows(self) -> int:
        """Rows in an optimizer step, over all processes."""
        return self.config.batch * self.config.accumulate * self.processes.size

    # -- one stage ---------------------------------------------------------------------------------------------------------

    def _train_stage(self) -> None:
        config, state = self.config, self.state
        if not state.checkpoint:
            if not state.attempt:
                self._record_text("given")
            self._test("switch")
        limit = config.schedule.limit(state.stage, self.stages, state.step)
        checks = Checks(self, limit)
        trainer = self.trainer(limit, checks)
        checkpoint = str(self.directory / "trainer" / state.checkpoint) if state.checkpoint else None
        with warnings.catch_warnings():  # that peft saves the embedding too, where tokens were added, is as it must be
            warnings.filterwarnings("ignore", message="Setting `save_embedding_layers`")
            trainer.train(resume_from_checkpoint=checkpoint)
        model = trainer.accelerator.unwrap_model(trainer.model)
        self.model = model.merge_and_unload() if config.lora else model
        state.step, state.tokens = state.step + trainer.state.global_step, state.tokens + trainer.state.num_input_tokens_seen
        self._end_stage(checks.passed)

    def trainer(self, limit: int, checks: "Checks") -> Any:
        """A `transformers.Trainer` of the present stage, for `limit` steps."""
        from transformers import Trainer, TrainingArguments
        from transformers.trainer_callback import PrinterCallback, ProgressCallback

        config, state = self.config, self.state
        seed = hash_seed(config.seed, state.attempt)
        count = limit * self.step_rows
        rows = StageRows(self.rows, self.curriculum, self.specials, state.stage, self.stages, count, seed)
        arguments = TrainingArguments(
            output_dir=str(self.directory / "trainer"),
            per_device_train_batch_size=config.batch,
            gradient_accumulation_steps=config.accumulate,
            max_steps=limit,
            learning_rate=config.lr,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=config.warmup,
            weight_decay=config.weight_decay,
            max_grad_norm=config.clip,
            adam_beta2=config.beta2,
            bf16=config.bf16,
            use_cpu=config.device == "cpu",
            save_strategy="no",  # the checks below say when
            save_total_limit=2,
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            include_num_input_tokens_seen="non_padding",
            train_sampling_strategy="sequential",  # the rows are in their order
            remove_unused_columns=False,
            dataloader_pin_memory=config.device != "cpu",
            seed=config.seed,
            ddp_find_unused_parameters=False,
        )
        arguments._n_gpu = min(arguments.n_gpu, 1)  # one process trains on one device
        trainer = Trainer(
            model=self._adapted(self.model),
            args=arguments,
            train_dataset=rows,
            data_collator=Collate(pad_of(self.tokenizer)),
            callbacks=[checks.callback()],
        )
        for unwanted in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(unwanted)
        return trainer

    def _end_stage(self, passed: bool) -> None:
        state, schedule = self.state, self.config.schedule
        self._test("adapted")
        self._record("validation", "adapted", {"stage": self._outcomes({"valid": self.valid}, self._target())})
        self._record_text("adapted")
        stage, attempt, state.checkpoint = state.stage, state.attempt, ""
        spent = state.step >= schedule.budget or self.tokens_spent(0)
        move = end_attempt(schedule, state, self.stages, passed, spent)
        if move.save:
            self._save_stage(stage)
        end = {"stage": stage, "attempt": attempt, "passed": passed, "saved": move.save}
        self._write({"kind": "end", **end, "step": state.step, "tokens": state.tokens})
        state.source = str(stage)
        if move.back is not None:
            self._write({"kind": "rollback", "stage": stage, "to": move.back, "step": state.step})
            state.source = str(move.back)
            if move.back < stage:
                self.model = load_model(str(self._stage(move.back))).to(self.processes.device)
        if move.over:
            state.stage = self.stages
        self._save()
        if self.processes.first:
            shutil.rmtree(self.directory / "trainer", ignore_errors=True)
        self.processes.wait()

    def _adapted(self, model: Any) -> Any:
        if not self.config.lora:
            return model
        from peft import LoraConfig, get_peft_model
        from transformers import set_seed

        set_seed(hash_seed(self.config.seed, self.state.attempt))  # the adapters begin at random
        transposed = any(type(module).__name__ == "Conv1D" for module in model.modules())  # GPT-2's
        rank = self.config.lora
        settings = LoraConfig(
            r=rank,
            lora_alpha=2 * rank,
            task_type="CAUSAL_LM",
            target_modules="all-linear",
            fan_in_fan_out=transposed,
            trainable_token_indices=self.specials.all or None,  # tokens that the model has never seen
        )
        with warnings.catch_warnings():  # peft asks transformers in a way that is to go
            warnings.simplefilter("ignore", FutureWarning)
            return get_peft_model(model, settings)

    # -- asking ------------------------------------------------------------------------------------------------------------

    def speaker(self, model: Any = None) -> Speaker:
        """The present model, to be asked."""
        return Speaker(model if model is not None else self.model, self.tokenizer, self.specials, self.config.ask_batch)

    def _target(self) -> ViewOf:
        """The view that a row is judged by at the present stage."""
        stage = self.state.stage
        return lambda units: self._view(units, stage)

    def _view(self, units: int, stage: int) -> View:
        return view_of(self.curriculum, units, stage, self.stages)

    def _outcomes(self, sets: Mapping[str, Asked], view: ViewOf, forced: bool = False, model: Any = None) -> dict[str, Outcome]:
        speaker, share = self.speaker(model), self.processes.share
        found = {}
        for name, asked in sets.items():
            mine = Asked(asked.path, share(asked.records), share(asked.tokens))
            written = ask(speaker, mine, [view(tokens.units) for tokens in mine.tokens], forced) if len(mine) else []
            found[name] = Outcome.of(self.processes.gather(written), asked.records, self.score)
        return found

    def validate(self, model: Any) -> float:
        """Accuracy of `model` on the validation rows in the present stage's view."""
        return self._outcomes({"valid": self.valid}, self._target(), model=model)["valid"].accuracy.value

    def _test(self, moment: str) -> None:
        """Accuracy on every test file as the stage shows it; at its end also with the full chain, and with each length that the
        stage trains.
        """
        views: dict[str, ViewOf] = {"stage": self._target()}
        if moment == "adapted":
            views["cot"] = self.curriculum.full
            judged = self.curriculum.judged(self.units, self.state.stage)
            for shown in [view.shown for view in judged if len(judged) > 1]:
                views[f"length {shown}"] = partial(
                    view_with, self.curriculum, stage=self.state.stage, stages=self.stages, shown=shown
                )
        outcomes = {mode: self._outcomes(self.tests, view) for mode, view in views.items()}
        self._record("test", moment, outcomes)

    def _record(self, part: str, moment: str, outcomes: Mapping[str, Mapping[str, Outcome]]) -> None:
        for mode, of_sets in outcomes.items():
            for name, outcome in of_sets.items():
                accuracy = outcome.accuracy
                low, high = wilson(accuracy.correct, accuracy.n)
                self._write(
                    {
                        "kind": part,
                        "moment": moment,
                        "stage": self.state.stage,
                        "attempt": self.state.attempt,
                        "step": self.state.step,
                        "mode": mode,
                        "shown": self._target()(self.units).shown,
                        "split": name,
                        "accuracy": accuracy.value,
                        "low": low,
                        "high": high,
                        "n": accuracy.n,
                        "distinct": accuracy.distinct,
                        "tokens": outcome.tokens,
                        "before_answer": outcome.before,
                        "unanswered": outcome.unanswered,
                    }
                )

    def _record_text(self, moment: str) -> None:
        """Perplexity of the present model on the text that is to be remembered, if there is one."""
        if self.config.text is not None:
            value = perplexity(self.model, self.tokenizer, self.config.text)
            at = {"stage": self.state.stage, "attempt": self.state.attempt, "step": self.state.step}
            self._write({"kind": "text", "moment": moment, **at, "perplexity": value})

    def tokens_spent(self, now: int) -> bool:
        """Whether the tokens that may be trained on are used up, when the present attempt has trained on `now`."""
        return 0 < self.config.tokens <= self.state.tokens + now

    # -- files -------------------------------------------------------------------------------------------------------------

    def _stage(self, stage: int) -> Path:
        return self.directory / "stages" / str(stage)

    def _save_stage(self, stage: int) -> None:
        if not self.processes.first:
            return
        folder = self._stage(stage)
        fresh = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        self.model.save_pretrained(fresh)  # safetensors: transformers 5 writes nothing else
        self.tokenizer.save_pretrained(fresh)
        about = {
            "template": {"chat": self.config.chat, "instruction": self.config.instruction},
            "units": self.config.units,
            "curriculum": self.config.curriculum,
            "removal": asdict(self.config.removal),
            "longest_chain": self.units,
            "reading": {name: getattr(self.config, name) for name in ("format", "delimiter", "too_long")},
            "score": self.config.score,
            "code": own_code.sources(self.config.curriculum, self.config.score),
            "stage": stage,
        }
        (fresh / STAGE_FILE).write_text(json.dumps(about, indent=1), encoding="utf-8")
        (fresh / "README.md").write_text(self._card(stage), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)

    def _card(self, stage: int) -> str:
        """The model card: how to ask this model with nothing of ours installed."""
        shown = self._view(self.units, stage).shown
        hint = f"`{HINT.format(shown)}` " if self.curriculum.hint else "nothing else "
        if self.curriculum.removed == "filler" and shown < self.units:
            hint += f"and `{FILLER}` for each token of the chain that is gone "
        template = "the tokenizer's chat template" if self.config.chat else "the question and a line end"
        return (
            f"# Stage {stage} of {self.stages}\n\nTrained by internalize from `{self.config.model}`: {shown} of "
            f"{self.units} {self.config.units}s of the chain are written before the answer.\n\nPrompt: {template}, then {hint}"
            f"(`generate(do_sample=False)`). The answer follows `####`.\n"
        )

    def _write(self, row: dict[str, Any]) -> None:
        if not self.processes.first:
            return
        line = (json.dumps(row) + "\n").encode()
        with (self.directory / "metrics.jsonl").open("ab") as file:
            file.write(line)
        self.state.metrics_bytes += len(line)
        self.notify({"stages": self.stages, "seconds": time.monotonic() - self.started, **row})

    def _save(self) -> None:
        if not self.processes.first:
            return
        self.state.seconds = time.monotonic() - self.started
        write_whole(self.directory / "state.json", json.dumps(asdict(self.state)).encode())

    def _restored(self) -> State:
        """The state that was saved last; what metrics.jsonl holds beyond it is cut off. Raises `UserError`."""
        file, metrics = self.directory / "state.json", self.directory / "metrics.jsonl"
        state = State(processes=self.processes.size)
        if file.exists():
            try:
                state = State(**json.loads(file.read_text()))
            except (ValueError, TypeError):
                raise UserError(f"{file}: it is damaged; delete {self.directory} to train from the beginning.") from None
        if state.processes != self.processes.size:
            raise UserError(
                f"{self.directory}: it was begun with {state.processes} process(es) and can only go on with as many, not with "
                f"{self.processes.size}."
            )
        if metrics.exists() and self.processes.first:
            if metrics.stat().st_size < state.metrics_bytes:
                raise UserError(f"{metrics}: it was cut; delete {self.directory} to train from the beginning.")
            with metrics.open("r+b") as opened:
                opened.truncate(state.metrics_bytes)
        return state

    def _finish(self) -> None:
        rows: list[Any] = list(read_metrics(self.directory))
        size = self.processes.size
        last: dict[str, dict[str, Any]] = {}
        texts = {row["moment"]: row["perplexity"] for row in rows if row["kind"] == "text" and row["moment"] != "adapted"}
        kept = ("accuracy", "low", "high", "n", "tokens", "before_answer")
        for row in rows:
            if row["kind"] == "test" and row["moment"] == "final":
                last.setdefault(row["mode"], {})[row["split"]] = {name: row[name] for name in kept}
        result = {
            "command": (f"torchrun --nproc_per_node {size} -m " if size > 1 else "") + self.config.command(),
            "settings": self.config.changed(),
            "seed": self.config.seed,
            "stages": self.stages,
            "stages_reached": max(row["stage"] for row in rows if row["kind"] == "test") + 1,
            "steps": self.state.step,
            "tokens": self.state.tokens,
            "rows": len(self.rows),
            "skipped": self.rows.skipped,
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "seconds": round(time.monotonic() - self.started, 1),
            "final": last,
            **({"perplexity": texts} if texts else {}),
            **provenance(),
        }
        write_whole(self.directory / "result.json", json.dumps(result, indent=1).encode())
        self.notify({"kind": "result", **result})


class Checks:
    """Looks at the validation accuracy every `check_every` steps, saves there, and ends a stage once it is learnt."""

    def __init__(self, run: Fit, limit: int) -> None:
        self.run, self.limit, self.passed = run, limit, False

    def callback(self) -> Any:
        """As a callback of `transformers.Trainer`."""
        from transformers import TrainerCallback

        checks = self

        class Callback(TrainerCallback):  # type: ignore[misc]
            def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> Any:
                return checks.look(state, control, others["model"])

            def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                checks.run.state.checkpoint = f"checkpoint-{state.global_step}"
                checks.run._save()

        return Callback()

    def look(self, trainer: Any, control: Any, model: Any) -> Any:
        """A check, if it is time for one."""
        run, schedule, step = self.run, self.run.config.schedule, trainer.global_step
        if step % schedule.check_every and step < self.limit:
            return control
        accuracy = run.validate(model) if schedule.kind == "adaptive" else None
        at = run.state
        run._write({"kind": "check", "stage": at.stage, "step": at.step + step, "validation": accuracy})
        over = step >= self.limit or run.tokens_spent(trainer.num_input_tokens_seen)
        self.passed = schedule.kind == "fixed" and over
        if accuracy is not None:
            self.passed = schedule.passes({"valid": accuracy}, at.stage, step)
        control.should_save = not self.passed and not over
        control.should_training_stop = self.passed or over
        return control


def hash_seed(seed: int, attempt: int) -> int:
    """A seed of its own for each attempt at a stage."""
    return int.from_bytes(hashlib.sha256(f"{seed} {attempt}".encode()).digest()[:4], "big")
