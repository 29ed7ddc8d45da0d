"""Makers of grammars: strings as parts, and wrong values, which are errors of ours at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from toolgrammar.core import Grammar, GrammarError, InvalidSchemaError

X = Grammar.literal("x")


def test_strings_are_literals() -> None:
    """A string stands for its literal, wherever a part may stand."""
    assert Grammar.sequence(Grammar.literal("a"), X) + Grammar.literal("b") == "a" + X + "b"
    assert (X | "b").matches("b") and ("b" | X).matches("x") and Grammar.choice("é", b"\xff").matches(b"\xff")
    assert Grammar.repeat("ab", 1, 2).matches("abab") and Grammar.cases({"a": "b"}).matches("ab")
    assert Grammar.distinct(["a", X], "-", min=2).matches("x-a")


WRONG: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = {
    "number as literal": (Grammar.literal, (5,), {}, "a literal is 5"),
    "half a character": (Grammar.literal, ("\ud800",), {}, "surrogate"),
    "number as token": (Grammar.special, (5,), {}, "the name of a control token is 5"),
    "negative length": (Grammar.text, (), {"min_chars": -1}, "characters: between -1"),
    "length as text": (Grammar.text, (), {"min_chars": "3"}, "a bound of characters is '3'"),
    "number excluded": (Grammar.text, (), {"excluding": [5]}, "a string of excluding is 5"),
    "set excluded": (Grammar.text, (), {"excluding": {"a"}}, "excluding is"),
    "number as marker": (Grammar.until, (5,), {}, r"the marker of until\(\) is 5"),
    "number as part": (Grammar.sequence, (X, 5), {}, "a part of a grammar is 5"),
    "none as alternative": (Grammar.choice, (X, None), {}, "a part of a grammar is None"),
    "number repeated": (Grammar.repeat, (5,), {}, "a part of a grammar is 5"),
    "half a time": (Grammar.repeat, (X, 1.5), {}, "is 1.5"),
    "crossed bounds": (Grammar.repeat, (X, 2, 1), {}, "between 2 and 1"),
    "number as key": (Grammar.cases, ({5: X},), {}, "a key of cases"),
    "too many distinct": (Grammar.distinct, ([X], "-", 2), {}, "cannot take 2 of 1"),
    "number as rule": (Grammar.rule, (5, lambda: X), {}, "the name of a rule is 5"),
    "number as pattern": (Grammar.from_regex, (5,), {}, "a regular expression is 5"),
    "column twice": (Grammar.csv, (["a", "a"],), {}, "contain 'a' twice"),
    "no tables": (Grammar.sql_select, (5,), {}, "SELECT needs a table"),
    "number as tables": (Grammar.sql_select, ({"t": 5},), {}, "columns of the table 't' are 5"),
    "number as tags": (Grammar.xml, (), {"tags": 5}, "tags are 5"),
    "list as whitespace": (Grammar.from_json_schema, ({},), {"whitespace": ["single"]}, "whitespace is \\['single'\\]"),
    "unknown order": (Grammar.from_json_schema, ({},), {"property_order": "none"}, "property_order is 'none'"),
    "attribute twice": (Grammar.xml, (), {"tags": {"a": ["x", "x"]}}, "contain 'x' twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_values(name: str) -> None:
    """What a maker cannot take is refused when it is given, and named."""
    make, arguments, options, message = WRONG[name]
    with pytest.raises(GrammarError, match=message):
        make(*arguments, **options)


@pytest.mark.parametrize("join", [lambda: X + 5, lambda: 5 + X, lambda: X | None, lambda: None | X])
def test_operators_of_other_values(join: Callable[[], Any]) -> None:
    """The operators refuse what is neither a grammar nor a string."""
    with pytest.raises(GrammarError, match="a part of a grammar"):
        join()


@pytest.mark.parametrize(
    "given", [["yes", "no"], ("yes", "no"), iter(["yes", "no"])], ids=["list", "tuple", "iterator"]
)
def test_a_choice_takes_a_list(given: Any) -> None:
    """The parts of a choice may be one list; an empty one is an error, as none at all."""
    assert Grammar.choice(given) == Grammar.choice("yes", "no")
    with pytest.raises(GrammarError, match="at least one alternative"):
        Grammar.choice([])
    with pytest.raises(GrammarError, match="a part of a grammar is"):
        Grammar.choice([["yes"]])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (re.compile("a+b?"), ["a", "aab", "b", ""]),
        (re.compile("ab|c", re.IGNORECASE), ["AB", "aB", "C", "abc"]),
        (re.compile(r" a  b # and so on", re.VERBOSE), ["ab", " a  b"]),
        (re.compile("a.b", re.DOTALL), ["a\nb", "axb", "ab"]),
        (re.compile(r"\d+\Z"), ["12", "x"]),
    ],
)
def test_a_compiled_pattern_is_read_as_python_reads_it(pattern: re.Pattern[str], texts: list[str]) -> None:
    """A compiled pattern matches what its ``fullmatch`` matches, with its flags."""
    grammar = Grammar.from_regex(pattern)
    assert [grammar.matches(text) for text in texts] == [pattern.fullmatch(text) is not None for text in texts]
    with pytest.raises(GrammarError, match="not a text"):
        Grammar.from_regex(re.compile(b"a"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ('{"type": "object"}', "json.loads(...) gives the schema of a JSON text"),
        (["red", "blue"], "one of some values is {'enum': [...]}"),
        ("schema.json", "json.loads(Path(...).read_text()) gives the schema of a file"),
        (Path("schema.json"), "json.loads(Path(...).read_text()) gives the schema of a file"),
        (5, "give a dict, or a Pydantic class"),
    ],
)
def test_what_is_no_schema_says_how_to_give_one(given: Any, hint: str) -> None:
    """A JSON text and a list of values are no schemas; the error says how they are given."""
    with pytest.raises(InvalidSchemaError, match="must be an object or a boolean") as caught:
        Grammar.from_json_schema(given)
    assert caught.value.hint and caught.value.hint.endswith(hint)


def test_a_class_without_a_json_schema() -> None:
    """Pydantic's error becomes ours."""

    class Handler(BaseModel):
        run: Callable[[int], int]

    with pytest.raises(InvalidSchemaError, match="Handler has no JSON Schema"):
        Grammar.from_json_schema(Handler)
