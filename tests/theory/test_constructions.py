import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import internalize
from internalize import UserError
from internalize.checkpoint import load_model
from internalize.tasks import Semiautomaton, Simulation, make
from internalize.theory import VIAS, Construction, verify
from internalize.theory import construct as exact
from internalize.theory.constructions import doublings, prime_powers


def counter(n: int, steps: int) -> Simulation:
    task = make(f"C{n}", steps)
    assert isinstance(task, Simulation)
    return task


@settings(max_examples=30)
@given(n=st.integers(2, 64), steps=st.integers(1, 128), via=st.sampled_from(["crt", "scalar", "count"]))
def test_counters_are_exact(n: int, steps: int, via: Any) -> None:
    task = counter(n, steps)
    checked = verify(exact(task, via).model, task, inputs=60)
    assert checked.errors == 0
    assert checked.gap >= 1
    assert checked.exhaustive == (n**steps <= 2**20)
    assert checked.counterexample is None


@settings(max_examples=25)
@given(data=st.data(), states=st.integers(1, 5), symbols=st.integers(1, 3), steps=st.integers(1, 6))
def test_any_automaton_is_exact_via_scan(data: st.DataObject, states: int, symbols: int, steps: int) -> None:
    entries = data.draw(st.lists(st.integers(0, states - 1), min_size=states * symbols, max_size=states * symbols))
    start = data.draw(st.integers(0, states - 1))
    names = tuple("abcde"[:states]), tuple("xyz"[:symbols])
    task = Simulation(Semiautomaton("random", *names, np.array(entries).reshape(states, symbols), start), steps)
    checked = verify(exact(task, "scan").model, task)
    assert checked.exhaustive
    assert (checked.errors, checked.inputs) == (0, symbols**steps)


def test_a_long_horizon_of_a_group_whose_order_matters() -> None:
    task = make("S3", 40)
    assert isinstance(task, Simulation)
    assert verify(exact(task, "scan").model, task, inputs=200).errors == 0


@pytest.mark.parametrize("n", [210, 2310])
def test_residues_of_a_large_smooth_order(n: int) -> None:
    task = counter(n, 20)
    made = exact(task, "crt")
    assert verify(made.model, task, inputs=100).errors == 0
    assert made.model.config.mlp == 3 * sum(prime_powers(n))


def test_sizes_are_those_of_the_statements() -> None:
    def shape(made: Construction) -> tuple[int, int]:
        return made.model.config.layers, made.model.config.mlp

    assert shape(exact(counter(12, 25), "crt")) == (5, 3 * (4 + 3))
    assert shape(exact(counter(61, 25), "scalar")) == (5, 2)
    assert shape(exact(counter(5, 15), "count")) == (1, 2 * (15 * 4 // 5))
    assert [doublings(steps) for steps in (1, 2, 3, 4, 5, 128, 129)] == [1, 1, 2, 2, 3, 7, 8]


@given(n=st.integers(1, 5000))
def test_prime_powers_multiply_to_n(n: int) -> None:
    powers = prime_powers(n)
    assert int(np.prod(powers)) == n
    assert all(np.gcd(a, b) == 1 for i, a in enumerate(powers) for b in powers[:i])


@pytest.mark.parametrize("via", VIAS)
def test_a_damaged_model_is_caught_with_its_counterexample(via: Any) -> None:
    task = counter(6, 7)
    model = exact(task, via).model
    with torch.no_grad():
        symbol = model.embedding.weight[4]
        symbol[symbol.nonzero()[0]] += 1  # symbol "1" is read as another
    checked = verify(model, task)
    assert checked.errors > 0
    assert checked.gap <= 0
    wrong = checked.counterexample
    assert wrong is not None
    assert "1" in wrong
    # The first wrong prefix: all before it are right.
    inputs = np.array([[int(symbol) for symbol in wrong]])
    shown = torch.tensor([[1, *(3 + inputs[0]).tolist()]])
    logits = model(shown, torch.arange(shown.shape[1])[None], first=1)
    right = logits[0].argmax(1).numpy() - 3 == task.automaton.run(inputs)[0]
    assert right[:-1].all()
    assert not right[-1]


def test_a_tie_is_an_error() -> None:
    task = counter(3, 3)
    model = exact(task, "scalar").model
    with torch.no_grad():
        model.unembedding.weight.zero_()
    assert verify(model, task).errors == 27 * 3


@pytest.mark.parametrize(
    ("task", "steps", "via", "message"),
    [
        ("S3", 5, "crt", "is not a counter C_n with the symbols 0..n-1"),
        ("C4:gen", 5, "scalar", "is not a counter"),
        ("C3", 2000, "scalar", "tells 1024 columns apart"),
        ("C3000", 5, "scalar", "not exact in float32; take n <= 2896"),
        ("C64", 500, "count", "Take at most 130 steps"),
        ("C900", 8, "scan", "parameters; at most"),
    ],
)
def test_what_is_outside_of_exactness_is_refused(task: str, steps: int, via: Any, message: str) -> None:
    problem = make(task, steps)
    assert isinstance(problem, Simulation)
    with pytest.raises(UserError, match=message):
        exact(problem, via)


def test_a_sampled_start_is_refused() -> None:
    problem = make("C3", 5, sampled_start=True)
    assert isinstance(problem, Simulation)
    with pytest.raises(UserError, match="fixed start state"):
        exact(problem, "count")
    with pytest.raises(UserError, match='via "magic" is unknown'):
        exact(counter(3, 5), "magic")  # type: ignore[arg-type]


def test_a_construction_is_a_run(tmp_path: Path) -> None:
    run = internalize.construct("C6", steps=9, via="crt", inputs=500, out=tmp_path)
    result = run.results[0]
    assert all(value == 1.0 for value in result["accuracy"]["direct"].values())
    assert result["verification"]["errors"] == 0
    (row,) = run.rows()
    assert row["command"] == "internalize construct C6 --steps 9 --via crt --inputs 500"
    answer = run.answer("5 5 5 0 0 0 1 2 3")["fast"]
    assert (answer.answer, answer.right) == (("3",), True)
    assert "internalize construct C6" in (run.path / "report.html").read_text()
    again = internalize.load(run.path)
    model = load_model(run.seed_directory(0) / "stages" / "0.safetensors")
    assert verify(model, counter(6, 9), inputs=100).errors == 0
    assert again.results == run.results


def test_an_automaton_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "lamp.json"
    delta = {"off": {"press": "on", "wait": "off"}, "on": {"press": "off", "wait": "on"}}
    file.write_text(json.dumps({"states": ["off", "on"], "symbols": ["press", "wait"], "start": "off", "delta": delta}))
    run = internalize.construct(str(file), steps=8, out=tmp_path)
    assert run.results[0]["verification"]["exhaustive"]
    with pytest.raises(UserError, match="is not a semiautomaton"):
        internalize.construct("parity:3", steps=8, out=tmp_path)
