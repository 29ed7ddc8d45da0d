"""llguidance and xgrammar as judges of texts; a test that asks one that is not installed is skipped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from benchmarks.shared.engines import llguidance_tokenizer
from toolgrammar.core.grammar.sampling import single_bytes


def xgrammar() -> Any:
    """Return the module."""
    return pytest.importorskip("xgrammar", reason="xgrammar is not installed")


def llguidance() -> Any:
    """Return the module."""
    return pytest.importorskip("llguidance", reason="llguidance is not installed")


def in_xgrammar(text: str) -> Callable[[str], bool]:
    """Return what xgrammar accepts of a grammar in EBNF."""
    grammar = xgrammar().Grammar.from_ebnf(text)
    from xgrammar.testing import _is_grammar_accept_string

    return lambda candidate: bool(_is_grammar_accept_string(grammar, candidate))


@cache
def _bytes() -> Any:
    return llguidance_tokenizer(single_bytes())


def in_llguidance(text: str) -> Callable[[str], bool]:
    """Return what llguidance accepts of a grammar in Lark, byte by byte."""
    matcher_of = llguidance().LLMatcher
    compiled = matcher_of.grammar_from_lark(text)

    def accepts(candidate: str) -> bool:
        matcher = matcher_of(_bytes(), compiled, log_level=0)
        assert not matcher.is_error(), matcher.get_error()
        return all(matcher.try_consume_tokens([byte]) for byte in candidate.encode()) and bool(matcher.is_accepting())

    return accepts
