"""Check of a finished value against the live values of its schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidArgumentsError, Place
from ..json import escape, resolve_local
from ..schema.read.live import has_values, marks_of, require_schema, with_answers
from .asking import LiveValues


def check_values(schema: Any, value: Any, live: LiveValues, tool: str | None = None) -> None:
    """Raise an error unless each member with live values has one of them.

    Args:
        schema: the schema of the value, as `named_values` returns it.
        value: valid for the schema.
        live: the callables; those that were asked for these members are not asked again.
        tool: the tool of which the value is the arguments; None: it is an answer.

    Raises:
        InvalidArgumentsError: a member is none of its values; with a JSON pointer.
        LiveValuesError: a callable failed.
    """
    if not has_values(schema):
        return
    from ..validation import Validator

    definitions: dict[str, Any] = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    for properties, name, objects, pointer in _members(schema, value, [], "", definitions):
        names = list(properties)
        member = properties[name]
        answers = {}  # the schema of the present values, by the steps from the member's schema to the mark
        for steps, mark in marks_of(member, name, names[: names.index(name)]):
            answer = live.of_call(tool, mark, mark.read(objects))
            if answer.error is not None:
                raise answer.error
            require_schema(answer, mark)
            answers[steps] = False if answer.schema is None else answer.schema  # False: there are no values
        if answers:
            validator = Validator({**definitions, "allOf": [with_answers(member, answers)]}, formats=True)
            if next(validator.problems(objects[0][name]), None) is not None:
                shown = json.dumps(objects[0][name], ensure_ascii=False)[:200]
                raise InvalidArgumentsError(
                    f"{shown} is not one of the present values of the {'field' if tool is None else 'argument'}",
                    hint="choose one of the values that exist now",
                    place=Place(tool=tool, parameter=name, pointer=pointer),
                )


class _Member(NamedTuple):
    """A member of an object in a value, which the schema of the object declares.

    Attributes:
        properties: the ``properties`` of that schema.
        name: its name.
        objects: the objects around it, innermost first.
        pointer: its JSON pointer.
    """

    properties: Mapping[str, Any]
    name: str
    objects: list[Mapping[str, Any]]
    pointer: str


def _members(
    schema: Any, value: Any, above: Sequence[Mapping[str, Any]], pointer: str, definitions: Mapping[str, Any]
) -> Iterator[_Member]:
    """Yield the declared members of the objects in a value.

    Args:
        schema: the schema of the value.
        value: the value.
        above: the objects around it, innermost first.
        pointer: its JSON pointer.
        definitions: the definitions of the whole schema, to which references refer.
    """
    if not isinstance(schema, Mapping):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        try:
            target = resolve_local(definitions, reference)
        except LookupError:
            target = None
        yield from _members(target, value, above, pointer, definitions)
    for keyword in ("allOf", "anyOf", "oneOf"):
        for option in schema.get(keyword, ()):
            from ..validation import Validator

            # Of alternatives, only those that the value satisfies declare its members.
            if keyword == "allOf" or not any(Validator({**definitions, "allOf": [option]}).problems(value)):
                yield from _members(option, value, above, pointer, definitions)
    properties = schema.get("properties")
    if isinstance(value, Mapping) and isinstance(properties, Mapping):
        objects = [value, *above]
        for name in value:
            if name in properties:
                at = f"{pointer}/{escape(name)}"
                yield _Member(properties, name, objects, at)
                yield from _members(properties[name], value[name], objects, at, definitions)
    elif isinstance(value, list):
        first = schema.get("prefixItems", ())
        for index, item in enumerate(value):
            inner = first[index] if index < len(first) else schema.get("items")
            yield from _members(inner, item, above, f"{pointer}/{index}", definitions)
