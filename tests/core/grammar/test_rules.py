"""`Grammar.rule`: recursive grammars, against brute force over small texts; and what a `Grammar` shows of itself."""

from __future__ import annotations

import gc
import itertools
import random
import re
import weakref
from collections import Counter
from functools import partial

import pytest

from toolgrammar.core import ConstraintCache, Grammar, GrammarError, LimitError, Vocabulary
from toolgrammar.core.testing import ScriptedModel

ALPHABET = "ab"
LONGEST = 6
TEXTS = ["".join(chars) for size in range(LONGEST + 1) for chars in itertools.product(ALPHABET, repeat=size)]
TOKENS: list[bytes | None] = [b"a", b"b", b"ab", b"ba", b"aab", b"c", None]
VOCABULARY = Vocabulary(TOKENS, eos=[len(TOKENS) - 1])
INFINITE = 10**6

Shape = tuple


def nested_lists() -> Grammar:
    """Lists of numbers and lists."""
    value = Grammar.rule("value", lambda: Grammar.from_regex("[0-9]+") | array)
    array = Grammar.literal("[") + value + Grammar.repeat(Grammar.literal(",") + value) + Grammar.literal("]")
    return value


# -- random grammars -------------------------------------------------------------------------------------------------


def drawn(draw: random.Random, rules: int, depth: int = 3) -> Shape:
    """Draw the body of a rule as a tree."""
    kind = draw.choice(
        ["literal", "literal", "regex", "rule", "rule"] + ["sequence", "choice", "repeat", "cases"] * 2 * (depth > 0)
    )
    inner = partial(drawn, draw, rules, depth - 1)
    if kind == "literal":
        return (kind, draw.choice(["", "a", "b", "ab", "ba"]))
    if kind == "regex":
        return (kind, draw.choice(["a*", "[ab]", "(ab)?", "b|aa"]))
    if kind == "rule":
        return (kind, draw.randrange(rules))
    if kind == "repeat":
        least = draw.randrange(2)
        return (kind, inner(), least, draw.choice([None, least, least + 2]))
    if kind == "cases":
        return (kind, {word: inner() for word in draw.sample(["", "a", "b", "ba"], draw.randrange(1, 3))})
    return (kind, [inner() for _ in range(draw.randrange(1, 4))])


def grammar_of(bodies: list[Shape]) -> Grammar:
    """Return the library's grammar of the first rule."""

    def made(shape: Shape) -> Grammar:
        kind, *args = shape
        if kind == "literal":
            return Grammar.literal(args[0])
        if kind == "regex":
            return Grammar.from_regex(args[0])
        if kind == "rule":
            return rules[args[0]]
        if kind == "repeat":
            return Grammar.repeat(made(args[0]), args[1], args[2])
        if kind == "cases":
            return Grammar.cases({word: made(part) for word, part in args[0].items()})
        return (Grammar.sequence if kind == "sequence" else Grammar.choice)(*map(made, args[0]))

    rules = [Grammar.rule(f"r{number}", partial(made, body)) for number, body in enumerate(bodies)]
    return rules[0]


def joined(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """Return all concatenations that are short enough."""
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)


def texts_of(shape: Shape, known: list[frozenset[str]]) -> frozenset[str]:
    """Return the short texts of a tree, given those of the rules."""
    kind, *args = shape
    if kind == "literal":
        return frozenset({args[0]})
    if kind == "regex":
        return frozenset(text for text in TEXTS if re.fullmatch(args[0], text))
    if kind == "rule":
        return known[args[0]]
    if kind == "choice":
        return frozenset().union(*(texts_of(part, known) for part in args[0]))
    if kind == "cases":
        return frozenset().union(*(joined(frozenset({word}), texts_of(part, known)) for word, part in args[0].items()))
    if kind == "sequence":
        result = frozenset({""})
        for part in args[0]:
            result = joined(result, texts_of(part, known))
        return result
    part, least, most = args
    result, power = frozenset(), frozenset({""})
    for count in range(LONGEST + 2 if most is None else most + 1):
        if count >= least:
            result |= power
        power = joined(power, texts_of(part, known))
    return result


def shortest_of(shape: Shape, known: list[int]) -> int:
    """Return the length of the shortest text of a tree, given those of the rules."""
    kind, *args = shape
    if kind == "literal":
        return len(args[0])
    if kind == "regex":
        return min(len(text) for text in TEXTS if re.fullmatch(args[0], text))
    if kind == "rule":
        return known[args[0]]
    if kind == "choice":
        return min(shortest_of(part, known) for part in args[0])
    if kind == "cases":
        return min(len(word) + shortest_of(part, known) for word, part in args[0].items())
    if kind == "sequence":
        return sum(shortest_of(part, known) for part in args[0])
    return args[1] * shortest_of(args[0], known) if args[1] else 0


def first_of(shape: Shape, is_blank: list[bool]) -> set[int]:
    """Return the rules with which a text of a tree may begin."""
    kind, *args = shape
    blank = [frozenset({""}) if each else frozenset() for each in is_blank]
    if kind == "rule":
        return {args[0]}
    if kind == "choice":
        return set().union(*(first_of(part, is_blank) for part in args[0]))
    if kind == "cases":
        return first_of(args[0][""], is_blank) if "" in args[0] else set()
    if kind == "repeat":
        return first_of(args[0], is_blank) if args[2] != 0 else set()
    found: set[int] = set()
    for part in args[0] if kind == "sequence" else ():
        found |= first_of(part, is_blank)
        if "" not in texts_of(part, blank):
            break
    return found


def verdict_of(bodies: list[Shape]) -> tuple[str, list[frozenset[str]]]:
    """Return ``"fine"``, ``"never ends"`` or ``"left-recursive"`` by brute force, and the short texts of each rule."""
    reached, pending = {0}, [0]
    while pending:
        new = {int(number) for number in re.findall(r"'rule', (\d+)", repr(bodies[pending.pop()]))} - reached
        reached |= new
        pending += new
    lengths = [INFINITE] * len(bodies)
    texts = [frozenset[str]()] * len(bodies)
    for _ in range(40):
        lengths = [min(INFINITE, shortest_of(body, lengths)) for body in bodies]
    if any(lengths[number] == INFINITE for number in reached):
        return "never ends", texts
    while (more := [texts_of(body, texts) for body in bodies]) != texts:
        texts = more
    begins = {number: first_of(bodies[number], ["" in each for each in texts]) for number in reached}
    for _ in bodies:
        begins = {number: found.union(*(begins[each] for each in found)) for number, found in begins.items()}
    return ("left-recursive" if any(number in found for number, found in begins.items()) else "fine"), texts


def test_random_grammars_match_brute_force() -> None:
    """Rules match exactly their texts; those that never end or begin with themselves are refused, and no others."""
    draw = random.Random(5)
    seen: Counter[str] = Counter()
    for _ in range(500):
        bodies = [drawn(draw, 3) for _ in range(3)]
        verdict, texts = verdict_of(bodies)
        grammar = grammar_of(bodies)
        seen[verdict] += 1
        if verdict != "fine":
            with pytest.raises(GrammarError, match=rf"rule 'r\d' .*{verdict}"):
                grammar.bind(VOCABULARY)
            continue
        assert {text for text in TEXTS if grammar.matches(text)} == texts[0], bodies
        seen["recursive"] += len(texts[0]) > 8
    assert min(seen[each] for each in ("fine", "never ends", "left-recursive", "recursive")) > 40, seen


def test_random_walks_can_be_finished() -> None:
    """A token is allowed iff it is accepted; completions are texts, and the shortest ones; forks and rollbacks agree."""
    draw = random.Random(8)
    walks = 0
    while walks < 120:
        bodies = [drawn(draw, 3) for _ in range(3)]
        verdict, texts = verdict_of(bodies)
        if verdict != "fine":
            continue
        walks += 1
        grammar = grammar_of(bodies)
        matcher = grammar.bind(VOCABULARY).matcher()
        written = ""
        while len(written) < LONGEST and not matcher.is_finished:
            allowed = set(matcher.allowed_tokens())
            for token in range(len(TOKENS)):
                branch = matcher.fork()
                assert branch.accept(token) == (token in allowed)
            completion = matcher.shortest_completion()
            assert completion is not None
            assert grammar.matches(written + completion.decode())
            known = [len(text) - len(written) for text in texts[0] if text.startswith(written)]
            assert len(completion) == min(known, default=len(completion))
            assert matcher.is_accepting == (written in texts[0])
            token = draw.choice(sorted(allowed))
            data = TOKENS[token]
            before = matcher.fork()
            assert matcher.accept(token)
            matcher.rollback(1)
            assert set(matcher.allowed_tokens()) == set(before.allowed_tokens())
            assert matcher.accept(token)
            written += "" if data is None else data.decode()


# -- single cases ----------------------------------------------------------------------------------------------------


def test_deep_texts() -> None:
    """Nesting has no limit: thousands of levels are matched and completed."""
    value = nested_lists()
    depth = 3_000
    assert value.matches("[" * depth + "1" + "]" * depth)
    assert not value.matches("[" * depth + "1" + "]" * (depth - 1))
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos=[256])
    matcher = value.bind(vocabulary).matcher()
    for byte in b"[" * 500:
        assert matcher.accept(byte)
    assert len(matcher.shortest_completion() or b"") == 501
    branch = matcher.fork()
    assert branch.accept(ord("7"))
    matcher.rollback(499)
    assert matcher.shortest_completion() is not None
    assert len(matcher.shortest_completion() or b"") == 2
    assert len(branch.shortest_completion() or b"") == 500


@pytest.mark.parametrize("budget", [1, 2, 5, 20])
def test_budgets_close_recursion(budget: int) -> None:
    """A model that opens lists for ever still ends within its budget, with a text of the grammar."""
    value = nested_lists()
    answer = ScriptedModel(["[" * 100]).generate("x", grammar=value, max_tokens=budget)
    assert value.matches(answer.text)
    assert answer.usage.completion_tokens <= budget


def test_rules_among_the_other_makers() -> None:
    """Rules work in `distinct`, `cases`, parts of other grammars, JSON texts and control tokens."""
    flag = Grammar.rule("flag", lambda: Grammar.literal("!") | Grammar.literal("<") + flag + Grammar.literal(">"))
    some = Grammar.distinct([flag, Grammar.literal("x"), flag + Grammar.literal("y")], Grammar.literal(","), 1)
    assert some.matches("<<!>>,x,!y")
    assert not some.matches("<<!>,x")
    cases = Grammar.cases({"a": flag, "ab": flag.as_part()})
    assert cases.matches("ab<!>")
    assert not cases.matches("ab<!")
    tree = Grammar.rule(
        "tree", lambda: Grammar.json() + Grammar.repeat(Grammar.literal("(") + tree + Grammar.literal(")"))
    )
    assert tree.matches('{"a": 1}(2([3])("x"))')
    special = Grammar.rule("special", lambda: Grammar.special("<end>") | Grammar.literal("a") + special)
    assert special.specials == {"<end>"}
    lenient = {"type": "object", "propertyNames": {"pattern": "^(?=a)"}, "x": 1, "format": "made-up"}
    schema = Grammar.from_json_schema(lenient, on_unsupported="validate", strict_formats=True)
    nested = Grammar.rule("nested", lambda: schema | Grammar.literal("(") + nested + Grammar.literal(")"))
    assert schema.unenforced
    assert nested.unenforced == schema.unenforced


def test_definitions_are_called_once_and_when_needed() -> None:
    """A definition may use what is assigned after the rule; it is called at first use, and never again."""
    calls: list[int] = []

    def define() -> Grammar:
        calls.append(1)
        return Grammar.literal("a") + Grammar.repeat(rule, 0, 1) + later

    rule = Grammar.rule("rule", define)
    outer = rule | Grammar.literal("z")
    assert calls == []
    later = Grammar.literal("b")
    assert outer.matches("aabb")
    assert outer.matches("z")
    assert hash(outer) != hash(rule)
    assert calls == [1]


def test_a_function_that_makes_its_own_rule() -> None:
    """A function may make a rule of itself; one that makes other rules without end is refused."""

    def group() -> Grammar:
        return Grammar.literal("(") + Grammar.repeat(Grammar.rule("group", group)) + Grammar.literal(")")

    assert group().matches("(()(()))")
    assert not group().matches("(()(())")

    def endless() -> Grammar:
        return Grammar.literal("(") + Grammar.repeat(Grammar.rule("inner", lambda: endless())) + Grammar.literal(")")

    with pytest.raises(LimitError, match="'inner'"):
        endless().matches("()")


def test_refusals_name_the_rule() -> None:
    """What is undefined, no grammar, never-ending or left-recursive is refused at bind, with the rule's name."""
    undefined = Grammar.rule("first", lambda: nowhere)  # type: ignore[name-defined] # noqa: F821
    with pytest.raises(GrammarError, match="'first' is not defined"):
        (Grammar.literal("a") | undefined).bind(VOCABULARY)
    nothing = Grammar.rule("second", lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(GrammarError, match="'second' returns None"):
        nothing.check()
    with pytest.raises(GrammarError, match="'third' is not callable"):
        Grammar.rule("third", Grammar.literal("a"))  # type: ignore[arg-type]
    loop = Grammar.rule("loop", lambda: Grammar.literal("a") + loop)
    with pytest.raises(GrammarError, match="'loop' never ends"):
        (Grammar.literal("a") | loop).bind(VOCABULARY)  # also where it could be left out
    lists = Grammar.rule("lists", lambda: (items | Grammar.literal("")) + Grammar.literal(","))
    items = Grammar.rule("items", lambda: Grammar.repeat(Grammar.literal(" ")) + lists)
    with pytest.raises(GrammarError, match=r"'lists' is left-recursive.*through 'items'"):
        lists.bind(VOCABULARY)
    same = Grammar.rule("same", lambda: same)
    with pytest.raises(GrammarError, match="'same' never ends"):
        same.bind(VOCABULARY)


def test_equal_recursive_grammars() -> None:
    """Recursive grammars are equal if they are written in the same way, also in a cache; different ones are not."""

    def pairs(open_: str, close: str) -> Grammar:
        rule = Grammar.rule("pair", lambda: Grammar.literal(open_) + Grammar.repeat(rule) + Grammar.literal(close))
        return rule

    assert pairs("a", "b") == pairs("a", "b")
    assert len({pairs("a", "b"), pairs("a", "b"), pairs("b", "a")}) == 2
    assert pairs("a", "b") != Grammar.literal("ab")
    cache = ConstraintCache()
    assert cache.bind(pairs("a", "b"), VOCABULARY) is cache.bind(pairs("a", "b"), VOCABULARY)
    assert cache.bind(pairs("a", "b"), VOCABULARY) is not cache.bind(pairs("b", "a"), VOCABULARY)


def test_recursive_grammars_are_freed() -> None:
    """A recursive grammar refers to itself; the garbage collector takes it, and its automaton."""
    value = nested_lists()
    assert value.matches("[1]")
    seen = weakref.ref(value)
    del value
    gc.collect()
    assert seen() is None


# -- representations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar.literal('a"\n'),
        Grammar.literal(b"\xff"),
        Grammar.from_regex(r"[a-z]+\d"),
        Grammar.text(excluding=["a", "b"], min_chars=2),
        Grammar.text(),
        Grammar.until("stop", excluding=["a"]),
        Grammar.special("<end>"),
        Grammar.cases({"a": Grammar.literal("1"), "b": Grammar.json()}),
        Grammar.distinct([Grammar.literal("1"), Grammar.literal("2")], Grammar.literal(","), 1),
        Grammar.distinct([Grammar.literal("1"), Grammar.literal("2")], Grammar.literal(","), 0, 1),
        Grammar.repeat(Grammar.literal("a")) | Grammar.repeat(Grammar.literal("b"), 2) + Grammar.repeat(Grammar.json(), 0, 3),
        Grammar.from_json_schema({"type": "string", "maxLength": 3}, whitespace="compact", additional_properties=False),
    ],
    ids=repr,
)  # fmt: skip
def test_representations_evaluate_back(grammar: Grammar) -> None:
    """The representation is the source of an equal grammar."""
    assert eval(repr(grammar)) == grammar


def test_representations_are_bounded() -> None:
    """Large and recursive grammars have short representations; making one calls no definition."""
    large = Grammar.choice(*(Grammar.literal(f"word {number}") for number in range(5_000)))
    assert len(repr(large)) <= 400
    assert repr(large).startswith("Grammar.choice(Grammar.literal('word 0'), ")
    rule = Grammar.rule("rule", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert (
        repr(Grammar.literal("a") + rule) == "Grammar.sequence(Grammar.literal('a'), Grammar.rule('rule', lambda: ...))"
    )


def test_representations_of_what_is_bound() -> None:
    """A constraint shows its vocabulary and size, a matcher how far its text has come."""
    constraint = Grammar.literal("aab").bind(VOCABULARY)
    assert repr(VOCABULARY) in repr(constraint)
    matcher = constraint.matcher()
    assert matcher.accept(4)
    assert repr(matcher) == "Matcher(steps=1, ends_with=b'aab', is_finished=True)"
