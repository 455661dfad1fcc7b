"""Writes the numbers and pictures of the documentation from the committed rows in results/: `python docs/write_numbers.py`.

With `--check` it only says whether anything would change (exit code 1). Text between `<!-- numbers: NAME -->` and
`<!-- end -->` is written by the function NAME below.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable
from math import inf, log
from pathlib import Path
from statistics import linear_regression, mean, median
from typing import Any

import numpy as np

from internalize.cli.theory import learning_curves
from internalize.curricula import Schedule
from internalize.evaluation import SUCCESS, success_rate, wilson
from internalize.report.charts import Series, accuracy_chart
from internalize.studies.study import still_shown
from internalize.theory.mlp_parity import Curve

ROOT = Path(__file__).resolve().parents[1]
OOD = "biased:1:0.8"


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of results/<name>.jsonl, one for each seed."""
    return [json.loads(line) for line in (ROOT / "results" / f"{name}.jsonl").read_text().splitlines()]


def arm(row: dict[str, Any]) -> str:
    """The curriculum of a row."""
    return str(row["settings"].get("curriculum", "left"))


def table(head: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *lines])


def share(wins: int, seeds: int) -> str:
    """Seeds that succeed, with Wilson's 95 % interval."""
    low, high = wilson(wins, seeds)
    return f"{wins}/{seeds} [{low:.2f}, {high:.2f}]"


def demo_table() -> str:
    """The demo's three arms."""
    lines, by_arm = [], {arm(row): row for row in rows("demo")}
    for name in ("e2e", "cot", "left"):
        row = by_arm[name]
        accuracy = row["accuracy"]["stage"]
        shown = str(still_shown(row))
        lines.append([name, shown, f"{accuracy['uniform']:.3f}", f"{accuracy[OOD]:.3f}", f"{row['steps']:,}"])
    left = by_arm["left"]
    about = f"({left['parameters']:,} parameters; one seed; commit {left['commit']}, {left['machine']['cores']} cores.)"
    return table(["regime", "chain tokens written", "ID accuracy", "OOD accuracy", "steps"], lines) + f"\n\n{about}"


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
    lines = []
    for (curriculum, inputs), members in groups.items():
        cells = [f"{curriculum}, {inputs}"]
        for split in splits:
            values = [row["accuracy"]["direct"][split] for row in members]
            cells.append(f"{mean(values):.3f}<br>{share(*success_rate(values)[:2])}")
        lines.append([*cells, f"{mean(row['steps'] for row in members):,.0f}"])
    return table(["curriculum, training inputs", *splits, "steps"], lines)


def cells_table() -> str:
    """Other cells: accuracy and success in and out of distribution, and how far the chain was taken away."""
    lines = []
    for name in ("left-uniform", "coverage-c5", "coverage-c2-t25", "coverage-c2-t25-long"):
        groups: dict[tuple[str, str, str, int], list[dict[str, Any]]] = {}
        for row in rows(name):
            settings = row["settings"]
            cell = settings.get("task", "C3"), settings.get("steps", 15)
            budget = settings["schedule"].get("budget", Schedule().budget)
            key = f"{cell[0]}, T = {cell[1]}", arm(row), settings.get("inputs", "uniform"), budget
            groups.setdefault(key, []).append(row)
        for (cell_name, curriculum, inputs, budget), members in groups.items():
            direct = [row["accuracy"]["direct"] for row in members]
            accuracies = []
            for split in ("uniform", OOD):
                values = [accuracy[split] for accuracy in direct]
                accuracies.append(f"{mean(values):.3f}<br>{share(*success_rate(values)[:2])}")
            everywhere = sum(min(accuracy.values()) > SUCCESS for accuracy in direct)
            left = ", ".join(str(still_shown(row)) for row in members)
            steps = f"{mean(row['steps'] for row in members):,.0f} of {budget:,}"
            lines.append([cell_name, f"{curriculum}, {inputs}", *accuracies, f"{everywhere}/{len(members)}", left, steps])
    head = ["task", "curriculum, training inputs", "uniform", OOD, "above .95 on every split", "states still shown", "steps"]
    return table(head, lines)


def fig1_means() -> dict[str, dict[int, dict[str, list[float]]]]:
    """Accuracy of each seed by task, units shown and split."""
    found: dict[str, dict[int, dict[str, list[float]]]] = {}
    for row in rows("fig1"):
        task = found.setdefault(row["settings"].get("task", "C3"), {})
        for stage in row["curve"]:
            for split in ("uniform", OOD):
                task.setdefault(stage["shown"], {}).setdefault(split, []).append(stage["accuracy"][split])
    return found


def fig1_table() -> str:
    """Accuracy in and out of distribution against chain tokens."""
    lines = []
    for task, stages in fig1_means().items():
        for shown, splits in sorted(stages.items(), reverse=True):
            cells = [f"{mean(values):.3f} ({min(values):.3f} to {max(values):.3f})" for values in splits.values()]
            lines.append([task, str(shown), f"{len(splits['uniform'])} of 4", *cells])
    return table(["task", "chain tokens", "seeds", "uniform: mean (least to greatest)", OOD], lines)


def fig1_picture() -> str:
    """docs/fig1.svg."""
    series = []
    styles = {("C3", "uniform"): "a", ("C3", OOD): "b", ("C4", "uniform"): "d", ("C4", OOD): "c"}
    for task, stages in fig1_means().items():
        for split in ("uniform", OOD):
            points = [(shown, mean(stages[shown][split])) for shown in sorted(stages, reverse=True)]
            series.append(Series(f"{task}, {'ID' if split == 'uniform' else 'OOD'}", styles[task, split], points))
    title = "Accuracy as the chain is taken away, uniform training inputs"
    return accuracy_chart(
        series, title, "chain tokens still written before the answer", list(range(7, -1, -1)), standalone=True
    )


def labels_table() -> str:
    """C3 at T = 15: the slow system at the end of its stage, and what was internalized with its labels and with true ones."""
    slow, true = rows("coverage-labels"), rows("coverage-true")
    splits = list(slow[0]["accuracy"]["direct"])
    arms = {
        "full chain, after 3,000 steps": [row["curve"][0]["accuracy"] for row in slow],
        "no chain, slow labels": [row["accuracy"]["direct"] for row in slow],
        "no chain, true labels": [row["accuracy"]["direct"] for row in true],
    }
    lines = []
    for name, members in arms.items():
        cells = []
        for split in splits:
            values = [member[split] for member in members]
            cells.append(f"{mean(values):.3f}<br>{share(*success_rate(values)[:2])}")
        lines.append([name, *cells])
    steps = {name: mean(row["steps"] for row in some) for name, some in (("slow", slow), ("true", true))}
    taken = f"{steps['slow']:,.0f} were taken on average with slow labels, {steps['true']:,.0f} with true ones"
    about = f"At most 16,000 steps; {taken}."
    return f"{table(['system', *splits], lines)}\n\n{about}"


def probes_table() -> str:
    """Where states can be read: constructions and trained models."""
    lines = []
    for row in rows("probes"):
        for stage, found in row["stages"].items():
            own, answer, bare = [], [], []
            columns, targets = len(found["columns"]), len(found["targets"])
            for t in range(2, targets - 1):
                own.append(found["accuracy"][-1][columns - targets + t][t])
                bare.append(found["untrained"][-1][columns - targets + t][t])
                answer.append(found["accuracy"][-1][-1][t])
            words = row["command"].split()
            seed = f", seed {words[words.index('--seed') + 1]}" if "--seed" in words else ""
            name = f"{Path(words[2]).name.rpartition('-')[0] if seed else Path(words[2]).name}{seed}, stage {stage}"
            lines.append([name, *(f"{mean(values):.3f}" for values in (own, bare, answer))])
    return table(["model", "own column", "untrained", "answer's column"], lines)


def lm_throughput() -> str:
    """Throughput of ours relative to a plain Trainer's."""
    (row,) = rows("lm-throughput")
    ratios = sorted(plain / ours for plain, ours in zip(row["seconds"]["plain"], row["seconds"]["ours"], strict=True))
    return f"{row['throughput ratio']:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


def studies_table() -> str:
    """The studies of heads, optimizer and mixture: success without a chain, and what became of the chain."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name in ("heads", "optimizer", "mixture"):
        for row in rows(name):
            settings = row["settings"]
            told = {
                "heads": f"{settings['model'].get('heads', 16)} heads",
                "optimizer": f"beta2 {settings['optimizer'].get('beta2', 0.95)}, "
                + ("reset" if settings["optimizer"].get("reset", True) else "kept"),
                "mixture": arm(row) + (" with hints and replay" if settings.get("removal") else ""),
            }
            cells.setdefault((name, told[name]), []).append(row)
    lines = []
    for (name, cell), members in cells.items():
        direct = [row["accuracy"]["direct"] for row in members]
        wins = [sum(one[split] > SUCCESS for one in direct) for split in ("uniform", OOD)]
        full = sum(row["accuracy"]["cot"]["uniform"] > SUCCESS for row in members)
        left = ", ".join(str(still_shown(row)) for row in members) if name != "mixture" else "-"
        shares = [share(won, len(members)) for won in (*wins, full)]
        lines.append([name, cell, *shares, left, f"{mean(row['steps'] for row in members):,.0f}"])
    head = ["study", "cell", "no chain: uniform", f"no chain: {OOD}", "still writes its chain", "states still shown", "steps"]
    return table(head, lines)


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
        words = row["command"].split()
        run, seed = Path(words[2]).name, words[words.index("--seed") + 1]
        splits = row["splits"]
        worst = max(splits, key=lambda split: split["gap"]["value"])
        sure = row["fast_when_sure"]["chosen"]
        riskiest, point = max(sure.items(), key=lambda item: item[1]["risk"])
        lines.append(
            [
                f"{run.rpartition('-')[0]}, seed {seed}",
                f"{sum(split['within'] for split in splits)} of {len(splits)}",
                f"{worst['fast_risk']['value']:.3f} (`{worst['split']}`)",
                f"{sure['uniform']['coverage']:.3f}, {sure['uniform']['tokens']:.1f} of {row['costs']['tokens']['slow']:.0f}",
                f"{point['risk']:.3f} (`{riskiest}`), {point['tokens']:.1f}",
            ]
        )
    head = ["run", "splits within .05", "fast alone is wrong, at worst", "when sure, uniform: answered at once, tokens"]
    return table([*head, "when sure, at worst: wrong, tokens"], lines)


def constructions_table() -> str:
    """What was verified of the constructed transformers; the counters C_2 .. C_64 are one line for each kind and length."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in rows("constructions"):
        words = row["command"].split()
        steps = int(words[words.index("--steps") + 1]) if "--steps" in words else 25
        name = words[2]
        in_sweep = name[1:].isdigit() and name[0] == "C" and int(name[1:]) <= 64
        swept = in_sweep and (row["verification"]["exhaustive"] or row["verification"]["inputs"] <= 10_000)
        groups.setdefault(("C2 .. C64" if swept else name, row["construction"]["via"], steps), []).append(row)
    lines = []
    for (name, via, steps), members in sorted(groups.items(), key=lambda item: (item[0][0] != "C2 .. C64", item[0])):
        made, checked = [row["construction"] for row in members], [row["verification"] for row in members]
        count = sum(one["positions"] for one in checked)
        cells = [name if len(members) == 1 else f"{name} ({len(members)})", via, str(steps)]
        cells += [span(one[size] for one in made) for size in ("layers", "mlp", "parameters")]
        cells += [f"{count:,}", str(sum(one["errors"] for one in checked)), f"{min(one['gap'] for one in checked):.3f}"]
        lines.append(cells)
    head = ["automaton", "via", "T", "layers", "MLP width", "parameters", "positions checked", "errors", "least logit gap"]
    return table(head, lines)


def span(values: Iterable[int]) -> str:
    """A range of numbers, or the one number."""
    found = sorted(set(values))
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} .. {found[-1]:,}"


def parity_table() -> str:
    """The provable algorithm, and what happens when a part of it is changed."""
    lines = []
    for row in rows("parity"):
        seeds, exact = len(row["exact"]), sum(row["exact"])
        holds = f"{min(row['invariant'])}/{seeds}" if "e2e" not in row["command"] else "-"
        cells = [f"`{row['command']}`", f"{row['samples']:,}", f"{row['bound']:,}", share(exact, seeds), holds]
        cells += [f"{mean(row['accuracy']):.3f}", f"{row['seconds']:.0f}"]
        lines.append(cells)
    return table(["command", "B", "bound", "exact", "invariant, all stages", "accuracy", "seconds, all seeds"], lines)


def tree_table() -> str:
    """The binary-tree chain."""
    lines = [
        [
            f"`{row['command']}`",
            f"{row['samples']:,}",
            share(sum(row["exact"]), len(row["exact"])),
            f"{mean(row['accuracy']):.3f}",
        ]
        for row in rows("tree-parity")
    ]
    return table(["command", "samples", "all factors found", "accuracy of the generated answer"], lines)


def parity_batch_table() -> str:
    """The smallest batch with which at least 29 of 30 seeds are exact, and the exponent fitted over d."""
    least: dict[tuple[str, int], dict[int, int]] = {}
    for row in rows("parity-batch"):
        words = row["command"].split()
        d, k = (
            int(words[words.index(flag) + 1]) if flag in words else default
            for flag, default in (("--bits", 30), ("--support", 10))
        )
        kind = "fixed" if "fixed" in words else "fresh"
        known = least.setdefault((kind, k), {})
        if sum(row["exact"]) >= 29:
            known[d] = min(known.get(d, row["samples"]), row["samples"])
    sizes = sorted({d for known in least.values() for d in known})
    lines = []
    for (kind, k), known in sorted(least.items()):
        points = [(log(d), log(b)) for d, b in known.items()]
        cells = [str(known.get(d, "-")) for d in sizes]
        lines.append([kind, str(k), *cells, f"{linear_regression(*zip(*points, strict=True)).slope:.2f}"])
    return table(["batches", "k", *(f"d = {d}" for d in sizes), "exponent of d"], lines)


def mlp_rows() -> dict[str, dict[str, Any]]:
    """The row of each arm."""
    return {row["arm"]: row for row in rows("mlp-parity")}


def examples(row: dict[str, Any]) -> list[float]:
    """The examples that each seed of a row needs; infinitely many where it does not get there."""
    return [inf if count is None else count for count in row["samples_to_95"]]


def mlp_cells(row: dict[str, Any]) -> tuple[list[str], list[float]]:
    """Final accuracy and seeds that reach .95, as text; and the examples of those that do."""
    reached = [count for count in examples(row) if count < inf]
    final = [curve[-1] for curve in row["accuracy"]]
    return [f"{mean(final):.3f} ({min(final):.3f} to {max(final):.3f})", share(len(reached), len(final))], reached


def mlp_table() -> str:
    """Parity with an MLP: examples that each arm needs."""
    lines, medians = [], {}
    for name, row in mlp_rows().items():
        cells, reached = mlp_cells(row)
        medians[name] = median(examples(row))
        text = f"{medians[name]:,.0f}" if medians[name] < inf else f"more than {row['samples'][-1]:,}"
        between = f" ({min(reached):,} to {max(reached):,})" if reached else ""
        lines.append([name, *cells, text + between])
    most = mlp_rows()["direct"]["samples"][-1]
    direct = medians["direct"]
    ratio = min(direct, most) / medians["curriculum"]
    lines_text = table(["arm", "final accuracy", "reach .95", "median examples to .95 (range of those that do)"], lines)
    return f"{lines_text}\n\nRatio of the medians, direct / curriculum: {'' if direct < inf else 'more than '}{ratio:.2f}."


def mlp_variants_table() -> str:
    """The same with other inputs, data and hints: fewer seeds."""
    lines = []
    for row in rows("mlp-parity-variants"):
        cells, reached = mlp_cells(row)
        lines.append([f"`{row['command']}`", *cells, f"{min(reached):,}" if reached else "-"])
    return table(["command", "final accuracy", "reach .95", "fewest examples to .95"], lines)


def mlp_picture() -> str:
    """docs/mlp-parity.svg: accuracy against examples."""
    curves = {name: Curve(np.array(row["samples"]), np.array(row["accuracy"])) for name, row in mlp_rows().items()}
    return learning_curves(curves, "Noisy parity of 12 of 25 bits, two-layer network")


def shift_table() -> str:
    """Positive distribution shift: examples to an error of .05 on the target distribution, from it and from another one."""
    lines = []
    known = {"mixture": "generalized: hints are extra inputs made with f", "shifted": "strict: nothing of f"}
    by_arm = mlp_rows()

    def cost(counts: list[float], most: int) -> str:
        middle = median(counts)
        return (
            f"{middle:,.0f} ({sum(count < inf for count in counts)}/{len(counts)})"
            if middle < inf
            else f"> {most:,} (0/{len(counts)})"
        )

    direct = by_arm["direct"]
    for name, text in known.items():
        row = by_arm[name]
        lines.append(
            [
                "MLP, parity 12 of 25",
                f"`{name}`",
                text,
                cost(examples(direct), direct["samples"][-1]),
                cost(examples(row), row["samples"][-1]),
            ]
        )
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in rows("coverage-c3"):
        if arm(row) == "e2e":
            runs.setdefault(row["settings"].get("inputs", "uniform"), []).append(row)
    costs = {
        inputs: [row["examples"] if row["success"]["direct"]["uniform"] else inf for row in members]
        for inputs, members in runs.items()
    }
    most = max(row["examples"] for row in runs["uniform"])
    lines.append(
        ["transformer, C_3, T = 15, end to end", "`uniform+dirichlet`", "strict: nothing of f"]
        + [cost(costs[inputs], most) for inputs in ("uniform", "uniform+dirichlet")]
    )
    head = [
        "model and target",
        "training distribution D'",
        "kind, and what D' knows of f",
        "median examples from D (reach it)",
        "from D'",
    ]
    return table(head, lines)


def engine_table() -> str:
    """The engine against a plain Hugging Face loop."""
    row = rows("engine")[-1]
    lines = []
    for name, job in row["jobs"].items():
        share_of_rate = "-" if job["roofline"] is None else f"{job['roofline']:.0%}"
        low, high = job["ratios"]
        ways = [f"{1e3 * job[side]['seconds']:,.0f} ({job[side]['way']})" for side in ("ours", "baseline")]
        lines.append([name, *ways, f"**{job['ratio']:.2f}** ({low:.2f} to {high:.2f})", share_of_rate])
    head = ["", "ours, ms of the work (processes x threads)", "baseline, ms", "ratio (range over repeats)", "of matrix rate"]
    rate = min(job["gflops"] for job in row["jobs"].values()), max(job["gflops"] for job in row["jobs"].values())
    where = f"Commit {row['commit']}, {row['cores_used']} cores, matrix rate {rate[0]:.0f} to {rate[1]:.0f} GFLOP/s."
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


TEXTS: dict[str, Callable[[], str]] = {
    "demo_table": demo_table,
    "fig1_table": fig1_table,
    "labels_table": labels_table,
    "probes_table": probes_table,
    "studies_table": studies_table,
    "lm_table": lm_table,
    "lm_throughput": lm_throughput,
    "coverage_table": coverage_table,
    "cells_table": cells_table,
    "certificates_table": certificates_table,
    "constructions_table": constructions_table,
    "parity_table": parity_table,
    "parity_batch_table": parity_batch_table,
    "tree_table": tree_table,
    "mlp_table": mlp_table,
    "mlp_variants_table": mlp_variants_table,
    "shift_table": shift_table,
    "engine_table": engine_table,
    "growth_table": growth_table,
    "startup_table": startup_table,
}
DOCUMENTS = ("README.md", "docs/theory.md", "docs/performance.md", "docs/reproduction.md", "docs/language-models.md")
PICTURES: dict[str, Callable[[], str]] = {
    "demo.svg": demo_picture,
    "mlp-parity.svg": mlp_picture,
    "fig1.svg": fig1_picture,
}


def updated(text: str) -> str:
    """`text` with every marked part written anew."""
    for name, write in TEXTS.items():
        pattern = re.compile(rf"(<!-- numbers: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = pattern.sub(lambda match, write=write: f"{match[1]}{write()}\n{match[2]}", text)
    return text


def main() -> None:
    """Write, or check, all documents and pictures."""
    contents = {ROOT / name: updated((ROOT / name).read_text()) for name in DOCUMENTS}
    contents |= {ROOT / "docs" / name: draw().rstrip() + "\n" for name, draw in PICTURES.items()}
    stale = [path for path, text in contents.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run python docs/write_numbers.py" if stale else 0)
    for path in stale:
        path.write_text(contents[path])


if __name__ == "__main__":
    main()
