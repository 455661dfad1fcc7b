import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from internalize import cli
from internalize.cli import main, studies
from internalize.studies import find
from small_study import row, tiny


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    try:
        main(["study", *map(str, words)])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_list_names_every_study(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "list", "--json")
    assert code == 0
    assert set(json.loads(said)) == set(cli.studies.studies())
    code, said, _ = run(capsys, "list")
    assert "2 laptop, 2 paper" in said


def test_a_dry_run_says_the_cost_and_trains_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "find", lambda name: tiny())
    code, said, told = run(capsys, "run", "tiny", "--dry-run", "--out", tmp_path)
    assert code == 0
    assert said == ""
    assert "2 cells, 2 seeds each; 4 seeds are left to train: at most 0.0 core-hours" in " ".join(told.split())
    assert not list(tmp_path.iterdir())


def test_running_and_drawing(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "find", lambda name: tiny())
    rows = tmp_path / "rows.jsonl"
    code, said, _ = run(capsys, "run", "tiny", "--seeds", 1, "--out", tmp_path, "--rows", rows)
    assert code == 0
    page = tmp_path / "studies" / "tiny.html"
    assert said.strip() == str(page)
    assert len(rows.read_text().splitlines()) == 2
    whole = page.read_text()
    code, said, _ = run(capsys, "draw", "tiny", "--out", tmp_path)
    assert page.read_text() == whole
    pilot = tiny().runs("laptop", tmp_path)[0].path
    shutil.copytree(pilot / "seed-0", pilot / "seed-1000")
    outcome = json.loads((pilot / "seed-1000" / "result.json").read_text()) | {"seed": 1000}
    (pilot / "seed-1000" / "result.json").write_text(json.dumps(outcome))
    run(capsys, "run", "tiny", "--seeds", 1, "--out", tmp_path)
    assert page.read_text() == whole  # seeds on which settings were chosen do not count
    run(capsys, "draw", "tiny", "--out", tmp_path)
    assert page.read_text() == whole
    run(capsys, "draw", "tiny", "--out", tmp_path, "--pilot")
    assert page.read_text() != whole
    code, said, _ = run(capsys, "draw", "tiny", "--rows", rows, "--out", tmp_path / "other")
    assert (tmp_path / "other" / "studies" / "tiny.html").read_text() == whole


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "fig9"], 'no study is called "fig9"'),
        (["run", "fig1", "--seeds", "0"], "--seeds must be at least 1"),
        (["draw", "fig1"], "no seed is finished yet"),
        (["draw", "fig1", "--rows", "none"], "none: cannot be read"),
    ],
)
def test_what_cannot_be_done(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, error = run(capsys, *words)
    assert code == 2
    assert error.startswith("internalize: ")
    assert message in error
    assert not list(tmp_path.iterdir())


def test_committed_rows_can_be_drawn(tmp_path: Path) -> None:
    """The rows of a study in results/ are those of its cells."""
    root = Path(__file__).resolve().parents[2] / "results"
    for name in ("fig1",):
        file = root / f"{name}.jsonl"
        if not file.exists():
            pytest.skip("no rows are committed")
        settings = [json.loads(line)["settings"] for line in file.read_text().splitlines()]
        cells: list[Any] = [json.loads(json.dumps(cell.changed())) for cell in find(name).cells("laptop")]
        assert all(one in cells for one in settings)
        assert all(cell in settings for cell in cells)


def test_text_of_a_row_is_escaped(tmp_path: Path) -> None:
    from internalize.studies.study import draw

    bad = row({"task": "C3", "steps": 6}, 0, 0.9, 0.9) | {"command": "<script>alert(1)</script>"}
    page = draw(tiny(), [bad], tmp_path / "page.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert" not in page
