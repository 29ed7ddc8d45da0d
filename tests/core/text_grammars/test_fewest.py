"""Lower bounds of the characters of expressions."""

from __future__ import annotations

from math import inf

from toolgrammar.core.language.terms import Terms
from toolgrammar.core.text_grammars.expressions import Choice, Literal, Repeat, Stopped
from toolgrammar.core.text_grammars.rules import Rules, fewest_chars

NOTHING = Choice(())


def test_expressions_without_texts() -> None:
    """Nothing can follow an item up to a stop text that there is not."""
    assert fewest_chars(Stopped(Literal("ab"), NOTHING)) == inf
    assert fewest_chars(Stopped(Literal("ab"), Choice((NOTHING, Literal("x"))))) == 2
    assert fewest_chars(Repeat(Stopped(Literal("ab"), NOTHING), 0, None)) == 0


def test_stopped_texts_are_texts_of_the_item() -> None:
    """Of the item "ab" and the stops "x" and "abx", "ab" remains, not the empty text before "abx"."""
    rules = Rules("key", {"start": Stopped(Literal("ab"), Choice((Literal("x"), Literal("abx"))))}, "start")
    terms = Terms()
    term = rules.term(terms)
    assert term is not None
    assert terms.matches(term, "ab") and not terms.matches(term, "")
