"""What a run is to be compared with: the same model and data without its curriculum, at as many training tokens.

Each baseline is a run of its own in DIR/baselines/; DIR/baselines.json is the table.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from internalize import own_code
from internalize.checkpoint import write_whole
from internalize.curricula import RemovalConfig
from internalize.errors import UserError
from internalize.lm.collect import parse
from internalize.lm.config import LMConfig
from internalize.lm.evaluation import ask, scorer
from internalize.lm.processes import Processes
from internalize.lm.records import Record, to_json
from internalize.lm.rows import Asked
from internalize.lm.runs import Folder, LMRun, load
from internalize.lm.training import Notify, fit

BASELINES = "baselines.json"
OWN_ROWS = 20_000  # training rows that the slow system answers at most, for `own answers`
MORE_STEPS = 100  # times as many steps may be taken as the run took: rows without a chain are shorter
ABOUT = {
    "no chain": "end to end: the answer alone, from the beginning",
    "fillers": "the same, with a filler in place of each token of the chain",
    "full chain": "the chain is never taken away",
    "no curriculum": "the full chain until it is learnt, then none at once",
    "own answers": "its first stage, trained on its own right answers without their chains (Yu et al. 2024)",
}


def baselines(run: LMRun) -> dict[str, LMConfig]:
    """The configuration of each baseline: at most as many training tokens as the finished `run` took, on the same schedule.

    `own answers` begins where the run's first stage ended and has what is left; a run that did not begin with its full chain
    has no such baseline.
    """
    config, tokens = run.config, run.result["tokens"]
    schedule = replace(config.schedule, kind="adaptive", budget=MORE_STEPS * run.result["steps"], exhausted="advance")
    base = replace(config, schedule=schedule, tokens=tokens, removal=RemovalConfig(), curriculum="e2e")
    arms = {
        "no chain": base,
        "fillers": replace(base, removal=RemovalConfig(removed="filler")),
        "full chain": replace(base, curriculum="cot"),
        "no curriculum": replace(base, curriculum="left:100%", removal=replace(config.removal, smoothing=0.0, replay=0.0)),
    }
    first = next((row for row in run.metrics() if row["kind"] == "end" and row["stage"] == 0 and row["passed"]), None)
    curriculum = config.make_curriculum()
    shown_whole = curriculum.stages(2) > 1 and curriculum.target(2, 0).shown == 2
    if first is not None and shown_whole and first["tokens"] < tokens:
        data = run.path / "baselines" / "own.jsonl"
        left = tokens - first["tokens"]
        arms["own answers"] = replace(base, model=str(run.folder(0)), data=data, format="steps", tokens=left)
    return arms


def train_baselines(run: LMRun, notify: Callable[[str], Notify] = lambda name: lambda event: None) -> list[dict[str, Any]]:
    """Train what is not finished of a run's baselines, write the table to DIR/baselines.json, and return it.

    Args:
        run: a finished run.
        notify: given a baseline's name, who is told its events.

    Raises:
        UserError: as `fit`.
    """
    name = own_code.short(run.config.curriculum)
    processes = Processes.here(run.config.device)
    rows = [_row(name, run, run.result["final"]["direct"])]
    for name, config in baselines(run).items():
        if name == "own answers":
            if processes.first and not config.data.exists():
                _own_answers(run, config.data)
            processes.wait()
        made = load(fit(config, run.path / "baselines", notify(name)))
        mode = "cot" if name == "full chain" else "direct"
        rows.append(_row(name, made, made.result["final"][mode]))
    if processes.first:
        write_whole(run.path / BASELINES, json.dumps(rows, indent=1).encode())
    return rows


def read_baselines(run: LMRun) -> list[dict[str, Any]]:
    """The table in a run's directory; empty before `internalize lm fit --baselines`. Raises `UserError` when it is damaged."""
    file = run.path / BASELINES
    try:
        return list(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []
    except ValueError as error:
        raise UserError(f"{file}: not valid JSON ({error}); delete it.") from None


def _row(name: str, run: LMRun, files: Mapping[str, Any]) -> dict[str, Any]:
    result = run.result
    told = {key: result[key] for key in ("tokens", "steps", "seconds", "command")}
    return {"name": name, "about": ABOUT.get(name, "this run, without its chain"), "files": files, **told}


def _own_answers(run: LMRun, file: Path) -> None:
    """Write the training rows whose answer the run's first stage gets right with its chain, as it answered them."""
    model, score = Folder.open(str(run.folder(0))), scorer(run.config.score)
    speaker = model.speaker(batch=run.config.ask_batch)
    rows = islice(model.reading.tokens(run.config.data, lambda line: None), OWN_ROWS)
    kept: list[Record] = []
    while some := list(islice(rows, 8 * run.config.ask_batch)):
        records, tokens = [record for record, _ in some], [row for _, row in some]
        views = [model.curriculum.full(row.units) for row in tokens]
        for record, written in zip(records, ask(speaker, Asked(run.config.data, records, tokens), views), strict=True):
            own = parse(record, written.text)
            kept += [own] if own is not None and score(own.answer, record) else []
    if not kept:
        raise UserError(
            f"{run.folder(0)}: it gets none of {run.config.data} right with its chain, so it has no answers to learn."
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, "".join(f"{json.dumps(to_json(record), ensure_ascii=False)}\n" for record in kept).encode())
