"""``toolgrammar batch``: a file of requests in, a file of answers out, as OpenAI's batches have them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from .output import console, fail
from .serve import loaded_models

if TYPE_CHECKING:
    import httpx

#: Endpoints of a batch; those that stream, or have no body, make no sense in a file.
ENDPOINTS = ("/v1/chat/completions", "/v1/responses", "/v1/completions", "/v1/messages")

#: Exit code: some requests were not answered with 200.
EXIT_REFUSED = 1

#: Seconds that one answer may take, waiting included: nobody waits in front of a batch.
_SECONDS = 86_400.0


def batch(
    requests: Annotated[Path, typer.Argument(help="The requests: a line of JSON each, as of OpenAI's batches.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The answers, a line each, as they come.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="Address of the model (default: smollm2), or several as NAME=ADDRESS, which requests name.",
        ),
    ] = None,
    temperature: Annotated[float, typer.Option(help="Default temperature of requests; 0 is greedy.")] = 0.0,
    max_running: Annotated[int, typer.Option(min=1, help="Maximum number of requests at a time.")] = 16,
) -> None:
    """Answer a file of requests, as OpenAI's batches have them; every tool call in an answer is valid.

    A request is {"custom_id": ..., "method": "POST", "url": "/v1/chat/completions", "body": {...}}. An answer has its
    custom_id, and the status and body of the response; answers come in any order. If the file of answers exists, its
    requests are not answered again: after a kill the same command goes on, and no line is lost or doubled. With one
    model, it answers whatever model a request names.

    Exit code: 0 all were answered, 1 some were refused (their lines say why), 2 a file or a model cannot be read.
    """
    from toolgrammar.adapters import _shared
    from toolgrammar.adapters.server import Limits, create_app

    starts = _requests_of(requests)
    descriptor = _opened(output)
    try:
        done = _done(output, descriptor)
        if strange := sorted(done - starts.keys()):
            fail(f"{output} has an answer to {strange[0]!r}, which {requests} does not ask", "give another --output")
        waiting = [start for name, start in starts.items() if name not in done]
        loaded = loaded_models(model or ["smollm2"])
        defaults = _shared.generation_params({"temperature": temperature})
        limits = Limits(max_running=max_running, max_waiting=max_running, answer_seconds=_SECONDS)
        app = create_app(loaded, limits=limits, defaults=defaults)
        only = next(iter(loaded)) if len(loaded) == 1 else None
        try:
            refused = asyncio.run(_answer(app, requests, waiting, descriptor, only, max_running))
        finally:
            for each in loaded.values():
                each.close()
    finally:
        os.close(descriptor)
    before = f"; {len(done)} were answered before" if done else ""
    console(stderr=True).print(f"answered {len(waiting) - refused} of {len(waiting)}{before}", highlight=False)
    if refused:
        raise typer.Exit(EXIT_REFUSED)


def _requests_of(path: Path) -> dict[str, int]:
    """Return the byte at which each request of a file begins, by its ``custom_id``; what is wrong ends the command."""
    if not path.is_file():
        fail(f"{path} is not a file", "give a file with a line of JSON for each request")
    hint = f'{{"custom_id": "1", "method": "POST", "url": "{ENDPOINTS[0]}", "body": {{...}}}}'
    starts: dict[str, int] = {}
    with path.open("rb") as file:
        for number, (start, line) in enumerate(_lines(file), 1):
            try:
                request = json.loads(line)
                name, body, url = request["custom_id"], request["body"], request.get("url", ENDPOINTS[0])
            except (ValueError, TypeError, KeyError, AttributeError):
                fail(f"line {number} of {path} is not a request", f"a line is {hint}")
            if not isinstance(name, str) or not isinstance(body, dict) or request.get("method", "POST") != "POST":
                fail(f"line {number} of {path} is not a request", f"a line is {hint}")
            if url not in ENDPOINTS:
                fail(f"line {number} of {path} is for {url!r}", f"give one of {', '.join(ENDPOINTS)}")
            if name in starts:
                fail(f"line {number} of {path} has the custom_id {name!r} of a line before", "give each its own")
            starts[name] = start
    return starts


def _lines(file: Any) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that are not empty, with their first bytes."""
    start = 0
    for line in file:
        if line.strip():
            yield start, line
        start += len(line)


def _opened(path: Path) -> int:
    """Open the file of answers, for this process alone."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fail(f"another process writes {path}", "wait for it, or give another --output")
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}", "give another --output")
    return descriptor


def _done(path: Path, descriptor: int) -> set[str]:
    """Return the ``custom_id`` of each answer in a file.

    A last line that a kill has torn is cut off, by the descriptor: the file is open for writing, and locked.
    """
    done = set()
    with path.open("rb") as file:
        for number, (start, line) in enumerate(_lines(file), 1):
            if not line.endswith(b"\n"):
                os.ftruncate(descriptor, start)
                break
            try:
                done.add(json.loads(line)["custom_id"])
            except (ValueError, TypeError, KeyError):
                fail(f"line {number} of {path} is not an answer", "give another --output")
    return done


async def _answer(app: Any, path: Path, starts: list[int], descriptor: int, model: str | None, max_running: int) -> int:
    """Answer the requests that begin at these bytes of a file; return how many were refused."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    next_starts = iter(starts)  # shared by all workers
    refused = 0
    with (
        path.open("rb") as file,
        Progress(
            BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console(stderr=True), transient=True
        ) as progress,
    ):
        shown = progress.add_task("", total=len(starts))

        async def work(client: httpx.AsyncClient) -> None:
            """Answer requests until none is left."""
            nonlocal refused
            for start in next_starts:
                file.seek(start)
                request = json.loads(file.readline())
                answer = await _line(client, request, model)
                os.write(descriptor, json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
                refused += answer["response"]["status_code"] != 200
                progress.advance(shown)

        async with _client(app) as client:
            await asyncio.gather(*(work(client) for _ in range(min(max_running, len(starts)))))
    return refused


@asynccontextmanager
async def _client(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of the server in this process."""
    import httpx

    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://batch", timeout=None) as client:
        yield client


async def _line(client: httpx.AsyncClient, request: dict[str, Any], model: str | None) -> dict[str, Any]:
    """Return the line that answers a request."""
    body = request["body"] if model is None else {**request["body"], "model": model}
    answer = await client.post(request.get("url", ENDPOINTS[0]), json={**body, "stream": False})
    response = {"status_code": answer.status_code, "request_id": uuid4().hex, "body": answer.json()}
    return {"id": f"batch_req_{uuid4().hex}", "custom_id": request["custom_id"], "response": response, "error": None}
