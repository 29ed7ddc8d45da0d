"""What `fuzzing` sends calls to: an MCP server, or the HTTP service of an OpenAPI document."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, product
from typing import Any, Literal, NamedTuple, Protocol
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

#: What a service reads instead of a value, if it finds no value: an empty text or list may be none.
_ABSENT = object()


class Answer(NamedTuple):
    """What a server made of a call.

    Attributes:
        failure: what it did wrong; None: nothing.
        words: what it said, or why that is wrong. Empty without a failure: it took a valid call, or refused an invalid
            one; not empty: it refused a valid call, which may be right (a file may be absent).
    """

    failure: FailureKind | None
    words: str


_AS_IT_SHOULD = Answer(None, "")
_ACCEPTED = Answer("accepted", "")


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

    def ask(self, tool: Tool, arguments: dict[str, Any], is_valid: bool) -> Answer:
        """Call a tool, and return what the server made of the call.

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

    def ask(self, tool: Tool, arguments: dict[str, Any], is_valid: bool) -> Answer:
        """See `Target`."""
        assert self._server is not None
        try:
            body = self._server.answer(tool.name, arguments)
        except ToolTimeoutError as error:
            return Answer("hang", error.message)
        except Exception as error:
            return _answer_of_error(error, is_valid)
        if body.get("isError"):
            return Answer(None, "isError")
        return _judged(tool.output_schema, body.get("structuredContent")) if is_valid else _ACCEPTED


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
        self._timeout_error: type[Exception] = httpx.TimeoutException
        self._http_error: type[Exception] = httpx.HTTPError
        self._requests: dict[str, tuple[Request, Validator]] = {}  # by names of tools, see `_request`

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
        request, judge_of_one = self._request(tool)
        parameters = {parameter.key: parameter for parameter in request.parameters}
        read: dict[str, Any] = {}  # the arguments as the service reads them: a valid reading if there is one
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
            may_be_absent = any(each is _ABSENT for each in readings)
            valid = [each for each in readings if each is not _ABSENT and judge_of_one.is_valid({key: each})]
            if valid:
                read[key] = valid[0]
            elif len(readings) > _MAX_READINGS:
                return None  # one that was not tried may be valid
            elif not may_be_absent:  # else the service may read no value at all
                read[key] = value
        try:
            request(self._url, arguments)
        except (InvalidArgumentsError, ValueError):
            return None
        return judge.is_valid(read)

    def ask(self, tool: Tool, arguments: dict[str, Any], is_valid: bool) -> Answer:
        """See `Target`. A status of 4xx refuses the call; one of 3xx neither takes nor refuses it."""
        operation = tool.operation
        assert operation is not None
        request, _ = self._request(tool)
        sent = request(self._url, arguments)
        if operation.answers() is not None:
            sent["headers"].setdefault("Accept", "application/json")
        try:
            response = self._client.request(**sent)
        except self._timeout_error:
            return Answer("hang", f"the service did not answer in {self._client.timeout.read:g} seconds")
        except self._http_error as error:
            return Answer("crash", first_line(error))
        status = response.status_code
        words = f"{status} {response.reason_phrase}"
        if status >= 500:
            return Answer("server error", words)
        if not is_valid and status < 400:
            return _ACCEPTED if status < 300 else Answer(None, words)
        is_declared, schema = operation.answer(status)
        if not is_declared:
            return Answer("undeclared status" if is_valid else None, words)
        try:
            has_json = is_json(response.headers.get("content-type", "")) and response.text.strip()
            body = response.json() if has_json else response.text
        except ValueError as error:
            return Answer("wrong result", f"the JSON is malformed: {first_line(error)}")
        answer = _judged(None if operation.method.lower() == "head" else schema, body)
        return Answer(None, words) if answer == _AS_IT_SHOULD and status >= 400 else answer

    def _request(self, tool: Tool) -> tuple[Request, Validator]:
        """Return the request of a tool's operation, and a validator of single arguments, as none is required."""
        if tool.name not in self._requests:
            assert tool.operation is not None
            request, *_ = tool.operation.request()
            self._requests[tool.name] = request, Validator({**tool.parameters, "required": []})
        return self._requests[tool.name]


def _answer_of_error(error: Exception, is_valid: bool) -> Answer:
    """Return what a server made of a call for which the ``mcp`` package raised an error."""
    words = first_line(error)
    if isinstance(error, RuntimeError):  # the package found that the result does not match its schema
        return Answer("wrong result", words) if is_valid else _ACCEPTED
    if type(error).__name__ == "ValidationError":
        return Answer("protocol error", f"the result is malformed: {words}")
    code = getattr(getattr(error, "error", error), "code", None)
    if code is None or code == _CLOSED:
        return Answer("crash", words)
    # By an error of the protocol, a server may refuse an invalid call.
    return Answer("protocol error", f"{words} ({code})") if is_valid else _AS_IT_SHOULD


def _judged(schema: dict[str, Any] | None, value: Any) -> Answer:
    """Return the answer with a result, which is wrong if it does not match a schema."""
    problem = None if schema is None else next(Validator(schema).violations(value), None)
    return _AS_IT_SHOULD if problem is None else Answer("wrong result", problem)


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
    """Yield the values that a service may read where this one was written as text: 1 -> ``"1"``, 1, True, ..."""
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
    """Return the scalars that a service may read where this one was written as text."""
    text = _text(value)
    found: list[Any] = [text]
    with suppress(ValueError):
        found.append(json.loads(text))
    if text.lower() in _TRUTH:
        found.append(_TRUTH[text.lower()])
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
