import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internalize import RunConfig
from internalize.errors import UserError
from internalize.tasks.automaton_file import canonical, parse_automaton, read_automaton

LAMP = """{
  "name": "lamp",
  "states": ["off", "on"],
  "symbols": ["press", "on"],
  "delta": {
    "off": {"press": "on", "on": "off"},
    "on": {"press": "off",
           "on": "on"}
  },
  "start": "on"
}"""


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "lamp.json").write_text(LAMP)
    automaton = parse_automaton(read_automaton(tmp_path / "lamp.json"))
    assert (automaton.name, automaton.states, automaton.symbols, automaton.start) == ("lamp", ("off", "on"), ("press", "on"), 1)
    assert automaton.delta.tolist() == [[1, 0], [0, 1]]


def test_a_configuration_holds_the_automaton_itself(tmp_path: Path) -> None:
    path = tmp_path / "lamp.json"
    path.write_text(LAMP)
    config = RunConfig(task=str(path), steps=8)
    path.unlink()
    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert config.name().startswith("lamp-T8-left-uniform-")
    path.write_text(LAMP.replace('"on": "off"}', '"on": "on"}'))
    assert RunConfig(task=str(path), steps=8).hash() != config.hash()


names = st.text("abcXYZ019_.-()", min_size=1, max_size=5)


@given(st.data())
def test_canonical_text_is_read_back(data: st.DataObject) -> None:
    states = data.draw(st.lists(names, min_size=1, max_size=4, unique=True))
    symbols = data.draw(st.lists(names, min_size=2, max_size=4, unique=True))
    rows = {state: {symbol: data.draw(st.sampled_from(states)) for symbol in symbols} for state in states}
    text = json.dumps({"states": states, "symbols": symbols, "delta": rows, "start": data.draw(st.sampled_from(states))})
    automaton = parse_automaton(text)
    again = parse_automaton(canonical(automaton))
    assert (again.states, again.symbols, again.start) == (automaton.states, automaton.symbols, automaton.start)
    assert (again.delta == automaton.delta).all()
    assert canonical(again) == canonical(automaton)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"press": "on", ', "", r'line 6: the transition of state "off" under symbol "press" is missing'),
        ('"off": {"press": "on", "on": "off"},', "", r'line 5: the transition of state "off" under symbol "press" is missing'),
        ('"press": "off"', '"press": "dim"', r'line 7: delta\["on"\]\["press"\] is "dim", which is not one of the states'),
        ('"on": "on"}', '"on": 1}', r'line 8: delta\["on"\]\["on"\] is 1, which is not one of the states'),
        ('"press": "off"', '"push": "off"', r'line 7: delta\["on"\] has "push", which is not one of the symbols'),
        ('"on": {"press"', '"dim": {"press"', r'line 7: delta has a row for "dim"'),
        ('{"press": "on", "on": "off"}', "[1, 0]", r'line 6: delta\["off"\] must be an object'),
        (
            '"press": "on", "on": "off"',
            '"press": "on", "press": "off", "on": "on"',
            r'line 6: delta\["off"\] has "press" twice',
        ),
        ('"on": {"press": "off",', '"off": {"press": "off",', r'line 6: delta has "off" twice'),
        ('["off", "on"]', '["off", "off"]', r'line 3: states has "off" twice'),
        ('["off", "on"]', '["off", 3]', r"line 3: states has 3; a name is"),
        ('["off", "on"]', '["off", ""]', r'line 3: states has ""; a name is'),
        ('["off", "on"]', '["off", "a b"]', r'line 3: states has "a b"; a name is'),
        ('["off", "on"]', "[]", r"line 3: states must be a list of at least 1 name"),
        ('["off", "on"]', '"off on"', r"line 3: states must be a list"),
        ('["press", "on"]', '["press"]', r"line 4: symbols must be a list of at least 2 names"),
        ('"start": "on"', '"start": "dim"', r'line 10: start is "dim", which is not one of the states'),
        ('"start": "on"', '"start": null', r"line 10: start is null"),
        (',\n  "start": "on"', "", r'lamp.json: "start" is missing'),
        ('"start": "on"', '"start": "on", "colour": 1', r'line 10: "colour" is not a field'),
        ('"start": "on"', '"start": "on", "start": "off"', r'line 10: the file has "start" twice'),
        ('"name": "lamp"', '"name": "../lamp"', r"line 2: name must be"),
        ('"name": "lamp"', '"name": 7', r"line 2: name must be"),
        ('"name": "lamp",', '"name": "lamp"', r"line 3: not valid JSON"),
        (LAMP, "", r"line 1: not valid JSON"),
        (LAMP, "[]", r"must hold one JSON object"),
        (LAMP, "[" * 100_000, r"nested too deeply|not valid JSON"),
        (LAMP, LAMP[:100], r"not valid JSON"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in LAMP
    (tmp_path / "lamp.json").write_text(LAMP.replace(old, new, 1))
    with pytest.raises(UserError, match=message):
        read_automaton(tmp_path / "lamp.json")


def test_tables_that_are_too_large() -> None:
    many = [str(i) for i in range(1500)]
    with pytest.raises(UserError, match=r"the table would have 2,250,000 entries; at most 1,000,000"):
        parse_automaton(json.dumps({"states": many, "symbols": many, "delta": {}, "start": "0"}))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"lamp.json: cannot be read \(No such file"):
        read_automaton(tmp_path / "lamp.json")
    with pytest.raises(UserError, match=r"cannot be read \(Is a directory"):
        read_automaton(tmp_path)
    (tmp_path / "lamp.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(UserError, match="not UTF-8"):
        read_automaton(tmp_path / "lamp.json")


FIELDS = ["states", "symbols", "delta", "start", "name"]
NAMES = ["off", "on", "press"]
json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES + FIELDS), inner, max_size=5),
    max_leaves=12,
)


@given(json_values | st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_whatever_json_is_an_automaton_or_one_sentence(values: Any) -> None:
    try:
        automaton = parse_automaton(json.dumps(values))
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert ((automaton.delta >= 0) & (automaton.delta < len(automaton.states))).all()


@given(at=st.integers(0, len(LAMP)), cut=st.integers(0, 9), put=st.text(max_size=5) | st.sampled_from(['"', "}", "{", ","]))
def test_a_damaged_file_is_an_automaton_or_one_sentence(at: int, cut: int, put: str) -> None:
    try:
        assert isinstance(parse_automaton(LAMP[:at] + put + LAMP[at + cut :]).delta, np.ndarray)
    except UserError as error:
        assert "\n" not in str(error)
