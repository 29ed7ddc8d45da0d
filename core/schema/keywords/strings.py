"""Keywords that constrain strings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...errors import InvalidSchemaError, Place, ToolGrammarError, UnsupportedSchemaError
from ...text_grammars.strings import string_grammar
from ..normal.conjunction import Formula, Strings, fact
from ..read.located import Located
from ..scalars.bounded_formats import BOUNDED
from ..scalars.common import FORMATS
from ..scalars.formats import ENFORCED, REFUSED
from .counts import count_rows
from .refusals import CHECK_LATER, NARROW
from .row import Check, Facts, Keyword, Role, Schemas, Shape, Witness
from .shapes import misfit

#: A keyword of this library: a string is a text of a grammar.
GRAMMAR = "x-grammar"

#: Maximum value of ``minLength``.
MAX_LEAST_LENGTH = 100_000

#: Internal names of formats, as an error names them.
_FORMAT_NAMES = {"python-json": "of JSON inside of a string"}


def _pattern(facts: Facts, pattern: Any) -> None:
    facts.strings["patterns"] = (pattern, *facts.strings.get("patterns", ()))


def _not_pattern(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield fact("string", strings=Strings(not_patterns=(located.schema["pattern"],)))


def _check_grammar(check: Check, located: Located, keyword: str, value: Any) -> None:
    try:
        string_grammar(value)
    except ToolGrammarError as error:
        place = replace(error.place, pointer=located.pointer, keyword=keyword)
        check.malformed_by(located, InvalidSchemaError(error.message, hint=error.hint, place=place))


def _grammar(facts: Facts, source: Any) -> None:
    facts.strings["patterns"] = (*facts.strings.get("patterns", ()), string_grammar(source))


def _not_grammar(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield fact("string", strings=Strings(not_patterns=(string_grammar(located.schema[GRAMMAR]),)))


def _check_format(check: Check, located: Located, keyword: str, name: Any) -> None:
    """Note a format that cannot be enforced, or must be known and is not."""
    left_out = None
    if type(name) is not str:
        misfit(check, located, keyword, name, "a string")
        return
    if not check.formats:
        return
    if name in FORMATS:
        check.has_common = True
    if name in REFUSED:
        message = f"the format {_FORMAT_NAMES.get(name, repr(name))} cannot be enforced exactly"
        hint = f"remove it, describe the strings by a pattern, or {CHECK_LATER}"
    elif name in BOUNDED:
        left_out = BOUNDED[name].left_out
        message = f"the format {name!r} cannot be enforced exactly, only without {left_out}"
        hint = f"remove it, describe the strings by a pattern, or {NARROW}"
    elif name not in ENFORCED and check.strict_formats:
        message = f"the format {name!r} is not one of the specification"
        hint = "leave strict_formats off to take it for an annotation"
    else:
        return
    place = Place(pointer=located.pointer, keyword=keyword)
    check.refuse(located, UnsupportedSchemaError(message, hint=hint, place=place, left_out=left_out))


def _format(facts: Facts, name: Any) -> None:
    if facts.schemas.asserts_format(facts.located):
        facts.strings["formats"] = (name,)


def _not_format(schemas: Schemas, located: Located) -> Iterator[Formula]:
    if schemas.asserts_format(located):
        yield fact("string", strings=Strings(not_formats=(located.schema["format"],)))


def string_witness(schema: Mapping[str, Any], witness: Witness) -> list[Any] | None:
    """Return the witness of a string schema (see `Witness`): a string of the minimum length; unknown for a format."""
    if "format" in schema:
        return None if "minLength" in schema or "maxLength" in schema else []
    least = int(schema["minLength"])  # without it, the empty string is the witness (`normal/inhabited.py`)
    return ["a" * least] if least <= schema.get("maxLength", least) else None


#: The keywords that `string_witness` reads.
READ_FOR_STRING = frozenset({"minLength", "maxLength", "format"})

ROWS = (
    Keyword(
        "pattern",
        Shape.PATTERN,
        Role.ASSERTION,
        "string",
        foreign=("regex", "regexp"),
        facts=_pattern,
        negation=_not_pattern,
    ),
    Keyword("format", Shape.FORMAT, Role.FORMAT, "string", check=_check_format, facts=_format, negation=_not_format),
    *count_rows("string", "Length", MAX_LEAST_LENGTH),
    Keyword(
        GRAMMAR,
        Shape.GRAMMAR,
        Role.ASSERTION,
        "string",
        check=_check_grammar,
        facts=_grammar,
        negation=_not_grammar,
    ),
)
