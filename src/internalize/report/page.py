"""Self-contained HTML pages: they open offline and load nothing. `write_report` is the one about one or several runs."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from internalize.checkpoint import write_whole
from internalize.config import ID, RunConfig
from internalize.engine.settings import flat
from internalize.evaluation import success_rate
from internalize.report.charts import STYLE, Series, accuracy_chart, heat_map, line_chart, over_seeds
from internalize.seeding import numpy_stream

if TYPE_CHECKING:
    from internalize.runs import Run

EXAMPLES = 3
MAX_LOSS = 0.02  # what the chain named by a page may lose against the full one
DETAILED = 12  # a page about more runs compares them, and leaves the details of each to its own page
LOSS_POINTS = 100  # of each seed's curve of the loss


def render_page(template: str, package: str = "internalize.report", **values: Any) -> str:
    """Fill a template that lies in `package`, all text escaped; what all pages share (base.html, parts.html) lies here."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, ".") for name in (package, "internalize.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(template).render(style=STYLE, **values)


def write_report(runs: "Sequence[Run]", path: Path) -> Path:
    """Write the page about `runs`, each of which has a finished seed, to `path`."""
    outcomes = [_outcome(run) for run in runs]
    detailed = len(runs) <= DETAILED
    details = [_details(run) for run in runs] if detailed else []
    compared = compare_splits(runs) if len(runs) > 1 else None
    about = zip(outcomes, details, strict=True) if detailed else [(outcome, None) for outcome in outcomes]
    titles = dict.fromkeys(f"{run.config.task_name} over {run.config.steps} steps" for run in runs)
    facts: dict[str, Any] = {
        "title": next(iter(titles)) if len(titles) == 1 else f"{len(runs)} runs",
        "oods": list(dict.fromkeys(outcome["ood"] for outcome in outcomes)),
        "chances": list(dict.fromkeys(outcome["chance"] for outcome in outcomes)),
    }
    page = render_page("page.html", runs=list(about), compared=compared, id=ID, max_loss=MAX_LOSS, **facts)
    write_whole(path, page.encode())
    return path


def compare_splits(runs: "Sequence[Run]") -> str:
    """The heat map of several runs: mean final accuracy without a chain on each split."""
    direct = [{split: sum(values) / len(values) for split, values in run.accuracies("direct").items()} for run in runs]
    splits = list(dict.fromkeys(split for one in direct for split in one))
    values = [[one.get(split) for split in splits] for one in direct]
    return heat_map(values, [run.path.name for run in runs], splits, "Final accuracy without a chain: runs and splits")


def split_map(run: "Run") -> str:
    """The heat map of a run's splits (rows) along its stages (columns: chain tokens shown), mean over seeds."""
    found = {(row["split"], row["stage"]): row for row in run.stages().to_dicts() if row["adapted"] is not None}
    splits = list(dict.fromkeys(split for split, _ in found))
    shown = {stage: str(row["shown"]) for (_, stage), row in found.items()}
    values = [[found[split, stage]["adapted"] if (split, stage) in found else None for stage in shown] for split in splits]
    title = "Accuracy on every split (rows) at every stage (columns: chain tokens still written)"
    return heat_map(values, splits, list(shown.values()), title, run.config.make_task().chance)


def loss_curve(run: "Run") -> str | None:
    """The chart of the training loss against steps, one line for each seed; None where nothing was trained."""
    lines = []
    for seed in run.seeds:
        rows = [row for row in run.metrics(seed) if row["kind"] == "check" and row["loss"] is not None]
        pieces = np.array_split(np.array([(row["step"], row["loss"]) for row in rows]), min(len(rows), LOSS_POINTS) or 1)
        points = [(float(step), float(loss)) for step, loss in (piece.mean(axis=0) for piece in pieces if len(piece))]
        lines.append(Series(f"seed {seed}", "a", points, thin=len(run.seeds) > 1))
    return line_chart(lines, "Training loss", "step") if any(line.points for line in lines) else None


def stage_curve(run: "Run") -> str:
    """The chart of accuracy against chain tokens left, ID and headline OOD: thin lines are seeds, thick ones their mean with
    its 95 % interval.
    """
    points = run.frontier().sort("shown", descending=True).to_dicts()  # one for each seed and number of units
    xs = list(dict.fromkeys(point["shown"] for point in points))
    series: list[Series] = []
    for name, color, label in (("id", "a", "in distribution"), ("ood", "b", "out of distribution")):
        lines = [(f"seed {seed}", [(at["shown"], at[name]) for at in points if at["seed"] == seed]) for seed in run.seeds]
        series += over_seeds(lines, xs, label, color)
    chance = run.config.make_task().chance
    series.append(Series("chance", "c", [(xs[0], chance), (xs[-1], chance)], dashed=True))
    config = run.config
    title = f"{config.task_name}, {config.steps} steps, {config.curriculum}: accuracy as the chain is taken away"
    return accuracy_chart(series, title, "chain tokens still written before the answer", xs)


def _outcome(run: "Run") -> dict[str, Any]:
    """The line of one run in the first table."""
    config, results = run.config, run.results
    curriculum, units = config.make_curriculum(), config.make_task().units
    shown = sorted({curriculum.target(units, result["stages_reached"] - 1).shown for result in results})
    stage, ood = run.accuracies("stage"), config.test_splits()[1]
    return {
        "config": config,
        "directory": run.path.name,
        "name": config.curriculum,
        "ood": ood,
        "shown": " to ".join(map(str, (shown[0], shown[-1])[: len(shown)])),
        "verdict": [_success(stage[split]) for split in (ID, ood)],
        "chance": config.make_task().chance,
        "steps": _range([result["steps"] for result in results], "{:,.0f}"),
        "seconds": _range([result["seconds"] for result in results], "{:,.0f}"),
    }


def _details(run: "Run") -> dict[str, Any]:
    """All that the page tells of one run below that table."""
    config, results = run.config, run.results
    stage, direct, cot = (run.accuracies(mode) for mode in ("stage", "direct", "cot"))
    several = run.frontier()["shown"].n_unique() > 1
    return {
        "seeds": run.seeds,
        "results": results,
        "curve": stage_curve(run) if several else None,
        "map": split_map(run) if several else None,
        "loss": loss_curve(run),
        "shortest": _shortest(run),
        "splits": [
            {
                "split": split,
                "distinct": results[0]["distinct"][split],
                "modes": [_spread(values[split]) for values in (stage, direct, cot)],
            }
            for split in stage
        ],
        "certificates": {seed: certificate for seed in run.seeds if (certificate := run.certificate(seed))},
        "probes": {seed: _probed(found) for seed in run.seeds if (found := run.probes(seed))},
        "examples": _examples(run),
        "settings": _settings(config),
        "command": run.command(),
    }


def _shortest(run: "Run") -> list[dict[str, Any]]:
    """Each seed's shortest chain within `MAX_LOSS` of the full one; none where no stage was trained on the full chain."""
    units = run.config.make_task().units
    frontier = run.frontier()
    if units not in frontier["shown"] or frontier["shown"].n_unique() == 1:
        return []
    return run.frontier(MAX_LOSS).filter("chosen").to_dicts()


def _success(values: Sequence[float]) -> dict[str, Any]:
    return {"mean": sum(values) / len(values), **success_rate(values)._asdict()}


def _range(values: Sequence[float], number: str) -> str:
    """The least and the greatest, or the one value that there is."""
    return " to ".join(dict.fromkeys(number.format(value) for value in (min(values), max(values))))


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": sum(values) / len(values), "min": min(values), "max": max(values)}


def _probed(found: dict[str, Any]) -> list[dict[str, Any]]:
    """For each stage that was probed: what it says, and heat maps of states against columns, of patching, and of attention."""
    stages = []
    for stage, probes in found["stages"].items():
        columns, layers = probes["columns"], [f"layer {layer}" for layer in range(len(probes["accuracy"]))]
        states = [list(row) for row in zip(*probes["accuracy"][-1], strict=True)]  # [target][column]
        title = f"Stage {stage}: which state (rows) can be read at which column, after the last layer"
        maps = [(title, heat_map(states, probes["targets"], columns, title, min(probes["chance"])))]
        if probes["restored"] is not None:
            title = f"Stage {stage}: how often putting back one column restores the answer"
            maps.append((title, heat_map(probes["restored"], layers, columns, title)))
        mean = [[sum(head[at] for head in layer) / len(layer) for at in range(len(columns))] for layer in probes["attention"]]
        title = f"Stage {stage}: attention of the answer's column, mean over heads"
        maps.append((title, heat_map(mean, layers[1:], columns, title, 0, max(map(max, mean)))))
        stages.append({"stage": stage, "sentence": probes["sentence"], "answer": probes["answer"], "maps": maps})
    return stages


def _examples(run: "Run") -> list[dict[str, Any]]:
    """A few test inputs answered by the slow and the fast system of the first seed."""
    task = run.config.make_task()
    traces = task.sample(ID, EXAMPLES, numpy_stream(0, "examples"), "test")
    examples = []
    for index in range(EXAMPLES):
        trace = traces.row(index)
        text = " ".join(task.tokens[token] for token in trace.prompt)
        truth = " ".join(task.tokens[token] for token in trace.answer)
        examples.append({"input": text, "truth": truth, "answers": run.answer(text)})
    return examples


def _settings(config: RunConfig) -> list[tuple[str, Any, bool]]:
    """(name, value, whether it differs from the default) of every setting."""
    default = dict(flat(dataclasses.asdict(RunConfig())))
    return [(name, value, value != default[name]) for name, value in flat(dataclasses.asdict(config))]
