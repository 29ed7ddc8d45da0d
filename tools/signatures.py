"""Anything that describes a tool, as a `Tool`.

What is recognised, in this order: `Tool`; classes (Pydantic models of version 2 and 1, dataclasses, typed dicts);
tool objects of agent frameworks, by their shape and without importing the framework (LangChain, CrewAI, AutoGen, MCP);
tool dicts (OpenAI, Anthropic, MCP, Gemini, Bedrock, plain ``name``/``description``/``parameters``); JSON Schemas with a
``title``; functions and other callables. A string is TypeScript, which may declare several tools.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import sys
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import AliasPath, BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError

from ..core.errors import Place, SchemaError
from .dialects import is_type_name
from .functions import ArgumentsJsonSchema, tool_from_function
from .openapi import tools_from_openapi
from .tool import Tool
from .typed_dicts import readable
from .typescript import tools_from_typescript

_ONE_TEXT = {"type": "object", "properties": {"__arg1": {"type": "string"}}, "required": ["__arg1"]}
# Keys under which a mapping holds a whole list of tools.
_COLLECTIONS = ("tools", "function_declarations", "functionDeclarations")
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema")


def tool_from_any(source: Any) -> Tool:
    """One tool from any of the forms above.

    Raises:
        SchemaError: it is none of them, or cannot be a tool; names the tool, the parameter and the reason.
    """
    if isinstance(source, Tool):
        return source
    if inspect.isclass(source):
        return tool_from_class(source)
    if isinstance(source, Mapping):
        return tool_from_dict(source)
    shaped = _from_object(source)
    if shaped is not None:
        return shaped
    if callable(source):
        return tool_from_function(source)
    raise SchemaError(
        f"cannot make a tool of a {type(source).__name__}",
        hint="pass a Tool, a Pydantic model, a function, a tool dict or a JSON Schema with a title",
    )


def tools_from_any(sources: Any) -> Iterator[Tool]:
    """Every tool in a list, a single tool, a mapping with a list in it (MCP's ``tools/list``, Gemini), TypeScript."""
    if sources is None:
        return
    if isinstance(sources, str):
        yield from tools_from_typescript(sources)
        return
    if isinstance(sources, Mapping) and "jsonrpc" in sources and isinstance(sources.get("result"), Mapping):
        sources = sources["result"]  # the response of an MCP server as it came
    if isinstance(sources, Mapping) and any(isinstance(sources.get(key), str) for key in ("openapi", "swagger")):
        yield from tools_from_openapi(sources)
        return
    if isinstance(sources, Mapping):
        for key in _COLLECTIONS:
            if isinstance(sources.get(key), (list, tuple)) and not isinstance(sources.get("name"), str):
                for source in sources[key]:
                    yield from tools_from_any(source)
                return
        yield tool_from_any(sources)
    elif isinstance(sources, BaseModel) and isinstance(getattr(sources, "tools", None), list):
        yield from tools_from_any(typing.cast(Any, sources).tools)
    elif isinstance(sources, Iterable) and not isinstance(sources, (type, str, bytes, BaseModel)):
        for source in sources:
            # One level of nesting, for Gemini's [{"function_declarations": [...]}] and for TypeScript.
            yield from tools_from_any(source) if isinstance(source, (Mapping, str)) else (tool_from_any(source),)
    else:
        yield tool_from_any(sources)


def tool_from_class(cls: type[Any]) -> Tool:
    """A tool whose call builds an instance of a class: a Pydantic model, dataclass or typed dict.

    Raises:
        SchemaError: another kind of class, or a field without a JSON Schema.
    """
    name = cls.__name__
    if issubclass(cls, dict) or typing.is_typeddict(cls):
        if not typing.is_typeddict(cls):
            raise _not_a_tool(name, "a dict class says nothing about its keys", "use a TypedDict")
        return Tool(name, _class_doc(cls), _schema_of(TypeAdapter(readable(cls)), name), model=cls)
    if issubclass(cls, BaseModel):
        return _from_model(cls)
    if _is_pydantic_v1(cls):
        schema = dict(typing.cast(Any, cls).schema(by_alias=True))
        description = schema.pop("description", "")
        return Tool(name, description, {"$schema": "http://json-schema.org/draft-07/schema#", **schema}, model=cls)
    if dataclasses.is_dataclass(cls):
        return Tool(name, _class_doc(cls), _schema_of(TypeAdapter(cls), name), model=cls)
    raise _not_a_tool(name, "the class has no schema", "use a Pydantic model, a dataclass, a TypedDict or a function")


def tool_from_dict(source: Mapping[str, Any]) -> Tool:
    """A tool from a dict of any provider, or from a JSON Schema with a ``title``.

    Raises:
        SchemaError: a tool that runs at a provider (``{"type": "web_search"}``), or no tool at all.
    """
    for key in ("function", "toolSpec"):
        inner = source.get(key)
        if isinstance(inner, Mapping) and isinstance(inner.get("name"), str):
            return tool_from_dict(inner)
    kind, name = source.get("type"), source.get("name")
    schema_key = next((key for key in _SCHEMA_KEYS if key in source), None)
    if schema_key is None and isinstance(kind, str) and kind != "function" and not is_type_name(kind):
        raise SchemaError(
            f"a tool of type {kind!r} runs at a provider or takes free text; it has no schema that a call could follow",
            hint="give a function with a schema instead",
            place=Place(tool=name if isinstance(name, str) else kind),
        )
    if isinstance(name, str) and "properties" not in source:
        schema = source[schema_key] if schema_key else None
        if isinstance(schema, Mapping) and set(schema) == {"json"}:  # Bedrock wraps it once more
            schema = schema["json"]
        if inspect.isclass(schema):
            schema = _schema_like(schema, name)
        return Tool(name, _text(source.get("description")), typing.cast(Any, schema), **_about(source))
    title = source.get("title")
    if isinstance(title, str) and _looks_like_schema(source):
        body = {key: value for key, value in source.items() if key not in ("title", "description")}
        return Tool(title, _text(source.get("description")), body)
    if _looks_like_schema(source):
        raise SchemaError("a JSON Schema without a title has no name to be called by", hint='add "title"')
    raise SchemaError(
        f"a dict with the keys {sorted(map(str, source))} is not a tool",
        hint='for example {"name": ..., "description": ..., "parameters": {"type": "object", ...}}',
    )


def _from_object(source: Any) -> Tool | None:
    """A framework's tool object, told by its attributes; its lossless schema is taken, not the framework's version."""
    name = getattr(source, "name", None)
    if not isinstance(name, str):
        return None
    description = _text(getattr(source, "description", ""))
    if hasattr(source, "tool_call_schema"):  # LangChain: injected arguments are already left out
        if getattr(source, "args_schema", True) is None and "tool_input" in (getattr(source, "args", None) or ()):
            # A tool of one text: LangChain itself gives the model this schema.
            return Tool(name, description, _ONE_TEXT, function=_keywords(source.invoke))
        only_async = getattr(source, "func", True) is None and getattr(source, "coroutine", None) is not None
        run = _async_keywords(source.ainvoke) if only_async else _keywords(source.invoke)
        return Tool(name, description, _schema_like(source.tool_call_schema, name), function=run)
    if hasattr(source, "args_schema"):  # CrewAI
        return Tool(name, description, _schema_like(source.args_schema, name), function=getattr(source, "run", None))
    if callable(getattr(source, "args_type", None)):  # AutoGen
        return Tool(name, description, _schema_like(source.args_type(), name), function=_autogen(source))
    for key in ("inputSchema", "input_schema"):  # MCP
        if isinstance(getattr(source, key, None), Mapping):
            said = source.model_dump(by_alias=True) if isinstance(source, BaseModel) else vars(source)
            return Tool(name, description, dict(getattr(source, key)), **_about(said))
    return None


def _about(source: Mapping[str, Any]) -> dict[str, Any]:
    """What an MCP tool says of itself beside its schema."""
    annotations, output = source.get("annotations"), source.get("outputSchema")
    annotations = {k: v for k, v in annotations.items() if v is not None} if isinstance(annotations, Mapping) else {}
    return {
        "title": _text(source.get("title")) or _text(annotations.get("title")),
        "output_schema": dict(output) if isinstance(output, Mapping) else None,
        "annotations": annotations,
    }


def _keywords(invoke: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """A function of one dict, as a function of keyword arguments."""

    def call(**arguments: Any) -> Any:
        return invoke(arguments)

    return call


def _autogen(source: Any) -> Callable[..., Awaitable[Any]] | None:
    """What runs an AutoGen tool. The token that it wants is made by the package that the tool came with."""
    token = getattr(sys.modules.get("autogen_core"), "CancellationToken", None)
    if token is None or not callable(getattr(source, "run_json", None)):
        return None

    async def call(**arguments: Any) -> Any:
        cancellation = token()
        try:
            return await source.run_json(arguments, cancellation)
        except asyncio.CancelledError:
            cancellation.cancel()
            raise

    return call


def _async_keywords(invoke: Callable[[dict[str, Any]], Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same, awaited."""

    async def call(**arguments: Any) -> Any:
        return await invoke(arguments)

    return call


def _schema_like(source: Any, name: str) -> Any:
    """The parameters of a class or a schema; the class's own description is not the tool's."""
    if source is None or isinstance(source, Mapping):
        return source
    schema = dict(tool_from_class(source).parameters)
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


def _from_model(cls: type[BaseModel]) -> Tool:
    name = cls.__name__
    try:
        schema = cls.model_json_schema(by_alias=True, schema_generator=ArgumentsJsonSchema)
    except PydanticUserError as error:
        culprit = next((field for field, info in cls.model_fields.items() if not _has_schema(info.annotation)), None)
        reason = str(error).splitlines()[0]
        raise _not_a_tool(name, reason, "give the field a JSON-like type", culprit) from error
    for field, info in cls.model_fields.items():
        first = getattr(info.validation_alias, "choices", [info.validation_alias])[0]
        if isinstance(first, AliasPath):
            raise _not_a_tool(
                name,
                "its alias is a path into the data, which Pydantic's schema does not show",
                "nest a model, or put a plain alias first in AliasChoices",
                field,
            )
    root = schema.get("$defs", {}).get(name, {}) if "$ref" in schema else schema  # recursive models refer to themselves
    return Tool(name, root.get("description", ""), schema, model=cls)


def _schema_of(adapter: TypeAdapter[Any], name: str) -> dict[str, Any]:
    try:
        return adapter.json_schema(by_alias=True, schema_generator=ArgumentsJsonSchema)
    except PydanticUserError as error:
        raise _not_a_tool(name, str(error).splitlines()[0], "give the field a JSON-like type") from error


def _class_doc(cls: type[Any]) -> str:
    doc = inspect.getdoc(cls) or ""
    # dataclasses write their own signature as docstring when there is none
    return "" if doc.startswith((f"{cls.__name__}(", "dict() ->")) else doc


def _is_pydantic_v1(cls: type[Any]) -> bool:
    return any(base.__module__ == "pydantic.v1.main" for base in cls.__mro__)


def _looks_like_schema(source: Mapping[str, Any]) -> bool:
    return any(key in source for key in ("properties", "$ref", "anyOf", "oneOf", "allOf", "type", "$defs"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _has_schema(annotation: Any) -> bool:
    # In a list, since an adapter takes no configuration for what has its own.
    container: Any = list
    try:
        TypeAdapter(container[readable(annotation)], config={"arbitrary_types_allowed": True}).json_schema()
    except PydanticUserError:
        return False
    return True


def _not_a_tool(name: str, reason: str, hint: str, field: str | None = None) -> SchemaError:
    place = Place(tool=name, parameter=field)
    return SchemaError(f"cannot make a tool of the class {name}: {reason}", hint=hint, place=place)
