# cython: language_level=3
"""Types of the normal form: formulas over subschemas, and *typed conjunctions*.

A `Formula` is a signed subschema, or formulas joined by and/or. A `Goal` is a set of formulas that must all hold of one
value. A `Conjunction` is one alternative of a goal's normal form: for each JSON type, the constraints on values of that
type. The form is that of Attouche, Baazizi, Colazzo, Ghelli, Sartiani, Scherzinger (2022), "Witness Generation for JSON
Schema": negation is pushed inwards as far as single assertions, which are closed under it. As a formula, a
conjunction is called a *fact*.

Compiled where that is possible (Cython in pure-Python mode), as a schema may have thousands of alternatives. They are
values without cycles, so the garbage collector need not track them (``no_gc``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, Union

from ..read.keywords import TYPES
from ..read.located import Located, SignedSchema
from ..scalars.numbers import NumberRange

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ...compiled import standin as cython  # type: ignore[no-redef]

#: True if this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)

Value = TypeVar("Value")

_ANY_NUMBER = NumberRange()
_NONE: frozenset = frozenset()


def hashed_once(kind: type[Value]) -> type[Value]:
    """Make a class of immutable values compute each hash once: their parts may be large."""
    computed = kind.__hash__
    kind._hash = None  # type: ignore[attr-defined]  # until an instance sets its own

    def hash_once(self: Any) -> int:
        remembered: int | None = self._hash
        if remembered is None:
            remembered = computed(self)
            object.__setattr__(self, "_hash", remembered)
        return remembered

    kind.__hash__ = hash_once  # type: ignore[method-assign]
    return kind


@cython.no_gc
@cython.cclass
class AnyOf:
    """At least one of the formulas holds; of none: never true."""

    def __init__(self, parts: tuple) -> None:
        self.parts = parts
        self._hash = 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, AnyOf) and self.parts == cython.cast(AnyOf, other).parts)

    def __hash__(self) -> int:
        if self._hash == 0:
            self._hash = hash(self.parts) ^ 1 or 1
        return self._hash

    def __repr__(self) -> str:
        return f"AnyOf({self.parts!r})"


@cython.no_gc
@cython.cclass
class AllOf:
    """All formulas hold; of none: always true."""

    def __init__(self, parts: tuple) -> None:
        self.parts = parts
        self._hash = 0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, AllOf) and self.parts == cython.cast(AllOf, other).parts)

    def __hash__(self) -> int:
        if self._hash == 0:
            self._hash = hash(self.parts) ^ 2 or 1
        return self._hash

    def __repr__(self) -> str:
        return f"AllOf({self.parts!r})"


@hashed_once
@dataclass(frozen=True)
class IfThenElse:
    """One formula where a condition holds, another where it does not."""

    condition: Formula
    then: Formula
    otherwise: Formula


@cython.no_gc
@cython.cclass
class ObjectPart:
    """Constraints of one schema on members by name. Compared by identity.

    Attributes:
        properties: formulas by name.
        patterns: formulas by pattern.
        additional: the formula of all other members; None: they are unconstrained.
        names_properties: the schema has the keyword ``properties``, be it empty.
    """

    def __init__(
        self,
        properties: object = None,
        patterns: object = None,
        additional: object = None,
        names_properties: cython.bint = False,
    ) -> None:
        self.properties = {} if properties is None else properties
        self.patterns = {} if patterns is None else patterns
        self.additional = additional
        self.names_properties = names_properties


@hashed_once
@dataclass(frozen=True)
class UnevaluatedProperties:
    """Every member that none of the parts evaluates satisfies the formula (``unevaluatedProperties``)."""

    parts: tuple[ObjectPart, ...]
    formula: Formula


@cython.no_gc
@cython.cclass
class Exists:
    """Some member satisfies the formula. Exactly one of the other attributes is given, and constrains its name.

    Attributes:
        formula: the formula of the value.
        name: the name.
        pattern: a pattern that the name matches.
        beside: parts that do not evaluate a member of the name.
        failing: a formula that the name does not satisfy.
    """

    def __init__(
        self,
        formula: object,
        name: object = None,
        pattern: object = None,
        beside: object = None,
        failing: object = None,
    ) -> None:
        self.formula = formula
        self.name = name
        self.pattern = pattern
        self.beside = beside
        self.failing = failing
        self._hash = 0

    @cython.cfunc
    def _key(self) -> tuple:
        return self.name, self.formula, self.pattern, self.beside, self.failing

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Exists) and self._key() == cython.cast(Exists, other)._key())

    def __hash__(self) -> int:
        if self._hash == 0:
            self._hash = hash(self._key()) or 1
        return self._hash

    def __repr__(self) -> str:
        return f"Exists({self.formula!r}, {self.name!r}, {self.pattern!r}, {self.beside!r}, {self.failing!r})"


@cython.no_gc
@cython.cclass
class AnyExists:
    """Some member is one of the ``options``, or a member of one of the names ``absent`` is missing."""

    def __init__(self, options: tuple, absent: frozenset = _NONE) -> None:
        self.options = options
        self.absent = absent
        self._hash = 0

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, AnyExists):
            return False
        some: AnyExists = other
        return self.options == some.options and self.absent == some.absent

    def __hash__(self) -> int:
        if self._hash == 0:
            self._hash = hash((self.options, self.absent)) or 1
        return self._hash

    def __repr__(self) -> str:
        return f"AnyExists({self.options!r}, {self.absent!r})"


@cython.no_gc
@cython.cclass
class ArrayPart:
    """Constraints of one schema on items by position. Compared by identity."""

    def __init__(self, prefix: tuple = (), items: object = None) -> None:
        self.prefix = prefix
        self.items = items


@hashed_once
@dataclass(frozen=True)
class Contains:
    """Between ``least`` and ``most`` of the items at positions ``first <= i < end`` satisfy the formula."""

    formula: Formula
    first: int = 0
    end: int | None = None
    least: int = 1
    most: int | None = None


@hashed_once
@dataclass(frozen=True)
class UnevaluatedItems:
    """Every item that the parts do not evaluate and that satisfies none of ``found`` (``contains``) satisfies the
    formula (``unevaluatedItems``)."""

    parts: tuple[ArrayPart, ...]
    found: tuple[Formula, ...]
    formula: Formula


@cython.no_gc
@cython.cclass
class Strings:
    """Constraints on strings: length in code points, and patterns and formats that they match or do not match.

    A pattern is an expression of ECMA-262, or a `StringGrammar`.
    """

    def __init__(
        self,
        least: object = 0,
        most: object = None,
        patterns: tuple = (),
        formats: tuple = (),
        not_patterns: tuple = (),
        not_formats: tuple = (),
    ) -> None:
        self.least = least
        self.most = most
        self.patterns = patterns
        self.formats = formats
        self.not_patterns = not_patterns
        self.not_formats = not_formats

    def with_patterns(self, patterns: tuple) -> Strings:
        """Return the same constraints with other patterns that match."""
        return Strings(self.least, self.most, patterns, self.formats, self.not_patterns, self.not_formats)

    @cython.cfunc
    def _key(self) -> tuple:
        return self.least, self.most, self.patterns, self.formats, self.not_patterns, self.not_formats

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Strings) and self._key() == cython.cast(Strings, other)._key())

    def __hash__(self) -> int:
        return hash(self._key())


@cython.no_gc
@cython.cclass
class Findings:
    """Memo of facts about the members of some objects, for the next comparison of alternatives.

    Attributes:
        members: by name, the facts about a member's value (`prune.MemberFacts`).
        is_void: True if a required member has no value; None: not computed yet.
        excluded: by name and depth, True if no value satisfies the constraints on a member.
    """

    def __init__(self) -> None:
        self.members = {}
        self.is_void = None
        self.excluded = {}


@cython.no_gc
@cython.cclass
class Objects:
    """Constraints on objects.

    Attributes:
        parts: members by name, one part for each schema.
        unevaluated: members that some schemas do not evaluate.
        exists: members that must be there, with constraints on their values.
        names: formulas of all names.
        required: names of members that must be there.
        absent: names of members that must not be there.
        least: minimum number of members.
        most: maximum number of members; None: no maximum.
        any_exists: alternatives of which one must hold.
    """

    def __init__(
        self,
        parts: tuple = (),
        unevaluated: tuple = (),
        exists: tuple = (),
        names: tuple = (),
        required: tuple = (),
        absent: frozenset = _NONE,
        least: object = 0,
        most: object = None,
        any_exists: tuple = (),
    ) -> None:
        self.parts = parts
        self.unevaluated = unevaluated
        self.exists = exists
        self.names = names
        self.required = required
        self.absent = absent
        self.least = least
        self.most = most
        self.any_exists = any_exists
        self._hash = 0
        self._needed = None
        self._named = None
        self._findings = None

    @cython.cfunc
    def _key(self) -> tuple:
        return (
            self.parts,
            self.unevaluated,
            self.exists,
            self.names,
            self.required,
            self.absent,
            self.least,
            self.most,
            self.any_exists,
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Objects) and self._key() == cython.cast(Objects, other)._key())

    def __hash__(self) -> int:
        if self._hash == 0:
            self._hash = hash(self._key()) or 1
        return self._hash

    @property
    def needed(self) -> frozenset:
        """Names of members that must be there."""
        return self.names_needed()

    @cython.cfunc
    def names_needed(self) -> frozenset:
        """Return `needed`."""
        if self._needed is None:
            needed = frozenset(self.required)
            if self.exists:
                needed = needed.union([exists.name for exists in self.exists if exists.name is not None])
            self._needed = needed
        return self._needed

    @property
    def named(self) -> frozenset:
        """Names that some constraint mentions."""
        return self.names_asked()

    @cython.cfunc
    def names_asked(self) -> frozenset:
        """Return `named`."""
        if self._named is None:
            names: set = {exists.name for exists in self.exists if exists.name is not None} if self.exists else set()
            for part in self.parts:
                names.update(cython.cast(ObjectPart, part).properties)
            self._named = frozenset(names)
        return self._named

    @property
    def only_named(self) -> object:
        """Names that the parts mention; None if a part also constrains members by pattern, or additional members."""
        names: set = set()
        for part in self.parts:
            if part.patterns or part.additional is not None:
                return None
            names.update(part.properties)
        return frozenset(names)

    @property
    def findings(self) -> Findings:
        """Memo of facts about the members."""
        return self.notes()

    @cython.cfunc
    def notes(self) -> Findings:
        """Return `findings`."""
        if self._findings is None:
            self._findings = Findings()
        return self._findings

    def replace(self, **changes: object) -> Objects:
        """Return the same constraints with some of them changed."""
        values = {
            "parts": self.parts,
            "unevaluated": self.unevaluated,
            "exists": self.exists,
            "names": self.names,
            "required": self.required,
            "absent": self.absent,
            "least": self.least,
            "most": self.most,
            "any_exists": self.any_exists,
        }
        values.update(changes)
        return Objects(**values)


@cython.no_gc
@cython.cclass
class Arrays:
    """Constraints on arrays.

    Attributes:
        parts: items by position, one part for each schema.
        unevaluated: items that some schemas do not evaluate.
        contains: numbers of items that satisfy a formula.
        least: minimum number of items.
        most: maximum number of items; None: no maximum.
        unique: no item repeats.
    """

    def __init__(
        self,
        parts: tuple = (),
        unevaluated: tuple = (),
        contains: tuple = (),
        least: object = 0,
        most: object = None,
        unique: cython.bint = False,
    ) -> None:
        self.parts = parts
        self.unevaluated = unevaluated
        self.contains = contains
        self.least = least
        self.most = most
        self.unique = unique
        self._hash = 0

    @cython.cfunc
    def _key(self) -> tuple:
        return self.parts, self.unevaluated, self.contains, self.least, self.most, self.unique

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Arrays) and self._key() == cython.cast(Arrays, other)._key())

    def __hash__(self) -> int:
        if self._hash == 0:
            self._hash = hash(self._key()) or 1
        return self._hash

    def replace(self, **changes: object) -> Arrays:
        """Return the same constraints with some of them changed."""
        values = {
            "parts": self.parts,
            "unevaluated": self.unevaluated,
            "contains": self.contains,
            "least": self.least,
            "most": self.most,
            "unique": self.unique,
        }
        values.update(changes)
        return Arrays(**values)


#: No constraint on the values of one type.
_ANY_STRING, _ANY_ARRAY, _ANY_OBJECT = Strings(), Arrays(), Objects()
_ANY_TYPE = frozenset(TYPES)


@cython.no_gc
@cython.cclass
class Conjunction:
    """One alternative of a normal form: a value has one of the types, and satisfies the constraints on its type.
    Compared by identity.

    Attributes:
        types: the JSON types that are allowed.
        values: the value is one of these; None: no list was given.
        not_values: the value is none of these scalars.
        numbers: constraints on numbers.
        strings: constraints on strings.
        arrays: constraints on arrays.
        objects: constraints on objects.
    """

    def __init__(
        self,
        types: frozenset = _ANY_TYPE,
        values: object = None,
        not_values: tuple = (),
        numbers: object = _ANY_NUMBER,
        strings: Strings = _ANY_STRING,
        arrays: Arrays = _ANY_ARRAY,
        objects: Objects = _ANY_OBJECT,
    ) -> None:
        self.types = types
        self.values = values
        self.not_values = not_values
        self.numbers = numbers
        self.strings = strings
        self.arrays = arrays
        self.objects = objects

    @cython.ccall
    def of_types(self, types: frozenset) -> Conjunction:
        """Return the same for values of these types."""
        return Conjunction(types, self.values, self.not_values, self.numbers, self.strings, self.arrays, self.objects)

    def replace(self, **changes: object) -> Conjunction:
        """Return the same conjunction with some of it changed."""
        values = {
            "types": self.types,
            "values": self.values,
            "not_values": self.not_values,
            "numbers": self.numbers,
            "strings": self.strings,
            "arrays": self.arrays,
            "objects": self.objects,
        }
        values.update(changes)
        return Conjunction(**values)


@dataclass(frozen=True)
class OnlyKeywordFails:
    """A subschema holds except for one of its keywords, ``unevaluatedProperties`` or ``unevaluatedItems``."""

    located: Located
    keyword: str


#: A signed subschema, formulas joined, or a fact in normal form.
Formula = Union[SignedSchema, AnyOf, AllOf, IfThenElse, OnlyKeywordFails, Conjunction]

#: Formulas that must all hold.
Goal = tuple[Formula, ...]

TRUE = AllOf(())
FALSE = AnyOf(())

#: The unconstrained conjunction: every JSON value.
EVERY = Conjunction()


def negated(formula: Formula) -> Formula:
    """Return the negation of a formula.

    Raises:
        TypeError: it contains a fact (see `is_deniable`).
    """
    if isinstance(formula, SignedSchema):
        return SignedSchema(formula.located, not formula.positive)
    if isinstance(formula, AnyOf):
        return AllOf(tuple(negated(part) for part in formula.parts))
    if isinstance(formula, AllOf):
        return AnyOf(tuple(negated(part) for part in formula.parts))
    raise TypeError("a fact has no negation")


def is_deniable(formula: Formula) -> bool:
    """Return True if `negated` takes a formula."""
    if isinstance(formula, (AnyOf, AllOf)):
        return all(map(is_deniable, formula.parts))
    return isinstance(formula, SignedSchema)


def fact(kind: str | Iterable[str], **what: Any) -> Conjunction:
    """Return the conjunction of one or several types, with the given constraints."""
    types = frozenset((kind,) if isinstance(kind, str) else kind)
    return Conjunction(types, **what)


@cython.ccall
def meet(left: Conjunction, right: Conjunction) -> object:
    """Return the conjunction of two; None if their types, values or bounds exclude each other."""
    types: frozenset = left.types
    if right.types is not types and right.types is not _ANY_TYPE:
        types = right.types if types is _ANY_TYPE else types & right.types
    values = left.values
    if right.values is not None:
        values = right.values if values is None else in_both(values, right.values)
        if not values:
            return None
    both = Conjunction(
        types,
        values,
        left.not_values + right.not_values if right.not_values else left.not_values,
        _meet_numbers(left.numbers, right.numbers),
        _meet_strings(left.strings, right.strings),
        _meet_arrays(left.arrays, right.arrays),
        _meet_objects(left.objects, right.objects),
    )
    empty = _empty(both)
    if len(empty) == len(types):
        return None
    return both.of_types(types.difference(empty)) if empty else both


@cython.cfunc
def _empty(both: Conjunction) -> list:
    """Return the types whose constraints obviously exclude every value."""
    types: frozenset = both.types
    objects: Objects = both.objects
    strings: Strings = both.strings
    arrays: Arrays = both.arrays
    found: list = []
    if objects is not _ANY_OBJECT and "object" in types:
        if _crossed(objects.least, objects.most) or (
            objects.absent and not objects.absent.isdisjoint(objects.required)
        ):
            found.append("object")
    if both.numbers is not _ANY_NUMBER and "number" in types and both.numbers.is_empty:
        found.append("number")
    if strings is not _ANY_STRING and _crossed(strings.least, strings.most) and "string" in types:
        found.append("string")
    if arrays is not _ANY_ARRAY and "array" in types:
        if _crossed(arrays.least, arrays.most) or (arrays.unique and _repeats_a_constant(arrays)):
            found.append("array")
    return found


@cython.cfunc
def _repeats_a_constant(arrays: Arrays) -> cython.bint:
    """Return True if several items must be the same value, listed by one keyword alone."""
    for contains in arrays.contains:
        formula = contains.formula
        if contains.least > 1 and isinstance(formula, SignedSchema) and formula.positive:
            if _is_constant(formula.located.schema):
                return True
    return False


def _is_constant(schema: object) -> bool:
    if not isinstance(schema, Mapping) or len(schema) != 1:
        return False
    return "const" in schema or len(schema.get("enum", ())) == 1


@cython.cfunc
def _crossed(least: object, most: object) -> cython.bint:
    return most is not None and least > most


@cython.cfunc
def _meet_numbers(left: object, right: object) -> object:
    if right is _ANY_NUMBER or right == _ANY_NUMBER:
        return left
    return right if left is _ANY_NUMBER else left.meet(right)


@cython.cfunc
def _meet_strings(left: Strings, right: Strings) -> Strings:
    if right is _ANY_STRING:
        return left
    if left is _ANY_STRING:
        return right
    return Strings(
        max(left.least, right.least),
        _lower(left.most, right.most),
        _union(left.patterns, right.patterns),
        _union(left.formats, right.formats),
        _union(left.not_patterns, right.not_patterns),
        _union(left.not_formats, right.not_formats),
    )


@cython.cfunc
def _meet_arrays(left: Arrays, right: Arrays) -> Arrays:
    if right is _ANY_ARRAY:
        return left
    if left is _ANY_ARRAY:
        return right
    return Arrays(
        _union(left.parts, right.parts),
        _union(left.unevaluated, right.unevaluated),
        _union(left.contains, right.contains),
        max(left.least, right.least),
        _lower(left.most, right.most),
        left.unique or right.unique,
    )


@cython.cfunc
def _meet_objects(left: Objects, right: Objects) -> Objects:
    if right is _ANY_OBJECT:
        return left
    if left is _ANY_OBJECT:
        return right
    return Objects(
        _union(left.parts, right.parts),
        _union(left.unevaluated, right.unevaluated),
        _union(left.exists, right.exists),
        _union(left.names, right.names),
        _union(left.required, right.required),
        left.absent | right.absent if right.absent else left.absent,
        max(left.least, right.least),
        _lower(left.most, right.most),
        _union(left.any_exists, right.any_exists),
    )


@cython.cfunc
def _union(left: tuple, right: tuple) -> tuple:
    if not right or left is right:
        return left
    if not left:
        return right
    return tuple(dict.fromkeys(left + right))


@cython.cfunc
def _lower(left: object, right: object) -> object:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)


def type_of(value: Any) -> str:
    """Return the JSON type of a decoded value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def in_both(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of one list that are in the other as well."""
    scalars, compounds = set(), []
    for value in right:
        kind = type_of(value)
        if kind in ("array", "object"):
            compounds.append(value)
        else:
            scalars.add((kind, value))
    found = []
    for value in left:
        kind = type_of(value)
        if kind in ("array", "object"):
            if any(same_value(value, each) for each in compounds):
                found.append(value)
        elif (kind, value) in scalars:
            found.append(value)
    return tuple(found)


def same_value(left: Any, right: Any) -> bool:
    """Return True if two values are equal as JSON Schema defines it: 1 and 1.0 are, 1 and true are not."""
    if type_of(left) != type_of(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_value(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same_value, left, right))
    return bool(left == right)


def flat(goal: Iterable[Formula]) -> Goal:
    """Return a goal with each formula once, conjunctions flattened, and formulas that are always true left out."""
    found: dict[Formula, None] = {}
    for formula in goal:
        if isinstance(formula, AllOf):
            found.update(dict.fromkeys(flat(formula.parts)))
        elif not isinstance(formula, SignedSchema) or formula.located.schema not in (
            (True, {}) if formula.positive else (False,)
        ):
            found[formula] = None
    return tuple(found)
