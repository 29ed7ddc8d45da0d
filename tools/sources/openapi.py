"""Operations of an OpenAPI 3 or Swagger 2 document as tools.

Each parameter (path, query, header, cookie) is a property of the arguments under its own name; of two parameters with
the same name, the later one is ``PLACE_NAME`` (``query_id``). The request body is one property, ``body``
(``request_body`` if a parameter has the name ``body``), so that its schema may be of any type. Properties marked
``readOnly`` are left out, as the specification demands for requests. The schema of the answers, without properties
marked ``writeOnly``, is read only when asked for: nobody promises it to the caller of a tool.

An operation that cannot be a tool (its body is a file, say) is left out, and the result says which and why. A request
is sent only through a client or to a base URL that the caller gives, never to the servers that a document names.

Source: OpenAPI Specification 3.0.4, 3.1.1 and 3.2.0, Swagger 2.0.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import unquote

from toolgrammar.core.basics import cached_property, pause
from toolgrammar.core.errors import LimitError, Place, SchemaError
from toolgrammar.core.json import escape, resolve_local, unescape
from toolgrammar.core.schema import KEYWORDS

from ..dialects import MAX_DEPTH, to_json_schema
from ..tool import Tool, ToolList
from .openapi_requests import Body, Parameter, Request, Sender, is_json
from .swagger import as_openapi_3

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
SAFE_METHODS = ("get", "head", "options", "query")
_PLACES = ("path", "query", "header", "cookie")
_STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form", "cookie"),
}
#: Headers that the specification reserves for other parts of a document.
_OTHER_HEADERS = frozenset({"accept", "content-type", "authorization"})
#: Keywords that do not constrain JSON values.
_DROPPED = frozenset({"discriminator", "xml", "externalDocs"})
#: Our own keywords among the extensions of a document (`x-...`), whose values are no schemas of the document. Policies
#: read the last two.
_OURS = frozenset({*(name for name in KEYWORDS if name.startswith("x-")), "x-type", "x-trusted"})
#: Maximum number of names or errors in one message.
_MAX_LISTED = 20
#: Maximum number of objects and lists around a part of a schema; `to_json_schema` has the limit of schemas.
_MAX_NESTED = 3 * MAX_DEPTH
#: Statuses of responses without a body.
_WITHOUT_CONTENT = ("204", "205")
#: Schemas of what `Sender` returns of a response without a body, and of one whose media type is not JSON.
_EMPTY, _TEXT = {"const": ""}, {"type": "string"}
#: Maximum of `_Document._searched`.
_MAX_SEARCHED = 500_000

_logger = logging.getLogger("toolgrammar.openapi")


def tools_from_openapi(
    document: Mapping[str, Any],
    names: Iterable[str] | None = None,
    *,
    client: Any = None,
    base_url: str | None = None,
    timeout: float = 30.0,
    strict: bool = False,
) -> ToolList:
    """Return the operations of a document as tools.

    Operations that cannot be tools are in the ``skipped`` attribute of the result, and in a warning of the logger
    ``toolgrammar.openapi``. The others are optional: a `ToolSet` leaves out those without a grammar.

    Args:
        document: the decoded document: OpenAPI 3.0, 3.1 or 3.2, or Swagger 2.0.
        names: only the operations of these names (``operationId``; without one, ``get_pets_petId`` for
            ``GET /pets/{petId}``), in this order. Each must be usable; none of them is optional.
        client: an ``httpx.Client`` or ``httpx.AsyncClient`` that sends the requests: with its base URL, its headers
            and its authentication. Then the tools run.
        base_url: where to send requests, instead of the client's base URL, or with a client made for each call.
        timeout: seconds for one request, without a client.
        strict: raise for the first operation that cannot be a tool, instead of leaving it out; no tool is optional.

    Raises:
        SchemaError: the document is of another kind; a name is of no operation, or of one that cannot be a tool; with
            ``strict``, any operation cannot be a tool. Names the operation, its place and the reason.
    """
    reader = _Document(document)
    sender = Sender(client, base_url, timeout) if client is not None or base_url is not None else None
    wanted = None if names is None else list(names)
    tools: dict[str, Tool] = {}
    skipped: dict[str | None, list[SchemaError]] = {}
    listed: list[str] = []
    for operation in reader.operations():
        if isinstance(operation, Operation):
            listed.append(operation.name)
            if wanted is not None and operation.name not in wanted:
                continue
        try:
            if isinstance(operation, SchemaError):
                raise operation
            if operation.name in tools:
                raise SchemaError(
                    "two operations have the same name",
                    hint="give each its own operationId",
                    place=Place(tool=operation.name, pointer=operation.pointer),
                )
            tools[operation.name] = operation.tool(sender, optional=wanted is None and not strict)
        except SchemaError as error:
            if strict:
                raise
            skipped.setdefault(error.place.tool, []).append(error)
    for name in wanted or ():
        if name in skipped:
            raise skipped[name][0]
        if name not in tools:
            shown = ", ".join(listed[:_MAX_LISTED]) + (", ..." if len(listed) > _MAX_LISTED else "")
            raise SchemaError(f"the document has no operation {name!r}", hint=f"it has {shown}")
    chosen = list(tools.values()) if wanted is None else [tools[name] for name in wanted]
    errors = [error for group in skipped.values() for error in group] if wanted is None else []
    if errors:
        shown = "; ".join(map(str, errors[:_MAX_LISTED])) + ("; ..." if len(errors) > _MAX_LISTED else "")
        _logger.warning("%d of %d operations cannot be tools: %s", len(errors), len(tools) + len(errors), shown)
    return ToolList(chosen, errors)


def recognise(source: Any) -> list[Tool] | None:
    """Return the tools of an OpenAPI or Swagger document, None for anything else."""
    if isinstance(source, Mapping) and any(isinstance(source.get(key), str) for key in ("openapi", "swagger")):
        return tools_from_openapi(source)
    return None


@dataclass(frozen=True)
class Operation:
    """One operation of a document.

    Attributes:
        name: its ``operationId``, or a name made of method and path.
        method: the HTTP method, in lower case.
        path: the path template.
        pointer: where it is in the document.
        body: the operation object.
        shared: the parameters of its path item.
        document: the document that it belongs to.
    """

    name: str
    method: str
    path: str
    pointer: str
    body: Mapping[str, Any]
    shared: list[Any]
    document: _Document

    def tool(self, sender: Sender | None, *, optional: bool) -> Tool:
        """Return the operation as a tool.

        Raises:
            SchemaError: it cannot be one; the place names the operation.
        """
        try:
            return self._tool(sender, optional)
        except (SchemaError, LimitError) as error:
            kind = type(error) if isinstance(error, SchemaError) else SchemaError
            pointer = self.pointer if error.place.pointer is None else error.place.pointer
            place = replace(error.place, tool=self.name, pointer=pointer)
            raise kind(error.message, hint=error.hint, place=place) from error

    def _tool(self, sender: Sender | None, optional: bool) -> Tool:
        """Return the operation as a tool; see `tool`."""
        request, schema = self.request()
        texts = [self.body.get("summary"), self.body.get("description")]
        tool = Tool(
            self.name,
            "\n\n".join(dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip())),
            function=None if sender is None else sender.function(request),
            optional=optional,
            operation=self,
        )
        return tool.changed(parameters=self.document.standalone(schema, self.pointer))

    def request(self) -> tuple[Request, dict[str, Any]]:
        """Return the request, and the schema of its arguments, which refers to the document.

        Raises:
            SchemaError: it cannot be sent; the place may lack the operation.
        """
        properties: dict[str, Any] = {}
        required: list[str] = []
        parameters: list[Parameter] = []
        operation, declared = self.body, self._merged_parameters()
        if self.document.swagger:
            operation = as_openapi_3(operation, declared, self.document.document)
            declared = operation["parameters"]
        for declaration in declared:
            parameter, schema = self._parameter(declaration, properties)
            properties[parameter.key] = schema
            parameters.append(parameter)
            if declaration.get("required") is True or parameter.place == "path":
                required.append(parameter.key)
        missing = set(re.findall(r"\{([^{}]+)\}", self.path)) - {p.name for p in parameters if p.place == "path"}
        if missing:
            raise SchemaError(
                f"the path has a variable without a parameter: {min(missing)}",
                hint="declare it with in: path",
                place=Place(pointer=self.pointer, parameter=min(missing)),
            )
        body = None
        request = self._resolve(operation.get("requestBody"))
        if request:
            key = "request_body" if "body" in properties else "body"
            body, schema = self._request_body(request, key)
            properties[key] = _described(schema, request.get("description"))
            if request.get("required") is True:
                required.append(key)
        schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
        return Request(self.name, self.method, self.path, tuple(parameters), body), schema

    def _resolve(self, source: Any) -> Mapping[str, Any]:
        """Return the object that a reference, or a chain of references, leads to; an object that is none as it is."""
        return self.document.resolve(source, self.pointer)

    def answers(self) -> dict[str, Any] | None:
        """Return the schema of what the operation gives where it succeeds, as `Sender` decodes it; None: nothing says
        that it is JSON.

        Raises:
            SchemaError: it cannot be read.
            LimitError: it is too large.
        """
        responses = self._responses()
        good = [status for status in responses if status.startswith("2")] or ["DEFAULT"]  # of all other statuses
        return self._schema_of([self._answer(status, self._resolve(responses.get(status))) for status in good])

    def answer(self, status: int) -> tuple[bool, dict[str, Any] | None]:
        """Return whether the document has answers of an HTTP status, and their schema as `answers` does.

        Raises:
            SchemaError: it cannot be read.
            LimitError: it is too large.
        """
        responses = self._responses()
        for stated in (str(status), f"{status // 100}XX", "DEFAULT"):
            if stated in responses:
                return True, self._schema_of([self._answer(str(status), self._resolve(responses[stated]))])
        return False, None

    @property
    def is_safe(self) -> bool:
        """Whether its method changes nothing, by the specification of HTTP."""
        return self.method.lower() in SAFE_METHODS

    def _responses(self) -> dict[str, Any]:
        """Return the responses by status: ``200``, ``4XX``, ``DEFAULT``."""
        return {str(status).upper(): each for status, each in self._resolve(self.body.get("responses")).items()}

    def _schema_of(self, answers: list[Any]) -> dict[str, Any] | None:
        """Return the schema of several answers (`_answer`) as `answers` does."""
        options = [schema for schema in answers if schema is not None]
        if all(schema is _TEXT or schema is _EMPTY for schema in options):
            return None
        schema = options[0] if len(options) == 1 and isinstance(options[0], dict) else {"anyOf": options}
        return self.document.of_answers.standalone(schema, f"{self.pointer}/responses")

    def _answer(self, status: str, response: Mapping[str, Any]) -> Any:
        """Return the schema of one response, `_TEXT` if it is not JSON, `_EMPTY` if it has no content by its status;
        None: the document does not say."""
        content = response.get("content")
        if self.document.swagger and "schema" in response:
            content = {"application/json": response}
        if not isinstance(content, Mapping) or not content:
            return _EMPTY if status in _WITHOUT_CONTENT else None
        entry = next((entry for media, entry in content.items() if is_json(str(media))), _TEXT)
        if entry is _TEXT:
            return _TEXT
        return entry.get("schema", True) if isinstance(entry, Mapping) else True

    def _merged_parameters(self) -> list[Mapping[str, Any]]:
        """Return the operation's parameters, and those of its path that it does not redeclare."""
        merged: dict[tuple[str, str], Mapping[str, Any]] = {}
        for source in [*self.shared, *_list(self.body.get("parameters"), "parameters", self.pointer)]:
            parameter = self._resolve(source)
            if parameter.get("in") == "header" and str(parameter.get("name")).lower() in _OTHER_HEADERS:
                continue
            merged[(str(parameter.get("in")), str(parameter.get("name")))] = parameter
        return list(merged.values())

    def _parameter(self, source: Mapping[str, Any], taken: Mapping[str, Any]) -> tuple[Parameter, Any]:
        """Return a parameter and its schema; ``taken`` are the names of those before it.

        Raises:
            SchemaError: it is malformed, or cannot be written in its style or media type.
        """
        name, place = source.get("name"), source.get("in")
        where = Place(pointer=self.pointer, parameter=name if isinstance(name, str) else None)
        if not isinstance(name, str) or place not in _PLACES:
            raise SchemaError(
                f"a parameter needs 'name', and 'in' with one of {', '.join(_PLACES)}",
                hint="correct the document",
                place=where,
            )
        content = source.get("content")
        if isinstance(content, Mapping) and content:
            media, entry = next(iter(content.items()))
            if not is_json(str(media)):
                raise SchemaError(
                    f"a parameter of the media type {media} cannot be written", hint="use application/json", place=where
                )
            schema = entry.get("schema", {}) if isinstance(entry, Mapping) else {}
        else:
            schema = source.get("schema", {})
        schema = _described(schema, source.get("description"))
        style = source.get("style") or ("form" if place in ("query", "cookie") else "simple")
        if style not in _STYLES[place]:
            raise SchemaError(
                f"a {place} parameter cannot be written in the style {style!r}",
                hint=f"the styles of {place} parameters are {', '.join(_STYLES[place])}",
                place=where,
            )
        explode = source.get("explode")
        explode = style in ("form", "cookie") if explode is None else explode
        key = name if name not in taken else f"{place}_{name}"
        return Parameter(key, name, place, style, bool(explode), bool(content)), schema

    def _request_body(self, request: Mapping[str, Any], key: str) -> tuple[Body, dict[str, Any]]:
        """Return how the body is sent, and its schema: as JSON if that is possible, else as a form or as text.

        Args:
            request: the request body in the document.
            key: its property in the arguments.

        Raises:
            SchemaError: it has no media type that can be sent.
        """
        content = request.get("content")
        content = {str(media): entry for media, entry in content.items()} if isinstance(content, Mapping) else {}
        is_sendable: Callable[[str], bool]
        for is_sendable in (is_json, _is_form, _is_text, lambda media: self._is_plain_multipart(media, content[media])):
            for media, entry in content.items():
                if not is_sendable(media):
                    continue
                entry = entry if isinstance(entry, Mapping) else {}
                schema = entry.get("schema", {})
                schema = dict(schema) if isinstance(schema, Mapping) else {}
                if _is_text(media) and not schema:
                    schema = {"type": "string"}
                encoding = entry.get("encoding")
                return Body(key, media, encoding if isinstance(encoding, Mapping) else {}), schema
        raise SchemaError(
            f"the request body has no media type that can be written: {', '.join(content) or 'none'}",
            hint="a tool can send JSON, forms without files, and text",
            place=Place(pointer=f"{self.pointer}/requestBody", parameter=key),
        )

    def _is_plain_multipart(self, media: str, entry: Any) -> bool:
        """Return True for a multipart form whose fields are declared one by one, and none may be a file."""
        if media.split(";")[0].strip().lower() != "multipart/form-data" or not isinstance(entry, Mapping):
            return False
        schemas = self.document.stated(entry.get("schema"), self.pointer)
        declared = [each["properties"] for each in schemas if isinstance(each.get("properties"), Mapping)]
        fields = [field for properties in declared for field in properties.values()]
        return (
            bool(fields)
            and not any(key in each for each in schemas for key in ("allOf", "anyOf", "oneOf"))
            and not any(map(self._may_be_file, fields))
        )

    def _may_be_file(self, schema: Any) -> bool:
        """Return True if a form field may be a file: anything but a number, a boolean, an object or plain text."""
        schemas = self.document.stated(schema, self.pointer)
        # Keywords beside a reference have precedence.
        schema = {key: value for each in reversed(schemas) for key, value in each.items()}
        kind = schema.get("type")
        if kind == "array":
            return self._may_be_file(schema.get("items"))
        if kind == "string":
            return schema.get("format") in ("binary", "byte") or "contentMediaType" in schema
        return kind not in ("integer", "number", "boolean", "object")


def _described(schema: Any, description: Any) -> Any:
    """Return a schema with a description, unless it has one; a reference is wrapped, since siblings may not count."""
    if not isinstance(schema, Mapping) or not isinstance(description, str) or "description" in schema:
        return schema
    return {**({"allOf": [schema]} if "$ref" in schema else schema), "description": description}


class _Document:
    """A document and the references in it.

    Args:
        document: the decoded document.
        mark: the keyword of the properties that its schemas are read without: ``readOnly`` for the schemas of requests,
            ``writeOnly`` for those of answers.
    """

    def __init__(self, document: Mapping[str, Any], mark: Literal["readOnly", "writeOnly"] = "readOnly") -> None:
        self.mark = mark
        version, swagger = document.get("openapi"), document.get("swagger")
        if isinstance(version, str) and version.startswith("3."):
            self.swagger = False
            self.reads_beside_ref = not version.startswith("3.0")  # before 3.1 nothing beside a $ref counts
        elif str(swagger) in ("2.0", "2"):
            self.swagger = True
            self.reads_beside_ref = False
        else:
            raise SchemaError(
                f"not a document of OpenAPI 3 or Swagger 2: openapi is {version!r}, swagger is {swagger!r}",
                hint="convert it to OpenAPI 3 first",
            )
        self.document = document
        self._names: dict[str, str] = {}  # reference -> name in $defs
        self._definitions: dict[str, tuple[Any, tuple[str, ...]]] = {}  # reference -> schema, references in it
        self._searched = 0  # number of schemas reached by allOf in all searches of `_marked`, over the whole document

    @cached_property
    def of_answers(self) -> _Document:
        """The document with its schemas as those of answers."""
        return _Document(self.document, "writeOnly")

    def operations(self) -> Iterator[Operation | SchemaError]:
        """Yield every operation in order; for a path item that cannot be read, its error.

        Raises:
            SchemaError: the paths are not an object.
        """
        paths = self.document.get("paths")
        if paths is not None and not isinstance(paths, Mapping):
            raise SchemaError(f"paths is a {type(paths).__name__}, not an object", place=Place(pointer="/paths"))
        for path, source in (paths or {}).items():
            if not str(path).startswith("/"):
                continue  # an extension
            pointer = f"/paths/{escape(path)}"
            try:
                item = self.resolve(source, pointer)
                shared = _list(item.get("parameters"), "parameters", pointer)
            except SchemaError as error:
                yield error
                continue
            methods = {method: (f"{pointer}/{method}", item.get(method)) for method in METHODS}
            more = item.get("additionalOperations")
            for method, body in more.items() if isinstance(more, Mapping) else ():
                methods[method] = (f"{pointer}/additionalOperations/{escape(method)}", body)
            for method, (where, body) in methods.items():
                if not isinstance(body, Mapping):
                    continue
                name = body.get("operationId")
                if not isinstance(name, str) or not name:
                    name = re.sub(r"[^A-Za-z0-9]+", "_", f"{method}_{path}").strip("_")
                yield Operation(name, method, path, where, body, shared, self)

    def resolve(self, source: Any, pointer: str) -> Mapping[str, Any]:
        """Return the object that a reference, or a chain of references, leads to; an object that is none as it is, and
        an empty one for what is no object.

        Raises:
            SchemaError: a reference leads to nothing, to another document, or in a circle.
        """
        *_, last = self._steps(source, pointer)
        return last

    def stated(self, schema: Any, pointer: str) -> list[Mapping[str, Any]]:
        """Return the objects whose keywords count in a schema: itself and those that its references lead to, of which
        only the last counts before OpenAPI 3.1.

        Raises:
            SchemaError: see `resolve`.
        """
        steps = list(self._steps(schema, pointer))
        return steps if self.reads_beside_ref else steps[-1:]

    def _steps(self, source: Any, pointer: str) -> Iterator[Mapping[str, Any]]:
        """Yield an object of the document, and those that its chain of references leads to, one after the other."""
        seen: set[str] = set()
        while isinstance(source, Mapping) and isinstance(source.get("$ref"), str):
            yield source
            reference = source["$ref"]
            if reference in seen:
                raise SchemaError(f"the reference {reference} is circular", place=Place(pointer=pointer))
            seen.add(reference)
            source = self.find(reference, pointer)
        yield source if isinstance(source, Mapping) else {}

    def find(self, reference: str, pointer: str) -> Any:
        """Return the target of a reference.

        Raises:
            SchemaError: there is none in this document.
        """
        if not reference.startswith("#/"):
            raise SchemaError(
                f"the reference {reference} refers to another document",
                hint="copy the referenced object into this document: remote references are not loaded",
                place=Place(pointer=pointer),
            )
        try:
            return resolve_local(self.document, reference)
        except LookupError:
            raise SchemaError(
                f"the reference {reference} cannot be resolved",
                hint="correct the document",
                place=Place(pointer=pointer),
            ) from None

    def standalone(self, schema: dict[str, Any], pointer: str) -> dict[str, Any]:
        """Return a schema with everything that it refers to in its own ``$defs``, as Draft 2020-12.

        The schemas there are shared with the other tools of the document.
        """
        read, waiting = self._read(schema, pointer)
        body = to_json_schema(read)
        assert isinstance(body, dict)  # a mapping converts to a dict
        definitions: dict[str, Any] = {}
        queue = list(waiting)
        for reference in queue:
            name = self._names[reference]
            if name not in definitions:
                definitions[name], more = self._definition(reference, pointer)
                queue += more
        return {**body, "$defs": definitions} if definitions else dict(body)

    def _definition(self, reference: str, pointer: str) -> tuple[Any, tuple[str, ...]]:
        """Return the schema that a reference leads to, and the references in it; read and converted once for all
        operations."""
        found = self._definitions.get(reference)
        if found is None:
            schema, references = self._read(self.find(reference, pointer), pointer)
            try:
                found = to_json_schema(schema), references
            except (SchemaError, LimitError) as error:
                where = f"/$defs/{escape(self._name(reference))}{error.place.pointer or ''}"
                raise type(error)(error.message, hint=error.hint, place=replace(error.place, pointer=where)) from error
            self._definitions[reference] = found
        return found

    def _name(self, reference: str) -> str:
        """Return the name in ``$defs`` for what a reference leads to: the same in all tools of the document."""
        if reference not in self._names:
            short = unescape(unquote(reference.rsplit("/", 1)[-1]))
            taken = set(self._names.values())
            self._names[reference] = short if short not in taken else f"{short}_{len(taken)}"
        return self._names[reference]

    def _read(self, schema: Any, pointer: str) -> tuple[Any, tuple[str, ...]]:
        """Return a schema of the document as JSON Schema, without marked properties, and the references in it."""
        references: dict[str, None] = {}

        def walk(part: Any, depth: int, marked: frozenset[str] = frozenset()) -> Any:
            """Return a part of the schema as JSON Schema; ``marked`` are the names of the properties that a schema
            around it leaves out, if this part is in its ``allOf``."""
            if depth > _MAX_NESTED:
                raise _too_deep(pointer)
            if isinstance(part, list):
                return [walk(item, depth + 1, marked) for item in part]
            if not isinstance(part, Mapping):
                return part
            result: dict[str, Any] = {}
            if isinstance(part.get("$ref"), str):
                references[part["$ref"]] = None
                result["$ref"] = f"#/$defs/{escape(self._name(part['$ref']))}"
                if not self.reads_beside_ref:
                    return result
            marked = marked | self._marked(part, pointer)
            for key, value in part.items():
                if (key == "$ref" and isinstance(value, str)) or key in _DROPPED:
                    continue
                if str(key).startswith("x-"):  # of other programs, unless it is ours
                    if key in _OURS:
                        result[key] = value
                    continue
                if key in KEYWORDS.schema_maps and isinstance(value, Mapping):
                    left_out = marked if key == "properties" else ()
                    result[key] = {name: walk(sub, depth + 1) for name, sub in value.items() if name not in left_out}
                elif key == "required" and isinstance(value, list):
                    result[key] = [name for name in value if name not in marked]
                elif key in KEYWORDS.data or key == "required":
                    result[key] = value
                else:
                    result[key] = walk(value, depth + 1, marked if key == "allOf" else frozenset())
            return _with_discriminator(part, result)

        try:
            return walk(schema, 0), tuple(references)
        except RecursionError:  # the caller's own stack was deep already
            raise _too_deep(pointer) from None

    def _marked(self, schema: Mapping[str, Any], pointer: str) -> frozenset[str]:
        """Return the names of a schema's properties that have the mark (`mark`), with those of its reference and its
        ``allOf``.

        Raises:
            LimitError: the searches of the document reached too many schemas.
        """
        if not ("properties" in schema or "allOf" in schema or "$ref" in schema):
            return frozenset()
        names: set[str] = set()
        queue: list[Any] = [schema]
        seen: set[int] = set()
        for part in queue:
            stated = self.stated(part, pointer)
            if part is not schema and id(stated[-1]) not in seen:
                self._searched += 1
            if self._searched > _MAX_SEARCHED:
                raise LimitError(
                    f"schemas include others by allOf more than {_MAX_SEARCHED:,} times, directly or not",
                    hint="write the properties in one schema",
                    place=Place(pointer=pointer),
                )
            pause()
            for each in stated:
                if id(each) in seen:
                    continue
                seen.add(id(each))
                properties, parts = each.get("properties"), each.get("allOf")
                for name, sub in properties.items() if isinstance(properties, Mapping) else ():
                    if any(one.get(self.mark) is True for one in self.stated(sub, pointer)):
                        names.add(name)
                queue += parts if isinstance(parts, list) else []
        return frozenset(names)


def _with_discriminator(part: Mapping[str, Any], read: dict[str, Any]) -> dict[str, Any]:
    """Return a union in which each alternative has the tags that lead to it by the ``discriminator``; another schema as
    it is.

    Without them the alternatives of open objects overlap, and a value that ``oneOf`` refuses, or one of no alternative,
    is all that a model can write (OpenAPI 3.1, section 4.8.25). Names of schemas that ``mapping`` does not have are no
    tags: documents often spell them in another way.

    Args:
        part: the union in the document.
        read: the same as JSON Schema, which is changed.
    """
    discriminator = part.get("discriminator")
    if not isinstance(discriminator, Mapping):
        return read
    name, mapping = discriminator.get("propertyName"), discriminator.get("mapping")
    if not isinstance(name, str) or not isinstance(mapping, Mapping):
        return read
    tags: dict[str, list[str]] = {}
    for tag, target in mapping.items():
        if isinstance(target, str):
            tags.setdefault(target.rsplit("/", 1)[-1], []).append(str(tag))

    def with_tags(stated: Any, schema: Any) -> Any:
        """Return an alternative with the tags of its reference; ``stated`` is the alternative in the document."""
        reference = stated.get("$ref") if isinstance(stated, Mapping) else None
        own = tags.get(reference.rsplit("/", 1)[-1]) if isinstance(reference, str) else None
        if own is None:
            return schema
        return {"allOf": [schema, {"properties": {name: {"enum": own}}, "required": [name]}]}

    for word in ("oneOf", "anyOf"):
        if isinstance(part.get(word), list):
            read[word] = list(map(with_tags, part[word], read[word]))
    return read


def _too_deep(pointer: str) -> LimitError:
    return LimitError(
        f"the schema is nested more than {MAX_DEPTH} levels deep",
        hint="use $ref for recursive structures",
        place=Place(pointer=pointer),
    )


def _list(value: Any, what: str, pointer: str) -> list[Any]:
    """Return an optional list of the document."""
    if value is not None and not isinstance(value, list):
        raise SchemaError(
            f"{what} is a {type(value).__name__}, not a list", hint="correct the document", place=Place(pointer=pointer)
        )
    return list(value or ())


def _is_form(media: str) -> bool:
    return media.split(";")[0].strip().lower() == "application/x-www-form-urlencoded"


def _is_text(media: str) -> bool:
    return media.strip().lower().startswith("text/")
