"""`Grammar.from_lark`: syntax, errors, and the two peers that define the dialect: lark itself, and llguidance."""

from __future__ import annotations

import itertools
import random
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from toolgrammar.core import Grammar, GrammarError, InvalidSchemaError, Vocabulary
from toolgrammar.core.grammar.sampling import random_text

from .peers import in_llguidance

#: Grammars that lark, llguidance and this library read alike.
SHARED = {
    "alternatives": 'start: "a" | "b" "c" | ("d" | "e")~2..3\n',
    "arithmetic": """
        start: sum
        ?sum: product | sum "+" product -> add | sum "-" product -> sub
        ?product: atom | product "*" atom | product "/" atom
        ?atom: NUMBER | "-" atom | "(" sum ")"
        NUMBER: /[0-9]+/
        %ignore " "
    """,
    "json": r"""
        start: value
        ?value: object | array | STRING | NUMBER | "true" | "false" | "null"
        array: "[" [value ("," value)*] "]"
        object: "{" [pair ("," pair)*] "}"
        pair: STRING ":" value
        STRING: "\"" /([^"\\\n]|\\["\\nt])*/ "\""
        NUMBER: "-"? /(0|[1-9][0-9]*)/ ("." /[0-9]+/)?
        %ignore /[ \n]+/
    """,
    "sql": """
        start: "SELECT"i columns "FROM"i NAME [where]
        columns: "*" | NAME ("," NAME)*
        where: "WHERE"i condition
        condition: condition "AND"i test | test
        test: NAME "=" INT | NAME "IN"i "(" INT ("," INT)* ")"
        NAME: /t[0-9]/
        INT: /[0-9]+/
        WS: /[ ]+/
        %ignore WS
    """,
    "list": 'start: item ("," item)*\nitem: A | "[" start "]"\nA: "a".."c"+\nWS: " "\n%ignore WS\n',
    "left recursion": 'start: start "," x | x\nx: "a" | "b" "(" start ")"\n',
    "circle of rules": 'start: a\na: b "x" | "1"\nb: a "y" | "2"\n',
    "nesting": 'start: "(" start ")" start | "[" start "]" |\n',
    "optional": 'start: ["a"] "b"? ("c" ["d"])*\n',
    "lines": 'start: (A | B)+ // comment | with a bar\n\n  | C  # another\nA: "1"\nB: "2"\nC: "3" "4"\n',
    "ranges": 'start: LETTER DIGIT~2 | "é".."ü"\nLETTER: "a".."c" | "A".."C"\nDIGIT: "0".."3"\n',
    "folded": 'start: "ab"i | /cd[e-f]/i "G"\n',
    "terminals": 'start: X "," Y\nX: Z+ | "." Z\nY: ("x" | X)~2\nZ: /[0-1]/\n',
    "common": """
        %import common.INT
        %import common (CNAME, WS_INLINE)
        %import common.LETTER -> INITIAL
        %ignore WS_INLINE
        start: INITIAL ":" (CNAME "=" INT ";")+
    """,
    "escapes": r'start: "\"" "\\" "\n" "\u00e9" /\/[\/\]]\./' + "\n",
}


def mutated(draw: random.Random, text: str) -> str:
    """Return a text with one change."""
    at = draw.randrange(len(text) + 1)
    letters = [*text, *'ab01(),[]"+- ;=.']
    return text[:at] + draw.choice(["", draw.choice(letters)]) + text[at + draw.randrange(2) :]


def in_lark(text: str) -> Callable[[str], bool]:
    """Return what lark accepts, which cuts texts into terminals in every way."""
    lark: Any = pytest.importorskip("lark", reason="lark is not installed")
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete", ambiguity="resolve")

    def accepts(candidate: str) -> bool:
        try:
            parser.parse(candidate)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    return accepts


@pytest.mark.parametrize("name", SHARED)
def test_as_lark_reads_it(name: str) -> None:
    """Lark accepts the same texts, for random texts and their mutations; but ignored text never begins a text."""
    text = textwrap.dedent(SHARED[name])
    accepts, grammar, draw = in_lark(text), Grammar.from_lark(text), random.Random(name)
    accepted = refused = 0
    for _ in range(20):
        sample = random_text(grammar, draw, 40)
        for candidate in [sample, *(mutated(draw, sample) for _ in range(6))]:
            if "%ignore" in text:
                assert not grammar.matches(" " + candidate)
                candidate = candidate.lstrip(" \n")
            ours = grammar.matches(candidate)
            assert ours == accepts(candidate), candidate
            accepted, refused = accepted + ours, refused + (not ours)
    assert accepted >= 20 and refused >= 10


@pytest.mark.parametrize("name", SHARED)
def test_as_llguidance_reads_it(name: str) -> None:
    """What llguidance accepts is accepted; and without ambiguous lexing, the other way round."""
    text = textwrap.dedent(SHARED[name])
    accepts, grammar, draw = in_llguidance(text), Grammar.from_lark(text), random.Random(name)
    for _ in range(20):
        sample = random_text(grammar, draw, 40)
        for candidate in [sample, *(mutated(draw, sample) for _ in range(6))]:
            assert grammar.matches(candidate) or not accepts(candidate), candidate
            if name not in ("common", "sql", "list") and not candidate.endswith((" ", "\n")):
                assert grammar.matches(candidate) == accepts(candidate), candidate


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ('start: A\nA: /[ab]+/ & ~"ab" | "c"', ["a", "ba", "c", "abb"], ["ab", "", "cc"]),
        ("start: A\nA: ~/a/+", ["", "b", "aa"], []),
        ('start: A\nA: "a" "b" & /a./', ["ab"], ["ac", "a"]),
        ('start: A+\nA: /a*/ & ~""', ["a", "aaa"], ["", "b"]),
        ('start: r "!"\nr[lazy, temperature=0.5]: /.*/ "x"', ["x!", "abx!"], ["axx!", "x"]),
        ('start: r "!"\nr[suffix="</a>", capture="c"]: /(.|\\n)*/', ["<a></a>!", "</a>!"], ["</a></a>!", "a!"]),
        ('start: %regex {"substring_words": "a  b.. c"}', ["", "a  b", "b..", "c"], ["b.", "a ", "a  c"]),
        ('start: %regex {"substring_chunks": ["ab", "c"]} "!"', ["!", "ab!", "abc!", "c!"], ["b!", "a!"]),
        ('start: "x"{2,3} "y"{,2} "z"{1} | "w"{2,}', ["xxz", "xxxyyz", "ww"], ["xz", "w", "xxyyyz"]),
        ('%llguidance {"allow_initial_skip": true}\n%ignore " "\nstart: "a" "b"', [" a b", "ab "], ["x"]),
        ('%llguidance {}\n!start: "\\ud83d\\ude00"', ["😀"], ["x"]),
        ('start: /a.c/s | /b c/x | /(?i:d)\\d/', ["a\nc", "bc", "D1"], ["b c", "d"]),
        ("%import common (ESCAPED_STRING, C_COMMENT)\nstart: ESCAPED_STRING | C_COMMENT", ['"a\\"b"', "/* * */"],
         ['"a"b"', "/* */ */", '"a\\"']),
    ],
)  # fmt: skip
def test_extensions(text: str, yes: list[str], no: list[str]) -> None:
    """What llguidance adds to Lark, each with texts of it and texts that are not; llguidance agrees."""
    grammar, accepts = Grammar.from_lark(text), None
    try:
        import llguidance  # noqa: F401

        accepts = in_llguidance(text)
    except ImportError:
        pass
    for candidate in [*yes, *no]:
        assert grammar.matches(candidate) == (candidate in yes), candidate
        if accepts is not None and candidate and not candidate.endswith(" "):
            assert accepts(candidate) == (candidate in yes), candidate


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ('start: r "<end>"\nr[stop="<end>"]: /.*/', ["<end>", "a<end>", "a<en<end>"], ["a", "<end><end>", "<end>b"]),
        ('start: r "b"\nr[stop="aa"]: /[a-z]*/', ["b", "xb", "axaxb"], ["ab", "aab", "xab"]),
        ("start: r S\nr[stop=S, capture]: /[a-z0-9]*/\nS: /[0-9]{2}/", ["12", "a12", "a1b12"], ["a1", "a112", "a123"]),
        ('start: r "!"\nr[stop=/,|and/]: /[a-z,]+/', ["ant!", "a!", "and!"], ["a,b!", "band!", "!"]),
        ('start: r "!"\nr[stop=""]: /a*/', ["!", "aa!"], ["b!"]),
        ('start: r "!"\nr[lazy, stop="x"]: "ab" | "abc"', ["ab!", "abc!"], ["abx!", "!"]),
    ],
)  # fmt: skip
def test_stop(text: str, yes: list[str], no: list[str]) -> None:
    """A stop text ends the rule, and is not written; what the stop of the model's turn ends is any text of the rule."""
    grammar = Grammar.from_lark(text)
    assert [candidate for candidate in [*yes, *no] if grammar.matches(candidate)] == yes
    again = Grammar.loads(grammar.dumps())
    assert again == grammar and all(again.matches(candidate) for candidate in yes)


def test_stop_by_its_definition() -> None:
    """A text is stopped iff with some stop text it is the first text of the rule and the stop."""
    grammar = Grammar.from_lark("start: r\nr[stop=/ab|ba?c/]: /[abc]*/")
    whole = re.compile("[abc]*(?:ab|ba?c)")
    for size in range(7):
        for text in map("".join, itertools.product("abc", repeat=size)):
            stopped = [text + stop for stop in ("ab", "bc", "bac")]
            firsts = [all(not whole.fullmatch(end[:n]) for n in range(len(end))) for end in stopped]
            assert grammar.matches(text) == any(firsts), text


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ('start: /[ab]+/ x\nx: %lark {\n start: "foo" | y\n y: "Bar" A?\n A: "!"\n}', ["abfoo", "aBar!"], ["afooa"]),
        ('start: "." %lark { start: "A" "!"\n%ignore " " } "."', [".A !  .", ".A!."], [". A!.", "..", ".A!. "]),
        ('start: a a\na: %lark { start: b\nb: "(" %lark { start: "x"+ } ")" }', ["(x)(xx)"], ["(x)", "((x))"]),
        ('start: "a" "b"\n%ignore " "\n%llguidance {"ignore_once": true}', ["a b", "ab "], ["a  b", "ab  "]),
        ('start: %lark { start: "{" /[}]/ "%ignore" // }\n } "b"\n', ["{}%ignoreb"], ["b"]),
        ('%import common.INT\nstart: INT %lark {\n%import common.INT\nstart: "," INT }', ["1,2"], ["1"]),
    ],
)  # fmt: skip
def test_nested_grammars(text: str, yes: list[str], no: list[str]) -> None:
    """A grammar in braces has names and ignored text of its own."""
    grammar = Grammar.from_lark(text)
    assert [candidate for candidate in [*yes, *no] if grammar.matches(candidate)] == yes


def test_budgets_of_tokens_are_refused() -> None:
    """How many tokens a text has depends on the vocabulary: an error with its place, also in a string."""
    text = "start: r\nr[capture, max_tokens=3]: /a*/"
    with pytest.raises(GrammarError, match="a token budget is not a property of the text") as caught:
        Grammar.from_lark(text)
    assert (caught.value.place.line, caught.value.place.column) == (2, 12)
    with pytest.raises(InvalidSchemaError, match="a token budget is not a property of the text"):
        Grammar.from_json_schema({"type": "string", "x-grammar": {"syntax": "lark", "definition": text}})


def test_json_schema() -> None:
    """``%json`` means what a schema means everywhere; what is narrowed is named."""
    text = 'start: "call " call\ncall: %json {"type": "object", "properties": {"n": {"type": "integer"}},\n'
    text += '  "required": ["n"], "additionalProperties": false}\n%ignore " "\n'
    grammar = Grammar.from_lark(text)
    assert grammar.matches('call {"n": 1} ') and not grammar.matches('call {"n": "1"}')
    assert Grammar.from_lark(text, whitespace="compact") != grammar == Grammar.from_lark(text)
    assert grammar.narrowed == () == grammar.unenforced


def test_tokens() -> None:
    """Tokens by name and by id; a name without a vocabulary is a control token."""
    vocabulary = Vocabulary([b"a", b"\xc3", None, None, b"<b>"], eos=[3], special={"<|x|>": 2})
    for text in ('start: <|x|> "a" <[0,4]>', "start: <[2]> <[0-0]> <[4]>+ | <[2]> <[0-0]>~2 | <|x|> <b>"):
        grammar = Grammar.from_lark(text, vocabulary=vocabulary)
        assert grammar.specials == {"<|x|>"}
        matcher = grammar.bind(vocabulary).matcher()
        assert all(matcher.accept(token) for token in (2, 0, 4)) and matcher.is_accepting
    assert Grammar.from_lark('start: "a" <|x|>').specials == {"<|x|>"}
    with pytest.raises(GrammarError, match="part of a character"):
        Grammar.from_lark("start: <[1]>", vocabulary=vocabulary)


def test_any_tokens() -> None:
    """``<[*]>*`` and ``<[^...]>*`` are text, which is named as narrower; an excluded token is not in it."""
    vocabulary = Vocabulary([b"a", b"<b>", b"<", b"b", b">", None, None], eos=[6], special={"<x>": 5})
    anything = Grammar.from_lark("start: <[*]>* <x>\n")
    assert anything.specials == {"<x>"} and anything.begins("a\n<b>")
    others = Grammar.from_lark("start: <[^1,5]> + <x>", vocabulary=vocabulary)
    assert others.begins("<b") and not others.begins("<b>")
    matcher = others.bind(vocabulary).matcher()
    assert sorted(matcher.allowed_tokens()) == [0, 2, 3, 4] and matcher.accept(0) and matcher.accept(5)
    assert "contain '<b>'" in str(others.narrowed[0].left_out) and len(anything.narrowed) == 1
    assert Grammar.loads(others.dumps()) == others
    with pytest.raises(GrammarError, match="any token cannot be enforced"):
        Grammar.from_lark("start: <[*]>*", on_unsupported="error")


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ('start: a "x"', "'a' is not defined", 1, 8),
        ("start: INT", "'INT' is not defined", 1, 8),
        ('start: "a', "expected '\"' at the end of the string", 1, 8),
        ('start: "a" }', "expected the end of the line", 1, 12),
        ("start: (A\nA: /a/", "expected a name", 2, 2),
        ('start: A\nA: "b" | B\nB: A "c"', "contains itself", 2, 1),
        ('start: A\nA: b\nb: "x"', "cannot contain the rule 'b'", 2, 4),
        ('start: "a"\nstart: "b"', "defined twice", 2, 1),
        ("start: /a*?b/", "lazy repetition", 1, 10),
        ("start: /\\bif/", "word boundary", 1, 9),
        ("start: /(?=a)a/", "pattern is refused", 1, 8),
        ('start: a{"x"}', "templates", 1, 8),
        ('start: a & "b"\na: "b"', "& is only allowed in terminals", 1, 10),
        ('start: ~"b"', "~ is only allowed in terminals", 1, 8),
        ("start: r\nr[greedy]: /.*/", "unknown option 'greedy'", 2, 3),
        ("start: r\nr[stop=/x?/]: /.*/", "may be empty", 2, 2),
        ('start: r\nr[stop="x",suffix="y"]: /.*/', "not both", 2, 22),
        ("start: r\nr[stop=/[ab]*a[ab]{14}/]: /[ab]*/", "states for what a stop", 2, 2),
        ('start: "a" %lark {\nstart: b\n}', "'b' is not defined", 2, 8),
        ('start: "a" %lark {\nb: "b"\n}', "expected a rule 'start'", 3, 2),
        ('start: "a" %lark {\nstart: "b"', "expected '}' at the end of a nested", 2, 11),
        ('start: A\nA: %lark { start: "b" }', "a terminal cannot contain a grammar", 2, 4),
        ("start: " + "%lark { start: " * 30 + '"x"' + "}" * 30, "nested more than 20", 1, None),
        ("start: %lark {\nstart: X\nX: X\n}", "'X' contains itself", 3, 1),
        ('%llguidance {"ignore": true}\nstart: "a"', "unknown option 'ignore'", 1, 12),
        ('%llguidance {"ignore_once": 1}\nstart: "a"', "'ignore_once' is 1", 1, 12),
        ('%llguidance {"allow_invalid_utf8": true}\nstart: "a"', "UTF-8", 1, 12),
        ('start: a::0x1\na::_: "a"', "rules with parameters", 1, 8),
        ("%import python.NAME", "expected common", 1, 9),
        ("%import common.NAME", "expected a terminal of common", 1, 16),
        ("%declare X", "expected a rule, a terminal", 1, 1),
        ('start: %json {"type": "array",}', "expected JSON", 1, 31),
        ('start: "x" %json {"type": "foo"}', "schema is refused", 1, 12),
        ("start: <[5]>", "depends on the vocabulary", 1, 8),
        ("start: <[*]>", "a single token of many", 1, 8),
        ("start: <[^5]>*", "depends on the vocabulary", 1, 8),
        ("start: <[^*]>*", "expected ids", 1, 8),
        ("start: @other", "other grammar files", 1, 8),
        ('start: "b".."a"', "expected a range", 1, 8),
        ('start: "a"~3..2', "minimum 3 is greater", 1, 8),
        ('begin: "a"', "expected a rule 'start'", 1, 11),
        ("start: start", "never ends", None, None),
        ('start: R\nR: ~S\nS: "0123456789"~300', "too large", 2, 4),
    ],
)
def test_errors(text: str, message: str, line: int | None, column: int | None) -> None:
    """Errors say what is wrong, and where."""
    with pytest.raises(GrammarError, match=message) as caught:
        Grammar.from_lark(text)
    place = caught.value.place
    assert place is None or column is None or (place.line, place.column) == (line, column)
    assert (place and place.line) == line


def test_source() -> None:
    """The source of a grammar makes an equal one."""
    grammar = Grammar.from_lark('s: "a"', start="s")
    assert repr(grammar) == "Grammar.from_lark('s: \"a\"', start='s')" and eval(repr(grammar)) == grammar
