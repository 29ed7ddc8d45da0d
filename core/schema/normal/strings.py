"""Constraints on strings as terms."""

from __future__ import annotations

from ...errors import LimitError, Place
from ...language.terms import Terms
from ...regex.compile import regex_term
from ...text_grammars.strings import StringGrammar
from ..read.keywords import GRAMMAR
from ..scalars.formats import format_term
from .conjunction import Strings


def string_term(terms: Terms, asked: Strings, *, outer: bool = False) -> int:
    """Return the decoded strings that satisfy the constraints.

    Args:
        terms: where the term is made.
        asked: the constraints.
        outer: over-approximate formats and patterns without an exact term (all strings that satisfy the constraints,
            and maybe more), instead of under-approximating them (only such strings). Under a negation it is the other
            way round.

    Raises:
        LimitError: one is a grammar that is not regular.
    """
    parts = [_pattern_term(terms, pattern, outer) for pattern in asked.patterns]
    parts += [terms.not_(_pattern_term(terms, pattern, not outer)) for pattern in asked.not_patterns]
    parts += [format_term(terms, name, outer=outer) for name in asked.formats]
    parts += [terms.not_(format_term(terms, name, outer=not outer)) for name in asked.not_formats]
    if asked.least or asked.most is not None:
        parts.append(terms.repeat(terms.ANY, asked.least, asked.most))
    return terms.and_(parts)


def irregular(terms: Terms, asked: Strings) -> StringGrammar | None:
    """Return a grammar among the constraints that is not regular, if there is one."""
    found = [pattern for pattern in asked.patterns if isinstance(pattern, StringGrammar)]
    return next((grammar for grammar in found if grammar.term(terms) is None), None)


def _pattern_term(terms: Terms, pattern: str | StringGrammar, outer: bool) -> int:
    """Return the term of a pattern, which may match anywhere in the string, or of a text grammar for the whole string.

    Args:
        outer: a pattern without an exact term gets a term of more strings (true) or of fewer (false).

    Raises:
        LimitError: the text grammar is not regular.
    """
    if isinstance(pattern, str):
        return regex_term(terms, pattern, whole=False, bound="outer" if outer else "inner")
    term = pattern.term(terms)
    if term is None:
        raise LimitError(
            f"the grammar in {GRAMMAR} is recursive, or too large to be a regular language; such a grammar is enforced "
            "for the value of a string only: not negated, for names, beside another such grammar, beside enum or const,"
            " or for items that must not repeat",
            hint="give the string a schema of its own, or write the grammar as a regular expression",
            place=Place(keyword=GRAMMAR),
        )
    return term
