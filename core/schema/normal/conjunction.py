"""Types of the normal form: formulas over subschemas, and *typed conjunctions*.

A `Formula` is a signed subschema, or formulas joined by and/or. A `Goal` is a set of formulas that must all hold of one
value. A `Conjunction` is one alternative of a goal's normal form: for each JSON type, the constraints on values of that
type. The form is that of Attouche, Baazizi, Colazzo, Ghelli, Sartiani, Scherzinger (2022), "Witness Generation for JSON
Schema": negation is pushed inwards as far as single assertions, which are closed under it. As a formula, a
conjunction is called a *fact*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, Union

from ...json.values import TYPES, in_both
from ...text_grammars.strings import StringGrammar
from ..read.located import Located, SignedSchema
from ..scalars.numbers import NumberRange

Part = TypeVar("Part")

#: Maximum number of sets of names that are compared with those that are added. Beyond it, equal ones are kept twice:
#: there may be a set for each pair of names, and to compare all of them at each meeting would cost more.
_FEW = 64


_ANY_NUMBER = NumberRange()
_NONE: frozenset[str] = frozenset()


class _Hashed:
    """An immutable value, compared by its public fields; the hash is computed once, as these may be large."""

    __slots__ = ("_hash",)
    _hash: int
    _public: ClassVar[attrgetter[Any]]

    def __init_subclass__(cls) -> None:
        cls._public = attrgetter(*[name for name in cls.__annotations__ if name[0] != "_"])

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._public(self) == self._public(other))

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(self._public(self))
            return self._hash


@dataclass(slots=True, eq=False)
class AnyOf(_Hashed):
    """At least one of the formulas holds; of none: never true."""

    parts: tuple[Formula, ...]


@dataclass(slots=True, eq=False)
class AllOf(_Hashed):
    """All formulas hold; of none: always true."""

    parts: tuple[Formula, ...]


@dataclass(slots=True, eq=False)
class IfThenElse(_Hashed):
    """One formula where a condition holds, another where it does not."""

    condition: Formula
    then: Formula
    otherwise: Formula


@dataclass(slots=True, eq=False)
class ObjectPart:
    """Constraints of one schema on members by name. Immutable, compared by identity.

    Attributes:
        properties: formulas by name.
        patterns: formulas by pattern.
        additional: the formula of all other members; None: they are unconstrained.
        names_properties: the schema has the keyword ``properties``, be it empty.
    """

    properties: Mapping[str, Formula] = field(default_factory=dict)
    patterns: Mapping[str, Formula] = field(default_factory=dict)
    additional: Formula | None = None
    names_properties: bool = False


@dataclass(slots=True, eq=False)
class UnevaluatedProperties(_Hashed):
    """Every member that none of the parts evaluates satisfies the formula (``unevaluatedProperties``)."""

    parts: tuple[ObjectPart, ...]
    formula: Formula


@dataclass(slots=True, eq=False)
class Exists(_Hashed):
    """A member that satisfies the formula exists. Exactly one of the other attributes is given; it constrains the name.

    Attributes:
        formula: the formula of the value.
        name: the name.
        pattern: a pattern that the name matches.
        beside: none of these parts evaluates a member of the name.
        failing: a formula that the name does not satisfy.
    """

    formula: Formula
    name: str | None = None
    pattern: str | None = None
    beside: tuple[ObjectPart, ...] | None = None
    failing: Formula | None = None


@dataclass(slots=True, eq=False)
class AnyExists(_Hashed):
    """Some member is one of the ``options``, or a member of one of the names ``absent`` is missing."""

    options: tuple[Exists, ...]
    absent: frozenset[str] = _NONE


@dataclass(slots=True, eq=False)
class ArrayPart:
    """Constraints of one schema on items by position. Immutable, compared by identity."""

    prefix: tuple[Formula, ...] = ()
    items: Formula | None = None


@dataclass(slots=True, eq=False)
class Contains(_Hashed):
    """Between ``least`` and ``most`` of the items at positions ``first <= i < end`` satisfy the formula."""

    formula: Formula
    first: int = 0
    end: int | None = None
    least: int = 1
    most: int | None = None


@dataclass(slots=True, eq=False)
class UnevaluatedItems(_Hashed):
    """Every item that the parts do not evaluate and that satisfies none of ``found`` (``contains``) satisfies the
    formula (``unevaluatedItems``)."""

    parts: tuple[ArrayPart, ...]
    found: tuple[Formula, ...]
    formula: Formula


@dataclass(slots=True, eq=False)
class Strings(_Hashed):
    """Constraints on strings: length in code points, and patterns and formats that they match or do not match.

    A pattern is an expression of ECMA-262, or a `StringGrammar`.
    """

    least: int = 0
    most: int | None = None
    patterns: tuple[str | StringGrammar, ...] = ()
    formats: tuple[str, ...] = ()
    not_patterns: tuple[str | StringGrammar, ...] = ()
    not_formats: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class MemberMemo:
    """Memo of facts about the members of some objects, for the next comparison of alternatives.

    Attributes:
        members: by name, the facts about a member's value (`prune.MemberFacts`).
        goals: by name, the goal of a required member; None: the object cannot have it.
        names: a term of the names that members may have; None: not computed yet.
        listed: the listed values of members; None: not computed yet.
    """

    members: dict[str, Any] = field(default_factory=dict)
    goals: dict[str, Goal | None] = field(default_factory=dict)
    names: int | None = None
    listed: dict[str, frozenset[tuple[str, Any]]] | None = None


@dataclass(slots=True, eq=False)
class Objects(_Hashed):
    """Constraints on objects.

    Attributes:
        parts: members by name, one part for each schema.
        unevaluated: members that some schemas do not evaluate.
        exists: required members, with constraints on their values.
        names: formulas of all names.
        required: names of required members.
        absent: names of forbidden members.
        least: minimum number of members.
        most: maximum number of members; None: no maximum.
        any_exists: demands that must all be met.
        exclusive: sets of names; an object has at most one member of each set.
    """

    parts: tuple[ObjectPart, ...] = ()
    unevaluated: tuple[UnevaluatedProperties, ...] = ()
    exists: tuple[Exists, ...] = ()
    names: tuple[Formula, ...] = ()
    required: tuple[str, ...] = ()
    absent: frozenset[str] = _NONE
    least: int = 0
    most: int | None = None
    any_exists: tuple[AnyExists, ...] = ()
    exclusive: tuple[frozenset[str], ...] = ()
    _needed: frozenset[str] | None = field(default=None, init=False, repr=False)
    _named: frozenset[str] | None = field(default=None, init=False, repr=False)
    _memo: MemberMemo | None = field(default=None, init=False, repr=False)

    @property
    def needed(self) -> frozenset[str]:
        """Names of members that must be there."""
        if self._needed is None:
            self._needed = frozenset(self.all_required)
        return self._needed

    @property
    def named(self) -> frozenset[str]:
        """Names that some constraint mentions."""
        if self._named is None:
            required = [each.name for each in self.exists if each.name is not None]
            self._named = frozenset(required).union(*[part.properties for part in self.parts])
        return self._named

    @property
    def all_required(self) -> tuple[str, ...]:
        """Names of members that must be there, in order."""
        return (*self.required, *(each.name for each in self.exists if each.name is not None))

    @property
    def names_are_bounded(self) -> bool:
        """True if a keyword may limit the names of all members."""
        return bool(self.names or self.unevaluated) or any(part.additional is not None for part in self.parts)

    @property
    def memo(self) -> MemberMemo:
        """Memo of facts about the members."""
        if self._memo is None:
            self._memo = MemberMemo()
        return self._memo


@dataclass(slots=True, eq=False)
class Arrays(_Hashed):
    """Constraints on arrays.

    Attributes:
        parts: items by position, one part for each schema.
        unevaluated: items that some schemas do not evaluate.
        contains: numbers of items that satisfy a formula.
        least: minimum number of items.
        most: maximum number of items; None: no maximum.
        unique: no item repeats.
    """

    parts: tuple[ArrayPart, ...] = ()
    unevaluated: tuple[UnevaluatedItems, ...] = ()
    contains: tuple[Contains, ...] = ()
    least: int = 0
    most: int | None = None
    unique: bool = False

    @property
    def fewest(self) -> int:
        """Minimum number of items, by ``least`` and by ``contains``."""
        return max([self.least, *(each.first + each.least for each in self.contains if each.least)])


#: No constraint on the values of one type.
_ANY_STRING, _ANY_ARRAY, _ANY_OBJECT = Strings(), Arrays(), Objects()
_ANY_TYPE = frozenset(TYPES)
_OBJECTS = frozenset({"object"})


@dataclass(slots=True, eq=False)
class Conjunction:
    """One alternative of a normal form: a value has one of the types, and satisfies the constraints on its type.
    Immutable, compared by identity.

    Attributes:
        types: the JSON types that are allowed.
        values: the value is one of these; None: no list was given.
        not_values: the value is none of these scalars.
        numbers: constraints on numbers.
        strings: constraints on strings.
        arrays: constraints on arrays.
        objects: constraints on objects.
    """

    types: frozenset[str] = _ANY_TYPE
    values: tuple[Any, ...] | None = None
    not_values: tuple[Any, ...] = ()
    numbers: NumberRange = _ANY_NUMBER
    strings: Strings = _ANY_STRING
    arrays: Arrays = _ANY_ARRAY
    objects: Objects = _ANY_OBJECT

    def of_types(self, types: frozenset[str]) -> Conjunction:
        """Return the same for values of these types."""
        return Conjunction(types, self.values, self.not_values, self.numbers, self.strings, self.arrays, self.objects)


@dataclass(slots=True, eq=False)
class OnlyKeywordFails(_Hashed):
    """A subschema holds except for one of its keywords, ``unevaluatedProperties`` or ``unevaluatedItems``."""

    located: Located
    keyword: str


#: A signed subschema, formulas joined, or a fact in normal form.
Formula = Union[SignedSchema, AnyOf, AllOf, IfThenElse, OnlyKeywordFails, Conjunction]

#: Formulas that must all hold.
Goal = tuple[Formula, ...]

TRUE = AllOf(())
FALSE = AnyOf(())

#: Any value, of two items of which nothing is known but that they are equal (see `negation.py`).
REPEATED_ITEM = AllOf((TRUE,))

#: The unconstrained conjunction: every JSON value.
EVERY = Conjunction()


def negated(formula: Formula) -> Formula:
    """Return the negation of a formula.

    Raises:
        TypeError: it contains a fact that asks for more than members of an object by name.
    """
    if isinstance(formula, SignedSchema):
        return SignedSchema(formula.located, not formula.positive)
    if isinstance(formula, AnyOf):
        return AllOf(tuple(negated(part) for part in formula.parts))
    if isinstance(formula, AllOf):
        return AnyOf(tuple(negated(part) for part in formula.parts))
    if isinstance(formula, Conjunction) and formula.types == _OBJECTS:
        options = _failures(formula.objects)
        if options is not None:
            return options[0] if len(options) == 1 else AnyOf(tuple(options))
    raise TypeError("this fact has no negation")


def _failures(objects: Objects) -> list[Conjunction] | None:
    """Return facts whose union is the negation of constraints on objects; None: they are more than required names and
    members of given names."""
    if objects != Objects(required=objects.required, exists=objects.exists):
        return None
    options = [Conjunction(objects=Objects(absent=frozenset((name,)))) for name in objects.required]
    for exists in objects.exists:
        if exists.name is None:
            return None
        part = ObjectPart({exists.name: negated(exists.formula)})
        options.append(Conjunction(objects=Objects(parts=(part,))))
    return options


def is_deniable(formula: Formula) -> bool:
    """Return True if a formula is made of subschemas alone, so that `negated` takes it."""
    if isinstance(formula, (AnyOf, AllOf)):
        return all(map(is_deniable, formula.parts))
    return isinstance(formula, SignedSchema)


def fact(kind: str | Iterable[str], **what: Any) -> Conjunction:
    """Return the conjunction of one or several types, with the given constraints."""
    types = frozenset((kind,) if isinstance(kind, str) else kind)
    return Conjunction(types, **what)


def meet(left: Conjunction, right: Conjunction) -> Conjunction | None:
    """Return the conjunction of two; None if their types, values or bounds exclude each other."""
    types = left.types
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


def _empty(both: Conjunction) -> list[str]:
    """Return the types whose constraints obviously exclude every value."""
    types = both.types
    objects = both.objects
    strings = both.strings
    arrays = both.arrays
    found: list[str] = []
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
        if _crossed(arrays.fewest if arrays.contains else arrays.least, arrays.most) or (
            arrays.unique and _repeats_a_constant(arrays)
        ):
            found.append("array")
    return found


def _repeats_a_constant(arrays: Arrays) -> bool:
    """Return True if several items must be the same value, listed by one keyword alone."""
    for contains in arrays.contains:
        formula = contains.formula
        if contains.least > 1 and formula == REPEATED_ITEM:
            return True
        if contains.least > 1 and isinstance(formula, SignedSchema) and formula.positive:
            if _is_constant(formula.located.schema):
                return True
    return False


def _is_constant(schema: object) -> bool:
    if not isinstance(schema, Mapping) or len(schema) != 1:
        return False
    return "const" in schema or len(schema.get("enum", ())) == 1


def _crossed(least: int, most: int | None) -> bool:
    return most is not None and least > most


def _meet_numbers(left: NumberRange, right: NumberRange) -> NumberRange:
    if right is _ANY_NUMBER or right == _ANY_NUMBER:
        return left
    return right if left is _ANY_NUMBER else left.meet(right)


def _meet_strings(left: Strings, right: Strings) -> Strings:
    """Return the facts of both about strings."""
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


def _meet_arrays(left: Arrays, right: Arrays) -> Arrays:
    """Return the facts of both about arrays."""
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


def _meet_objects(left: Objects, right: Objects) -> Objects:
    """Return the facts of both about objects."""
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
        left.exclusive + right.exclusive if len(left.exclusive) > _FEW else _union(left.exclusive, right.exclusive),
    )


def _union(left: tuple[Part, ...], right: tuple[Part, ...]) -> tuple[Part, ...]:
    if not right or left is right:
        return left
    if not left:
        return right
    return tuple(dict.fromkeys(left + right))


def _lower(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)


def is_false(formula: Formula) -> bool:
    """Return True if a formula obviously holds for no value."""
    if isinstance(formula, SignedSchema):
        return formula.located.schema is (not formula.positive)
    return isinstance(formula, AnyOf) and not formula.parts


def flat(goal: Iterable[Formula]) -> Goal:
    """Return a goal with each formula once, conjunctions flattened, and formulas that are always true left out."""
    found: dict[Formula, None] = {}
    for formula in goal:
        if isinstance(formula, AllOf):
            found.update(dict.fromkeys(flat(formula.parts)))
            continue
        if isinstance(formula, SignedSchema):
            always_true: tuple[Any, ...] = (True, {}) if formula.positive else (False,)
            if formula.located.schema in always_true:
                continue
        found[formula] = None
    return tuple(found)
