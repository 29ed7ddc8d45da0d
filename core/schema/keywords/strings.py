"""Keywords that constrain strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...text_grammars.strings import string_grammar
from ..normal.conjunction import Formula, Strings, fact
from ..read.located import Located
from .row import Facts, Holds, Keyword, Role, Schemas, Shape

#: The keyword of ours: a string is a text of a grammar.
GRAMMAR = "x-grammar"

#: Maximum value of ``minLength``.
MAX_LEAST_LENGTH = 100_000


def _least(facts: Facts, count: Any) -> None:
    facts.strings["least"] = int(count)


def _most(facts: Facts, count: Any) -> None:
    facts.strings["most"] = int(count)


def _not_least(schemas: Schemas, located: Located) -> Iterator[Formula]:
    least = int(located.schema["minLength"])
    if least > 0:
        yield fact("string", strings=Strings(most=least - 1))


def _not_most(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield fact("string", strings=Strings(least=int(located.schema["maxLength"]) + 1))


def _pattern(facts: Facts, pattern: Any) -> None:
    facts.strings["patterns"] = (pattern, *facts.strings.get("patterns", ()))


def _not_pattern(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield fact("string", strings=Strings(not_patterns=(located.schema["pattern"],)))


def _grammar(facts: Facts, source: Any) -> None:
    facts.strings["patterns"] = (*facts.strings.get("patterns", ()), string_grammar(source))


def _not_grammar(schemas: Schemas, located: Located) -> Iterator[Formula]:
    yield fact("string", strings=Strings(not_patterns=(string_grammar(located.schema[GRAMMAR]),)))


def _format(facts: Facts, name: Any) -> None:
    if facts.schemas.asserts_format(facts.located):
        facts.strings["formats"] = (name,)


def _not_format(schemas: Schemas, located: Located) -> Iterator[Formula]:
    if schemas.asserts_format(located):
        yield fact("string", strings=Strings(not_formats=(located.schema["format"],)))


def string_witness(schema: Mapping[str, Any], witness: Callable[[Any], list[Any] | None]) -> list[Any] | None:
    """Return a string of the minimum length (`READ_FOR_STRING`), in a list; an empty list for a format, whose strings
    are not known; None if there may be no string."""
    if "format" in schema:
        return None if "minLength" in schema or "maxLength" in schema else []
    least = int(schema["minLength"])
    return ["a" * least] if least <= schema.get("maxLength", least) else None


#: The keywords that `string_witness` reads.
READ_FOR_STRING = frozenset({"minLength", "maxLength", "format"})

ROWS = (
    Keyword("pattern", Shape.PATTERN, Role.ASSERTION, "string", facts=_pattern, negation=_not_pattern),
    Keyword("format", Shape.FORMAT, Role.FORMAT, "string", facts=_format, negation=_not_format),
    Keyword(
        "minLength",
        Shape.LOWER_COUNT,
        Role.ASSERTION,
        "string",
        most=MAX_LEAST_LENGTH,
        facts=_least,
        negation=_not_least,
    ),
    Keyword(
        "maxLength", Shape.UPPER_COUNT, Role.ASSERTION, "string", holds=Holds.EMPTY, facts=_most, negation=_not_most
    ),
    Keyword(GRAMMAR, Shape.GRAMMAR, Role.ASSERTION, "string", facts=_grammar, negation=_not_grammar),
)
