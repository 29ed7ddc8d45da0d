"""Values that are not spelled as JSON: Python itself reads what the grammar admits, and finds the schema's values."""

from __future__ import annotations

import ast
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.schema import SchemaOptions, compile_schema
from toolgrammar.core.schema.scalars.value_syntax import Arguments, BareSyntax, PythonSyntax

from ...vocabularies import random_text

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None, None], eos=[256], special={"Q": 257})
KEYWORDS = Arguments(names=r"[a-z]\w*", separator=((", ", False),), after_name=(("=", False),))


def spelled(schema: Any, **options: Any) -> Grammar:
    """The grammar of a schema in Python's syntax, if no other is asked for."""
    options.setdefault("syntax", PythonSyntax())
    compiled = compile_schema(schema, SchemaOptions(**options))
    return Grammar(compiled.build, ("schema", compiled))


SCHEMAS: list[Any] = [
    {"type": "string"},
    {"type": "string", "pattern": "^[a-c'\"\\\\\\n]{2,4}$"},
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": "string", "format": "date"},
    {"type": ["boolean", "null", "integer"]},
    {"enum": ["it's", 'a "b"', None, False, {"k": ["x", 1.5]}, []]},
    {"type": "array", "items": {"enum": ["a", "b'", 'c"', 1, 2]}, "uniqueItems": True, "minItems": 2},
    {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2},
    {"type": "object", "patternProperties": {"^[xy]$": {"type": "boolean"}}, "additionalProperties": False},
    {"type": "object", "properties": {"a'b": {"type": "string"}, "n": {"$ref": "#"}}, "additionalProperties": False},
    {"not": {"type": ["string", "object", "array"]}},
    True,
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_python_reads_what_is_admitted(schema: Any) -> None:
    """Every text of the grammar is a literal of Python, and its value is valid under the schema."""
    grammar = spelled(schema)
    for seed in range(12):
        text = random_text(grammar, seed, (60,), BYTES).decode()
        assert grammar.matches(text)
        value = ast.literal_eval(text)
        jsonschema.Draft202012Validator(schema).validate(value)


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), max_size=20), quote=st.sampled_from("\"'"))
def test_every_string_can_be_written(text: str, quote: str) -> None:
    """Each string has a literal in either kind of quotes, which Python reads back."""
    literal = PythonSyntax.literal(text, quote)
    assert ast.literal_eval(literal) == text
    assert spelled({"type": "string"}).matches(literal)
    assert spelled({"const": text}).matches(literal)
    assert not spelled({"type": "string", "maxLength": len(text)}).matches(PythonSyntax.literal(text + "x", quote))


def test_names_are_not_repeated() -> None:
    """Undeclared names come once, whatever the quotes; keyword arguments too."""
    grammar = spelled({"type": "object", "additionalProperties": {"type": "string"}})
    assert grammar.matches("""{"a": "{'b': ", 'b': 'x"', "c": ""}""")
    assert not grammar.matches("""{"a": "", 'a': ""}""")
    keywords = spelled({"type": "object", "additionalProperties": {"type": "array"}}, arguments=KEYWORDS)
    call = Grammar.literal("f(") + keywords + Grammar.literal(")")
    assert call.matches("f(a=[], b=['a=', {\"a\": 1}], c=[])")
    assert not call.matches("f(a=[], b=['a='], a=[])")


def test_keywords_on_the_arguments_as_a_whole() -> None:
    """What is asked of the object holds of keyword arguments."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "null"}},
        "dependentRequired": {"a": ["c"]},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "additionalProperties": False,
    }
    grammar = spelled(schema, arguments=KEYWORDS)
    for text, valid in (
        ("a=1, c=None", True),
        ("b='x'", True),
        ("a=1, b='x', c=None", True),
        ("a=1", False),
        ("", False),
        ("c=None", False),
    ):
        assert grammar.matches(text) is valid, text


def test_control_tokens_as_quotes() -> None:
    """Strings between control tokens; names that are not repeated are told from what strings hold."""
    schema = {"type": "object", "additionalProperties": {"type": "string", "maxLength": 9}, "maxProperties": 3}
    grammar = spelled(schema, syntax=BareSyntax(("Q", True), "[a-z]+"), whitespace="compact")

    def admits(*pieces: str) -> bool:
        matcher = grammar.bind(BYTES).matcher()
        ids = [257 if each == "Q" else byte for each in pieces for byte in ([0] if each == "Q" else each.encode())]
        return all(matcher.accept(each) for each in ids) and matcher.is_accepting

    assert admits("{a:", "Q", "{,b:", "Q", ",b:", "Q", "Q", "}")
    assert not admits("{a:", "Q", "x", "Q", ",a:", "Q", "Q", "}")
    assert not admits("{a:", "Q", "ten chars.", "Q", "}")
    assert not grammar.matches("{a:QQ}")
