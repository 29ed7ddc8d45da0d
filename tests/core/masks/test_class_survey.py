"""Strings that go on with a run of one class of ASCII characters: identifiers, codes of groups, names by pattern."""

from __future__ import annotations

import codecs
import random
import re
from itertools import product

import pytest

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.automaton.lazy_dfa import Program
from toolgrammar.core.errors import UnsatisfiableSchemaError
from toolgrammar.core.masks.index_files import index_of
from toolgrammar.core.masks.masks import Masks
from toolgrammar.core.regex.compile import regex_term

LETTERS = b"abcdefghijkl"
CLASSES = (
    "[a-l]",
    "[a-l/]",
    "[a-l0]",
    "[a-l_-]",
    "[b-l]",
    "[a-l.]",
    r"[\w]",
    r"[\w-]",
    "[a-z0-9]",
    "[ -~]",
    "[a-lé]",
    "[^-]",
)
NAMES = ("a", "ba", "cab", "d", "e-f", "gh", "k!")
BEHIND = (
    "",
    "-",
    ".",
    "é",
    "0",
    "-0",
    '"',
    '",',
    '":',
    "\\",
    '\\"',
    "\n",
    "-a",
    "a-b",
    '": ',
    "_",
    "/",
    "\\/",
    "\\u002F",
    "/a",
    "\\/a",
)


def vocabulary_of(walk: random.Random) -> Vocabulary:
    """Return a vocabulary of words of some letters, each also with what may come behind it, and with more words
    there."""
    letters = [bytes((byte,)) for byte in walk.sample(LETTERS, 10)]
    words = [b"".join(each) for size in range(1, 4) for each in product(letters, repeat=size)]
    words += [b"".join(walk.choices(letters, k=walk.randrange(4, 9))) for _ in range(300)]
    tokens = {bytes((byte,)) for byte in range(256)} | set(words) | {b'"' + word for word in words[:40]}
    tokens.update(f'{name}"'.encode() for name in NAMES)
    for end in walk.sample(BEHIND, 9):
        tokens.update(word + end.encode() for word in walk.sample(words, 150))
        tokens.update(word + end.encode() + walk.choice(words) for word in walk.sample(words, 60))
    ordered = sorted(tokens)
    return Vocabulary([*ordered, None], eos=[len(ordered)], cache_dir=False)


def pattern_of(walk: random.Random) -> str:
    """Return a pattern with runs of a class."""
    one, other = walk.choice(CLASSES), walk.choice(CLASSES)
    count = walk.choice(("*", "+", "{2}", "{3}", "{1,3}", "{2,9}", "{0,4}", "{8}", "{4,}"))
    return walk.choice(
        (
            f"^{one}{count}$",
            f"^{one}{count}-{one}{count}$",
            f"^{one}{count}([.-]{other}+)*$",
            f"^{other}{one}{count}$",
            f"^{one}{count}{other}*$",
            f"^(a{one}{count}|b{other}+)$",
            f"^{one}{count}(-|é).*$",
            f"^{one}+(/{one}{count})*$",
            f"^/?{one}+(/{other}*)*$",
            f"^{one}{count}([^a-z][^]*)?$",
            f"^(?!a$|ba$|e-f$){one}{count}([^a-z][^]*)?$",
        )
    )


def schema_of(walk: random.Random) -> dict[str, object]:
    """Return the schema of strings, or of objects with names, of such patterns."""
    if walk.random() < 0.4:
        return {"type": "string", "pattern": pattern_of(walk)}
    names = walk.sample(NAMES, walk.randrange(4))
    pattern = (
        f"^{walk.choice(CLASSES)}{walk.choice(('*', '+', '{3}', '{1,5}'))}$"
        if walk.random() < 0.5
        else pattern_of(walk)
    )
    return {
        "type": "object",
        "properties": {name: {"type": "null"} for name in names},
        "patternProperties": {pattern: {"type": "integer"}},
        "additionalProperties": walk.choice((True, False, {"type": "null"})),
        **walk.choice(({}, {"propertyNames": {"maxLength": 6}})),
    }


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 100))])
def test_masks_are_what_steps_accept(seed: int) -> None:
    """Along random texts, a token is in the mask if and only if the matcher accepts it."""
    walk = random.Random(seed)
    vocabulary = vocabulary_of(walk)
    for _ in range(6):
        schema = schema_of(walk)
        try:
            constraint = Grammar.from_json_schema(schema, whitespace="compact").bind(vocabulary)
        except UnsatisfiableSchemaError:
            continue
        matcher = constraint.matcher()
        for _ in range(10):
            allowed = matcher.allowed_tokens()
            assert allowed == [token for token in range(vocabulary.size) if matcher.fork().accept(token)], schema
            if not allowed or not matcher.accept(walk.choice(allowed)):
                break


@pytest.mark.parametrize(
    "pattern", ["^[a-l]+(/[a-l]*)*$", "^([a-l]+(/[a-l]*)*)?$", "^/[a-l]+(/[a-l]*)*$", "^(?!/)[a-l/]*$"]
)
def test_a_character_that_may_not_come_first_may_not_come_as_an_escape(pattern: str) -> None:
    """Where a slash may follow any character but the first, every spelling of it is out of the first mask alone."""
    spelled = (b"", b"/", b"\\/", b"\\", b"\\u002F", b"\\u002f")
    letters = [bytes((byte,)) for byte in LETTERS]
    words = [b"".join(each) for each in product(letters, letters, spelled[:3])]
    words += [b"".join(each) for each in product(spelled, letters[:1], spelled[:3])]
    tokens = sorted({bytes((byte,)) for byte in range(256)} | set(filter(None, words)))
    vocabulary = Vocabulary([*tokens, None], eos=[len(tokens)], cache_dir=False)
    for schema in ({"type": "string", "pattern": pattern}, {"type": "object", "patternProperties": {pattern: True}}):
        constraint = Grammar.from_json_schema({**schema, "additionalProperties": False}).bind(vocabulary)
        for text in (b"", b"/", b"a", b"a/", b"a\\/b", b"/a\\/b"):
            matcher = constraint.matcher()
            if not matcher.accept_bytes((b'"' if "pattern" in schema else b'{"') + text):
                continue
            accepted = [token for token in range(vocabulary.size) if matcher.fork().accept(token)]
            assert matcher.allowed_tokens() == accepted
        assert constraint.counters()["mask_surveyed"] > 0


def test_only_exits_that_matter_are_visited() -> None:
    """Of the tokens that leave a run, those are looked at behind which the string goes on otherwise."""
    letters = [b"a", b"b", b"c", b"d"]
    words = [b"".join(each) for size in range(1, 7) for each in product(letters, repeat=size)]
    tokens = sorted([*words, *(word + b"!" for word in words), *(word + b"-" for word in words if len(word) == 2)])
    vocabulary = Vocabulary([*tokens, b'"', b"-", None], eos=[len(tokens) + 2])
    free = Grammar.from_json_schema({"type": "string"}).bind(vocabulary).matcher()
    assert free.accept_bytes(b'"') and len(free.allowed_tokens()) == len(tokens) + 2  # its walk is not counted below
    constraint = Grammar.from_json_schema({"type": "string", "pattern": "^[a-d]{2}-[a-d]{4}$"}).bind(vocabulary)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'"')
    before = constraint.counters()["mask_visited"]
    allowed = [tokens[token] for token in matcher.allowed_tokens()]
    assert allowed == sorted(word for word in tokens if len(word.rstrip(b"-")) < 3 and not word.endswith(b"!"))
    assert constraint.counters()["mask_visited"] - before < 40
    assert constraint.counters()["mask_surveyed"] == 1


def test_names_left_out_are_walked_alone() -> None:
    """Where names of a class lack some that are declared, only the way along those is walked."""
    letters = [bytes((byte,)) for byte in LETTERS]
    words = [b"".join(each) for size in range(1, 5) for each in product(letters, repeat=size)]
    tokens = sorted([*words, *(word + b'"' for word in words), *(word + b"!" for word in words)])
    vocabulary = Vocabulary([*tokens, b'"', b"{", b"}", b":", b"0", b",", None], eos=[len(tokens) + 6])
    assert Grammar.from_json_schema({"type": "string"}).bind(vocabulary).matcher().accept_bytes(b'"')
    constraint = Grammar.from_json_schema(
        {
            "type": "object",
            "properties": {"abcd": False},
            "patternProperties": {"^[a-l]{1,9}$": {"const": 0}},
            "additionalProperties": False,
        },
        whitespace="compact",
    ).bind(vocabulary)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'{"')
    allowed = {tokens[token] for token in matcher.allowed_tokens()}
    assert allowed == {word for word in tokens if not word.endswith(b"!")} - {b'abcd"'}


@pytest.mark.parametrize(
    "pattern", ["[^]", r"[^x]", r"[^\n]", "[a-z]", "[a-zà-ÿ]", r"[\w ]", r"[^a-m]", r"[^€😀]", r"\S", "."]
)
def test_a_survey_has_the_prefixes_of_strings_of_its_class(pattern: str) -> None:
    """The tokens are those whose characters are in the class, by their number; the last one may be incomplete."""
    walk = random.Random(pattern)
    characters = 'abcxyz09 _-.é€ß漢字😀😁я\u2028\n"\\'
    tokens = {bytes((byte,)) for byte in range(256)}
    for _ in range(3_000):
        data = "".join(walk.choices(characters, k=walk.randrange(1, 7))).encode()
        tokens.add(data[walk.randrange(2) * walk.randrange(2) : len(data) - walk.randrange(3)] or b"a")
    ordered = sorted(tokens)
    vocabulary = Vocabulary([*ordered, None], eos=[len(ordered)], cache_dir=False)
    index = index_of(vocabulary)
    program = Program(lambda nodes: nodes.json_string(nodes.terms.ALL))
    masks = Masks(program.automaton, index, (), {}, 2**30)
    masks.survey(regex_term(program.store.nodes.terms, pattern, whole=True))
    ((_, survey),) = index.surveys.items()
    token, until, partial, *_ = survey.saved()
    found = {
        number: size for size in range(len(until) - 1) for number in token[until[size - 1] if size else 0 : until[size]]
    }
    in_python = {"[^]": r"[\s\S]", ".": r"[^\n\r\u2028\u2029]", r"\S": r"[^\s\u2028]"}
    member = re.compile(in_python.get(pattern, pattern), re.ASCII)
    expected, incomplete = {}, set()
    for number, data in enumerate(ordered):
        text = codecs.getincrementaldecoder("utf-8")("ignore").decode(data)
        rest = data[len(text.encode()) :]
        last = [code for code in (*characters, "\u0800", "\U0010ffff", "ÿ") if rest and code.encode().startswith(rest)]
        whole = data[: len(data) - len(rest)] == text.encode()
        if (
            not whole
            or (rest and not last)
            or any(each in '"\\' or each < " " or not member.match(each) for each in text)
        ):
            continue
        if not rest:
            expected[number] = len(text)
        elif any(map(member.match, last)):
            expected[number] = len(text) + 1
            incomplete.add(number)
    assert {number: size for number, size in found.items() if number in expected} == expected
    assert {number for number in partial if number in expected} == incomplete
    others = {number for number in found.keys() - expected.keys() if b"\\" not in ordered[number]}
    assert others <= set(partial)  # within a character that this test does not know
