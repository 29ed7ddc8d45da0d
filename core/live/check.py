"""Check of a finished value against the live values of its schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

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
    if has_values(schema):
        for fault in _Check(schema, live, tool).faults(schema, value, (), ""):
            raise fault


class _Check:
    """The check of values of one schema; arguments as of `check_values`."""

    def __init__(self, schema: Any, live: LiveValues, tool: str | None) -> None:
        from ..validation import Validator

        self._schema = schema
        self._live = live
        self._tool = tool
        self._validator = Validator(schema, formats=True)

    def faults(
        self, schema: Any, value: Any, above: Sequence[Mapping[str, Any]], pointer: str
    ) -> Iterator[InvalidArgumentsError]:
        """Yield the faults of a value.

        Args:
            schema: the schema, or a part of it, for which the value is valid.
            value: the value.
            above: the objects around it, innermost first.
            pointer: its JSON pointer.
        """
        if not isinstance(schema, Mapping):
            return
        for part in self._applied(schema, value):
            yield from self.faults(part, value, above, pointer)
        for keyword in ("anyOf", "oneOf"):
            # Of the options that the value satisfies without live values, one is enough.
            options = [each for each in schema.get(keyword, ()) if self._validator.of_part(each).is_valid(value)]
            refusals = [list(islice(self.faults(option, value, above, pointer), 1)) for option in options]
            if refusals and all(refusals):
                yield from refusals[0]
        if isinstance(value, Mapping):
            yield from self._faults_of_members(schema, value, [value, *above], pointer)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.faults(_of_item(schema, index), item, above, f"{pointer}/{index}")

    def _applied(self, schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
        """Yield the parts of a schema that its value must satisfy, too."""
        reference = schema.get("$ref")
        if isinstance(reference, str):
            with suppress(LookupError):  # one that leaves the schema is refused before
                yield resolve_local(self._schema, reference)
        yield from schema.get("allOf", ())
        if "if" in schema:
            yield schema.get("then" if self._validator.of_part(schema["if"]).is_valid(value) else "else")
        if isinstance(value, Mapping):
            for keyword in ("dependentSchemas", "dependencies"):
                yield from (part for name, part in schema.get(keyword, {}).items() if name in value)

    def _faults_of_members(
        self, schema: Mapping[str, Any], value: Mapping[str, Any], objects: Sequence[Mapping[str, Any]], pointer: str
    ) -> Iterator[InvalidArgumentsError]:
        """Yield the faults of the members of an object; ``objects`` are the object and those around it."""
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, member in value.items():
            at = f"{pointer}/{escape(name)}"
            parts = [part for pattern, part in patterns.items() if self._matches(pattern, name)]
            if name in properties:
                yield from self._faults_of_values(properties, name, objects, at)
                parts.append(properties[name])
            for part in parts or [schema.get("additionalProperties", schema.get("unevaluatedProperties"))]:
                yield from self.faults(part, member, objects, at)

    def _matches(self, pattern: str, name: str) -> bool:
        return not self._validator.of_part({"patternProperties": {pattern: False}}).is_valid({name: None})

    def _faults_of_values(
        self, properties: Mapping[str, Any], name: str, objects: Sequence[Mapping[str, Any]], pointer: str
    ) -> Iterator[InvalidArgumentsError]:
        """Ask for the live values of a declared member; yield the error if the member is none of them.

        Raises:
            LiveValuesError: a callable failed.
        """
        names = list(properties)
        schema, value = properties[name], objects[0][name]
        answers = {}  # the schema of the present values, by the steps from the member's schema to the mark
        for steps, mark in marks_of(schema, name, names[: names.index(name)]):
            answer = self._live.of_call(self._tool, mark, mark.read(objects))
            if answer.error is not None:
                raise answer.error
            require_schema(answer, mark)
            answers[steps] = False if answer.schema is None else answer.schema  # False: there are no values
        if not answers or self._validator.of_part(with_answers(schema, answers)).is_valid(value):
            return
        yield InvalidArgumentsError(
            f"{json.dumps(value, ensure_ascii=False)[:200]} is not one of the present values of the "
            f"{'field' if self._tool is None else 'argument'}",
            hint="choose one of the values that exist now",
            place=Place(tool=self._tool, parameter=name, pointer=pointer),
        )


def _of_item(schema: Mapping[str, Any], index: int) -> Any:
    """Return the schema of an item of an array."""
    items = schema.get("items")
    first = items if isinstance(items, list) else schema.get("prefixItems", ())
    if index < len(first):
        return first[index]
    return schema.get("additionalItems") if isinstance(items, list) else schema.get("items")
