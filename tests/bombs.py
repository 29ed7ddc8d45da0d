"""Small schemas that expand without bound: references, alternatives, counts, nesting, enumerations and patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

#: Levels of a bomb of references; no walk of 6 ** 40 steps ends.
LEVELS = 40
#: References on each level.
WIDTH = 6

Schema = dict[str, Any]


def levels(make: Callable[[list[Schema]], Schema], last: Any, depth: int = LEVELS, width: int = WIDTH) -> Schema:
    """Return a schema each of whose definitions refers to the next several times."""
    definitions = {f"d{level}": make([{"$ref": f"#/$defs/d{level + 1}"}] * width) for level in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{depth}": last}}


def nest(make: Callable[[Any], Schema], last: Any, depth: int) -> Schema:
    """Return a schema nested so many levels deep."""
    schema = last
    for _ in range(depth):
        schema = make(schema)
    return schema  # type: ignore[no-any-return]


def _named(options: list[Schema]) -> Schema:
    names = [f"p{number}" for number in range(len(options))]
    return {"type": "object", "properties": dict(zip(names, options, strict=True)), "required": names}


#: How a level of a bomb applies the next one.
APPLICATORS: dict[str, Callable[[list[Schema]], Schema]] = {
    "anyOf": lambda options: {"anyOf": options},
    "oneOf": lambda options: {"oneOf": options},
    "allOf": lambda options: {"allOf": options},
    "anyOf of objects": lambda options: {"anyOf": [{"properties": {"p": option}} for option in options]},
    "oneOf of objects": lambda options: {
        "oneOf": [{"properties": {"p": option}, "required": ["p"]} for option in options]
    },
    "not": lambda options: {"not": {"anyOf": options}},
    "not of allOf": lambda options: {"not": {"allOf": options}},
    "if": lambda options: {"if": options[0], "then": options[1], "else": options[2]},
    "properties": _named,
    "optional properties": lambda options: {**_named(options), "required": []},
    "items": lambda options: {"type": "array", "items": options[0], "minItems": len(options)},
    "prefixItems": lambda options: {"type": "array", "prefixItems": options, "minItems": len(options)},
    "contains": lambda options: {"type": "array", "contains": options[0], "minContains": len(options)},
    "uniqueItems": lambda options: {"type": "array", "items": options[0], "minItems": 3, "uniqueItems": True},
    "additionalProperties": lambda options: {
        "type": "object",
        "additionalProperties": options[0],
        "minProperties": len(options),
    },
    "patternProperties": lambda options: {
        "type": "object",
        "patternProperties": {f"^{name}": option for name, option in zip("abcdef", options, strict=True)},
        "minProperties": len(options),
    },
    "dependentSchemas": lambda options: {"dependentSchemas": dict(zip("abcdef", options, strict=True))},
    "unevaluatedProperties": lambda options: {"anyOf": options, "unevaluatedProperties": False},
    "unevaluatedItems": lambda options: {"type": "array", "anyOf": options, "unevaluatedItems": False},
}

#: What the last level of a bomb is.
ENDS: dict[str, Any] = {
    "string": {"type": "string"},
    "object": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "anything": True,
    "nothing": False,
}


def reference_bombs() -> Iterator[tuple[str, Schema]]:
    """Yield schemas of one or two kilobytes whose references multiply on each level."""
    for name, make in APPLICATORS.items():
        for end, last in ENDS.items():
            yield f"{name} to {end}", levels(make, last)
        yield f"{name} to itself", levels(make, {"$ref": "#/$defs/d1"})
        yield f"{name}, few levels", levels(make, {"type": "string"}, depth=5)


def count_bombs() -> Iterator[tuple[str, Schema]]:
    """Yield schemas whose least counts multiply."""
    for count in (30, 100, 1_000):
        for depth in (2, 3, 5, 20):
            yield (
                f"{count} members, {depth} deep",
                nest(
                    lambda inner, count=count: {
                        "type": "object",
                        "minProperties": count,
                        "additionalProperties": inner,
                    },
                    True,
                    depth,
                ),
            )
            yield (
                f"{count} items, {depth} deep",
                nest(lambda inner, count=count: {"type": "array", "minItems": count, "items": inner}, True, depth),
            )
            yield (
                f"{count} items that contain, {depth} deep",
                nest(
                    lambda inner, count=count: {"type": "array", "minContains": count, "contains": inner},
                    {"type": "string", "minLength": count},
                    depth,
                ),
            )
            yield (
                f"{count} named members, {depth} deep",
                nest(
                    lambda inner, count=count: {
                        "type": "object",
                        "minProperties": count,
                        "propertyNames": {"minLength": 50},
                        "additionalProperties": inner,
                    },
                    {"type": "string", "minLength": count},
                    depth,
                ),
            )
        yield (
            f"strings of {count}",
            {"type": "array", "minItems": count, "items": {"type": "string", "minLength": 9_999}},
        )
    yield (
        "distinct members",
        {
            "type": "array",
            "uniqueItems": True,
            "minItems": 500,
            "items": {"type": "object", "minProperties": 100, "additionalProperties": {"type": "integer"}},
        },
    )


def wide() -> Iterator[tuple[str, Schema]]:
    """Yield schemas that are deep, or have many parts."""
    yield "deep properties", nest(lambda inner: {"type": "object", "properties": {"a": inner}}, True, 140)
    yield "deep anyOf", nest(lambda inner: {"anyOf": [inner, {"type": "null"}]}, {"type": "string"}, 140)
    yield "deep oneOf", nest(lambda inner: {"oneOf": [inner, {"type": "null"}]}, {"type": "string"}, 140)
    yield "deep not", nest(lambda inner: {"not": inner}, {"type": "string"}, 140)
    yield "deep if", nest(lambda inner: {"if": inner, "then": {"type": "string"}, "else": True}, True, 140)
    yield "very deep", nest(lambda inner: {"type": "array", "items": inner}, True, 2_000)
    yield "many strings", {"enum": [f"value {number}" for number in range(5_000)]}
    yield "many numbers", {"enum": [number * 1.5 for number in range(5_000)]}
    yield "many values", {"enum": [{"a": number, "b": [number]} for number in range(900)]}
    yield "many strings that are none", {"type": "string", "not": {"enum": [f"value {n}" for n in range(2_000)]}}
    yield (
        "many properties",
        {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(2_000)}},
    )
    yield (
        "many patterns",
        {
            "type": "object",
            "properties": {
                f"p{number}": {"type": "string", "pattern": f"^a{number}[a-z]*$"} for number in range(1_000)
            },
        },
    )
    yield (
        "many names by pattern",
        {"type": "object", "patternProperties": {f"^a{number}": {"minimum": number} for number in range(200)}},
    )
    yield (
        "many required",
        {
            "type": "object",
            "properties": {f"p{number}": {"type": "string"} for number in range(2_000)},
            "required": [f"p{number}" for number in range(2_000)],
        },
    )
    yield "many anyOf", {"anyOf": [{"type": "object", "properties": {f"p{n}": {"type": "null"}}} for n in range(1_000)]}
    yield "many oneOf", {"oneOf": [{"type": "object", "properties": {f"p{n}": {"type": "null"}}} for n in range(200)]}
    yield "many allOf", {"allOf": [{"type": "object", "properties": {f"p{n}": {"type": "null"}}} for n in range(1_000)]}
    yield (
        "many definitions",
        {"$defs": {f"d{number}": {"type": "string"} for number in range(3_000)}, "$ref": "#/$defs/d7"},
    )
    yield (
        "a chain of definitions",
        levels(lambda options: options[0], {"type": "string"}, depth=1_000, width=1),
    )
    yield (
        "a chain of parts",
        levels(
            lambda options: {"allOf": [options[0], {"properties": {"a": True}}]},
            {"type": "object"},
            depth=500,
            width=1,
        ),
    )
    yield (
        "many identifiers",
        {
            "$id": "http://x/root",
            "properties": {f"p{number}": {"$ref": f"http://x/{number}"} for number in range(50)},
            "$defs": {f"d{number}": {"$id": f"http://x/{number}", "type": "string"} for number in range(50)},
        },
    )
    yield (
        "many dynamic references",
        {
            "$ref": "#/$defs/d0",
            "$defs": {
                f"d{number}": {
                    "$dynamicAnchor": f"a{number}",
                    "anyOf": [{"$dynamicRef": f"#a{(number + 1) % 200}"}, True],
                }
                for number in range(200)
            },
        },
    )
    yield "dependencies", {"type": "object", "dependentRequired": {f"p{n}": [f"p{n + 1}"] for n in range(300)}}
    yield (
        "dependent schemas",
        {"type": "object", "dependentSchemas": {f"p{n}": {"required": [f"p{n + 1}"]} for n in range(60)}},
    )


#: Patterns whose automata, or whose counts, are large.
PATTERNS = (
    "^(([a-z]{1,100}){1,100}){1,100}$",
    "^((((a{1,30}){1,30}){1,30}){1,30}){1,30}$",
    "^(a|b)*a(a|b){60}$",
    "^(.*a){40}$",
    "^(" + "|".join(f"x{number}y*" for number in range(500)) + "){2,50}$",
    "(?=.*a)(?=.*b)(?=.*c)(?=.*d)(?=.*e)(?=.*f)(?=.*g)(?=.*h)^.{20,}$",
    "^(?!.*(aa|bb|cc|dd)).{0,200}$",
    "(?<=a.{20})b(?<!c.{15})d",
    "(?<=" + "(a|b)" * 60 + ")c" + "d" * 60,
    "^[0-9]{1,5000}$",
    "^" + "(ab|c)?" * 1_000 + "$",
    "^(\\w+\\s?)*\\w+@(\\w+\\.)+\\w{2,}$",
    "^" + "a?" * 500 + "a" * 500 + "$",
    "(" * 150 + "a" + ")*" * 150,
    "\\p{L}{0,300}\\p{N}{0,300}\\P{L}{5,300}",
)


def pattern_bombs() -> Iterator[tuple[str, Schema]]:
    """Yield patterns, as values, as names, negated and with lengths."""
    for number, pattern in enumerate(PATTERNS):
        text = {"type": "string", "pattern": pattern}
        yield f"pattern {number}", text
        yield (
            f"pattern {number}, as a name",
            {"type": "object", "patternProperties": {pattern: False}, "minProperties": 2},
        )
        yield f"pattern {number}, denied", {"type": "string", "not": text}
        yield f"pattern {number}, long", {**text, "minLength": 100, "maxLength": 2_000}


#: Options that one keyword tells apart, or does not, and conditions on members, each with a number.
OPTIONS: dict[str, Callable[[int], Schema]] = {
    "lists of kinds": lambda n: {"type": "array", "items": {"const": f"k{n}"}},
    "lists of open objects": lambda n: {"type": "array", "items": {"type": "object", "required": [f"k{n}"]}},
    "lists that overlap": lambda n: {"type": "array", "items": {"type": "integer", "minimum": n}},
    "tuples": lambda n: {"type": "array", "prefixItems": [{"const": f"k{n}"}, {"type": "number"}], "minItems": 2},
    "tuples, or none": lambda n: {"type": "array", "prefixItems": [{"type": "number"}, {"const": n}]},
    "tuples that overlap": lambda n: {"type": "array", "prefixItems": [{"minimum": n}, {"maximum": n}]},
    "closed objects": lambda n: {
        "type": "object",
        "properties": {f"k{n}": {}},
        "required": [f"k{n}"],
        "unevaluatedProperties": False,
    },
    "optional tags": lambda n: {
        "type": "object",
        "properties": {"t": {"const": n}, f"k{n}": {"type": "integer"}},
        "required": [f"k{n}"],
    },
    "required names": lambda n: {"required": [f"k{n}"]},
}
CONDITIONS: dict[str, Callable[[int], Schema]] = {
    "if a member": lambda n: {
        "if": {"properties": {f"m{n}": {"const": True}}, "required": [f"m{n}"]},
        "then": {"required": [f"f{n}"]},
        "else": {"properties": {f"f{n}": False}},
    },
    "one of two members": lambda n: {"anyOf": [{"required": [f"m{n}"]}, {"required": [f"f{n}"]}]},
    "a chain": lambda n: {"anyOf": [{"required": [f"m{n}"]}, {"not": {"required": [f"m{n + 1}"]}}]},
    "a tangle": lambda n: {
        "anyOf": [{"required": [f"m{n}"]}, {"not": {"required": [f"m{n * 7 % 50}"]}}, {"required": [f"m{n * n % 50}"]}]
    },
    "contains": lambda n: {"contains": {"const": f"k{n}"}},
    "contains that overlap": lambda n: {"contains": {"enum": [n, n + 1, n * 7 % 50]}},
    "contains that are independent": lambda n: {"contains": {"required": [f"k{n}"]}},
}


def option_bombs() -> Iterator[tuple[str, Schema]]:
    """Yield many options of ``oneOf``, and many conditions on different parts."""
    # The work grows with about the square of the count at most, and 120 of some kinds are above the bound of calls.
    # Million calls for 15, 30, 60, 120, 240: the tool of lists that overlap takes 0.7, 2.7, 9.8, 17.1, 17.2 (refused
    # from 60 on), and the envelope of tuples that overlap, twice, 2.2, 3.2, 6.9, 16.5, 45.4 (all refused).
    for count in (9, 30, 60):
        for name, make in OPTIONS.items():
            options = [make(number) for number in range(count)]
            yield f"{count} {name}", {"oneOf": options}
            yield f"{count} {name}, twice", {"allOf": [{"oneOf": options}, {"oneOf": options[::-1]}]}
        for name, make in CONDITIONS.items():
            kind = "array" if "contains" in name else "object"
            conditions = [make(number) for number in range(count)]
            yield f"{count} times {name}", {"type": kind, "allOf": conditions}
            yield (
                f"{count} times {name}, in few parts",
                {"type": kind, "allOf": conditions, "maxItems": 9, "maxProperties": 9},
            )


def bombs() -> Iterator[tuple[str, Schema]]:
    """Yield every kind of small schema that expands."""
    yield from reference_bombs()
    yield from count_bombs()
    yield from wide()
    yield from pattern_bombs()
    yield from option_bombs()
