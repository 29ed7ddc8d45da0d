"""Assertions of a single schema as one fact: all of its keywords but those that apply other schemas to the value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

from ...errors import Place, UnsupportedSchemaError
from ...language.terms import Terms
from ...regex.compile import regex_term
from ...text_grammars.strings import StringGrammar, string_grammar
from ..read.keywords import CONSTRAINING, GRAMMAR, KEYWORDS, TYPES, Role
from ..read.located import Located, signed
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

ARRAY_PART = frozenset({"items", "prefixItems", "additionalItems"})

# What a keyword is about, as bits.
OBJECTS = 1
OBJECT_PARTS = 2
ARRAYS = 4
ARRAY_PARTS = 8
STRINGS = 16
NUMBERS = 32
_BITS = {"object": 1, "array": 4, "string": 16, "number": 32}
_ABOUT = {
    row.name: _BITS[row.type]
    | (2 if row.name in ("properties", "patternProperties", "additionalProperties") else 0)
    | (8 if row.name in ARRAY_PART else 0)
    for row in KEYWORDS.values()
    if row.type in _BITS and row.role in (Role.PARTS, Role.ASSERTION, Role.FORMAT)
}

#: Hints for a keyword that cannot be enforced exactly.
CHECK_LATER = "have it checked after generation with on_unsupported='validate'"
NARROW = "allow that with on_unsupported='narrow'"

#: Marks assertions that were not read yet.
_UNREAD = Conjunction()

#: By the name of a type: the types that it allows, and True if numbers must be integers.
_TYPES = {name: (frozenset((name,)), False) for name in TYPES}
_TYPES.update({"integer": (frozenset(("number",)), True), "any": (EVERY.types, False)})
#: All integers.
INTEGERS = NumberRange(integer=True)
_ANY_STRING: Strings = EVERY.strings
_ANY_ARRAY: Arrays = EVERY.arrays
_ANY_OBJECT: Objects = EVERY.objects
_NONE: frozenset[str] = frozenset()


class Assertions:
    """Reads the assertions of a document's subschemas.

    Attributes:
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
        self._constants: dict[int, tuple[Any, Formula]] = {}  # by the identity of a value: it, and its formula
        self._terms: Terms | None = None

    @property
    def terms(self) -> Terms:
        """A separate store for the patterns that names are matched with; most documents have none."""
        if self._terms is None:
            self._terms = Terms()
        return self._terms

    def asserts(self, located: Located, keyword: str) -> bool:
        """Return True if a subschema has a keyword that its dialect knows and that is not left out."""
        return (
            keyword in located.schema
            and self.document.knows(keyword)
            and not (self.unenforced and (located.key, keyword) in self.unenforced)
        )

    def assertions(self, located: Located) -> Conjunction | None:
        """Return the assertions of a schema as a `Conjunction`; None if no value satisfies them. Computed once."""
        own = self._own.get(located, _UNREAD)
        if own is _UNREAD:
            own = self._read(located)
            self._own[located] = own
        return own

    def _read(self, located: Located) -> Conjunction | None:
        schema = located.schema
        if "$ref" in schema and self.document.ref_hides_siblings:
            return EVERY
        about = 0
        for keyword in schema:
            bits = _ABOUT.get(keyword)
            if bits is not None:
                about |= bits
        types = EVERY.types
        numbers = EVERY.numbers
        if "type" in schema and self.asserts(located, "type"):
            types, integer = types_of(schema)
            if integer:
                numbers = INTEGERS
        values = self.values(located)
        if values == () or not types:
            return None
        if about & NUMBERS:
            numbers = self._numbers(numbers, located)
        strings = _ANY_STRING
        if about & STRINGS:
            strings = Strings(
                self._count(located, "minLength") or 0,
                self._count(located, "maxLength"),
                self._patterns(located),
                (schema["format"],) if self.asserts_format(located) else (),
            )
        arrays = self._array_facts(located, about) if about & ARRAYS else _ANY_ARRAY
        objects = self._object_facts(located, about) if about & OBJECTS else _ANY_OBJECT
        return Conjunction(types, values, (), numbers, strings, arrays, objects)

    def _count(self, located: Located, keyword: str) -> int | None:
        """Return the value of a keyword that bounds a length or a number of parts; None: there is no such bound."""
        return int(located.schema[keyword]) if self.asserts(located, keyword) else None

    def _patterns(self, located: Located) -> tuple[str | StringGrammar, ...]:
        """Return the pattern and the grammar of a string."""
        schema = located.schema
        patterns: tuple[str, ...] = (schema["pattern"],) if self.asserts(located, "pattern") else ()
        return (*patterns, string_grammar(schema[GRAMMAR])) if self.asserts(located, GRAMMAR) else patterns

    def asserts_format(self, located: Located) -> bool:
        """Return True if a subschema's ``format`` is more than an annotation."""
        return self.formats and self.asserts(located, "format") and located.schema["format"] in ENFORCED

    def values(self, located: Located) -> tuple[Any, ...] | None:
        """Return the values that a schema lists; None: it lists none."""
        schema = located.schema
        values: tuple[Any, ...] | None = None
        if "enum" in schema and self.asserts(located, "enum"):
            values = tuple(schema["enum"])
            if schema.get("nullable") is True and None not in values and "const" not in schema:
                values = (*values, None)
        if "const" in schema and self.asserts(located, "const"):
            if values is None:
                return (schema["const"],)
            const = schema["const"]
            values = tuple([value for value in values if same_value(value, const)])
        return values

    def _object_facts(self, located: Located, about: int) -> Objects:
        schema = located.schema
        parts = (self.object_part(located),) if about & OBJECT_PARTS else ()
        names: tuple[Formula, ...] = ()
        if "propertyNames" in schema and self.asserts(located, "propertyNames"):
            names = (signed(located.under("propertyNames")),)
        required: tuple[str, ...] = ()
        if "required" in schema and self.asserts(located, "required"):
            listed = schema["required"]
            required = tuple(listed) if isinstance(listed, (list, tuple)) else ()
        least = self._count(located, "minProperties") or 0
        return Objects(parts, (), (), names, required, _NONE, least, self._count(located, "maxProperties"))

    def _array_facts(self, located: Located, about: int) -> Arrays:
        schema = located.schema
        return Arrays(
            (self.array_part(located),) if about & ARRAY_PARTS else (),
            (),
            tuple(self.contains(located)) if "contains" in schema else (),
            self._count(located, "minItems") or 0,
            self._count(located, "maxItems"),
            self.asserts(located, "uniqueItems") and schema["uniqueItems"] is True,
        )

    def contains(self, located: Located) -> list[Contains]:
        """Return the schemas that a number of items must satisfy (`Contains`), with the bounds of that number."""
        if not self.asserts(located, "contains"):
            return []
        least = self._count(located, "minContains")
        least = 1 if least is None else least
        most = self._count(located, "maxContains")
        if least == 0 and most is None:
            return []
        return [Contains(signed(located.under("contains")), 0, None, least, most)]

    def _numbers(self, numbers: NumberRange, located: Located) -> NumberRange:
        schema = located.schema
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
            declared = located.members("properties") if "properties" in schema else {}
            patterned: dict[str, Located] = {}
            if "patternProperties" in schema and self.asserts(located, "patternProperties"):
                patterned = located.members("patternProperties")
            additional = signed(located.under("additionalProperties")) if "additionalProperties" in schema else None
            part = ObjectPart(_signed(declared), _signed(patterned), additional, "properties" in schema)
            self._objects[located] = part
        return part

    def array_part(self, located: Located) -> ArrayPart:
        """Return the schemas of items by position; computed once."""
        part = self._arrays.get(located)
        if part is None:
            schema = located.schema
            prefix: tuple[Formula, ...] = ()
            items: Formula | None = None
            if isinstance(schema.get("items"), (list, tuple)):
                prefix = tuple([signed(item) for item in located.items("items")])
                if "additionalItems" in schema:
                    items = signed(located.under("additionalItems"))
            else:
                if self.asserts(located, "prefixItems"):
                    prefix = tuple([signed(item) for item in located.items("prefixItems")])
                if "items" in schema:
                    items = signed(located.under("items"))
            part = ArrayPart(prefix, items)
            self._arrays[located] = part
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
                    yield name, signed(located.child(keyword, name))

    def constant(self, value: Any) -> Formula:
        """Return the formula of one value, in a keyword that every draft has: Draft 4 lacks ``const``."""
        entry = self._constants.get(id(value))
        if entry is None:  # the value is kept, so that its id stays its own
            entry = self._constants[id(value)] = (value, signed(Located({"enum": (value,)})))
        return entry[1]


def _signed(subschemas: Mapping[str, Located]) -> dict[str, Formula]:
    """Return the subschemas of a dict as ones that must hold."""
    return {name: signed(located) for name, located in subschemas.items()}


def types_of(schema: Mapping[str, Any]) -> tuple[frozenset[str], bool]:
    """Return the types that ``type`` allows, and True if numbers must be integers."""
    if "nullable" not in schema and isinstance(schema["type"], str):
        return _TYPES[schema["type"]]
    names = schema["type"] if isinstance(schema["type"], (list, tuple)) else [schema["type"]]
    wanted = {"number" if name == "integer" else name for name in names}
    if "any" in wanted:
        wanted = set(TYPES)
    if schema.get("nullable") is True:
        wanted.add("null")
    return frozenset(wanted), "integer" in names and "number" not in names and "any" not in names


def asserted(schema: Mapping[str, Any]) -> Set[str]:
    """Return the keywords of a schema that may constrain a value, or make others do so."""
    return {word for word in schema if word in CONSTRAINING}  # faster than the meet of two sets of different sizes


def asserts_only(schema: Mapping[str, Any], keyword: str) -> bool:
    """Return True if `asserted` has one keyword and no other."""
    for word in schema:
        if word != keyword and word in CONSTRAINING:
            return False
    return keyword in schema


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
