"""Nodes: one number for equal languages, heads that cover a language, and searches that no depth stops."""

from __future__ import annotations

import contextlib

import pytest

from toolgrammar.core import Grammar
from toolgrammar.core.errors import GrammarError, LimitError
from toolgrammar.core.language.node_kinds import ALT, LITERAL, REPEAT, SEQ, UNASKED, WORDS
from toolgrammar.core.language.nodes import Nodes

DEPTH = 100_000


def texts(nodes: Nodes, node: int, longest: int) -> set[bytes]:
    """The texts of a node made of literals, as its heads say."""
    found = {b""} if nodes.nullable(node) else set()
    for atom, rest in nodes.heads(node):
        (data,) = nodes.args(atom)
        if len(data) <= longest:
            found |= {data + more for more in texts(nodes, rest, longest - len(data))}
    return found


def test_equal_nodes_are_one() -> None:
    """What is built twice, in whatever way, is the same number, also after the store has grown."""

    def build(number: int) -> list[int]:
        a, b = nodes.literal(b"a%d" % number), nodes.special(f"b{number}")
        pair = nodes.seq(b, nodes.seq(a, b))
        words = {b"x%d" % number: a, b"xy%d" % number: b, b"z": nodes.EPSILON}
        return [
            pair, nodes.seq(nodes.seq(b, a), b), nodes.alt([a, b, a]), nodes.alt([nodes.alt([a]), b]),
            nodes.repeat(a, number, None), nodes.words(words), nodes.words(reversed(words.items())),
            nodes.counted(number, number + 1), nodes.sequence([b, a, b]),
        ]  # fmt: skip

    nodes = Nodes()
    made = [build(number) for number in range(1, 300)]
    size = len(nodes)
    assert [build(number) for number in range(1, 300)] == made
    assert len(nodes) == size
    assert all(each[0] == each[1] == each[8] and each[2] == each[3] and each[5] == each[6] for each in made)
    assert len({node for each in made for node in each}) == 299 * 5


def test_what_a_node_was_made_of() -> None:
    """A node gives back its kind and its arguments."""
    nodes = Nodes()
    a, b = nodes.literal(b"a"), nodes.special("b")
    assert (nodes.kind(a), nodes.args(a), nodes.args(b)) == (LITERAL, (b"a",), ("b",))
    assert [nodes.kind(nodes.seq(b, a)), nodes.args(nodes.seq(b, a))] == [SEQ, (b, a)]
    assert [nodes.kind(nodes.alt([b, a])), nodes.args(nodes.alt([b, a]))] == [ALT, (b, a)]
    repeated = nodes.repeat(a, 2, None)
    assert [nodes.kind(repeated), nodes.args(repeated), nodes.args(nodes.repeat(a, 0, 3))] == [
        REPEAT,
        (a, 2, None),
        (a, 0, 3),
    ]
    words = nodes.words({b"b": a, b"a": b})
    assert [nodes.kind(words), nodes.args(words)] == [WORDS, (((b"a", b), (b"b", a)), 0)]
    with pytest.raises(IndexError):
        nodes.seq(len(nodes), a)


def test_bounds_that_no_text_reaches() -> None:
    """Bounds larger than any integer of the machine are no bounds."""
    nodes = Nodes()
    a = nodes.literal(b"a")
    assert nodes.repeat(a, 0, 10**30) == nodes.repeat(a, 0, None)
    assert nodes.counted(3, 10**30) == nodes.counted(3, None)
    assert nodes.repeat(a, 10**30, 10**29) == nodes.EMPTY == nodes.counted(10**30, 10**29)
    assert texts(nodes, nodes.repeat(a, 10**30, None), 9) == set()


@pytest.mark.parametrize("end", [b"", b"!"])
def test_words_that_begin_others(end: bytes) -> None:
    """A word may end where another goes on, whatever follows."""
    nodes = Nodes()
    words = [b"1", b"12", b"123", b"13", b"2", b"204", b"205"]
    last = nodes.literal(end)
    assert texts(nodes, nodes.words(dict.fromkeys(words, last)), 9) == {word + end for word in words}
    node = nodes.seq(nodes.words(dict.fromkeys(words, nodes.EPSILON)), last)
    assert texts(nodes, node, 9) == {word + end for word in words}
    optional = nodes.words({b"1": nodes.repeat(nodes.literal(b"y"), 0, 1), b"12": nodes.EMPTY, b"13": nodes.EPSILON})
    assert texts(nodes, nodes.seq(optional, last), 9) == {word + end for word in (b"1", b"1y", b"13")}


def test_a_number_that_begins_another_is_a_value() -> None:
    """An enumeration of 1 and 12 holds 1."""
    grammar = Grammar.from_json_schema({"enum": [1, 12]}, whitespace="single")
    assert [text for text in ("1", "12", "2") if grammar.matches(text)] == ["1", "12"]


def test_rules_that_begin_with_themselves() -> None:
    """Such a rule may hold the empty text and other texts; to ask what it begins with is an error, each time."""
    nodes = Nodes()
    a = nodes.literal(b"a")
    rule = nodes.lazy("rule", lambda: nodes.alt([nodes.seq(nodes.lazy("rule", lambda: 0), a), nodes.EPSILON]))
    assert nodes.nullable(rule) and not nodes.is_empty(rule)
    for _ in range(2):
        with pytest.raises(GrammarError, match="refers to itself"):
            nodes.heads(rule)
    assert nodes.heads(nodes.seq(a, rule)) == ((a, rule),)


def test_what_leaned_on_a_rule_in_progress_is_asked_again() -> None:
    """A rule that looked empty only because another was in progress is not taken for empty."""
    nodes = Nodes()
    a = nodes.literal(b"a")
    inner = nodes.lazy("inner", lambda: nodes.seq(a, nodes.lazy("outer", lambda: 0)))
    outer = nodes.lazy("outer", lambda: nodes.alt([nodes.seq(inner, inner), a]))
    assert not nodes.is_empty(outer) and not nodes.is_empty(inner)


def test_an_expansion_may_ask() -> None:
    """A rule may ask about other nodes while a search that it interrupts has them in progress."""
    nodes = Nodes()
    a = nodes.literal(b"a")
    seen: list[bool] = []
    shared = nodes.seq(a, nodes.lazy("asks", lambda: asks()))

    def asks() -> int:
        other = nodes.lazy("other", lambda: nodes.alt([nodes.seq(a, nodes.lazy("other", lambda: 0)), a]))
        seen.append(nodes.is_empty(nodes.seq(other, a)))
        return nodes.alt([nodes.seq(a, shared), a])

    assert not nodes.is_empty(shared)
    assert seen == [False]


def test_an_error_leaves_no_search_behind() -> None:
    """After a rule has failed, the nodes that were in progress can be asked about again."""
    nodes = Nodes()
    fail = [True]

    def expand() -> int:
        if fail:
            raise GrammarError("not now")
        return nodes.EPSILON

    node = nodes.seq(nodes.special("b"), nodes.alt([nodes.lazy("fails", expand), nodes.EMPTY]))
    for question in (nodes.is_empty, nodes.heads):
        with pytest.raises(GrammarError, match="not now"):
            question(node)
    fail.clear()
    assert not nodes.is_empty(node) and len(nodes.heads(node)) == 1


def test_no_depth_stops_a_search() -> None:
    """Chains of very many nodes are built and looked through."""
    nodes = Nodes()
    optional = nodes.repeat(nodes.literal(b"a"), 0, 1)
    spine = nodes.EPSILON
    for number in range(DEPTH):
        spine = nodes.seq(optional if number % 2 else nodes.repeat(nodes.literal(b"b"), 0, 1), spine)
    assert nodes.nullable(spine) and not nodes.is_empty(spine)
    tail = nodes.literal(b"z")
    assert nodes.seq(nodes.seq(optional, tail), tail) == nodes.sequence([optional, nodes.literal(b"zz")])

    def rule(number: int) -> int:
        if number == 0:
            return nodes.special("end")
        return nodes.lazy(number, lambda: nodes.seq(rule(number - 1), optional))

    first = rule(2_000)
    assert [nodes.args(atom) for atom, _ in nodes.heads(first)[:1]] == [("end",)]
    assert not nodes.is_empty(first) and not nodes.nullable(first)


@pytest.mark.parametrize("shape", ["seq", "words", "lazy"])
def test_a_full_store_leaves_no_trace_on_the_stack(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the limit strikes, questions that come after it are answered as before."""
    for room in range(12, 60):
        monkeypatch.setattr("toolgrammar.core.language.node_kinds.MAX_NODES", room)
        nodes = Nodes()
        text = nodes.literal(b"x")
        known: list[int] = []

        def deep(nodes: Nodes = nodes, text: int = text, known: list[int] = known) -> int:
            known.append(text)
            parts = [nodes.special(str(number)) for number in range(5)]
            left = nodes.sequence([nodes.special("a"), nodes.special("b"), nodes.special("c")])
            if shape == "words":
                listed = nodes.words({b"ab%d" % number: part for number, part in enumerate(parts)})
                return nodes.seq(nodes.alt([left, listed]), nodes.repeat(nodes.alt(parts), 1, 9))
            return nodes.seq(nodes.seq(nodes.alt([left, nodes.seq(left, left)]), left), nodes.alt(parts))

        node = (
            nodes.alt([nodes.lazy("rule", deep), nodes.special("z")]) if shape == "lazy" else nodes.lazy("rule", deep)
        )
        for _ in range(3):
            with contextlib.suppress(LimitError):
                for ask in (nodes.is_empty, nodes.nullable, nodes.heads):
                    ask(node)
                for _, rest in nodes.heads(node):
                    nodes.heads(rest)
            assert not nodes.is_empty(text) and not nodes.nullable(text) and nodes.heads(text)
        assert known


def test_a_node_of_nowhere_is_an_error() -> None:
    """What a rule is as empty as must be a node, and words are bytes."""
    nodes = Nodes()
    for node in (-1, 10**6):
        with pytest.raises(IndexError):
            nodes.lazy(("rule", node), lambda: nodes.EMPTY, as_empty_as=node)
    with pytest.raises((TypeError, AttributeError)):
        nodes.heads(nodes.words({"a": nodes.special("x"), "b": nodes.special("y")}))  # type: ignore[dict-item]


def test_rules_of_one_family() -> None:
    """Rules of one family are expanded one by one, each with its own number, and are empty as their witnesses say: each
    witness is asked for once, and not before; with none that is within the limits, the rule itself tells."""
    nodes = Nodes()
    asked: list[int] = []
    witnessed: list[int] = []

    class Family:
        def __call__(self, number: int) -> int:
            asked.append(number)
            return nodes.literal(b"abcd"[number : number + 1])

        def as_empty_as(self, number: int) -> int:
            witnessed.append(number)
            if number == 3:
                raise LimitError("too large")
            return nodes.EPSILON

    first, second, void, large, unread = nodes.lazy_each(
        Family(), [0, 2, 1, 3, 0], [UNASKED, -1, nodes.EMPTY, UNASKED, UNASKED]
    )
    assert witnessed == []
    assert not nodes.is_empty(first) and nodes.is_empty(void) and asked == []
    assert nodes.expand(unread) == nodes.literal(b"a") and asked.pop() == 0
    assert not nodes.is_empty(large) and asked.pop() == 3
    assert not nodes.is_empty(second) and asked == [2]
    assert nodes.heads(nodes.seq(second, first)) == ((nodes.literal(b"c"), first),)
    assert nodes.expand(first) == nodes.literal(b"a") and nodes.expand(first) == nodes.literal(b"a")
    assert asked == [2, 0] and witnessed == [0, 3]
