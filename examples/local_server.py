"""A tiny server with an OpenAI-compatible API, for the examples of remote models: it answers from a script.

It stands in for vLLM, llama.cpp, Ollama or a hosted API, so that the examples run offline.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Union

#: A scripted reply of the server: a text, or the call of a tool with the text of its arguments.
Reply = Union[str, "tuple[str, str]"]


class LocalServer:
    """Serves a script on this machine while the ``with`` block runs.

    Args:
        replies: one for each request.

    Attributes:
        url: the address for ``openai:MODEL@URL``.
        requests: what was asked.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.requests: list[dict[str, Any]] = []
        script = iter(replies)
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            """Answers ``POST /v1/chat/completions``."""

            def do_POST(self) -> None:
                requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                message = _message(next(script), len(requests))
                reason = "tool_calls" if "tool_calls" in message else "stop"
                usage = {"prompt_tokens": 40, "completion_tokens": 9}
                if requests[-1].get("stream"):
                    chunks = [{"delta": message}, {"delta": {}, "finish_reason": reason}]
                    lines = [f"data: {json.dumps({'choices': [each]})}\n\n" for each in chunks]
                    lines += [f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n", "data: [DONE]\n\n"]
                    self._send("text/event-stream", "".join(lines))
                else:
                    choice = {"index": 0, "message": message, "finish_reason": reason}
                    self._send("application/json", json.dumps({"choices": [choice], "usage": usage}))

            def _send(self, kind: str, text: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> LocalServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _message(reply: Reply, number: int) -> dict[str, Any]:
    if isinstance(reply, str):
        return {"role": "assistant", "content": reply}
    name, arguments = reply
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
