"""Partial values: what a JSON text that is still being written has so far, and what it still needs."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import ArgumentsDelta, Grammar, ParseError, PartialReader, TextDelta
from toolgrammar.core.generation.partial import partial
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

TRIP: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "stops": {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 2, "maxItems": 4},
        "who": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            "required": ["name"],
            "additionalProperties": False,
        },
    },
    "required": ["city", "stops", "who"],
    "additionalProperties": False,
}
OPTIONS: Any = {"whitespace": "flexible", "property_order": "any"}


@pytest.mark.parametrize(
    ("text", "value", "missing", "place"),
    [
        ("", None, ("",), None),
        ("{", {}, ("/city", "/stops", "/who"), ""),
        ('{"ci', {}, ("/city", "/stops", "/who"), ""),
        ('{"city": ', {}, ("/city", "/stops", "/who"), ""),
        ('{"city": "Os', {"city": "Os"}, ("/stops", "/who"), "/city"),
        ('{"city": "Oslo", "who": {', {"city": "Oslo", "who": {}}, ("/who/name", "/stops"), "/who"),
        ('{"city": "Oslo", "stops": ["a"', {"city": "Oslo", "stops": ["a"]}, ("/stops/1", "/who"), "/stops"),
        ('{"city": "x", "stops": ["a", "b"], "who": {"name": "n"}', None, (), ""),
    ],
)
def test_what_is_there_and_what_is_missing(text: str, value: Any, missing: tuple[str, ...], place: str | None) -> None:
    """The value so far, the places that the schema demands and that have not begun, and the one that is open."""
    found = partial(text, Grammar.from_json_schema(TRIP, **OPTIONS))
    assert sorted(found.missing) == sorted(missing) and found.open == place
    assert value is None or found.value == value
    assert not found.is_whole and found.edits == ()


def below(schema: Any, value: Any, at: str) -> set[str]:
    """Return the pointers of what a value lacks by `required` and `minItems`, at any depth."""
    lacks: set[str] = set()
    if isinstance(value, dict):
        lacks |= {f"{at}/{name}" for name in schema["required"] if name not in value}
        for name, item in value.items():
            lacks |= below(schema["properties"][name], item, f"{at}/{name}")
    if isinstance(value, list):
        lacks |= {f"{at}/{number}" for number in range(len(value), schema.get("minItems", 0))}
    return lacks


def test_every_beginning_of_random_texts() -> None:
    """At each character: pieces and the whole tell the same, a text is whole when nothing is missing or open, and what
    is missing is what `required` and `minItems` still ask for."""
    grammar = Grammar.from_json_schema(TRIP, **OPTIONS)
    source = random.Random(3)
    compared = 0
    for _ in range(25):
        text = random_text(grammar, source, 60)
        reader = PartialReader(grammar)
        for size in range(1, len(text) + 1):
            found = reader.feed(text[size - 1])
            assert found.is_whole == (not found.missing and found.open is None) == grammar.matches(text[:size])
            if found.value is None or text[:size].rstrip()[-1] in ",:":
                continue  # a comma demands a member, whichever it is
            if text[:size].count('"') % 2 == 0 and "\\" not in text:
                wanted = below(TRIP, found.value, "")
                assert wanted <= set(found.missing) | {found.open}
                compared += set(found.missing) == wanted
        assert found.value == json.loads(text)
    assert compared > 300


def test_a_text_that_no_grammar_held() -> None:
    """A text with other quotes and prose is read as the nearest one, at each character, and nothing is made up."""
    text = "Sure: {'city': 'Oslo', 'stops': ['a', 'b'], 'who': {'name': 'Ann', 'age': '7'},}"
    found = PartialReader.of_schema(TRIP, seconds=5).feed(text)
    assert found.is_whole and found.edits
    assert found.value == {"city": "Oslo", "stops": ["a", "b"], "who": {"name": "Ann", "age": 7}}
    found = PartialReader.of_schema(TRIP, seconds=5).feed(text[: text.index("'b'")])
    assert found.value["city"] == "Oslo" and found.value["stops"] == ["a"] and "/who" in found.missing
    found = PartialReader.of_schema(TRIP, seconds=5).feed('{"city": , "days": 1')
    assert found.edits and "/city" in found.missing and "city" not in found.value
    with pytest.raises(ParseError):
        PartialReader.of_schema(TRIP).feed("no value is here " * 400)


def test_pieces_of_streams() -> None:
    """The deltas of a JSON answer, and those of a call's arguments, are read as they come."""
    answer = '{"city": "Oslo", "stops": ["a", "b"], "who": {"name": "Ann"}}'
    reader = PartialReader.of_schema(TRIP)
    states = [
        reader.feed(event.text)
        for event in ScriptedModel([answer]).stream("Go.", output_type=TRIP)
        if isinstance(event, TextDelta)
    ]
    assert states[-1].is_whole and states[-1].value == json.loads(answer)
    assert any(state.value == {"city": "Oslo"} for state in states)

    def book(city: str, nights: int) -> str:
        """Book a room."""
        return city

    tools = ToolSet.from_any([book])
    call = '<tool_call>\n{"name": "book", "arguments": {"city": "Oslo", "nights": 2}}\n</tool_call>'
    reader = tools.partial_reader("book")
    seen = [
        reader.feed(event.text)
        for event in ScriptedModel([call]).stream("Go.", tools=tools, tool_choice="required")
        if isinstance(event, ArgumentsDelta)
    ]
    assert seen[-1].value == {"city": "Oslo", "nights": 2} and seen[-1].is_whole and seen[-1].missing == ()


def test_texts_that_are_too_deep_or_no_json() -> None:
    """Deep nesting is an error that says so; half an escape and half a number are no value yet."""
    grammar = Grammar.from_json_schema({"type": "array"})
    with pytest.raises(ParseError, match="nested too deeply"):
        partial("[" * 300, grammar)
    assert partial('["a\\u00', grammar).value == ["a"]
    assert partial("[-", grammar).open == "/0"
