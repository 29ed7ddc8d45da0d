"""Policies as schemas: the parameters of a tool with the sources of its arguments, in keywords that tool sets have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from toolgrammar.core.errors import Place, PolicyError
from toolgrammar.core.json import dump_json, resolve_local, to_pointer
from toolgrammar.core.schema import KEYWORDS

from ..closed_schema import close_objects
from ..tool import Tool
from .notation import Field, Layer, Rule, Source, ToolRule

#: Marks a field of an output schema whose values are not trusted (false) or are (true).
TRUSTED = "x-trusted"

#: Maximum number of references and combined schemas between a schema and one of the same value: they may be recursive.
MAX_DEPTH = 64

#: Keywords that list schemas of the same value.
_SAME = ("allOf", "anyOf", "oneOf")

#: What a rule of origins does not restrict: these carry no text.
_NO_TEXT = {"type": ["boolean", "null"]}


def restricted(
    tool: Tool, rules: Sequence[tuple[ToolRule, Layer]], results: Mapping[str, Any], is_open: bool = False
) -> Tool:
    """Return a tool whose calls obey some rules, and that shows models what it showed before.

    Args:
        tool: the tool.
        rules: the rule of each layer that names it.
        results: schemas of results, by names of tools.
        is_open: its parameters are read open.

    Raises:
        PolicyError: a rule is for an argument that the tool does not have.
    """
    compiler = _Compiler(tool, results)
    parts = [part for rule, layer in rules if (part := compiler.arguments(rule, layer)) is not True]
    if not parts:
        return tool
    # A condition beside the parameters would declare the members that it names, for the closed reading and for
    # unevaluatedProperties. So the parameters are closed first, and a condition is negated twice: it allows the same
    # values, and declares nothing.
    own = tool.parameters if is_open else _object(close_objects(tool.parameters))
    conditions = [{"not": {"not": part}} for part in parts]
    parameters = {**own, "allOf": [*own.get("allOf", ()), *conditions]}
    if compiler.definitions:
        parameters["$defs"] = {**own.get("$defs", {}), **compiler.definitions}
    return tool.restricted(parameters)


def _object(schema: Any) -> dict[str, Any]:
    assert isinstance(schema, dict)  # that of an object stays one
    return schema


class _Compiler:
    """Makes the schemas of rules; equal ones are one definition.

    Attributes:
        definitions: the definitions that they refer to.
    """

    def __init__(self, tool: Tool, results: Mapping[str, Any]) -> None:
        self._tool = tool
        self._results = results
        taken = tool.parameters.get("$defs", {})
        prefixes = map("policy{}-".format, range(len(taken) + 1))
        self._prefix = next(each for each in prefixes if not any(name.startswith(each) for name in taken))
        self.definitions: dict[str, Any] = {}

    def arguments(self, rule: ToolRule, layer: Layer) -> Any:
        """Return the schema of the arguments that a rule allows; True: any."""
        for steps in rule.arguments:
            if not has_value_at(self._tool.parameters, self._tool.parameters, steps):
                known = ", ".join(self._tool.parameters.get("properties", {})) or "none"
                raise PolicyError(
                    f"the tool has no argument {to_pointer(steps)}",
                    hint=f"its arguments are {known}; an item of a list is *",
                    place=Place(tool=self._tool.name, pointer=to_pointer(steps)),
                )
        return self._at(rule.arguments, layer)

    def _at(self, rules: Mapping[tuple[str, ...], Rule], layer: Layer) -> Any:
        """Return the schema of a value; True: any.

        Args:
            rules: the rules of the value (of no steps) and of values in it, by the steps from here.
            layer: the layer of the rules.
        """
        own = self.value(rules[()], layer) if () in rules else True
        members = {
            name: self._at({steps[1:]: rule for steps, rule in rules.items() if steps[:1] == (name,)}, layer)
            for name in dict.fromkeys(steps[0] for steps in rules if steps)
        }
        others = members.pop("*", True)
        inner: dict[str, Any] = {"properties": members} if members else {}
        if others is not True:
            inner |= {"additionalProperties": others, "items": others}
        if own is True or own == {}:
            return inner or True
        return {"allOf": [own, inner]} if inner else own

    def value(self, rule: Rule, layer: Layer) -> Any:
        """Return the schema of the values that a rule allows; True: any."""
        if any(source.is_open for source in rule):
            return True
        if not rule:
            return False
        options = [self._source(source, layer) for source in rule]
        if not any(source.is_in_parts for source in rule):
            return {"anyOf": options}
        # Lists and objects of allowed values are allowed, at any depth: a recursive definition.
        name = f"{self._prefix}{len(self.definitions)}"
        self.definitions[name] = True  # takes the name: `_source` below adds definitions of its own
        itself = {"$ref": f"#/$defs/{name}"}
        # Names of members need a source too, except the names in the tool's parameters. An enum may not be empty.
        names = {"enum": sorted(declared_names(self._tool.parameters)) or [""]}
        in_parts: list[Any] = [{"type": "array", "items": itself}]
        in_parts.append(
            {"type": "object", "propertyNames": {"anyOf": [names, *options]}, "additionalProperties": itself}
        )
        if any(source.has_origin for source in rule):
            in_parts.append(_NO_TEXT)
        self.definitions[name] = {"anyOf": [*options, *in_parts]}
        return itself

    def _source(self, source: Source, layer: Layer) -> Any:
        """Return the schema of the values of one source: all of its conditions hold."""
        parts: list[Any] = []
        if source.user is not None:
            parts.append(self._shared({"x-copied": {"source": "user", "unit": source.user, "numbers": True}}))
        if source.seen:
            parts.append(self._fields(source.seen, layer, "x-seen", {}))
        if source.copied:
            parts.append(self._fields(source.copied, layer, "x-copied", {"source": "tool", "numbers": True}))
        if source.values is not None:
            parts.append({"enum": list(source.values)})
        if source.schema is not True:
            schema = source.schema
            if isinstance(schema, Mapping) and '"$ref"' in dump_json(schema):  # its references lead into itself
                schema = self._shared({"$id": f"urn:toolgrammar:{self._prefix}{len(self.definitions)}", **schema})
            parts.append(schema)
        return parts[0] if len(parts) == 1 else {"allOf": parts}

    def _fields(self, fields: Iterable[Field], layer: Layer, keyword: str, members: Mapping[str, Any]) -> Any:
        """Return the schema of values of some fields of results: ``{"x-seen": {"tool": ..., "field": ...}}`` for each.

        Args:
            fields: the fields, of which one suffices.
            layer: says which fields are not trusted.
            keyword: ``x-seen`` or ``x-copied``.
            members: further members of the keyword's value.
        """
        options = []
        for field in fields:
            value = {**members, "tool": field.tool, "field": field.name}
            if without := untrusted(field.tool, layer, self._results):
                value["without"] = without
            options.append(self._shared({keyword: value}))
        return options[0] if len(options) == 1 else {"anyOf": options}

    def _shared(self, schema: Any) -> Any:
        """Return a reference to a definition of a schema, one for equal schemas."""
        name = next((name for name, known in self.definitions.items() if known == schema), None)
        if name is None:
            name = f"{self._prefix}{len(self.definitions)}"
            self.definitions[name] = schema
        return {"$ref": f"#/$defs/{name}"}


def declared_names(parameters: Any) -> frozenset[str]:
    """Return the names in the ``properties`` of a schema and of the schemas in it."""
    every = (schema.get("properties") for schema in KEYWORDS.every_schema(parameters))
    return frozenset(name for properties in every if isinstance(properties, Mapping) for name in properties)


def untrusted(tool: str, layer: Layer, results: Mapping[str, Any]) -> list[str]:
    """Return the fields of a tool's results that are not trusted, as `Field.name`: by the layer, or by their schema
    unless the layer trusts them."""
    by_layer = [field.name for field in layer.untrusted if field.tool == tool]
    trusted = [field.name for field in layer.trusted if field.tool == tool]
    schema = results.get(tool)
    by_schema = [] if schema is None else [to_pointer(steps) or "**" for steps in _untrusted_in(schema, schema, (), 0)]
    return [*by_layer, *(pointer for pointer in by_schema if not any(_is_named(pointer, name) for name in trusted))]


def _is_named(pointer: str, name: str) -> bool:
    """Return True if a `Field.name` names the values at a pointer: ``user.id`` those at ``/a/user/id``."""
    return name in ("**", pointer) or (name[0] != "/" and pointer.endswith("/" + name.replace(".", "/")))


def _untrusted_in(schema: Any, root: Any, steps: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the steps to schemas marked as not trusted; an item of a list has no step, as in `Field.name`."""
    if not isinstance(schema, Mapping) or depth > 16:
        return
    if schema.get(TRUSTED) is False:
        yield steps
        return
    for inner in same_value(schema, root):
        yield from _untrusted_in(inner, root, steps, depth + 1)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _untrusted_in(inner, root, (*steps, name), depth + 1)
    for key in ("items", "prefixItems"):
        for inner in schema[key] if isinstance(schema.get(key), list) else [schema.get(key)]:
            yield from _untrusted_in(inner, root, steps, depth + 1)


def same_value(schema: Mapping[str, Any], root: Any) -> list[Any]:
    """Return the schemas that a schema applies to the same value. A reference to nothing, in what a server says of its
    results, applies none."""
    found, reference = [], schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        with suppress(LookupError):
            found.append(resolve_local(root, reference))
    return [*found, *(inner for key in _SAME for inner in schema.get(key, ()))]


def has_value_at(schema: Any, root: Any, steps: Sequence[str], depth: int = 0) -> bool:
    """Return True unless the schema shows that its values have none at these steps.

    Args:
        schema: the schema.
        root: the schema in which references are resolved.
        steps: the steps; ``*`` is any member or item.
        depth: the number of schemas that were entered already.
    """
    if not steps:
        return True
    if not isinstance(schema, Mapping):
        return schema is True
    if depth < MAX_DEPTH and any(has_value_at(inner, root, steps, depth + 1) for inner in same_value(schema, root)):
        return True
    step, rest = steps[0], steps[1:]
    properties = schema.get("properties", {})
    below = list(properties.values()) if step == "*" else [properties[step]] if step in properties else []
    below += (schema.get("patternProperties") or {}).values()
    if step == "*":
        below += schema.get("prefixItems", ())
        below += [schema[key] for key in ("items", "unevaluatedItems") if key in schema]
    if not properties:  # a map
        below += [schema[key] for key in ("additionalProperties", "unevaluatedProperties") if key in schema]
        describes_members = below or any(key in schema for key in (*_SAME, "$ref"))
        if not describes_members and schema.get("type", "object") == "object":
            return True
    return any(has_value_at(inner, root, rest, depth + 1) for inner in below)
