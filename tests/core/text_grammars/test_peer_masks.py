"""Masks of grammars as text beside those of xgrammar and llguidance, token by token."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from benchmarks.shared.engines import llguidance_tokenizer, xgrammar_info
from toolgrammar.core import Grammar, Vocabulary

from .peers import llguidance, xgrammar
from .test_ebnf_gbnf import JSON, SHARED

WORDS = [
    "ab",
    "abc",
    "aa",
    "bc",
    "cd",
    "xx",
    "yy",
    "12",
    "1.",
    "0,",
    '"a',
    '":',
    "true",
    ", ",
    "{ ",
    "é",
    "éé",
    "\n- ",
    "((",
]
VOCABULARY = Vocabulary([*(bytes((byte,)) for byte in range(256)), *(word.encode() for word in WORDS), None], eos=[275])

#: Returns the tokens that a peer allows after some tokens.
Allowed = Callable[[Sequence[int]], set[int]]


def _tokens(bits: np.ndarray) -> set[int]:  # type: ignore[type-arg]
    return set(np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")[: VOCABULARY.size]).tolist())


def by_xgrammar(text: str) -> Allowed:
    """Return xgrammar's masks of a grammar in EBNF."""
    module = xgrammar()
    compiled = module.GrammarCompiler(xgrammar_info(VOCABULARY), max_threads=1).compile_grammar(text)
    bits = module.allocate_token_bitmask(1, VOCABULARY.size)

    def allowed(tokens: Sequence[int]) -> set[int]:
        matcher = module.GrammarMatcher(compiled)
        assert all(matcher.accept_token(token) for token in tokens)
        bits.fill_(-1)
        matcher.fill_next_token_bitmask(bits)
        return _tokens(bits.numpy()[0])

    return allowed


def by_llguidance(text: str) -> Allowed:
    """Return llguidance's masks of a grammar in GBNF; it would allow one spelling of fixed texts, unless told not to."""
    module = llguidance()
    from llguidance.gbnf_to_lark import gbnf_to_lark
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    lark = '%llguidance {"no_forcing": true}\n' + gbnf_to_lark(text)
    start = module.LLMatcher(llguidance_tokenizer(VOCABULARY), module.LLMatcher.grammar_from_lark(lark), log_level=0)
    assert not start.is_error(), start.get_error()
    bits = allocate_token_bitmask(1, VOCABULARY.size)

    def allowed(tokens: Sequence[int]) -> set[int]:
        matcher = start.deep_copy()
        assert matcher.try_consume_tokens(list(tokens)) == len(tokens)
        fill_next_token_bitmask(matcher, bits, 0)
        return _tokens(bits[0])

    return allowed


@pytest.mark.parametrize("peer", [by_xgrammar, by_llguidance], ids=["xgrammar", "llguidance"])
@pytest.mark.parametrize("text", [*SHARED, JSON], ids=range(len(SHARED) + 1))
def test_masks_of_peers(text: str, peer: Callable[[str], Allowed]) -> None:
    """Along random walks, a peer allows the same tokens, the end among them."""
    if peer is by_llguidance and ("\\x30" in text or "\\-" in text):
        pytest.skip("llguidance's reader of GBNF does not take these escapes")
    theirs, constraint, draw = peer(text), Grammar.from_gbnf(text).bind(VOCABULARY), random.Random(11)
    steps = 0
    for _ in range(4):
        matcher, written = constraint.matcher(), list[int]()
        for _ in range(8):
            ours = set(matcher.allowed_tokens())
            assert theirs(written) == ours, bytes(b"".join(VOCABULARY.tokens[token] or b"" for token in written))
            steps += 1
            going_on = sorted(ours - VOCABULARY.eos)
            if not going_on:
                break
            written.append(draw.choice([token for token in going_on if token >= 256] or going_on))
            assert matcher.accept(written[-1])
    assert steps >= 8
