"""Patterns of Rust and Python as ECMA-262: the strings that match are the same, judged by Pydantic and by ``re``."""

from __future__ import annotations

import random
import re
import unicodedata
from functools import cache
from typing import Annotated, Any

import pytest
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from toolgrammar.core import Grammar
from toolgrammar.core.errors import PatternError, UnsupportedPatternError
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex import python as python_regex
from toolgrammar.core.regex import rust as rust_regex
from toolgrammar.core.regex.compile import regex_term
from toolgrammar.core.regex.foreign import to_ecma
from toolgrammar.core.regex.parser import parse
from toolgrammar.core.regex.printer import class_text
from toolgrammar.core.regex.syntax import Chars
from toolgrammar.core.schema.pydantic.schema import PydanticJsonSchema
from toolgrammar.core.unicode import casefold
from toolgrammar.core.unicode.charset import CharSet

BOTH = [
    *(r"(?i)abc", r"^a$", r"(?P<x>a)b", r"(?x) a b # c", r"(?s)a.b", r"a.b", r"(?m)^a$", r"^\d{3}$", r"^\w+$", r"^\s$"),
    *(r"^\D$", r"^\W$", r"^\S+$", r"\bab\b", r"a\Bb", r"^[\w.-]+@[\w-]+\.\w+$", r"(?i:a)b", r"(?i)^straße$", r"(?i)ß"),
    *(r"^[^\d\s]+$", r"(?i)^[k-s]$", r"(?i)^[^a]$", r"^[]a]$", r"^[-a]$", r"^[a\-z]$", r"\x41\u0042", r"^(a|b)*c?$"),
    *(r"[^\n]", r"^$", r"", r"\.", r"\/", r"^[\]\[]$", r"(?i)ſ", r"(?i)K", r"(?i)\w", r"(?mi)^A$", r"(a|)b", r"\w*"),
    *(
        r"^\+?[1-9]\d{1,14}$",
        r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
        r"^[\d\s()+-]+$",
        r"^[!-~]+$",
        r"(?ix) A [bc] #x",
        r"a$|^b",
    ),
    *(r"^(?:\w|\s)$", r"(?m)a$", r"$a", r"^.$", r"^a*$"),
]
RUST = [
    *(r"\Aabc\z", r"[[:alpha:]]+", r"^[a-z&&[^b]]$", r"[a-d--b]", r"\p{L}", r"\pL+x", r"^\p{Greek}$", r"^\p{sc=Greek}"),
    *(r"a(?i)b|c", r"^x{ 2 , 3 }$", r"a{2}{3}", r"\u{43}\U00000044", r"(?i)^\p{Lu}$", r"(?i)^\P{Lu}$", r"^[[a-c]x]$"),
    *(r"^[a~~b]$", r"^\x{10FFFF}$", r"^[\p{L}\d_-]+$", r"(?<year>\d+)", r"^[^[:space:]]$", r"(?x)[a b]c"),
]
PYTHON = [
    *(r"\Aabc\Z", r"^(?!ab)[a-c]+$", r"^(?=.*\d)[a-z\d]+$", r"a{,3}b", r"(?<=a)b", r"(?a)^\w+$", r"(?a)^\W$"),
    *(r"(?ai)^[k-s]$", r"^a$\n?", r"(?:a|b)+?c", r"^[^a-z]$", r"^(?#comment)a", r"a(?!b)", r"(?<!a)b$"),
]
POOL = "abcABCxyzXYZ019 _-.@\n\r\té٣ßſKkKsSÉΩωẞ\x85\ufeff\x1c\u2028[]()+~&#,٪İıiI\xa0"
TEXTS = [
    "abc",
    "aBC",
    "abc\n",
    "a\n",
    "\na",
    "a\nb",
    "xa b",
    "123",
    "٣٣٣",
    "a@b.c",
    "STRASSE",
    "STRAßE",
    "straße",
    "xx",
]


def texts(pattern: str) -> list[str]:
    """Texts that may match: of few characters, and like the pattern."""
    draw = random.Random(pattern)
    found = ["".join(draw.choice(POOL) for _ in range(draw.randint(0, 5))) for _ in range(250)]
    plain = re.sub(r"[\\^$?*+(){}\[\]]", "", pattern)
    for _ in range(50 if plain else 0):
        at = draw.randrange(len(plain))
        found.append(plain[:at] + draw.choice(POOL) + plain[at + 1 :])
    return [*found, *TEXTS, *POOL, plain]


@pytest.mark.parametrize(
    ("engine", "pattern"),
    [*(("rust-regex", each) for each in BOTH + RUST), *(("python-re", each) for each in BOTH + PYTHON)],
)
def test_the_same_strings_match(engine: Any, pattern: str) -> None:
    """In ECMA-262 as in Pydantic, with either of its engines."""
    adapter = TypeAdapter(Annotated[str, Field(pattern=pattern)], config=ConfigDict(regex_engine=engine))
    terms = Terms()
    term = regex_term(terms, to_ecma(pattern, "rust" if engine == "rust-regex" else "python"), whole=False)

    def passes(text: str) -> bool:
        try:
            adapter.validate_python(text)
        except ValidationError:
            return False
        return True

    assert [text for text in texts(pattern) if terms.matches(term, text) != passes(text)] == []


def test_flags_of_compiled_patterns_count() -> None:
    """Pydantic's own schema drops them."""
    for flags in (re.IGNORECASE, re.DOTALL, re.MULTILINE, re.VERBOSE, re.ASCII, re.IGNORECASE | re.ASCII):
        pattern = re.compile(r"^k.\w b$", flags)
        grammar = Grammar.from_json_schema(
            TypeAdapter(Annotated[str, Field(pattern=pattern)]).json_schema(schema_generator=PydanticJsonSchema)
        )
        for text in ("kab b", "KAb B", "k\néb", "x\nkab b", "kab b\n", "Kab b", "kéé b", "kabb"):
            found = grammar.matches('"' + text.replace("\n", "\\n") + '"')
            assert found == bool(pattern.search(text)), (flags, text)


@cache
def cased() -> str:
    """Every character that differs from another one in case only."""
    return "".join(map(chr, sorted(casefold._orbits())))


def test_case_is_ignored_as_rust_and_python_ignore_it() -> None:
    """Each cased character has the partners that Pydantic's engine gives it, and none more than Python's ``re``."""
    everything = cased()
    differ = []
    for code, group in [*casefold._orbits().items()][::5]:
        adapter = TypeAdapter(Annotated[str, Field(pattern=f"(?i)\\x{{{code:x}}}")])
        others = "".join(each for each in everything if ord(each) not in group)
        with pytest.raises(ValidationError):
            adapter.validate_python(others)
        for each in group:
            adapter.validate_python(chr(each))
        if set(re.findall(re.escape(chr(code)), everything, re.IGNORECASE)) != set(map(chr, group)):
            differ.append(chr(code))
    assert differ == []


@pytest.mark.parametrize("letter", ["d", "s", "w"])
def test_classes_are_those_of_the_engines(letter: str) -> None:
    """Every character that Python's version of Unicode knows is judged as Rust and Python judge it."""
    known = [code for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]

    def split(charset: CharSet) -> tuple[str, str]:
        members = set(codes(charset))
        return "".join(chr(c) for c in known if c in members), "".join(chr(c) for c in known if c not in members)

    inside, outside = split(python_regex.unicode_class(letter))
    assert re.fullmatch(rf"\{letter}*", inside) and not re.search(rf"\{letter}", outside)
    inside, outside = split(rust_regex.perl_class(letter))
    TypeAdapter(Annotated[str, Field(pattern=rf"\A\{letter}*\z")]).validate_python(inside)
    with pytest.raises(ValidationError):
        TypeAdapter(Annotated[str, Field(pattern=rf"\{letter}")]).validate_python(outside)


def codes(charset: CharSet) -> list[int]:
    """The members of a set."""
    return [code for low, high in charset.ranges for code in range(low, high + 1)]


@pytest.mark.parametrize(
    ("syntax", "pattern", "kind"),
    [
        ("python", r"(a)\1", UnsupportedPatternError),
        ("python", r"(?P<x>a)(?P=x)", UnsupportedPatternError),
        ("python", r"(a)?(?(1)b|c)", UnsupportedPatternError),
        ("python", r"(a", PatternError),
        ("rust", r"\b{start}a", UnsupportedPatternError),
        ("rust", r"(?R)a$", UnsupportedPatternError),
        ("rust", r"(?=a)", PatternError),
        ("rust", r"a)", PatternError),
        ("rust", r"[a", PatternError),
        ("rust", r"[a-", PatternError),
        ("rust", r"\h", PatternError),
        ("rust", r"*a", PatternError),
        ("rust", r"\p{nonsense}", PatternError),
    ],
)
def test_what_is_not_read_is_refused_by_name(syntax: Any, pattern: str, kind: type[PatternError]) -> None:
    """Well-formed and not supported, or malformed: the type says which, and the message names the pattern."""
    with pytest.raises(PatternError) as caught:
        to_ecma(pattern, syntax)
    assert type(caught.value) is kind
    assert repr(pattern) in caught.value.message and caught.value.hint


@pytest.mark.skipif("sys.version_info < (3, 11)", reason="Python 3.10 has no atomic groups")
@pytest.mark.parametrize("pattern", ["a++b", "(?>a|ab)c"])
def test_what_gives_nothing_back_is_refused(pattern: str) -> None:
    """Atomic groups and possessive repetition change what matches."""
    with pytest.raises(UnsupportedPatternError):
        to_ecma(pattern, "python")


def test_classes_are_spelled_as_they_are_read() -> None:
    """Sets of any shape survive."""
    draw = random.Random(0)
    sets = [
        CharSet.full(),
        CharSet.empty(),
        CharSet.of("]"),
        CharSet.of("^-\\"),
        rust_regex.perl_class("w"),
        ~CharSet.of("a"),
    ]
    for _ in range(200):
        ends = sorted(draw.sample([*range(0x20, 0x100), *range(0x2000, 0x2100), *range(0xFFF0, 0x10010)], 6))
        sets.append(CharSet([(ends[0], ends[1]), (ends[2], ends[3]), (ends[4], ends[5])]))
    for charset in sets:
        assert parse(class_text(charset)) == Chars(charset)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"(?i)^abc$", ["abc", "ABC", "aBc"], ["abd"]),
        (r"^a(?i:b)c$", ["abc", "aBc"], ["ABC", "abC"]),
        (r"(?i)^k$", ["k", "K", "\u212a"], ["s"]),
        (r"(?i)^[\W]$", ["-", "\u00e9"], ["k", "S", "\u212a", "\u017f"]),
        (r"(?i)^\W$", ["-"], ["\u212a", "s"]),
        (r"(?i)^\w$", ["k", "\u212a", "_"], ["\u00e9"]),
        (r"(?i)^\P{Lu}$", ["1"], ["a", "A"]),
        (r"(?s)^a.b$", ["a\nb", "a b"], ["ab"]),
        (r"(?s-s:a.b)", ["a b"], ["a\nb"]),
        (r"(?m)^b$", ["b", "a\nb\nc", "a\rb"], ["ab"]),
        (r"\Aa\z", ["a"], ["a\n", "ba"]),
        (r"\Aa\Z", ["a"], ["a\n", "ba"]),
        (r"^(?P<first>a)b$", ["ab"], ["a"]),
        (r"(?i)", ["", "x"], []),
    ],
)
def test_what_every_dialect_means_alike_is_taken_in_any_schema(pattern: str, good: list[str], bad: list[str]) -> None:
    """Flags, names and ends of the text as Python, Rust and ECMA-262 (2025) have them; classes stay those of ECMA-262."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=False)
    assert [text for text in good if not terms.matches(term, text)] == []
    assert [text for text in bad if terms.matches(term, text)] == []
