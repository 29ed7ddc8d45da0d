"""`Grammar.from_ebnf`, also by the name `from_gbnf`: syntax, errors, and the peers that define the two dialects."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from toolgrammar.core import Grammar, GrammarError, Vocabulary
from toolgrammar.core.grammar.sampling import random_text

from .peers import in_llguidance, in_xgrammar, llguidance

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= "" | " " | "\n" [ \t]{0,20}
"""

#: Grammars that both dialects read alike.
SHARED = [
    'root ::= "a" | "b" "c"',
    'root ::= ("a" | "b")+ "c"?',
    "root ::= [a-c]{2,4} [^a-c]",
    'root ::= "x"{3} "y"{2,}',
    'root ::= "(" root ")" | ""',
    'root ::= x "," x\nx ::= [0-9]+ ("." [0-9]*)?',
    'root ::= "\\x41\\u00e9\\U0001F600" [\\x30-\\x39\\t\\]]',
    "root ::= [-a] [a-] [a\\-z]",
    'root ::= ("a" ("b" ("c" | "d")*)?)+',
    "# a comment\nroot ::= a # another\na ::= [é-ü]+\n\n",
    'root ::= expr\nexpr ::= term ([-+*/] term)*\nterm ::= [0-9]+ | "(" expr ")"',
    'root ::= list\nlist ::= "- " item ("\\n- " item)*\nitem ::= [^\\n]{1,20}',
    'root ::=\n  (\n "a"\n | "b"\n  )\n',
    'root ::= "a" |\n  "b" |\n  "c"',
]


def both(text: str) -> tuple[Grammar, Grammar]:
    """Return a grammar as each dialect reads it."""
    return Grammar.from_gbnf(text), Grammar.from_ebnf(text)


def mutated(draw: random.Random, text: str) -> str:
    """Return a text with one change."""
    at = draw.randrange(len(text) + 1)
    return (
        text[:at]
        + draw.choice(["", "a", "b", "0", "(", ")", ",", " ", "é", "-", '"', "\n"])
        + text[at + draw.randrange(2) :]
    )


def in_converted(text: str) -> Callable[[str], bool]:
    """Return what llguidance accepts of a grammar in GBNF."""
    llguidance()
    from llguidance.gbnf_to_lark import gbnf_to_lark

    return in_llguidance(gbnf_to_lark(text))


@pytest.mark.parametrize("peer", [in_xgrammar, in_converted], ids=["xgrammar", "llguidance"])
@pytest.mark.parametrize("text", [*SHARED, JSON], ids=range(len(SHARED) + 1))
def test_as_peers_read_it(text: str, peer: Callable[[str], Callable[[str], bool]]) -> None:
    """Both dialects have the texts that a peer accepts, for random texts and their mutations."""
    if peer is in_converted and ("\\x30" in text or "\\-" in text):
        pytest.skip("llguidance's reader of GBNF does not take these escapes")
    accepts, (gbnf, ebnf), draw = peer(text), both(text), random.Random(7)
    accepted = 0
    for _ in range(25):
        sample = random_text(gbnf, draw, 40)
        for candidate in [sample, *(mutated(draw, sample) for _ in range(5))]:
            ours = gbnf.matches(candidate)
            assert ours == ebnf.matches(candidate) == accepts(candidate), candidate
            accepted += ours
    assert accepted >= 25


def test_json_of_llama_cpp() -> None:
    """The JSON grammar of llama.cpp takes JSON, and is not narrowed."""
    grammar = Grammar.from_gbnf(JSON)
    assert grammar.matches('{"a": [1, -2.5e+3, {"b": "\\u00e9\\n"}], "c": null}') and not grammar.matches("[1]")
    assert not grammar.matches('{"a": 1,}') and grammar.begins('{"a": [[[')
    assert grammar.narrowed == ()


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ('root ::= x "!"\nx[temperature=0.5, capture="it"] ::= [a-z]*', ["!", "abc!"], ["a!!"]),
        ('root ::= "a" x\nx ::= "b" (="c")', ["ab"], ["abc"]),
        ('root.x-y_z ::= ( ) "\\e\\a\\0\\/" ', [], []),
    ],
)
def test_ebnf_only(text: str, yes: list[str], no: list[str]) -> None:
    """xgrammar's options and escapes are read."""
    grammar = Grammar.from_ebnf(text, root=text.partition(" ")[0])
    assert [each for each in yes if not grammar.matches(each)] == []
    assert [each for each in no if grammar.matches(each)] == []


#: The example of vLLM's documentation, as it stands there, and what else one of the two dialects alone has.
UNION = [
    (
        """
    root ::= select_statement

    select_statement ::= "SELECT " column " from " table " where " condition

    column ::= "col_1 " | "col_2 "

    table ::= "table_1 " | "table_2 "

    condition ::= column "= " number

    number ::= "1 " | "2 "
""",
        ["SELECT col_1  from table_2  where col_1 = 1 "],
        ["SELECT col_3  from table_2  where col_1 = 1 "],
    ),
    ('root ::=\n  x.y | "b"\n  | "c"\nx.y ::= "a"', ["a", "b", "c"], ["axa", ""]),
    ('root ::= x.y\nx ::= "a"\ny ::= "b"', ["a.b", "axb"], ["ab"]),
    ('root ::= "a"+ 0x\n0x ::= . | ', ["aa", "a", "ab"], ["b"]),
    ('root ::= Regex "+"\nRegex ::= "a"', ["a+"], ["a", "aa"]),
    ('root ::= "\\x41B" [\\x41-\\x43]*', ["AB", "ABCA"], ["\u041b", "ABD"]),
    ('root ::= "a"\nroot ::= "b"', ["b"], ["a"]),
    ('root ::= <|x|> | "\\e" ("a"+)* "b"?', ["\x1b", "\x1baab"], []),
    ('root ::= "a"{0,-1} x*?\nx[capture] ::= "b" "c"', ["aa", "aabc"], ["b"]),
    ('root ::= "a\n" [^\n]', ["a\nb"], ["a\n\n"]),
    ("root ::= ", [""], ["a"]),
]


@pytest.mark.parametrize("read", [Grammar.from_any, Grammar.from_gbnf, Grammar.from_ebnf], ids=["any", "gbnf", "ebnf"])
@pytest.mark.parametrize(("text", "yes", "no"), UNION, ids=range(len(UNION)))
def test_one_reader_of_both_dialects(read: Callable[[str], Grammar], text: str, yes: list[str], no: list[str]) -> None:
    """What either dialect has is read wherever a text with `::=` is, and as GBNF where both have it."""
    grammar = read(text)
    assert [each for each in yes if not grammar.matches(each)] == []
    assert [each for each in no if grammar.matches(each)] == []
    assert Grammar.loads(grammar.dumps()) == grammar


def test_gbnf_only() -> None:
    """In GBNF a dot is any character, repetitions can be repeated, and a rule that comes again replaces the first."""
    grammar = Grammar.from_gbnf('root ::= . "a"{2}?\nroot ::= "b" . ("a"+)* \r\n')
    assert grammar.matches("b\naa") and not grammar.matches("xaa")


def test_tokens() -> None:
    """Tokens are given by name, or by ids of a vocabulary."""
    vocabulary = Vocabulary([b"a", b"\xc3", None, None], eos=[3], special={"<|x|>": 2})
    for grammar in (
        Grammar.from_gbnf('root ::= <[2]> "a" <[0]>', vocabulary=vocabulary),
        Grammar.from_gbnf('root ::= <|x|> "a" <[0]>', vocabulary=vocabulary),
        Grammar.from_ebnf('root ::= Token(2) "a" Token(0)', vocabulary=vocabulary),
    ):
        assert grammar.specials == {"<|x|>"}
        matcher = grammar.bind(vocabulary).matcher()
        assert all(matcher.accept(token) for token in (2, 0, 0)) and matcher.is_accepting
    assert Grammar.from_gbnf("root ::= <|x|>").specials == {"<|x|>"}
    with pytest.raises(GrammarError, match="depends on the vocabulary"):
        Grammar.from_gbnf("root ::= <[2]>")
    with pytest.raises(GrammarError, match="part of a character"):
        Grammar.from_gbnf("root ::= <[1]>", vocabulary=vocabulary)


def test_tokens_other_than_some() -> None:
    """``!<token>*`` is text: no control token is written, an excluded token that is text is not in it in any spelling,
    and what is left out is named with its place."""
    vocabulary = Vocabulary([b"a", b"<b>", b"<", b"b", b">", None, None, None], eos=[7], special={"<x>": 5, "<y>": 6})
    named, numbered, textual = (
        Grammar.from_gbnf(text, vocabulary=vocabulary)
        for text in ("root ::= <x> r <x>\nr ::= !<x>*", "root ::= <[5]> !<[5]> * <[5]>", "root ::= <x> !<[1]>+ <x>")
    )
    for grammar, texts in ((named, [[5, 5], [5, 0, 2, 3, 4, 1, 5]]), (numbered, [[5, 5]]), (textual, [[5, 0, 2, 5]])):
        assert grammar.specials == {"<x>"}
        for text in texts:
            matcher = grammar.bind(vocabulary).matcher()
            assert all(matcher.accept(token) for token in text) and matcher.is_accepting and not matcher.accept(0)
        assert Grammar.loads(grammar.dumps()) == grammar
        assert Grammar.loads(grammar.dumps()).narrowed[0].place == grammar.narrowed[0].place
    matcher = textual.bind(vocabulary).matcher()
    assert matcher.accept(5) and sorted(matcher.allowed_tokens()) == [0, 2, 3, 4]
    assert matcher.accept(2) and matcher.accept(3) and 4 not in matcher.allowed_tokens()
    assert "contain '<b>'" in str(textual.narrowed[0].left_out) and "contain" not in str(named.narrowed[0].left_out)
    assert (named.narrowed[0].place.line, named.narrowed[0].place.column) == (2, 7)


def test_tokens_other_than_some_as_llama_reads_them() -> None:
    """Every sequence of tokens that is written under ``!<token>*`` is one without that token, as llama.cpp asks."""
    vocabulary = Vocabulary(
        [*(bytes([byte]) for byte in range(256)), b"ab", b"<b>", None, None, None],
        eos=[260],
        special={"<x>": 258, "<y>": 259},
    )
    bound = Grammar.from_gbnf("root ::= !<x>* <x> !<[257]>+", vocabulary=vocabulary).bind(vocabulary)
    for seed in range(100):
        rng, matcher, written = random.Random(seed), bound.matcher(), [[]]
        while len(written[0]) + len(written[-1]) < 40 and not (matcher.is_accepting and rng.random() < 0.1):
            allowed = [token for token in matcher.allowed_tokens() if token != 260]
            token = 258 if 258 in allowed and rng.random() < 0.1 else rng.choice(allowed)
            assert matcher.accept(token)
            written += [[]] if token == 258 else []
            written[-1] += [token] if token != 258 else []
        assert 259 not in written[0] + written[-1] and len(written) <= 2
        assert len(written) == 1 or 257 not in written[1]


@pytest.mark.parametrize(
    ("dialect", "text", "line", "column", "message"),
    [
        ("gbnf", 'root ::= "a" |\n  "b', 2, 3, "the string is not closed"),
        ("gbnf", 'root ::= x\ny ::= "a"', 1, 10, "rule 'x' is not defined"),
        ("gbnf", 'root ::= * "a"', 1, 10, "something to repeat"),
        ("gbnf", 'root ::= "a" )', 1, 14, "expected a rule: name ::= ..."),
        ("gbnf", 'root ::= ("a"\n', 2, 1, "expected ')'"),
        ("gbnf", 'root ::= "\\q"', 1, 11, "expected an escape"),
        ("gbnf", "root ::= [z-a]", 1, 11, "is empty"),
        ("gbnf", 'root ::= "a"{3,2}', 1, 13, "minimum 3 is greater"),
        ("gbnf", 'rot ::= "a"', 1, 12, "expected a rule 'root'"),
        ("gbnf", 'root = "a"', 1, 5, "expected a rule: name ::= ..."),
        ("gbnf", "root ::= !<|x|>", 1, 10, "a single token of many"),
        ("gbnf", "root ::= !<|x|>{3}", 1, 10, "a single token of many"),
        ("gbnf", "root ::= !x*", 1, 11, "expected a token"),
        ("gbnf", "root ::= !<[2]>*", 1, 10, "depends on the vocabulary"),
        ("ebnf", 'root ::= x y ::= "a"', 1, 12, "does not begin its line"),
        ("ebnf", "root ::= [a\n", 1, 10, "the character class is not closed"),
        ("ebnf", "root ::= [\\d]", 1, 11, "expected an escape"),
        ("ebnf", 'root ::=\nx ::= "a"', 2, 1, "expected what the rule is"),
        ("ebnf", "root ::= ExcludeToken(1)", 1, 10, "the macro ExcludeToken is not read"),
        ("ebnf", 'root ::= "a" Regex("b+")', 1, 14, "the macro Regex is not read"),
        ("ebnf", 'root ::= TagDispatch(("<a>", x))\nx ::= "1"', 1, 10, "the macro TagDispatch is not read"),
        ("ebnf", "root ::= Token(x)", 1, 10, "by their ids"),
        ("ebnf", "root ::= x\nx[max_tokens=3] ::= [a-z]", 2, 3, "max_tokens"),
        ("ebnf", 'root ::= x\nx[lazy] ::= "a" | "b"', 2, 3, "'lazy' cannot be enforced"),
        ("ebnf", 'root ::= "a"{x}', 1, 14, "least number"),
    ],
)
def test_errors(dialect: str, text: str, line: int, column: int, message: str) -> None:
    """Errors have line and column, show the line with a caret, and say what was expected."""
    read = Grammar.from_gbnf if dialect == "gbnf" else Grammar.from_ebnf
    with pytest.raises(GrammarError, match=message.replace("(", r"\(").replace(")", r"\)")) as caught:
        read(text)
    assert (caught.value.place.line, caught.value.place.column) == (line, column)
    _, shown, caret = caught.value.message.split("\n")[:3]
    assert shown == "".join(text.split("\n")[line - 1 : line]) and caret == " " * (column - 1) + "^"


@pytest.mark.parametrize(
    ("dialect", "text", "hint"),
    [
        ("gbnf", 'root := "x"', "name ::= ..."),
        ("gbnf", 'root = "x"', "name ::= ..."),
        ("gbnf", "root ::= 'x'", "double quotes"),
        ("gbnf", '// x\nroot ::= "x"', "begins with '#'"),
        ("gbnf", 'root ::= "x" // y', "begins with '#'"),
        ("gbnf", "root ::= /x/", "no regular expressions"),
        ("gbnf", 'root ::= "x", "y"', "without a comma"),
        ("gbnf", 'root ::= "x";', "without a ';'"),
        ("ebnf", 'root = "x"', "name ::= ..."),
        ("ebnf", 'root: "x"', "name ::= ..."),
        ("ebnf", "root ::= 'x'", "double quotes"),
        ("ebnf", 'root ::= "x" // y', "begins with '#'"),
        ("lark", 'start = "x"', "name: ..."),
        ("lark", 'start ::= "x"', "name: ..."),
        ("lark", "start: 'x'", "double quotes"),
        ("lark", 'start: "x" ;', "without a ';'"),
    ],
)
def test_the_spelling_of_another_notation_is_named(dialect: str, text: str, hint: str) -> None:
    """What is right in another notation gets a hint at how this one writes it."""
    with pytest.raises(GrammarError) as caught:
        getattr(Grammar, f"from_{dialect}")(text)
    assert hint in (caught.value.hint or "")


def test_rules_without_end() -> None:
    """A grammar whose texts would all be endless is refused."""
    for read in (Grammar.from_gbnf, Grammar.from_ebnf):
        with pytest.raises(GrammarError, match="never ends"):
            read('root ::= "a" root')
