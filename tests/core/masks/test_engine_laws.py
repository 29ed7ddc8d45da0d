"""The laws of `Grammar` and `Matcher`, against brute force over a small alphabet."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import re
import weakref
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolgrammar.core import DecodingError, Grammar, UnsatisfiableSchemaError, Vocabulary
from toolgrammar.core.automaton.completion import texts
from toolgrammar.core.masks.mask_engine import MaskEngine

from ...vocabularies import BYTES

ALPHABET = "ab,"
LONGEST = 5
TEXTS = ["".join(chars) for size in range(LONGEST + 1) for chars in itertools.product(ALPHABET, repeat=size)]
TOKENS: list[bytes | None] = [
    b"a", b"b", b",", b"ab", b"ba", b"aa", b",a", b"a,", b"aba", b"b,b", b"aab", b"x", b"", b"ab", None, None,
]  # fmt: skip
EOS = 14
CONTROL = 15
VOCABULARY = Vocabulary(TOKENS, eos=[EOS], special={"<end>": EOS, "<go>": CONTROL})


def shapes() -> st.SearchStrategy[tuple]:
    """Descriptions of grammars as trees: what both the library and the oracle build from."""
    leaf = st.one_of(
        st.tuples(st.just("literal"), st.text(ALPHABET, max_size=3)),
        st.tuples(
            st.just("regex"),
            st.sampled_from(["a*", "[ab]", "a|b,", "(ab)*", "[^a]", "a{1,2}b?", "(a|a)*b", "(?!ab).{2}", "a*(?=b)b*"]),
        ),
        st.tuples(st.just("text"), st.sampled_from([(), (",",), ("ab",), ("aa", "b,")]), st.integers(0, 2)),
        st.tuples(st.just("until"), st.sampled_from([",", "ab", "aba"])),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(st.just("sequence"), st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.tuples(st.just("choice"), st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.tuples(st.just("repeat"), inner, st.integers(0, 2), st.integers(0, 2)),
        ),
        max_leaves=6,
    )


def grammar_of(shape: tuple) -> Grammar:
    """The library's grammar of a tree."""
    kind, *args = shape
    if kind == "literal":
        return Grammar.literal(args[0])
    if kind == "regex":
        return Grammar.from_regex(args[0])
    if kind == "text":
        return Grammar.text(excluding=args[0], min_chars=args[1])
    if kind == "until":
        return Grammar.until(args[0])
    if kind == "repeat":
        return Grammar.repeat(grammar_of(args[0]), args[1], args[1] + args[2])
    parts = [grammar_of(part) for part in args[0]]
    return Grammar.sequence(*parts) if kind == "sequence" else Grammar.choice(*parts)


@lru_cache(maxsize=4096)
def texts_of(shape: tuple) -> frozenset[str]:
    """The oracle: every text of a tree, up to the longest length."""
    kind, *args = shape
    if kind == "literal":
        return frozenset({args[0]})
    if kind == "regex":
        return frozenset(text for text in TEXTS if re.fullmatch(args[0], text))
    if kind == "text":
        return frozenset(t for t in TEXTS if len(t) >= args[1] and not any(word in t for word in args[0]))
    if kind == "until":
        return frozenset(t for t in TEXTS if t.endswith(args[0]) and t.find(args[0]) == len(t) - len(args[0]))
    if kind == "choice":
        return frozenset().union(*(texts_of(part) for part in args[0]))
    if kind == "sequence":
        result = frozenset({""})
        for part in args[0]:
            result = joined(result, texts_of(part))
        return result
    part, least, more = args
    result, power = frozenset(), frozenset({""})
    for count in range(least + more + 1):
        if count >= least:
            result |= power
        power = joined(power, texts_of(part))
    return result


def joined(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """All concatenations that are short enough."""
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)


@settings(max_examples=150, deadline=None)
@given(shapes())
def test_matches_exactly_the_texts_of_the_description(shape: tuple) -> None:
    """A grammar matches a text iff brute force generates it."""
    grammar = grammar_of(shape)
    expected = texts_of(shape)
    try:
        actual = {text for text in TEXTS if grammar.matches(text)}
    except UnsatisfiableSchemaError:
        actual = set()
    assert actual == expected


@settings(max_examples=100, deadline=None)
@given(shapes(), st.lists(st.integers(0, 50), max_size=4))
def test_mask_accept_and_completion_agree(shape: tuple, choices: list[int]) -> None:
    """A token is in the mask iff it is accepted; every state reached can be completed into a text that matches."""
    assume(texts_of(shape))
    grammar = grammar_of(shape)
    matcher = grammar.bind(VOCABULARY).matcher()
    written = b""
    for choice in [*choices, 0]:
        allowed = matcher.allowed_tokens()
        for token in range(len(TOKENS)):
            fork = matcher.fork()
            assert fork.accept(token) == (token in allowed)
        assert matcher.is_accepting == grammar.matches(written)
        assert (EOS in allowed) == matcher.is_accepting
        completion = matcher.shortest_completion()
        assert grammar.matches(written + completion)
        forced = matcher.forced_bytes()
        assert completion.startswith(forced)
        if matcher.is_accepting:
            assert completion == b"" and forced == b""
        alive = [token for token in allowed if token != EOS]
        if not alive:
            assert matcher.is_accepting
            break
        token = alive[choice % len(alive)]
        assert matcher.accept(token)
        written += TOKENS[token] or b""


@settings(max_examples=100, deadline=None)
@given(shapes())
def test_first_mask_holds_exactly_the_tokens_that_begin_a_text(shape: tuple) -> None:
    """From the start, a token of the small alphabet is allowed iff some short text begins with it (or a longer one)."""
    expected = texts_of(shape)
    assume(expected)
    grammar = grammar_of(shape)
    allowed = set(grammar.bind(VOCABULARY).matcher().allowed_tokens())
    for token, data in enumerate(TOKENS):
        if data and any(text.encode().startswith(data) for text in expected):
            assert token in allowed
    assert min(len(text) for text in expected) == len(grammar.bind(VOCABULARY).matcher().shortest_completion())


@settings(max_examples=100, deadline=None)
@given(shapes())
def test_a_text_is_found_where_the_search_gives_up(shape: tuple) -> None:
    """Where a search may visit no node, a completion is a text of the language, and is kept to once it was begun."""
    assume(texts_of(shape))
    grammar = grammar_of(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "MAX_SEARCHED", 0)
        patch.setattr(texts, "FEW_SEARCHED", 0)
        matcher = grammar.bind(VOCABULARY).matcher()
        completion = matcher.shortest_completion()
        assert grammar.matches(completion)
        for written in range(len(completion)):
            assert matcher.shortest_length() <= len(completion) - written
            assert matcher.accept_bytes(completion[written : written + 1])


def test_rules_that_lean_on_one_another_are_not_searched_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that hold one another, in any order, with a member that they need: a bounded number of steps."""
    kinds = [f"k{index}" for index in range(6)]
    members = {f"p{index}": {"$ref": f"#/$defs/{kinds[index % 6]}"} for index in range(24)}
    one = {"type": "object", "properties": {**members, "name": {"type": "string"}}, "required": ["name"]}
    schema = {"$defs": dict.fromkeys(kinds, one), "$ref": "#/$defs/k0"}
    asked: list[int] = []
    parts = texts.ShortestTexts._parts

    def counted(self: texts.ShortestTexts, node: int) -> object:
        asked.append(node)
        return parts(self, node)

    monkeypatch.setattr(texts.ShortestTexts, "_parts", counted)
    grammar = Grammar.from_json_schema(schema, property_order="any", whitespace="flexible", additional_properties=False)
    matcher = grammar.bind(BYTES).matcher()
    assert matcher.accept_bytes(b'{"p')
    completion = matcher.shortest_completion()
    assert re.fullmatch(rb'[0-9]":{"name":""},"name":""}', completion)  # there are ten as short
    assert len(asked) < 2 * texts.MAX_SEARCHED


@settings(max_examples=60, deadline=None)
@given(shapes(), st.lists(st.integers(0, 50), min_size=1, max_size=5))
def test_rollback_and_fork_restore_the_state(shape: tuple, choices: list[int]) -> None:
    """Accepting tokens and rolling them back is the identity; a fork keeps its own state."""
    assume(texts_of(shape))
    matcher = grammar_of(shape).bind(VOCABULARY).matcher()
    masks = [matcher.allowed_tokens()]
    for choice in choices:
        allowed = masks[-1]
        if not allowed:
            break
        assert matcher.accept(allowed[choice % len(allowed)])
        masks.append(matcher.allowed_tokens())
    fork, last = matcher.fork(), masks[-1]
    copies = copy.copy(matcher), copy.deepcopy(matcher)
    while len(masks) > 1:
        assert matcher.allowed_tokens() == masks.pop()
        matcher.rollback(1)
    assert [each.allowed_tokens() for each in copies] == [last, last]
    assert matcher.allowed_tokens() == masks[0]
    assert fork.allowed_tokens() == last
    with pytest.raises(ValueError):
        matcher.rollback(1)


def test_what_is_bound_is_not_pickled() -> None:
    """A constraint is shared by its copies; what to pickle instead of one, or of a matcher, is said."""
    constraint = Grammar.literal("a").bind(VOCABULARY)
    assert copy.copy(constraint) is constraint is copy.deepcopy(constraint)
    for bound in (constraint, constraint.matcher()):
        with pytest.raises(TypeError, match="pickle its Grammar"):
            pickle.dumps(bound)


def test_control_tokens_are_not_text() -> None:
    """A control token is allowed only where the grammar names it, never by its spelling."""
    grammar = Grammar.literal("a") + Grammar.special("<go>") + Grammar.literal("b")
    matcher = grammar.bind(VOCABULARY).matcher()
    assert not grammar.matches("a<go>b")
    assert not matcher.accept(CONTROL)
    assert matcher.accept(0)
    assert matcher.allowed_tokens() == [CONTROL]
    assert matcher.forced_bytes() == b""
    assert matcher.accept(CONTROL)
    assert matcher.allowed_tokens() == [1]
    assert matcher.accept(1) and matcher.is_accepting
    assert matcher.allowed_tokens() == [EOS]
    assert matcher.accept(EOS) and matcher.is_finished


def test_end_of_text_finishes() -> None:
    """After an end-of-text token nothing is allowed, and it can be undone."""
    matcher = Grammar.from_regex("a*").bind(VOCABULARY).matcher()
    assert matcher.accept(EOS) and matcher.is_finished
    assert matcher.allowed_tokens() == [] and not matcher.accept(0) and not matcher.accept_bytes(b"a")
    matcher.rollback(1)
    assert not matcher.is_finished and matcher.accept(0)


def test_empty_and_foreign_tokens_are_refused() -> None:
    """Tokens without bytes, ids out of range and negative ids are refused without a change."""
    matcher = Grammar.from_regex("[ab]*").bind(VOCABULARY).matcher()
    for token in (12, -1, 16, 10**6):
        assert not matcher.accept(token)
    assert matcher.allowed_tokens() == [0, 1, 3, 4, 5, 8, 10, 13, 14]


def test_only_integers_are_tokens_and_counts() -> None:
    """A float is no token, and no number of steps."""
    matcher = Grammar.from_regex("[ab]*").bind(VOCABULARY).matcher()
    assert matcher.accept(np.int64(0)) and matcher.accept(0)
    for call in (matcher.accept, matcher.rollback):
        with pytest.raises(TypeError):
            call(0.5)
    matcher.rollback(np.int64(1))
    matcher.rollback(1)


def test_masks_are_not_written_where_there_is_no_room() -> None:
    """What is too short for a mask, or no array at all, is an error, whether the mask is known or not."""
    matcher = Grammar.from_regex("[ab]*").bind(VOCABULARY).matcher()
    for _ in range(2):
        with pytest.raises(DecodingError, match="a mask takes 1 words"):
            matcher.fill_mask(np.zeros(0, np.uint32))
        with pytest.raises(DecodingError):
            matcher.fill_mask(None)  # type: ignore[arg-type]
        assert matcher.allowed_tokens()


@pytest.mark.parametrize("state", [-7, 10**6, 2**31 - 1])
def test_a_state_of_nowhere_is_an_error(state: int) -> None:
    """Every question about a state that the automaton does not have raises IndexError."""
    store = Grammar.from_regex("[ab]*").program.store
    automaton, masks = store.automaton, MaskEngine(store, VOCABULARY, 2**20).masks
    out = np.zeros(1, np.uint32)
    for ask in (automaton.accepts, automaton.thread_count, automaton.threads, automaton.open_threads):
        with pytest.raises(IndexError):
            ask(state)
    for call in (
        lambda: automaton.advance(state, b"a"),
        lambda: automaton.step(state, 97),
        lambda: automaton.resolve(state, {}),
        lambda: automaton.advance_special(state, 0),
        lambda: automaton.forced(state, 9),
        lambda: masks.fill(state, out),
    ):
        with pytest.raises(IndexError):
            call()
    assert not masks.fill_known(state, out) and not masks.is_settled(state)
    with pytest.raises(ValueError, match="not a byte"):
        automaton.step(0, 256)


def test_mask_words_beyond_the_vocabulary_are_cleared() -> None:
    """A longer buffer (a model's padded output layer) is cleared beyond the vocabulary."""
    out = np.full(4, 0xFFFFFFFF, dtype=np.uint32)
    Grammar.literal("a").bind(VOCABULARY).matcher().fill_mask(out)
    assert out.tolist() == [1, 0, 0, 0]


def test_mask_memory_is_bounded() -> None:
    """Under a small memory bound masks are forgotten, and are the same when they come back."""
    grammar = Grammar.from_regex("(a|b|,){0,60}")
    wide = grammar.bind(VOCABULARY)
    from toolgrammar.core.masks import Constraint

    narrow = Constraint(grammar.program, VOCABULARY, lambda: grammar.program, mask_memory=2_000)
    one, two = wide.matcher(), narrow.matcher()
    for _ in range(3):
        for _ in range(30):
            assert one.allowed_tokens() == two.allowed_tokens()
            assert one.accept(0) and two.accept(0)
        one.rollback(30)
        two.rollback(30)
    assert narrow.counters()["mask_flushes"] > 0
    assert narrow.counters()["mask_bytes"] < 4_000


def test_a_matcher_can_be_referred_to_weakly() -> None:
    """A weak reference finds a matcher as long as somebody holds it, as with any class of Python."""
    matcher = Grammar.json().bind(Vocabulary([b"1", None], eos=[1])).matcher()
    reference = weakref.ref(matcher)
    assert reference() is matcher
    del matcher
    gc.collect()
    assert reference() is None
