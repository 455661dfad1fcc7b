"""Writes the numbers and pictures of the documentation from the committed rows in results/: `python docs/write_numbers.py`.

With `--check` it only says whether anything would change (exit code 1). Text between `<!-- numbers: NAME -->` and
`<!-- end -->` is the table of a study's figure that `DRAWN` names so, or is written by the function NAME below.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path
from statistics import linear_regression, mean
from typing import Any

import numpy as np
import polars

from internalize.cli.theory import learning_curves, learnt
from internalize.config import ID
from internalize.evaluation import success_rate
from internalize.evaluation.statistics import median_needed, needed
from internalize.report.charts import Series, as_file
from internalize.studies import find
from internalize.studies.common import DIRECT, INSIDE, OUTSIDE, frontier_chart, success_table
from internalize.studies.study import Figure, curves, outcomes
from internalize.theory.mlp_parity import Curve

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ("README.md", "docs/theory.md", "docs/performance.md", "docs/reproduction.md", "docs/language-models.md")
LABELS = ("coverage-labels", "coverage-true")
# by name: a study, a figure's title, the files of rows, and columns that the text tells
DRAWN = {
    "coverage_table": ("coverage", "Every split, no chain", ["coverage-c3"], ["task", "labels"]),
    "slow_table": ("coverage", "The slow system that labels", LABELS, ["task", "curriculum", "inputs"]),
    "labels_table": ("coverage", "Every split, no chain", LABELS, ["task", "curriculum", "inputs"]),
    "fig1_table": ("fig1", "The same in numbers", ["fig1"], []),
    "heads_table": ("heads", "Success by the number of heads", ["heads"], []),
    "optimizer_table": ("optimizer", "Success by optimizer", ["optimizer"], []),
    "mixture_table": ("mixture", "Success by curriculum", ["mixture"], []),
}


def rows(*names: str) -> list[dict[str, Any]]:
    """The rows of results/<name>.jsonl, of one file after the other."""
    files = [(ROOT / "results" / f"{name}.jsonl").read_text() for name in names]
    return [json.loads(line) for file in files for line in file.splitlines()]


def option(row: Mapping[str, Any], flag: str, default: Any) -> Any:
    """What the row's command says after `flag`."""
    words = row["command"].split()
    return type(default)(words[words.index(flag) + 1]) if flag in words else default


def table(head: Sequence[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *lines])


def markdown(found: polars.DataFrame | Sequence[Mapping[str, Any]]) -> str:
    """A frame, or its lines, as a Markdown table."""
    frame = polars.DataFrame(found)
    number = {int: "{:,}", float: "{:.3f}", type(None): "-"}
    return table(frame.columns, [[number.get(type(cell), "{}").format(cell) for cell in line] for line in frame.rows()])


def figures(study: str, names: Sequence[str]) -> dict[str, Figure]:
    """What `internalize study draw` makes of these rows, by title."""
    found = rows(*names)
    return {figure.title: figure for figure in find(study).draw(outcomes(found), curves(found))}


def write(name: str) -> str:
    """The text that is called `name`."""
    if name not in DRAWN:
        return str(globals()[name]())
    study, title, names, told = DRAWN[name]
    frame = figures(study, names)[title].table
    assert frame is not None
    return markdown(frame.drop(told))


def demo_table() -> str:
    """The demo's three arms."""
    frame = outcomes(rows("demo")).filter((polars.col("mode") == "stage") & (INSIDE | OUTSIDE))
    arms = frame.pivot("split", index=["curriculum", "left", "steps", "headline"], values="accuracy")
    cells = {"chain tokens written": "left", "ID accuracy": ID, "OOD accuracy": frame["headline"][0], "steps": "steps"}
    left = frame.row(-1, named=True)
    about = f"({left['parameters']:,} parameters; one seed; commit {left['commit']}, {left['cores']} cores.)"
    return f"{markdown(arms.select(regime='curriculum', **cells))}\n\n{about}"


def demo_picture() -> str:
    """The curve of the demo's left arm, and where end to end training ends."""
    left = curves(rows("demo")).filter(polars.col("curriculum") == "left")
    direct = outcomes(rows("demo")).filter(DIRECT & INSIDE & (polars.col("curriculum") == "e2e"))["accuracy"][0]
    ends = [(shown, direct) for shown in (left["shown"].max(), left["shown"].min())]
    return frontier_chart(left, "Accuracy as the chain is taken away", Series("end to end", "c", ends, dashed=True))


def cells_table() -> str:
    """Other cells: accuracy and success in and out of distribution, and how far the chain was taken away."""
    frame = outcomes(rows("left-uniform", "coverage-c5", "coverage-c2-t25", "coverage-c2-t25-long"))
    found = success_table(frame, "task", "T", "curriculum", "inputs", "budget")
    return markdown(found.drop("budget", "ID, full chain", "OOD, full chain"))


def probes_table() -> str:
    """Where states can be read: constructions and trained models."""
    lines = []
    for row in rows("probes"):
        path, seed = Path(row["command"].split()[2]).name, option(row, "--seed", "")
        model = f"{path.rpartition('-')[0]}, seed {seed}" if seed else path
        for stage, found in row["stages"].items():
            first, states = len(found["columns"]) - len(found["targets"]), range(2, len(found["targets"]) - 1)
            own, bare = (mean(found[name][-1][first + t][t] for t in states) for name in ("accuracy", "untrained"))
            answer = mean(found["accuracy"][-1][-1][t] for t in states)
            lines.append({"model": f"{model}, stage {stage}", "own column": own, "untrained": bare, "answer's column": answer})
    return markdown(lines)


def lm_throughput() -> str:
    """Throughput of ours relative to a plain Trainer's."""
    (row,) = rows("lm-throughput")
    ratios = sorted(plain / ours for plain, ours in zip(row["seconds"]["plain"], row["seconds"]["ours"], strict=True))
    return f"{row['throughput ratio']:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


def lm_table() -> str:
    """Language models: full chain, and no chain at the end, in and out of distribution."""
    lines = []
    for row in rows("lm"):
        settings, final = row["settings"], row["final"]
        curve = row["curve"]
        first, last = curve[0]["adapted"], [stage for stage in curve if stage["passed"]][-1]
        direct = final.get("direct", {})

        def cell(name: str, direct: dict[str, Any] = direct) -> str:
            one = direct.get(name)
            return "-" if one is None else f"{one['accuracy']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"

        lines.append(
            [
                f"{Path(settings['model']).parent.name}, {settings.get('curriculum', 'left')}"
                + (", fillers" if settings.get("removal", {}).get("removed") == "filler" else ""),
                f"{row['parameters']:,}",
                f"{first['test']:.3f}, {first['biased']:.3f}" if curve[0]["shown"] else "-",
                f"{last['shown']} of {curve[0]['shown']}",
                f"{last['adapted']['test']:.3f}, {last['adapted']['biased']:.3f}",
                cell("test"),
                cell("biased"),
                f"{row['steps']:,}, {row['seconds'] / 60:.0f} min",
            ]
        )
    head = [
        "data, curriculum",
        "parameters",
        "full chain: test, biased",
        "units shown, last stage learnt",
        "that stage: test, biased",
    ]
    return table([*head, "no chain: test", "no chain: biased", "steps"], lines)


def certificates_table() -> str:
    """Certificates of models without a chain, and what answering only where they are sure does."""
    lines = []
    for row in rows("certificates"):
        run, splits, sure = Path(row["command"].split()[2]).name, row["splits"], row["fast_when_sure"]["chosen"]
        worst = max(splits, key=lambda split: split["gap"]["value"])
        riskiest, point = max(sure.items(), key=lambda item: item[1]["risk"])
        uniform, slow = sure["uniform"], row["costs"]["tokens"]["slow"]
        at_once = f"{uniform['coverage']:.3f}, {uniform['tokens']:.1f} of {slow:.0f}"
        lines.append(
            {
                "run": f"{run.rpartition('-')[0]}, seed {option(row, '--seed', '')}",
                "splits within .05": f"{sum(split['within'] for split in splits)} of {len(splits)}",
                "fast alone is wrong, at worst": f"{worst['fast_risk']['value']:.3f} (`{worst['split']}`)",
                "when sure, uniform: answered at once, tokens": at_once,
                "when sure, at worst: wrong, tokens": f"{point['risk']:.3f} (`{riskiest}`), {point['tokens']:.1f}",
            }
        )
    return markdown(lines)


def constructions_table() -> str:
    """What was verified of the constructed transformers; the counters C_2 .. C_64 are one line for each kind and length."""
    groups: dict[tuple[bool, str, str, int], list[dict[str, Any]]] = {}
    for row in rows("constructions"):
        name, made, checked = row["command"].split()[2], row["construction"], row["verification"]
        small = name[1:].isdigit() and name[0] == "C" and int(name[1:]) <= 64
        swept = small and (checked["exhaustive"] or checked["inputs"] <= 10_000)
        key = not swept, "C2 .. C64" if swept else name, made["via"], option(row, "--steps", 25)
        groups.setdefault(key, []).append({**made, **checked, "MLP width": made["mlp"]})
    lines = []
    for (_, name, via, steps), found in sorted(groups.items()):
        line = {"automaton": name if len(found) == 1 else f"{name} ({len(found)})", "via": via, "T": steps}
        for size in ("layers", "MLP width", "parameters"):
            ends = (choose(one[size] for one in found) for choose in (min, max))
            line[size] = " .. ".join(dict.fromkeys(f"{end:,}" for end in ends))
        checked = {"positions checked": sum(one["positions"] for one in found), "errors": sum(one["errors"] for one in found)}
        lines.append({**line, **checked, "least logit gap": min(one["gap"] for one in found)})
    return markdown(lines)


def parity_table() -> str:
    """The provable algorithm, and what happens when a part of it is changed."""
    lines = []
    for row in rows("parity"):
        about = {"command": f"`{row['command']}`", "B": row["samples"], "bound": row["bound"]}
        holds = None if "e2e" in row["command"] else f"{min(row['invariant'])}/{len(row['exact'])}"
        found = {"exact": str(success_rate(row["exact"])), "invariant, all stages": holds, "accuracy": mean(row["accuracy"])}
        lines.append({**about, **found, "seconds, all seeds": round(row["seconds"])})
    return markdown(lines)


def tree_table() -> str:
    """The binary-tree chain."""
    lines = []
    for row in rows("tree-parity"):
        found = {
            "all factors found": str(success_rate(row["exact"])),
            "accuracy of the generated answer": mean(row["accuracy"]),
        }
        lines.append({"command": f"`{row['command']}`", "samples": row["samples"], **found})
    return markdown(lines)


def parity_batch_table() -> str:
    """The smallest batch with which at least 29 of 30 seeds are exact, and the exponent fitted over d."""
    least: dict[tuple[str, int], dict[int, int]] = {}
    for row in rows("parity-batch"):
        known = least.setdefault((option(row, "--batches", "fresh"), option(row, "--support", 10)), {})
        if sum(row["exact"]) >= 29:
            d = option(row, "--bits", 30)
            known[d] = min(known.get(d, row["samples"]), row["samples"])
    lines = []
    for (batches, k), known in sorted(least.items()):
        slope = linear_regression([log(d) for d in known], [log(batch) for batch in known.values()]).slope
        sizes = {f"d = {d}": known[d] for d in sorted(known)}
        lines.append({"batches": batches, "k": k, **sizes, "exponent of d": f"{slope:.2f}"})
    return markdown(lines)


def mlp_table() -> str:
    """Parity with an MLP: examples that each arm needs."""
    arms = {row["arm"]: row for row in rows("mlp-parity")}
    direct, curriculum = (median_needed(arms[name]["samples_to_95"]) for name in ("direct", "curriculum"))
    told = f"Ratio of the medians, direct / curriculum: {direct / curriculum:.2f}."
    return markdown([{"arm": name, **learnt(row)} for name, row in arms.items()]) + f"\n\n{told}"


def mlp_variants_table() -> str:
    """The same with other inputs, data and hints: fewer seeds."""
    return markdown([{"command": f"`{row['command']}`", **learnt(row)} for row in rows("mlp-parity-variants")])


def shift_table() -> str:
    """Positive distribution shift: examples to an error of .05 on the target distribution, from it and from another one."""

    def cost(counts: list[int | None], most: int) -> str:
        return f"{needed(counts, most)}; {success_rate([count is not None for count in counts])}"

    mlp = {row["arm"]: cost(row["samples_to_95"], row["samples"][-1]) for row in rows("mlp-parity")}
    frame = outcomes(rows("coverage-c3")).filter(DIRECT & INSIDE & (polars.col("curriculum") == "e2e"))
    counts = polars.when("success").then(polars.col("steps") * polars.col("batch"))
    ours = {
        inputs: cost(seeds.select(counts)["steps"].to_list(), seeds["budget"][0] * seeds["batch"][0])
        for (inputs,), seeds in frame.group_by("inputs")
    }
    strict, parity, counter = "strict: nothing of f", "MLP, parity 12 of 25", "transformer, C_3, T = 15, end to end"
    lines = [
        [parity, "`mixture`", "generalized: hints are extra inputs made with f", mlp["direct"], mlp["mixture"]],
        [parity, "`shifted`", strict, mlp["direct"], mlp["shifted"]],
        [counter, "`uniform+dirichlet`", strict, ours["uniform"], ours["uniform+dirichlet"]],
    ]
    head = ["model and target", "training distribution D'", "kind, and what D' knows of f", "median examples from D", "from D'"]
    return table(head, lines)


def engine_table() -> str:
    """The engine against a plain Hugging Face loop."""
    row, lines = rows("engine")[-1], []
    for name, job in row["jobs"].items():
        ways = [f"{1e3 * job[side]['seconds']:,.0f} ({job[side]['way']})" for side in ("ours", "baseline")]
        ratio = f"**{job['ratio']:.2f}** ({job['ratios'][0]:.2f} to {job['ratios'][1]:.2f})"
        lines.append([name, *ways, ratio, "-" if job["roofline"] is None else f"{job['roofline']:.0%}"])
    head = ["", "ours, ms of the work (processes x threads)", "baseline, ms", "ratio (range over repeats)", "of matrix rate"]
    rates = [job["gflops"] for job in row["jobs"].values()]
    where = f"Commit {row['commit']}, {row['cores_used']} cores, matrix rate {min(rates):.0f} to {max(rates):.0f} GFLOP/s."
    return f"{table(head, lines)}\n\n{where}"


def growth_table() -> str:
    """A step's time and memory against T, d, L and seeds."""
    lines = []
    for row in rows("growth"):
        time = f"{row['milliseconds_per_seed']:.1f} ({row['least']:.1f} to {row['most']:.1f})"
        lines.append([str(row[name]) for name in ("T", "d", "L", "seeds")] + [time, f"{row['memory_bytes'] / 2**20:,.0f}"])
    return table(["T", "d", "L", "seeds together", "ms a step and seed (range)", "peak memory, MiB"], lines)


def startup_table() -> str:
    """How long a start takes, against one that imports everything."""
    lines = []
    for row in rows("startup"):
        ratio = f"**{row['ratio']:.2f}** ({row['least']:.2f} to {row['most']:.2f})"
        lines.append([f"`{row['start']}`", f"{row['ours']:.2f}", f"{row['eager']:.2f}", ratio])
    return table(["start", "seconds", "with all imports", "ratio (range over repeats)"], lines)


def pictures() -> dict[str, str]:
    """The charts in docs/, by the name of their file."""
    drawn = {f"fig1-{title.partition(',')[0]}.svg": one.chart for title, one in figures("fig1", ["fig1"]).items() if one.chart}
    arms = {row["arm"]: Curve(np.array(row["samples"]), np.array(row["accuracy"])) for row in rows("mlp-parity")}
    mlp = learning_curves(arms, "Noisy parity of 12 of 25 bits, two-layer network")
    return {"mlp-parity.svg": mlp} | {name: as_file(chart) for name, chart in {"demo.svg": demo_picture(), **drawn}.items()}


def main() -> None:
    """Write, or check, all documents and pictures."""
    marked = re.compile(r"(<!-- numbers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
    contents = {ROOT / "docs" / name: text for name, text in pictures().items()}
    for name in DOCUMENTS:
        text = (ROOT / name).read_text()
        contents[ROOT / name] = marked.sub(lambda match: f"{match[1]}{write(match[2])}\n{match[3]}", text)
    stale = [path for path, text in contents.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run python docs/write_numbers.py" if stale else 0)
    for path in stale:
        path.write_text(contents[path])


if __name__ == "__main__":
    main()
