import copy
import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import internalize
from internalize import Reply, Run, RunConfig, SequenceTask, UserError, cli
from internalize.api import configure
from internalize.curricula import EndToEnd
from internalize.engine.course import Course
from internalize.evaluation import Cascade, MajorityVote, ModelProcedure, Rule, certify, worst_distribution
from internalize.evaluation.certificate import draw
from internalize.evaluation.procedures import reply, true_answers
from internalize.evaluation.selective import NEVER, calibrate, curve
from internalize.evaluation.statistics import clopper_pearson, paired_difference
from internalize.learners.sandbox import SandboxLearner
from internalize.models import ModelConfig, Transformer
from internalize.rendering import Vocabulary
from internalize.tasks import make
from internalize.tasks.base import Ints
from internalize.theory import construct
from tiny import TINY

C3 = make("C3", 8)


def never(inputs: Ints) -> Any:
    return np.zeros(len(inputs), bool)


@dataclass(frozen=True)
class Fake:
    """Right except where `wrong` says otherwise."""

    wrong: Any = never
    tokens: int = 1
    kind: str = "fake"
    name: str = "fake"

    @property
    def hypothesis_class(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def __call__(self, inputs: Ints, rng: np.random.Generator) -> Reply:
        wrong = self.wrong(inputs)
        answers = np.where(wrong[:, None], (true_answers(C3, inputs) + 1) % 3, true_answers(C3, inputs))
        return reply(answers, self.tokens, self.tokens, self.tokens, np.where(wrong, 0.4, 0.9))


def mostly_ones(inputs: Ints) -> Any:
    return (inputs == 1).sum(axis=1) >= 6


SLOW = Fake(tokens=8, name="slow")


def test_equal_answers_on_all_inputs_are_exact() -> None:
    certificate = certify(SLOW, Fake(), C3, draw(C3, ("uniform",), 200))
    assert certificate.internalized
    assert certificate.verdict == "exact"
    assert certificate.splits[0].n == 3**8
    assert certificate.splits[0].agreement == certificate.splits[0].agreement.__class__(1.0, 1.0, 1.0)
    assert certificate.costs["tokens"].ratio == 8
    assert "on every one of 6,561 inputs" in certificate.sentence
    assert not certificate.examples


def test_a_loss_on_one_distribution_is_named_and_shown() -> None:
    certificate = certify(SLOW, Fake(mostly_ones), C3, draw(C3, ("uniform", "biased:1:0.8"), 2000), exhaustive=False)
    within = {split.split: split.within for split in certificate.splits}
    assert within == {"uniform": True, "biased:1:0.8": False}
    assert certificate.verdict == "in part"
    assert not certificate.internalized
    bad = certificate.splits[1]
    assert bad.gap.value == pytest.approx(bad.fast_risk.value - bad.slow_risk.value)
    assert bad.gap.low < bad.gap.value < bad.gap.high
    assert bad.slow_risk.value == 0
    assert {example.split for example in certificate.examples} == {"uniform", "biased:1:0.8"}
    for example in certificate.examples:
        assert example.slow == example.truth != example.fast
        assert sum(word == "1" for word in example.input) >= 6
    assert "biased:1:0.8" in certificate.sentence


def test_another_class_or_no_less_time_is_no_internalization() -> None:
    splits = draw(C3, ("uniform",), 100)
    other = certify(Fake(tokens=8, kind="other"), Fake(), C3, splits)
    assert other.verdict == "exact"
    assert not other.internalized
    assert "different hypothesis classes (kind: other and fake)" in other.sentence
    same = certify(Fake(), Fake(), C3, splits)
    assert not same.internalized
    assert "no faster" in same.sentence


def test_a_construction_is_exact_and_a_damaged_one_is_found_out() -> None:
    task = make("C2", 10)
    model = construct(task, "count").model
    view = EndToEnd().direct(task.units)
    exact = ModelProcedure("construction", model, task, view)
    against_rule = certify(Rule(task), exact, task, draw(task, ("uniform",), 100))
    assert against_rule.verdict == "exact"
    damaged = copy.deepcopy(model)
    with torch.no_grad():
        damaged.layers[0].mlp_out.weight[:, 3] += 0.3  # type: ignore[union-attr, operator]
    found = certify(exact, ModelProcedure("damaged", damaged, task, view), task, draw(task, ("uniform", "constant"), 500))
    assert found.splits[0].exhaustive
    assert found.splits[0].agreement.value < 1
    assert found.verdict != "exact"
    wrong = found.examples[0]
    asked = task.encode(" ".join(wrong.input))
    assert wrong.truth == (task.tokens[int(asked.row(0).answer[0])],) == wrong.slow != wrong.fast


def test_the_intervals_are_simultaneous() -> None:
    one = certify(SLOW, Fake(mostly_ones), C3, draw(C3, ("uniform",), 500), exhaustive=False)
    many = certify(SLOW, Fake(mostly_ones), C3, draw(C3, ("uniform", *C3.ood()), 500), exhaustive=False)
    assert many.splits[0].gap.value == one.splits[0].gap.value
    assert many.splits[0].gap.high > one.splits[0].gap.high
    with pytest.raises(UserError, match=r"epsilon is 0; it must be above 0"):
        certify(SLOW, SLOW, C3, draw(C3, ("uniform",), 5), epsilon=0)
    with pytest.raises(UserError, match="nothing to certify on"):
        certify(SLOW, SLOW, C3, {})


@given(st.integers(0, 40), st.integers(1, 40), st.sampled_from([0.9, 0.95, 0.999]))
def test_clopper_pearson_is_scipys(successes: int, more: int, confidence: float) -> None:
    trials = successes + more
    known = binomtest(successes, trials).proportion_ci(confidence, "exact")
    assert clopper_pearson(successes, trials, confidence) == pytest.approx((known.low, known.high), abs=1e-9)


def test_the_paired_interval_covers() -> None:
    rng, covered = np.random.default_rng(0), 0
    for _ in range(400):
        first, second, _ = rng.multinomial(60, [0.1, 0.03, 0.87])
        low, high = paired_difference(int(first), int(second), 60)
        covered += low <= 0.07 <= high
    assert covered >= 0.95 * 400


def untrained() -> ModelProcedure:
    vocabulary = Vocabulary.of(C3)
    model = Transformer(
        ModelConfig(width=16, heads=4, mlp=16), vocabulary.size, C3.longest + 2, torch.Generator().manual_seed(1)
    )
    with torch.no_grad():
        model.unembedding.weight *= 40  # so that it prefers some tokens
    return ModelProcedure("model", model.eval(), C3, EndToEnd().full(C3.units))


def test_a_vote_is_the_most_frequent_answer_and_costs_all_its_chains() -> None:
    voter = replace(untrained(), temperature=1.0)
    inputs = C3.sample_inputs("uniform", 50, np.random.default_rng(0), "test")
    vote = MajorityVote(voter, 7)(inputs, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    ballots = np.stack([voter(inputs, rng).answers[:, 0] for _ in range(7)])
    for row in range(50):
        values, counts = np.unique(ballots[:, row], return_counts=True)
        assert vote.answers[row, 0] == values[counts.argmax()]
        assert vote.confidence[row] == counts.max() / 7
    assert (vote.tokens == 7 * 8).all()
    assert len(np.unique(ballots, axis=0)) > 1
    with pytest.raises(UserError, match="temperature above 0"):
        MajorityVote(untrained(), 3)


def test_a_cascade_asks_the_slow_system_where_it_is_unsure() -> None:
    inputs = C3.sample_inputs("biased:1:0.8", 400, np.random.default_rng(0), "test")
    unsure = mostly_ones(inputs)
    answered = Cascade(Fake(mostly_ones), SLOW, 0.5)(inputs, np.random.default_rng(0))
    assert (answered.answers == true_answers(C3, inputs)).all()
    assert (answered.tokens == np.where(unsure, 9, 1)).all()
    assert 0 < unsure.mean() < 1


def test_the_threshold_keeps_the_risk_it_promises() -> None:
    def often(inputs: Ints) -> Any:
        return (inputs == 1).sum(axis=1) >= 4

    inputs = C3.sample_inputs("uniform", 1000, np.random.default_rng(0), "validation")
    threshold, coverage = calibrate(Fake(often), C3, inputs, 0.02)
    assert 0.4 < threshold <= 0.9
    assert coverage == pytest.approx(1 - often(inputs).mean())
    assert calibrate(Fake(lambda rows: np.ones(len(rows), bool)), C3, inputs, 0.02) == (NEVER, 0.0)
    points = curve(Fake(often), SLOW, C3, inputs)
    assert [points[0].coverage, points[-1].coverage] == [1, 0]
    assert points[0].risk == pytest.approx(often(inputs).mean())
    assert points[-1].risk == 0
    assert points[-1].tokens == 9


def test_the_search_finds_where_the_fast_system_fails() -> None:
    name, rate = worst_distribution(SLOW, Fake(mostly_ones), C3, samples=128, rounds=3)
    frequencies = [float(value) for value in name.split(":")[2:]]
    assert max(frequencies) == frequencies[1] > 0.5
    certificate = certify(SLOW, Fake(mostly_ones), C3, draw(C3, ("uniform", name), 1000), exhaustive=False)
    assert certificate.splits[1].fast_risk.value > 5 * certificate.splits[0].fast_risk.value
    assert rate > 0.15


@pytest.mark.parametrize("task", [C3, make("C2", 10), make("S3", 6), make("C17", 6), make("parity:3", 12), make("multiply", 3)])
def test_every_split_of_the_battery_can_be_drawn(task: Any) -> None:
    assert len(task.battery()) > 8
    for name, inputs in draw(task, task.battery(), 20).items():
        assert len(inputs) == 20, name


def test_a_run_ends_with_a_certificate_and_can_be_asked_for_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = internalize.fit(**TINY, out=tmp_path, quiet=True)
    made = run.certificate(0)
    assert made is not None
    assert made["verdict"] in ("no", "in part", "within", "exact")
    assert run.results[0]["certificate"]["verdict"] == made["verdict"]
    assert made["costs"]["passes"]["slow"] == 6
    assert made["sentence"].split(":")[0] in run.report().read_text()
    out = tmp_path / "certificate.json"
    few = ["--samples", "20", "--splits", "uniform", "sticky", "--json"]
    cli.main(["certify", str(run.path), "--out", str(out), *few])
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(out.read_text())
    repeat = shlex.split(told["command"])
    assert repeat[:3] == ["internalize", "certify", str(run.path)]
    assert sorted(repeat[3:]) == sorted(few[:-1])
    assert [split["split"] for split in told["splits"]] == ["every input", "uniform", "sticky"]
    for slow, fast in ((f"{run.path}:vote:3", None), ("rule", f"{run.path}:chain"), (f"{run.path}:5", f"{run.path}:0")):
        cli.main(["certify", slow, *([fast] if fast else []), *few])
        assert json.loads(capsys.readouterr().out)["splits"]
    cli.main(["certify", str(run.path), *few, "--max-risk", "0.3"])
    sure = json.loads(capsys.readouterr().out)["fast_when_sure"]
    assert set(sure["chosen"]) == {"uniform", "sticky"}
    assert sure["chosen"]["uniform"]["threshold"] == sure["threshold"]
    cli.main(["certify", str(run.path), *few[:-1], "--max-risk", "0.3"])
    assert "answered at once" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["certify", str(run.path), *few, "--max-risk", "1.5"])
    assert "the largest risk is 1.5" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["certify", str(run.path), "--ood-search"])
    assert "C2 has 64 inputs, of which too few are held out to search among" in capsys.readouterr().err
    longer = internalize.fit(**{**TINY, "steps": 12}, out=tmp_path, quiet=True)
    cli.main(["certify", str(longer.path), "--samples", "20", "--splits", "uniform", "--ood-search"])
    assert "markov:" in capsys.readouterr().out


def test_a_procedure_of_ones_own(tmp_path: Path) -> None:
    run = internalize.fit(**TINY, out=tmp_path, quiet=True)
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import numpy as np\nfrom internalize.evaluation.procedures import reply\n"
        "class Zero:\n    name = 'zero'\n    hypothesis_class = {'kind': 'constant'}\n"
        "    def __call__(self, inputs, rng):\n        return reply(np.zeros((len(inputs), 1), int), 1, 1, 1)\n"
        "class Nothing:\n    pass\n"
    )
    certificate = internalize.certify(f"{mine}:Zero", run.path, splits=["uniform"], samples=50)
    assert certificate.slow == "zero"
    assert certificate.splits[0].slow_risk.value == pytest.approx(0.5)
    for slow, fast, message in (
        (f"{mine}:Nothing", run.path, "is not a procedure"),
        (f"{mine}:Missing", run.path, 'there is no class "Missing"'),
        ("rule", "rule", "neither system is a run's"),
        (f"{run.path}:7", None, "no model here was trained to write 7 chain units"),
        (f"{run.path}:middle", None, 'no system is called "middle"'),
        (f"{run.path}:vote:many", None, "give the number of chains"),
        (f"{run.path}:vote:3:0", None, "the temperature must be above 0"),
        (f"{run.path}:vote:0", None, "needs at least 1 chain"),
        (tmp_path / "nowhere", None, "not a run's directory"),
    ):
        with pytest.raises(UserError, match=message):
            internalize.certify(slow, fast, samples=10)
    with pytest.raises(UserError, match="samples is 0"):
        internalize.certify(run.path, samples=0)
    other = internalize.fit(**{**TINY, "steps": 5}, out=tmp_path, quiet=True)
    with pytest.raises(UserError, match="certify runs of one task"):
        internalize.certify(run.path, other.path)
    cot = internalize.fit(**{**TINY, "curriculum": "cot"}, out=tmp_path, quiet=True)
    assert cot.certificate(0) is None
    with pytest.raises(UserError, match='no stage of "cot" trained a model that writes no chain'):
        internalize.certify(cot.path, samples=10)


def test_fresh_inputs_are_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run was certified on at its end is not asked again, and each draw of the command asks other inputs."""
    asked: dict[str, set[tuple[int, ...]]] = {}
    name = "run"

    def seen(self: Any, distribution: str, count: int, rng: Any, part: Any, real: Any = SequenceTask.sample_inputs) -> Any:
        inputs = real(self, distribution, count, rng, part)
        if part == "test" and distribution == "uniform":
            asked[name] = set(map(tuple, inputs.tolist()))
        return inputs

    config = configure(RunConfig(), **{**TINY, "steps": 24, "evaluation": {**TINY["evaluation"], "certificate": 50}})
    directory = tmp_path / config.name() / "seed-0"
    monkeypatch.setattr(SequenceTask, "sample_inputs", seen)
    Run(directory.parent, config).create([0])
    Course(SandboxLearner(config, 0, directory)).run()
    for name in ("--draw 0", "--draw 1"):
        cli.main(["certify", str(directory.parent), "--samples", "50", "--splits", "uniform", *name.split()])
    assert {len(inputs) for inputs in asked.values()} == {50}
    assert len(set.union(*asked.values())) == 150
