"""Recipes: a language as integers is the language of the tree."""

from __future__ import annotations

import gc

import pytest

from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex import syntax
from toolgrammar.core.regex.bytecode import assemble, execute
from toolgrammar.core.regex.compile import regex_term
from toolgrammar.core.unicode.charset import CharSet

A, B = (syntax.Chars(CharSet.range(*bounds)) for bounds in ("af", "az"))
WIDE = syntax.Chars(~CharSet.of("xé€😀"))


def test_every_kind_of_node() -> None:
    """Each node makes the term that the store makes of the same parts."""
    terms = Terms()
    a, b, wide = (terms.chars(each.charset) for each in (A, B, WIDE))
    pairs = [
        (syntax.EMPTY, terms.EPSILON),
        (syntax.NOTHING, terms.EMPTY),
        (syntax.ANYTHING, terms.ALL),
        (WIDE, wide),
        (syntax.Seq((A, B, A)), terms.sequence([a, b, a])),
        (syntax.Alt((A, syntax.Seq((B, B)))), terms.alt([a, terms.seq(b, b)])),
        (syntax.Repeat(A, 2, 70_000), terms.repeat(a, 2, 70_000)),
        (syntax.Repeat(WIDE, 1, None), terms.repeat(wide, 1, None)),
        (syntax.And((syntax.Repeat(A, 0, 3), syntax.Not(B))), terms.and_([terms.repeat(a, 0, 3), terms.not_(b)])),
    ]
    assert [term for _, term in pairs] == [execute(terms, assemble(tree)) for tree, _ in pairs]


def test_what_is_shared_is_written_once() -> None:
    """A tree that stands in many places is one instruction: doubling it again and again stays small."""
    tree: syntax.Regex = syntax.Seq((A, WIDE))
    for _ in range(60):
        tree = syntax.Alt((syntax.Repeat(tree, 2, 2), A))
    assert len(assemble(tree)) < 5_000


def test_an_assertion_has_no_bytecode() -> None:
    """Whose truth depends on the text around it is no language."""
    with pytest.raises(TypeError, match="assertion"):
        assemble(syntax.Seq((A, syntax.Start())))


def test_patterns_are_kept_where_the_collector_need_not_look() -> None:
    """Patterns that are remembered are hardly any objects for the garbage collector."""
    gc.collect()
    before = len(gc.get_objects())
    for number in range(100):
        regex_term(Terms(), f"^([a-f]{{2}}|x[0-9]+|{number})+(-[a-z]*){{0,3}}$", whole=False)
    gc.collect()
    assert len(gc.get_objects()) - before < 100
