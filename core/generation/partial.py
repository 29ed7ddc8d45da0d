"""Partial values: the value of an incomplete JSON text, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

from ..conversation.events import T_co
from ..errors import ParseError
from ..grammar import Grammar
from ..grammar.sampling import single_bytes
from ..repair import SECONDS, Edit, loose_json, repair
from .json_places import complete_pointers, unfinished_pointers
from .typed_partial import typed_partial


@dataclass(frozen=True)
class Partial(Generic[T_co]):
    """The value of an incomplete JSON text.

    For type checkers that of ``output_type=T`` is a ``Partial[T]``; fields of an incomplete object may be None.

    Attributes:
        value: the value so far: with incomplete strings, and without names whose values have not begun; None if no
            value has begun.
        missing: JSON pointers of the required values that have not begun, in order, without values inside of them. If
            the text has several continuations, those of the shortest.
        open: JSON pointer of the innermost incomplete value; None if there is none.
        is_whole: the text is complete. (A number at its end may continue.)
        edits: the changes that made the text a prefix of one of the grammar.
        new: JSON pointers of the values that became complete with the last piece, inner ones first.
    """

    value: T_co | None
    missing: tuple[str, ...]
    open: str | None
    is_whole: bool
    edits: tuple[Edit, ...] = ()
    new: tuple[str, ...] = ()


class PartialReader:
    """Reads a JSON text in pieces, and returns its partial value after each.

    The pieces are those of a stream: ``TextDelta`` events, or the ``ArgumentsDelta`` of one call. An unconstrained text
    that violates the grammar is read as the nearest one that does not (`repair`); from then on, each piece takes the
    time of a repair.

    Args:
        grammar: a grammar of JSON texts, preferably with any white space and order of members, as `of_schema` makes.
        seconds: maximum time of a repair.
        shape: a Python type, of which ``Partial.value`` is then made (`typed_partial`). None: it is JSON.

    Law: for each prefix of a text of the grammar, ``missing`` and ``open`` are empty iff it is complete.
    """

    def __init__(self, grammar: Grammar, *, seconds: float = SECONDS, shape: Any = None) -> None:
        self._grammar = grammar
        self._shape = shape
        self._complete: set[str] = set()
        self._read = 0  # a value that ends before this character is in `_complete`
        self._seconds = seconds
        self._matcher = grammar.bind(single_bytes()).matcher()
        self._follows = True  # the text is a prefix of one of the grammar
        self._text = ""

    @classmethod
    def of_schema(cls, schema: Any, *, seconds: float = SECONDS, shape: Any = None) -> PartialReader:
        """Return a reader of a JSON Schema's values, with any white space and order of members; other arguments as for
        the class.

        Raises:
            SchemaError: the schema is malformed, or nothing can satisfy it.
        """
        return cls(loose_json(schema), seconds=seconds, shape=shape)

    def feed(self, text: str) -> Partial:
        """Read the next piece of the text; return the partial value.

        Raises:
            ParseError: the text is not a prefix of one of the grammar, and no near text is.
        """
        self._text += text
        self._follows = self._follows and self._matcher.accept_bytes(text.encode("utf-8", "surrogatepass"))
        if self._follows:
            return self._partial(self._text, self._matcher.shortest_completion().decode(), self._matcher.is_accepting)
        repaired = repair(self._text, self._grammar, seconds=self._seconds, goes_on=True)
        added = "".join(edit.new for edit in repaired.edits if edit.start == edit.end == len(self._text))
        return self._partial(repaired.text[: len(repaired.text) - len(added)], added, not added, repaired.edits)

    def _partial(self, text: str, completion: str, is_whole: bool, edits: tuple[Edit, ...] = ()) -> Partial:
        """Return the partial value of a text.

        Args:
            text: a prefix of a text of the grammar.
            completion: its shortest completion.
            is_whole: the text is complete.
            edits: the changes that made the text such a prefix.
        """
        value = _value_of(text)
        innermost, missing = unfinished_pointers(text + completion, len(text))
        innermost = None if is_whole else innermost
        complete = complete_pointers(text, self._read)
        new = tuple(pointer for pointer in complete if pointer not in self._complete)
        self._complete.update(new)
        self._read = 0 if edits else len(text)
        value = value if self._shape is None or value is None else typed_partial(value, self._shape, innermost)
        return Partial(value, missing, innermost, is_whole, edits, new)


def partial(text: str, grammar: Grammar, *, seconds: float = SECONDS) -> Partial:
    """Return the partial value of an incomplete JSON text; see `PartialReader`."""
    return PartialReader(grammar, seconds=seconds).feed(text)


def _value_of(text: str) -> Any:
    """Return the value of an incomplete JSON text; None if none has begun."""
    from pydantic_core import from_json

    if not text.strip():
        return None
    try:
        return from_json(text.encode("utf-8", "surrogatepass"), allow_partial="trailing-strings")
    except ValueError as error:
        if "recursion" in str(error):
            raise ParseError("the JSON is nested too deeply", hint="read it when it is whole") from None
        return None  # An incomplete escape or a minus sign is not a value yet.
