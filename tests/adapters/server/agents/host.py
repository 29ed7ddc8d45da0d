"""A server on the loopback interface whose model plays a coding agent's part of one task, and the requests it got.

The model is scripted: it lists files, edits one, runs a command, and says that it is done. So what is tried is all but
the model's wits: the agent's requests, their grammars, the answers as the agent reads them, and its tools.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from toolgrammar.adapters.server import create_app
from toolgrammar.core import Message, Model, ToolCall
from toolgrammar.core.testing import ScriptedModel

from .table import DONE, MODEL, Calls


class Coder(ScriptedModel):
    """Makes one call of a list after the other, then says that it is done; to requests without tools it says a title.

    Args:
        calls: of the agent's tools.
        endless: it says a text that takes longer than anybody waits.

    Attributes:
        writes: True once it has been asked.
    """

    def __init__(self, calls: Calls, *, endless: bool = False) -> None:
        super().__init__(self._reply, context_window=8_000_000)
        self._calls = calls
        self._endless = endless
        self.writes = False
        self._seen = threading.local()

    def _work(self, request: Any) -> Any:
        self._seen.params = request.params
        return super()._work(request)

    def _reply(self, messages: Sequence[Message]) -> Message | str:
        self.writes = True
        params = self._seen.params
        names = {tool.name for tool in params.tools} if params.tools else set()
        thoughts = "<think>\nThe next step.\n</think>\n\n" if params.thinking and params.thinking != "auto" else ""
        if self._endless:
            return thoughts + "word " * 1_000_000
        step = sum(message.role == "tool" for message in messages)
        if step >= len(self._calls):
            return thoughts + DONE
        name, arguments = self._calls[step]
        if name not in names:
            return thoughts + "A greeting"
        return Message("assistant", thoughts, tool_calls=(ToolCall(f"call_{step}", name, arguments),))


@dataclass
class Seen:
    """Requests that a server got.

    Attributes:
        url: address of the server, without a path.
        requests: method, path, status, headers and text of the answer, and when it has ended the body of each.
    """

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)

    def is_free(self, seconds: float) -> bool:
        """Return True if no request runs any more, or none does within a time."""
        end = time.monotonic() + seconds
        while (runs := not all("body" in one for one in self.requests)) and time.monotonic() < end:
            time.sleep(0.05)
        return not runs


class _Recorder:
    """An ASGI application that keeps what another gets."""

    def __init__(self, app: Any, seen: Seen) -> None:
        self._app, self._seen = app, seen

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        query = scope["query_string"].decode()
        kept: dict[str, Any] = {"method": scope["method"], "path": scope["path"] + (f"?{query}" if query else "")}
        self._seen.requests.append(kept)
        said = bytearray()

        async def receiving() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                body.extend(message.get("body", b""))
            return message

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                kept["status"] = message["status"]
                kept["headers"] = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                said.extend(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receiving, sending)
        finally:
            try:
                kept["body"] = json.loads(body) if body else None
            except ValueError:
                kept["body"] = body.decode("utf-8", "replace")
            kept["said"] = said.decode("utf-8", "replace")


@contextmanager
def hosted(model: Model, name: str = MODEL) -> Iterator[Seen]:
    """Serve a model on the loopback interface while the block runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    seen = Seen(f"http://127.0.0.1:{port}")
    app = _Recorder(create_app({name: model}), seen)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield seen
    finally:
        server.should_exit = True
        thread.join(30)
