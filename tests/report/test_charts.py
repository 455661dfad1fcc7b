import csv
from html import unescape
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize.report.charts import STYLE, Series, accuracy_chart, as_file, heat_map, line_chart, over_seeds

SVG = "{http://www.w3.org/2000/svg}"
text = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), max_size=8)


def parsed(picture: str) -> tuple[ElementTree.Element, list[list[str]]]:
    """The picture, and the numbers that it offers for download."""
    svg = ElementTree.fromstring(picture)
    return svg, list(csv.reader(svg.attrib["data-csv"].split("\n")))


@given(rows=st.lists(text, min_size=1, max_size=3), columns=st.lists(text, min_size=1, max_size=3), data=st.data())
def test_a_heat_map_holds_every_value_whatever_the_names(rows: list[str], columns: list[str], data: st.DataObject) -> None:
    cell = st.none() | st.floats(-1, 2)
    values = [[data.draw(cell) for _ in columns] for _ in rows]
    svg, table = parsed(heat_map(values, rows, columns, "<&\">'"))
    told = [value for row in values for value in row if value is not None]
    assert len(svg.findall(f".//{SVG}rect")) == len(told)
    assert [float(row[2]) for row in table[1:]] == pytest.approx(told, abs=1e-5)
    assert {row[0] for row in table[1:]} <= set(rows)
    assert all(0 <= float(rect.attrib["fill-opacity"]) <= 1 for rect in svg.findall(f".//{SVG}rect"))
    assert svg.attrib["aria-label"] == "<&\">'"


@given(points=st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e3)), max_size=6))
def test_lines_stay_inside_their_picture(points: list[tuple[float, float]]) -> None:
    svg, table = parsed(line_chart([Series('a,"b"', "a", points)], "loss", "step"))
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    dots = svg.findall(f".//{SVG}circle")
    assert len(dots) == len(points) == len(table) - 1
    for dot in dots:
        assert 0 <= float(dot.attrib["cx"]) <= width
        assert 0 <= float(dot.attrib["cy"]) <= height
    assert {row[0] for row in table[1:]} <= {'a,"b"'}


@given(ends=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_labels_find_a_place_of_their_own(ends: list[float]) -> None:
    lines = [Series(str(at), "a", [(0, end)]) for at, end in enumerate(ends)]
    svg, _ = parsed(accuracy_chart(lines, "t", "x", [0]))
    places = sorted(float(text.attrib["y"]) for text in svg.findall(f".//{SVG}text[@class='a']"))
    assert len(places) == len(ends)
    assert all(below - above > 14 for above, below in pairwise(places))
    assert places[-1] < float(svg.attrib["viewBox"].split()[3])


def test_an_interval_is_told_where_its_dot_is_pointed_at() -> None:
    line = Series("in distribution", "a", [(2, 0.5), (1, 0.75)], band=[(2, 0.25, 0.625)])
    told = [
        unescape(title.text or "")
        for title in ElementTree.fromstring(accuracy_chart([line], "t", "x", [2, 1])).findall(f".//{SVG}circle/{SVG}title")
    ]
    assert told == ["in distribution: 50.0% (25.0% to 62.5%) at 2", "in distribution: 75.0% at 1"]


def test_a_mean_has_an_interval_where_several_seeds_are() -> None:
    seeds = [("seed 0", [(2, 0.5), (1, 0.5)]), ("seed 1", [(2, 0.7)])]
    *thin, mean = over_seeds(seeds, [2, 1], "ID", "a")
    assert [(line.label, line.thin) for line in thin] == [("ID, seed 0", True), ("ID, seed 1", True)]
    assert mean.points == [(2, pytest.approx(0.6)), (1, 0.5)]
    ((x, low, high),) = mean.band
    assert (x, low) == (2, 0)  # two seeds say little
    assert high == 1
    assert over_seeds(seeds[:1], [2, 1], "ID", "a") == [Series("ID", "a", [(2, 0.5), (1, 0.5)], band=[])]


@given(title=text)
def test_a_file_of_its_own_has_the_style_and_no_table(title: str) -> None:
    chart = as_file(accuracy_chart([Series('a > "b"', "a", [(0, 0.5)])], title, "x", [0]))
    svg = ElementTree.fromstring(chart)
    assert "data-csv" not in svg.attrib
    assert svg.attrib["aria-label"] == title
    assert [style.text for style in svg.findall(f"{SVG}style")] == [STYLE]
