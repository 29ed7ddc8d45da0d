"""One linear pass over the reachable subschemas: is each well-formed, and can each keyword be enforced exactly?

A subschema may be asked to hold, or not to hold, or both: it is visited once for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import inf
from typing import Any

from ...errors import (
    InvalidSchemaError,
    LimitError,
    PatternError,
    Place,
    SchemaError,
    ToolGrammarError,
    UnsupportedPatternError,
    UnsupportedSchemaError,
)
from ...language.terms import Terms
from ...regex.compile import regex_term
from ..normal.assertions import CHECK_LATER, unsupported
from ..normal.normalise import Normaliser
from ..read.keywords import CONSTRAINING, KEYWORDS, REFERENCES, TYPES, Shape, keywords
from ..read.located import Located, SignedSchema
from ..read.options import SchemaOptions
from ..read.resolve import Document
from ..scalars.bounded_formats import BOUNDED
from ..scalars.formats import ENFORCED, REFUSED

#: Types that the value of a keyword may have, by its shape.
_CLASSES: dict[Shape, tuple[type, ...]] = {
    Shape.SCHEMA: (Mapping, bool),
    **dict.fromkeys((Shape.SCHEMAS, Shape.ALTERNATIVES, Shape.NAMES, Shape.VALUES), (list, tuple)),
    Shape.ITEMS: (Mapping, bool, list, tuple),
    **dict.fromkeys((Shape.BY_NAME, Shape.BY_PATTERN, Shape.DEPENDENCIES, Shape.REQUIREMENTS), (Mapping,)),
    Shape.TYPE: (str, list, tuple),
    **dict.fromkeys((Shape.BOUND, Shape.STEP), (int, float)),
    **dict.fromkeys((Shape.PATTERN, Shape.FORMAT), (str,)),
    Shape.FLAG: (bool,),
}
_SHAPES = {word: _CLASSES[KEYWORDS[word].shape] for word in keywords(shapes=_CLASSES) if word in CONSTRAINING}
#: The largest lower bounds, on characters, items and members: each item has states of its own, and each member needs
#: another name.
MAX_LEAST_LENGTH, MAX_LEAST_ITEMS, MAX_LEAST_PROPERTIES = 100_000, 10_000, 1_000

#: How many arrays and objects an ``enum`` may list, where they may be written in several ways.
MAX_LOOSE = 1_000

_LEAST = {
    "minLength": MAX_LEAST_LENGTH,
    "minItems": MAX_LEAST_ITEMS,
    "minContains": MAX_LEAST_ITEMS,
    "minProperties": MAX_LEAST_PROPERTIES,
}
_COUNTS = keywords(shapes=(Shape.LOWER_COUNT, Shape.UPPER_COUNT))
_NUMBERS = (*_COUNTS, *keywords(shapes=(Shape.BOUND, Shape.STEP)))

#: Maximum nesting of a value in ``const`` or ``enum``.
MAX_DEPTH = 64

#: Integers from here on are refused: Python reads and writes at most 4,300 digits, or fewer where it is told so.
MAX_INTEGER = 10**600

#: Keywords that make alternatives, or refer.
_FORKS = frozenset(row.name for row in KEYWORDS.values() if row.forks)

#: Keywords whose negation is refused.
_NOT_NEGATED = tuple(row.name for row in KEYWORDS.values() if not row.negatable)

#: What formats are called in errors that nobody wrote under that name.
_FORMAT_NAMES = {"python-json": "of JSON inside of a string"}


class DynamicReferences(Exception):
    """The document uses ``$dynamicRef`` or ``$recursiveRef``: what a subschema means depends on the way to it."""


def problems(document: Document, options: SchemaOptions) -> Iterator[tuple[Located, SchemaError | LimitError]]:
    """Every problem of the reachable subschemas, in the order in which they are met, and where it is.

    Raises:
        DynamicReferences: see there.
    """
    seen: set[tuple[object, bool]] = set()
    told: set[object] = set()
    stack = [(document.root, True)]
    normaliser = Normaliser(document, formats=options.formats, open_objects=options.additional_properties)
    # Schemas whose alternatives are tried when all is well-formed, and those that belong to alternatives of others.
    forks: list[Located] = []
    inside: set[object] = set()
    clean = True
    document.entries = 0
    while stack:
        located, positive = stack.pop()
        schema = located.schema
        if isinstance(schema, bool):
            continue
        located = document.enter(located)
        if (located.key, positive) in seen:
            continue
        seen.add((located.key, positive))
        document.entries += len(schema) if isinstance(schema, Mapping) else 0
        if not isinstance(schema, Mapping):
            clean = False
            yield (
                located,
                InvalidSchemaError(
                    f"a schema must be an object or a boolean, not {type(schema).__name__}",
                    hint="see https://json-schema.org/draft/2020-12/json-schema-core section 4.3",
                    place=Place(pointer=located.pointer),
                ),
            )
            continue
        if located.key not in told:
            told.add(located.key)
            malformed = list(_malformed(located))
            clean = clean and not malformed
            yield from ((located, problem) for problem in malformed)
            if malformed:
                told.add((located.key, "malformed"))
            else:
                yield from ((located, problem) for problem in _refused(located, options))
                yield from ((located, problem) for problem in _too_loose(located, options))
        if (located.key, "malformed") in told:
            continue
        children: list[tuple[Located, bool]] = []
        broken = False
        for keyword in REFERENCES:
            if keyword not in schema or not document.knows(keyword):
                continue
            if keyword != "$ref" and not document.dynamic:
                raise DynamicReferences
            try:
                children.append((document.resolve(located, keyword), positive))
            except SchemaError as error:
                yield located, error
                broken = True
        if "$ref" in schema and document.ref_hides_siblings:
            stack.extend(children)
            continue
        if not positive:
            for keyword in _NOT_NEGATED:
                if normaliser.asserts(located, keyword) and schema[keyword] is not False:
                    yield located, unsupported(located, keyword, "under a negation")
        children += _children(document, normaliser, located, positive)
        if not _FORKS.isdisjoint(schema):
            clean = clean and not broken
            if positive and located.key not in inside:
                forks.append(located)
            inside.update(child.key for child in _in_place(located))
        stack.extend(reversed(children))
    for located in forks if clean else ():
        try:
            normaliser.branches((SignedSchema(located),))
        except (SchemaError, LimitError) as error:
            yield located, error.with_traceback(None)  # whose frames hold all that was found on the way


def _in_place(located: Located) -> Iterator[Located]:
    """The subschemas that speak of the same value."""
    schema = located.schema
    for keyword in ("anyOf", "allOf", "oneOf"):
        yield from (located.child(keyword, index) for index in range(len(schema.get(keyword, ()))))
    yield from (located.child(keyword) for keyword in ("not", "if", "then", "else") if keyword in schema)


def _children(
    document: Document, normaliser: Normaliser, located: Located, positive: bool
) -> Iterator[tuple[Located, bool]]:
    """The subschemas of a schema, and whether each is asked to hold or not to hold."""
    schema = located.schema
    for keyword in ("properties", "patternProperties", "dependentSchemas"):
        if keyword in schema and document.knows(keyword):
            yield from ((located.child(keyword, name), positive) for name in schema[keyword])
    for name, needed in schema.get("dependencies", {}).items():
        if not isinstance(needed, (list, tuple, str)):
            yield located.child("dependencies", name), positive
    for keyword in ("anyOf", "allOf", "prefixItems"):
        if document.knows(keyword):
            yield from ((located.child(keyword, index), positive) for index in range(len(schema.get(keyword, ()))))
    items = schema.get("items")
    if isinstance(items, (list, tuple)):
        yield from ((located.child("items", index), positive) for index in range(len(items)))
    elif items is not None:
        yield located.child("items"), positive
    for keyword in ("additionalProperties", "additionalItems"):
        if keyword in schema:
            yield located.child(keyword), positive
    for keyword in ("unevaluatedProperties", "unevaluatedItems", "propertyNames"):
        if keyword in schema and document.knows(keyword):
            yield located.child(keyword), True
            if not positive and keyword != "propertyNames":  # it may be all that does not hold
                yield located.child(keyword), False
                yield located, True
    if "not" in schema:
        yield located.child("not"), not positive
    if "if" in schema and document.knows("if"):
        yield located.child("if"), True
        if schema.keys() & {"then", "else"}:
            yield located.child("if"), False
        yield from ((located.child(keyword), positive) for keyword in ("then", "else") if keyword in schema)
    if "contains" in schema and document.knows("contains"):
        yield located.child("contains"), True
        if not positive or "maxContains" in schema:
            yield located.child("contains"), False
    if "oneOf" in schema:
        options = [located.child("oneOf", index) for index in range(len(schema["oneOf"]))]
        try:
            overlaps = normaliser.overlaps(located)
        except ToolGrammarError:
            overlaps = [frozenset()] * len(options)  # the problem inside an option is reported where it stands
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            overlaps = [frozenset()] * len(options)  # an option is malformed, which is reported too
        for index, option in enumerate(options):
            yield option, True
            if not positive or any(index in others for others in overlaps):
                yield option, False


def _too_loose(located: Located, options: SchemaOptions) -> Iterator[LimitError]:
    """An ``enum`` of so many arrays and objects that their spellings cannot be told apart while they are written."""
    values = located.schema.get("enum", ())
    count = sum(isinstance(value, (dict, list, tuple)) for value in values)
    if count > MAX_LOOSE and (options.property_order == "any" or options.whitespace == "flexible"):
        yield LimitError(
            f"enum lists {count:,} arrays and objects, at most {MAX_LOOSE:,} can be written in any order or spacing",
            hint='list fewer, or write them as they are listed: property_order="schema", whitespace="single"',
            place=Place(pointer=located.pointer, keyword="enum"),
        )


def _refused(located: Located, options: SchemaOptions) -> Iterator[SchemaError]:
    """What a well-formed schema itself holds that cannot be enforced."""
    schema = located.schema
    name = schema.get("format") if options.formats else None
    if name in REFUSED:
        yield UnsupportedSchemaError(
            f"the format {_FORMAT_NAMES.get(name, repr(name))} cannot be enforced exactly",
            hint=f"remove it, say it by a pattern, or {CHECK_LATER}",
            place=Place(pointer=located.pointer, keyword="format"),
        )
    elif name in BOUNDED:
        yield UnsupportedSchemaError(
            f"the format {name!r} cannot be enforced exactly, only without {BOUNDED[name].left_out}",
            hint='remove it, say it by a pattern, or allow that with on_unsupported="narrow"',
            place=Place(pointer=located.pointer, keyword="format"),
            left_out=BOUNDED[name].left_out,
        )
    elif name is not None and name not in ENFORCED and options.strict_formats:
        yield UnsupportedSchemaError(
            f"the format {name!r} is not one of the specification",
            hint="leave strict_formats off to take it for an annotation",
            place=Place(pointer=located.pointer, keyword="format"),
        )
    for keyword, pattern in _patterns(schema):
        problem = pattern_problem(pattern)
        if problem is not None:
            yield type(problem)(
                problem.message,
                hint=problem.hint,
                place=Place(pointer=located.pointer, keyword=keyword, offset=problem.place.offset),
            )


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
    long = [keyword for keyword in _NUMBERS if not is_small(schema.get(keyword, 0))]
    for keyword in long:
        yield LimitError(
            f"{keyword} has more than 600 digits",
            hint="use a smaller number",
            place=Place(pointer=located.pointer, keyword=keyword),
        )
    for keyword in _COUNTS:
        value = schema.get(keyword, 0)
        if keyword in long:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < inf or value % 1:
            yield wrong(keyword, f"{keyword} must be a whole number that is not negative")
        elif keyword in _LEAST and value > _LEAST[keyword]:
            yield LimitError(
                f"{keyword} is {value:,}, and no model writes more than {_LEAST[keyword]:,}",
                hint=f"lower {keyword}",
                place=Place(pointer=located.pointer, keyword=keyword),
            )
    for name in schema["type"] if isinstance(schema.get("type"), (list, tuple)) else [schema.get("type", "null")]:
        if name not in TYPES and name not in ("integer", "any"):
            yield wrong("type", f"{name!r} is not a JSON type")
    names = schema.get("required", ())
    if isinstance(names, (list, tuple)) and not all(isinstance(name, str) for name in names):
        yield wrong("required", "required must list property names")
    step = schema.get("multipleOf", 1)
    if isinstance(step, (int, float)) and (isinstance(step, bool) or not 0 < step < inf):
        yield wrong("multipleOf", "multipleOf must be a finite number above zero")
    for keyword in ("dependentRequired", "dependencies"):
        if not isinstance(schema.get(keyword, {}), Mapping):
            continue
        for needed in schema.get(keyword, {}).values():
            if isinstance(needed, (list, tuple)):
                if not all(isinstance(name, str) for name in needed):
                    yield wrong(keyword, f"{keyword} must list property names")
            elif keyword == "dependentRequired" or not isinstance(needed, (Mapping, bool, str)):
                yield wrong(keyword, f"{keyword} must list property names")
    for keyword in ("properties", "patternProperties"):
        properties = schema.get(keyword, {})
        if isinstance(properties, Mapping) and not all(isinstance(name, str) for name in properties):
            yield wrong(keyword, "property names must be strings")
    for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        value = schema.get(keyword, 0)
        if isinstance(value, float) and not abs(value) < float("inf"):
            yield wrong(keyword, f"{keyword} must be a finite number")
    for keyword in ("const", "enum"):
        if keyword in schema and not is_json(schema[keyword]):
            yield wrong(keyword, f"{keyword} holds something that is not a JSON value")
        elif keyword in schema and not is_small(schema[keyword]):
            yield LimitError(
                f"{keyword} holds a value more than {MAX_DEPTH} deep, or an integer of more than 600 digits",
                hint="describe it with properties and items, or use a smaller number",
                place=Place(pointer=located.pointer, keyword=keyword),
            )
    for keyword in ("anyOf", "allOf", "oneOf"):
        if keyword in schema and isinstance(schema[keyword], (list, tuple)) and not schema[keyword]:
            yield wrong(keyword, f"{keyword} must not be empty")


def is_small(value: Any) -> bool:
    """Return whether a JSON value is nested at most `MAX_DEPTH` deep, and no integer in it is too long to be read."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for item in level:
            if type(item) is int:
                if not -MAX_INTEGER < item < MAX_INTEGER:
                    return False
            elif isinstance(item, Mapping):
                inner.extend(item.values())
            elif isinstance(item, (list, tuple)):
                inner.extend(item)
        if not inner:
            return True
        level = inner
    return False


def is_json(value: Any) -> bool:
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


@lru_cache(maxsize=256)  # the patterns that people copy are met in schema after schema
def pattern_problem(pattern: str) -> SchemaError | None:
    """Why a pattern cannot be enforced, if so; its place is in the pattern."""
    try:
        regex_term(Terms(), pattern, whole=False)
    except PatternError as error:
        kind = UnsupportedSchemaError if isinstance(error, UnsupportedPatternError) else InvalidSchemaError
        return kind(error.message, hint=error.hint, place=error.place)
    except ToolGrammarError as error:
        return UnsupportedSchemaError(error.message, hint=error.hint, place=error.place)
    return None
