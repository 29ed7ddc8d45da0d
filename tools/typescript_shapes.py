"""Schemas under construction: objects with their keys, unions, literals and template strings.

What TypeScript's type operators work on. Nothing here reads text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated"})
MAX_TEMPLATE_VALUES = 64

_SYNTAX = re.compile(r"[\^$\\.*+?()\[\]{}|/]")


def literal_schema(values: Sequence[Any]) -> dict[str, Any]:
    """The schema of some literals, with their type beside them."""
    kinds = list(dict.fromkeys(_kind(value) for value in values))
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    if set(kinds) == {"boolean"} and len(set(values)) == 2:
        return {"type": "boolean"}
    kind: Any = kinds[0] if len(kinds) == 1 else kinds
    return {"type": kind, "const": values[0]} if len(values) == 1 else {"type": kind, "enum": list(values)}


def union_schema(members: Iterable[Any]) -> dict[str, Any] | bool:
    """Any of these: literals as one ``enum``, bare types as one ``type``, everything else as ``anyOf``."""
    found: dict[str, Any] = {}
    for member in members:
        for part in member["anyOf"] if isinstance(member, dict) and set(member) == {"anyOf"} else [member]:
            if part is not False:
                found.setdefault(json.dumps(part, sort_keys=True, default=str), part)
    parts = list(found.values())
    if not parts:
        return False
    if len(parts) == 1:
        whole: dict[str, Any] | bool = schema_of(parts[0])
        return whole
    if any(part == {} or part is True for part in parts):
        return {}
    null: dict[str, Any] = {"type": "null"}
    if all(_is_literal(part) or part == null for part in parts) and any(_is_literal(part) for part in parts):
        return literal_schema(_unique([v for part in parts for v in ([None] if part == null else _literals(part))]))
    if all(set(part) == {"type"} for part in parts):
        kinds = [k for part in parts for k in (part["type"] if isinstance(part["type"], list) else [part["type"]])]
        return {"type": list(dict.fromkeys(kinds))}
    if sum(_is_literal(part) for part in parts) > 1:
        literals = literal_schema(_unique([value for part in parts if _is_literal(part) for value in _literals(part)]))
        at = next(index for index, part in enumerate(parts) if _is_literal(part))
        parts = [literals if i == at else part for i, part in enumerate(parts) if i == at or not _is_literal(part)]
    return {"anyOf": parts}


def joined(first: Any, second: Any) -> Any:
    """Both at once."""
    if first == second or second in ({}, True):
        return first
    if first in ({}, True):
        return second
    if first is False or second is False:
        return False
    parts = [*first["allOf"], second] if set(first) == {"allOf"} else [first, second]
    return {"allOf": parts}


def schema_of(schema: Any) -> Any:
    """The schema as a dict where it has words; ``{"not": {}}`` for nothing."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


@dataclass(frozen=True)
class Keys:
    """A set of property names.

    Attributes:
        names: these names.
        anything: any string.
        patterns: strings that match one of these.
    """

    NUMBER: ClassVar[str] = r"^(0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]*[1-9])$"

    names: tuple[str, ...] = ()
    anything: bool = False
    patterns: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.names or self.anything or any(re.search(pattern, name) for pattern in self.patterns)


@dataclass
class Shape:
    """An object type: its properties, and what other properties it takes.

    Attributes:
        properties: schemas by name, in order.
        required: names that must be there.
        patterns: schemas of properties whose name matches a pattern.
        additional: the schema of any other property; None for nothing said.
    """

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    patterns: dict[str, Any] = field(default_factory=dict)
    additional: Any = None

    @classmethod
    def read(cls, schema: dict[str, Any]) -> Shape | None:
        """The shape that an object schema says, or None if it says more than a shape can."""
        known = {"type", "properties", "required", "patternProperties", "additionalProperties", *ANNOTATIONS}
        if schema.get("type") != "object" or set(schema) - known:
            return None
        additional = schema.get("additionalProperties", None if "properties" in schema else {})
        if set(schema) == {"type", "patternProperties"}:
            additional = None
        return cls(
            dict(schema.get("properties", {})),
            list(schema.get("required", ())),
            dict(schema.get("patternProperties", {})),
            {} if additional is True else additional,
        )

    @classmethod
    def record(cls, keys: Keys, value: Any, *, optional: bool = False) -> Shape:
        """Every one of these keys with the same value."""
        names = list(keys.names)
        return cls(
            dict.fromkeys(names, value),
            [] if optional else names,
            dict.fromkeys(keys.patterns, value),
            value if keys.anything else None,
        )

    def schema(self) -> dict[str, Any]:
        """The object schema."""
        result: dict[str, Any] = {"type": "object"}
        if self.properties or not (self.patterns or self.additional is not None):
            result["properties"] = dict(self.properties)
        if self.required:
            result["required"] = [name for name in self.properties if name in self.required]
        if self.patterns:
            result["patternProperties"] = dict(self.patterns)
        if self.additional is not None:
            result["additionalProperties"] = self.additional if self.additional != {} else True
        return result

    def has(self, name: str) -> bool:
        """Whether a property of this name may be there."""
        return self.value_of(name) is not None

    def value_of(self, name: str) -> Any:
        """The schema of the property of a name; None if there is none."""
        if name in self.properties:
            return self.properties[name]
        found = [value for pattern, value in self.patterns.items() if re.search(pattern, name)]
        return found[0] if found else self.additional

    def keys(self) -> Keys:
        """The names that its properties may have."""
        return Keys(tuple(self.properties), self.additional is not None, tuple(self.patterns))

    def keys_schema(self) -> dict[str, Any] | bool:
        """``keyof``: the names as a type."""
        keys = self.keys()
        parts: list[Any] = [literal_schema(list(keys.names))] if keys.names else []
        parts += [{"type": "string", "pattern": pattern} for pattern in keys.patterns]
        return {"type": "string"} if keys.anything else union_schema(parts)

    def join(self, other: Shape) -> Shape:
        """Both at once: an object that is one and the other."""
        names = list(dict.fromkeys([*self.properties, *other.properties]))
        values: dict[str, Any] = {}
        for name in names:
            mine, yours = self.value_of(name), other.value_of(name)
            values[name] = mine if yours is None else yours if mine is None else joined(mine, yours)
        additional = self.additional
        if other.additional is not None:
            additional = other.additional if additional is None else joined(additional, other.additional)
        patterns = dict(self.patterns)
        for pattern, value in other.patterns.items():
            patterns[pattern] = joined(patterns[pattern], value) if pattern in patterns else value
        return Shape(
            values, [name for name in names if name in {*self.required, *other.required}], patterns, additional
        )

    def override(self, other: Shape) -> Shape:
        """What ``interface other extends self`` has: a property declared again replaces the inherited one."""
        names = [name for name in self.required if name not in other.properties]
        return Shape(
            {**self.properties, **other.properties},
            [*names, *other.required],
            {**self.patterns, **other.patterns},
            self.additional if other.additional is None else other.additional,
        )

    def with_required(self, names: Iterable[str]) -> Shape:
        """The same, with other properties required."""
        return Shape(self.properties, list(names), self.patterns, self.additional)

    def pick(self, keys: Keys) -> Shape:
        """Only the properties of these names."""
        chosen = {name: self.value_of(name) for name in [*self.properties, *keys.names] if name in keys}
        required = [name for name in chosen if name in self.required or name not in self.properties]
        return Shape(chosen, required, {}, self.additional if keys.anything else None)

    def omit(self, keys: Keys) -> Shape:
        """All but the properties of these names."""
        left = {name: value for name, value in self.properties.items() if name not in keys}
        required = [name for name in self.required if name in left]
        return Shape(left, required, self.patterns, None if keys.anything else self.additional)


@dataclass(frozen=True)
class Template:
    """A template literal type: a pattern, and its values while they are few.

    Attributes:
        pattern: an ECMA-262 pattern without anchors.
        values: all its strings, or None if they are too many.
    """

    pattern: str = ""
    values: tuple[str, ...] | None = ("",)

    @classmethod
    def of(cls, members: Iterable[Any], known: Collection[str]) -> Template | None:
        """Any of these schemas as a part of a template; None if one is no text. ``known``: patterns of templates."""
        patterns: list[str] = []
        values: list[str] | None = []
        for member in members:
            plain = {key: value for key, value in member.items() if key not in ANNOTATIONS}
            if "const" in plain:
                value = plain["const"]
                text = (
                    value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
                )
                patterns.append(_SYNTAX.sub(r"\\\g<0>", text))
                if values is not None:
                    values.append(text)
                continue
            if plain == {"type": "boolean"}:
                patterns += ["true", "false"]
                if values is not None:
                    values += ["true", "false"]
                continue
            values = None
            if plain in ({"type": "string"}, {}):
                patterns.append(r"[\s\S]*")
            elif plain == {"type": "number"}:
                patterns.append(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
            elif plain == {"type": "integer"}:
                patterns.append("-?(?:0|[1-9][0-9]*)")
            elif set(plain) == {"type", "pattern"} and plain["pattern"] in known:
                patterns.append(plain["pattern"][1:-1])
            else:
                return None
        if not patterns:
            return None
        pattern = patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"
        return cls(pattern, None if values is None else tuple(dict.fromkeys(values)))

    def then(self, other: Template) -> Template:
        """This, and then that."""
        mine, yours = self.values, other.values
        if mine is None or yours is None or len(mine) * len(yours) > MAX_TEMPLATE_VALUES:
            return Template(self.pattern + other.pattern, None)
        return Template(self.pattern + other.pattern, tuple(first + second for first in mine for second in yours))

    def then_text(self, text: str) -> Template:
        """This, and then a fixed text."""
        return self.then(Template(_SYNTAX.sub(r"\\\g<0>", text), (text,)))

    def schema(self) -> dict[str, Any]:
        """The strings of the template."""
        if self.values is not None:
            return literal_schema(list(dict.fromkeys(self.values)))
        if self.pattern == r"[\s\S]*":
            return {"type": "string"}
        return {"type": "string", "pattern": f"^{self.pattern}$"}


def _is_literal(schema: Any) -> bool:
    return isinstance(schema, dict) and set(schema) in ({"type", "const"}, {"type", "enum"})


def _literals(schema: dict[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema["enum"])


def _unique(values: list[Any]) -> list[Any]:
    """Each value once; 1 and true are two."""
    return list({(type(value), value): value for value in values}.values())


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "integer" if isinstance(value, int) else "number"
