"""Line charts and heat maps as SVG text: no library, no script, readable in light and dark."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

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
.chart .d { stroke: var(--d); } .chart text.d { fill: var(--d); stroke: none; } .chart .band { stroke: none; opacity: .15; }
.chart .band.a { fill: var(--a); } .chart .band.b { fill: var(--b); } .chart .band.c { fill: var(--c); }
.chart .band.d { fill: var(--d); } .chart .cell { fill: var(--a); stroke: var(--faint); stroke-width: .5; }
"""


@dataclass(frozen=True)
class Series:
    """One line: a label, a colour class (a to d), and (x, y) points. Thin lines have no label and no dots."""

    label: str
    color: str
    points: Sequence[tuple[float, float]]
    thin: bool = False
    dashed: bool = False
    band: Sequence[tuple[float, float, float]] = ()  # (x, low, high) behind the line; then the line has no dots


def accuracy_chart(series: Sequence[Series], title: str, x_label: str, xs: Sequence[int], standalone: bool = False) -> str:
    """Accuracy (0 to 1) against `xs`, which run from left to right in the order given.

    `standalone` makes a file of its own, with its style inside.
    """
    place = {x: LEFT + (WIDTH - LEFT - RIGHT) * (index / max(1, len(xs) - 1)) for index, x in enumerate(xs)}

    def y_of(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value)

    parts = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y_of(tick) + 4:.1f}" text-anchor="end">{tick:.0%}</text>')
    every = max(1, len(xs) // 10)
    for index, x in enumerate(xs):
        if index % every == 0 or index == len(xs) - 1:
            parts.append(f'<text x="{place[x]:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{x}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')

    label_at: list[float] = []
    for line in series:
        path = "M" + "L".join(f"{place[int(at)]:.1f},{y_of(value):.1f}" for at, value in line.points)
        kind = line.color + " thin" * line.thin + " dash" * line.dashed
        if line.band:
            edge = [(at, high) for at, _, high in line.band] + [(at, low) for at, low, _ in reversed(line.band)]
            corners = " ".join(f"{place[int(at)]:.1f},{y_of(value):.1f}" for at, value in edge)
            parts.append(f'<polygon class="band {line.color}" points="{corners}"/>')
        parts.append(f'<path class="{kind}" d="{path}"/>')
        if line.thin:
            continue
        if not line.dashed and not line.band:
            for at, value in line.points:
                dot = f'<circle class="{line.color}" cx="{place[int(at)]:.1f}" cy="{y_of(value):.1f}" r="3">'
                parts.append(f"{dot}<title>{escape(line.label)}: {value:.1%} at {at:g}</title></circle>")
        y = y_of(line.points[-1][1]) + 4
        while any(abs(y - other) < 15 for other in label_at):
            y += 15 if y < HEIGHT - BOTTOM - 15 else -45
        label_at.append(y)
        parts.append(f'<text class="{line.color}" x="{WIDTH - RIGHT + 10}" y="{y:.1f}">{escape(line.label)}</text>')
    style = f"<style>{STYLE}</style>" if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{style}<title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def heat_map(
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    least: float = 0.0,
    most: float = 1.0,
) -> str:
    """A cell for each value, the darker the greater between `least` and `most`; each tells its value when pointed at."""
    size, left, top = 26, 64, 30
    width, height = left + size * len(columns) + 10, top + size * len(rows) + 10
    parts = []
    for at, name in enumerate(columns):
        parts.append(f'<text x="{left + size * (at + 0.5):.0f}" y="{top - 8}" text-anchor="middle">{escape(name)}</text>')
    for at, (name, row) in enumerate(zip(rows, values, strict=True)):
        y = top + size * at
        parts.append(f'<text x="{left - 8}" y="{y + size / 2 + 4:.0f}" text-anchor="end">{escape(name)}</text>')
        for place, value in enumerate(row):
            shade = min(1.0, max(0.0, (value - least) / ((most - least) or 1)))
            cell = f'<rect class="cell" x="{left + size * place}" y="{y}" width="{size}" height="{size}" '
            parts.append(
                f'{cell}fill-opacity="{shade:.3f}"><title>{escape(name)}, {escape(columns[place])}: {value:.3f}</title></rect>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )
