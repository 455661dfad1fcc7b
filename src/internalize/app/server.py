"""The playground's server, for this machine alone: it binds to 127.0.0.1, and answers no other host's name.

What is asked comes as JSON, and what is written goes out line by line (NDJSON) as the model writes it. A user's mistake is
status 400 with one sentence. Nothing is kept between requests, so any number of people can play at once.
"""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from internalize.app.player import Piece, Place, Player, Verdict
from internalize.errors import UserError
from internalize.report import render_page

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

T = TypeVar("T")

HOST = "127.0.0.1"
LONGEST = 100_000  # bytes of a request
POLICY = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
POLICY += "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def need() -> None:
    """Raise `UserError` unless the extra is installed."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UserError(f'{", ".join(missing)} is missing; install it with: pip install "internalize[app]"')


def listen(port: int) -> socket.socket:
    """A socket of this machine alone; port 0 takes a free one. Raises `UserError` when the port is taken."""
    if not 0 <= port <= 65535:
        raise UserError(f"port is {port}; it must be from 0 (a free one) to 65535.")
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((HOST, port))
        opened.listen()  # so that who asks at once waits, and is not refused
    except OSError as error:
        opened.close()
        raise UserError(f"port {port} cannot be had ({error.strerror}); choose another one with --port.") from None
    return opened


def serve(players: Sequence[Player], opened: socket.socket) -> None:
    """Serve until Ctrl-C."""
    import uvicorn

    settings = uvicorn.Config(application(players), log_level="error", timeout_graceful_shutdown=1, lifespan="off")
    with suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[opened])


def application(players: Sequence[Player]) -> "Starlette":
    """The page and what it asks."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    page = render_page("play.html", "internalize.app")
    script = files("internalize.app").joinpath("play.js").read_text(encoding="utf-8")

    async def index(request: "Request") -> Response:
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": POLICY})

    async def code(request: "Request") -> Response:
        return Response(script, media_type="text/javascript")

    async def runs(request: "Request") -> Response:
        return JSONResponse([_about(player) for player in players])

    def answering(answer: Callable[[Player, dict[str, Any]], Any]) -> Callable[["Request"], Any]:
        """An endpoint that reads JSON and answers with what `answer` returns, or line by line with what it yields."""

        async def endpoint(request: "Request") -> Response:
            try:
                asked = await _asked(request)
                player = _one(players, asked.get("run"), "run")
                found = await run_in_threadpool(answer, player, asked)
            except UserError as error:
                return JSONResponse({"error": str(error)}, status_code=400)
            if isinstance(found, Iterator):
                return StreamingResponse(_lines(found), media_type="application/x-ndjson")
            return JSONResponse(found)

        return endpoint

    def draw(player: Player, asked: dict[str, Any]) -> Any:
        return {"text": player.question(_text(asked, "split"), np.random.default_rng())}

    def ask(player: Player, asked: dict[str, Any]) -> Any:
        return _ask(player, _text(asked, "text"), _one(player.places, asked.get("place"), "place"))

    def places(player: Player, asked: dict[str, Any]) -> Any:
        text = _text(asked, "text")
        pieces = player.write(text, player.places[0])  # what cannot be asked is told before anything is written
        return _every_place(player, text, pieces)

    def failures(player: Player, asked: dict[str, Any]) -> Any:
        return asdict(player.failures(_text(asked, "split"), _one(player.places, asked.get("place"), "place")))

    posts = {"draw": draw, "ask": ask, "places": places, "failures": failures}
    return Starlette(
        routes=[
            Route("/", index),
            Route("/play.js", code),
            Route("/api/runs", runs),
            *(Route(f"/api/{name}", answering(answer), methods=["POST"]) for name, answer in posts.items()),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])],
    )


def _about(player: Player) -> dict[str, Any]:
    return {
        "name": player.name,
        "about": player.about,
        "unit": player.unit,
        "splits": list(player.splits),
        "places": [asdict(place) for place in player.places],
    }


def _ask(player: Player, text: str, place: Place) -> Iterator[dict[str, Any]]:
    pieces = player.write(text, place)

    def lines() -> Iterator[dict[str, Any]]:
        count = 0
        for piece in pieces:
            if isinstance(piece, Verdict):
                yield {"kind": "verdict", **asdict(piece), "tokens": count}
            else:
                count += 1
                yield {"kind": "token", **asdict(piece)}

    return lines()


def _every_place(player: Player, text: str, first: Iterator[Piece | Verdict]) -> Iterator[dict[str, Any]]:
    for at, place in enumerate(player.places):
        *written, verdict = first if at == 0 else player.write(text, place)
        assert isinstance(verdict, Verdict)
        yield {"place": at, "pieces": [asdict(piece) for piece in written], **asdict(verdict)}


def _lines(found: Iterator[dict[str, Any]]) -> Iterator[str]:
    try:
        for line in found:
            yield json.dumps(line) + "\n"
    except UserError as error:  # the answer has begun, so it is told in it
        yield json.dumps({"kind": "error", "error": str(error)}) + "\n"


async def _asked(request: "Request") -> dict[str, Any]:
    """The JSON object that was sent. As JSON only, so that no other site's form can send it."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise UserError("send JSON, with the content type application/json.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST:
            raise UserError(f"the request has more than {LONGEST:,} bytes; ask for something shorter.")
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UserError(f"not valid JSON ({error}).") from None
    if not isinstance(asked, dict):
        raise UserError("send a JSON object.")
    return asked


def _text(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str):
        raise UserError(f'"{name}" is missing; send it as text.')
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UserError(f'"{name}" holds half a character; send whole ones.') from None
    return value


def _one(options: Sequence[T], index: object, name: str) -> T:
    if not isinstance(index, int) or not 0 <= index < len(options):
        raise UserError(f'"{name}" is {json.dumps(index)}; it must be a number from 0 to {len(options) - 1}.')
    return options[index]
