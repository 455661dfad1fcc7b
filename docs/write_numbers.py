"""Writes the numbers and pictures of README.md from the committed rows in results/: `python docs/write_numbers.py`.

With `--check` it only says whether anything would change (exit code 1). Text between `<!-- numbers: NAME -->` and
`<!-- end -->` is written by the function NAME below.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from internalize.evaluation import success_rate
from internalize.report.charts import Series, accuracy_chart

ROOT = Path(__file__).resolve().parents[1]
OOD = "biased:1:0.8"


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of results/<name>.jsonl, one for each seed."""
    return [json.loads(line) for line in (ROOT / "results" / f"{name}.jsonl").read_text().splitlines()]


def arm(row: dict[str, Any]) -> str:
    """The curriculum of a row."""
    return str(row["settings"].get("curriculum", "left"))


def demo_table() -> str:
    """The demo's three arms."""
    lines = ["| regime | chain tokens written | ID accuracy | OOD accuracy | steps |", "|---|---|---|---|---|"]
    by_arm = {arm(row): row for row in rows("demo")}
    for name in ("e2e", "cot", "left"):
        row = by_arm[name]
        accuracy = row["accuracy"]["stage"]
        cells = name, str(row["curve"][-1]["shown"]), f"{accuracy['uniform']:.3f}", f"{accuracy[OOD]:.3f}", f"{row['steps']:,}"
        lines.append("| " + " | ".join(cells) + " |")
    left = by_arm["left"]
    lines += ["", f"({left['parameters']:,} parameters; one seed; commit {left['commit']}, {left['machine']['cores']} cores.)"]
    return "\n".join(lines)


def demo_picture() -> str:
    """docs/demo.svg: the curve of the demo's left arm."""
    left = next(row for row in rows("demo") if arm(row) == "left")
    xs = [stage["shown"] for stage in left["curve"]]
    series = [
        Series(label, color, [(stage["shown"], stage["accuracy"][split]) for stage in left["curve"]])
        for split, color, label in (("uniform", "a", "in distribution"), (OOD, "b", "out of distribution"))
    ]
    e2e = next(row for row in rows("demo") if arm(row) == "e2e")["accuracy"]["stage"]["uniform"]
    series.append(Series("end to end", "c", [(xs[0], e2e), (xs[-1], e2e)], dashed=True))
    return accuracy_chart(
        series, "Accuracy as the chain is taken away", "chain tokens still written before the answer", xs, standalone=True
    )


def coverage_table() -> str:
    """C3 at T = 15: uniform against broad training inputs, with and without the curriculum."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows("coverage-c3"):
        groups.setdefault((arm(row), row["settings"].get("inputs", "uniform")), []).append(row)
    splits = list(next(iter(groups.values()))[0]["accuracy"]["direct"])
    lines = ["| curriculum, training inputs | " + " | ".join(splits) + " | steps |", "|---" * (len(splits) + 2) + "|"]
    for (curriculum, inputs), members in groups.items():
        cells = [f"{curriculum}, {inputs}"]
        for split in splits:
            values = [row["accuracy"]["direct"][split] for row in members]
            success = success_rate(values)
            cells.append(f"{mean(values):.3f}<br>{success.wins}/{success.seeds} [{success.low:.2f}, {success.high:.2f}]")
        cells.append(f"{mean(row['steps'] for row in members):,.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


TEXTS: dict[str, Callable[[], str]] = {"demo_table": demo_table, "coverage_table": coverage_table}


def updated(text: str) -> str:
    """`text` with every marked part written anew."""
    for name, write in TEXTS.items():
        pattern = re.compile(rf"(<!-- numbers: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = pattern.sub(lambda match, write=write: f"{match[1]}{write()}\n{match[2]}", text)
    return text


def main() -> None:
    """Write, or check, README.md and docs/demo.svg."""
    contents = {
        ROOT / "README.md": updated((ROOT / "README.md").read_text()),
        ROOT / "docs" / "demo.svg": demo_picture() + "\n",
    }
    stale = [path for path, text in contents.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run python docs/write_numbers.py" if stale else 0)
    for path in stale:
        path.write_text(contents[path])


if __name__ == "__main__":
    main()
