"""One linear pass over the reachable subschemas: is each well-formed, and can each keyword be enforced exactly?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from ..errors import (
    InvalidSchemaError,
    LimitError,
    PatternError,
    Place,
    SchemaError,
    ToolGrammarError,
    UnsupportedSchemaError,
)
from ..language.regex import regex_term
from ..language.terms import Terms
from .conjunction import TYPES, Normaliser, unsupported
from .disjoint import provably_disjoint
from .formats import REFUSED
from .resolve import Document, Located

#: Keywords that assert something and are not enforced yet, with the JSON type they speak of (None: all).
NOT_YET: dict[str, str | None] = {
    "not": None,
    "if": None,
    "dependentRequired": "object",
    "dependentSchemas": "object",
    "dependencies": "object",
    "propertyNames": "object",
    "minProperties": "object",
    "maxProperties": "object",
    "unevaluatedProperties": "object",
    "unevaluatedItems": "array",
    "contains": "array",
    "minContains": "array",
    "maxContains": "array",
    "uniqueItems": "array",
    "multipleOf": "number",
    "$dynamicRef": None,
    "$recursiveRef": None,
}

#: Values with which a keyword of `NOT_YET` says nothing.
_HARMLESS: dict[str, Any] = {"uniqueItems": False, "minProperties": 0}

_SHAPES: dict[str, tuple[type, ...]] = {
    "properties": (Mapping,),
    "required": (list, tuple),
    "patternProperties": (Mapping,),
    "additionalProperties": (Mapping, bool),
    "enum": (list, tuple),
    "anyOf": (list, tuple),
    "allOf": (list, tuple),
    "oneOf": (list, tuple),
    "prefixItems": (list, tuple),
    "items": (Mapping, bool, list, tuple),
    "additionalItems": (Mapping, bool),
    "pattern": (str,),
    "format": (str,),
    "minimum": (int, float),
    "maximum": (int, float),
    "exclusiveMinimum": (int, float),
    "exclusiveMaximum": (int, float),
    "type": (str, list, tuple),
}
#: The largest minLength, minItems and minProperties.
MAX_LEAST = 100_000

_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


def problems(document: Document) -> Iterator[SchemaError | LimitError]:
    """Every problem of the reachable subschemas, in the order in which they are met."""
    seen: set[object] = set()
    patterns: dict[str, SchemaError | None] = {}
    stack = [document.root]
    normaliser = Normaliser(document)
    while stack:
        located = stack.pop()
        schema = located.schema
        if isinstance(schema, bool) or located.key in seen:
            continue
        seen.add(located.key)
        if not isinstance(schema, Mapping):
            yield InvalidSchemaError(
                f"a schema must be an object or a boolean, not {type(schema).__name__}",
                hint="see https://json-schema.org/draft/2020-12/json-schema-core section 4.3",
                place=Place(pointer=located.pointer),
            )
            continue
        malformed = list(_malformed(located))
        if malformed:
            yield from malformed
            continue
        children: list[Located] = []
        if "$ref" in schema:
            try:
                children.append(document.resolve(located))
            except SchemaError as error:
                yield error
                continue
            if document.ref_hides_siblings:
                stack.extend(children)
                continue
        if isinstance(schema.get("$id"), str) and not schema["$id"].startswith("#") and located is not document.root:
            yield UnsupportedSchemaError(
                "a subschema with an $id of its own changes what references mean",
                hint="remove the inner $id",
                place=Place(pointer=located.pointer, keyword="$id"),
            )
        yield from _not_enforced(located)
        for keyword, pattern in _patterns(schema):
            if pattern not in patterns:
                patterns[pattern] = _pattern_problem(pattern)
            problem = patterns[pattern]
            if problem is not None:
                yield type(problem)(
                    problem.message,
                    hint=problem.hint,
                    place=Place(pointer=located.pointer, keyword=keyword, offset=problem.place.offset),
                )
        if "oneOf" in schema and all(isinstance(option, (Mapping, bool)) for option in schema["oneOf"]):
            options = [located.child("oneOf", index) for index in range(len(schema["oneOf"]))]
            try:
                disjoint = len(options) == 1 or provably_disjoint(normaliser, options)
            except ToolGrammarError:
                disjoint = True  # the problem inside an option is reported where it stands
            if not disjoint:
                yield unsupported(located, "oneOf")
        children.extend(located.child("properties", name) for name in schema.get("properties", ()))
        children.extend(located.child("patternProperties", name) for name in schema.get("patternProperties", ()))
        for keyword in ("anyOf", "allOf", "oneOf", "prefixItems"):
            children.extend(located.child(keyword, index) for index in range(len(schema.get(keyword, ()))))
        items = schema.get("items")
        if isinstance(items, (list, tuple)):
            children.extend(located.child("items", index) for index in range(len(items)))
        elif items is not None:
            children.append(located.child("items"))
        for keyword in ("additionalProperties", "additionalItems"):
            if keyword in schema:
                children.append(located.child(keyword))
        stack.extend(reversed(children))


def _patterns(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The regular expressions that a schema itself holds, with their keywords."""
    if "pattern" in schema:
        yield "pattern", schema["pattern"]
    for pattern in schema.get("patternProperties", ()):
        yield "patternProperties", pattern


def _malformed(located: Located) -> Iterator[SchemaError | LimitError]:
    schema = located.schema

    def wrong(keyword: str, what: str) -> InvalidSchemaError:
        return InvalidSchemaError(what, place=Place(pointer=located.pointer, keyword=keyword))

    for keyword, shape in _SHAPES.items():
        if keyword in schema and not isinstance(schema[keyword], shape):
            yield wrong(keyword, f"{keyword} cannot be {type(schema[keyword]).__name__}")
    for keyword in _COUNTS:
        value = schema.get(keyword, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < inf or value % 1:
            yield wrong(keyword, f"{keyword} must be a whole number that is not negative")
        elif keyword in ("minLength", "minItems", "minProperties") and value > MAX_LEAST:
            yield LimitError(
                f"{keyword} is {value:,}, and no model writes more than {MAX_LEAST:,}",
                hint=f"lower {keyword}",
                place=Place(pointer=located.pointer, keyword=keyword),
            )
    for name in schema["type"] if isinstance(schema.get("type"), (list, tuple)) else [schema.get("type", "null")]:
        if name not in TYPES and name not in ("integer", "any"):
            yield wrong("type", f"{name!r} is not a JSON type")
    names = schema.get("required", ())
    if isinstance(names, (list, tuple)) and not all(isinstance(name, str) for name in names):
        yield wrong("required", "required must list property names")
    for keyword in ("properties", "patternProperties"):
        properties = schema.get(keyword, {})
        if isinstance(properties, Mapping) and not all(isinstance(name, str) for name in properties):
            yield wrong(keyword, "property names must be strings")
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        value = schema.get(keyword, 0)
        if isinstance(value, float) and not abs(value) < float("inf"):
            yield wrong(keyword, f"{keyword} must be a finite number")
    for keyword in ("const", "enum"):
        if keyword in schema and not _is_json(schema[keyword]):
            yield wrong(keyword, f"{keyword} holds something that is not a JSON value")
    for keyword in ("anyOf", "allOf", "oneOf"):
        if keyword in schema and isinstance(schema[keyword], (list, tuple)) and not schema[keyword]:
            yield wrong(keyword, f"{keyword} must not be empty")


def _is_json(value: Any) -> bool:
    """Whether a value has a JSON text."""
    stack = [value]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if isinstance(item, (Mapping, list, tuple)):
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Mapping):
                if not all(isinstance(key, str) for key in item):
                    return False
                stack.extend(item.values())
            else:
                stack.extend(item)
        elif isinstance(item, float):
            if not -inf < item < inf:
                return False
        elif item is not None and not isinstance(item, (str, bool, int)):
            return False
    return True


def _not_enforced(located: Located) -> Iterator[SchemaError]:
    schema = located.schema
    names = schema.get("type", TYPES)
    types = set(names if isinstance(names, (list, tuple)) else [names])
    if "integer" in types:
        types.add("number")
    if "any" in types:
        types.update(TYPES)
    for keyword, kind in NOT_YET.items():
        if keyword not in schema or schema[keyword] == _HARMLESS.get(keyword, {}):
            continue
        if keyword in ("minContains", "maxContains") and "contains" not in schema:
            continue
        if kind is None or kind in types:
            yield unsupported(located, keyword)
    if "format" in schema and schema["format"] in REFUSED and "string" in types:
        yield unsupported(located, "format")


def _pattern_problem(pattern: str) -> SchemaError | None:
    try:
        regex_term(Terms(), pattern, whole=False)
    except PatternError as error:
        kind = UnsupportedSchemaError if "regular" in error.message else InvalidSchemaError
        return kind(error.message, hint=error.hint, place=error.place)
    except ToolGrammarError as error:
        return UnsupportedSchemaError(error.message, hint=error.hint, place=error.place)
    return None
