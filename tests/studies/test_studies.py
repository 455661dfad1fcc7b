import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars
import pytest

from internalize.config import RunConfig
from internalize.engine.settings import flat
from internalize.errors import UserError
from internalize.studies import find, studies
from internalize.studies.common import every_split, success_table
from internalize.studies.primes import factors
from internalize.studies.study import cost, curves, draw, outcomes, read_rows, rows_of, run_study, still_shown
from small_study import row, tiny

NAMES = ("compare", "coverage", "depth", "direction", "fig1", "fig2", "heads", "mixture", "optimizer", "primes", "shape")


def test_every_study_is_found() -> None:
    assert tuple(studies()) == NAMES
    with pytest.raises(UserError, match='no study is called "fig9"; there are compare, coverage'):
        find("fig9")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_cells_differ_share_their_budget_and_can_be_drawn(name: str, scale: Any, tmp_path: Path) -> None:
    study = find(name)
    cells = study.cells(scale)
    assert len({cell.hash() for cell in cells}) == len(cells)
    assert len({cell.schedule.budget for cell in cells}) == 1
    rows = [row(cell.changed(), seed, 0.99, 0.5 + 0.49 * seed) for cell in cells for seed in (0, 1)]
    page = draw(study, rows, tmp_path / "page.html").read_text()
    assert study.title in page
    assert cells[0].command([0]) in page.replace("&#34;", '"').replace("&#39;", "'")
    tidy = polars.read_parquet(tmp_path / "page.parquet")
    assert tidy["run"].n_unique() == len(cells)
    assert len(tidy) == sum(3 * len(cell.test_splits()) for cell in cells for _ in (0, 1))


def test_a_study_runs_goes_on_and_is_drawn_from_rows(tmp_path: Path) -> None:
    study = tiny()
    needed = cost(study, "laptop", [0, 1], tmp_path, lambda done, total: None)
    assert (needed.cells, needed.seeds, needed.unfinished) == (2, 2, 4)
    assert needed.core_hours > 0
    run_study(study, "laptop", [0], tmp_path, processes=1)
    finished = [(run.seed_directory(0) / "result.json").stat().st_mtime_ns for run in study.runs("laptop", tmp_path)]
    runs = run_study(study, "laptop", [0, 1], tmp_path, processes=2)
    assert [(run.seed_directory(0) / "result.json").stat().st_mtime_ns for run in runs] == finished
    assert cost(study, "laptop", [0, 1], tmp_path, lambda done, total: None).unfinished == 0
    rows = rows_of(runs)
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    pages = [draw(study, some, tmp_path / f"{at}.html").read_text() for at, some in enumerate((rows, read_rows(file)))]
    assert pages[0] == pages[1]
    assert set(outcomes(rows)["run"]) == {run.config.hash() for run in runs}


def test_a_seed_that_fails_is_tried_once_more_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fails(*_: Any, **options: Any) -> None:
        calls.append(options)
        raise UserError("left seed 0: the loss is not finite")

    monkeypatch.setattr("internalize.studies.study.train", fails)
    with pytest.raises(UserError, match="left seed 0: the loss is not finite"):
        run_study(tiny(), "laptop", [0], tmp_path)
    assert len(calls) == 2


def test_ten_thousand_rows_make_one_table() -> None:
    cells = find("fig2").cells("laptop")
    rows = [row(cells[at % len(cells)].changed(), at, 0.99, 0.9) for at in range(50)]
    frame = outcomes(rows * 200)
    assert len(frame) == 200 * len(outcomes(rows))
    assert len(curves(rows)) == sum(2 * len(one["curve"][0]["accuracy"]) for one in rows)


def test_successes_have_intervals() -> None:
    settings = {"task": "C3", "steps": 6}
    frame = outcomes([row(settings, seed, 0.96 if seed < 3 else 0.95, 0.2) for seed in range(4)])
    table = success_table(frame.filter(polars.col("mode") == "direct"), "task")
    assert table["ID"].to_list() == ["0.958; 3/4 [0.30, 0.95]"]  # .95 is not above .95
    assert table["OOD"].to_list() == table["worst split"].to_list() == ["0.200; 0/4 [0.00, 0.49]"]
    assert table["ID, full chain"].to_list() == [None]
    assert table["units still shown: seeds"].to_list() == ["0: 4"]
    assert table["steps"].to_list() == ["100 of 20,000"]


def test_of_several_splits_each_seed_counts_where_it_is_worst() -> None:
    rows = [row({"task": "C3", "steps": 6}, seed, 0.99, 0.99) for seed in (0, 1)]
    for seed, split in enumerate(("uniform", "biased:1:0.8")):
        direct = rows[seed]["accuracy"]["direct"]
        rows[seed]["accuracy"] = {"direct": direct | {split: 0.5}}
    table = success_table(outcomes(rows), "task")
    assert table["ID"].to_list() == table["OOD"].to_list() == ["0.745; 1/2 [0.09, 0.91]"]
    assert table["worst split"].to_list() == ["0.500; 0/2 [0.00, 0.66]"]
    frame = outcomes(rows)
    assert success_table(frame, "task", columns=every_split(frame)).columns[1:3] == ["uniform", "biased:1:0.8"]


def test_the_full_chain_counts_where_no_other_is_trained() -> None:
    rows = [row({"task": "C3", "steps": 6, "curriculum": curriculum}, 0, 0.99, 0.99) for curriculum in ("left", "cot")]
    for one in rows:
        splits = one["accuracy"]["stage"]
        one["accuracy"] = {"stage": splits, "direct": dict.fromkeys(splits, 0.4), "cot": splits}
    assert success_table(outcomes(rows), "curriculum")["ID"].str.head(5).to_list() == ["0.400", "0.990"]


def test_the_slow_system_that_labels_is_measured_where_its_stage_ends() -> None:
    rows = [
        row({"task": "C3", "steps": 6, "labels": labels}, seed, 0.99, 0.2) for labels in ("slow", "true") for seed in (0, 1)
    ]
    for one in rows:
        one["curve"][1] |= {"step": 90, "accuracy": {"uniform": 0.1}}
    figures = find("coverage").draw(outcomes(rows), curves(rows))
    table = figures[-1].table
    assert table is not None
    assert table["labels"].to_list() == ["slow"]
    assert table["uniform"].to_list() == ["0.990; 2/2 [0.34, 1.00]"]
    assert table["units still shown: seeds"].to_list() == ["5: 2"]
    assert table["steps"].to_list() == ["10 of 20,000"]


@pytest.mark.parametrize(("n", "total"), [(2, 2), (4, 4), (6, 5), (12, 7), (17, 17), (30, 10)])
def test_the_sum_of_prime_powers(n: int, total: int) -> None:
    assert factors(n) == total


@pytest.mark.parametrize("content", ["{", '{"settings": {}}', "5"])
def test_bad_rows(tmp_path: Path, content: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(content)
    with pytest.raises(UserError, match=r"rows\.jsonl, line 1: this is not a row"):
        read_rows(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_rows(tmp_path / "none")
    with pytest.raises(UserError, match="no seed is finished yet"):
        draw(tiny(), [], tmp_path / "page.html")


def test_studies_can_be_grouped_by_any_setting() -> None:
    settings = [{"schedule": {"threshold": threshold}} for threshold in (0.9, 0.95)]
    frame = outcomes([row(one, seed, 0.99, 0.2) for one in settings for seed in (0, 1)])
    assert success_table(frame, "threshold")["threshold"].to_list() == [0.9, 0.95]
    known = {name for name, _ in flat(asdict(RunConfig()))} - {"steps"}  # which is T, as "steps" are the optimizer's
    assert known | {"T", "warmup", "train_size", "smoothing"} <= set(frame.columns)


def test_what_the_final_model_still_shows_is_that_of_its_stage() -> None:
    points = [{"shown": shown, "step": 1, "accuracy": {}} for shown in (5, 4, 3)]
    assert still_shown({"curve": points}) == 3
    assert still_shown({"curve": points, "stages_reached": 2}) == 4  # the third stage was given up
    numbered = [{**point, "stage": stage} for stage, point in enumerate(points)]
    assert still_shown({"curve": numbered[:1] + numbered[2:], "stages_reached": 3}) == 3
