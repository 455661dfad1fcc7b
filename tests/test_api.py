import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

import internalize
from internalize import RunConfig, UserError
from internalize.api import configure, train
from tiny import TINY


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> internalize.Run:
    return internalize.fit(**TINY, seeds=2, out=tmp_path_factory.mktemp("runs"), quiet=True)


def test_a_run_can_grow(run: internalize.Run) -> None:
    before = run.metrics(0)
    grown = internalize.fit(**TINY, seeds=[0, 7], out=run.path.parent, quiet=True)
    assert grown.path == run.path
    assert grown.seeds == [0, 1, 7]
    assert grown.metrics(0) == before
    assert grown.metrics(7) != before


def test_the_table_has_every_split_with_its_interval(run: internalize.Run) -> None:
    table = run.table().to_dicts()
    assert [row["split"] for row in table] == list(run.config.test_splits())
    for row in table:
        values = [result["accuracy"]["direct"][row["split"]] for result in run.results]
        assert row["direct"] == pytest.approx(sum(values) / len(values))
        assert (row["direct_min"], row["direct_max"]) == (min(values), max(values))
        assert row["success"] == f"{sum(value > 0.95 for value in values)}/{len(values)}"
        assert 0 <= row["success_low"] < row["success_high"] <= 1


def test_the_stage_table_has_every_stage_and_split(run: internalize.Run) -> None:
    table = run.stages()
    assert table["shown"].unique(maintain_order=True).to_list() == [5, 4, 3, 2, 1, 0]
    assert len(table) == 6 * len(run.config.test_splits())
    assert table["switch"].null_count() == table["adapted"].null_count() == table["full_chain"].null_count() == 0


def test_results_say_where_they_come_from(run: internalize.Run) -> None:
    result = run.results[0]
    assert result["versions"]["torch"] == torch.__version__
    assert result["machine"]["threads"] == 1
    assert result["machine"]["cores"] >= 1
    assert "commit" in result


def test_answers_of_the_slow_and_the_fast_system(run: internalize.Run) -> None:
    answers = run.answer("1 0 1 1 0 0")
    assert len(answers["slow"].chain) == 5
    assert answers["fast"].chain == ()
    assert all(len(answer.answer) == 1 and answer.right == (answer.answer == ("1",)) for answer in answers.values())


def test_answers_with_a_given_length_of_the_chain(run: internalize.Run) -> None:
    for shown in range(6):
        assert len(run.answer_with(shown, "1 0 1 1 0 0").chain) == shown
    assert run.answer_with(0, "1 0 1 1 0 0", seed=1) == run.answer("1 0 1 1 0 0", seed=1)["fast"]
    with pytest.raises(UserError, match="no model here was trained to write 6 chain units; trained were 0, 1, 2, 3, 4, 5"):
        run.answer_with(6, "1 0 1 1 0 0")
    with pytest.raises(UserError, match="seed 9 is not finished"):
        run.answer("1 0 1 1 0 0", seed=9)


def test_systems_that_no_stage_trained_are_missing(tmp_path: Path) -> None:
    names = {
        curriculum: set(internalize.fit(**{**TINY, "curriculum": curriculum}, out=tmp_path, quiet=True).answer("1 0 1 1 0 0"))
        for curriculum in ("e2e", "cot", "mixture")
    }
    assert names == {"e2e": {"fast"}, "cot": {"slow"}, "mixture": {"slow", "fast"}}


def test_load(run: internalize.Run, tmp_path: Path) -> None:
    assert internalize.load(run.path) == run
    with pytest.raises(UserError, match="not a run's directory"):
        internalize.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config.json: not valid JSON"):
        internalize.load(tmp_path)


def test_a_directory_of_another_configuration_is_refused(run: internalize.Run, tmp_path: Path) -> None:
    other = tmp_path / run.path.name
    other.mkdir()
    (other / "config.json").write_text(json.dumps(run.config.to_json() | {"steps": 9}))
    with pytest.raises(UserError, match="holds another configuration"):
        internalize.fit(**TINY, out=tmp_path, quiet=True)


def test_a_damaged_checkpoint_or_result_is_told(tmp_path: Path) -> None:
    run = internalize.fit(**TINY, out=tmp_path, quiet=True)
    checkpoint = run.seed_directory(0) / "stages" / "5.safetensors"
    for content in (checkpoint.read_bytes()[:-100], b"", b"\x80\x04K\x01."):
        checkpoint.write_bytes(content)
        with pytest.raises(UserError, match=r"5.safetensors: this is not a checkpoint of internalize, or it is damaged"):
            run.answer("1 0 1 1 0 0")
    checkpoint.unlink()
    with pytest.raises(UserError, match="there is no such checkpoint"):
        run.answer("1 0 1 1 0 0")
    (run.seed_directory(0) / "result.json").write_text("{")
    with pytest.raises(UserError, match=r"a result.json is damaged"):
        run.table()


def test_the_frontier_and_the_shortest_chain_within_a_loss(run: internalize.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    frontier = run.frontier()
    assert frontier["shown"].to_list()[:6] == [5, 4, 3, 2, 1, 0]
    validation = {5: 0.99, 4: 0.98, 3: 0.96, 2: 0.98, 1: 0.97, 0: 0.5}

    def measured(self: internalize.Run, seed: int, part: str = "test", real: Any = internalize.Run.measured) -> list[dict]:
        rows = real(self, seed, part)
        return [row | {"accuracy": validation[row["shown"]]} for row in rows] if part == "validation" else rows

    monkeypatch.setattr(internalize.Run, "measured", measured)
    for loss, shown in ((0.0, 5), (0.005, 5), (0.011, 2), (0.021, 1), (0.6, 0)):
        chosen = run.frontier(loss).filter("chosen")
        assert chosen["shown"].to_list() == [shown] * len(run.seeds)


def test_every_length_of_a_mixture_is_on_the_frontier_and_e2e_has_nothing_to_compare_with(tmp_path: Path) -> None:
    mixture = internalize.fit(**{**TINY, "curriculum": "mixture"}, out=tmp_path, quiet=True)
    assert sorted(mixture.frontier(0.02)["shown"].to_list()) == [0, 1, 2, 3, 4, 5]
    e2e = internalize.fit(**{**TINY, "curriculum": "e2e"}, out=tmp_path, quiet=True)
    assert e2e.frontier()["shown"].to_list() == [0]
    with pytest.raises(UserError, match="no stage was trained on the full chain"):
        e2e.frontier(0.02)


def test_a_seed_that_fails_takes_nothing_from_the_others(tmp_path: Path) -> None:
    config = configure(RunConfig(), **TINY)
    busy = tmp_path / config.name() / "seed-0"
    busy.mkdir(parents=True)
    with FileLock(busy / ".lock"), pytest.raises(UserError, match="another process is training this seed"):
        internalize.fit(config, seeds=2, out=tmp_path, quiet=True)
    run = internalize.load(tmp_path / config.name())
    assert (run.seeds, run.unfinished) == ([1], [0])
    assert (run.path / "report.html").exists()


def test_a_page_that_cannot_be_written_hides_no_other_error(tmp_path: Path) -> None:
    config = configure(RunConfig(), **TINY)
    run = internalize.Run(tmp_path / config.name(), config)
    (run.page / "in the way").mkdir(parents=True)
    with pytest.raises(UserError, match=r"report.html: cannot be written \(Is a directory\); the run itself is saved"):
        internalize.fit(config, out=tmp_path, quiet=True)
    busy = run.seed_directory(1)
    busy.mkdir()
    with FileLock(busy / ".lock"), pytest.raises(UserError, match="another process is training this seed"):
        internalize.fit(config, seeds=2, out=tmp_path, quiet=True)
    assert run.seeds == [0]


def test_pages_of_runs_without_anything_new_stay_as_they_are(tmp_path: Path) -> None:
    runs = [internalize.fit(**{**TINY, "curriculum": name}, out=tmp_path, quiet=True) for name in ("e2e", "cot", "left")]
    runs[0].page.unlink()
    before = [run.page.stat().st_mtime_ns for run in runs[1:]]
    shutil.rmtree(runs[1].seed_directory(0))
    train(runs, [0], quiet=True)
    assert runs[0].page.exists()
    after = [run.page.stat().st_mtime_ns for run in runs[1:]]
    assert after[0] > before[0]
    assert after[1] == before[1]


def test_a_run_says_of_which_kind_it_is(run: internalize.Run, tmp_path: Path) -> None:
    values = json.loads((run.path / "config.json").read_text())
    assert values["kind"] == "sandbox"
    for lm in ({"kind": "language model", "schema": 1}, {"schema": 1, "model": "gpt2"}):  # as now, and as it was written before
        (tmp_path / "config.json").write_text(json.dumps(lm))
        with pytest.raises(UserError, match=rf"this is a language model's run; show it with `internalize lm show {tmp_path}`"):
            internalize.load(tmp_path)
    del values["kind"]
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert internalize.load(tmp_path).config == run.config
