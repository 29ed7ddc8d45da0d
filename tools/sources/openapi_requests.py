"""HTTP requests of OpenAPI operations: arguments written into path, query, headers, cookies and body.

Source: OpenAPI Specification 3.1.1, "Style Values" and "Encoding Object"; RFC 6570 (null is an undefined value).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from toolgrammar.core.errors import InvalidArgumentsError, Place, ToolCallError
from toolgrammar.core.json import escape

_MAX_ANSWER = 2_000
_VARIABLE = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operation.

    Attributes:
        key: its property in the arguments.
        name: its name in the request.
        place: ``path``, ``query``, ``header`` or ``cookie``.
        style: how arrays and objects are written.
        explode: whether each of their parts is written by itself.
        as_json: the value is written as JSON.
    """

    key: str
    name: str
    place: str
    style: str
    explode: bool
    as_json: bool

    def path_text(self, value: Any) -> str:
        """Return the value as a part of a path, percent-encoded: ``3,4`` (simple), ``.3.4`` (label), ``;id=3;id=4``
        (matrix), the last two exploded."""
        pairs = self._pairs(value)
        if self.style == "simple":
            return ",".join(map(_pair, pairs))
        mark = "." if self.style == "label" else ";"
        if self.style == "label":
            return mark + (mark if self.explode else ",").join(map(_pair, pairs))
        name = quote(self.name, safe="")
        if self.explode:
            return "".join(mark + _pair((key or name, text)) for key, text in pairs)
        return f"{mark}{name}=" + ",".join(map(_pair, pairs))

    def header_text(self, value: Any) -> str:
        """Return the value of a header."""
        return ",".join(f"{key}={text}" if key is not None else text for key, text in self._pairs(value))

    def query(self, value: Any) -> list[tuple[str, str]]:
        """Return the name and text, or several, that the value becomes in a query, form or cookie."""
        if self.as_json:
            return [(self.name, json.dumps(value, ensure_ascii=False))]
        return list(styled(self.name, value, self.style, self.explode))

    def _pairs(self, value: Any) -> list[tuple[str | None, str]]:
        """Return the texts of a value's parts, each with its key if the value is an object that is exploded; those of
        another object are its keys and values in turn."""
        if self.as_json:
            return [(None, json.dumps(value, ensure_ascii=False))]
        if isinstance(value, Mapping):
            pairs = [(str(key), _text(item)) for key, item in value.items() if item is not None]
            return [*pairs] if self.explode else [(None, part) for pair in pairs for part in pair]
        if isinstance(value, (list, tuple)):
            return [(None, _text(item)) for item in value]
        return [(None, _text(value))]


@dataclass(frozen=True)
class Body:
    """The body of an operation.

    Attributes:
        key: its property in the arguments.
        media_type: how it is sent.
        encoding: for forms, the document's Encoding Objects by field.
    """

    key: str
    media_type: str
    encoding: Mapping[str, Any]

    def content(self, value: Any) -> dict[str, Any]:
        """Return the keyword arguments of ``httpx``'s ``request`` that send the value."""
        kind = self.media_type.split(";")[0].strip().lower()
        if is_json(kind):
            return {"content": json.dumps(value, ensure_ascii=False).encode()}
        if kind.startswith("text/"):
            return {"content": _text(value).encode()}
        fields = list(self._fields(value))
        if kind == "multipart/form-data":
            return {"files": [(name, (None, text)) for name, text in fields]}
        data: dict[str, list[str]] = {}
        for name, text in fields:
            data.setdefault(name, []).append(text)
        return {"data": data}

    def _fields(self, value: Any) -> Iterator[tuple[str, str]]:
        """Yield the fields of a form: lists as repeated fields, and objects as JSON, unless the document's ``encoding``
        has another style."""
        for name, item in value.items():
            encoding = self.encoding.get(name)
            encoding = encoding if isinstance(encoding, Mapping) else {}
            style = encoding.get("style")
            has_style = style is not None or "explode" in encoding
            if not has_style and isinstance(item, Mapping):
                yield name, _text(item)
            elif not has_style and is_json(str(encoding.get("contentType", ""))):
                yield name, json.dumps(item, ensure_ascii=False)
            else:
                style = style or "form"
                yield from styled(name, item, style, bool(encoding.get("explode", style == "form")))


@dataclass(frozen=True)
class Request:
    """HTTP request of an operation.

    Attributes:
        tool: the operation's name, for errors.
        method: the HTTP method.
        path: the path template.
        parameters: its parameters.
        body: its body, or None.
    """

    tool: str
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    body: Body | None

    def __call__(self, base_url: str | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as keyword arguments of ``httpx``'s ``request``.

        Raises:
            InvalidArgumentsError: a value would leave its place in the path.
        """
        written: dict[str, str] = {}  # the variables of the path
        query: list[tuple[str, str]] = []
        headers: dict[str, str] = {}
        cookies: list[str] = []
        for parameter in self.parameters:
            value = arguments.get(parameter.key)
            if value is None and parameter.place != "path":
                continue
            if parameter.place == "path":
                written[parameter.name] = "" if value is None else parameter.path_text(value)
            elif parameter.place == "query":
                query += parameter.query(value)
            elif parameter.place == "header":
                headers[parameter.name] = parameter.header_text(value)
            else:
                cookies += [f"{name}={quote(text)}" for name, text in parameter.query(value)]
        if cookies:
            headers["Cookie"] = "; ".join(cookies)
        path = "/".join(self._segment(segment, written) for segment in self.path.split("/"))
        url = path if base_url is None else base_url.rstrip("/") + path
        request: dict[str, Any] = {"method": self.method.upper(), "url": url, "headers": headers}
        if query:
            request["params"] = query
        if self.body is not None and self.body.key in arguments:
            request.update(self.body.content(arguments[self.body.key]))
            if "files" not in request:  # httpx writes the boundary of a multipart body beside its type
                media = self.body.media_type
                headers["Content-Type"] = "application/json" if media == "*/*" else media
        return request

    def _segment(self, template: str, written: Mapping[str, str]) -> str:
        """Return one segment of the path, with the values of its variables: ``{id}.json -> 7.json``.

        Raises:
            InvalidArgumentsError: a value is empty, or the segment becomes ``.`` or ``..``.
        """
        names = _VARIABLE.findall(template)
        text = _VARIABLE.sub(lambda match: written.get(match[1], match[0]), template)
        wrong = [name for name in names if written.get(name) == ""]
        if text in (".", ".."):  # it would lead out of the path: "/a/.." is "/"
            wrong += names
        if wrong:
            key = next(each.key for each in self.parameters if (each.name, each.place) == (wrong[0], "path"))
            raise InvalidArgumentsError(
                f"{written.get(wrong[0], '')!r} cannot be a part of a path",
                hint="give another value",
                place=Place(tool=self.tool, pointer="/" + escape(key)),
            )
        return text


class Sender:
    """Sends requests through ``httpx``.

    Args:
        client: an ``httpx.Client`` or ``httpx.AsyncClient``, or None for a client made for each call.
        base_url: where to send requests, instead of the client's base URL.
        timeout: seconds for one request, without a client.
    """

    def __init__(self, client: Any, base_url: str | None, timeout: float) -> None:
        self.client, self.base_url, self.timeout = client, base_url, timeout

    def function(self, request: Request) -> Any:
        """Return a function that runs the operation: an async one for an async client."""
        import httpx

        def call(**arguments: Any) -> Any:
            if self.client is not None:
                return answer(request.tool, self.client.request(**request(self.base_url, arguments)))
            with httpx.Client(timeout=self.timeout) as client:
                return answer(request.tool, client.request(**request(self.base_url, arguments)))

        async def acall(**arguments: Any) -> Any:
            return answer(request.tool, await self.client.request(**request(self.base_url, arguments)))

        return acall if isinstance(self.client, httpx.AsyncClient) else call


def styled(name: str, value: Any, style: str, explode: bool) -> Iterator[tuple[str, str]]:
    """Yield the name and text, or several, that a value becomes in a query or form; null becomes nothing.

    ``[3, 4]`` is ``id=3,4`` (form), ``id=3 4`` (spaceDelimited) or, exploded, ``id=3`` and ``id=4``.
    ``deepObject`` is defined for objects of plain values only; deeper parts are ``name[key][inner]`` and
    ``name[key][0]``, as servers that read nested brackets expect them.
    """
    if value is None:
        return
    if style == "deepObject" and isinstance(value, (Mapping, list, tuple)):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, element in parts:
            yield from styled(f"{name}[{key}]", element, style, explode)
    elif isinstance(value, Mapping):
        pairs = [(str(key), _text(element)) for key, element in value.items() if element is not None]
        if explode:
            yield from pairs
        else:
            yield name, _separator(style).join(part for pair in pairs for part in pair)
    elif isinstance(value, (list, tuple)):
        items = [_text(element) for element in value]
        if explode:
            yield from ((name, item) for item in items)
        else:
            yield name, _separator(style).join(items)
    else:
        yield name, _text(value)


def answer(tool: str, response: Any) -> Any:
    """Return the decoded body of a response.

    Raises:
        ToolCallError: the server refused the request, or failed; with its words.
    """
    text = response.text
    if response.status_code >= 400:
        shown = text if len(text) <= _MAX_ANSWER else text[:_MAX_ANSWER] + " ..."
        raise ToolCallError(
            f"the server answered {response.status_code} {response.reason_phrase}: {shown}".rstrip(": "),
            place=Place(tool=tool),
        )
    if is_json(response.headers.get("content-type", "")) and text.strip():
        return response.json()
    return text


def is_json(media: str) -> bool:
    """Return True if a media type is JSON, or any."""
    kind = media.split(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json") or kind == "*/*"


def _pair(pair: tuple[str | None, str]) -> str:
    """Return a part of a path value, percent-encoded, after its key."""
    key, text = pair
    return quote(text, safe="") if key is None else f"{quote(key, safe='')}={quote(text, safe='')}"


def _separator(style: str) -> str:
    return {"spaceDelimited": " ", "pipeDelimited": "|"}.get(style, ",")


def _text(value: Any) -> str:
    """Return a value as the text of a parameter."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
