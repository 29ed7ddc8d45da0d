"""Constraints on strings as terms."""

from __future__ import annotations

from ...language.terms import Terms
from ...regex.compile import regex_term
from ..scalars.formats import format_term
from .conjunction import Strings


def string_term(terms: Terms, asked: Strings) -> int:
    """Return the decoded strings that satisfy the constraints."""
    parts = [regex_term(terms, pattern, whole=False) for pattern in asked.patterns]
    parts += [terms.not_(regex_term(terms, pattern, whole=False)) for pattern in asked.not_patterns]
    parts += [format_term(terms, name) for name in asked.formats]
    parts += [terms.not_(format_term(terms, name, outer=True)) for name in asked.not_formats]
    if asked.least or asked.most is not None:
        parts.append(terms.repeat(terms.ANY, asked.least, asked.most))
    return terms.and_(parts)
