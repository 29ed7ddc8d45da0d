"""Normal form: a goal as a union of typed conjunctions, with negation pushed inwards.

``$ref`` and ``allOf`` are merged, ``anyOf`` forks, ``oneOf``, ``if`` and ``dependencies`` become and/or/not, and a
negated schema becomes one alternative per keyword. Only what speaks of one and the same value is expanded: subschemas
of members and items stay formulas, and are normalised when a text reaches them, so that recursion costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from ..errors import InvalidSchemaError, LimitError, Place, UnsupportedSchemaError
from ..language.regex import regex_term
from ..language.terms import Terms
from .conjunction import (
    TRUE,
    TYPES,
    All,
    Any_,
    ArrayPart,
    Arrays,
    But,
    Conjunction,
    Contains,
    Exists,
    Formula,
    Goal,
    Literal,
    ObjectPart,
    Objects,
    Others,
    Rest,
    Strings,
    fact,
    meet,
    negated,
    same_value,
    type_of,
)
from .disjoint import disjoint
from .formats import ENFORCED
from .numbers import NumberRange, exact
from .resolve import Document, Located

#: How many alternatives one place of a schema may have after and/or are multiplied out.
MAX_BRANCHES = 4_000

#: How many steps the expansion of one place may take.
MAX_STEPS = 40_000

#: How many steps all expansions for one grammar may take: alternatives that breed alternatives from level to level.
MAX_TOTAL = 150_000

#: Under ``unevaluatedProperties`` and ``unevaluatedItems`` every subset of an ``anyOf`` is an alternative of its own.
MAX_SUBSETS = 10

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_OBJECT_PART = frozenset({"properties", "patternProperties", "additionalProperties"})
_ARRAY_PART = frozenset({"items", "prefixItems", "additionalItems"})


class _Scope(NamedTuple):
    """What a schema with ``unevaluated...`` collects from the subschemas that apply to the same value."""

    number: int
    located: Located
    #: The keyword that must not hold, if any.
    broken: str | None = None


class _Step(NamedTuple):
    """A formula to be expanded, the references that led to it, and the scopes that it reports to."""

    formula: Formula
    above: frozenset[object]
    scopes: tuple[_Scope, ...]


#: The rest of the steps, as a linked list: alternatives share it.
_Steps = tuple[_Step, "_Steps"] | None  # type: ignore[misc]


class _Seen(NamedTuple):
    """What was reported to the scopes on one way through the alternatives."""

    objects: tuple[tuple[int, ObjectPart], ...] = ()
    arrays: tuple[tuple[int, ArrayPart], ...] = ()
    contains: tuple[tuple[int, Formula], ...] = ()
    all_objects: frozenset[int] = frozenset()
    all_arrays: frozenset[int] = frozenset()
    opened: tuple[_Scope, ...] = ()


class Normaliser:
    """Brings the goals of a document to normal form.

    Args:
        document: where the subschemas are.
        unenforced: keywords that are left out, as pairs of a subschema's key and the keyword: what is accepted can
            only become more.
        formats: whether ``format`` asserts; else it is an annotation.
    """

    def __init__(
        self, document: Document, unenforced: Collection[tuple[object, str]] = (), formats: bool = True
    ) -> None:
        self.document = document
        self.formats = formats
        self.unenforced = unenforced
        #: How many steps all expansions took so far.
        self.steps = 0
        self._rough = 0
        self.terms = Terms()
        self._objects: dict[Located, ObjectPart] = {}
        self._arrays: dict[Located, ArrayPart] = {}
        self._overlaps: dict[Located, list[frozenset[int]]] = {}
        self._constants: dict[int, tuple[Any, Formula]] = {}

    # -- the expansion -----------------------------------------------------------------------------------------

    def branches(self, goal: Goal) -> list[Conjunction]:
        """The alternatives of a goal; empty when it can never hold.

        Raises:
            InvalidSchemaError: a schema refers to itself without describing anything.
            LimitError: the alternatives are too many.
        """
        done: list[Conjunction] = []
        steps: _Steps = None
        for formula in reversed(goal):
            steps = (_Step(formula, frozenset(), ()), steps)
        todo: list[tuple[Conjunction, _Steps, _Seen]] = [(Conjunction(), steps, _Seen())]
        taken = 0
        scopes = 0
        while todo:
            conjunction, steps, seen = todo.pop()
            taken += 1
            self.steps += 1
            if taken > MAX_STEPS or len(done) > MAX_BRANCHES or self.steps > MAX_TOTAL:
                raise self._too_many(goal)
            if steps is None:
                settled = _settled(conjunction, seen, self)
                if settled is not None:
                    done.append(settled)
                continue
            step, rest = steps
            formula = step.formula
            if isinstance(formula, All):
                for part in reversed(formula.parts):
                    rest = (step._replace(formula=part), rest)
                todo.append((conjunction, rest, seen))
            elif isinstance(formula, Any_):
                todo.extend(
                    (conjunction, (step._replace(formula=part), rest), seen) for part in reversed(formula.parts)
                )
            elif isinstance(formula, But):
                scope = _Scope(scopes, formula.located, formula.keyword)
                scopes += 1
                seen = seen._replace(opened=(*seen.opened, scope))
                todo.extend(self._held(conjunction, rest, seen, formula.located, step.above, (scope,)))
            elif isinstance(formula, Conjunction):
                merged = meet(conjunction, formula)
                if merged is not None:
                    todo.append((merged, rest, seen))
            else:
                located = formula.located
                schema = located.schema
                if isinstance(schema, bool):
                    if schema == formula.positive:
                        todo.append((conjunction, rest, seen))
                    continue
                located = self.document.enter(located)
                key = (located.key, formula.positive)
                refers = not _REFERENCES.isdisjoint(schema)  # a loop passes through the same reference again
                if refers and key in step.above:
                    raise InvalidSchemaError(
                        "a schema refers to itself without describing anything",
                        hint="break the loop of $ref",
                        place=Place(pointer=located.pointer, keyword="$ref"),
                    )
                above = step.above | {key} if refers else step.above
                if not formula.positive:
                    todo.append((conjunction, (_Step(self._negation(located), above, ()), rest), seen))
                    continue
                inner = step.scopes
                if any(self.asserts(located, word) for word in ("unevaluatedProperties", "unevaluatedItems")):
                    scope = _Scope(scopes, located)
                    scopes += 1
                    seen = seen._replace(opened=(*seen.opened, scope))
                    inner = (*inner, scope)
                todo.extend(self._held(conjunction, rest, seen, located, above, inner))
        return done

    def _held(
        self,
        conjunction: Conjunction,
        rest: _Steps,
        seen: _Seen,
        located: Located,
        above: frozenset[object],
        scopes: tuple[_Scope, ...],
    ) -> Iterator[tuple[Conjunction, _Steps, _Seen]]:
        """How it goes on when a schema holds; not at all if that contradicts what is known."""
        own = self._assertions(located)
        merged = None if own is None else meet(conjunction, own)
        if merged is None:
            return
        for part in reversed(self._applied(located, scopes)):
            rest = (_Step(part, above, scopes), rest)
        yield merged, rest, self._reported(located, seen, scopes) if scopes else seen

    def _too_many(self, goal: Goal) -> LimitError:
        pointer = next((part.located.pointer for part in goal if isinstance(part, Literal)), "")
        return LimitError(
            f"more than {MAX_BRANCHES:,} alternatives at one place",
            hint="simplify nested anyOf, oneOf and not, or give each alternative a property with its own const",
            place=Place(pointer=pointer),
        )

    def asserts(self, located: Located, keyword: str) -> bool:
        """Whether a subschema has a keyword that its dialect knows and that is not left out."""
        return (
            keyword in located.schema
            and self.document.knows(keyword)
            and not (self.unenforced and (located.key, keyword) in self.unenforced)
        )

    # -- a schema that must hold -------------------------------------------------------------------------------

    def _applied(self, located: Located, scopes: tuple[_Scope, ...]) -> list[Formula]:
        """What a schema asks of the same value by way of other schemas."""
        schema = located.schema
        found: list[Formula] = []
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if self.asserts(located, keyword):
                found.append(Literal(self.document.resolve(located, keyword)))
                if keyword == "$ref" and self.document.ref_hides_siblings:
                    return found
        if self.asserts(located, "allOf"):
            found += [Literal(located.child("allOf", index)) for index in range(len(schema["allOf"]))]
        if self.asserts(located, "not"):
            found.append(Literal(located.child("not"), False))
        if self.asserts(located, "if") and (scopes or schema.keys() & {"then", "else"}):
            condition = Literal(located.child("if"))
            found.append(
                Any_(
                    (
                        All((condition, Literal(located.child("then")) if "then" in schema else TRUE)),
                        All((negated(condition), Literal(located.child("else")) if "else" in schema else TRUE)),
                    )
                )
            )
        found += [Any_((_lacks(name), All((_has(name), needed)))) for name, needed in self._dependencies(located)]
        if self.asserts(located, "oneOf"):
            found.append(self._one_of(located))
        if self.asserts(located, "anyOf"):
            options = tuple(Literal(located.child("anyOf", index)) for index in range(len(schema["anyOf"])))
            broken = any(scope.broken for scope in scopes)
            found.append(_subsets(options, located, broken) if scopes else Any_(options))
        return found

    def _dependencies(self, located: Located) -> Iterator[tuple[str, Formula]]:
        """Names, and what is asked of an object that has them."""
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
                    yield name, Literal(located.child(keyword, name))

    def overlaps(self, located: Located) -> list[frozenset[int]]:
        """For each option of a ``oneOf``, the others that are not provably disjoint from it."""
        found = self._overlaps.get(located)
        if found is None:
            options = [Literal(located.child("oneOf", index)) for index in range(len(located.schema["oneOf"]))]
            if len(options) == 1:
                return [frozenset()]
            sets: list[set[int]] = [set() for _ in options]
            # While this is found out, any oneOf (this one may stand inside itself) is taken for a union, which it is
            # part of: what is disjoint from the union is disjoint from it.
            self._rough += 1
            try:
                branches = [self.branches((option,)) for option in options]
                for one, two in combinations(range(len(options)), 2):
                    if not disjoint(self, branches[one], branches[two]):
                        sets[one].add(two)
                        sets[two].add(one)
            finally:
                self._rough -= 1
            found = self._overlaps[located] = [frozenset(each) for each in sets]
        return found

    def _one_of(self, located: Located) -> Formula:
        options = [Literal(located.child("oneOf", index)) for index in range(len(located.schema["oneOf"]))]
        if self._rough:
            return Any_(tuple(options))
        overlaps = self.overlaps(located)
        return Any_(
            tuple(
                All((option, *(negated(options[other]) for other in sorted(others))))
                for option, others in zip(options, overlaps, strict=True)
            )
        )

    def _assertions(self, located: Located) -> Conjunction | None:
        """What a schema itself asserts; None when nothing can satisfy it."""
        schema = located.schema
        if "$ref" in schema and self.document.ref_hides_siblings:
            return Conjunction()
        types = frozenset(TYPES)
        numbers = NumberRange()
        if self.asserts(located, "type"):
            types, integer = _types(schema)
            numbers = NumberRange(integer=integer)
        values = self._values(located)
        if values == () or not types:
            return None
        numbers = self._numbers(numbers, located)
        strings = Strings()
        if schema.keys() & {"minLength", "maxLength", "pattern", "format"}:
            most = schema.get("maxLength") if self.asserts(located, "maxLength") else None
            strings = Strings(
                int(schema.get("minLength", 0)) if self.asserts(located, "minLength") else 0,
                None if most is None else int(most),
                (schema["pattern"],) if self.asserts(located, "pattern") else (),
                (schema["format"],) if self.asserts_format(located) else (),
            )
        return Conjunction(types, values, (), numbers, strings, self._array_facts(located), self._object_facts(located))

    def asserts_format(self, located: Located) -> bool:
        """Whether a subschema's ``format`` is more than an annotation."""
        return self.formats and self.asserts(located, "format") and located.schema["format"] in ENFORCED

    def _values(self, located: Located) -> tuple[Any, ...] | None:
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
        required = schema.get("required", ()) if self.asserts(located, "required") else ()
        most = schema.get("maxProperties") if self.asserts(located, "maxProperties") else None
        return Objects(
            parts=(self.object_part(located),) if schema.keys() & _OBJECT_PART else (),
            names=(Literal(located.child("propertyNames")),) if self.asserts(located, "propertyNames") else (),
            required=tuple(required if isinstance(required, (list, tuple)) else ()),
            least=int(schema.get("minProperties", 0)) if self.asserts(located, "minProperties") else 0,
            most=None if most is None else int(most),
        )

    def _array_facts(self, located: Located) -> Arrays:
        schema = located.schema
        most = schema.get("maxItems") if self.asserts(located, "maxItems") else None
        return Arrays(
            parts=(self.array_part(located),) if schema.keys() & _ARRAY_PART else (),
            contains=tuple(Contains(*each) for each in self._contains(located)),
            least=int(schema.get("minItems", 0)) if self.asserts(located, "minItems") else 0,
            most=None if most is None else int(most),
            unique=self.asserts(located, "uniqueItems") and schema["uniqueItems"] is True,
        )

    def _contains(self, located: Located) -> list[tuple[Formula, int, int | None, int, int | None]]:
        schema = located.schema
        if not self.asserts(located, "contains"):
            return []
        least = int(schema["minContains"]) if self.asserts(located, "minContains") else 1
        most = int(schema["maxContains"]) if self.asserts(located, "maxContains") else None
        if least == 0 and most is None:
            return []
        return [(Literal(located.child("contains")), 0, None, least, most)]

    def _numbers(self, numbers: NumberRange, located: Located) -> NumberRange:
        schema = located.schema
        for least, value, strict in _bounds(schema) if self.document.knows("minimum") else ():
            numbers = numbers.at_least(value, strict) if least else numbers.at_most(value, strict)
        if self.asserts(located, "multipleOf"):
            numbers = replace(numbers, multiples=(*numbers.multiples, exact(schema["multipleOf"])))
        return numbers

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a pattern matches some part of a name."""
        return self.terms.matches(regex_term(self.terms, pattern, whole=False), name)

    def object_part(self, located: Located) -> ObjectPart:
        """What a schema says of members by their names; made once."""
        found = self._objects.get(located)
        if found is None:
            schema = located.schema
            patterns = schema.get("patternProperties", {}) if self.asserts(located, "patternProperties") else {}
            found = self._objects[located] = ObjectPart(
                {name: Literal(located.child("properties", name)) for name in schema.get("properties", {})},
                {pattern: Literal(located.child("patternProperties", pattern)) for pattern in patterns},
                Literal(located.child("additionalProperties")) if "additionalProperties" in schema else None,
                "properties" in schema,
            )
        return found

    def array_part(self, located: Located) -> ArrayPart:
        """What a schema says of items by their positions; made once."""
        found = self._arrays.get(located)
        if found is None:
            schema = located.schema
            prefix: tuple[Formula, ...] = ()
            items: Formula | None = None
            if isinstance(schema.get("items"), (list, tuple)):
                prefix = tuple(Literal(located.child("items", index)) for index in range(len(schema["items"])))
                if "additionalItems" in schema:
                    items = Literal(located.child("additionalItems"))
            else:
                if self.asserts(located, "prefixItems"):
                    prefix = tuple(
                        Literal(located.child("prefixItems", index)) for index in range(len(schema["prefixItems"]))
                    )
                if "items" in schema:
                    items = Literal(located.child("items"))
            found = self._arrays[located] = ArrayPart(prefix, items)
        return found

    # -- a schema that must not hold ---------------------------------------------------------------------------

    def _negation(self, located: Located) -> Formula:
        """The negation of a schema: one of its keywords does not hold."""
        options: list[Formula] = []
        if self.unenforced and any(key == located.key for key, _ in self.unenforced):
            return TRUE  # what is left out might not hold
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if self.asserts(located, keyword):
                options.append(Literal(self.document.resolve(located, keyword), False))
                if keyword == "$ref" and self.document.ref_hides_siblings:
                    return options[0]
        for keyword, negation in _NEGATIONS.items():
            if self.asserts(located, keyword):
                options.extend(negation(self, located))
        return _either(options)

    def _not_type(self, located: Located) -> Iterator[Formula]:
        types, integer = _types(located.schema)
        others = frozenset(TYPES) - types
        if others:
            yield fact(others)
        if integer and "number" in types:
            yield fact("number", numbers=NumberRange(fractional=True))

    def _not_values(self, located: Located) -> Iterator[Formula]:
        values = self._values(located)
        yield All(tuple(self._differs(value) for value in values or ()))

    def _differs(self, value: Any) -> Formula:
        """Every value but one."""
        kind = type_of(value)
        if kind == "array":
            other: list[Formula] = [fact(set(TYPES) - {"array"}), *_length_is_not("array", len(value))]
            for index, item in enumerate(value):
                found = Contains(negated(self.constant(item)), index, index + 1)
                other.append(fact("array", arrays=Arrays(contains=(found,))))
            return Any_(tuple(other))
        if kind == "object":
            other = [fact(set(TYPES) - {"object"}), *_length_is_not("object", len(value))]
            for name, item in value.items():
                other.append(fact("object", objects=Objects(absent=frozenset((name,)))))
                other.append(fact("object", objects=Objects(exists=(Exists(negated(self.constant(item)), name),))))
            return _either(other)
        return Conjunction(not_values=(value,))

    def constant(self, value: Any) -> Formula:
        """The formula of one value."""
        found = self._constants.get(id(value))
        if found is None:  # the value is kept, so that its id stays its own
            found = self._constants[id(value)] = (value, Literal(Located({"const": value}, "")))
        return found[1]

    def _not_bounds(self, located: Located) -> Iterator[Formula]:
        for least, value, strict in _bounds(located.schema):
            beyond = NumberRange()
            yield fact(
                "number", numbers=beyond.at_most(value, not strict) if least else beyond.at_least(value, not strict)
            )

    def _not_multiple(self, located: Located) -> Iterator[Formula]:
        yield fact("number", numbers=NumberRange(not_multiples=(exact(located.schema["multipleOf"]),)))

    def _not_min_length(self, located: Located) -> Iterator[Formula]:
        least = int(located.schema["minLength"])
        if least > 0:
            yield fact("string", strings=Strings(most=least - 1))

    def _not_max_length(self, located: Located) -> Iterator[Formula]:
        yield fact("string", strings=Strings(least=int(located.schema["maxLength"]) + 1))

    def _not_pattern(self, located: Located) -> Iterator[Formula]:
        yield fact("string", strings=Strings(not_patterns=(located.schema["pattern"],)))

    def _not_format(self, located: Located) -> Iterator[Formula]:
        if self.asserts_format(located):
            yield fact("string", strings=Strings(not_formats=(located.schema["format"],)))

    def _not_properties(self, located: Located) -> Iterator[Formula]:
        for name, formula in self.object_part(located).properties.items():
            yield _exists(Exists(negated(formula), name=name))

    def _not_patterns(self, located: Located) -> Iterator[Formula]:
        for pattern, formula in self.object_part(located).patterns.items():
            yield _exists(Exists(negated(formula), pattern=pattern))

    def _not_additional(self, located: Located) -> Iterator[Formula]:
        part = self.object_part(located)
        if part.additional is not None and part.additional != TRUE:
            yield _exists(Exists(negated(part.additional), beside=(part,)))

    def _not_names(self, located: Located) -> Iterator[Formula]:
        yield _exists(Exists(TRUE, failing=Literal(located.child("propertyNames"))))

    def _not_required(self, located: Located) -> Iterator[Formula]:
        required = located.schema["required"]
        for name in required if isinstance(required, (list, tuple)) else ():
            yield fact("object", objects=Objects(absent=frozenset((name,))))

    def _not_min_properties(self, located: Located) -> Iterator[Formula]:
        least = int(located.schema["minProperties"])
        if least > 0:
            yield fact("object", objects=Objects(most=least - 1))

    def _not_max_properties(self, located: Located) -> Iterator[Formula]:
        yield fact("object", objects=Objects(least=int(located.schema["maxProperties"]) + 1))

    def _not_dependencies(self, located: Located) -> Iterator[Formula]:
        for name, needed in self._dependencies(located):
            has = _has(name)
            if isinstance(needed, Conjunction):
                for other in needed.objects.required:
                    yield All((has, fact("object", objects=Objects(absent=frozenset((other,))))))
            else:
                yield All((has, negated(needed)))

    def _not_items(self, located: Located) -> Iterator[Formula]:
        part = self.array_part(located)
        for index, formula in enumerate(part.prefix):
            yield _found(Contains(negated(formula), index, index + 1))
        if part.items is not None:
            yield _found(Contains(negated(part.items), len(part.prefix)))

    def _not_min_items(self, located: Located) -> Iterator[Formula]:
        least = int(located.schema["minItems"])
        if least > 0:
            yield fact("array", arrays=Arrays(most=least - 1))

    def _not_max_items(self, located: Located) -> Iterator[Formula]:
        yield fact("array", arrays=Arrays(least=int(located.schema["maxItems"]) + 1))

    def _not_contains(self, located: Located) -> Iterator[Formula]:
        for formula, first, end, least, most in self._contains(located):
            if least > 0:
                yield _found(Contains(formula, first, end, 0, least - 1))
            if most is not None:
                yield _found(Contains(formula, first, end, most + 1, None))

    def _not_all_of(self, located: Located) -> Iterator[Formula]:
        for index in range(len(located.schema["allOf"])):
            yield Literal(located.child("allOf", index), False)

    def _not_any_of(self, located: Located) -> Iterator[Formula]:
        yield All(tuple(Literal(located.child("anyOf", index), False) for index in range(len(located.schema["anyOf"]))))

    def _not_one_of(self, located: Located) -> Iterator[Formula]:
        if self._rough:
            yield TRUE
            return
        overlaps = self.overlaps(located)
        options = [Literal(located.child("oneOf", index)) for index in range(len(overlaps))]
        yield All(tuple(negated(option) for option in options))
        for one, others in enumerate(overlaps):
            for two in sorted(others):
                if one < two:
                    yield All((options[one], options[two]))

    def _not_not(self, located: Located) -> Iterator[Formula]:
        yield Literal(located.child("not"))

    def _not_if(self, located: Located) -> Iterator[Formula]:
        condition = Literal(located.child("if"))
        if "then" in located.schema:
            yield All((condition, Literal(located.child("then"), False)))
        if "else" in located.schema:
            yield All((negated(condition), Literal(located.child("else"), False)))

    def _not_unique(self, located: Located) -> Iterator[Formula]:
        if located.schema["uniqueItems"] is True:
            raise unsupported(located, "uniqueItems", "under a negation")
        yield from ()

    def _not_evaluated(self, located: Located) -> Iterator[Formula]:
        for keyword in ("unevaluatedProperties", "unevaluatedItems"):
            if self.asserts(located, keyword):
                yield But(located, keyword)

    # -- unevaluated -------------------------------------------------------------------------------------------

    def _reported(self, located: Located, seen: _Seen, scopes: tuple[_Scope, ...]) -> _Seen:
        """What a schema that holds tells the scopes around it."""
        schema = located.schema
        objects, arrays, contains = seen.objects, seen.arrays, seen.contains
        every_object, every_array = seen.all_objects, seen.all_arrays
        for scope in scopes:
            if schema.keys() & {"properties", "patternProperties"}:
                objects = (*objects, (scope.number, self.object_part(located)))
            closed = self.asserts(located, "unevaluatedProperties") and scope.located is not located
            if "additionalProperties" in schema or closed:
                every_object |= {scope.number}
            if schema.keys() & _ARRAY_PART:
                part = self.array_part(located)
                arrays = (*arrays, (scope.number, part))
                if part.items is not None:
                    every_array |= {scope.number}
            if self.asserts(located, "unevaluatedItems") and scope.located is not located:
                every_array |= {scope.number}
            if self.asserts(located, "contains") and self.document.contains_evaluates:
                contains = (*contains, (scope.number, Literal(located.child("contains"))))
        return _Seen(objects, arrays, contains, every_object, every_array, seen.opened)


def _settled(conjunction: Conjunction, seen: _Seen, normaliser: Normaliser) -> Conjunction | None:
    """A finished conjunction, with what its scopes ask of everything that was not evaluated; None when a scope asks for
    something unevaluated where everything is."""
    objects, arrays, types = conjunction.objects, conjunction.arrays, conjunction.types
    for number, located, broken in seen.opened:
        if normaliser.asserts(located, "unevaluatedProperties"):
            parts = tuple(part for scope, part in seen.objects if scope == number)
            formula: Formula = Literal(located.child("unevaluatedProperties"))
            if broken == "unevaluatedProperties":
                types &= frozenset() if number in seen.all_objects else frozenset({"object"})
                objects = replace(objects, exists=(*objects.exists, Exists(negated(formula), beside=parts)))
            elif broken is None and number not in seen.all_objects:
                objects = replace(objects, others=(*objects.others, Others(parts, formula)))
        if normaliser.asserts(located, "unevaluatedItems"):
            places = tuple(part for scope, part in seen.arrays if scope == number)
            found = tuple(each for scope, each in seen.contains if scope == number)
            formula = Literal(located.child("unevaluatedItems"))
            if broken == "unevaluatedItems":
                types &= frozenset() if number in seen.all_arrays else frozenset({"array"})
                first = max((len(part.prefix) for part in places), default=0)
                left = All((negated(formula), *map(negated, found)))
                arrays = replace(arrays, contains=(*arrays.contains, Contains(left, first)))
            elif broken is None and number not in seen.all_arrays:
                arrays = replace(arrays, rests=(*arrays.rests, Rest(places, found, formula)))
    if not types:
        return None
    if objects is conjunction.objects and arrays is conjunction.arrays:
        return conjunction
    return replace(conjunction, types=types, objects=objects, arrays=arrays)


def _subsets(options: tuple[Formula, ...], located: Located, exactly: bool) -> Formula:
    """``anyOf`` where it matters which of the options hold: an alternative for every subset of them.

    It need not be said that the others do not hold, since what more of them evaluate only allows more; unless something
    must have been left unevaluated (``exactly``).
    """
    if len(options) > MAX_SUBSETS:
        raise unsupported(located, "anyOf", f"with more than {MAX_SUBSETS} options under an unevaluated... keyword")
    sizes = range(1, len(options) + 1)
    chosen = [set(each) for size in sizes for each in combinations(options, size)]
    return Any_(
        tuple(
            All(tuple(part if part in some else negated(part) for part in options if exactly or part in some))
            for some in chosen
        )
    )


def _either(options: list[Formula]) -> Formula:
    """One of the formulas, with as few alternatives as are easily had.

    "No member ``n``, or one that satisfies ``f``" is one fact, and so are facts about different types.
    """
    absent: dict[str, Conjunction] = {}
    members: dict[str, list[Formula]] = {}
    others: list[Formula] = []
    for option in options:
        name = _only_absent(option)
        if name is not None and isinstance(option, Conjunction):
            absent[name] = option
            continue
        exists = _only_exists(option)
        if exists is not None:
            members.setdefault(exists.name or "", []).append(exists.formula)
        else:
            others.append(option)
    for name, formulas in members.items():
        formula = formulas[0] if len(formulas) == 1 else Any_(tuple(formulas))
        if absent.pop(name, None) is not None:
            others.append(fact("object", objects=Objects(parts=(ObjectPart({name: formula}),))))
        else:
            others.append(_exists(Exists(formula, name)))
    merged: list[Formula] = []
    for option in [*others, *absent.values()]:
        for index, known in enumerate(merged):
            both = _joined(known, option)
            if both is not None:
                merged[index] = both
                break
        else:
            merged.append(option)
    return merged[0] if len(merged) == 1 else Any_(tuple(merged))


def _only_absent(option: Formula) -> str | None:
    """The name, if a fact is: an object without this member."""
    if isinstance(option, Conjunction) and option.types == {"object"} and len(option.objects.absent) == 1:
        (name,) = option.objects.absent
        return name if option.objects == Objects(absent=option.objects.absent) else None
    return None


def _only_exists(option: Formula) -> Exists | None:
    """What a fact asks, if it is: an object with a member of this name that satisfies this."""
    if isinstance(option, Conjunction) and option.types == {"object"} and len(option.objects.exists) == 1:
        (exists,) = option.objects.exists
        if exists.name is not None and option.objects == Objects(exists=option.objects.exists):
            return exists
    return None


def _joined(left: Formula, right: Formula) -> Conjunction | None:
    """Two facts about different types as one."""
    if not isinstance(left, Conjunction) or not isinstance(right, Conjunction) or left.types & right.types:
        return None
    if left.values is not None or right.values is not None or left.not_values or right.not_values:
        return None

    def of(kind: str) -> Conjunction:
        return left if kind in left.types else right

    return Conjunction(
        left.types | right.types,
        numbers=of("number").numbers,
        strings=of("string").strings,
        arrays=of("array").arrays,
        objects=of("object").objects,
    )


def _types(schema: Mapping[str, Any]) -> tuple[frozenset[str], bool]:
    """The types that ``type`` allows, and whether numbers must be integers."""
    names = schema["type"] if isinstance(schema["type"], (list, tuple)) else [schema["type"]]
    wanted = {"number" if name == "integer" else name for name in names}
    if "any" in wanted:
        wanted = set(TYPES)
    if schema.get("nullable") is True:
        wanted.add("null")
    return frozenset(wanted), "integer" in names and "number" not in names and "any" not in names


def _bounds(schema: Mapping[str, Any]) -> Iterator[tuple[bool, Any, bool]]:
    """The bounds of numbers: whether it is a lower one, its value, and whether that is excluded."""
    for plain, exclusive, lower in (("minimum", "exclusiveMinimum", True), ("maximum", "exclusiveMaximum", False)):
        flag = schema.get(exclusive)
        if plain in schema:
            yield lower, exact(schema[plain]), flag is True  # draft 4 has a flag beside the bound
        if flag is not None and not isinstance(flag, bool):
            yield lower, exact(flag), True


def _has(name: str) -> Formula:
    """Objects that have a member of this name."""
    return fact("object", objects=Objects(required=(name,)))


def _lacks(name: str) -> Formula:
    """Everything but an object that has a member of this name."""
    return Conjunction(objects=Objects(absent=frozenset((name,))))


def _exists(exists: Exists) -> Formula:
    return fact("object", objects=Objects(exists=(exists,)))


def _found(contains: Contains) -> Formula:
    return fact("array", arrays=Arrays(contains=(contains,)))


def _length_is_not(kind: str, length: int) -> list[Formula]:
    """Arrays or objects of another length."""
    made: Callable[..., Any] = Arrays if kind == "array" else Objects
    name = "arrays" if kind == "array" else "objects"
    found: list[Formula] = [fact(kind, **{name: made(least=length + 1)})]
    if length > 0:
        found.append(fact(kind, **{name: made(most=length - 1)}))
    return found


#: Keywords whose negation is refused.
NOT_NEGATED = ("uniqueItems",)

_NEGATIONS: dict[str, Callable[[Normaliser, Located], Iterator[Formula]]] = {
    "type": Normaliser._not_type,
    "minLength": Normaliser._not_min_length,
    "maxLength": Normaliser._not_max_length,
    "pattern": Normaliser._not_pattern,
    "format": Normaliser._not_format,
    "multipleOf": Normaliser._not_multiple,
    "properties": Normaliser._not_properties,
    "patternProperties": Normaliser._not_patterns,
    "additionalProperties": Normaliser._not_additional,
    "propertyNames": Normaliser._not_names,
    "required": Normaliser._not_required,
    "minProperties": Normaliser._not_min_properties,
    "maxProperties": Normaliser._not_max_properties,
    "minItems": Normaliser._not_min_items,
    "maxItems": Normaliser._not_max_items,
    "contains": Normaliser._not_contains,
    "allOf": Normaliser._not_all_of,
    "anyOf": Normaliser._not_any_of,
    "oneOf": Normaliser._not_one_of,
    "not": Normaliser._not_not,
    "if": Normaliser._not_if,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "dependencies"), Normaliser._not_dependencies),
    **dict.fromkeys(("enum", "const"), Normaliser._not_values),
    **dict.fromkeys(("items", "prefixItems"), Normaliser._not_items),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), Normaliser._not_bounds),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), Normaliser._not_evaluated),
    "uniqueItems": Normaliser._not_unique,
}


def unsupported(located: Located, keyword: str, how: str = "") -> UnsupportedSchemaError:
    """The error for a keyword that cannot be enforced exactly."""
    return UnsupportedSchemaError(
        f"the keyword {keyword!r} cannot be enforced exactly{' ' + how if how else ''}",
        hint="remove it, say it otherwise, or have it checked after generation with on_unsupported='validate'",
        place=Place(pointer=located.pointer, keyword=keyword),
    )
