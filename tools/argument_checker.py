"""Validation of finished arguments: the closed schema, checked by the ``jsonschema`` library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgrammar.core.errors import InvalidArgumentsError, LimitError, Place
from toolgrammar.core.validation import Validator

from .closed_schema import close_objects
from .tool import Tool


class ArgumentChecker:
    """Checks the arguments of one tool; made once, used for every call.

    Args:
        tool: the tool.
        additional_properties: read its schema open, as the standard says, instead of closed (see `close_objects`).
    """

    def __init__(self, tool: Tool, *, additional_properties: bool = False) -> None:
        self._tool = tool.name
        schema = tool.parameters if additional_properties else close_objects(tool.parameters)
        self._schema = schema
        self._validator = Validator(schema, formats=True)
        self._plain: Validator | None = None

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise an error unless the arguments are valid.

        Raises:
            InvalidArgumentsError: the arguments are invalid (with a JSON pointer), or the check takes too long.
            InvalidSchemaError: a reference in the tool's schema leads nowhere.
        """
        self._refuse(self._validator, arguments)

    def read(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return valid arguments with their integers as Pydantic reads them: 3, not 3.0.

        Raises:
            InvalidArgumentsError: an integer is so large that Pydantic refuses it with a point or an exponent.
        """
        if self._plain is None:
            self._plain = Validator(self._schema, formats=True, plain_integers=True)
        plain: Mapping[str, Any] = self._plain.with_plain_integers(dict(arguments))
        self._refuse(self._plain, plain)
        return plain

    def _refuse(self, validator: Validator, arguments: Mapping[str, Any]) -> None:
        """Raise an error for the first problem of the arguments, or if they cannot be checked."""
        try:
            problem = next(validator.problems(dict(arguments)), None)
        except LimitError as error:  # arguments that cannot be checked are not run
            problem = "", error.message
        if problem is not None:
            pointer, message = problem
            raise InvalidArgumentsError(
                f"the arguments do not match the schema: {_shorten(message)}",
                hint="write arguments that match the tool's parameters",
                place=Place(tool=self._tool, pointer=pointer or None),
            )


def _shorten(message: str) -> str:
    """Return a message short enough for a model to read: jsonschema quotes whole values."""
    return message if len(message) <= 500 else f"{message[:240]} ... {message[-240:]}"
