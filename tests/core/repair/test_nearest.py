"""The nearest text of a grammar: laws, spellings, names, what is invented and what is refused."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import Grammar, ParseError
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.core.repair import SPELLING_ONLY, Repaired, repair, respelled_json

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"enum": ["get_weather", "send_mail"]},
        "arguments": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer"},
                "alert": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "arguments"],
    "additionalProperties": False,
}
OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}


def loose(schema: Any) -> Grammar:
    """Return the grammar that repair is best used with."""
    return Grammar.from_json_schema(schema, whitespace="flexible", property_order="any")


CALL = loose(SCHEMA)
GRAMMARS = [
    CALL,
    loose(OPEN),
    Grammar.from_json_schema(SCHEMA),
    Grammar.json(),
    Grammar.from_regex(r"\d{4}-\d{2}-\d{2}"),
    Grammar.literal("<a>") + Grammar.until("</a>"),
]


def edited(text: str, repaired: Repaired) -> str:
    """Return a text after the edits of its repair."""
    done, at = [], 0
    for edit in repaired.edits:
        done += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*done, text[at:]])


def call(**arguments: Any) -> dict[str, Any]:
    """Return a call of the first tool."""
    return {"name": "get_weather", "arguments": arguments}


@given(which=st.integers(0, len(GRAMMARS) - 1), seed=st.integers(0, 2**32), data=st.data())
def test_laws(which: int, seed: int, data: st.DataObject) -> None:
    """A repaired text is one of the grammar, its edits lead to it, and a text of the grammar is left as it is."""
    grammar = GRAMMARS[which]
    text = random_text(grammar, random.Random(seed), 60)
    unchanged = repair(text, grammar)
    assert unchanged == Repaired(text)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        new = data.draw(
            st.sampled_from(["", '"', "'", ",", "}", "]", ":", "a", " ", "\n", "0", "é", "{", "//", "\ud800"])
        )
        text = text[:at] + new + text[at + data.draw(st.integers(0, 3)) :]
    try:
        repaired = repair(text, grammar, seconds=0.3)
    except ParseError:
        return
    assert grammar.matches(repaired.text)
    assert not repaired.is_invented
    if "\ud800" not in text:
        assert edited(text, repaired) == repaired.text
    if not repaired.edits:
        assert text == repaired.text


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("{'name': 'get_weather', 'arguments': {'city': 'Paris', 'alert': True,}}", {"city": "Paris", "alert": True}),
        ("```json\n{name: get_weather, arguments: {city: Paris}}\n```", {"city": "Paris"}),
        (
            '{"name": "get_weather", "arguments": {"city": "Paris", "unit": "Celcius"}}',
            {"city": "Paris", "unit": "celsius"},
        ),
        ('{"name": "getWeather", "parameters": {"city": "Paris", "days": "3"}}', {"city": "Paris", "days": 3}),
        ('{"name": "get_weather", "arguments": {"city": "Paris" "days": +3}}', {"city": "Paris", "days": 3}),
        ('{"name": "get_weather", "arguments": {"city": "the "old" town"}}', {"city": 'the "old" town'}),
        ('{"name": "get_weather", "arguments": {"city": "Paris, "days": 3}}', {"city": "Paris", "days": 3}),
        ('{"name": "get_weather", "arguments": {"city": "Paris", "country": "FR"}}', {"city": "Paris"}),
        ('{"name": "get_weather", "arguments": {"country": "FR", "city": "Paris"}}', {"city": "Paris"}),
        ('{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}', {"city": "Paris"}),
        (
            '{"name": "get_weather", "arguments": {"city": "Paris", "tags": ["a", "b"}}',
            {"city": "Paris", "tags": ["a", "b"]},
        ),
        ('{"name": "get_weather", "arguments": {"city": "Paris" // here\n, "days": 3}}', {"city": "Paris", "days": 3}),
        (
            "{\u201cname\u201d: \u201cget_weather\u201d, \u201carguments\u201d: {\u201ccity\u201d: \u201cParis\u201d}}",
            {"city": "Paris"},
        ),
        ('{"name": "get_weather"; "arguments"= {"city"\uff1a "a\nb"}}', {"city": "a\nb"}),
        ('Sure: {"name": "get_weather", "arguments": {"city": "Paris"}} Done.', {"city": "Paris"}),
        (
            '{"name": "get_weather", "arguments": {"city": "Paris", unit: Celcius, "days": "3"}}',
            {"city": "Paris", "unit": "celsius", "days": 3},
        ),
    ],
)
def test_what_was_meant(text: str, arguments: dict[str, Any]) -> None:
    """Spellings of other languages, prose, slips of punctuation, misspelled names and unknown members."""
    repaired = repair(text, CALL)
    assert json.loads(repaired.text) == call(**arguments)
    assert not repaired.is_invented and not repaired.is_cut
    assert edited(text, repaired) == repaired.text
    assert repaired.cost == pytest.approx(sum(edit.cost for edit in repaired.edits), abs=0.01)


def test_missing_values_are_refused_or_marked() -> None:
    """A value that the text does not hold is made up only if asked for, and is marked."""
    text = '{"name": "get_weather", "arguments": {"days": 3'
    with pytest.raises(ParseError, match="lacks a value that the grammar requires"):
        repair(text, CALL)
    repaired = repair(text, CALL, invent=True)
    assert json.loads(repaired.text)["arguments"] == {"days": 3, "city": ""}
    assert repaired.is_invented and repaired.is_cut
    assert [edit.is_invented for edit in repaired.edits] == [True]


def test_a_cut_text_is_marked() -> None:
    """Brackets and quotes at the end are closed, which is told; what the grammar forces is no cut."""
    cut = repair('{"name": "get_weather", "arguments": {"city": "Par', CALL)
    assert json.loads(cut.text) == call(city="Par") and cut.is_cut and not cut.is_invented
    marked = Grammar.literal("<a>") + Grammar.from_regex("[0-9]{2}") + Grammar.literal("</a>")
    for text in ("<a>12", "<a>12</a"):
        repaired = repair(text, marked)
        assert repaired.text == "<a>12</a>" and not repaired.is_cut


def test_a_missing_constant_is_not_invented() -> None:
    """What the grammar leaves no choice in is markup, however long it is."""
    grammar = loose(
        {
            "type": "object",
            "properties": {"kind": {"const": "point"}, "x": {"type": "integer"}},
            "required": ["kind", "x"],
            "additionalProperties": False,
        }
    )
    repaired = repair('{"x": 1}', grammar)
    assert json.loads(repaired.text) == {"kind": "point", "x": 1} and not repaired.is_invented


@pytest.mark.parametrize(
    "text", ["", "hello", "x" * 3_000, "{" * 500, '"' * 500, "[1," * 300, "\x00\ud800", "{}" * 200]
)
def test_what_is_not_near_is_an_error(text: str) -> None:
    """Hostile and unrelated texts end with one error that says how far they were read."""
    with pytest.raises(ParseError, match=r"line \d+, column \d+"):
        repair(text, CALL, seconds=0.3)


def test_the_cost_can_be_bounded() -> None:
    """With `SPELLING_ONLY`, quotes and commas are corrected, and names and values stay what they are."""
    assert repair("{'name': 'get_weather', 'arguments': {'city': 'Paris',}}", CALL, most=SPELLING_ONLY).edits
    with pytest.raises(ParseError):
        repair('{"name": "get_wether", "arguments": {"city": "Paris"}}', CALL, most=SPELLING_ONLY)


def test_respelled_json() -> None:
    """The value of a text that differs by spelling only; a cut text has none."""
    schema = SCHEMA["properties"]["arguments"]
    assert respelled_json("{city: 'Paris', days: \"2\"}", schema) == {"city": "Paris", "days": 2}
    with pytest.raises(ParseError, match="ends before its JSON value"):
        respelled_json('{"city": "Par', schema)


def test_words_of_a_pattern_and_text_between_markers() -> None:
    """Grammars that are no JSON: a hyphen that the pattern forces is added, a digit would be invented."""
    date = Grammar.from_regex(r"\d{4}-\d{2}-\d{2}")
    assert repair("2024-01-02.", date).text == "2024-01-02"
    assert repair("on 2024-01-02", date).text == "2024-01-02"
    assert repair("2024-0102", date).text == "2024-01-02"
    with pytest.raises(ParseError):
        repair("2024-1-2", date)
    assert repair(
        "<a>text</a", Grammar.literal("<a>") + Grammar.from_regex("[a-z]*") + Grammar.literal("</a>")
    ).text == ("<a>text</a>")


BOUNDED = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 5},
        "unit": {"enum": ["c", "f"]},
        "n": {"type": "integer", "minimum": 1, "maximum": 10},
        "day": {"type": "string", "format": "date"},
        "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{3}$"},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ('{"city": "Oslooooo", "n": 3}', {"n": 3}),
        ('{"city": "Oslo 9", "n": 3}', {"n": 3}),
        ('{"city": "Oslo", "unit": "kelvin", "n": 3}', {"city": "Oslo", "n": 3}),
        ('{"city": "Oslo", "n": 55}', {"city": "Oslo"}),
        ('{"city": "Oslo", "n": 5.5}', {"city": "Oslo"}),
        ('{"n": 70, "city": "Oslo"}', {"city": "Oslo"}),
        ('{"day": "2024-01-155", "n": 1}', {"n": 1}),
        ('{"day": "2024-13-15", "n": 1}', {"n": 1}),
        ('{"day": "2024/01/15", "n": 1}', {"day": "2024-01-15", "n": 1}),
        ('{"code": "ABC-1234", "n": 1}', {"n": 1}),
        ('{"code": "XYZ123", "n": 1}', {"code": "XYZ-123", "n": 1}),
        ('{"unit": "C", "n": 1}', {"unit": "c", "n": 1}),
    ],
)
def test_values_that_do_not_fit(text: str, repaired: dict[str, Any]) -> None:
    """A value that the schema does not allow is left out, with its member; it is never cut short or made another."""
    grammar = Grammar.from_json_schema(BOUNDED, whitespace="flexible", property_order="any")
    found = repair(text, grammar)
    assert json.loads(found.text) == repaired and not found.is_invented
    required = Grammar.from_json_schema({**BOUNDED, "required": ["city", "unit", "n", "day", "code"]})
    with pytest.raises(ParseError):
        repair(text, required)


@pytest.mark.parametrize("text", ['{"n": 55}', '{"n": 70}', '{"city": "Oslooooo"}', '{"day": "2024-13-15"}'])
def test_another_value_is_marked(text: str) -> None:
    """With ``invent=True`` a value that does not fit may become another one, which is marked."""
    name = next(iter(json.loads(text)))
    schema = {**BOUNDED, "properties": {name: BOUNDED["properties"][name]}, "required": [name]}  # type: ignore[index]
    grammar = Grammar.from_json_schema(schema, whitespace="flexible")
    with pytest.raises(ParseError, match="has an invalid one"):
        repair(text, grammar)
    assert repair(text, grammar, invent=True).is_invented


def test_a_string_with_commas_may_lack_its_opening_quote() -> None:
    """A string with commas and a closing quote is read in one piece, at the cost of one without commas."""
    schema = {
        "type": "object",
        "properties": {"place": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["place", "tags"],
        "additionalProperties": False,
    }
    grammar = Grammar.from_json_schema(schema, whitespace="flexible")
    for begin, end in (('{"place": ', ', "tags": ["a, b"]}'), ('{"place": "x", "tags": [', ', "y"]}')):
        broken = f'{begin}San Jose, CA, USA"{end}'
        assert not grammar.matches(broken)
        repaired, plain = repair(broken, grammar), repair(broken.replace(", CA, USA", ""), grammar)
        assert repaired.text == f'{begin}"San Jose, CA, USA"{end}'
        assert repaired.cost == plain.cost and len(repaired.edits) == 1


def test_a_busy_machine_does_not_change_the_result() -> None:
    """A search that has to wait, longer than its limit, finds what it finds at once: its own work is what counts."""
    grammar = Grammar.from_json_schema(SCHEMA, whitespace="flexible", property_order="any")
    text = "{name: 'get_weather', arguments: {city: 'Oslo'}"
    expected = repair(text, grammar)
    begun, over = threading.Event(), threading.Event()

    def hold() -> None:
        with grammar.program.lock:
            begun.set()
            over.wait(0.8)

    other = threading.Thread(target=hold)
    other.start()
    assert begun.wait(10)
    assert repair(text, grammar, seconds=0.4) == expected
    over.set()
    other.join()
