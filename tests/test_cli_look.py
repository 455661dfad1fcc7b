import json
from pathlib import Path

import pytest

from internalize import Run, fit
from internalize.cli import look, main
from tiny import TINY


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    out = tmp_path_factory.mktemp("runs")
    return [fit(out=out, quiet=True, processes=1, curriculum=curriculum, **TINY) for curriculum in ("left", "e2e")]


def test_one_page_for_several_runs(runs: list[Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "both.html"
    main(["report", *(str(run.path) for run in runs), "--out", str(page)])
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text()
    assert "<h2>left</h2>" in text
    assert "<h2>e2e</h2>" in text
    assert "http" not in text.replace("http://www.w3.org", "")
    main(["report", str(runs[0].path)])
    assert capsys.readouterr().out.strip() == str(runs[0].path / "report.html")


def test_the_browser_is_opened(runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(look.webbrowser, "open", opened.append)
    main(["report", str(runs[0].path), "--out", str(tmp_path / "page.html"), "--open"])
    assert opened == [(tmp_path / "page.html").as_uri()]


def test_watching_ends_when_all_is_done(
    runs: list[Run], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = runs[0].path / "seed-7"
    begun.mkdir()
    (begun / "metrics.jsonl").write_text(
        json.dumps({"kind": "check", "stage": 2, "shown": 3, "step": 7, "loss": 0.5, "validation": {}}) + "\n"
    )
    table, unfinished = look.state(look.runs_in(runs[0].path.parent))
    assert unfinished == 1
    assert [list(column.cells) for column in table.columns][1:6] == [
        ["0", "0", "7"],
        ["1/1", "6/6", "3/6"],
        ["0", "0", "3"],
        ["20 of 20", "20 of 20", "7 of 20"],
        [*(list(table.columns[5].cells)[:2]), "0.500"],
    ]
    main(["watch", str(runs[0].path), "--once"])
    assert "training" in capsys.readouterr().out

    def finish(seconds: float) -> None:
        (begun / "result.json").write_text("{}")

    monkeypatch.setattr(look.time, "sleep", finish)
    main(["watch", str(runs[0].path)])
    said = capsys.readouterr().out
    assert "done" in said
    assert "training" not in said.splitlines()[-3]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report"], "name at least one run's directory"),
        (["report", "nowhere"], "nowhere: this is not a run's directory"),
        (["watch", "nowhere"], "nowhere: there is no run in it"),
    ],
)
def test_what_cannot_be_looked_at(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_run_without_a_finished_seed_has_no_report(
    runs: list[Run], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text((runs[0].path / "config.json").read_text())
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path)])
    assert "no seed is finished yet" in capsys.readouterr().err
