"""Assertions of a single schema as one fact: all of its keywords but those that apply other schemas to the value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import replace
from functools import cached_property
from typing import Any

from ...errors import Place, UnsupportedSchemaError
from ...language.terms import Terms
from ...regex.compile import regex_term
from ..read.keywords import CONSTRAINING, TYPES, Role, keywords
from ..read.located import Located, SignedSchema
from ..read.resolve import Document
from ..scalars.formats import ENFORCED
from ..scalars.numbers import NumberRange, exact
from .conjunction import (
    EVERY,
    ArrayPart,
    Arrays,
    Conjunction,
    Contains,
    Formula,
    ObjectPart,
    Objects,
    Strings,
    fact,
    same_value,
)

_OBJECT_PART = frozenset({"properties", "patternProperties", "additionalProperties"})
ARRAY_PART = frozenset({"items", "prefixItems", "additionalItems"})
_OF_OBJECTS, _OF_ARRAYS, _OF_STRINGS, _OF_NUMBERS = (
    frozenset(keywords(types=(kind,), roles=(Role.PARTS, Role.ASSERTION, Role.FORMAT)))
    for kind in ("object", "array", "string", "number")
)

#: Hints for a keyword that cannot be enforced exactly.
CHECK_LATER = "have it checked after generation with on_unsupported='validate'"
NARROW = "allow that with on_unsupported='narrow'"

#: Marks assertions that were not read yet.
_UNREAD = Conjunction()


class Assertions:
    """Reads the assertions of a document's subschemas.

    Args:
        document: where the subschemas are.
        unenforced: keywords that are left out, as pairs of a subschema's key and the keyword; the language can only
            grow.
        formats: True if ``format`` is an assertion, False if it is an annotation.
    """

    def __init__(
        self, document: Document, unenforced: Collection[tuple[object, str]] = (), formats: bool = True
    ) -> None:
        self.document = document
        self.unenforced = unenforced
        self.formats = formats
        self._own: dict[Located, Conjunction | None] = {}
        self._objects: dict[Located, ObjectPart] = {}
        self._arrays: dict[Located, ArrayPart] = {}
        self._constants: dict[int, tuple[Any, Formula]] = {}

    @cached_property
    def terms(self) -> Terms:
        """A separate store for the patterns that names are matched with; most documents have none."""
        return Terms()

    def asserts(self, located: Located, keyword: str) -> bool:
        """Return True if a subschema has a keyword that its dialect knows and that is not left out."""
        return (
            keyword in located.schema
            and self.document.knows(keyword)
            and not (self.unenforced and (located.key, keyword) in self.unenforced)
        )

    def assertions(self, located: Located) -> Conjunction | None:
        """Return the assertions of a schema; None if no value satisfies them. Computed once."""
        own = self._own.get(located, _UNREAD)
        if own is _UNREAD:
            own = self._own[located] = self._read(located)
        return own

    def _read(self, located: Located) -> Conjunction | None:
        schema = located.schema
        if "$ref" in schema and self.document.ref_hides_siblings:
            return EVERY
        types, numbers = EVERY.types, EVERY.numbers
        if self.asserts(located, "type"):
            types, integer = types_of(schema)
            numbers = NumberRange(integer=True) if integer else numbers
        values = self.values(located)
        if values == () or not types:
            return None
        numbers = self._numbers(numbers, located)
        strings = EVERY.strings
        if not _OF_STRINGS.isdisjoint(schema):
            strings = Strings(
                self._count(located, "minLength") or 0,
                self._count(located, "maxLength"),
                (schema["pattern"],) if self.asserts(located, "pattern") else (),
                (schema["format"],) if self.asserts_format(located) else (),
            )
        return Conjunction(types, values, (), numbers, strings, self._array_facts(located), self._object_facts(located))

    def _count(self, located: Located, keyword: str) -> int | None:
        """Return the value of a keyword that bounds a length or a number of parts; None: there is no such bound."""
        return int(located.schema[keyword]) if self.asserts(located, keyword) else None

    def asserts_format(self, located: Located) -> bool:
        """Return True if a subschema's ``format`` is more than an annotation."""
        return self.formats and self.asserts(located, "format") and located.schema["format"] in ENFORCED

    def values(self, located: Located) -> tuple[Any, ...] | None:
        """Return the values that a schema lists; None: it lists none."""
        schema = located.schema
        nullable = schema.get("nullable") is True
        values: tuple[Any, ...] | None = None
        if self.asserts(located, "enum"):
            values = tuple(schema["enum"])
            if nullable and None not in values and "const" not in schema:
                values = (*values, None)
        if self.asserts(located, "const"):
            if values is None:
                return (schema["const"],)
            values = tuple(value for value in values if same_value(value, schema["const"]))
        return values

    def _object_facts(self, located: Located) -> Objects:
        schema = located.schema
        if _OF_OBJECTS.isdisjoint(schema):
            return EVERY.objects
        required = schema["required"] if self.asserts(located, "required") else ()
        return Objects(
            parts=() if _OBJECT_PART.isdisjoint(schema) else (self.object_part(located),),
            names=(SignedSchema(located.child("propertyNames")),) if self.asserts(located, "propertyNames") else (),
            required=tuple(required) if isinstance(required, (list, tuple)) else (),
            least=self._count(located, "minProperties") or 0,
            most=self._count(located, "maxProperties"),
        )

    def _array_facts(self, located: Located) -> Arrays:
        schema = located.schema
        if _OF_ARRAYS.isdisjoint(schema):
            return EVERY.arrays
        return Arrays(
            parts=() if ARRAY_PART.isdisjoint(schema) else (self.array_part(located),),
            contains=tuple(self.contains(located)),
            least=self._count(located, "minItems") or 0,
            most=self._count(located, "maxItems"),
            unique=self.asserts(located, "uniqueItems") and schema["uniqueItems"] is True,
        )

    def contains(self, located: Located) -> list[Contains]:
        """Return the schemas that a number of items must satisfy, with the bounds of that number."""
        if not self.asserts(located, "contains"):
            return []
        least = self._count(located, "minContains")
        least = 1 if least is None else least
        most = self._count(located, "maxContains")
        if least == 0 and most is None:
            return []
        return [Contains(SignedSchema(located.child("contains")), 0, None, least, most)]

    def _numbers(self, numbers: NumberRange, located: Located) -> NumberRange:
        schema = located.schema
        if _OF_NUMBERS.isdisjoint(schema):
            return numbers
        for least, value, strict in bounds_of(schema) if self.document.knows("minimum") else ():
            numbers = numbers.at_least(value, strict) if least else numbers.at_most(value, strict)
        if self.asserts(located, "multipleOf"):
            numbers = replace(numbers, multiples=(*numbers.multiples, exact(schema["multipleOf"])))
        return numbers

    def matches(self, pattern: str, name: str) -> bool:
        """Return True if a pattern matches some part of a name."""
        return self.terms.matches(regex_term(self.terms, pattern, whole=False), name)

    def object_part(self, located: Located) -> ObjectPart:
        """Return the schemas of members by name and by pattern; computed once."""
        part = self._objects.get(located)
        if part is None:
            schema = located.schema
            declared = located.members("properties") if "properties" in schema else ()
            patterned = located.members("patternProperties") if self.asserts(located, "patternProperties") else ()
            part = self._objects[located] = ObjectPart(
                {name: SignedSchema(inner) for name, inner in declared},
                {pattern: SignedSchema(inner) for pattern, inner in patterned},
                SignedSchema(located.child("additionalProperties")) if "additionalProperties" in schema else None,
                "properties" in schema,
            )
        return part

    def array_part(self, located: Located) -> ArrayPart:
        """Return the schemas of items by position; computed once."""
        part = self._arrays.get(located)
        if part is None:
            schema = located.schema
            prefix: tuple[Formula, ...] = ()
            items: Formula | None = None
            if isinstance(schema.get("items"), (list, tuple)):
                prefix = tuple(map(SignedSchema, located.items("items")))
                if "additionalItems" in schema:
                    items = SignedSchema(located.child("additionalItems"))
            else:
                if self.asserts(located, "prefixItems"):
                    prefix = tuple(map(SignedSchema, located.items("prefixItems")))
                if "items" in schema:
                    items = SignedSchema(located.child("items"))
            part = self._arrays[located] = ArrayPart(prefix, items)
        return part

    def dependencies(self, located: Located) -> Iterator[tuple[str, Formula]]:
        """Yield names, and the formula for an object that has a member of the name."""
        schema = located.schema
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            if not self.asserts(located, keyword):
                continue
            for name, needed in schema[keyword].items():
                if isinstance(needed, (list, tuple)):
                    yield name, fact("object", objects=Objects(required=tuple(needed)))
                elif isinstance(needed, str):  # draft 3, and still seen
                    yield name, fact("object", objects=Objects(required=(needed,)))
                else:
                    yield name, SignedSchema(located.child(keyword, name))

    def constant(self, value: Any) -> Formula:
        """Return the formula of one value."""
        entry = self._constants.get(id(value))
        if entry is None:  # the value is kept, so that its id stays its own
            entry = self._constants[id(value)] = (value, SignedSchema(Located({"const": value}, "")))
        return entry[1]


def types_of(schema: Mapping[str, Any]) -> tuple[frozenset[str], bool]:
    """Return the types that ``type`` allows, and True if numbers must be integers."""
    names = schema["type"] if isinstance(schema["type"], (list, tuple)) else [schema["type"]]
    wanted = {"number" if name == "integer" else name for name in names}
    if "any" in wanted:
        wanted = set(TYPES)
    if schema.get("nullable") is True:
        wanted.add("null")
    return frozenset(wanted), "integer" in names and "number" not in names and "any" not in names


def asserted(schema: Mapping[str, Any]) -> Set[str]:
    """Return the keywords of a schema that may constrain a value, or make others do so."""
    return schema.keys() & CONSTRAINING


def lists_strings(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema has an ``enum`` of strings alone, and no ``type`` that excludes them."""
    values = schema.get("enum")
    return (
        values is not None and schema.get("type", "string") == "string" and all(type(value) is str for value in values)
    )


def bounds_of(schema: Mapping[str, Any]) -> Iterator[tuple[bool, Any, bool]]:
    """Yield the bounds of numbers: True for a lower one, its value, and True if that value is excluded."""
    for plain, exclusive, lower in (("minimum", "exclusiveMinimum", True), ("maximum", "exclusiveMaximum", False)):
        flag = schema.get(exclusive)
        if plain in schema:
            yield lower, exact(schema[plain]), flag is True  # draft 4 has a flag beside the bound
        if flag is not None and not isinstance(flag, bool):
            yield lower, exact(flag), True


def unsupported(located: Located, keyword: str, how: str = "", left_out: str | None = None) -> UnsupportedSchemaError:
    """Return the error for a keyword that cannot be enforced exactly.

    Args:
        located: the schema.
        keyword: its keyword.
        how: the rest of the sentence, for example ``"with more than 10 options"``.
        left_out: the valid values that a narrowed grammar does not write; None: the keyword cannot be narrowed.
    """
    return UnsupportedSchemaError(
        f"the keyword {keyword!r} cannot be enforced exactly{' ' + how if how else ''}"
        + (f", only without {left_out}" if left_out else ""),
        hint=f"remove it, write it in another way, or {NARROW if left_out else CHECK_LATER}",
        place=Place(pointer=located.pointer, keyword=keyword),
        left_out=left_out,
    )
