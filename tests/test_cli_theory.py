import json
import shlex
from pathlib import Path

import pytest

from internalize import cli

COMMANDS = [
    "parity --bits 8 --support 3 --seeds 2 --derivative right --no-rounding",
    "tree-parity --bits 8 --support 4 --seeds 2 --batch 4000",
    "mlp-parity --bits 8 --support 3 --steps 20 --seeds 2 --arms mixture --width 16",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_row_holds_the_command_that_repeats_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main([*command.split(), "--json"])
    row = json.loads(capsys.readouterr().out)
    assert row["commit"] is None or len(row["commit"]) >= 12
    words = shlex.split(row["command"])
    assert words[0] == "internalize"
    assert set(words[1:]) == set(command.split())
    cli.main([*words[1:], "--json"])
    again = json.loads(capsys.readouterr().out)
    assert again["accuracy"] == row["accuracy"]


def test_parity_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["parity", "--bits", "10", "--support", "3", "--seeds", "2"])
    told = capsys.readouterr().out
    assert "the theorem's guarantee does not hold" in told.replace("\n", " ")
    assert "exactly: 2/2 [0.34, 1.00] seeds" in told
    assert "fresh" in told
    cli.main(["parity", "--bits", "4", "--support", "2", "--seeds", "2", "--batch", "500"])
    assert "Note" not in capsys.readouterr().out
    cli.main(["tree-parity", "--bits", "8", "--support", "4", "--seeds", "2"])
    assert "two factors: 2/2 [0.34, 1.00] seeds" in capsys.readouterr().out


def test_construct_for_people_and_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["construct", "C5", "--steps", "6", "--via", "count", "--out", str(tmp_path)]
    cli.main(command)
    told = capsys.readouterr().out
    assert "Exact on 15,625 inputs (all) at all 93,750 positions" in told
    cli.main([*command, "--json"])
    row = json.loads(capsys.readouterr().out)
    assert row["verification"]["errors"] == 0
    assert row["command"] == "internalize construct C5 --steps 6 --via count"
    cli.main([*command, "--json", "--no-write"])
    only = json.loads(capsys.readouterr().out)
    assert only["directory"] is None
    assert (only["verification"], only["construction"]) == (row["verification"], row["construction"])
    cli.main(["show", row["directory"]])
    assert "1.000" in capsys.readouterr().out


def test_mlp_parity_for_people_draws_its_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "curves.svg"
    cli.main(
        [
            "mlp-parity",
            "--bits",
            "8",
            "--support",
            "3",
            "--steps",
            "400",
            "--seeds",
            "2",
            "--width",
            "32",
            "--chart",
            str(chart),
        ]
    )
    told = capsys.readouterr().out
    for arm in ("direct", "curriculum", "mixture", "shifted"):
        assert arm in told
        assert f">{arm}</text>" in chart.read_text()
    assert "more than" in told
