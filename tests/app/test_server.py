import json
import socket
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import internalize
from internalize.app import server
from internalize.cli import main

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.xdist_group("app")


def send(address: str, path: str, body: object, **headers: str) -> tuple[int, list[Any]]:
    """Status, and each line of the answer."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{address}/api/{path}", content, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, [json.loads(line) for line in answer.read().splitlines()]
    except urllib.error.HTTPError as error:
        with error:
            text = error.read().decode()
        return error.code, [json.loads(text) if text.startswith("{") else text]


def test_it_says_what_the_library_says(address: str, runs: list[internalize.Run]) -> None:
    with urllib.request.urlopen(f"{address}/api/runs") as answer:
        about = json.load(answer)
    assert [one["name"] for one in about] == [run.path.name for run in runs]
    assert [place["shown"] for place in about[0]["places"]] == [5, 4, 3, 2, 1, 0]
    _, [drawn] = send(address, "draw", {"run": 0, "split": "biased:1:0.8"})
    status, lines = send(address, "places", {"run": 0, "text": drawn["text"]})
    assert status == 200
    for line, shown in zip(lines, [5, 4, 3, 2, 1, 0], strict=True):
        known = runs[0].answer_with(shown, drawn["text"])
        assert [piece["text"] for piece in line["pieces"]] == [*known.chain, *known.answer]
        assert (line["answer"], line["right"]) == (" ".join(known.answer), known.right)
    _, [*tokens, verdict] = send(address, "ask", {"run": 0, "text": drawn["text"], "place": 5})
    assert [token["text"] for token in tokens] == [piece["text"] for piece in lines[5]["pieces"]]
    assert verdict["tokens"] == 1
    assert verdict["seconds"] > 0


def test_failures_are_inputs_that_fail(address: str, runs: list[internalize.Run]) -> None:
    _, [found] = send(address, "failures", {"run": 0, "split": "uniform", "place": 5})
    assert 0 < len(found["shown"]) <= found["wrong"] <= found["asked"]
    for text, truth, said in found["shown"]:
        answer = runs[0].answer_with(0, text)
        assert " ".join(answer.answer) == said != truth
    _, [none] = send(address, "failures", {"run": 1, "split": "uniform", "place": 0})
    assert none["wrong"] == 0  # a construction is exact


def test_two_people_can_play_at_once(address: str, runs: list[internalize.Run]) -> None:
    texts = [f"{number:06b}" for number in range(0, 64, 3)]

    def ask(text: str) -> tuple[str, bool]:
        verdict = send(address, "ask", {"run": 0, "text": text, "place": 0})[1][-1]
        return verdict["answer"], verdict["right"]

    with ThreadPoolExecutor(4) as people:
        said = list(people.map(ask, texts))
    assert said == [(" ".join(known.answer), known.right) for known in (runs[0].answer_with(5, text) for text in texts)]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("ask", {"run": 0, "text": "1 0 1", "place": 0}, "the input has 3 words; C2 takes 6 symbols here."),
        ("places", {"run": 0, "text": "1 0 1 7 0 0"}, 'word 4 of the input is "7"; it must be one of 0, 1.'),
        ("ask", {"run": 0, "text": "1 0 1 1 0 0", "place": 6}, '"place" is 6; it must be a number from 0 to 5.'),
        ("ask", {"run": "0", "text": "1 0 1 1 0 0", "place": 0}, '"run" is "0"; it must be a number from 0 to 1.'),
        ("ask", {"run": 0, "place": 0}, '"text" is missing; send it as text.'),
        ("draw", {"run": 0, "split": "no such"}, 'there are no "no such" inputs here'),
        ("ask", {"run": 0, "text": "1 0 \ud800", "place": 0}, '"text" holds half a character'),
        ("draw", b"[" * 90_000, "not valid JSON"),
        ("draw", [1], "send a JSON object."),
        ("draw", b"{", "not valid JSON"),
        ("draw", b"1" * 200_000, "the request has more than 100,000 bytes"),
    ],
)
def test_a_mistake_is_one_sentence(address: str, path: str, body: object, message: str) -> None:
    status, [told] = send(address, path, body)
    assert status == 400
    assert message in told["error"]


def test_other_sites_cannot_ask(address: str) -> None:
    body = {"run": 0, "text": "1 0 1 1 0 0", "place": 0}
    assert send(address, "ask", body, Host="evil.example")[0] == 400
    assert "content type" in send(address, "ask", body, **{"Content-Type": "text/plain"})[1][0]["error"]
    with urllib.request.urlopen(address) as page:
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_only_this_machine_can_reach_it() -> None:
    with server.listen(0) as opened:
        assert opened.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "0 directories are named; name one run, or two to see side by side."),
        (["a", "b", "c"], "3 directories are named"),
        (["nowhere"], "nowhere: this is not a run's directory"),
    ],
)
def test_what_cannot_be_played_with(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["play", *words])
    assert end.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_ports_that_cannot_be_had(runs: list[internalize.Run], capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        for port, message in ((number, f"port {number} cannot be had"), (70_000, "port is 70000")):
            with pytest.raises(SystemExit) as end:
                main(["play", str(runs[1].path), "--port", str(port)])
            assert end.value.code == 2
            assert message in " ".join(capsys.readouterr().err.split())


def test_without_the_extra(runs: list[internalize.Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(internalize.UserError, match=r'pip install "internalize\[app\]"'):
        server.need()


def test_a_run_without_a_finished_seed(tmp_path: Path, runs: list[internalize.Run], capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text((runs[0].path / "config.json").read_text())
    with pytest.raises(SystemExit):
        main(["play", str(tmp_path)])
    assert "no seed is finished" in " ".join(capsys.readouterr().err.split())
