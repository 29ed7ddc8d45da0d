"""Recursive rules of any shape, against an Earley parser written here; ambiguity; and what rules share."""

from __future__ import annotations

import itertools
import random

import pytest

from toolgrammar.core import Grammar, GrammarError, Vocabulary
from toolgrammar.core.automaton import states
from toolgrammar.core.grammar.sampling import random_text

#: A rule's name, an alternative of it, how much of it is read, and where it began.
Item = tuple[str, tuple[str, ...], int, int]
Bodies = dict[str, list[list[str]]]

ALPHABET = "ab"
TEXTS = ["".join(chars) for size in range(5) for chars in itertools.product(ALPHABET, repeat=size)]


def drawn(draw: random.Random) -> Bodies:
    """Draw rules: alternatives of characters and names, many of them left-recursive or empty."""
    names = ["root", *"xyz"[: draw.randrange(4)]]
    symbols = [*names, "a", "b"]
    return {
        name: [[draw.choice(symbols) for _ in range(draw.choice([0, 1, 2, 2, 3]))] for _ in range(draw.randrange(1, 4))]
        for name in names
    }


def source(bodies: Bodies) -> str:
    """Return rules as text."""

    def written(items: list[str]) -> str:
        return " ".join(item if item in bodies else f'"{item}"' for item in items) or '""'

    return "\n".join(f"{name} ::= {' | '.join(map(written, body))}" for name, body in bodies.items())


def earley(bodies: Bodies, text: str) -> bool:
    """Return True if a text is one of the first rule (Earley 1970; empty rules as Aycock and Horspool have them)."""
    empty: set[str] = set()
    while more := {name for name, body in bodies.items() if any(empty.issuperset(items) for items in body)} - empty:
        empty |= more
    states: list[set[Item]] = [set() for _ in range(len(text) + 1)]
    states[0] = {("root", tuple(items), 0, 0) for items in bodies["root"]}
    for at, state in enumerate(states):
        pending = list(state)

        def add(item: Item, state: set[Item] = state, pending: list[Item] = pending) -> None:
            if item not in state:
                state.add(item)
                pending.append(item)

        while pending:
            name, items, dot, start = pending.pop()
            if dot == len(items):
                for other, parts, place, origin in list(states[start]):
                    if place < len(parts) and parts[place] == name:
                        add((other, parts, place + 1, origin))
            elif items[dot] in bodies:
                for alternative in bodies[items[dot]]:
                    add((items[dot], tuple(alternative), 0, at))
                if items[dot] in empty:
                    add((name, items, dot + 1, start))
            elif at < len(text) and text[at] == items[dot]:
                states[at + 1].add((name, items, dot + 1, start))
    return any(name == "root" and dot == len(items) and not start for name, items, dot, start in states[-1])


@pytest.mark.parametrize("many_threads", [states.MANY_THREADS, 0])
def test_random_rules(many_threads: int, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random rules, left-recursive, empty and ambiguous ones among them, have exactly the texts of an Earley parser,
    also where all readings at the same position are joined."""
    monkeypatch.setattr(states, "MANY_THREADS", many_threads)
    draw = random.Random(11)
    compared, unending, accepted = 0, 0, 0
    for _ in range(1_500 if pytestconfig.getoption("--slow") else 120):
        bodies = drawn(draw)
        expected = {text for text in TEXTS if earley(bodies, text)}
        try:
            grammar = Grammar.from_gbnf(source(bodies))
        except GrammarError as error:
            assert "never ends" in error.message and not expected
            unending += 1
            continue
        assert {text for text in TEXTS if grammar.matches(text)} == expected, source(bodies)
        begun = {text[:size] for text in expected for size in range(len(text) + 1)}
        assert all(grammar.begins(text) for text in begun)
        compared += 1
        accepted += len(expected)
    assert compared > 2 * unending and accepted > 4 * compared


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ('root ::= root "+" root | "1"', ["1", "1+1+1"], ["1+", "+1", ""]),
        ('root ::= t | root "+" t\nt ::= f | t "*" f\nf ::= "1" | "(" root ")"', ["1*1+(1+1)*1"], ["1*(1", "1+*1"]),
        ('root ::= x "a" | "c"\nx ::= y "b"\ny ::= root "d" | ""', ["c", "ba", "cdba", "badba"], ["cd", "a", "bad"]),
        ('root ::= e? root "x" | "y"\ne ::= "" | "z"', ["y", "yx", "zyx", "zzyxx", "zyxx"], ["x", "zy", "zzyx"]),
        ('root ::= ("a" | root){2} | "b"', ["b", "aa", "ab", "bb", "aab", "aaaa"], ["a", ""]),
        ('root ::= root{0,2} "a"', ["a", "aa", "aaa"], ["", "b"]),
    ],
)
def test_left_recursion(text: str, yes: list[str], no: list[str]) -> None:
    """Rules may begin with themselves: directly, in a circle, after parts that can be empty, and inside of others."""
    grammar = Grammar.from_gbnf(text)
    assert [each for each in yes if not grammar.matches(each)] == []
    assert [each for each in no if grammar.matches(each)] == []
    random_text(grammar, random.Random(1))


def test_large_circle() -> None:
    """Sixty rules that begin with each other are solved."""
    names = [f"r{number}" for number in range(60)]
    rules = [f'{name} ::= {" | ".join(f"{other} {chr(34)}a{chr(34)}" for other in names[:3])} | "b"' for name in names]
    rules += [f'{name}x ::= {names[number - 1]}x "c" | {name}' for number, name in enumerate(names)]
    grammar = Grammar.from_gbnf("\n".join(["root ::= r0x", *rules]))
    assert grammar.matches("b") and grammar.matches("baaac") and not grammar.matches("a")


#: Grammars in which a text has exponentially many parses, or beginnings after which different texts must follow.
AMBIGUOUS = {
    "sums": ('root ::= root root | root "+" root | "a"', "a"),
    "threes": ('root ::= "a" | root root | root root root', "a"),
    "fours": ('root ::= "a" | root root | root root root | root root root root | root "b" root', "a"),
    "brackets": ('root ::= "(" root ")" | root root | "()"', "()"),
    "two ends": ('root ::= "a" root "x" | "a" other "y" | "b"\nother ::= "a" root "x" | "a" other "y" | "c"', "a"),
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguity_stays_polynomial(name: str) -> None:
    """Texts with exponentially many parses are read with few threads, and take as many nodes as they are long."""
    source, unit = AMBIGUOUS[name]
    grammar = Grammar.from_gbnf(source)
    program, taken, state = grammar.program, [], grammar.program.start
    for _ in range(4):
        state = program.automaton.advance(state, unit.encode() * 50)
        assert program.automaton.thread_count(state) <= 20
        taken.append(len(program.store.nodes))
    assert taken[3] - taken[2] <= 2 * (taken[1] - taken[0])
    assert grammar.narrowed == ()


def test_sums() -> None:
    """An ambiguous grammar has its texts and no others."""
    grammar = Grammar.from_gbnf(AMBIGUOUS["sums"][0])
    assert grammar.matches("a" * 60) and grammar.matches("a+aa" * 15) and not grammar.matches("a" * 59 + "+")
    two_ends = Grammar.from_gbnf(AMBIGUOUS["two ends"][0])
    assert two_ends.matches("a" * 40 + "b" + "x" * 40) and two_ends.matches("a" * 40 + "c" + "y" + "xy" * 19 + "x")
    assert not two_ends.matches("a" * 40 + "b" + "x" * 39 + "z") and not two_ends.matches("a" * 40 + "b" + "y" * 40)


def test_a_long_token_of_an_ambiguous_text() -> None:
    """A mask does not follow each of the exponentially many readings of a token, and allows what can be read."""
    tokens = [*(b"a" * size for size in range(1, 41)), b"b", b"ab", b"a" * 20 + b"b", None]
    grammar = Grammar.from_gbnf(AMBIGUOUS["threes"][0] + ' | "ab" root')
    matcher = grammar.bind(Vocabulary(tokens, eos=[len(tokens) - 1])).matcher()
    for step in range(12):
        allowed = set(matcher.allowed_tokens())
        for token, data in enumerate(tokens[:-1]):
            assert (token in allowed) == matcher.fork().accept(token) == (data != b"b" or step > 0)
        assert matcher.accept(0)


def test_regular_rules_are_one_atom() -> None:
    """Rules without recursion become one term, so a mask meets one atom instead of one for each character."""
    grammar = Grammar.from_gbnf('root ::= word (" " word){0,9}\nword ::= [a-z]+ ("-" [a-z]+)?')
    program = grammar.program
    (thread,) = program.automaton.threads(program.start)
    assert program.automaton.threads(program.automaton.advance(program.start, b"ab-c d"))[0][1] == thread[1]


def test_identity() -> None:
    """Equal sources are equal grammars, which can be looked up; others are not."""
    one, two = (Grammar.from_gbnf('root ::= "a" root | "b"') for _ in range(2))
    assert one == two and hash(one) == hash(two)
    assert one != Grammar.from_gbnf('root ::= "a" root | "c"') and one != Grammar.from_ebnf('root ::= "a" root | "b"')
    assert repr(one) == 'Grammar.from_gbnf(\'root ::= "a" root | "b"\')'
    assert eval(repr(one)) == one


def test_masks_and_endings() -> None:
    """A text under left-recursive rules is masked and can be finished, token by token."""
    vocabulary = Vocabulary([b"1", b"+", b"1+", b"(", b")", b"1)", b"x", None], eos=[7])
    grammar = Grammar.from_gbnf('root ::= root "+" t | t\nt ::= "1" | "(" root ")"')
    matcher = grammar.bind(vocabulary).matcher()
    assert sorted(matcher.allowed_tokens()) == [0, 2, 3]
    for token in (3, 2, 3, 0):
        assert matcher.accept(token)
    assert sorted(matcher.allowed_tokens()) == [1, 4]
    assert matcher.shortest_completion() == b"))"
    part = Grammar.literal("<") + grammar + Grammar.literal(">")
    assert part.matches("<1+(1)>") and not part.matches("<1+>")


@pytest.mark.parametrize(
    ("syntax", "text", "message"),
    [
        ("gbnf", 'root ::= "a"{' + "9" * 5_000 + "}", "the number has 5,000 digits"),
        ("ebnf", 'root ::= "a"{' + "9" * 5_000 + "}", "the number has 5,000 digits"),
        ("lark", 'start: "a"~' + "9" * 5_000, "the number has 5,000 digits"),
        ("lark", 'start: "a"{1,' + "9" * 5_000 + "}", "the number has 5,000 digits"),
        ("lark", "start: <[0-99999999999999]>", "depends on the vocabulary"),
        ("lark", "start: <[9-1]>", "ids 9 to 1 are out of range"),
        ("gbnf", 'root ::= "a"' + "*" * 5_000, "more than 100 repetitions"),
        ("gbnf", 'root ::= ("a" root?)' + "+" * 5_000, "more than 100 repetitions"),
        ("gbnf", 'root ::= "\ud800"', "a lone surrogate"),
        ("ebnf", 'root ::= "\udc00"', "a lone surrogate"),
        ("lark", 'start: "\ud800"', "a lone surrogate"),
    ],
)
def test_hostile_texts(syntax: str, text: str, message: str) -> None:
    """Numbers, repetitions and characters that are too much of anything are errors of ours, with a place."""
    with pytest.raises(GrammarError, match=message) as caught:
        Grammar.from_any({"syntax": syntax, "definition": text})
    assert str(caught.value).encode() and caught.value.place.line == 1


def test_many_rules() -> None:
    """Rules that go through thousands of others are read: no depth of rules is a depth of the stack."""
    chain = "\n".join(f'r{n} ::= "a" | "b" r{n + 1}' for n in range(1_500))
    assert Grammar.from_gbnf(f"root ::= r0\n{chain}\nr1500 ::= root").matches("bbba")
    assert Grammar.from_gbnf(f'root ::= r0\n{chain}\nr1500 ::= "c"').matches("b" * 1_500 + "c")


def test_too_many_ways_to_begin_are_named_at_bind() -> None:
    """Where more rules may come first than a state can hold, those left out are named as soon as the grammar is bound."""
    count = 2_100
    optional = " ".join(f"r{number}?" for number in range(count))
    rules = "\n".join(f'r{number} ::= "x" | "({number}" r{number} ")"' for number in range(count))
    grammar = Grammar.from_gbnf(f'root ::= {optional} "!"\n{rules}')
    assert grammar.narrowed == ()
    grammar.bind(Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos=[256]))
    (met,) = grammar.narrowed
    assert "more than 2,048 ways" in str(met) and met.left_out == "what exceeds this limit"
    assert grammar.matches("!") and not grammar.matches("(2099x)!")


def test_samples_of_a_recursive_rule_go_on() -> None:
    """A random text that may end or go on does either about as often, also where there is one way to go on."""
    grammar, source = Grammar.from_ebnf('root ::= root "a" | "b"'), random.Random(1)
    lengths = [len(random_text(grammar, source)) for _ in range(100)]
    assert 30 < lengths.count(1) < 70 and max(lengths) > 4
