"""Negation of schemas: one of the keywords does not hold.

Single assertions are closed under negation: the negation of a minimum is an exclusive maximum, that of a required
member is a fact that forbids it. The negation of a subschema stays a sign (`SignedSchema`) until it is expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Any

from ...errors import LimitError, Place
from ...text_grammars.strings import string_grammar
from ..read.keywords import GRAMMAR, REFERENCES, TYPES
from ..read.located import Located, SignedSchema
from ..scalars.numbers import NumberRange, exact
from .assertions import bounds_of, types_of
from .conjunction import (
    TRUE,
    AllOf,
    AnyExists,
    AnyOf,
    Arrays,
    Conjunction,
    Contains,
    Exists,
    Formula,
    ObjectPart,
    Objects,
    OnlyKeywordFails,
    Strings,
    fact,
    negated,
    same_value,
    type_of,
)
from .context import NormalForms

#: Maximum number of combinations of the ways in which several schemas, or values, can fail; beyond it, the ways in
#: which objects fail become demands of one alternative.
MAX_PRODUCT = 64

#: Maximum number of arrays and objects of one ``enum`` that a value may have to differ from.
MAX_DIFFERENT = 500

#: Values that an array may repeat where ``uniqueItems`` must not hold, besides those that ``items`` lists.
REPEATED: tuple[Any, ...] = (None, True, False, 0, 1, "", "a", [], {})

#: Maximum number of values listed by ``items`` that an array may repeat where ``uniqueItems`` must not hold.
MAX_LISTED = 32


def negation(norm: NormalForms, located: Located) -> Formula:
    """Return the negation of a schema: one of its keywords does not hold."""
    options: list[Formula] = []
    if norm.unenforced and any(key == located.key for key, _ in norm.unenforced):
        return TRUE  # the keyword that is left out may be the one that fails
    for keyword in REFERENCES:
        if norm.asserts(located, keyword):
            options.append(SignedSchema(norm.document.resolve(located, keyword), False))
            if keyword == "$ref" and norm.document.ref_hides_siblings:
                return options[0]
    schema = located.schema
    for keyword, denied in _NEGATIONS.items():
        if keyword in schema and norm.asserts(located, keyword):
            options.extend(denied(norm, located))
    return either(options)


def _not_type(norm: NormalForms, located: Located) -> Iterator[Formula]:
    if norm.values(located) is not None:
        return  # only listed values of these types are valid: see `_not_values`
    types, integer = types_of(located.schema)
    others = frozenset(TYPES) - types
    if others:
        yield fact(others)
    if integer and "number" in types:
        yield fact("number", numbers=NumberRange(fractional=True))


def _not_values(norm: NormalForms, located: Located) -> Iterator[Formula]:
    values = norm.values(located) or ()
    if norm.asserts(located, "type"):
        types, integer = types_of(located.schema)
        values = tuple(value for value in values if type_of(value) in types and not (integer and _is_fraction(value)))
    scalars = tuple(value for value in values if type_of(value) not in ("array", "object"))
    others = [value for value in values if type_of(value) in ("array", "object")]
    if len(others) > MAX_DIFFERENT:
        raise LimitError(
            f"{len(others):,} arrays and objects must not be written, and at most {MAX_DIFFERENT} can be excluded",
            hint="leave out not (or oneOf), or list fewer values",
            place=Place(pointer=located.pointer, keyword="enum"),
        )
    ways = [_ways_to_differ(norm, value) for value in others]
    join: Callable[[list[Conjunction]], Formula] = either
    if prod(map(len, ways)) > MAX_PRODUCT:
        norm.document.demanding.add(id(located.schema))
        join = together
    denied = Conjunction(not_values=scalars)
    yield AllOf((denied, *map(join, ways))) if ways else denied


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _ways_to_differ(norm: NormalForms, value: Any) -> list[Conjunction]:
    """Return the alternatives of "another value than this array or object"."""
    kind = type_of(value)
    if kind == "array":
        ways = [fact(set(TYPES) - {"array"}), fact("array", arrays=Arrays(least=len(value) + 1))]
        if value:
            ways.append(fact("array", arrays=Arrays(most=len(value) - 1)))
        for index, item in enumerate(value):
            other = Contains(negated(norm.constant(item)), index, index + 1)
            ways.append(fact("array", arrays=Arrays(contains=(other,))))
        return ways
    # An object with fewer members lacks one of these.
    ways = [fact(set(TYPES) - {"object"}), fact("object", objects=Objects(least=len(value) + 1))]
    for name, item in value.items():
        ways.append(fact("object", objects=Objects(absent=frozenset((name,)))))
        ways.append(fact("object", objects=Objects(exists=(Exists(negated(norm.constant(item)), name),))))
    return ways


def _not_bounds(norm: NormalForms, located: Located) -> Iterator[Formula]:
    for least, value, strict in bounds_of(located.schema):
        beyond = NumberRange()
        yield fact("number", numbers=beyond.at_most(value, not strict) if least else beyond.at_least(value, not strict))


def _not_multiple(norm: NormalForms, located: Located) -> Iterator[Formula]:
    yield fact("number", numbers=NumberRange(not_multiples=(exact(located.schema["multipleOf"]),)))


def _not_min_length(norm: NormalForms, located: Located) -> Iterator[Formula]:
    least = int(located.schema["minLength"])
    if least > 0:
        yield fact("string", strings=Strings(most=least - 1))


def _not_max_length(norm: NormalForms, located: Located) -> Iterator[Formula]:
    yield fact("string", strings=Strings(least=int(located.schema["maxLength"]) + 1))


def _not_pattern(norm: NormalForms, located: Located) -> Iterator[Formula]:
    yield fact("string", strings=Strings(not_patterns=(located.schema["pattern"],)))


def _not_grammar(norm: NormalForms, located: Located) -> Iterator[Formula]:
    yield fact("string", strings=Strings(not_patterns=(string_grammar(located.schema[GRAMMAR]),)))


def _not_format(norm: NormalForms, located: Located) -> Iterator[Formula]:
    if norm.asserts_format(located):
        yield fact("string", strings=Strings(not_formats=(located.schema["format"],)))


def _not_properties(norm: NormalForms, located: Located) -> Iterator[Formula]:
    for name, formula in norm.object_part(located).properties.items():
        yield _exists(Exists(negated(formula), name=name))


def _not_patterns(norm: NormalForms, located: Located) -> Iterator[Formula]:
    for pattern, formula in norm.object_part(located).patterns.items():
        yield _exists(Exists(negated(formula), pattern=pattern))


def _not_additional(norm: NormalForms, located: Located) -> Iterator[Formula]:
    part = norm.object_part(located)
    if part.additional is not None and part.additional != TRUE:
        yield _exists(Exists(negated(part.additional), beside=(part,)))


def _not_names(norm: NormalForms, located: Located) -> Iterator[Formula]:
    yield _exists(Exists(TRUE, failing=SignedSchema(located.child("propertyNames"))))


def _not_required(norm: NormalForms, located: Located) -> Iterator[Formula]:
    required = located.schema["required"]
    for name in required if isinstance(required, (list, tuple)) else ():
        yield fact("object", objects=Objects(absent=frozenset((name,))))


def _not_min_properties(norm: NormalForms, located: Located) -> Iterator[Formula]:
    least = int(located.schema["minProperties"])
    if least > 0:
        yield fact("object", objects=Objects(most=least - 1))


def _not_max_properties(norm: NormalForms, located: Located) -> Iterator[Formula]:
    yield fact("object", objects=Objects(least=int(located.schema["maxProperties"]) + 1))


def _not_dependencies(norm: NormalForms, located: Located) -> Iterator[Formula]:
    for name, needed in norm.dependencies(located):
        if isinstance(needed, Conjunction):
            for other in needed.objects.required:
                yield AllOf((has(name), fact("object", objects=Objects(absent=frozenset((other,))))))
        else:
            yield AllOf((has(name), negated(needed)))


def _not_items(norm: NormalForms, located: Located) -> Iterator[Formula]:
    part = norm.array_part(located)
    for index, formula in enumerate(part.prefix):
        yield _found(Contains(negated(formula), index, index + 1))
    if part.items is not None:
        yield _found(Contains(negated(part.items), len(part.prefix)))


def _not_min_items(norm: NormalForms, located: Located) -> Iterator[Formula]:
    least = int(located.schema["minItems"])
    if least > 0:
        yield fact("array", arrays=Arrays(most=least - 1))


def _not_max_items(norm: NormalForms, located: Located) -> Iterator[Formula]:
    yield fact("array", arrays=Arrays(least=int(located.schema["maxItems"]) + 1))


def _not_contains(norm: NormalForms, located: Located) -> Iterator[Formula]:
    for contains in norm.contains(located):
        if contains.least > 0:
            yield _found(replace(contains, least=0, most=contains.least - 1))
        if contains.most is not None:
            yield _found(replace(contains, least=contains.most + 1, most=None))


def _not_all_of(norm: NormalForms, located: Located) -> Iterator[Formula]:
    for index in range(len(located.schema["allOf"])):
        yield SignedSchema(located.child("allOf", index), False)


def _not_any_of(norm: NormalForms, located: Located) -> Iterator[Formula]:
    options = [SignedSchema(located.child("anyOf", index)) for index in range(len(located.schema["anyOf"]))]
    yield AllOf(tuple(norm.denied(options)))


def _not_one_of(norm: NormalForms, located: Located) -> Iterator[Formula]:
    if norm.one_of_as_union:
        yield TRUE
        return
    overlaps = norm.overlaps(located)
    options = [SignedSchema(located.child("oneOf", index)) for index in range(len(overlaps))]
    yield AllOf(tuple(norm.denied(options)))
    for one, others in enumerate(overlaps):
        for two in sorted(others):
            if one < two:
                yield AllOf((options[one], options[two]))


def _not_not(norm: NormalForms, located: Located) -> Iterator[Formula]:
    yield SignedSchema(located.child("not"))


def _not_if(norm: NormalForms, located: Located) -> Iterator[Formula]:
    condition = SignedSchema(located.child("if"))
    if "then" in located.schema:
        yield AllOf((condition, SignedSchema(located.child("then"), False)))
    if "else" in located.schema:
        yield AllOf((negated(condition), SignedSchema(located.child("else"), False)))


def _not_unique(norm: NormalForms, located: Located) -> Iterator[Formula]:
    """Yield arrays that repeat one of a few values; a repetition of any other value cannot be tracked."""
    if located.schema["uniqueItems"] is not True:
        return
    listed = list(islice(_listed_items(norm, located), MAX_LISTED))
    for value in (*listed, *(value for value in REPEATED if not any(same_value(value, item) for item in listed))):
        yield fact("array", arrays=Arrays(contains=(Contains(norm.constant(value), least=2),)))


def _listed_items(norm: NormalForms, located: Located) -> Iterator[Any]:
    """Yield the values that the items of a schema list."""
    schema = located.schema.get("items")
    if isinstance(schema, Mapping):
        yield from norm.values(norm.document.enter(located.child("items"))) or ()


def _not_evaluated(norm: NormalForms, located: Located) -> Iterator[Formula]:
    for keyword in ("unevaluatedProperties", "unevaluatedItems"):
        if norm.asserts(located, keyword):
            yield OnlyKeywordFails(located, keyword)


def either(options: Sequence[Formula]) -> Formula:
    """Return the union of some formulas, with related alternatives merged.

    "No member ``n``, or one that satisfies ``f``" is merged to one fact, and so are facts about different types.
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
        formula = formulas[0] if len(formulas) == 1 else AnyOf(tuple(formulas))
        if absent.pop(name, None) is not None:
            others.append(fact("object", objects=Objects(parts=(ObjectPart({name: formula}),))))
        else:
            others.append(_exists(Exists(formula, name)))
    merged: list[Formula] = []
    for option in [*others, *absent.values()]:
        for index, other in enumerate(merged):
            both = _joined(other, option)
            if both is not None:
                merged[index] = both
                break
        else:
            merged.append(option)
    return merged[0] if len(merged) == 1 else AnyOf(tuple(merged))


def together(failures: Iterable[Conjunction]) -> Formula:
    """Return the union of some alternatives, with few alternatives of objects: those that constrain one member become
    the options of a single `AnyExists`."""
    members: dict[Exists, None] = {}
    absent: set[str] = set()
    options: list[Formula] = []
    for failure in failures:
        member = _of_one_member(failure)
        if member is None:
            options.append(failure)
            continue
        exists, name = member
        if exists is not None:
            members[exists] = None
        if name is not None:
            absent.add(name)
        others = failure.types - {"object"}
        if others:
            options.append(replace(failure, types=others, objects=Objects()))
    if members or absent:
        some = AnyExists(tuple(members), frozenset(absent))
        options.insert(0, fact("object", objects=Objects(any_exists=(some,))))
    return either(options)


def _of_one_member(failure: Conjunction) -> tuple[Exists | None, str | None] | None:
    """Return the member that an alternative requires, and the name that it requires to be absent, if the alternative
    is no more than one of them, or their union; else None."""
    objects = failure.objects
    if "object" not in failure.types or failure.values is not None:
        return None
    if len(objects.exists) == 1 and objects == Objects(exists=objects.exists):
        return objects.exists[0], None
    if len(objects.absent) == 1 and objects == Objects(absent=objects.absent):
        return None, next(iter(objects.absent))
    if len(objects.parts) == 1 and objects == Objects(parts=objects.parts):
        (part,) = objects.parts
        if len(part.properties) == 1 and not part.patterns and part.additional is None and not part.names_properties:
            ((name, formula),) = part.properties.items()
            return Exists(formula, name), name
    return None


def _only_absent(option: Formula) -> str | None:
    """Return the name if a fact is no more than the absence of this member from an object; else None."""
    if isinstance(option, Conjunction) and option.types == {"object"} and len(option.objects.absent) == 1:
        (name,) = option.objects.absent
        return name if option.objects == Objects(absent=option.objects.absent) else None
    return None


def _only_exists(option: Formula) -> Exists | None:
    """Return the member if a fact is no more than the existence of a named member that satisfies a formula; else
    None."""
    if isinstance(option, Conjunction) and option.types == {"object"} and len(option.objects.exists) == 1:
        (exists,) = option.objects.exists
        if exists.name is not None and option.objects == Objects(exists=option.objects.exists):
            return exists
    return None


def _joined(left: Formula, right: Formula) -> Conjunction | None:
    """Return two facts about different types as one fact; None if they share a type or list values."""
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


def has(name: str) -> Formula:
    """Return the fact that an object has a member of this name."""
    return fact("object", objects=Objects(required=(name,)))


def _exists(exists: Exists) -> Formula:
    return fact("object", objects=Objects(exists=(exists,)))


def _found(contains: Contains) -> Formula:
    return fact("array", arrays=Arrays(contains=(contains,)))


_NEGATIONS: dict[str, Callable[[NormalForms, Located], Iterator[Formula]]] = {
    "type": _not_type,
    "minLength": _not_min_length,
    "maxLength": _not_max_length,
    "pattern": _not_pattern,
    GRAMMAR: _not_grammar,
    "format": _not_format,
    "multipleOf": _not_multiple,
    "properties": _not_properties,
    "patternProperties": _not_patterns,
    "additionalProperties": _not_additional,
    "propertyNames": _not_names,
    "required": _not_required,
    "minProperties": _not_min_properties,
    "maxProperties": _not_max_properties,
    "minItems": _not_min_items,
    "maxItems": _not_max_items,
    "contains": _not_contains,
    "allOf": _not_all_of,
    "anyOf": _not_any_of,
    "oneOf": _not_one_of,
    "not": _not_not,
    "if": _not_if,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "dependencies"), _not_dependencies),
    **dict.fromkeys(("enum", "const"), _not_values),
    **dict.fromkeys(("items", "prefixItems"), _not_items),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _not_bounds),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), _not_evaluated),
    "uniqueItems": _not_unique,
}
