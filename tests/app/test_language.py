from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from internalize import UserError
from internalize.app.language import LMPlayer
from internalize.app.player import Piece, Verdict
from internalize.curricula import RemovalConfig, Schedule
from internalize.lm.config import LMConfig
from internalize.lm.evaluation import ask
from internalize.lm.runs import load
from internalize.lm.training import fit

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def player(example: Path, tmp_path_factory: pytest.TempPathFactory) -> LMPlayer:
    config = LMConfig(
        model=str(example / "model"),
        data=example / "train.jsonl",
        valid=example / "valid.jsonl",
        test=example / "test.jsonl",
        curriculum="left:2",
        removal=RemovalConfig(hint=True, removed="filler"),
        schedule=Schedule(budget=6, stage_budget=2, check_every=2),
        batch=4,
        validation=4,
        samples=4,
    )
    return LMPlayer(load(fit(config, tmp_path_factory.mktemp("runs"))), {})


def test_a_token_at_a_time_is_what_is_written_at_once(player: LMPlayer) -> None:
    asked = player.sets["test"]
    assert player.longest.units == 3
    assert [(place.stage, place.shown) for place in player.places] == [(0, 3), (1, 1), (2, 0)]
    for place in player.places:
        views = [player._view(row, place) for row in asked.tokens[:4]]
        for record, row, view in zip(asked.records, asked.tokens, views, strict=False):
            [known] = ask(player._model(place), type(asked)(asked.path, [record], [row]), [view])
            *pieces, verdict = player.write(record.question, place)
            assert isinstance(verdict, Verdict)
            assert all(isinstance(piece, Piece) for piece in pieces)
            assert "".join(piece.text for piece in pieces if isinstance(piece, Piece)) == known.text
            assert len(pieces) == known.tokens
            assert (verdict.answer, verdict.truth) == (known.answer, record.answer)


def test_failures_are_told_with_their_answers(player: LMPlayer) -> None:
    found = player.failures("test", player.places[-1])
    truth = {record.question: record.answer for record in player.sets["test"].records}
    assert found.asked == 32
    assert 0 < found.wrong <= 32
    assert all(truth[question] == right for question, right, _ in found.shown)


def test_questions_that_no_record_has(player: LMPlayer) -> None:
    *_, verdict = player.write("Tom has 3 apples.", player.places[-1])
    assert isinstance(verdict, Verdict)
    assert (verdict.truth, verdict.right) == (None, None)
    assert f"a chain of {player.longest.units} steps" in verdict.note
    with pytest.raises(UserError, match="the question is empty"):
        player.write(" ", player.places[0])
    with pytest.raises(UserError, match="and the model reads"):
        player.write("Tom has 3 apples. " * 500, player.places[0])
    with pytest.raises(UserError, match='no file of questions called "none"; there is test'):
        player.question("none", np.random.default_rng(0))


def test_a_folder_without_its_run(player: LMPlayer, tmp_path: Path) -> None:
    assert player.run is not None
    with pytest.raises(UserError, match="how many fillers it reads"):
        LMPlayer(str(player.run.folder(0)), {})
    folder = LMPlayer(str(player.run.folder(0)), {"mine": player.run.config.valid})
    assert [place.shown for place in folder.places] == [folder.longest.units, 0]
    *_, verdict = folder.write("Tom has 3 apples.", folder.places[0])
    assert isinstance(verdict, Verdict)
    assert folder.splits == ("mine",)
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors"):
        (bare / name).write_bytes((player.run.folder(0) / name).read_bytes())
    with pytest.raises(UserError, match="it has no tokenizer"):
        LMPlayer(str(bare), {})


def test_line_ends_of_a_question_do_not_matter(player: LMPlayer) -> None:
    record = player.sets["test"].records[0]
    *_, verdict = player.write(record.question.replace(" ", "\n", 1), player.places[-1])
    assert isinstance(verdict, Verdict)
    assert verdict.truth == record.answer


def test_a_character_of_several_tokens_comes_whole(player: LMPlayer) -> None:
    speaker = player._model(player.places[0])

    class Bytes:
        """A byte-level tokenizer, of which only decoding is asked."""

        eos_token_id, pad_token_id = 0, 0

        def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
            return bytes(ids).decode("utf-8", errors="replace")

    class Writes:
        """A model that has one thing to say."""

        config = speaker.model.config
        parameters, eval = speaker.model.parameters, speaker.model.eval

        def generate(self, streamer: Any, input_ids: Any, **rest: Any) -> None:
            streamer.put(input_ids)
            for byte in "a猫b".encode():
                streamer.put(torch.tensor([byte]))
            streamer.end()

    pieces = [piece for piece, _ in replace(speaker, model=Writes(), tokenizer=Bytes()).stream([1, 2, 3], 5)]
    assert pieces == ["a", "", "", "猫", "b"]


def test_a_run_that_has_just_begun(player: LMPlayer, tmp_path: Path) -> None:
    assert player.run is not None
    for name in ("config.json", "contents.json"):
        (tmp_path / name).write_bytes((player.run.path / name).read_bytes())
    (tmp_path / "metrics.jsonl").touch()
    with pytest.raises(UserError, match="no stage is finished yet"):
        LMPlayer(load(tmp_path), {})
