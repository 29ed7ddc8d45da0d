"""Tool dicts of providers, agent frameworks and data sets, and JSON Schemas with a title, as tools.

Providers differ in the wrapper around a tool, in the key of its parameters, and in their form: a JSON Schema, a map
from names to types, or a list. Each of the three has a table here.
"""

from __future__ import annotations

import inspect
import json
import logging
import marshal
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from toolgrammar.core.basics import TextMemo
from toolgrammar.core.errors import Place, SchemaError
from toolgrammar.core.json import to_pointer
from toolgrammar.core.schema import KEYWORDS, unread, warn_of_misspelt

from ..dialects import is_finite, is_type_name
from ..tool import Tool, text_parameters
from ..type_names import is_optional_type, schema_of_type

_logger = logging.getLogger("toolgrammar.tools")

#: Maximum number of keywords that a warning about a tool names.
MAX_UNREAD = 10

#: What dicts that caused no warning were read as, by their data: agents give the same tools with every request.
_KNOWN: TextMemo[bytes] = TextMemo(4_096)
#: One object, another one after each warning, by which `recognise` knows if a dict caused some.
_WARNED: deque[object] = deque((None,), maxlen=1)

#: Keys of a whole tool inside of a dict: OpenAI and its likes, Bedrock.
_WRAPPERS = ("function", "toolSpec", "tool_spec")
#: Keys of a list of tools: MCP's result and Bedrock's ``toolConfig``, Gemini, requests to OpenAI of 2023.
_LISTS = ("tools", "function_declarations", "functionDeclarations", "functions")
#: Keys that may accompany a list of tools and show the meaning of the other keys.
_BESIDE_LISTS = frozenset(
    {"nextCursor", "next_cursor", "_meta", "meta", "ttlMs", "cacheScope", "resultType", "toolChoice", "tool_choice"}
)
#: Keys of the parameters -> whether a parameter in a map or list that does not say so is required.
_PARAMETERS = {
    "parameters": True,  # OpenAI, Gemini, Mistral, Cohere 2, Ollama, BFCL, xLAM, Llama, Hermes, Qwen-Agent, watsonx
    "input_schema": True,  # Anthropic
    "inputSchema": True,  # MCP, Bedrock
    "parameters_json_schema": True,  # Gemini
    "parametersJsonSchema": True,
    "parameter_definitions": False,  # Cohere 1
    "parameterDefinitions": False,
    "inputs": True,  # smolagents
    "args": True,  # LangChain's and DSPy's tools
    "arguments": True,  # Granite
    "args_schema": True,
    "schema": True,  # LangChain.js
}
_NAMES = ("name", "tool_name", "identifier")  # Llama Stack has identifiers
#: Keys that say nothing about which calls are valid.
_OTHERS = frozenset(
    {
        *_NAMES, "type", "description", "desc", "title", "annotations", "strict", "required", "id", "icons", "_meta",
        "meta", "metadata", "execution", "output_schema", "outputSchema", "output_type", "response",
        "response_json_schema",
        "responseJsonSchema", "return", "returns", "behavior", "cache_control", "cachePoint", "defer_loading",
        "allowed_callers", "input_examples", "eager_input_streaming", "requireConfirmation", "$schema",
    }
)  # fmt: skip
#: Keywords that only a JSON Schema has, and what their values are. A map of parameters has maps as values.
_MARKS: dict[str, Callable[[Any], bool]] = {
    "type": lambda value: isinstance(value, (str, list, tuple, int)),
    "type_": lambda value: isinstance(value, (str, int)),
    "properties": lambda value: (
        isinstance(value, Mapping) and all(isinstance(item, (Mapping, bool)) for item in value.values())
    ),
    "required": lambda value: isinstance(value, (list, tuple)),
    "$ref": lambda value: isinstance(value, str),
    "ref": lambda value: isinstance(value, str),
    **dict.fromkeys(
        ("anyOf", "oneOf", "allOf", "any_of", "one_of", "all_of"), lambda value: isinstance(value, (list, tuple))
    ),
    "additionalProperties": lambda value: isinstance(value, bool),
    "$schema": lambda value: isinstance(value, str),
    "description": lambda value: isinstance(value, str),
    "title": lambda value: isinstance(value, str),
    "$defs": lambda value: isinstance(value, Mapping),
}
#: Keywords whose value is a schema, a map of schemas, or data that looks like one.
_OF_SCHEMAS = (KEYWORDS.one_schema | KEYWORDS.schema_maps | KEYWORDS.data) | {
    "items",
    "dependencies",
    "dependentRequired",
    "discriminator",
    "defs",
    "additional_properties",
}


def recognise(source: Any) -> list[Tool] | None:
    """Return the tool that a dict describes, None for another object; for a dict with a list of tools, see `list_in`.

    Raises:
        SchemaError: as `tools_from_dict`.
    """
    if not isinstance(source, Mapping):
        return None
    try:
        key = marshal.dumps(source, 2)  # type: ignore[arg-type]  # equal for equal data, and refused for all else
    except ValueError:
        return tools_from_dict(source)
    known = _KNOWN.get(key)
    if known is not None:
        return [_as_read(fields) for fields in marshal.loads(known)]
    last_warning = _WARNED[-1]
    found = tools_from_dict(source)
    if last_warning is _WARNED[-1]:  # a dict that causes warnings is read each time, so that they come each time
        with suppress(ValueError):
            fields = [vars(tool) for tool in found]
            data = marshal.dumps(fields, 2)
            if marshal.loads(data) == fields:  # numbers of NumPy are bytes to it
                _KNOWN.put(key, data, len(key) + len(data))
    return found


def _as_read(fields: dict[str, Any]) -> Tool:
    """Return a tool with the fields of one that was read of equal data."""
    tool = object.__new__(Tool)
    vars(tool).update(fields)
    return tool


#: Keys under which Bedrock has ``{"json": schema}``.
_OF_BEDROCK = ("inputSchema", "input_schema")


def tools_from_dict(source: Mapping[str, Any]) -> list[Tool]:
    """Return the tool in a dict of any provider, or of a JSON Schema with a ``title``; a list, since some dicts
    between tools are not tools (Bedrock's ``cachePoint``).

    Args:
        source: the dict. Keys whose value is None are ignored. A class may take the place of the parameters' schema.

    Raises:
        SchemaError: a tool that runs at a provider (``{"type": "web_search"}``), a dict whose parameters cannot be
            found or read, or no tool at all; names the tool and the key.
    """
    if source.get("defer_loading") is True:
        plain = {key: value for key, value in source.items() if key != "defer_loading"}
        return [tool.changed(deferred=True) for tool in tools_from_dict(plain)]
    no_string = next((key for key in source if not isinstance(key, str)), None)
    if no_string is not None:
        raise SchemaError(
            f"the key {no_string!r} of a tool dict is not a string",
            hint="use strings",
            place=Place(tool=_name_of(source)),
        )
    source = {key: value for key, value in source.items() if value is not None}
    for key in _WRAPPERS:
        inner = source.get(key)
        if isinstance(inner, Mapping) and _name_of(inner) is not None:
            _warn_of_unknown([other for other in source if other not in _WRAPPERS], _name_of(inner))
            return tools_from_dict(inner)
    if set(source) == {"cachePoint"}:
        return []  # Bedrock: where the prompt may be cached
    if source.get("type") == "custom" and not any(key in source for key in _PARAMETERS):
        return [_custom(source)]
    name = _name_of(source)
    schema_keys = [key for key in _PARAMETERS if key in source]
    kind = source.get("type")
    if not schema_keys and isinstance(kind, str) and kind != "function" and not is_type_name(kind):
        raise SchemaError(
            f"a tool of type {kind!r} runs at a provider; it has no schema that a call could follow",
            hint="give a function with a schema instead",
            place=Place(tool=kind if name is None else name),
        )
    title = source.get("title")
    is_titled_schema = "properties" in source and isinstance(title, str) and not schema_keys
    if name is not None and not is_titled_schema:
        return [_named(source, name, schema_keys)]
    if isinstance(title, str) and _looks_like_schema(source):
        body = {key: value for key, value in source.items() if key not in ("title", "description")}
        return [Tool(title, _text(source.get("description")), body)]
    if _looks_like_schema(source):
        raise SchemaError("a JSON Schema without a title has no name to be called by", hint='add "title"')
    raise SchemaError(
        f"a dict with the keys {sorted(map(str, source))} is not a tool",
        hint='for example {"name": ..., "description": ..., "parameters": {"type": "object", ...}}',
    )


def _custom(source: Mapping[str, Any]) -> Tool:
    """Return OpenAI's custom tool, in the form of chat completions or of responses."""
    inner = source["custom"] if isinstance(source.get("custom"), Mapping) else source
    name = _name_of(inner)
    if name is None:
        raise SchemaError("a custom tool has no name", hint='add "name"')
    _warn_of_unknown([key for key in inner if key not in (*_OTHERS, "format")], name)
    with_format = text_parameters(grammar_of(inner.get("format"), name))
    return Tool(name, _text(inner.get("description")), with_format)


def grammar_of(given: Any, tool: str) -> Mapping[str, Any] | None:
    """Return the grammar in the ``format`` of a custom tool; None: any text.

    Raises:
        SchemaError: it is of another kind.
    """
    if given is None or given == {"type": "text"}:
        return None
    if isinstance(given, Mapping) and given.get("type") == "grammar":
        inner = given["grammar"] if isinstance(given.get("grammar"), Mapping) else given
        return {key: value for key, value in inner.items() if key != "type"}
    raise SchemaError(
        f"the format of a custom tool is {given!r}",
        hint='{"type": "text"}, or {"type": "grammar", "syntax": "lark", "definition": ...}',
        place=Place(tool=tool, pointer="/format"),
    )


def list_in(source: Mapping[str, Any]) -> list[Any] | None:
    """Return the list of tools that a dict holds, None if it holds none.

    Raises:
        SchemaError: the dict also has tools that run at the provider, or it is a choice between tools.
    """
    if source.get("type") == "allowed_tools":
        raise SchemaError(
            "'allowed_tools' is a choice between tools, not a tool",
            hint="pass the tools themselves, and the names of the allowed tools as allowed=",
        )
    if source.get("type") == "namespace" and isinstance(source.get("tools"), (list, tuple)):  # OpenAI
        return list(source["tools"])
    if _name_of(source) is not None:
        return None
    if _is_map_of_tools(source):
        return [{"name": name, **tool} for name, tool in source.items()]
    for key in ("result", "toolConfig"):  # the response of an MCP server as it came; Bedrock
        if isinstance(source.get(key), Mapping) and (key != "result" or "jsonrpc" in source):
            return list_in(source[key])
    given = {key: value for key, value in source.items() if value is not None}
    lists = [key for key in _LISTS if isinstance(given.get(key), (list, tuple))]
    if not lists:
        return None
    others = sorted(str(key) for key in given if key not in lists and key not in _BESIDE_LISTS)
    if "functions" not in lists and "tools" not in lists and others:
        raise SchemaError(
            f"in addition to {lists[0]} the dict has {', '.join(others)}: tools that run at the provider",
            hint="give functions with schemas only",
            place=Place(pointer=f"/{others[0]}"),
        )
    return [tool for key in lists for tool in given[key]]


def _is_map_of_tools(source: Mapping[str, Any]) -> bool:
    """Return True for tools by their names, as Vercel's AI SDK has them."""
    return bool(source) and all(
        isinstance(name, str)
        and name not in _WRAPPERS
        and name not in KEYWORDS
        and isinstance(tool, Mapping)
        and _name_of(tool) is None
        and any(isinstance(tool.get(key), Mapping) for key in ("inputSchema", "parameters"))
        for name, tool in source.items()
    )


def parameter_map(entries: Mapping[str, Any], tool: str, *, required: bool = True) -> dict[str, Any]:
    """Return a map from names to types as the schema of an object.

    A parameter is optional if it says so (``required``, ``optional``, ``nullable``, a type like ``str, optional``) or
    has a default.

    Args:
        entries: for each parameter a schema of some dialect.
        tool: the tool's name, for errors.
        required: a parameter is required unless it says otherwise.
    """
    needed = []
    for name, entry in entries.items():
        if not isinstance(entry, Mapping):
            raise SchemaError(
                f"a parameter is described by a dict, not by {type(entry).__name__}",
                hint='for example {"type": "string", "description": ...}',
                place=Place(tool=tool, parameter=str(name)),
            )
        stated = entry.get("required")
        if isinstance(stated, (bool, str)):
            if str(stated).lower() == "true":
                needed.append(name)
            continue
        types = (entry.get(key) for key in ("type", "param_type", "parameter_type"))
        optional = (
            str(entry.get("optional")).lower() == "true"
            or entry.get("nullable") is True
            or entry.get("default") is not None
            or any(map(is_optional_type, types))
        )
        if required and not optional:
            needed.append(name)
    properties = {name: _with_typed_default(entry) for name, entry in entries.items()}
    return {"type": "object", "properties": properties, **({"required": needed} if needed else {})}


def _with_typed_default(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a parameter whose default is of its type, where it is written as text: xLAM's ``"default": "3"``."""
    text, kind = entry.get("default"), entry.get("type")
    named = schema_of_type(kind) if isinstance(text, str) and isinstance(kind, str) else None
    types: Any = {"integer": int, "number": (int, float), "boolean": bool}.get(str((named or {}).get("type")))
    if types is None:
        return entry
    try:
        value = json.loads(text.lower())  # type: ignore[union-attr]  # a string, as there is a type
    except ValueError:
        return entry
    fits = isinstance(value, types) and isinstance(value, bool) == (types is bool) and is_finite(value)
    return {**entry, "default": value} if fits else entry


def _named(source: Mapping[str, Any], name: str, keys: list[str]) -> Tool:
    """Return the tool that a dict with a name describes; ``keys`` are those under which it may have parameters.

    Without one, the schema stands beside the name (``properties``), or the tool has no parameters.

    Raises:
        SchemaError: there are several such keys, or parameters under an unknown one.
    """
    if len(keys) > 1:
        raise SchemaError(
            f"the dict has parameters under {' and '.join(keys)}", hint="keep one of them", place=Place(tool=name)
        )
    rest = {key: value for key, value in source.items() if key not in keys and key not in _OTHERS}
    listed = source.get("required")  # beside the parameters, the names of those that are required
    required = [*listed] if isinstance(listed, (list, tuple)) else None
    if keys:
        # Of the functions of Bedrock's agents, parameters are optional unless they say otherwise.
        required_unless_said = _PARAMETERS[keys[0]] and required is None and "requireConfirmation" not in source
        schema = _schema(source[keys[0]], keys[0], name, required=required_unless_said)
    elif isinstance(source.get("properties"), Mapping):  # the schema beside the name
        schema = {key: source[key] for key in source if key not in (*_NAMES, "description", "title", "strict")}
        rest = {}
    else:
        schema = None
        unread = sorted(key for key, value in rest.items() if isinstance(value, (Mapping, list, tuple)))
        if unread:
            raise SchemaError(
                f"the dict has no known key for parameters, but {', '.join(unread)}",
                hint=f"put the parameters' schema under one of {', '.join(_PARAMETERS)}",
                place=Place(tool=name, pointer=f"/{unread[0]}"),
            )
    _warn_of_unknown(rest, name)
    if keys and required is not None and isinstance(schema, Mapping) and not schema.get("required"):
        schema = {**schema, "required": required}
    description = _text(source.get("description")) or _text(source.get("desc"))
    tool = Tool(name, description, schema, **about(source))
    _warn_of_keywords(tool)
    return tool


def _warn_of_keywords(tool: Tool) -> None:
    """Warn of keywords and formats that are probably misspelt, and log the others that constrain nothing."""
    # A format of no known name is the user's own, unless it resembles a known one.
    found = [each for each in islice(unread(tool.parameters), MAX_UNREAD) if each.code != "unread_format" or each.hint]
    if found:
        places = [f"{each.place.pointer}{to_pointer((each.place.keyword or '',))}" for each in found]
        _logger.warning("tool %r: keywords without effect: %s", tool.name, ", ".join(places))
        _WARNED.append(object())
    warn_of_misspelt([each for each in found if each.hint], f"tool {tool.name!r}")


def _schema(value: Any, key: str, tool: str, *, required: bool = True, wrapped: bool = False) -> Any:
    """Return parameters of any form as a schema: a class, a list, a map from names to types, or a JSON Schema.

    A dict is a JSON Schema if it has one of its keywords with a value of the right kind (`_MARKS`).

    Args:
        value: the value of the key.
        key: the key.
        tool: the tool's name, for errors.
        required: a parameter of a map is required unless it says otherwise.
        wrapped: it was in Bedrock's wrapper.
    """
    if inspect.isclass(value):
        from .classes import parameters_of  # which imports Pydantic

        return parameters_of(value, tool)
    if isinstance(value, (list, tuple)):
        return _parameter_list(value, tool)
    if not isinstance(value, Mapping):
        return value
    if not wrapped and set(value) == {"json"} and key in _OF_BEDROCK:  # which wraps the schema once more
        return _schema({} if value["json"] is None else value["json"], key, tool, required=required, wrapped=True)
    if key == "inputSchema" and set(value) == {"jsonSchema"}:  # Vercel
        return _schema(value["jsonSchema"], key, tool, required=required, wrapped=True)
    given = {name: item for name, item in value.items() if item is not None}
    marks = [name for name, item in given.items() if name in _MARKS and _MARKS[name](item)]
    if given and not marks and all(isinstance(item, Mapping) for item in given.values()):
        return parameter_map(given, tool, required=required)
    if marks or not given:
        unknown = next(
            (
                name
                for name, item in given.items()
                if name not in _OF_SCHEMAS
                and (_is_parameter(name, item) or ("properties" not in given and _holds_parameters(name, item)))
            ),
            None,
        )
        if unknown is not None:
            raise SchemaError(
                f"{unknown!r} is not a keyword of JSON Schema",
                hint='put the parameters under "properties"',
                place=Place(tool=tool, parameter=str(unknown), pointer=f"/{unknown}"),
            )
        return value
    raise SchemaError(
        f"{key} is neither a JSON Schema nor a map of parameters: it has {', '.join(sorted(map(str, given)))}",
        hint='for example {"type": "object", "properties": {...}}',
        place=Place(tool=tool, pointer=f"/{key}"),
    )


def _is_parameter(name: object, value: Any) -> bool:
    """Return True if a key and its dict describe a parameter."""
    types = ("type", "type_", "param_type", "parameter_type", "$ref")
    return (
        isinstance(name, str)
        and not name.startswith("x-")
        and isinstance(value, Mapping)
        and any(isinstance(value.get(key), str) for key in types)
    )


def _holds_parameters(name: object, value: Any) -> bool:
    """Return True if an unknown key holds a map of parameters, as ``property`` instead of ``properties``."""
    if (
        name in KEYWORDS
        or name in KEYWORDS.foreign_annotations
        or name in _OF_SCHEMAS
        or not isinstance(value, Mapping)
    ):
        return False
    return isinstance(name, str) and bool(value) and all(_is_parameter(key, entry) for key, entry in value.items())


def _parameter_list(entries: Any, tool: str) -> dict[str, Any]:
    """Return a list of parameters, each with its name, as the schema of an object (Qwen-Agent, Llama Stack)."""
    named: dict[str, Any] = {}
    required = False
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise SchemaError(
                "a list of parameters must contain dicts with a name",
                hint='for example {"name": "city", "type": "string", "required": True}',
                place=Place(tool=tool, pointer=f"/parameters/{index}"),
            )
        named[entry["name"]] = {key: value for key, value in entry.items() if key != "name"}
        required = required or "parameter_type" in entry  # Llama Stack's are required unless they say otherwise
    return parameter_map(named, tool, required=required)


def about(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return title, output schema and annotations of a tool, as keyword arguments of `Tool`."""
    annotations, output = source.get("annotations"), source.get("outputSchema") or source.get("output_schema")
    annotations = {k: v for k, v in annotations.items() if v is not None} if isinstance(annotations, Mapping) else {}
    return {
        "title": _text(source.get("title")) or _text(annotations.get("title")),
        "output_schema": dict(output) if isinstance(output, Mapping) else None,
        "annotations": annotations,
    }


def _warn_of_unknown(keys: Iterable[str], tool: str | None) -> None:
    """Log the keys of a tool dict that mean nothing here."""
    unknown = sorted(str(key) for key in keys if key not in _OTHERS)
    if unknown:
        _logger.warning("tool %r: keys without effect: %s", tool, ", ".join(unknown))
        _WARNED.append(object())


def _name_of(source: Mapping[str, Any]) -> str | None:
    return next((source[key] for key in _NAMES if isinstance(source.get(key), str)), None)


def _looks_like_schema(source: Mapping[str, Any]) -> bool:
    return any(key in source for key in ("properties", "$ref", "anyOf", "oneOf", "allOf", "type", "$defs"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
