"""Nominal types: an argument of a type takes only values that a result showed under it, or ids that the user wrote."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from toolgrammar.core.json import to_pointer

from ..tool import Tool
from .compiled import same_value
from .notation import Field, Layer, Source, ToolRule

#: The keyword that names the type of a string or number; else the name of its definition does.
TYPE = "x-type"

#: Words of the user that may be ids: with a digit or a mark; a name is none.
_LIKE_IDS = {"pattern": "[0-9_@#:/-]"}

#: Maximum number of schemas above a type.
MAX_DEPTH = 24


def grounded_layer(tools: Sequence[Tool], free: Sequence[str]) -> Layer:
    """Return the layer in which arguments of types that results have come from these results, or from the user.

    Args:
        tools: the tools.
        free: arguments that are left as they are: ``"tool.argument"``, or ``"tool"`` for all of one.
    """
    fields: dict[str, list[Field]] = {}
    for tool in tools:
        schema = _result_of(tool)
        for name, steps in _types(schema, schema, (), (), 0):
            field = Field(tool.name, to_pointer(steps) or "**")
            fields.setdefault(name, []).append(field)
    rules = {}
    for tool in tools:
        found = {}
        for name, steps in _types(tool.parameters, tool.parameters, (), ("*",), 0):
            is_free = tool.name in free or ".".join((tool.name, *steps[:1])) in free
            if steps and name in fields and not is_free:
                found[steps] = (Source(user="words", schema=_LIKE_IDS), Source(seen=tuple(dict.fromkeys(fields[name]))))
        rules[tool.name] = ToolRule(found)
    return Layer(rules)


def _result_of(tool: Tool) -> Any:
    """Return the schema of a tool's result: its source's, or that of a function's return annotation; True: unknown."""
    if tool.output_schema is not None or tool.operation is not None:
        return tool.output_schema if tool.operation is None else tool.operation.answers()
    try:
        hints = get_type_hints(inspect.unwrap(tool.function), include_extras=True) if tool.function else {}
        return TypeAdapter(hints["return"]).json_schema(mode="serialization")
    except Exception:  # a return annotation may be of names that exist for type checkers alone
        return True


def _types(
    schema: Any, root: Any, steps: tuple[str, ...], item: tuple[str, ...], depth: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the named types of strings and numbers in a schema, each with the steps that lead to it.

    Args:
        schema: the schema.
        root: the schema in which its references are.
        steps: what leads to it.
        item: the step of an item of a list.
        depth: number of schemas above it.
    """
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return
    said = schema.get(TYPE)
    if isinstance(said, str) and said:
        yield said, steps
    for inner in same_value(schema, root):
        if "$ref" in schema and _is_named(inner):
            yield str(schema["$ref"]).rpartition("/")[2], steps
        yield from _types(inner, root, steps, item, depth + 1)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _types(inner, root, (*steps, name), item, depth + 1)
    items = [schema.get("items"), *(schema.get("prefixItems") or ())]
    for inner in items:
        yield from _types(inner, root, (*steps, *item), item, depth + 1)


def _is_named(definition: Any) -> bool:
    """Return True for a definition of strings or numbers that its name says the type of."""
    is_scalar = isinstance(definition, Mapping) and definition.get("type") in ("string", "integer", "number")
    return is_scalar and {TYPE, "enum", "const"}.isdisjoint(definition)
