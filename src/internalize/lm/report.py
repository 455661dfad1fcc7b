"""The page about a run of a language model: accuracy against what is still written, at every stage, and at the end."""

from pathlib import Path

from internalize.checkpoint import write_whole
from internalize.engine.settings import flat
from internalize.lm.baselines import read_baselines
from internalize.lm.config import LMConfig
from internalize.lm.runs import LMRun
from internalize.report import MAX_LOSS, render_page
from internalize.report.charts import Series, accuracy_chart, heat_map, line_chart

MODES = {"cot": "full chain", "direct": "no chain", "forced": "no chain, answer forced"}


def write_lm_report(run: LMRun, path: Path) -> Path:
    """Write the page about a finished run to `path`. Raises `UserError` when it is not finished."""
    result, stages = run.result, run.stages()
    # Of a run that was always asked in one way, or whose first model is gone, there is nothing to choose from.
    chosen = run.choose(MAX_LOSS) if len(stages) > 1 and stages[0]["stage"] == 0 else None
    page = render_page(
        "report.html",
        "internalize.lm",
        name=run.path.name,
        config=run.config,
        result=result,
        final=[(MODES[mode], file, row) for mode in MODES for file, row in result["final"].get(mode, {}).items()],
        stages=stages,
        files=list(run.config.tests()),
        curve=_stage_curve(run),
        map=_file_map(run),
        validation=_validation_curve(run),
        chosen=chosen,
        folder=run.folder(chosen["stage"]) if chosen else None,
        max_loss=MAX_LOSS,
        certificate=run.certificate(),
        baselines=read_baselines(run),
        command=run.config.command(),
        settings=_settings(run.config),
    )
    write_whole(path, page.encode())
    return path


def _stage_curve(run: LMRun) -> str:
    """Accuracy against units still written, one line for each test file, with the interval over its questions."""
    stages = run.stages()
    xs = list(dict.fromkeys(stage["shown"] for stage in stages))
    series = []
    for file, color in zip(run.config.tests(), "abcd" * len(run.config.tests()), strict=False):
        points = {stage["shown"]: stage["adapted"][file] for stage in stages if file in stage["adapted"]}
        spans = {stage["shown"]: stage["interval"][file] for stage in stages if file in stage["interval"]}
        band = [(shown, *spans[shown]) for shown in points]
        series.append(Series(file, color, list(points.items()), band=band))
    title = f"{run.config.model}, {run.config.curriculum}: accuracy as the chain is taken away"
    return accuracy_chart(series, title, f"{run.config.units}s of the chain still written before the answer", xs)


def _file_map(run: LMRun) -> str:
    """The heat map of test files (rows) along the stages (columns: units shown)."""
    stages, files = run.stages(), list(run.config.tests())
    values = [[stage["adapted"].get(file) for stage in stages] for file in files]
    title = "Accuracy on every test file (rows) at every stage (columns: what is still written)"
    return heat_map(values, files, [str(stage["shown"]) for stage in stages], title)


def _validation_curve(run: LMRun) -> str | None:
    """Accuracy on the validation rows at each check, against steps; None where a fixed schedule never asked."""
    points = [(float(row["step"]), row["validation"]) for row in run.metrics() if row["kind"] == "check"]
    told = [(step, accuracy) for step, accuracy in points if accuracy is not None]
    return (
        line_chart([Series("validation", "a", told, thin=len(told) > 100)], "Accuracy on validation rows", "step")
        if told
        else None
    )


def _settings(config: LMConfig) -> list[tuple[str, object, bool]]:
    """(name, value, whether it differs from the default) of every setting."""
    changed = dict(flat(config.changed()))
    values = flat({name: value for name, value in config.to_json().items() if name != "schema"})
    return [(name, value, name in changed) for name, value in values]
