"""Whether arguments are valid for a tool: the closed schema, judged by the ``jsonschema`` library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import InvalidArgumentsError, Place
from .closing import close_objects
from .tool import Tool


class ArgumentChecker:
    """Checks the arguments of one tool; made once, used for every call.

    Args:
        tool: the tool.
        additional_properties: read its schema open, as the standard says, instead of closed (see `close_objects`).
    """

    def __init__(self, tool: Tool, *, additional_properties: bool = False) -> None:
        from jsonschema import Draft202012Validator
        from referencing import Registry

        self._tool = tool.name
        schema = tool.parameters if additional_properties else close_objects(tool.parameters)
        # An empty registry: a reference to another document is an error, never a request over the network.
        registry: Any = Registry()
        self._validator = Draft202012Validator(
            schema, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER
        )

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Return if the arguments are valid.

        Raises:
            InvalidArgumentsError: says what is wrong, and where in the arguments.
        """
        from jsonschema.exceptions import best_match

        try:
            problem = best_match(self._validator.iter_errors(dict(arguments)))
        except RecursionError:
            raise InvalidArgumentsError("the arguments are nested too deeply", place=Place(tool=self._tool)) from None
        if problem is None:
            return
        pointer = "".join(f"/{_escape(str(part))}" for part in problem.absolute_path)
        raise InvalidArgumentsError(
            f"the arguments do not match the schema: {_shorten(problem.message)}",
            hint="write arguments that match the tool's parameters",
            place=Place(tool=self._tool, pointer=pointer, keyword=str(problem.validator)),
        )


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def _shorten(message: str) -> str:
    """A message short enough for a model to read: jsonschema quotes whole values."""
    return message if len(message) <= 500 else f"{message[:240]} ... {message[-240:]}"
