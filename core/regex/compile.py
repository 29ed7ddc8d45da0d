"""Regular expressions as terms: ECMA-262 patterns lowered to the hash-consed store."""

from __future__ import annotations

from functools import lru_cache

from ..language.terms import Terms
from . import syntax
from .assertions import search_language
from .bytecode import assemble, execute
from .parser import parse


def regex_term(terms: Terms, pattern: str, *, whole: bool) -> int:
    """Return the strings that a pattern matches.

    Args:
        terms: where the term is made.
        pattern: ECMA-262 with the ``u`` flag.
        whole: the whole string must match (True), or some part of it, as JSON Schema's ``pattern`` says (False).

    Raises:
        PatternError: malformed, or not regular.
    """
    key = ("pattern", pattern, whole)
    found = terms.memo.get(key)
    if found is None:
        found = terms.memo[key] = execute(terms, _anchored(pattern, whole))
    return found


@lru_cache(maxsize=256)  # formats, and the patterns that people copy, are met in schema after schema
def _anchored(pattern: str, whole: bool) -> bytes:
    """Return the bytecode of `regex_term`."""
    tree = parse(pattern)
    if whole:
        tree = syntax.Seq((syntax.Start(), tree, syntax.End()))
    terms = Terms()
    return assemble(terms, search_language(terms, tree))
