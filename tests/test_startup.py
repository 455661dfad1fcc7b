"""What is imported when, in a process of its own."""

import subprocess
import sys

import pytest

from internalize import cli

HEAVY = ("torch", "scipy", "polars", "jinja2", "rich", "transformers", "ray", "safetensors")


def imported(program: str) -> set[str]:
    """The modules that a program leaves imported; it may end with exit code 0."""
    told = f"try:\n    {program}\nexcept SystemExit as end:\n    assert not end.code\n"
    told += "import sys; sys.stderr.write(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stderr.split())


def heavy(modules: set[str]) -> set[str]:
    return modules.intersection(HEAVY)


@pytest.mark.parametrize("line", ["--help", "--version", "lm --help", "study --help"])
def test_a_list_of_commands_imports_none_of_them(line: str) -> None:
    modules = imported(f"from internalize.cli import main; main({line.split()!r})")
    assert not heavy(modules)
    ours = {name for name in modules if name.startswith("internalize")}
    assert ours == {"internalize", "internalize.cli", "internalize.errors", "internalize.lazy"}


def test_the_flags_of_run_need_its_configuration_alone() -> None:
    modules = imported("from internalize.cli import main; main(['run', '--help'])")
    assert not heavy(modules)
    assert "internalize.config" in modules
    assert not modules & {"internalize.api", "internalize.learners", "internalize.evaluation", "internalize.report"}


def test_a_training_process_imports_what_training_needs() -> None:
    modules = imported("import internalize.launch.worker")
    assert {"torch", "internalize.learners.sandbox"} <= modules
    assert not modules & {"polars", "jinja2", "rich", "tyro", "transformers", "ray", "scipy.stats", "internalize.report"}


def test_every_name_of_the_package_can_be_had() -> None:
    imported("import internalize; [getattr(internalize, name) for name in internalize.__all__]")
    with pytest.raises(SystemExit):
        cli.main(["nonsense"])


def test_every_command_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    for of, words in ((cli.COMMANDS, []), *((of, [group]) for group, of in cli.GROUPS.items())):
        with pytest.raises(SystemExit) as end:
            cli.main([*words, "--help"])
        assert end.value.code == 0
        said = " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
        for name, place in of.items():
            first = (cli.load(place).__doc__ or "").splitlines()[0]
            assert name in said
            assert first[:40] in said
