"""Regular expressions as terms: ECMA-262 patterns lowered to the hash-consed store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from . import syntax
from .anchors import search_language
from .ecma import parse
from .terms import Terms


def regex_term(terms: Terms, pattern: str, *, whole: bool) -> int:
    """The strings that a pattern matches.

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
        found = terms.memo[key] = lower(terms, _anchored(pattern, whole))
    return found


@lru_cache(maxsize=256)  # formats, and the patterns that people copy, are met in schema after schema
def _anchored(pattern: str, whole: bool) -> syntax.Regex:
    """The tree of `regex_term`, without assertions."""
    tree = parse(pattern)
    if whole:
        tree = syntax.Seq((syntax.Start(), tree, syntax.End()))
    return search_language(tree)


def lower(terms: Terms, tree: syntax.Regex) -> int:
    """The term of an anchored syntax tree."""

    def combine(node: syntax.Regex, parts: Sequence[int]) -> int:
        if isinstance(node, syntax.Chars):
            return terms.chars(node.charset)
        if isinstance(node, syntax.Empty):
            return terms.EPSILON
        if isinstance(node, syntax.Seq):
            return terms.sequence(parts)
        if isinstance(node, syntax.Alt):
            return terms.alt(parts)
        if isinstance(node, syntax.Repeat):
            return terms.repeat(parts[0], node.min, node.max)
        if isinstance(node, syntax.And):
            return terms.and_(parts)
        if isinstance(node, syntax.Not):
            return terms.not_(parts[0])
        raise TypeError(f"an assertion is left in an anchored language: {node}")

    return syntax.fold(tree, combine)
