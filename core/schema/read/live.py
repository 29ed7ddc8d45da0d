"""Schemas with live values (``x-values``): their marks, and the order of the members that they read."""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ...dependent.live import KEYWORD as KEYWORD
from ...dependent.live import Answer, Mark
from ...errors import InvalidSchemaError, LiveValuesError, Place
from ...json import escape
from ..keywords.live import COPIED, SEEN, WITHIN
from ..keywords.row import Steps
from .keywords import KEYWORDS

#: The keywords that a program or a conversation gives a meaning.
LIVE = (KEYWORD, SEEN, COPIED)


def has_values(schema: Any) -> bool:
    """Return True if a schema may have live values."""
    return has_keyword(schema, (KEYWORD,))


def has_keyword(schema: Any, keywords: Sequence[str]) -> bool:
    """Return True if one of some keywords may stand in a schema. (A member, or a key in an example, may have that
    name.)"""
    with suppress(ValueError):  # of marshal: the schema has objects of other types, such as a callable
        # The data has all texts of the schema, at a tenth of the cost of visiting its parts.
        data = marshal.dumps(schema)
        if not any(keyword.encode() in data for keyword in keywords):
            return False
    wanted = frozenset(keywords)
    waiting: list[Any] = [schema]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, Mapping):
            if not wanted.isdisjoint(part):
                return True
            waiting += part.values()
    return False


def marks_of(schema: Any, member: str, before: Sequence[str]) -> Iterator[tuple[Steps, Mark]]:
    """Yield the marks of a member's schema, each after the steps that lead to it.

    Args:
        schema: the schema of the member.
        member: its name.
        before: the names that stand before it.
    """
    if not isinstance(schema, Mapping):
        return
    if KEYWORD in schema:
        yield (), Mark.of(schema[KEYWORD], member, before)
    for keyword, is_list in WITHIN.items():
        value = schema.get(keyword)
        if not is_list:
            for steps, mark in marks_of(value, member, before):
                yield (keyword, *steps), mark
        elif isinstance(value, (list, tuple)):
            for index, part in enumerate(value):
                for steps, mark in marks_of(part, member, before):
                    yield (keyword, index, *steps), mark


def require_schema(answer: Answer, mark: Mark) -> None:
    """Raise a LiveValuesError if a callable returned a mapping that is no JSON Schema: one of values, say."""
    if not answer.is_list and answer.schema and KEYWORDS.keys().isdisjoint(answer.schema):
        raise LiveValuesError(
            f"the callable returned a mapping without a keyword of JSON Schema: {list(answer.schema)[:3]}",
            hint="return a list of values, such as list(mapping)",
            place=Place(tool=answer.tool, parameter=mark.member),
        )


def with_answers(schema: Any, answers: Mapping[Steps, Any]) -> Any:
    """Return the schema of a member in which the values at some steps must satisfy other schemas too."""
    if () in answers:
        schema = {**schema, "allOf": [*schema.get("allOf", ()), answers[()]]}
    if not any(answers):
        return schema
    changed = dict(schema)
    for keyword in {steps[0] for steps in answers if steps}:
        below = _below(answers, keyword)
        if WITHIN[str(keyword)]:
            changed[keyword] = [with_answers(part, _below(below, at)) for at, part in enumerate(schema[keyword])]
        else:
            changed[keyword] = with_answers(schema[keyword], below)
    return changed


def _below(answers: Mapping[Steps, Any], step: str | int) -> dict[Steps, Any]:
    """Return the answers after a step, each by the steps that are left."""
    return {steps[1:]: answer for steps, answer in answers.items() if steps and steps[0] == step}


def places_of(schema: Any, keywords: Sequence[str], at: str = "") -> Iterator[str]:
    """Yield the JSON pointers of some keywords in a schema."""
    if isinstance(schema, (list, tuple)):
        for index, part in enumerate(schema):
            yield from places_of(part, keywords, f"{at}/{index}")
    elif isinstance(schema, Mapping):
        for key, part in schema.items():
            if key in keywords:
                yield f"{at}/{key}"
            else:
                yield from places_of(part, keywords, f"{at}/{escape(str(key))}")


def in_order(schema: Any) -> Any:
    """Return a schema with live values: each property stands after those that its callable reads, and names that are no
    property of the schema are marked (`Mark.given`).

    Raises:
        InvalidSchemaError: the values of properties of one object read each other.
    """
    every = (inner.get("properties") for inner in KEYWORDS.every_schema(schema))
    members = {name for properties in every if isinstance(properties, Mapping) for name in properties}

    def ordered(inner: dict[str, Any]) -> dict[str, Any]:
        """Return one schema with its properties in the new order, and with its mark."""
        given = [name for name in _own_reads(inner) if name not in members]  # by whoever writes the text
        if given:
            inner = {**inner, KEYWORD: {**inner[KEYWORD], "given": given}}
        properties = inner.get("properties")
        if not isinstance(properties, Mapping):
            return inner
        names = _after_what_they_read(properties)
        return (
            inner if names == list(properties) else {**inner, "properties": {name: properties[name] for name in names}}
        )

    return KEYWORDS.map_schemas(schema, ordered)


def _after_what_they_read(properties: Mapping[str, Any]) -> list[str]:
    """Return the names of properties, each after those that its live values read, or those of its members; else in the
    same order. If members of two properties read each other, one of the two comes too early.

    Raises:
        InvalidSchemaError: see `in_order`.
    """
    _refuse_cycles({name: _reads_as_value(schema) for name, schema in properties.items()})
    done: dict[str, None] = {}
    begun: set[str] = set()

    def place(name: str) -> None:
        if name in begun:
            return
        begun.add(name)
        for part in KEYWORDS.every_schema(properties[name]):
            for other in _own_reads(part):
                if other in properties:
                    place(other)
        done[name] = None

    for name in properties:
        place(name)
    return list(done)


def _own_reads(schema: Any) -> list[str]:
    """Return the names that the live values of a schema read, without those of its subschemas."""
    value = schema.get(KEYWORD) if isinstance(schema, Mapping) else None
    after = value.get("after") if isinstance(value, Mapping) else None
    # anything else is refused where keywords are checked
    return [name for name in after if isinstance(name, str)] if isinstance(after, (list, tuple)) else []


def _reads_as_value(schema: Any) -> list[str]:
    """Return the names that the live values of a schema read, with those of schemas of the same value."""
    found = _own_reads(schema)
    for keyword in ("allOf", "anyOf", "oneOf") if isinstance(schema, Mapping) else ():
        options = schema.get(keyword)
        for option in options if isinstance(options, (list, tuple)) else ():
            found += _reads_as_value(option)
    return found


def _refuse_cycles(reads: Mapping[str, Sequence[str]]) -> None:
    """Raise an error if properties read each other."""
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        cycle = error.args[1]
        raise InvalidSchemaError(
            " reads ".join(map(repr, cycle)),
            hint="leave one of them out of `after`: a value is asked for when those that it reads are written",
            place=Place(keyword=KEYWORD),
        ) from None


def without_values(schema: Any) -> Any:
    """Return a schema without the keywords `LIVE`, for models, and for readers of finished texts; the same object if it
    has none."""
    if not has_keyword(schema, LIVE):
        return schema
    return KEYWORDS.map_schemas(schema, lambda inner: {key: value for key, value in inner.items() if key not in LIVE})
