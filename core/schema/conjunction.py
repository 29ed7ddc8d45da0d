"""Normal form: a schema as a union of *typed conjunctions*.

A `Goal` is a set of subschemas that must all hold. `Normaliser.branches` turns a goal into alternatives, each a
`Conjunction` with one constraint per JSON type; ``$ref`` and ``allOf`` are merged, ``anyOf`` forks. Subschemas of
properties and items stay goals: they are normalised when a text reaches them, so that recursion costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from ..errors import InvalidSchemaError, LimitError, Place, UnsupportedSchemaError
from .formats import ENFORCED
from .numbers import NumberRange, exact
from .resolve import Document, Located

TYPES = ("null", "boolean", "number", "string", "array", "object")

#: Subschemas that must all hold.
Goal = tuple[Located, ...]

#: How many alternatives one place of a schema may have after anyOf and $ref are multiplied out.
MAX_BRANCHES = 20_000


@dataclass(frozen=True, eq=False)
class ObjectPart:
    """What one schema says of objects; ``additional`` None: nothing was said. Made once per schema, compared as itself.

    ``names_properties``: it has the keyword ``properties``, if only to say that there are none.
    """

    properties: Mapping[str, Located] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    patterns: Mapping[str, Located] = field(default_factory=dict)
    additional: Located | None = None
    names_properties: bool = False


@dataclass(frozen=True, eq=False)
class ArrayPart:
    """What one schema says of arrays. Made once per schema, compared as itself."""

    prefix: tuple[Located, ...] = ()
    items: Located | None = None
    least: int = 0
    most: int | None = None


@dataclass(frozen=True)
class Conjunction:
    """One alternative of a normal form: everything in it must hold."""

    types: frozenset[str] = frozenset(TYPES)
    values: tuple[Any, ...] | None = None
    number: NumberRange = field(default_factory=NumberRange)
    min_length: int = 0
    max_length: int | None = None
    patterns: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    objects: tuple[ObjectPart, ...] = ()
    arrays: tuple[ArrayPart, ...] = ()


def type_of(value: Any) -> str:
    """The JSON type of a decoded value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def same_value(left: Any, right: Any) -> bool:
    """Equality as JSON Schema means it: 1 and 1.0 are equal, 1 and true are not."""
    if type_of(left) != type_of(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_value(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same_value, left, right))
    return bool(left == right)


class Normaliser:
    """Brings the subschemas of a document to normal form."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._objects: dict[object, ObjectPart] = {}
        self._arrays: dict[object, ArrayPart] = {}

    def branches(self, goal: Goal) -> list[Conjunction]:
        """The alternatives of a goal; empty when it can never hold."""
        done: list[Conjunction] = []
        todo: list[tuple[Conjunction, tuple[tuple[Located, frozenset[int]], ...]]] = [
            (Conjunction(), tuple((part, frozenset()) for part in goal))
        ]
        while todo:
            conjunction, parts = todo.pop()
            if not parts:
                done.append(conjunction)
                if len(done) > MAX_BRANCHES:
                    raise LimitError(
                        f"more than {MAX_BRANCHES:,} alternatives at one place",
                        hint="simplify nested anyOf",
                        place=Place(pointer=goal[0].pointer if goal else ""),
                    )
                continue
            (located, above), rest = parts[0], parts[1:]
            schema = located.schema
            if schema is True:
                todo.append((conjunction, rest))
                continue
            if schema is False:
                continue
            if id(schema) in above:
                raise InvalidSchemaError(
                    "a schema refers to itself without describing anything",
                    hint="break the loop of $ref",
                    place=Place(pointer=located.pointer, keyword="$ref"),
                )
            inner = above | {id(schema)}
            if "$ref" in schema:
                target = self.document.resolve(located)
                rest = ((target, inner), *rest)
                if self.document.ref_hides_siblings:
                    todo.append((conjunction, rest))
                    continue
            narrowed = self._narrow(conjunction, located)
            if narrowed is None:
                continue
            for index in range(len(schema.get("allOf", ())) - 1, -1, -1):
                rest = ((located.child("allOf", index), inner), *rest)
            forks = [keyword for keyword in ("anyOf", "oneOf") if keyword in schema]
            choices = [rest]
            for keyword in forks:  # a oneOf that gets here has been proved disjoint: it is a plain union
                options = [(located.child(keyword, index), inner) for index in range(len(schema[keyword]))]
                choices = [(option, *choice) for choice in choices for option in options]
            todo.extend((narrowed, choice) for choice in reversed(choices))
        return done

    def _narrow(self, old: Conjunction, located: Located) -> Conjunction | None:
        """The conjunction with what a schema itself says; None when that is a contradiction of types or values."""
        schema = located.schema
        types = old.types
        number = old.number
        if "type" in schema:
            names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            wanted = {"number" if name == "integer" else name for name in names}
            if "any" in wanted:
                wanted = set(TYPES)
            if "integer" in names and "number" not in names:
                number = replace(number, integer=True)
            if schema.get("nullable") is True:
                wanted.add("null")
            types = types & wanted
        values = old.values
        if "enum" in schema or "const" in schema:
            given = list(schema["enum"]) if "enum" in schema else [schema["const"]]
            if "enum" in schema and "const" in schema:
                given = [value for value in given if same_value(value, schema["const"])]
            if schema.get("nullable") is True and None not in given and "enum" in schema and "const" not in schema:
                given.append(None)
            if values is None:
                values = tuple(given)
            else:
                values = tuple(value for value in values if any(same_value(value, each) for each in given))
            if not values:
                return None
        if not types:
            return None
        number = self._number(number, located)
        least, most, patterns = old.min_length, old.max_length, old.patterns
        if "minLength" in schema:
            least = max(least, int(schema["minLength"]))
        if "maxLength" in schema:
            most = int(schema["maxLength"]) if most is None else min(most, int(schema["maxLength"]))
        if "pattern" in schema:
            patterns = (*patterns, schema["pattern"])
        formats = old.formats
        if schema.get("format") in ENFORCED and schema["format"] not in formats:
            formats = (*formats, schema["format"])
        objects, arrays = old.objects, old.arrays
        if schema.keys() & {"properties", "required", "patternProperties", "additionalProperties"}:
            part = self._objects.get(located.key)
            if part is None:
                part = self._objects[located.key] = self._object(located)
            objects = (*objects, part)
        if schema.keys() & {"items", "prefixItems", "minItems", "maxItems", "additionalItems"}:
            items = self._arrays.get(located.key)
            if items is None:
                items = self._arrays[located.key] = self._array(located)
            arrays = (*arrays, items)
        return Conjunction(types, values, number, least, most, patterns, formats, objects, arrays)

    def _number(self, number: NumberRange, located: Located) -> NumberRange:
        schema = located.schema
        lows: list[tuple[Decimal, bool]] = []
        highs: list[tuple[Decimal, bool]] = []
        if number.least is not None:
            lows.append((number.least, number.least_excluded))
        if number.most is not None:
            highs.append((number.most, number.most_excluded))
        for bounds, plain, exclusive in ((lows, "minimum", "exclusiveMinimum"), (highs, "maximum", "exclusiveMaximum")):
            flag = schema.get(exclusive)
            if isinstance(flag, bool):  # draft 4
                if plain in schema:
                    bounds.append((exact(schema[plain]), flag))
            else:
                if plain in schema:
                    bounds.append((exact(schema[plain]), False))
                if flag is not None:
                    bounds.append((exact(flag), True))
        if lows:
            low = max(lows)
            number = replace(number, least=low[0], least_excluded=low[1])
        if highs:
            high = min(highs, key=lambda bound: (bound[0], not bound[1]))
            number = replace(number, most=high[0], most_excluded=high[1])
        return number

    def _object(self, located: Located) -> ObjectPart:
        schema = located.schema
        additional = located.child("additionalProperties") if "additionalProperties" in schema else None
        names = schema.get("properties", {})
        required = schema.get("required", ())
        return ObjectPart(
            {name: located.child("properties", name) for name in names},
            tuple(required) if isinstance(required, (list, tuple)) else (),
            {pattern: located.child("patternProperties", pattern) for pattern in schema.get("patternProperties", {})},
            additional,
            "properties" in schema,
        )

    def _array(self, located: Located) -> ArrayPart:
        schema = located.schema
        prefix: tuple[Located, ...] = ()
        items = None
        if isinstance(schema.get("items"), list):
            prefix = tuple(located.child("items", index) for index in range(len(schema["items"])))
            if "additionalItems" in schema:
                items = located.child("additionalItems")
        else:
            if "prefixItems" in schema:
                prefix = tuple(located.child("prefixItems", index) for index in range(len(schema["prefixItems"])))
            if "items" in schema:
                items = located.child("items")
        most = schema.get("maxItems")
        return ArrayPart(prefix, items, int(schema.get("minItems", 0)), None if most is None else int(most))


def unsupported(located: Located, keyword: str) -> UnsupportedSchemaError:
    """The error for a keyword that cannot be enforced exactly."""
    return UnsupportedSchemaError(
        f"the keyword {keyword!r} cannot be enforced exactly yet",
        hint="remove it, or express it with type, properties, items, enum, anyOf or pattern",
        place=Place(pointer=located.pointer, keyword=keyword),
    )
