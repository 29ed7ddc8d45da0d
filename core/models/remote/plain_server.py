"""A server with OpenAI's chat completions, asked as a plain client asks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .address import headers_of, parse_address
from .answer import Answer, member
from .chat_completions import ChatCompletions, read_completion
from .detect import detect_server
from .transport import Transport


class PlainServer:
    """Requests to a server, none of which is changed, and answers that are neither judged nor asked for again.

    Args:
        url: address of the server's API.
        headers: headers of every request.
        secrets: texts that must never be shown.
        timeout: seconds that a request may take.
        transport: an httpx transport that replaces the network.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], secrets: tuple[str, ...], timeout: float, transport: Any = None
    ) -> None:
        self._transport = Transport(url, headers, secrets, timeout, resent=1, transport=transport)

    @staticmethod
    def address(url: str, api_key: Any) -> tuple[str, dict[str, str], tuple[str, ...]]:
        """Return the address of a server's API, the headers of requests with a key, and the secrets in them.

        Args:
            url: address of the server, with or without the path of the API.
            api_key: the key, ``env:NAME``, or None.

        Raises:
            ModelError: it is no address, or the environment variable of the key does not exist.
        """
        headers, secrets = headers_of(api_key, None, ChatCompletions.key_headers)
        # The address of a model is MODEL@URL; which model it is does not matter here.
        return parse_address(f"any@{url}", None, version="v1").base_url, headers, secrets

    async def models(self) -> list[str]:
        """Return the names of the models that the server lists."""
        listed = await self._transport.fetch("models")
        entries = member(listed, "data") or ()
        return [str(one["id"]) for one in entries if isinstance(one, Mapping) and "id" in one]

    async def kind(self, model: str) -> str:
        """Return the kind of the server, as ``server="auto"`` detects it."""
        return (await detect_server(self._transport, model))[0]

    async def ask(self, body: Mapping[str, Any], *, stream: bool = False) -> tuple[Answer, int]:
        """Return the answer to a request, and the number of events with a piece of a call's arguments.

        Args:
            body: the request, with ``max_tokens``.
            stream: ask for the answer as a stream.

        Raises:
            RefusedError: the server refused the request.
            ToolGrammarError: it did not answer, or its answer cannot be read.
        """
        answer, pieces = Answer(), 0
        answer.budget = body["max_tokens"]
        if stream:
            async for event in self._transport.events("chat/completions", {**body, "stream": True}):
                before = sum(len(call.arguments) for call in answer.calls)
                read_completion(event, answer)
                pieces += sum(len(call.arguments) for call in answer.calls) > before
        else:
            read_completion(await self._transport.fetch("chat/completions", dict(body)), answer)
        return answer, pieces

    def shown(self, text: str) -> str:
        """Return a text without secrets."""
        return self._transport.shown(text)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()
