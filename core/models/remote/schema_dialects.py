"""JSON Schema dialects of servers: keywords that a server does not support are removed from requests.

The schema in a request may be wider than the requested one, but not narrower, because a server that enforces a narrower
one could not write every valid answer. Answers are validated against the original schema.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from ...json import escape, resolve_local, step_into, to_pointer, unescape
from ...json.values import type_of
from ...regex.printer import with_short_classes
from ...schema.read.dated import of_today
from ...schema.read.keywords import KEYWORDS
from ...schema.scalars.formats import ENFORCED, SPECIFIED

#: Keywords that every server with schemas supports; all others may be removed from a request.
_BASIC = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref"}
    | KEYWORDS.definitions
)


@dataclass(frozen=True)
class Subset:
    """The part of JSON Schema that a provider enforces in its strict mode.

    Attributes:
        keywords: its keywords.
        formats: values of ``format``.
        min_items: values of ``minItems``; None: all.
        optional: objects may have optional members.
        recursive: references may be recursive.
        annotations: annotations that may be sent.
        open: objects may have additional members, and schemas may allow anything.
        object_root: the root must be an object, not a union.
        plain_patterns: patterns without look-arounds, word boundaries, and references to groups only.
        plain_enums: strings and numbers only in ``enum``, no ``const``, and nothing beside a reference.
    """

    keywords: frozenset[str]
    formats: frozenset[str]
    min_items: tuple[int, ...] | None = None
    optional: bool = False
    recursive: bool = True
    annotations: frozenset[str] = frozenset({"title", "description"})
    open: bool = False
    object_root: bool = True
    plain_patterns: bool = False
    plain_enums: bool = False

    def takes(self, key: str, value: Any) -> bool:
        """Return True if a keyword with a value is in the subset."""
        if key == "format":
            return value in self.formats
        if key == "minItems" and self.min_items is not None:
            return value in self.min_items
        if key == "pattern" and self.plain_patterns:
            return "pattern" in self.keywords and not _UNUSUAL.search(str(value))
        if key in ("enum", "const") and self.plain_enums:
            values = value if key == "enum" and isinstance(value, list) else [value]
            return all(isinstance(one, (str, int, float)) and not isinstance(one, bool) for one in values)
        return key in self.keywords or key in self.annotations


_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_UNUSUAL = re.compile(r"\(\?(?!:)|\\[bBpPkuxc1-9]")

#: OpenAI's strict mode (guide "Structured Outputs", "Supported schemas").
OPENAI = Subset(
    _BASIC
    | {"pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"},
    _FORMATS,
)
#: Claude's strict tools and JSON outputs (guide "Structured outputs", "JSON Schema limitations"; the function
#: ``transform_schema`` of the ``anthropic`` package).
CLAUDE = Subset(
    _BASIC | {"pattern", "minItems"},
    _FORMATS | {"uri"},
    min_items=(0, 1),
    optional=True,
    recursive=False,
    plain_patterns=True,
)
#: Formats of the specification that include a narrower format of Python.
_STANDARD_FORMATS = {
    "python-date": "date",
    "python-email": "email",
    "python-url": "uri",
    **{f"uuid{version}": "uuid" for version in (1, 3, 4, 5, 6, 7, 8)},
}
#: Keywords under which a wider subschema may make the whole schema narrower.
_INVERTING = frozenset(row.name for row in KEYWORDS.values() if row.negates) | {"oneOf"}

#: Maximum length in characters of a value that moves into a description.
_MAX_NOTE = 200

Keep = Callable[[str, Any], bool]
#: Gemini's JSON outputs and function calls (the field ``response_json_schema`` of the ``google-genai`` package).
GEMINI = Subset(
    (_BASIC | {"prefixItems", "minItems", "maxItems", "minimum", "maximum", "oneOf"}) - {"definitions"},
    frozenset({"date-time", "date", "time"}),
    optional=True,
    recursive=False,
    open=True,
    plain_enums=True,
)


class Reduced(NamedTuple):
    """A schema without the keywords that a server does not support.

    Attributes:
        schema: what is left.
        left_out: JSON pointers of the removed keywords.
    """

    schema: Any
    left_out: tuple[str, ...]


def strict_schema(schema: Any, subset: Subset = OPENAI) -> Reduced | None:
    """Return the schema for a strict mode; None if its subset cannot say it.

    Most strict modes need closed objects, OpenAI's without optional members, and an object as root, not a union.
    """
    reduced, left_out = without(schema, subset.takes)
    if subset.plain_enums:
        removed = list(left_out)
        reduced = _with_plain_enums(removed, "", reduced)
        left_out = tuple(removed)
    is_object = isinstance(reduced, dict) and reduced.get("type") == "object" and "anyOf" not in reduced
    if not isinstance(reduced, dict) or (subset.object_root and not is_object):
        return None
    if not subset.recursive and _is_recursive(reduced):
        return None
    return Reduced(reduced, left_out) if _is_strict(reduced, subset) and _resolves(reduced, reduced) else None


def _with_plain_enums(left_out: list[str], place: str, schema: Any, *steps: str | int) -> Any:
    """Return a schema in which ``const`` is an ``enum`` of one value, and a ``$ref`` has no other keywords beside it;
    the pointers of removed keywords are appended to ``left_out``. The schema is at ``steps`` below ``place``, a JSON
    pointer: ``KEYWORDS.map_subschemas`` passes them."""
    place += to_pointer(steps)
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if "$ref" in schema and not key.startswith("$"):
            if key not in KEYWORDS.annotations:
                left_out.append(f"{place}/{escape(key)}")
        elif key == "const":
            made["enum"] = [value]
        else:
            inner = partial(_with_plain_enums, left_out, f"{place}/{escape(key)}")
            made[key] = KEYWORDS.map_subschemas(key, value, inner)
    return made


def with_notes(sent: Any, schema: Any, left_out: Sequence[str]) -> Any:
    """Return a schema that is sent, with the removed keywords in its descriptions, where the model reads them.

    Args:
        sent: the schema after `without`, which is not changed.
        schema: the schema before.
        left_out: the pointers of the removed keywords.
    """
    sent, schema = copy.deepcopy(sent), of_today(schema)
    notes: dict[tuple[str, ...], list[str]] = {}  # by the place of a subschema, ``'pattern: "^a"'``
    for pointer in left_out:
        *place, key = [unescape(step) for step in pointer.split("/")[1:]]
        subschema, value = _at(sent, place), _at(schema, [*place, key])
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(subschema, dict) and "$ref" not in subschema and len(text) <= _MAX_NOTE:
            notes.setdefault(tuple(place), []).append(f"{key}: {text}")
    for at, words in notes.items():
        subschema = _at(sent, at)
        before = subschema.get("description")
        note = "{" + ", ".join(words) + "}"
        subschema["description"] = f"{before}\n\n{note}" if isinstance(before, str) and before else note
    return sent


def _at(schema: Any, steps: Sequence[str]) -> Any:
    """Return the value at a place in a schema; None if there is none."""
    try:
        for step in steps:
            schema = step_into(schema, step)
    except (LookupError, ValueError):
        return None
    return schema


class Costs(NamedTuple):
    """What makes a provider's grammar of a schema large.

    Attributes:
        optional: number of optional members.
        unions: number of unions: of schemas or of types.
    """

    optional: int
    unions: int


def costs(schema: Any) -> Costs:
    """Return the costs of a JSON Schema, those of all its subschemas included."""
    optional = unions = 0
    if isinstance(schema, Mapping):
        members, required = schema.get("properties"), schema.get("required")
        if isinstance(members, Mapping):
            optional = len(members.keys() - set(required if isinstance(required, list) else ()))
        unions = int("anyOf" in schema or isinstance(schema.get("type"), list))
        inner = [costs(value) for value in schema.values()]
    else:
        inner = [costs(item) for item in schema] if isinstance(schema, list) else []
    return Costs(optional + sum(cost.optional for cost in inner), unions + sum(cost.unions for cost in inner))


def anchored_schema(schema: Any) -> Reduced:
    """Return the schema for llama.cpp, which rejects patterns with look-arounds, or that are not anchored at both
    ends."""
    return without(schema, lambda key, value: key != "pattern" or _is_anchored(value))


def consistent(schema: Any) -> Any:
    """Return an equivalent schema without the values of an ``enum`` that contradict the ``type`` in the same schema.

    Converters read one of the two and forget the other: xgrammar 0.2.8 takes ``{"type": "boolean", "enum": ["True"]}``
    for a string, and OpenAI refuses it. An optional member without such a value is left out of a closed object.
    """
    return KEYWORDS.map_schemas(schema, _consistent)


def _consistent(schema: dict[str, Any]) -> dict[str, Any]:
    """Change one subschema as `consistent` says, and return it. An ``enum`` without any value of the type stays."""
    values, members = schema.get("enum"), schema.get("properties")
    if isinstance(values, list) and (possible := [one for one in values if _is_of_type(one, schema)]):
        schema["enum"] = possible
    if isinstance(members, Mapping) and schema.get("additionalProperties") is False:
        void = {name for name, inner in members.items() if _is_void(inner)}.difference(schema.get("required") or ())
        schema["properties"] = {name: inner for name, inner in members.items() if name not in void}
    return schema


def _is_void(schema: Any) -> bool:
    """Return True if no value of a schema's ``enum`` has its type."""
    values = schema.get("enum") if isinstance(schema, Mapping) else None
    return isinstance(values, list) and not any(_is_of_type(one, schema) for one in values)


def _is_of_type(value: Any, schema: Mapping[str, Any]) -> bool:
    kinds = schema.get("type")
    if not isinstance(kinds, (str, list)):
        return True
    own = type_of(value)
    possible = {own, "integer"} if own == "number" and (isinstance(value, int) or value.is_integer()) else {own}
    return not possible.isdisjoint([kinds] if isinstance(kinds, str) else [str(kind) for kind in kinds])


def plain_schema(schema: Any) -> Any:
    """Return the schema without keywords that have no effect at their position."""
    return without(schema, lambda key, value: True).schema


def extra_keywords(schema: Any) -> frozenset[str]:
    """Return the keywords in a schema that some servers do not support."""
    used: set[str] = set()

    def note(key: str, value: Any) -> bool:
        used.add(key)
        return True

    without(schema, note)  # asks ``note`` about each keyword
    return frozenset(used - _BASIC - KEYWORDS.annotations)


def named_keywords(reason: str, keywords: Collection[str]) -> frozenset[str]:
    """Return the ``keywords`` that a server's rejection names: in quotes, or else as words."""
    for pattern in (r"""(?<=['"`])[$\w]+(?=['"`])""", r"[$\w]+"):
        if named := frozenset(re.findall(pattern, reason)).intersection(keywords):
            return named
    return frozenset()


def without(schema: Any, keep: Keep) -> Reduced:
    """Return the schema without the keywords for which ``keep`` is False.

    ``oneOf`` becomes ``anyOf`` if only that is kept. A subschema without a keyword is wider, and under ``not`` that
    makes the whole narrower. So ``not`` (and each of `_INVERTING`) is removed with any keyword inside it.

    Law: every valid instance of ``schema`` is valid for the result.
    """
    left_out: list[str] = []
    schema = of_today(schema)
    reduced = _reduce(keep, left_out, "", schema)
    if left_out and refers(reduced):
        left_out = []  # again: the target of a reference under ``not`` may have become wider

        def keep_closed(key: str, value: Any) -> bool:
            return keep(key, value) and not (key in _INVERTING and refers(value))

        reduced = _reduce(keep_closed, left_out, "", schema)
    return Reduced(reduced, tuple(left_out))


def _reduce(keep: Keep, left_out: list[str], place: str, schema: Any, *steps: str | int) -> Any:
    """Return a subschema with the keywords for which ``keep`` is True, and with formats and classes in the standard
    spelling; append the pointers of the others to ``left_out``. The result is never narrower: see `without`. The
    subschema is at ``steps`` below ``place``, a JSON pointer: ``KEYWORDS.map_subschemas`` passes them."""
    place += to_pointer(steps)
    if not isinstance(schema, Mapping):
        return schema
    reduced: dict[str, Any] = {}
    kinds = schema.get("type", "object")
    before = len(left_out)
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str):
            value = with_short_classes(value)
        elif key == "format" and isinstance(value, str) and _is_ours(value):
            value = _STANDARD_FORMATS.get(value)
            if value is None:
                left_out.append(f"{place}/format")
                continue
        if key == "additionalProperties" and "object" not in ([kinds] if isinstance(kinds, str) else kinds):
            continue  # without effect here, and some servers fail on it
        if key == "oneOf" and not keep(key, value) and "anyOf" not in schema and keep("anyOf", value):
            left_out.append(f"{place}/oneOf")
            key = "anyOf"
        elif not keep(key, value):
            if key not in KEYWORDS.annotations:
                left_out.append(f"{place}/{escape(key)}")
            continue
        inner: list[str] = []  # pointers of what is removed below this keyword, whose subschemas become wider
        reduced[key] = KEYWORDS.map_subschemas(key, value, partial(_reduce, keep, inner, f"{place}/{escape(key)}"))
        if inner and key in _INVERTING and key != "oneOf":  # the whole would become narrower
            del reduced[key]
            inner = [f"{place}/{key}"]
        elif inner and key == "oneOf":  # wider branches may overlap, so that none is the only valid one
            branches = reduced.pop(key)
            if "anyOf" not in schema:
                reduced["anyOf"] = branches
        left_out += inner
    return _widened(schema, reduced, lost=len(left_out) > before)


#: By keyword, those that become stricter without it. For example, ``additionalProperties`` then also applies to members
#: that ``patternProperties`` matched.
_STRICTER_WITHOUT: Mapping[str, tuple[str, ...]] = {
    "patternProperties": ("additionalProperties",),
    "prefixItems": ("items",),
    "contains": ("maxContains", "minContains"),
    **dict.fromkeys(("if", "then", "else"), ("if", "then", "else")),
}


def _widened(schema: Mapping[str, Any], reduced: Mapping[str, Any], *, lost: bool) -> dict[str, Any]:
    """Return the kept keywords ``reduced`` of a schema, without those that become stricter because another is missing.
    ``lost``: a keyword was removed anywhere in the schema, so that more may count as unevaluated."""
    stricter = {key for removed in schema.keys() - reduced.keys() for key in _STRICTER_WITHOUT.get(removed, ())}
    if lost:
        stricter |= {"unevaluatedProperties", "unevaluatedItems"}
    return {key: value for key, value in reduced.items() if key not in stricter}


def _is_ours(name: str) -> bool:
    """Return True if only Pydantic and this library define a format."""
    return name not in SPECIFIED and (name in ENFORCED or name.startswith("python-"))


def _is_strict(schema: Any, subset: Subset) -> bool:
    """Return True if a schema has the form that a server's strict mode takes; if ``subset.open``, every schema has.

    Objects are closed, and all their members required (or fewer, if ``subset.optional``). Arrays have ``items``, and
    ``enum`` and ``const`` only scalars. Each subschema says its type: by ``type``, a union, values or a reference.
    """
    if subset.open and isinstance(schema, (bool, dict)):
        return True
    if not isinstance(schema, dict):
        return False  # True and {} allow anything, which strict modes do not support
    if not schema.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        return False
    if any(isinstance(value, (dict, list)) for value in (*schema.get("enum", ()), schema.get("const"))):
        return False
    kind = schema.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema:
        names, required = set(schema.get("properties", {})), set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False or not required <= names:
            return False
        if required != names and not subset.optional:
            return False
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in schema:
        return False
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [subschema for key in KEYWORDS.definitions for subschema in schema.get(key, {}).values()]
    if "items" in schema:
        inner.append(schema["items"])
    return all(_is_strict(one, subset) for one in inner)


def _is_recursive(root: Mapping[str, Any]) -> bool:
    """Return True if a reference leads back to itself, or to the root."""
    done: set[str] = set()

    def visit(value: Any, above: tuple[str, ...]) -> bool:
        """Return True if a value has a reference to the root or to one of ``above``, the references on the path to it.
        Definitions are visited through references only."""
        if isinstance(value, list):
            return any(visit(item, above) for item in value)
        if not isinstance(value, Mapping):
            return False
        target = value.get("$ref")
        if isinstance(target, str) and target not in done:
            if target == "#" or target in above:
                return True
            try:
                found = resolve_local(root, target)
            except (LookupError, ValueError):
                found = None
            if visit(found, (*above, target)):
                return True
            done.add(target)
        return any(visit(item, above) for key, item in value.items() if key not in KEYWORDS.definitions)

    return visit(root, ())


def refers(value: Any) -> bool:
    """Return True if a schema contains a reference."""
    if isinstance(value, list):
        return any(map(refers, value))
    return isinstance(value, Mapping) and (
        any(key in value for key in KEYWORDS.references) or any(map(refers, value.values()))
    )


def _resolves(value: Any, root: Mapping[str, Any]) -> bool:
    """Return True if the target of every reference is a kept definition or the root."""
    if isinstance(value, list):
        return all(_resolves(item, root) for item in value)
    if not isinstance(value, dict):
        return True
    target = value.get("$ref")
    if isinstance(target, str) and target != "#":
        where, _, name = target.removeprefix("#/").partition("/")
        if not target.startswith("#/") or where not in KEYWORDS.definitions or name not in root.get(where, {}):
            return False
    return all(_resolves(item, root) for item in value.values())


def _is_anchored(pattern: Any) -> bool:
    if not isinstance(pattern, str) or not (pattern.startswith("^") and pattern.endswith("$")):
        return False
    body = pattern[1:-1]
    # `^a|b$` is anchored at one end of each alternative only.
    return not re.search(r"\(\?|\\[bBpPkuxc1-9]", body) and "|" not in re.sub(r"\([^()]*\)", "", body)
