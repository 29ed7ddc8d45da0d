"""Template literal types: the strings that TypeScript's compiler takes for them, as patterns.

The compiler does not search for a way to divide a string. The last placeholder takes the rest, each other one what is
before the first occurrence of the text after it, and one with no text after it takes one UTF-16 code unit
(``inferFromLiteralPartsToTemplateLiteral``). Then each piece must be of its placeholder's type: ``"-12"`` has not the
type `` `${number}${number}` ``, because the first piece is ``"-"``. A pattern here divides a string in the same way.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from toolgrammar.core.errors import LimitError

from . import model as ts

#: Maximum number of strings that a template type is written out as, and of the templates that it is a union of.
MAX_TEMPLATE_VALUES = 64
MAX_TEMPLATE_CHARS = 10_000

_SYNTAX = re.compile(r"[\^$\\.*+?()\[\]{}|/]")
_NUMBER_CHARS = tuple("+-.eE0123456789")


def template(pieces: Sequence[Sequence[tuple[ts.Part, ...]]], at: ts.At) -> ts.Type:
    """Return the type of pieces in a row, each the union of its alternatives: of literals, if they are few.

    Raises:
        LimitError: it has more than `MAX_TEMPLATE_VALUES` alternatives, or a pattern above `MAX_TEMPLATE_CHARS`.
    """
    alternatives: list[tuple[ts.Part, ...]] = [()]
    for piece in pieces:
        alternatives = [before + one for before in alternatives for one in piece]
        if len(alternatives) > MAX_TEMPLATE_VALUES:
            raise _limit(f"a template type has more than {MAX_TEMPLATE_VALUES} alternatives with a placeholder", at)
    types: list[ts.Type] = []
    for parts in alternatives:
        if parts == (ts.STRING,):
            return ts.STRING
        literals = [part for part in parts if isinstance(part, tuple)]
        if len(literals) == len(parts) and math.prod(map(len, literals)) <= MAX_TEMPLATE_VALUES:
            types += map(ts.Literal.of, _texts(literals))
        else:
            types.append(ts.Template(parts, _pattern(parts, at)))
    return ts.union(types)


def _pattern(parts: Sequence[ts.Part], at: ts.At) -> str:
    """Return the regular expression of a template type.

    Args:
        parts: placeholders, and the literals between them: each a tuple of the texts that are possible there.
        at: its place.

    Raises:
        LimitError: it is too long.
    """
    pattern, rest = "", list(parts)
    while rest:
        first = rest[0]
        placeholder = first if isinstance(first, ts.Keyword) else None
        following = itertools.takewhile(lambda part: isinstance(part, tuple), rest[placeholder is not None :])
        literals = [part for part in following if isinstance(part, tuple)]
        del rest[: len(literals) + (placeholder is not None)]
        pattern += _divided(placeholder, literals) if placeholder and rest else _free(placeholder, literals)
        if len(pattern) > MAX_TEMPLATE_CHARS:
            raise _limit(f"the pattern of a template type has more than {MAX_TEMPLATE_CHARS:,} characters", at)
    return pattern


def _free(placeholder: ts.Keyword | None, literals: Sequence[tuple[str, ...]]) -> str:
    """Return the pattern of any text of a placeholder, and of the literals after it."""
    text = "" if placeholder is None else _number() if placeholder == ts.NUMBER else r"[\s\S]*"
    return text + "".join(_group([_escaped(one) for one in part]) for part in literals)


def _divided(placeholder: ts.Keyword, literals: Sequence[tuple[str, ...]]) -> str:
    """Return the pattern of a placeholder that another one follows, and of the literals between them."""
    # One more than the limit of the pattern is enough: each of these has a character at least.
    after = list(itertools.islice(_texts(literals), MAX_TEMPLATE_CHARS + 1))
    if placeholder == ts.NUMBER and not any(text == "" or text[0] in _NUMBER_CHARS for text in after):
        return _free(placeholder, literals)
    return _group([_before(placeholder, text) + _escaped(text) for text in after])


def _before(placeholder: ts.Keyword, text: str) -> str:
    """Return the pattern of what a placeholder takes before the first occurrence of a text."""
    if not text:
        return "[0-9]" if placeholder == ts.NUMBER else r"[\0-\uFFFF]"
    if placeholder == ts.NUMBER:
        return _number(text)
    return f"[^{_escaped(text)}]*" if len(text) == 1 else f"(?:(?!{_escaped(text)})[\\s\\S])*"


def _number(text: str = "") -> str:
    """Return the pattern of a JSON number that is finite as a double, before the first occurrence of a text."""
    guard = f"(?!{_escaped(text)})" if text[:1] in _NUMBER_CHARS and text not in ("-", ".") else ""
    digit, sign, minus = (f"(?:{guard}{one})" if guard else one for one in ("[0-9]", "[+-]", "-"))
    whole = f"(?:{guard}0|{guard}[1-9]{digit}{{0,199}})"
    if text == "-":
        minus, sign = "", r"\+"
    else:
        minus += "?"
    fraction = "" if text == "." else rf"(?:{guard}\.{digit}+)?"
    return f"{minus}{whole}{fraction}(?:{guard}[eE]{sign}?{digit}{{1,2}})?"


def _group(patterns: Sequence[str]) -> str:
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"


def _escaped(text: str) -> str:
    return _SYNTAX.sub(r"\\\g<0>", text)


def _texts(literals: Sequence[tuple[str, ...]]) -> Iterator[str]:
    return map("".join, itertools.product(*literals))


def _limit(problem: str, at: ts.At) -> LimitError:
    return LimitError(problem, hint="use string where a template repeats another one", place=at.source.place(at.node))
