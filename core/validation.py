"""Validation of decoded values, in one place: the ``jsonschema`` library, dialect by ``$schema``, nothing fetched.

Patterns are read as ECMA-262, as JSON Schema says and as the grammars do: ``jsonschema`` alone would give them to
Python's ``re``, which lacks ``\\p{L}``, takes every script's digits for ``\\d``, and lets ``$`` stand before a
line break.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import referencing
import referencing.exceptions
from jsonschema.exceptions import ValidationError
from jsonschema.validators import validator_for

from .errors import InvalidSchemaError, PatternError
from .grammar import Grammar
from .language.regex import regex_term
from .language.terms import Terms
from .schema.numbers import NumberRange, exact


class Validator:
    """Judges values by one schema; keeps what it makes of the schema's patterns. Thread-safe.

    Args:
        schema: a JSON Schema; Draft 2020-12 unless its ``$schema`` names another.
        formats: whether ``format`` is an assertion, as grammars take it, or an annotation.

    Raises:
        InvalidSchemaError: it is neither an object nor a bool.
    """

    def __init__(self, schema: Mapping[str, Any] | bool, *, formats: bool = False) -> None:
        if not isinstance(schema, (Mapping, bool)):
            raise InvalidSchemaError(
                f"a schema is an object or a bool, not {type(schema).__name__}", hint="{} takes every value"
            )
        self._patterns = _Patterns()
        self._formats: dict[str, Grammar] = {}
        kind = validator_for(schema, default=jsonschema.Draft202012Validator)
        ours = {
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
            "multipleOf": _multiple_of,
        }
        if formats:
            ours["format"] = self._format
        kind = jsonschema.validators.extend(kind, {name: ours[name] for name in ours if name in kind.VALIDATORS})
        self._validator = kind(schema, registry=referencing.Registry())

    def problems(self, value: Any) -> Iterator[tuple[str, str]]:
        """What is wrong with a value: JSON pointers into it, each with a sentence; nothing when it is valid.

        Raises:
            InvalidSchemaError: the schema is malformed, or refers to what it does not hold.
        """
        try:
            found = sorted(self._validator.iter_errors(value), key=lambda each: list(map(str, each.absolute_path)))
        except (
            referencing.exceptions.Unresolvable,
            jsonschema.exceptions.SchemaError,
            jsonschema.exceptions.UnknownType,
            re.error,
            TypeError,
        ) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise InvalidSchemaError(f"the schema cannot be used for validation: {reason}") from error
        for each in found:
            pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in each.absolute_path)
            yield pointer, each.message

    def violations(self, value: Any) -> Iterator[str]:
        """What is wrong with a value, one sentence each; see `problems`."""
        for pointer, message in self.problems(value):
            yield f"at {pointer or '(root)'}: {message}"

    # -- keywords with patterns, as jsonschema calls them ---------------------------------------------------------

    def _pattern(self, validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "string") and not self._patterns.found(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def _format(self, validator: Any, name: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if not validator.is_type(instance, "string") or not isinstance(name, str):
            return
        if name not in self._formats:
            # A grammar is made of nothing but strings here, so what it cannot enforce is left to nobody.
            self._formats[name] = Grammar.from_json_schema(
                {"type": "string", "format": name}, on_unsupported="validate", whitespace="compact"
            )
        if not self._formats[name].matches(json.dumps(instance)):
            yield ValidationError(f"{instance!r} is no {name!r}")

    def _pattern_properties(
        self, validator: Any, patterns: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        if validator.is_type(instance, "object"):
            for pattern, subschema in patterns.items():
                for name, value in instance.items():
                    if self._patterns.found(pattern, name):
                        yield from validator.descend(value, subschema, path=name, schema_path=pattern)

    def _additional_properties(
        self, validator: Any, extra: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        if not validator.is_type(instance, "object"):
            return
        declared, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, value in instance.items():
            if name in declared or any(self._patterns.found(pattern, name) for pattern in patterns):
                continue
            if extra is False:
                yield ValidationError(f"the property {name!r} is not allowed")
            else:
                yield from validator.descend(value, extra, path=name)


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Compare as exact decimals: 0.07 is a multiple of 0.01, though its double is not one of the other's."""
    if validator.is_type(instance, "number") and not NumberRange(multiples=(exact(step),)).contains(instance):
        yield ValidationError(f"{instance!r} is not a multiple of {step!r}")


class _Patterns:
    """The languages of patterns, by pattern."""

    def __init__(self) -> None:
        self._terms = Terms()
        self._known: dict[str, int | re.Pattern[str]] = {}
        self._lock = threading.Lock()

    def found(self, pattern: str, text: str) -> bool:
        """Whether some part of ``text`` matches."""
        with self._lock:
            known = self._known.get(pattern)
            if known is None:
                try:
                    known = regex_term(self._terms, pattern, whole=False)
                except PatternError:
                    known = re.compile(pattern)  # not regular: no grammar enforces it, and Python's reading must do
                self._known[pattern] = known
            if isinstance(known, int):
                return self._terms.matches(known, text)
        return known.search(text) is not None


def violations(value: Any, schema: Mapping[str, Any] | bool) -> Iterator[str]:
    """What is wrong with a value; see `Validator`, which is quicker for several values.

    Raises:
        InvalidSchemaError: the schema is malformed, or refers to what it does not hold.
    """
    return Validator(schema).violations(value)


def is_valid(value: Any, schema: Mapping[str, Any] | bool) -> bool:
    """Whether a value satisfies a schema."""
    return next(violations(value, schema), None) is None
