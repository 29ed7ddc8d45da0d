"""Operations of an OpenAPI 3.0 or 3.1 document as tools.

The arguments of an operation are laid out by one rule: each parameter (path, query, header, cookie) is a property under
its own name; where two parameters in different places share a name, the later one is ``PLACE_NAME`` (``query_id``). The
request body is one property, ``body`` (``request_body`` if a parameter is called that), so that its schema may be
anything. Properties marked ``readOnly`` are left out of what is sent, as the specification says.

Nothing is called unless a client or a base URL is given: the servers that a document names are never used by
themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ..core.errors import InvalidArgumentsError, Place, SchemaError, ToolCallError
from .tool import Tool, with_tool

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_PLACES = ("path", "query", "header", "cookie")
#: The specification gives these three to other parts of a document.
_OTHER_HEADERS = frozenset({"accept", "content-type", "authorization"})
_MAX_ANSWER = 2_000
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "dependentSchemas")
_DATA = ("enum", "const", "default", "example", "examples")


def tools_from_openapi(
    document: Mapping[str, Any],
    names: Iterable[str] | None = None,
    *,
    client: Any = None,
    base_url: str | None = None,
    timeout: float = 30.0,
) -> list[Tool]:
    """The operations of a document as tools.

    Args:
        document: the decoded document (OpenAPI 3.0 or 3.1).
        names: only the operations of these names (``operationId``; without one, ``get_pets_petId`` for
            ``GET /pets/{petId}``), in this order.
        client: an ``httpx.Client`` or ``httpx.AsyncClient`` that sends the requests: with its base URL, its headers
            and its authentication. Then the tools run.
        base_url: where to send requests, instead of the client's base URL, or with a client made for each call.
        timeout: seconds for one request, without a client.

    Raises:
        SchemaError: no OpenAPI 3 document; an operation that cannot be a tool, with its name and the reason; a
            reference that leads nowhere or out of the document; or a name that no operation has.
    """
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        raise SchemaError(
            f"not an OpenAPI 3 document: openapi is {version!r}, swagger is {document.get('swagger')!r}",
            hint="convert it to OpenAPI 3 first",
        )
    reader = _Document(document, version)
    sender = _Sender(client, base_url, timeout) if client is not None or base_url is not None else None
    wanted = None if names is None else list(names)
    found: dict[str, Tool] = {}
    for operation in reader.operations():
        if wanted is not None and operation.name not in wanted:
            continue
        if operation.name in found:
            raise SchemaError(
                "two operations have the same name",
                hint="give each its own operationId",
                place=Place(tool=operation.name, pointer=operation.pointer),
            )
        found[operation.name] = operation.tool(sender)
    for name in wanted or ():
        if name not in found:
            known = ", ".join(operation.name for operation in reader.operations())
            raise SchemaError(f"the document has no operation {name!r}", hint=f"it has {known}")
    return list(found.values()) if wanted is None else [found[name] for name in wanted]


@dataclass(frozen=True)
class _Parameter:
    """One argument.

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

    def texts(self, value: Any) -> list[tuple[str, str]]:
        """The name and text, or several, that the value becomes."""
        if self.as_json:
            return [(self.name, json.dumps(value, ensure_ascii=False))]
        if isinstance(value, Mapping):
            pairs = [(str(key), _plain(each)) for key, each in value.items()]
            if self.style == "deepObject":
                return [(f"{self.name}[{key}]", each) for key, each in pairs]
            if self.explode:
                return pairs if self.place == "query" else [(self.name, ",".join(f"{k}={v}" for k, v in pairs))]
            return [(self.name, ",".join(part for pair in pairs for part in pair))]
        if isinstance(value, (list, tuple)):
            items = [_plain(each) for each in value]
            if self.explode and self.style == "form" and self.place in ("query", "cookie"):
                return [(self.name, item) for item in items]
            between = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(self.style, ",")
            return [(self.name, between.join(items))]
        return [(self.name, _plain(value))]


@dataclass(frozen=True)
class _Operation:
    """One operation: what it is called, what it takes, how it is sent."""

    name: str
    method: str
    path: str
    pointer: str
    body: Mapping[str, Any]
    shared: list[Any]
    document: _Document

    def tool(self, sender: _Sender | None) -> Tool:
        """The operation as a tool."""
        try:
            return self._tool(sender)
        except SchemaError as error:
            raise with_tool(error, self.name) if error.place.tool is None else error from None

    def _tool(self, sender: _Sender | None) -> Tool:
        properties: dict[str, Any] = {}
        required: list[str] = []
        parameters: list[_Parameter] = []
        for source in self._merged():
            parameter, schema = self._parameter(source, properties)
            properties[parameter.key] = schema
            parameters.append(parameter)
            if source.get("required") is True or parameter.place == "path":
                required.append(parameter.key)
        body_key = "request_body" if "body" in properties else "body"
        request = self.document.resolve(self.body.get("requestBody"), self.pointer)
        kind = None
        if request:
            kind, schema = self._body_schema(request)
            if isinstance(request.get("description"), str) and "$ref" not in schema:
                schema = {"description": request["description"], **schema}
            properties[body_key] = schema
            if request.get("required") is True:
                required.append(body_key)
        missing = set(re.findall(r"\{([^{}]+)\}", self.path)) - {p.name for p in parameters if p.place == "path"}
        if missing:
            raise SchemaError(
                f"the path has a variable without a parameter: {sorted(missing)[0]}",
                hint="declare it with in: path",
                place=Place(pointer=self.pointer, parameter=sorted(missing)[0]),
            )
        schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
        texts = [self.body.get("summary"), self.body.get("description")]
        return Tool(
            self.name,
            "\n\n".join(dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip())),
            self.document.standalone(schema, self.pointer),
            function=None if sender is None else sender.function(self, parameters, body_key, kind),
        )

    def _merged(self) -> list[Mapping[str, Any]]:
        """The operation's parameters, and those of its path that it does not declare anew."""
        found: dict[tuple[Any, Any], Mapping[str, Any]] = {}
        for source in [*self.shared, *(self.body.get("parameters") or ())]:
            parameter = self.document.resolve(source, self.pointer)
            if parameter.get("in") == "header" and str(parameter.get("name")).lower() in _OTHER_HEADERS:
                continue
            found[(parameter.get("in"), parameter.get("name"))] = parameter
        return list(found.values())

    def _parameter(self, source: Mapping[str, Any], taken: Mapping[str, Any]) -> tuple[_Parameter, Any]:
        name, place = source.get("name"), source.get("in")
        if not isinstance(name, str) or place not in _PLACES:
            raise SchemaError(
                f"a parameter needs a name and one of the places {', '.join(_PLACES)}",
                hint="correct the document",
                place=Place(pointer=self.pointer, parameter=name if isinstance(name, str) else None),
            )
        content = source.get("content")
        if isinstance(content, Mapping) and content:
            media, entry = next(iter(content.items()))
            if not _is_json(media):
                raise SchemaError(
                    f"a parameter of the media type {media} cannot be written",
                    hint="use application/json",
                    place=Place(pointer=self.pointer, parameter=name),
                )
            schema = entry.get("schema", {})
        else:
            schema = source.get("schema", {})
        schema = dict(schema) if isinstance(schema, Mapping) else schema
        if isinstance(source.get("description"), str) and isinstance(schema, dict) and "description" not in schema:
            schema = {"allOf": [schema]} if "$ref" in schema else schema
            schema = {**schema, "description": source["description"]}
        style = source.get("style") or ("form" if place in ("query", "cookie") else "simple")
        explode = source.get("explode", style == "form")
        key = name if name not in taken else f"{place}_{name}"
        return _Parameter(key, name, place, style, explode, bool(content)), schema

    def _body_schema(self, request: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The media type that is sent, and the schema of the body."""
        content = request.get("content") or {}
        kinds = [media for media in content if _is_json(media)]
        others = ("application/x-www-form-urlencoded", "text/plain")
        kinds += [media for media in content if media.split(";")[0] in others]
        if not kinds:
            raise SchemaError(
                f"the request body has no media type that can be written: {', '.join(content) or 'none'}",
                hint="application/json, application/x-www-form-urlencoded and text/plain can",
                place=Place(pointer=self.pointer, parameter="body"),
            )
        schema = content[kinds[0]].get("schema", {})
        return kinds[0], dict(schema) if isinstance(schema, Mapping) else {}


class _Document:
    """A document and the references in it."""

    def __init__(self, document: Mapping[str, Any], version: str) -> None:
        self.document = document
        self.siblings = not version.startswith("3.0")  # before 3.1 nothing beside a $ref counts

    def operations(self) -> Iterator[_Operation]:
        """Every operation, in order."""
        for path, source in (self.document.get("paths") or {}).items():
            pointer = f"/paths/{_escape(path)}"
            item = self.resolve(source, pointer)
            for method in METHODS:
                body = item.get(method)
                if isinstance(body, Mapping):
                    name = body.get("operationId")
                    if not isinstance(name, str) or not name:
                        name = re.sub(r"[^A-Za-z0-9]+", "_", f"{method}_{path}").strip("_")
                    shared = list(item.get("parameters") or ())
                    yield _Operation(name, method, path, f"{pointer}/{method}", body, shared, self)

    def resolve(self, source: Any, pointer: str) -> Mapping[str, Any]:
        """What a place in the document says, references followed."""
        seen: set[str] = set()
        while isinstance(source, Mapping) and isinstance(source.get("$ref"), str):
            reference = source["$ref"]
            if reference in seen:
                raise SchemaError(f"the reference {reference} leads to itself", place=Place(pointer=pointer))
            seen.add(reference)
            source = self.find(reference, pointer)
        return source if isinstance(source, Mapping) else {}

    def find(self, reference: str, pointer: str) -> Any:
        """The target of a reference."""
        if not reference.startswith("#/"):
            raise SchemaError(
                f"the reference {reference} leads out of the document",
                hint="put what it names into this document: nothing is fetched",
                place=Place(pointer=pointer),
            )
        found: Any = self.document
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise SchemaError(
                    f"the reference {reference} leads nowhere",
                    hint="correct the document",
                    place=Place(pointer=pointer),
                )
        return found

    def standalone(self, schema: dict[str, Any], pointer: str) -> dict[str, Any]:
        """A schema with what it refers to in its own ``$defs``."""
        names: dict[str, str] = {}
        definitions: dict[str, Any] = {}

        def name_of(reference: str) -> str:
            if reference not in names:
                short = reference.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
                chosen = short if short not in definitions else f"{short}_{len(definitions)}"
                names[reference] = chosen
                definitions[chosen] = {}  # its place, while it is being read
                definitions[chosen] = walk(self.find(reference, pointer))
            return names[reference]

        def walk(part: Any) -> Any:
            if isinstance(part, list):
                return [walk(item) for item in part]
            if not isinstance(part, Mapping):
                return part
            result: dict[str, Any] = {}
            if isinstance(part.get("$ref"), str):
                reference = {"$ref": f"#/$defs/{_escape(name_of(part['$ref']))}"}
                if not self.siblings:
                    return reference
                result.update(reference)
            unsent = {
                name
                for name, sub in (part.get("properties") or {}).items()
                if isinstance(sub, Mapping) and self.resolve(sub, pointer).get("readOnly") is True
            }
            for key, value in part.items():
                if key == "$ref" and isinstance(value, str):
                    continue
                if key in _SCHEMA_MAPS and isinstance(value, Mapping):
                    result[key] = {n: walk(s) for n, s in value.items() if key != "properties" or n not in unsent}
                elif key == "required" and isinstance(value, list):
                    result[key] = [name for name in value if name not in unsent]
                elif key not in ("discriminator", "xml", "externalDocs"):
                    result[key] = value if key in _DATA else walk(value)
            return result

        body = walk(schema)
        return {**body, "$defs": definitions} if definitions else dict(body)


class _Sender:
    """Sends requests through ``httpx``."""

    def __init__(self, client: Any, base_url: str | None, timeout: float) -> None:
        self.client, self.base_url, self.timeout = client, base_url, timeout

    def function(self, operation: _Operation, parameters: list[_Parameter], body_key: str, kind: str | None) -> Any:
        """What runs the operation: an async function for an async client."""
        import httpx

        def request(arguments: dict[str, Any]) -> dict[str, Any]:
            return self._request(operation, parameters, body_key, kind, arguments)

        def call(**arguments: Any) -> Any:
            if self.client is not None:
                return _answer(operation.name, self.client.request(**request(arguments)))
            with httpx.Client(timeout=self.timeout) as client:
                return _answer(operation.name, client.request(**request(arguments)))

        async def acall(**arguments: Any) -> Any:
            return _answer(operation.name, await self.client.request(**request(arguments)))

        return acall if isinstance(self.client, httpx.AsyncClient) else call

    def _request(
        self,
        operation: _Operation,
        parameters: list[_Parameter],
        body_key: str,
        kind: str | None,
        arguments: dict[str, Any],
    ) -> dict[str, Any]:
        path = operation.path
        query: list[tuple[str, str]] = []
        headers: dict[str, str] = {}
        cookies: list[str] = []
        for parameter in parameters:
            if parameter.key not in arguments:
                continue
            texts = parameter.texts(arguments[parameter.key])
            if parameter.place == "path":
                text = ",".join(text for _, text in texts)
                if text in ("", ".", ".."):
                    raise InvalidArgumentsError(
                        f"{text!r} cannot be a part of a path",
                        hint="give another value",
                        place=Place(tool=operation.name, pointer=f"/{_escape(parameter.key)}"),
                    )
                path = path.replace(f"{{{parameter.name}}}", quote(text, safe=""))
            elif parameter.place == "query":
                query += texts
            elif parameter.place == "header":
                headers[parameter.name] = ",".join(text for _, text in texts)
            else:
                cookies += [f"{name}={quote(text)}" for name, text in texts]
        if cookies:
            headers["Cookie"] = "; ".join(cookies)
        url = path if self.base_url is None else self.base_url.rstrip("/") + path
        made: dict[str, Any] = {"method": operation.method.upper(), "url": url, "headers": headers}
        if query:
            made["params"] = query
        if kind is not None and body_key in arguments:
            body = arguments[body_key]
            headers["Content-Type"] = "application/json" if kind == "*/*" else kind
            if _is_json(kind):
                made["content"] = json.dumps(body, ensure_ascii=False).encode()
            elif kind.startswith("text/"):
                made["content"] = _plain(body).encode()
            else:
                made["data"] = {key: _plain(value) for key, value in body.items()}
        return made


def _answer(tool: str, response: Any) -> Any:
    """The decoded body of a response.

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
    if _is_json(response.headers.get("content-type", "")) and text.strip():
        return response.json()
    return text


def _plain(value: Any) -> str:
    """A value as the text of a parameter."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(media: str) -> bool:
    kind = media.split(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json") or kind == "*/*"


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
