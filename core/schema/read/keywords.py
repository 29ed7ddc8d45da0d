"""The JSON Schema keywords: one row for each, with its shape, role, JSON type and drafts.

Readers that follow the rows without knowing the keyword: `check/problems` (is the value well-formed, does the dialect
have the keyword, does it fork, may lowering fail), `check/explore`, `schema_key` (annotations), `resolve`
(`Document.knows`), `normal/inhabited`, and whatever walks subschemas by `map_subschemas`. Readers that also need to
know what a keyword means, and so are changed by hand: `normal/assertions` reads what a schema asserts by itself,
`normal/normalise` what it applies to the same value, `normal/negation` the opposite of both, and `check/problems` the
sign of subschemas that may be required to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

#: JSON types of values.
TYPES = ("null", "boolean", "number", "string", "array", "object")


class Draft(IntEnum):
    """Versions of the specification, oldest first."""

    DRAFT_4 = 0
    DRAFT_6 = 1
    DRAFT_7 = 2
    DRAFT_2019_09 = 3
    DRAFT_2020_12 = 4


class Shape(IntEnum):
    """Shape of a keyword's value."""

    SCHEMA = 1
    SCHEMAS = 2  # a list of schemas
    ALTERNATIVES = 3  # the same, not empty
    ITEMS = 4  # a schema, or before 2020-12 a list of schemas
    BY_NAME = 5  # schemas by a name
    BY_PATTERN = 6  # schemas by a regular expression
    DEPENDENCIES = 7  # schemas, or lists of names, by a name
    REQUIREMENTS = 8  # lists of names by a name
    TYPE = 9  # the name of a type, or a list of them
    NAMES = 10  # a list of strings
    VALUES = 11  # a list of any JSON values
    VALUE = 12  # any JSON value
    UPPER_COUNT = 13  # a whole number that is not negative: an upper bound
    LOWER_COUNT = 14  # the same: a lower bound
    BOUND = 15  # a number (draft 4: exclusiveMinimum and exclusiveMaximum are flags)
    STEP = 16  # a number above zero
    PATTERN = 17  # a regular expression
    FORMAT = 18  # the name of a format
    FLAG = 19  # true or false
    REFERENCE = 20  # a URI reference
    TEXT = 21  # a string; not checked, as the keywords of this shape constrain nothing
    GRAMMAR = 22  # a grammar of strings as text (see `core/text_grammars/strings.py`)


#: Shapes of schemas by a name.
_NAMED = (Shape.BY_NAME, Shape.BY_PATTERN, Shape.DEPENDENCIES)


class Role(Enum):
    """How a keyword takes part in judging a value."""

    IDENTIFIER = "names a schema, a dialect or a place"
    DEFINITIONS = "holds schemas for others to refer to"
    REFERENCE = "applies a schema from another place to the same value"
    SAME_VALUE = "applies schemas, or requires members, depending on other schemas that hold of the same value"
    REMAINDER = "applies a schema to the parts of a value that other keywords did not evaluate"
    PARTS = "applies schemas to the members or items of a value"
    ASSERTION = "constrains a value by itself"
    FORMAT = "constrains strings, or annotates them, as the reader chooses"
    ANNOTATION = "constrains nothing"


@dataclass(frozen=True)
class Keyword:
    """One keyword.

    Attributes:
        name: how it is written.
        shape: what its value is.
        role: how it takes part in judging a value.
        type: the JSON type that it constrains; None: every type.
        since: the first draft that has it.
        until: the first draft that has it no more; None: all later ones have it.
        forks: it makes alternatives, or refers to what may.
        negates: judging it may take the negation of a subschema.
        negatable: its own negation can be enforced exactly; else it is narrowed.
        trivial: it holds of the empty value of each type (``""``, ``0``, ``[]``, ``{}``, and true, false, null).
        risky: a well-formed schema may still turn out to be beyond a limit, or impossible to enforce, beside it.
    """

    name: str
    shape: Shape
    role: Role
    type: str | None = None
    since: Draft = Draft.DRAFT_4
    until: Draft | None = None
    forks: bool = False
    negates: bool = False
    negatable: bool = True
    trivial: bool = False
    risky: bool = False

    def is_in(self, draft: int) -> bool:
        """Return True if a draft has this keyword."""
        return self.since <= draft and (self.until is None or draft < self.until)


_S, _R, _D = Shape, Role, Draft

#: The keyword of ours: a string is a text of a grammar.
GRAMMAR = "x-grammar"

#: Every keyword that some reader treats in a way of its own, by name. All others are annotations.
KEYWORDS: dict[str, Keyword] = {
    row.name: row
    for row in (
        # objects
        Keyword("properties", _S.BY_NAME, _R.PARTS, "object", trivial=True),
        Keyword("required", _S.NAMES, _R.ASSERTION, "object"),
        Keyword("patternProperties", _S.BY_PATTERN, _R.PARTS, "object", trivial=True, risky=True),
        Keyword("additionalProperties", _S.SCHEMA, _R.PARTS, "object", trivial=True),
        Keyword("propertyNames", _S.SCHEMA, _R.PARTS, "object", _D.DRAFT_6, trivial=True, risky=True),
        Keyword("minProperties", _S.LOWER_COUNT, _R.ASSERTION, "object"),
        Keyword("maxProperties", _S.UPPER_COUNT, _R.ASSERTION, "object", trivial=True),
        # lists of values
        Keyword("enum", _S.VALUES, _R.ASSERTION),
        Keyword("const", _S.VALUE, _R.ASSERTION, since=_D.DRAFT_6),
        # alternatives
        Keyword("anyOf", _S.ALTERNATIVES, _R.SAME_VALUE, forks=True),
        Keyword("allOf", _S.ALTERNATIVES, _R.SAME_VALUE, forks=True, risky=True),
        Keyword("oneOf", _S.ALTERNATIVES, _R.SAME_VALUE, forks=True),
        # arrays
        Keyword("prefixItems", _S.SCHEMAS, _R.PARTS, "array", _D.DRAFT_2020_12, trivial=True),
        Keyword("items", _S.ITEMS, _R.PARTS, "array", trivial=True),
        Keyword("additionalItems", _S.SCHEMA, _R.PARTS, "array", trivial=True),
        Keyword("minItems", _S.LOWER_COUNT, _R.ASSERTION, "array"),
        Keyword("maxItems", _S.UPPER_COUNT, _R.ASSERTION, "array", trivial=True),
        # strings
        Keyword("pattern", _S.PATTERN, _R.ASSERTION, "string"),
        Keyword("format", _S.FORMAT, _R.FORMAT, "string"),
        Keyword("minLength", _S.LOWER_COUNT, _R.ASSERTION, "string"),
        Keyword("maxLength", _S.UPPER_COUNT, _R.ASSERTION, "string", trivial=True),
        Keyword(GRAMMAR, _S.GRAMMAR, _R.ASSERTION, "string", risky=True),
        # numbers
        Keyword("minimum", _S.BOUND, _R.ASSERTION, "number"),
        Keyword("maximum", _S.BOUND, _R.ASSERTION, "number"),
        Keyword("exclusiveMinimum", _S.BOUND, _R.ASSERTION, "number"),
        Keyword("exclusiveMaximum", _S.BOUND, _R.ASSERTION, "number"),
        Keyword("type", _S.TYPE, _R.ASSERTION),
        # the same value
        Keyword("not", _S.SCHEMA, _R.SAME_VALUE, forks=True, negates=True, risky=True),
        Keyword("if", _S.SCHEMA, _R.SAME_VALUE, since=_D.DRAFT_7, forks=True, negates=True, risky=True),
        Keyword("then", _S.SCHEMA, _R.SAME_VALUE),
        Keyword("else", _S.SCHEMA, _R.SAME_VALUE),
        Keyword("contains", _S.SCHEMA, _R.PARTS, "array", _D.DRAFT_6, negates=True, risky=True),
        Keyword("minContains", _S.LOWER_COUNT, _R.ASSERTION, "array", _D.DRAFT_2019_09),
        Keyword("maxContains", _S.UPPER_COUNT, _R.ASSERTION, "array", _D.DRAFT_2019_09),
        Keyword("unevaluatedProperties", _S.SCHEMA, _R.REMAINDER, "object", _D.DRAFT_2019_09, negates=True, risky=True),
        Keyword("unevaluatedItems", _S.SCHEMA, _R.REMAINDER, "array", _D.DRAFT_2019_09, negates=True, risky=True),
        Keyword("dependentSchemas", _S.BY_NAME, _R.SAME_VALUE, "object", _D.DRAFT_2019_09, forks=True, risky=True),
        Keyword("dependentRequired", _S.REQUIREMENTS, _R.SAME_VALUE, "object", _D.DRAFT_2019_09),
        Keyword("dependencies", _S.DEPENDENCIES, _R.SAME_VALUE, "object", forks=True, risky=True),
        Keyword("multipleOf", _S.STEP, _R.ASSERTION, "number", risky=True),
        Keyword("uniqueItems", _S.FLAG, _R.ASSERTION, "array", negatable=False, trivial=True, risky=True),
        Keyword("nullable", _S.FLAG, _R.ASSERTION, trivial=True),  # OpenAPI 3.0
        # references, and what they lead to
        Keyword("$ref", _S.REFERENCE, _R.REFERENCE, forks=True),
        Keyword("$dynamicRef", _S.REFERENCE, _R.REFERENCE, since=_D.DRAFT_2020_12, risky=True),
        Keyword(
            "$recursiveRef", _S.REFERENCE, _R.REFERENCE, since=_D.DRAFT_2019_09, until=_D.DRAFT_2020_12, risky=True
        ),
        Keyword("$defs", _S.BY_NAME, _R.DEFINITIONS, trivial=True),
        Keyword("definitions", _S.BY_NAME, _R.DEFINITIONS, trivial=True),
        Keyword("$id", _S.TEXT, _R.IDENTIFIER, since=_D.DRAFT_6),
        Keyword("id", _S.TEXT, _R.IDENTIFIER, until=_D.DRAFT_6),
        Keyword("$schema", _S.TEXT, _R.IDENTIFIER, trivial=True),
        Keyword("$anchor", _S.TEXT, _R.IDENTIFIER, since=_D.DRAFT_2019_09),
        Keyword("$dynamicAnchor", _S.TEXT, _R.IDENTIFIER, since=_D.DRAFT_2020_12),
        Keyword("$recursiveAnchor", _S.FLAG, _R.IDENTIFIER, since=_D.DRAFT_2019_09, until=_D.DRAFT_2020_12),
        # annotations
        Keyword("title", _S.TEXT, _R.ANNOTATION, trivial=True),
        Keyword("description", _S.TEXT, _R.ANNOTATION, trivial=True),
        Keyword("$comment", _S.TEXT, _R.ANNOTATION, trivial=True),
        Keyword("deprecated", _S.FLAG, _R.ANNOTATION, trivial=True),
        Keyword("readOnly", _S.FLAG, _R.ANNOTATION, trivial=True),
        Keyword("writeOnly", _S.FLAG, _R.ANNOTATION, trivial=True),
        Keyword("default", _S.VALUE, _R.ANNOTATION, trivial=True),
        Keyword("examples", _S.VALUES, _R.ANNOTATION, trivial=True),
        Keyword("example", _S.VALUE, _R.ANNOTATION, trivial=True),  # OpenAPI 3.0
        Keyword("contentSchema", _S.SCHEMA, _R.ANNOTATION, "string", trivial=True),
    )
}


def keywords(
    *,
    shapes: Iterable[Shape] = tuple(Shape),
    roles: Iterable[Role] = tuple(Role),
    types: Iterable[str | None] = (None, *TYPES),
) -> tuple[str, ...]:
    """Return the keywords of these shapes, roles and JSON types, in the order of the table."""
    shapes, roles, types = frozenset(shapes), frozenset(roles), frozenset(types)
    return tuple(
        row.name for row in KEYWORDS.values() if row.shape in shapes and row.role in roles and row.type in types
    )


#: Keywords whose value is one schema; a list of schemas; schemas by name or by pattern.
ONE_SCHEMA = frozenset(keywords(shapes=(Shape.SCHEMA,)))
SCHEMA_LISTS = frozenset(keywords(shapes=(Shape.SCHEMAS, Shape.ALTERNATIVES)))
SCHEMA_MAPS = frozenset(keywords(shapes=(Shape.BY_NAME, Shape.BY_PATTERN)))

#: Keywords whose value is data, in which nothing is a schema although it may look like one.
DATA = frozenset(keywords(shapes=(Shape.VALUE, Shape.VALUES)))

#: Keywords that constrain nothing.
ANNOTATIONS = frozenset(keywords(roles=(Role.ANNOTATION,)))

REFERENCES = keywords(roles=(Role.REFERENCE,))
#: The vocabulary of assertions (Draft 2020-12 validation, section 6), which a metaschema may leave out.
VALIDATION = frozenset({*keywords(roles=(Role.ASSERTION,)), "dependentRequired"}) - {GRAMMAR}

DEFINITIONS = frozenset(keywords(roles=(Role.DEFINITIONS,)))

#: Keywords that judge a value by other schemas for the same value: where there are none, what a schema asserts is one
#: conjunction.
APPLICATORS = frozenset(keywords(roles=(Role.REFERENCE, Role.SAME_VALUE, Role.REMAINDER)))

#: Keywords that may constrain a value, or make others do so.
CONSTRAINING = APPLICATORS.union(keywords(roles=(Role.PARTS, Role.ASSERTION, Role.FORMAT)))


def map_schemas(schema: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Return a schema with a change made to it and to every schema within, the inner ones first.

    Only the values of `DATA` are left as they are: whatever else an unknown keyword holds, a reference may lead there.
    """
    if isinstance(schema, list):
        return [map_schemas(inner, change) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema

    def within(inner: Any, *steps: str | int) -> Any:
        return map_schemas(inner, change)

    return change(
        {key: map_subschemas(key, value, within) if key in KEYWORDS else within(value) for key, value in schema.items()}
    )


def every_schema(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema that is an object, and every such schema within: those to which `map_schemas` makes a change."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, Mapping):
            yield part
            for key, value in part.items():
                waiting += [inner for _, inner in subschemas(key, value)] if key in KEYWORDS else [value]


def subschemas(keyword: str, value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each schema in a keyword's value after the steps that lead to it; a value of another shape has none."""
    row = KEYWORDS.get(keyword)
    if row is None or row.shape > Shape.DEPENDENCIES:
        return
    if row.shape in _NAMED:
        if isinstance(value, dict):
            yield from (((name,), inner) for name, inner in value.items())
    elif isinstance(value, list):
        if row.shape is not Shape.SCHEMA:
            yield from (((index,), inner) for index, inner in enumerate(value))
    elif row.shape not in (Shape.SCHEMAS, Shape.ALTERNATIVES):
        yield (), value


def map_subschemas(keyword: str, value: Any, change: Callable[..., Any]) -> Any:
    """Return a keyword's value with each schema in it changed.

    Args:
        keyword: its name.
        value: its value.
        change: takes a schema, and the step that leads to it if it is one of several.
    """
    row = KEYWORDS.get(keyword)
    if row is None or row.shape > Shape.DEPENDENCIES:
        return value
    if row.shape in _NAMED:
        return {name: change(inner, name) for name, inner in value.items()} if isinstance(value, dict) else value
    if isinstance(value, list):
        return value if row.shape is Shape.SCHEMA else [change(inner, index) for index, inner in enumerate(value)]
    return value if row.shape in (Shape.SCHEMAS, Shape.ALTERNATIVES) else change(value)
