import json
from pathlib import Path

import numpy as np
import pytest
import torch

from internalize import api, construct
from internalize.cli import main
from internalize.curricula import RemovalConfig, make
from internalize.errors import UserError
from internalize.evaluation.probes import Probes, along, probe, residuals
from internalize.models import ModelConfig, Transformer
from internalize.rendering import Vocabulary
from internalize.seeding import torch_stream
from internalize.tasks import Task
from internalize.tasks import make as make_task
from tiny import TINY


def untrained(task: Task, config: ModelConfig) -> Transformer:
    return Transformer(config, Vocabulary.of(task).size, task.longest + 2, torch_stream(0, "weights")).eval()


@pytest.mark.parametrize("positions", ["absolute", "rotary", "none"])
def test_the_last_residual_gives_the_logits(positions: str) -> None:
    task = make_task("C3", 5)
    model = untrained(task, ModelConfig(layers=2, width=16, heads=4, mlp=16, positions=positions))  # type: ignore[arg-type]
    tokens, places = torch.randint(1, 9, (7, 6)), torch.arange(6).expand(7, 6)
    found = residuals(model, tokens, places)
    assert found.shape == (3, 7, 6, 16)
    assert torch.allclose(model.unembedding(model.norm(found[-1])), model(tokens, places), atol=1e-6)


def counting(task: Task) -> Probes:
    from internalize.theory import construct as exact

    model = exact(task, "count").model  # type: ignore[arg-type]
    return probe(model, untrained(task, model.config), task, make("e2e").direct(task.units), samples=400)


def test_a_construction_that_counts_has_each_state_at_its_column() -> None:
    task = make_task("C3", 6)
    found = counting(task)
    assert found.columns == ("BOS", "s_1", "s_2", "s_3", "s_4", "s_5", "s_6")
    assert found.targets == ("q_1", "q_2", "q_3", "q_4", "q_5", "q_6")
    assert found.answer == 1
    own = found.own
    assert own["accuracy"] > 0.95
    assert own["untrained"] < 0.75
    assert own["shuffled"] < 0.45
    assert "the state that each symbol leads to can be read at that symbol's column" in found.sentence
    assert found.accuracy[0][1][0] == 1.0  # q_1 is the first symbol, which its embedding tells
    assert abs(found.accuracy[0][0][5] - found.chance[5]) < 0.05  # BOS knows nothing


def test_patching_restores_where_the_changed_symbol_goes_through() -> None:
    found = counting(make_task("C3", 6))
    assert found.restored is not None
    embedding, last = np.array(found.restored[0]), np.array(found.restored[-1])
    assert embedding[0] == 0  # BOS is the same in both
    assert embedding[1:].sum() == pytest.approx(1)  # one column holds the changed symbol
    assert last[-1] == 1  # the answer is read there
    assert (last[:-1] == 0).all()


def test_attention_sums_to_one() -> None:
    task = make_task("C3", 6)
    model = untrained(task, ModelConfig(layers=2, width=16, heads=4, mlp=16))
    view = make("left", RemovalConfig(hint=True)).target(task.units, 2)
    found = probe(model, model, task, view, samples=40)
    assert found.columns[-1] == "hint"
    assert [found.columns[found.place(t)] for t in (0, 5)] == ["s_1", "s_6"]
    attention = np.array(found.attention)
    assert attention.shape == (2, 4, 8)
    assert np.allclose(attention.sum(-1), 1, atol=1e-5)


def test_stages_are_spread() -> None:
    assert along(15, 4) == [0, 5, 9, 14]
    assert along(2, 4) == [0, 1]
    assert along(1, 1) == [0]


def test_probing_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = api.fit(out=tmp_path, quiet=True, processes=1, **TINY)
    main(["probe", str(run.path), "--samples", "40", "--stages", "2", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert set(said["stages"]) == {"0", "5"}
    assert run.probes(0) == {"stages": said["stages"]}
    assert said["command"] == f"internalize probe {run.path} --stages 2 --samples 40"
    page = (run.path / "report.html").read_text()
    assert "What the models of seed 0 know where" in page
    assert page.count('class="cell"') > 100
    main(["probe", str(run.path), "--samples", "40", "--stages", "1"])
    assert "stage 5: accuracy of linear probes" in capsys.readouterr().out
    for words, message in (
        (["--samples", "5"], "at least 20"),
        (["--stages", "0"], "stages is 0"),
        (["--seed", "3"], "seed 3"),
    ):
        with pytest.raises(SystemExit) as end:
            main(["probe", str(run.path), *words])
        assert end.value.code == 2
        assert message in capsys.readouterr().err
    (run.seed_directory(0) / "probes.json").write_text("{")
    with pytest.raises(UserError, match=r"probes\.json: not valid JSON"):
        run.probes(0)


def test_a_constructed_transformer_can_be_probed(tmp_path: Path) -> None:
    run = construct("C3", steps=6, via="scan", inputs=100, out=tmp_path)
    (found,) = api.probe_run(run.path, samples=200).values()
    assert found.own["accuracy"] > 0.95
    assert len(found.accuracy) == run.config.model.layers + 1
