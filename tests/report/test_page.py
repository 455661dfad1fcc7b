import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import internalize
from internalize.report import stage_curve, write_report
from tiny import TINY


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> internalize.Run:
    return internalize.fit(**TINY, seeds=2, out=tmp_path_factory.mktemp("runs"), quiet=True)


def test_the_page_needs_nothing_else(run: internalize.Run) -> None:
    page = (run.path / "report.html").read_text()
    HTMLParser().feed(page)
    links = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)|@import', page)
    assert links == [("data:,", "")]  # an empty icon, so that no browser asks for one
    assert len(page) < 2_000_000


def test_the_page_holds_what_was_measured(run: internalize.Run) -> None:
    page = (run.path / "report.html").read_text()
    for split in run.config.test_splits():
        assert f"<code>{split}</code>" in page
    for row in run.table().to_dicts():
        assert f"{100 * row['direct']:.1f} %" in page
    assert page.count("slow: full chain, then answer") == 1
    assert len(re.findall(r'code class="(?:right|wrong)"', page)) == 6  # three inputs, slow and fast


def test_several_runs_share_a_page(run: internalize.Run, tmp_path: Path) -> None:
    other = internalize.fit(**{**TINY, "curriculum": "e2e"}, out=tmp_path, quiet=True)
    page = write_report([run, other], tmp_path / "both.html").read_text()
    assert "<h2>left</h2>" in page
    assert "<h2>e2e</h2>" in page


def test_the_curve_is_a_picture_with_every_stage(run: internalize.Run) -> None:
    svg = ElementTree.fromstring(stage_curve(run))
    circles = svg.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 2 * 6  # ID and OOD at six stages
    assert svg.attrib["role"] == "img"


def test_many_runs_are_compared_and_not_detailed(run: internalize.Run, tmp_path: Path) -> None:
    page = write_report([run] * 13, tmp_path / "many.html").read_text()
    assert page.count(f"<small>{run.path.name}</small>") == 13
    assert "Every split, without a chain" in page
    assert "To repeat this" not in page


def test_every_split_is_told_at_every_stage(run: internalize.Run) -> None:
    page = (run.path / "report.html").read_text()
    picture = re.search(r'<svg[^>]*aria-label="Accuracy on every split.*?</svg>', page, re.DOTALL)
    assert picture is not None
    assert picture[0].count('class="cell"') == len(run.stages())
