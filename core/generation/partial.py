"""Partial values: what a JSON text that is still being written has so far, and what it still needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ParseError
from ..grammar import Grammar
from ..grammar.sampling import single_bytes
from ..repair import SECONDS, Edit, repair
from .truncation import unfinished_pointers


@dataclass(frozen=True)
class Partial:
    """What the beginning of a JSON text has so far.

    Attributes:
        value: the value so far: strings as far as they are written, and without a name whose value has not begun; None
            if nothing has begun.
        missing: JSON pointers of the values that the grammar still demands and that have not begun, in their order;
            not of what is inside of them. Where the text may go on in several ways, those of the shortest.
        open: JSON pointer of the innermost value that has begun, and has no end yet; None if there is none.
        is_whole: the text is one of the grammar as it is. (A number at its end may go on.)
        edits: what had to be changed, where the text is no beginning of the grammar's.
    """

    value: Any
    missing: tuple[str, ...]
    open: str | None
    is_whole: bool
    edits: tuple[Edit, ...] = ()


class PartialReader:
    """Reads a JSON text piece by piece, and tells after each what it has so far.

    The pieces are those of a stream: ``TextDelta`` events, or the ``ArgumentsDelta`` of one call. A text that leaves
    the grammar, because no grammar held it, is read as the nearest one that does not (`repair`); from there on each
    piece takes the time of a repair.

    Args:
        grammar: of JSON texts; best one that allows white space and any order of members, as `of_schema` makes it.
        seconds: maximum time of a repair.

    Law: for each beginning of a text of the grammar, ``missing`` and ``open`` are empty exactly if it is whole.
    """

    def __init__(self, grammar: Grammar, *, seconds: float = SECONDS) -> None:
        self._grammar = grammar
        self._seconds = seconds
        self._matcher = grammar.bind(single_bytes()).matcher()
        self._follows = True  # the grammar, so far
        self._text = ""

    @classmethod
    def of_schema(cls, schema: Any, *, seconds: float = SECONDS) -> PartialReader:
        """Return a reader of a JSON Schema's values, with any white space and order of members.

        Raises:
            SchemaError: the schema is malformed, or nothing can satisfy it.
        """
        options: Any = {"whitespace": "flexible", "property_order": "any", "on_unsupported": "validate"}
        return cls(Grammar.from_json_schema(schema, **options), seconds=seconds)

    def feed(self, text: str) -> Partial:
        """Take the next piece of the text; return what is there so far.

        Raises:
            ParseError: the text is no beginning of the grammar's, and none is near.
        """
        self._text += text
        self._follows = self._follows and self._matcher.accept_bytes(text.encode("utf-8", "surrogatepass"))
        if self._follows:
            return _partial(self._text, self._matcher.shortest_completion().decode(), self._matcher.is_accepting)
        repaired = repair(self._text, self._grammar, seconds=self._seconds, goes_on=True)
        added = "".join(edit.new for edit in repaired.edits if edit.start == edit.end == len(self._text))
        return _partial(repaired.text[: len(repaired.text) - len(added)], added, not added, repaired.edits)


def partial(text: str, grammar: Grammar, *, seconds: float = SECONDS) -> Partial:
    """Return what the beginning of a JSON text has so far, and what it still needs; see `PartialReader`."""
    return PartialReader(grammar, seconds=seconds).feed(text)


def _partial(text: str, completion: str, is_whole: bool, edits: tuple[Edit, ...] = ()) -> Partial:
    """Return what a text has so far.

    Args:
        text: a beginning of a text of the grammar.
        completion: its shortest completion.
        is_whole: it needs none.
        edits: that made it.
    """
    from pydantic_core import from_json

    value = None
    if text.strip():
        try:
            value = from_json(text.encode("utf-8", "surrogatepass"), allow_partial="trailing-strings")
        except ValueError as error:
            if "recursion" in str(error):
                raise ParseError("the JSON is nested too deeply", hint="read it when it is whole") from None
            # Half an escape, a minus sign: nothing has begun.
    innermost, missing = unfinished_pointers(text + completion, len(text))
    return Partial(value, missing, None if is_whole else innermost, is_whole, edits)
