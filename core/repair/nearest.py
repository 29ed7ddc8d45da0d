"""`repair`: the nearest text of a grammar to a text that no grammar held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ParseError
from ..grammar import Grammar
from ..json import read_json
from .search import Search

#: Default of the maximum processor time of a repair, in seconds.
SECONDS = 0.5

#: Maximum cost of a repair that nobody looks at: one bracket or comma, or any number of other spellings.
SPELLING_ONLY = 0.95


@dataclass(frozen=True)
class Edit:
    """One edit of a text.

    Attributes:
        start, end: the characters of the broken text that were replaced.
        old: these characters.
        new: what was written instead.
        cost: the cost of the change; 1 is one character of a value, and a change of spelling costs next to nothing.
        why: the mistake, for users.
        is_invented: the new text follows neither from the broken text nor from the grammar (``invent=True``).
    """

    start: int
    end: int
    old: str
    new: str
    cost: float
    why: str
    is_invented: bool = False


@dataclass(frozen=True)
class Repaired:
    """A text of a grammar, and the edits that made it of a broken text.

    Attributes:
        text: the text of the grammar.
        edits: the changes, in the order of the broken text; empty if there are none.
        cost: the sum of their costs.
        is_cut: the broken text ended before its value did, so that its last value may be only a prefix.
        is_invented: one of the edits is invented (`Edit.is_invented`).
    """

    text: str
    edits: tuple[Edit, ...] = ()
    cost: float = 0.0
    is_cut: bool = False
    is_invented: bool = False


def repair(
    text: str,
    grammar: Grammar,
    *,
    most: float | None = None,
    invent: bool = False,
    seconds: float = SECONDS,
    goes_on: bool = False,
) -> Repaired:
    """Return the nearest text of a grammar, by weighted edits.

    Quotes, escapes, commas, brackets, fences, comments, numbers and the words of other languages are respelled; prose
    around the text is left out; names and listed values are replaced by the nearest possible ones; unknown members are
    left out. Of several nearest texts, one is returned.

    The result is the nearest of the texts that these edits reach, with one restriction that keeps the search short: an
    edit after which 8 pieces can be read is only reconsidered if no text is found otherwise.

    Args:
        text: the broken text. Control tokens are expected as their names.
        grammar: the grammar, best one that allows white space (``whitespace="flexible"``) and any order of members.
        most: maximum cost of all edits; None: 3, and 0.4 for each ``{`` and ``:`` of the text, of which prose has few;
            1.2 for a text without brackets. `SPELLING_ONLY` allows changes of spelling, not of values or names.
        invent: values that the text lacks and the grammar requires may be invented; they are marked.
        seconds: limit of the search, in processor time: how busy the machine is does not change the result.
        goes_on: the text is the prefix of a text that is still being written: its completion costs nothing, and
            invented parts of it are marked.

    Raises:
        ParseError: no text was found in that time, or only one with invented values; says how far the text was read,
            and what was expected there.
        ToolGrammarError: as `Grammar.program`.

    Laws: ``grammar.matches(repair(text, grammar).text)``; ``grammar.matches(text)`` implies that nothing is edited; the
    edits, applied to the broken text in their order, give the text.
    """
    program = grammar.program
    data = text.encode("utf-8", "surrogatepass")
    search = Search(
        program, data, specials=grammar.specials, most=most, invent=invent, seconds=seconds, goes_on=goes_on
    )
    found = search.run()
    if found is None:
        raise _failure(search, data, grammar)
    repaired, changes = found
    edits = tuple(
        Edit(
            len(_text(data[: change.begin])),
            len(_text(data[: change.end])),
            _text(data[change.begin : change.end]),
            _text(change.text),
            round(change.cost, 3),
            change.why,
            change.is_invented,
        )
        for change in changes
    )
    return Repaired(
        _text(repaired),
        edits,
        round(sum(change.cost for change in changes), 3),
        any(change.is_cut for change in changes),
        any(change.is_invented for change in changes),
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _failure(search: Search, data: bytes, grammar: Grammar) -> ParseError:
    """Return the error of a search that found no text: out of time, would invent a value, or nothing near enough."""
    read = _text(data[: search.furthest])
    line, column = read.count("\n") + 1, len(read) - (read.rfind("\n") + 1) + 1
    where = f"line {line}, column {column}"
    if search.is_late:
        return ParseError(f"no near text was found in time; the text matches up to {where}", hint="allow more seconds")
    if search.would_invent:
        return ParseError(
            f"the text lacks a value that the grammar requires, or has an invalid one; it matches up to {where}",
            hint="ask the model again, or repair with invent=True",
        )
    return ParseError(
        f"no text of the grammar is near enough; the text matches up to {where}", hint="ask the model again"
    )


def loose_json(schema: Any, *, plain_integers: bool = False) -> Grammar:
    """Return the grammar of a schema's values in text that no grammar held: any white space and order of members;
    keywords that no grammar can enforce are left out. Arguments and errors as of `Grammar.from_json_schema`."""
    return Grammar.from_json_schema(
        schema,
        whitespace="flexible",
        property_order="any",
        on_unsupported="validate",
        plain_integers=plain_integers,
    )


def respelled_json(text: str, schema: Any, *, plain_integers: bool = False) -> Any:
    """Return the value of a JSON text; spelling mistakes in an object or array are repaired.

    Args:
        text: the text of a model without a grammar.
        schema: JSON Schema of the value.
        plain_integers: as of `Grammar.from_json_schema`.

    Raises:
        ParseError: there is no such value, or the text ends before it does.
        SchemaError: the schema is malformed, or nothing can satisfy it.
    """
    repaired = repair(text, loose_json(schema, plain_integers=plain_integers), most=SPELLING_ONLY)
    if repaired.edits and repaired.text[:1] not in "{[":  # prose is not to become a string
        raise ParseError("the text contains no JSON object or array", hint="ask the model for JSON")
    if repaired.is_cut:
        raise ParseError("the text ends before its JSON value does", hint="raise max_tokens, or ask again")
    return read_json(repaired.text)
