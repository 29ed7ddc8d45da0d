"""What `fuzzing` sends calls to: an MCP server, or the HTTP service of an OpenAPI document."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, product
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from toolgrammar.core.errors import InvalidArgumentsError, ToolCallError, ToolTimeoutError, first_line
from toolgrammar.core.validation import Validator

from .mcp import McpServer
from .sources.openapi import tools_from_openapi
from .sources.openapi_requests import Parameter, Request, is_json
from .tool import Tool
from .toolset import ToolSet

#: What a server did wrong, in this order: its process or connection ended; it did not answer in time; it answered a
#: valid call with an error of the protocol, or any call by a malformed result; any call by an HTTP status of 500 or
#: more; a valid call by an HTTP status that is not declared; the result does not match its schema; it took an invalid
#: call.
FailureKind = Literal[
    "crash", "hang", "protocol error", "server error", "undeclared status", "wrong result", "accepted"
]

#: Number of the JSON-RPC error by which the ``mcp`` package says that the connection was closed.
_CLOSED = -32000

#: Maximum number of values that are tried of those that a service may read in a parameter of a request.
_MAX_READINGS = 64

#: By place of a parameter, the texts that a request carries there as they are: no second segment of a path, nothing
#: that HTTP strips or refuses in headers, nothing that is percent-encoded in cookies.
_CARRIED = {"path": r"[^/\\]*", "query": r"[\s\S]*", "header": r"[!-~]([ -~]*[!-~])?", "cookie": r"[\w.~-]*"}
#: Texts that lists and objects carry as they are: without the separators of all styles.
_PLAIN = re.compile(r"[^,|.;&=\[\]\s]+", re.ASCII)

#: Texts that many services read as a truth value.
_TRUTH = {"0": False, "off": False, "no": False, "f": False, "n": False, "false": False}
_TRUTH |= {"1": True, "on": True, "yes": True, "t": True, "y": True, "true": True}

_ABSENT = object()


class Target(Protocol):
    """Something whose tools can be called."""

    def open(self) -> ToolSet:
        """Connect, and return the tools; after a crash or a hang, connect again.

        Raises:
            ToolCallError: nobody answers.
        """

    def close(self) -> None:
        """End the connection."""

    def is_harmless(self, tool: Tool) -> bool:
        """Return whether a tool is said to destroy nothing."""

    def verdict(self, tool: Tool, judge: Validator, arguments: dict[str, Any]) -> bool | None:
        """Return whether a call is valid as it arrives; None: it cannot be sent as it is.

        Args:
            tool: the tool that is called.
            judge: the validator of the tool's schema.
            arguments: of the call.
        """

    def ask(self, tool: Tool, arguments: dict[str, Any], is_valid: bool) -> tuple[FailureKind | None, str]:
        """Call a tool, and return the kind of failure (None: no failure) and the server's words.

        Args:
            tool: the tool to call.
            arguments: of the call.
            is_valid: the arguments satisfy the tool's schema; if not, the server should refuse them, and ``"accepted"``
                is the failure.
        """


class McpTarget:
    """An MCP server.

    Args:
        connect: returns a server that is not yet connected; called at first, and again after a crash or a hang. A call
            without an answer for its ``call_timeout`` counts as a hang.
    """

    def __init__(self, connect: Callable[[], McpServer]) -> None:
        self._connect = connect
        self._server: McpServer | None = None

    def open(self) -> ToolSet:
        """See `Target`."""
        self.close()
        self._server = self._connect().__enter__()
        return self._server.tools

    def close(self) -> None:
        """See `Target`."""
        if self._server is not None:
            self._server.close()

    def is_harmless(self, tool: Tool) -> bool:
        """See `Target`. A tool without annotations is not harmless."""
        return tool.annotations.get("readOnlyHint") is True or tool.annotations.get("destructiveHint") is False

    def verdict(self, tool: Tool, judge: Validator, arguments: dict[str, Any]) -> bool | None:
        """See `Target`."""
        return judge.is_valid(arguments)

    def ask(self, tool: Tool, arguments: dict[str, Any], is_valid: bool) -> tuple[FailureKind | None, str]:
        """See `Target`."""
        assert self._server is not None
        try:
            body = self._server.answer(tool.name, arguments)
        except ToolTimeoutError as error:
            return "hang", error.message
        except Exception as error:
            said = first_line(error)
            if isinstance(error, RuntimeError):  # the mcp package found that the result does not match its schema
                return ("wrong result", said) if is_valid else ("accepted", "")
            code = getattr(getattr(error, "error", error), "code", None)
            if type(error).__name__ == "ValidationError":
                return "protocol error", f"the result is malformed: {said}"
            if code is None or code == _CLOSED:
                return "crash", said
            return ("protocol error", f"{said} ({code})") if is_valid else (None, "")
        if body.get("isError"):
            return None, "isError"
        if not is_valid:
            return "accepted", ""
        return _judged(tool.output_schema, body.get("structuredContent"))


class HttpTarget:
    """The service that an OpenAPI document describes.

    Args:
        document: the decoded document.
        url: where the service runs; the paths of the document follow it.
        timeout: a call without an answer for so many seconds counts as a hang.
    """

    def __init__(self, document: Mapping[str, Any], url: str, timeout: float) -> None:
        import httpx

        self._tools = ToolSet(tools_from_openapi(document))
        self._url = url
        # No proxy and no redirect: what is sent stays on the host of the URL. A connection is not kept, as a service
        # that closes it after an error would seem to crash at the next call.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.Client(timeout=timeout, trust_env=False, limits=limits)
        self._lost: tuple[type[Exception], type[Exception]] = httpx.TimeoutException, httpx.HTTPError
        self._known: dict[str, tuple[Request, Validator]] = {}

    def open(self) -> ToolSet:
        """See `Target`."""
        address = urlsplit(self._url)
        try:
            port = address.port or {"https": 443}.get(address.scheme, 80)
            socket.create_connection((address.hostname or "", port), timeout=10).close()
        except OSError as error:
            hint = "start the service first"
            raise ToolCallError(f"nobody answers at {self._url}: {error}", hint=hint) from error
        return self._tools

    def close(self) -> None:
        """See `Target`."""
        self._client.close()

    def is_harmless(self, tool: Tool) -> bool:
        """See `Target`."""
        return tool.operation is not None and tool.operation.is_safe

    def verdict(self, tool: Tool, judge: Validator, arguments: dict[str, Any]) -> bool | None:
        """See `Target`. A parameter of a request is a text, which is valid if some reading of it is."""
        request, single = self._request(tool)
        parameters = {parameter.key: parameter for parameter in request.parameters}
        read: dict[str, Any] = {}
        for key, value in arguments.items():
            parameter = parameters.get(key)
            if parameter is not None and not _is_carried(parameter, value):
                return None
            if request.body is not None and key == request.body.key:
                is_text = not is_json(request.body.media_type)
            elif parameter is None:
                continue  # the request does not carry it
            else:
                is_text = not parameter.as_json
            readings = list(islice(_readings(value), _MAX_READINGS + 1)) if is_text else [value]
            valid = next((each for each in readings if each is not _ABSENT and single.is_valid({key: each})), _ABSENT)
            if valid is not _ABSENT:
                read[key] = valid
            elif len(readings) > _MAX_READINGS:
                return None  # one that was not tried may be valid
            elif not any(each is _ABSENT for each in readings):
                read[key] = value
        try:
            request(self._url, arguments)
        except (InvalidArgumentsError, ValueError):
            return None
        return judge.is_valid(read)

    def ask(self, tool: Tool, arguments: dict[str, Any], is_valid: bool) -> tuple[FailureKind | None, str]:
        """See `Target`."""
        operation = tool.operation
        assert operation is not None
        sent = self._request(tool)[0](self._url, arguments)
        if operation.answers() is not None:
            sent["headers"].setdefault("Accept", "application/json")
        try:
            response = self._client.request(**sent)
        except self._lost[0]:
            return "hang", f"the service did not answer in {self._client.timeout.read:g} seconds"
        except self._lost[1] as error:
            return "crash", first_line(error)
        status = response.status_code
        said = f"{status} {response.reason_phrase}"
        if status >= 500:
            return "server error", said
        if not is_valid and status < 400:
            return ("accepted", "") if status < 300 else (None, said)
        is_declared, schema = operation.answer(status)
        if not is_declared:
            return ("undeclared status", said) if is_valid else (None, said)
        try:
            is_value = is_json(response.headers.get("content-type", "")) and response.text.strip()
            body = response.json() if is_value else response.text
        except ValueError as error:
            return "wrong result", f"the JSON is malformed: {first_line(error)}"
        kind, reason = _judged(None if operation.method.lower() == "head" else schema, body)
        return kind, reason if kind is not None else said if status >= 400 else ""

    def _request(self, tool: Tool) -> tuple[Request, Validator]:
        """Return the request of a tool's operation, and the validator of its arguments one by one, none required."""
        if tool.name not in self._known:
            assert tool.operation is not None
            one = Validator({**tool.parameters, "required": []})
            self._known[tool.name] = tool.operation.request()[0], one
        return self._known[tool.name]


def _judged(schema: dict[str, Any] | None, value: Any) -> tuple[FailureKind | None, str]:
    problem = None if schema is None else next(Validator(schema).violations(value), None)
    return (None, "") if problem is None else ("wrong result", problem)


def _is_carried(parameter: Parameter, value: Any) -> bool:
    """Return whether a place of a request carries the texts of a value as they are."""
    if parameter.as_json:
        texts = [json.dumps(value)]
    elif isinstance(value, (list, dict)):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        texts = [_text(part) for part in parts]
        if not (parameter.place == "query" and isinstance(value, list) and parameter.explode):
            return all(_PLAIN.fullmatch(text) for text in texts)
    else:
        texts = [_text(value)]
    return all(re.fullmatch(_CARRIED[parameter.place], text, re.ASCII) for text in texts)


def _readings(value: Any) -> Iterator[Any]:
    """Yield the values that a service may read where this one was written as text."""
    if value is None or value in ([], {}):
        yield _ABSENT
    elif isinstance(value, dict):
        members = {name: inner for name, inner in value.items() if inner is not None}
        for chosen in product(*(list(islice(_readings(inner), _MAX_READINGS)) for inner in members.values())):
            yield {name: one for name, one in zip(members, chosen, strict=True) if one is not _ABSENT}
    elif isinstance(value, list):
        for items in product(*map(_leaves, value)):
            yield list(items)
    else:
        leaves = _leaves(value)
        yield from leaves
        yield from ([leaf] for leaf in leaves)
        if value == "":
            yield _ABSENT


def _leaves(value: Any) -> list[Any]:
    text = _text(value)
    found: list[Any] = [text]
    with suppress(ValueError):
        found.append(json.loads(text))
    if text.lower() in _TRUTH:
        found.append(_TRUTH[text.lower()])
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
