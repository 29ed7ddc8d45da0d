"""Validation of decoded values, in one place: the ``jsonschema`` library, dialect by ``$schema``, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import referencing
import referencing.exceptions
from jsonschema.validators import validator_for

from .errors import InvalidSchemaError


def violations(value: Any, schema: Mapping[str, Any] | bool) -> Iterator[str]:
    """What is wrong with a value, one sentence each; nothing when it is valid.

    Args:
        value: a decoded JSON value.
        schema: a JSON Schema; Draft 2020-12 unless its ``$schema`` names another.

    Raises:
        InvalidSchemaError: the schema is malformed, or refers to what it does not hold.
    """
    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    validator = kind(schema, registry=referencing.Registry())
    try:
        for error in sorted(validator.iter_errors(value), key=lambda each: list(map(str, each.absolute_path))):
            pointer = "".join(f"/{step}" for step in error.absolute_path)
            yield f"at {pointer or '(root)'}: {error.message}"
    except (referencing.exceptions.Unresolvable, jsonschema.exceptions.SchemaError) as error:
        raise InvalidSchemaError(f"the schema cannot be used for validation: {error}") from error


def is_valid(value: Any, schema: Mapping[str, Any] | bool) -> bool:
    """Whether a value satisfies a schema."""
    return next(violations(value, schema), None) is None
