"""Shapes of JSON answers with values that a program or the conversation gives, in one conversation."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from typing import Any

from ..conversation.bound import of_conversation
from ..conversation.messages import Message
from ..dependent.live import KEYWORD
from ..errors import LiveValuesError, Place, ToolGrammarError, UnsatisfiableSchemaError
from ..grammar import Grammar
from ..live.asking import LiveValues
from ..live.check import check_values
from ..live.values import named_values
from ..schema.keywords.live import COPIED
from ..schema.read.keywords import KEYWORDS
from ..schema.read.live import LIVE, has_keyword, in_order, places_of, without_values


class LiveShape:
    """The shape of an answer with live values, in the conversation of one request.

    Args:
        shape: a Pydantic class, a Python type, or a JSON Schema.
        schema: its JSON Schema, with ``x-values``, ``x-seen`` or ``x-copied``.
        messages: the conversation.

    Attributes:
        shape: as given.
        sources: the callables, by the names that ``x-values`` has in `bound`.
    """

    def __init__(self, shape: Any, schema: Any, messages: Sequence[Message]) -> None:
        self.shape = shape
        self.sources = named_values(schema)[1]
        self._schema = schema
        self._messages = messages
        self._context = copy_context()  # callables run in that of the request, whatever thread writes the answer

    def bound(self, schema: Any) -> Any:
        """Return a schema of the shape with the values and texts of the conversation, and with names of callables that
        depend on their locations only."""
        return in_order(of_conversation(named_values(schema)[0], self._messages))

    @property
    def shown(self) -> Any:
        """The schema for models and servers: with values of results, without callables and texts to be copied."""
        hidden, schema = (KEYWORD, COPIED), self._schema
        if has_keyword(schema, hidden):
            schema = KEYWORDS.map_schemas(schema, lambda inner: {key: inner[key] for key in inner if key not in hidden})
        return of_conversation(schema, self._messages)

    def places(self, in_grammar: bool = False) -> tuple[str, ...]:
        """Return the JSON pointers of values that a server does not enforce.

        Args:
            in_grammar: the server has the grammar, with the texts of the conversation.
        """
        return tuple(places_of(self._schema, (KEYWORD,) if in_grammar else (KEYWORD, COPIED)))

    def values(self) -> LiveValues | None:
        """Return the callables for one text that is a JSON answer; None if there are none."""
        return LiveValues(self.sources, context=self._context) if self.sources else None

    def problems(self, value: Any) -> list[str]:
        """Return what is wrong with a value that is valid for `bound`: fields that have none of their live values.

        Raises:
            LiveValuesError: a callable failed.
        """
        if not self.sources:
            return []
        try:
            check_values(named_values(self._schema)[0], value, LiveValues(self.sources, context=self._context))
        except LiveValuesError:
            raise
        except ToolGrammarError as error:
            return [str(error).partition(" Hint: ")[0]]
        return []

    def require_values(self, error: UnsatisfiableSchemaError) -> None:
        """Raise a `LiveValuesError` if no answer satisfies the shape because the conversation lacks values.

        Args:
            error: the error of the grammar of `bound`.
        """
        try:
            Grammar.from_json_schema(without_values(self._schema), on_unsupported="validate").check()
        except ToolGrammarError:
            return  # no conversation has an answer
        raise LiveValuesError(
            "the conversation has no value for a required field of the answer",
            hint="make the field optional, or give messages with the results of tools",
            place=Place(pointer=error.place.pointer if error.place is not None else ""),
        ) from None


def live_shape(shape: Any, schema: Any, messages: Sequence[Message]) -> Any:
    """Return a shape in a conversation: a `LiveShape` if its schema has live values, else itself."""
    return LiveShape(shape, schema, messages) if has_keyword(schema, LIVE) else shape


def plain_shape(shape: Any) -> Any:
    """Return a shape as the user gave it."""
    return shape.shape if isinstance(shape, LiveShape) else shape
