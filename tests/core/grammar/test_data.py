"""A grammar is a value: written as data, read again, pickled, compared."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, GrammarError, ToolGrammarError, Vocabulary
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats.registry import format_names

VOCABULARY = Vocabulary([b"a", b"b", None, None], eos=[2], special={"<end>": 3})
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TAG = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": SCHEMA}}


def recursive() -> Grammar:
    """Lists of lists."""
    value = Grammar.rule("value", lambda: Grammar.from_regex("[0-9]+") | array)
    array = Grammar.literal("[") + value + Grammar.repeat(Grammar.literal(",") + value) + Grammar.literal("]")
    return value


GRAMMARS: dict[str, Grammar] = {
    "schema": Grammar.from_json_schema(SCHEMA, whitespace="flexible", property_order="any", formats=False),
    "references": Grammar.from_json_schema({"$ref": "urn:x"}, registry={"urn:x": {"type": "boolean"}}),
    "regex": Grammar.from_regex("[a-c]{2,3}"),
    "ebnf": Grammar.from_ebnf('main ::= Token(0, 3) "x"', root="main", vocabulary=VOCABULARY),
    "gbnf": Grammar.from_gbnf('root ::= root "+" [0-9] | [0-9]'),
    "lark": Grammar.from_lark('a: "x" %json {"type": "integer"} <[1]>', start="a", vocabulary=VOCABULARY),
    "tag": Grammar.from_structural_tag(TAG),
    "bytes": Grammar.literal(b"\xffa") | Grammar.literal("é"),
    "special": Grammar.special("<end>") + Grammar.literal("x"),
    "text": Grammar.text(excluding=["no"], min_chars=1) + Grammar.until("!", excluding=["x"]),
    "cases": Grammar.cases({"a": Grammar.literal("1"), "b": Grammar.repeat(Grammar.literal("2"), 1, 3)}),
    "distinct": Grammar.distinct([Grammar.literal("a"), Grammar.literal("b")], Grammar.literal("-"), min=1),
    "csv": Grammar.csv(SCHEMA, newline="\n", max_rows=2),
    "xml": Grammar.xml(tags={"a": ["x"]}, root="a"),
    "sql": Grammar.sql_select({"t": ["a"]}),
    "yaml": Grammar.yaml(SCHEMA) | Grammar.yaml(),
    "format": Grammar.format("semver"),
    "python": Grammar.python_literal() + Grammar.markdown_table(["a"]),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_written_and_read(name: str) -> None:
    """What was written is read as an equal grammar, also by `pickle`; its data is JSON with a version."""
    grammar = GRAMMARS[name]
    again = Grammar.loads(grammar.dumps())
    assert again == grammar and hash(again) == hash(grammar) and repr(again) == repr(grammar)
    assert again.specials == grammar.specials and again.dumps() == grammar.dumps()
    assert pickle.loads(pickle.dumps(grammar)) == grammar
    assert json.loads(grammar.dumps())["version"] == 1


def test_rules() -> None:
    """A recursive grammar that is read is equal to the one that was written, and its parts stay shared."""
    grammar = recursive()
    again = Grammar.loads(grammar.dumps())
    assert again == grammar == pickle.loads(pickle.dumps(grammar)) and hash(again) == hash(grammar)
    draw = random.Random(1)
    for _ in range(20):
        text = random_text(grammar, draw, 20)
        assert again.matches(text) and not again.matches(text + "]")
    assert again.dumps() == grammar.dumps()
    part = Grammar.from_json_schema(SCHEMA)
    assert len(json.loads(Grammar.sequence(part, part, part).dumps())["parts"]) == 2


@pytest.mark.parametrize("name", format_names())
def test_calls_of_tools(name: str) -> None:
    """The calls of a tool set, in every wire format, are data too."""

    def weather(city: str, days: int = 1, tags: list[str] | None = None) -> str:
        """Tell the weather."""
        return city

    grammar = ToolSet(ToolSet.from_any([weather])).grammar(name, tool_choice="required")
    again = Grammar.loads(grammar.dumps())
    assert again == grammar and again.specials == grammar.specials
    if not grammar.specials:
        draw = random.Random(2)
        for _ in range(5):
            assert again.matches(random_text(grammar, draw, 60))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is JSON, and this is not"),
        ("[" * 100_000, "is JSON, and this is not"),
        ("[]", "an object with version"),
        ('{"version": 1, "parts": 5}', "an object with version"),
        ('{"version": 9, "root": 0, "parts": []}', "version 9"),
        ('{"version": 1, "root": 0, "parts": [["soup", 1]]}', "unknown kind 'soup'"),
        ('{"version": 1, "root": 3, "parts": []}', "no part 3"),
        ('{"version": 1, "root": -1, "parts": [["regex", "a"]]}', "no part -1"),
        ('{"version": 1, "root": 0, "parts": [["rule", "a", 9]]}', "no part 9"),
        ('{"version": 1, "root": 0, "parts": [["sequence", 0]]}', "malformed"),
        ('{"version": 1, "root": 0, "parts": [["schema", 5, 5]]}', "malformed"),
        ('{"version": 1, "root": 0, "parts": [["ebnf", "root ::= [", "root", []]]}', "character class"),
        ('{"version": 1, "root": 0, "parts": [["schema", {}, {"syntax": {"is": "Path"}}]]}', "not a known syntax"),
    ],
)
def test_errors(text: str, message: str) -> None:
    """What is no grammar is refused."""
    with pytest.raises(GrammarError, match=message):
        Grammar.loads(text)


def mutated(value: Any, draw: random.Random) -> Any:
    """Return JSON data with one value replaced."""
    if isinstance(value, (list, dict)) and value and draw.random() < 0.9:
        keys = list(range(len(value)) if isinstance(value, list) else value)
        key = draw.choice(keys)
        copy = list(value) if isinstance(value, list) else dict(value)
        copy[key] = mutated(value[key], draw)
        return copy
    return draw.choice([None, True, -1, 0, 7, 1.5, "", "x", "rule", [], [0], {}, {"is": "Bounds"}, {"type": "integer"}])


@pytest.mark.parametrize("name", [*GRAMMARS, "recursive"])
def test_damaged_data(name: str) -> None:
    """Damaged data is an error of ours, or another grammar: never an exception of Python's, also when it is used."""
    data = json.loads((recursive() if name == "recursive" else GRAMMARS[name]).dumps())
    draw = random.Random(name)
    for _ in range(60):
        damaged = json.dumps(mutated(data, draw))
        try:
            Grammar.loads(damaged).bind(VOCABULARY)
        except ToolGrammarError:
            pass
        except Exception as error:
            raise AssertionError(damaged) from error


def test_tags_of_a_vocabulary() -> None:
    """A structural tag that was read with a vocabulary is refused: its tokens are those of the vocabulary."""
    with pytest.raises(GrammarError, match="vocabulary"):
        Grammar.from_structural_tag(TAG, vocabulary=VOCABULARY).dumps()


@pytest.mark.parametrize("name", GRAMMARS)
def test_anything_that_is_a_grammar(name: str) -> None:
    """What `dumps` wrote is a grammar wherever one is asked for, as text and as the object that it holds."""
    grammar = GRAMMARS[name]
    data = grammar.dumps()
    assert Grammar.from_any(data) == Grammar.from_any(json.loads(data)) == Grammar.from_any(grammar) == grammar


@pytest.mark.parametrize(
    ("value", "yes", "no"),
    [
        ('root ::= "a"+ # start: "b"', "aa", "b"),
        ('// root ::= "a"\nstart: "b"+', "bb", "a"),
        ({"syntax": "lark", "definition": 'start: "b"'}, "b", "a"),
        ({"syntax": "gbnf", "definition": 'root ::= "a" ?'}, "a", "aa"),
        ({"syntax": "ebnf", "definition": 'root ::= a_b\na_b ::= "a"'}, "a", "b"),
        ({"syntax": "regex", "definition": r"(?i)a\z"}, "A", "b"),
        ('{"syntax": "regex", "definition": "a"}', "a", "b"),
        (TAG, '{"a": 1}', "{}"),
    ],
)
def test_texts_and_objects(value: Any, yes: str, no: str) -> None:
    """A text is GBNF if it defines rules by ``::=`` outside of comments, else Lark; an object says what it is."""
    grammar = Grammar.from_any(value)
    assert grammar.matches(yes) and not grammar.matches(no)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (5, "the grammar is 5"),
        ({"type": "object"}, "an object with 'type'"),
        ({}, "an object with nothing"),
        ('{"a": ', "begins like JSON"),
        ({"syntax": "peg", "definition": ""}, "unknown syntax of a grammar: 'peg'"),
        ({"syntax": "lark", "definition": 1}, "not a text"),
        ("root ::= (", r"line 1, column 11"),
        ("hello", "expected ':' after the name 'hello'"),
    ],
)
def test_what_is_no_grammar(value: Any, message: str) -> None:
    """What is no grammar is an error that says which forms there are, or where the text is wrong."""
    with pytest.raises(GrammarError, match=message):
        Grammar.from_any(value)
