"""The row of a keyword: the shape of its value, its drafts, and the functions of its meaning.

A row holds all that the rest of the package knows about its keyword. Readers follow the rows: `check/problems` asks for
the check of the value and the schemas that are needed, `normal/assertions` for the facts, `normal/normalise` for the
formulas on the same value, `normal/negation` for the negation, and `normal/inhabited` for a witness.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Protocol

from ...errors import LimitError, SchemaError
from ..normal.conjunction import EVERY, ArrayPart, Formula, ObjectPart
from ..read.located import Located, SignedSchema


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
    OWN = 23  # another: the row's `check` says which


class Role(Enum):
    """How a keyword takes part in judging a value."""

    IDENTIFIER = "names a schema, a dialect or an anchor"
    DEFINITIONS = "has schemas that others refer to"
    REFERENCE = "applies the schema that it refers to to the same value"
    SAME_VALUE = "applies other schemas to the same value, or requires members, perhaps under a condition"
    REMAINDER = "applies a schema to the parts of a value that other keywords did not evaluate"
    PARTS = "applies schemas to the members or items of a value"
    ASSERTION = "constrains a value by itself"
    FORMAT = "constrains strings, or annotates them, as the reader chooses"
    LIVE = "constrains the values of a member while a text is written"
    ANNOTATION = "constrains nothing"


class Join(Enum):
    """How many of the schemas that a keyword lists hold of a value."""

    EVERY = "all of them"
    SOME = "one or more"
    ONE = "exactly one"


class Holds(Enum):
    """Values that surely satisfy a keyword, whatever its own value is."""

    UNKNOWN = "none"
    EMPTY = 'the empty value of each type ("", 0, [], {}), true, false and null'
    PARTS = "the same, and every value whose members satisfy `properties` and whose items satisfy `items`"


class Document(Protocol):
    """References of one document (`read.resolve.Document`).

    Attributes:
        ref_hides_siblings: up to Draft 7, keywords beside ``$ref`` are ignored.
        disjoint: identities of schemas with a ``oneOf`` of which no value satisfies two options.
    """

    ref_hides_siblings: bool
    disjoint: set[int]

    def knows(self, keyword: str) -> bool:
        """Return True if the dialect has a keyword."""

    def resolve(self, located: Located, keyword: str = "$ref") -> Located:
        """Return the subschema that a reference names."""

    def enter(self, located: Located) -> Located:
        """Return a subschema with what references mean inside of it."""


class Assertions(Protocol):
    """Reader of what the schemas of one document assert (`normal.assertions.Assertions`)."""

    def asserts(self, located: Located, keyword: str) -> bool:
        """Return True if a subschema has a keyword that its dialect knows and that is not left out."""

    def asserts_format(self, located: Located) -> bool:
        """Return True if a subschema's ``format`` is more than an annotation."""

    def values(self, located: Located) -> tuple[Any, ...] | None:
        """Return the values that a schema lists; None: it lists none."""

    def object_part(self, located: Located) -> ObjectPart:
        """Return the schemas of members by name and by pattern."""

    def array_part(self, located: Located) -> ArrayPart:
        """Return the schemas of items by position."""

    def constant(self, *values: Any) -> Formula:
        """Return the formula of one of some values."""

    def matches(self, pattern: str, name: str) -> bool:
        """Return True if a pattern matches some part of a name."""


class Schemas(Assertions, Protocol):
    """Reader of the schemas of one document, with their negations (`normal.normalise.Normaliser`).

    Attributes:
        unenforced: keywords that are left out, as pairs of a subschema's key and the keyword.
        one_of_as_union: above zero while ``oneOf`` is taken for a plain union.
    """

    unenforced: Collection[tuple[object, str]]
    one_of_as_union: int

    @property
    def document(self) -> Document:
        """Where references lead."""

    def denied(self, options: Sequence[SignedSchema]) -> list[Formula]:
        """Return formulas that must all hold for none of some schemas to hold."""

    def overlaps(self, located: Located, options: Sequence[SignedSchema]) -> list[frozenset[int]]:
        """Return, for each option of a schema's ``oneOf``, the others that are not provably disjoint from it."""

    def one_of(self, located: Located, options: Sequence[SignedSchema]) -> Formula:
        """Return the formula of a schema's ``oneOf``, given its options."""

    def any_of(self, located: Located, options: tuple[SignedSchema, ...], scopes: tuple[Any, ...]) -> Formula:
        """Return the formula of a schema's ``anyOf``, given its options and the scopes that track evaluated parts."""


class Check(Protocol):
    """Collector of the problems of one document (`check.problems`).

    Attributes:
        formats: ``format`` is an assertion.
        strict_formats: a format that the specification does not know is refused.
        respells: one array or object may be written in several ways, by order or spacing.
        entries: number of keywords, names and listed values so far.
        values: number of the listed values.
        value_bytes: the bytes that these take.
        has_common: a format or a bound of `scalars.common.common_values` was met.
        most_parts: the product of all lower bounds of counts so far.
    """

    formats: bool
    strict_formats: bool
    respells: bool
    entries: int
    values: int
    value_bytes: int
    has_common: bool
    most_parts: float

    def invalid(self, located: Located, keyword: str, message: str, hint: str | None = None) -> None:
        """Note that the value of a keyword is malformed."""

    def malformed_by(self, located: Located, error: SchemaError | LimitError) -> None:
        """Note a problem because of which the schema is not read any further."""

    def beyond(self, located: Located, keyword: str, message: str, hint: str) -> None:
        """Note that the value of a keyword exceeds a limit."""

    def refuse(self, located: Located, error: SchemaError | LimitError) -> None:
        """Note that a well-formed keyword cannot be enforced."""


class Facts:
    """The assertions of one schema, collected keyword by keyword.

    Attributes:
        schemas: reads the schema.
        located: the schema.
        types: the JSON types that are allowed.
        values: the listed values; None: no list was given.
        numbers: constraints on numbers.
        strings: constraints on strings, as arguments of `Strings`.
        arrays: constraints on arrays, as arguments of `Arrays`.
        objects: constraints on objects, as arguments of `Objects`.
    """

    __slots__ = ("arrays", "located", "numbers", "objects", "schemas", "strings", "types", "values")

    def __init__(self, schemas: Assertions, located: Located) -> None:
        self.schemas = schemas
        self.located = located
        self.types = EVERY.types
        self.values: tuple[Any, ...] | None = None
        self.numbers = EVERY.numbers
        self.strings: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {}
        self.objects: dict[str, Any] = {}


#: Keys and indices that lead from a keyword's value to a schema in it.
Steps = tuple[str | int, ...]

#: Returns a value that satisfies a schema, in a list; an empty list if one exists and is not known; None if it is not
#: known whether one exists (`normal.inhabited.Inhabited.witness`).
Witness = Callable[[Any], "list[Any] | None"]

#: Formulas that a schema's keyword stands for.
Formulas = Callable[[Schemas, Located], Iterable[Formula]]


@dataclass(frozen=True)
class Keyword:
    """One keyword.

    Attributes:
        name: its name.
        shape: the shape of its value.
        role: its part in the validation of a value.
        type: the JSON type that it constrains; None: every type.
        since: the first draft that has it.
        until: the first later draft that lacks it; None: all later ones have it.
        forks: it makes alternatives, or refers to a schema that may.
        negates: it may need the negation of a subschema.
        narrowed: values that are left out where the keyword must fail; None: its negation is exact.
        holds: values that surely satisfy it.
        signs: returns the signs of the subschemas under the keyword, for a schema and its sign (True: it must hold;
            False: it must fail). A subschema may have both signs. None: the sign of the schema.
        join: how many of the listed schemas must hold of the same value; None: it does not list such schemas.
        companions: the keyword constrains nothing in a schema without one of these keywords; empty: it always does.
        foreign: names of other libraries for it, in lower case, for hints.
        check: notes the problems of its value; None: the check of its shape (`shapes.CHECKS`).
        needed: yields, for a schema and its dialect, groups of subschemas in the value, by the steps that lead to them.
            Each value of the schema that has the row's type satisfies one schema of each group, or has a part that
            does.
        witness: returns a witness of a schema in which, apart from ``type``, only this keyword constrains values. Its
            last argument returns those of subschemas.
        facts: adds the constraints of its value to the facts of its schema.
        applied: returns the formulas of the schemas that it applies to the same value, given the scopes that track
            evaluated parts.
        negation: returns formulas of which at least one holds if and only if the keyword fails.
    """

    name: str
    shape: Shape
    role: Role
    type: str | None = None
    since: Draft = Draft.DRAFT_4
    until: Draft | None = None
    forks: bool = False
    negates: bool = False
    narrowed: str | None = None
    holds: Holds = Holds.UNKNOWN
    join: Join | None = None
    companions: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    signs: Callable[[Mapping[str, Any], bool], tuple[bool, ...]] | None = None
    check: Callable[[Check, Located, str, Any], None] | None = None
    needed: Callable[[Mapping[str, Any], Document], Iterator[Sequence[Steps]]] | None = None
    witness: Callable[[Mapping[str, Any], Document | None, Witness], list[Any] | None] | None = None
    facts: Callable[[Facts, Any], None] | None = None
    applied: Callable[[Schemas, Located, tuple[Any, ...]], Iterable[Formula]] | None = None
    negation: Formulas | None = None

    def is_in(self, draft: int) -> bool:
        """Return True if a draft has this keyword."""
        return self.since <= draft and (self.until is None or draft < self.until)
