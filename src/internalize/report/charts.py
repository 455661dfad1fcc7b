"""Line charts and heat maps as SVG text: no library, readable in light and dark. Each holds its numbers as CSV, which the
script of a page offers for download (charts.js)."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from internalize.evaluation.statistics import mean_interval

WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 18, 52

STYLE = """
.chart { font: 13px system-ui, sans-serif; --ink: #1d2430; --faint: #d5d9e0; --a: #1f6feb; --b: #c2410c; --c: #5b6472;
  --d: #15803d; }
@media (prefers-color-scheme: dark) {
  .chart { --ink: #e6e9ef; --faint: #3a414d; --a: #6cb0ff; --b: #ff9d66; --c: #a3adbb; --d: #6ee7a0; }
}
.chart text { fill: var(--ink); } .chart .grid { stroke: var(--faint); } .chart path { fill: none; stroke-width: 2.5; }
.chart .thin { stroke-width: 1; opacity: .35; } .chart .dash { stroke-dasharray: 5 4; }
.chart .a { stroke: var(--a); } .chart .b { stroke: var(--b); } .chart .c { stroke: var(--c); }
.chart circle.a { fill: var(--a); } .chart circle.b { fill: var(--b); } .chart text.a { fill: var(--a); stroke: none; }
.chart text.b { fill: var(--b); stroke: none; } .chart text.c { fill: var(--c); stroke: none; }
.chart circle.c { fill: var(--c); } .chart circle.d { fill: var(--d); }
.chart .d { stroke: var(--d); } .chart text.d { fill: var(--d); stroke: none; } .chart .band { stroke: none; opacity: .15; }
.chart .band.a { fill: var(--a); } .chart .band.b { fill: var(--b); } .chart .band.c { fill: var(--c); }
.chart .band.d { fill: var(--d); } .chart .cell { fill: var(--a); stroke: var(--faint); stroke-width: .5; }
"""


@dataclass(frozen=True)
class Series:
    """One line: a label, a colour class (a to d), and (x, y) points. Of a thin line only the CSV tells the label."""

    label: str
    color: str
    points: Sequence[tuple[float, float]]
    thin: bool = False
    dashed: bool = False
    band: Sequence[tuple[float, float, float]] = ()  # (x, low, high) behind the line


def over_seeds(
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]], xs: Sequence[float], label: str, color: str
) -> list[Series]:
    """Each of several seeds as a thin line, then the mean of their accuracies at `xs`, with its 95 % interval wherever several
    seeds are. `lines` are the name and the points of each seed; they need not all reach as far.
    """
    reached = {x: ys for x in xs if (ys := [y for _, points in lines for at, y in points if at == x])}
    thin = [Series(f"{label}, {name}", color, points, thin=True) for name, points in lines if len(lines) > 1]
    band = [(x, *mean_interval(ys)) for x, ys in reached.items() if len(ys) > 1]
    return [*thin, Series(label, color, [(x, sum(ys) / len(ys)) for x, ys in reached.items()], band=band)]


def accuracy_chart(series: Sequence[Series], title: str, x_label: str, xs: Sequence[int]) -> str:
    """Accuracy (0 to 1) against `xs`, which run from left to right in the order given."""
    place = {x: LEFT + (WIDTH - LEFT - RIGHT) * (index / max(1, len(xs) - 1)) for index, x in enumerate(xs)}
    every = max(1, len(xs) // 10)
    x_ticks = [(place[x], str(x)) for index, x in enumerate(xs) if index % every == 0 or index == len(xs) - 1]
    y_ticks = [(tick, f"{tick:.0%}") for tick in (0, 0.25, 0.5, 0.75, 1)]
    return _lines(series, title, x_label, lambda x: place[int(x)], x_ticks, 1.0, y_ticks, "{:.1%}")


def line_chart(series: Sequence[Series], title: str, x_label: str) -> str:
    """Lines from 0 on both axes."""
    most_x = max((x for line in series for x, _ in line.points), default=1) or 1
    most_y = max((y for line in series for _, y in line.points), default=1) or 1

    def place(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x / most_x

    x_ticks = [(place(x), f"{x:,g}") for x in _round_ticks(most_x)]
    y_ticks = [(y, f"{y:g}") for y in _round_ticks(most_y)]
    return _lines(series, title, x_label, place, x_ticks, most_y, y_ticks, "{:.3g}")


def heat_map(
    values: Sequence[Sequence[float | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    least: float = 0.0,
    most: float = 1.0,
) -> str:
    """A cell for each value, the darker the greater between `least` and `most`; each tells its value when pointed at. None
    leaves its cell out."""
    size, left = 26, 16 + 7 * max(map(len, rows), default=0)
    slanted = max(map(len, columns), default=0) > 3
    top = 30 + (5 * max(map(len, columns)) if slanted else 0)
    width, height = left + size * len(columns) + (70 if slanted else 10), top + size * len(rows) + 10
    parts, table = [], [("row", "column", "value")]
    for at, name in enumerate(columns):
        x, y = left + size * (at + 0.5), top - 8
        how = f'transform="rotate(-40 {x:.0f} {y})"' if slanted else 'text-anchor="middle"'
        parts.append(f'<text x="{x:.0f}" y="{y}" {how}>{escape(name)}</text>')
    for at, (name, row) in enumerate(zip(rows, values, strict=True)):
        y = top + size * at
        parts.append(f'<text x="{left - 8}" y="{y + size / 2 + 4:.0f}" text-anchor="end">{escape(name)}</text>')
        for place, value in enumerate(row):
            if value is None:
                continue
            shade = min(1.0, max(0.0, (value - least) / ((most - least) or 1)))
            cell = f'<rect class="cell" x="{left + size * place}" y="{y}" width="{size}" height="{size}" '
            parts.append(
                f'{cell}fill-opacity="{shade:.3f}"><title>{escape(name)}, {escape(columns[place])}: {value:.3f}</title></rect>'
            )
            table.append((name, columns[place], f"{value:.6g}"))
    return _svg(title, width, height, parts, table, kind="chart map")


def _lines(
    series: Sequence[Series],
    title: str,
    x_label: str,
    x_of: Callable[[float], float],
    x_ticks: Sequence[tuple[float, str]],
    top: float,
    y_ticks: Sequence[tuple[float, str]],
    number: str,
) -> str:
    def y_of(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)

    parts = []
    for tick, text in y_ticks:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y_of(tick) + 4:.1f}" text-anchor="end">{text}</text>')
    for x, text in x_ticks:
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{text}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')

    drawn = [line for line in series if line.points]
    table = [("series", "x", "y", "low", "high")]
    for line in drawn:
        spans = {at: (f"{low:.6g}", f"{high:.6g}") for at, low, high in line.band}
        table += [(line.label, f"{at:g}", f"{value:.6g}", *spans.get(at, ("", ""))) for at, value in line.points]
        path = "M" + "L".join(f"{x_of(at):.1f},{y_of(value):.1f}" for at, value in line.points)
        kind = line.color + " thin" * line.thin + " dash" * line.dashed
        if line.band:
            edge = [(at, high) for at, _, high in line.band] + [(at, low) for at, low, _ in reversed(line.band)]
            corners = " ".join(f"{x_of(at):.1f},{y_of(value):.1f}" for at, value in edge)
            parts.append(f'<polygon class="band {line.color}" points="{corners}"/>')
        parts.append(f'<path class="{kind}" d="{path}"/>')
        if line.thin:
            continue
        if not line.dashed:
            span = {at: f" ({number.format(low)} to {number.format(high)})" for at, low, high in line.band}
            for at, value in line.points:
                dot = f'<circle class="{line.color}" cx="{x_of(at):.1f}" cy="{y_of(value):.1f}" r="3">'
                told = f"{line.label}: {number.format(value)}{span.get(at, '')} at {at:g}"
                parts.append(f"{dot}<title>{escape(told)}</title></circle>")
    named = [line for line in drawn if not line.thin]
    for line, y in zip(named, _apart([y_of(line.points[-1][1]) + 4 for line in named]), strict=True):
        parts.append(f'<text class="{line.color}" x="{WIDTH - RIGHT + 10}" y="{y:.1f}">{escape(line.label)}</text>')
    return _svg(title, WIDTH, HEIGHT, parts, table)


def _apart(wanted: Sequence[float], gap: float = 15) -> list[float]:
    """Places for labels at least `gap` apart, in the order of and near to where they are wanted, none below the axis."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    places = list(wanted)
    for above, below in pairwise(order):
        places[below] = max(places[below], places[above] + gap)
    limit = float(HEIGHT - BOTTOM + 4)
    for index in reversed(order):
        places[index] = limit = min(places[index], limit)
        limit -= gap
    return places


def _svg(
    title: str,
    width: int,
    height: int,
    parts: Sequence[str],
    table: Sequence[Sequence[str]],
    kind: str = "chart",
) -> str:
    csv = "&#10;".join(",".join(escape(_quoted(cell)) for cell in row) for row in table)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" data-csv="{csv}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def as_file(chart: str) -> str:
    """A chart as a file of its own: with its style inside, and without the CSV, which only the script of a page reads."""
    head, _, rest = chart.partition(">")
    return re.sub(' data-csv="[^"]*"', "", head) + f"><style>{STYLE}</style>{rest}\n"


def _quoted(cell: str) -> str:
    """A cell of CSV."""
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n') else cell


def _round_ticks(most: float) -> list[float]:
    """From 0 to at most `most`, in round steps, of which there are at most six."""
    most = max(most, 1e-300)
    power = 10.0 ** math.floor(math.log10(most))
    step = next(power * part for part in (0.1, 0.2, 0.25, 0.5, 1, 2) if most / (power * part) <= 6)
    return [round(step * at, 12) for at in range(int(most / step) + 1)]
