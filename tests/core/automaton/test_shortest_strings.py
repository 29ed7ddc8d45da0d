"""Shortest strings: none is shorter, found without making what is deferred in vain."""

from __future__ import annotations

import json
import random

import jsonschema
import pytest

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.automaton.completion.strings import shortest, some_string
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex.compile import regex_term


def spell(low: int, high: int) -> bytes:
    """The first character of a range, as it is."""
    return chr(low).encode("utf-8", "surrogatepass")


def random_term(terms: Terms, draw: random.Random, depth: int) -> int:
    """A term of the letters a and b, some of it deferred."""
    kind = draw.randrange(7) if depth else 0
    if kind == 0:
        return terms.words(["".join(draw.choices("ab", k=draw.randrange(1, 5))) for _ in range(draw.randrange(1, 3))])
    parts = [random_term(terms, draw, depth - 1) for _ in range(draw.randrange(1, 4))]
    if kind == 1:
        return terms.alt(parts)
    if kind == 2:
        return terms.sequence(parts)
    if kind == 3:
        return terms.repeat(parts[0], draw.randrange(3), draw.choice([3, None]))
    if kind == 4:
        return terms.and_([parts[0], terms.repeat(terms.ANY, draw.randrange(4), None)])
    if kind == 5:
        return terms.alt([parts[0], terms.not_(parts[-1])])
    solid = terms.and_([terms.alt(parts), terms.repeat(terms.ANY, 1, None)])
    if terms.is_empty(solid) or not terms.known(solid) & 2:
        return parts[0]
    least = next(length for length in range(1, 99) if not terms.is_empty(terms.and_([solid, exactly(terms, length)])))
    return terms.deferred(("random", draw.random()), lambda _: solid, least=draw.randrange(1, least + 1))


def exactly(terms: Terms, length: int) -> int:
    """The strings of a length."""
    return terms.repeat(terms.ANY, length, length)


@pytest.mark.parametrize("seed", range(300))
def test_none_is_shorter(seed: int) -> None:
    """What is found is in the language, and no shorter string is."""
    terms, draw = Terms(), random.Random(seed)
    term = random_term(terms, draw, 4)
    if terms.is_empty(term):
        return
    text = shortest(terms, term, spell, {})
    assert terms.matches(term, text.decode("utf-8", "surrogatepass"))
    if text:
        shorter = terms.repeat(terms.ANY, 0, len(text) - 1)
        assert terms.is_empty(terms.and_([term, shorter])), text


def test_what_is_deferred_is_not_made_in_vain() -> None:
    """A deferred alternative that cannot be shorter is left alone."""
    terms = Terms()
    made: list[str] = []

    def build(terms: Terms) -> int:
        made.append("yes")
        return regex_term(terms, "[0-9]{9}", whole=True)

    long = terms.seq(terms.literal("x"), terms.deferred("long", build, least=9))
    assert shortest(terms, terms.alt([terms.literal("abc"), long]), spell, {}) == b"abc" and made == []
    assert shortest(terms, terms.alt([terms.literal("a" * 11), long]), spell, {}) == b"x000000000" and made


def test_some_string_where_the_search_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string is found without any search, and what is left of it is what is found for the rest."""
    monkeypatch.setattr("toolgrammar.core.automaton.completion.strings.MAX_SEARCHED", 0)
    monkeypatch.setattr("toolgrammar.core.automaton.completion.strings.FEW_SEARCHED", 0)
    found = 0
    for seed in range(300):
        terms, draw, ways = Terms(), random.Random(seed), {}
        term = random_term(terms, draw, 4)
        if terms.is_empty(term):
            continue
        assert terms.matches(term, some_string(terms, term))
        text = shortest(terms, term, spell, ways).decode("utf-8", "surrogatepass")
        assert terms.matches(term, text)
        found += bool(ways)
        while text and term in ways:
            term, text = terms.derivative(term, ord(text[0])), text[1:]
            assert shortest(terms, term, spell, ways).decode("utf-8", "surrogatepass") == text
    assert found > 50


def test_a_string_that_is_hard_to_search() -> None:
    """A conjunction whose shortest string lies beyond what is searched has a string none the less."""
    patterns = ["^([a-z][0-9])+$", "((c1d3g3).{4,8}){6,6}", "(t|8){10,10}$"]
    schema = {
        "type": "string",
        "allOf": [
            *({"pattern": pattern} for pattern in patterns),
            {"anyOf": [{"not": {"pattern": pattern.replace("((", "^((")}} for pattern in patterns]},
        ],
        "minLength": 100,
    }
    matcher = (
        Grammar.from_json_schema(schema).bind(Vocabulary([*map(bytes, zip(range(256))), None], eos=[256])).matcher()
    )
    text, length = b"", 0
    while completion := matcher.shortest_completion():
        assert not text or len(completion) == length - 1
        length = len(completion)
        text += completion[:1]
        assert matcher.accept_bytes(completion[:1])
    assert jsonschema.validate(json.loads(text), schema) is None


def test_some_string_beside_multiples() -> None:
    """In a store with multiples no term is known to be regular: a string is found by the kind of each."""
    terms = Terms()
    multiples = [terms.multiples(of, places) for of, places in ((7, 0), (15, 1), (123_456_789, 3), (8, 2))]
    begun = [(one, text) for one in multiples for text in ("", "1", "12", "99", "0.", "3.", "12.4", "0.0")]
    states = []
    for term, text in begun:
        for char in text:
            term = terms.derivative(term, ord(char))
        if not terms.is_empty(term):
            states.append(term)
    parts = [
        terms.literal("abc"),
        terms.words(["x1", "x2"]),
        regex_term(terms, "[^a]", whole=True),
        regex_term(terms, "(ab|c){2,3}", whole=True),
        regex_term(terms, "[0-9]{3}", whole=True),
    ]
    assert len(states) > 20
    for term in [*states, *parts, *(terms.seq(one, two) for one in states[:3] for two in parts)]:
        assert terms.matches(term, some_string(terms, term))
