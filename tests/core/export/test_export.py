"""Exports: read again here, by xgrammar, by llguidance and by `re`, with the same verdicts."""

from __future__ import annotations

import itertools
import json
import pickle
import random
import re
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, GrammarError, LimitError, UnsatisfiableSchemaError, Vocabulary
from toolgrammar.core.export.rules import ExportedRules, inlined, shared
from toolgrammar.core.export.writers import written_as
from toolgrammar.core.grammar import notations
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.core.text_grammars.expressions import Chars, Choice, Expression, Literal, choice, sequence, walk
from toolgrammar.core.unicode.charset import CharSet
from toolgrammar.tools import ToolSet

from ..text_grammars.peers import in_llguidance, in_xgrammar
from ..text_grammars.test_ebnf_gbnf import mutated

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 9},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "odd": {"type": "number", "multipleOf": 0.5},
        "kind": {"enum": ["a", "é", "\U0001f600", 'x"\\\n', None, 3]},
        "tags": {"type": "array", "items": {"enum": ["ab", "abc", "b"]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "kind"],
    "additionalProperties": False,
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "value": {"type": "number"}},
    "required": ["value"],
    "additionalProperties": False,
}


def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return city


GRAMMARS = {
    "person": Grammar.from_json_schema(PERSON),
    "list": Grammar.from_json_schema({"type": "array", "items": PERSON["properties"]["code"]}),
    "tree": Grammar.from_json_schema(TREE),
    "regex": Grammar.from_regex(r"(?!ab)[a-c]{1,4}|\u{1F600}+[^x]|é*"),
    "rule": Grammar.from_gbnf('root ::= root "+" term | term\nterm ::= [0-9]+ | "(" root ")"'),
    "words": Grammar.from_gbnf('root ::= ("a" | "ab" "c" | "abcd" | [a-c] "!")+'),
    "csv": Grammar.csv(["a", "b"], newline="\n", max_rows=2),
    "sql": Grammar.sql_select({"people": {"id": "integer", "name": "string"}}),
    "until": Grammar.until("<end>") + Grammar.text(excluding=["no"]),
    "uri": Grammar.from_json_schema({"type": "string", "format": "uri"}),
    "many": Grammar.from_json_schema({"enum": [*(f"w{n:x}" for n in range(2_500)), *("a" * n for n in range(120)), 1]}),
    "nested": Grammar.from_regex("(?:(?:(?:a|b)(?:c|d)?)?e?)*f|(?:(?:gh)?)*(?:(?:i|j)(?:k|l))*"),
    "calls": ToolSet(ToolSet.from_any([weather])).grammar(tool_choice="required", max_calls=1),
}


def texts_of(grammar: Grammar) -> list[str]:
    """Return random texts and others that differ by one change."""
    draw = random.Random(3)
    texts = [random_text(grammar, draw, 50) for _ in range(25)]
    return [*texts, *(mutated(draw, text) for text in texts for _ in range(3))]


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("notation", ["gbnf", "ebnf", "lark"])
def test_exports_are_read_again(name: str, notation: str) -> None:
    """An exported grammar has the same texts when it is read again."""
    grammar = GRAMMARS[name]
    exported = getattr(grammar, f"to_{notation}")()
    assert exported.unsaid == ()
    again = getattr(Grammar, f"from_{notation}")(exported.text)
    for text in texts_of(grammar):
        assert again.matches(text) == grammar.matches(text), text


@pytest.mark.parametrize("name", GRAMMARS)
def test_in_xgrammar(name: str) -> None:
    """Xgrammar accepts the same texts of an export."""
    grammar = GRAMMARS[name]
    accepts = in_xgrammar(grammar.to_ebnf().text)
    for text in texts_of(grammar):
        assert accepts(text) == grammar.matches(text), text


@pytest.mark.parametrize("name", GRAMMARS)
def test_in_llguidance(name: str) -> None:
    """Llguidance accepts the same texts of an export: its lexer has one way of cutting each."""
    grammar = GRAMMARS[name]
    accepts = in_llguidance(grammar.to_lark().text)
    for text in texts_of(grammar):
        assert accepts(text) == grammar.matches(text), text


def test_shared_parts_are_read_once() -> None:
    """An expression of 60 parts with two uses each, a tree of 2**60, becomes as many rules, in every notation."""
    part: Expression = Chars(CharSet.range("a", "z"))
    for _ in range(60):
        part = choice(sequence(part, Literal("a")), sequence(part, Literal("b")))
    hash(part)
    assert "_hash" not in vars(pickle.loads(pickle.dumps(part)))  # hashes of texts differ between processes
    assert sum(1 for _ in walk(part)) < 400
    rules = ExportedRules(shared(inlined({"root": part}, "root")), "root", ())
    assert 58 <= len(rules.rules) <= 62
    for notation in ("gbnf", "ebnf", "lark"):
        assert len(written_as(notation, rules, {}).text) < 5_000


def test_what_repeats_is_written_once() -> None:
    """A part that occurs more than once is a rule, so that large schemas stay small enough for llguidance."""
    day = {"type": "string", "format": "date-time"}
    wide = {f"p{n}": {"type": "object", "properties": {"at": day, "to": day}} for n in range(40)}
    one = Grammar.from_json_schema({"type": "object", "properties": {"at": day}, "additionalProperties": False})
    many = Grammar.from_json_schema({"type": "object", "properties": wide, "additionalProperties": False})
    assert len(many.to_gbnf().text) < 4 * len(one.to_gbnf().text)
    assert len(many.to_lark().text) < 4 * len(one.to_lark().text)


@pytest.mark.parametrize("notation", ["gbnf", "ebnf", "lark"])
def test_common_beginnings_are_written_once(notation: str) -> None:
    """A parser that follows all alternatives at the same time, as all do, has few of them for thousands of words."""
    rules = notations.exported(GRAMMARS["many"]).rules
    assert max(len(part.items) for body in rules.values() for part in walk(body) if isinstance(part, Choice)) < 128
    text = getattr(GRAMMARS["many"], f"to_{notation}")().text
    assert text.count('"w') + text.count('"\\"w') < 20
    assert len(text) < 90_000


def random_pattern(draw: random.Random, depth: int = 0) -> str:
    """Return a random regular expression of groups, alternatives and repetitions."""
    kind = draw.choice(["char", "group", "group"]) if depth < 4 else "char"
    if kind == "char":
        return draw.choice(["a", "b", "[a-c]", "ab", "é"])
    ways = [
        "".join(random_pattern(draw, depth + 1) for _ in range(draw.randrange(3))) for _ in range(draw.randrange(1, 4))
    ]
    return f"(?:{'|'.join(ways)}){draw.choice(['', '?', '*', '+', '{2}', '{0,2}', '{1,}'])}"


@pytest.mark.parametrize("seed", range(40))
def test_random_patterns(seed: int) -> None:
    """Groups, alternatives and repetitions nested in any way are the same texts in every notation."""
    draw = random.Random(seed)
    grammar = Grammar.from_regex(random_pattern(draw) + random_pattern(draw))
    again = [
        getattr(Grammar, f"from_{name}")(getattr(grammar, f"to_{name}")().text) for name in ("gbnf", "ebnf", "lark")
    ]
    again.append(Grammar.from_regex(grammar.to_regex().text))
    samples = [random_text(grammar, draw, 12) for _ in range(6)]
    for text in [*samples, *(mutated(draw, sample) for sample in samples)]:
        assert {other.matches(text) for other in again} == {grammar.matches(text)}, text


@pytest.mark.parametrize("name", ["list", "regex", "words", "csv", "until", "calls"])
def test_regular_expressions(name: str) -> None:
    """Python's `re` accepts the same texts of a regular grammar."""
    grammar = GRAMMARS[name]
    pattern = re.compile(grammar.to_regex().text)
    again = Grammar.from_regex(grammar.to_regex().text)
    for text in texts_of(grammar):
        assert bool(pattern.fullmatch(text)) == grammar.matches(text) == again.matches(text), text


def test_what_cannot_be_said() -> None:
    """What depends on the text so far is left out and named; the rest is kept."""
    unique = Grammar.from_json_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    exported = unique.to_gbnf()
    assert exported.unsaid == ("that items or names differ from those before",)
    again = Grammar.from_gbnf(exported.text)
    assert again.matches("[1, 1]") and not unique.matches("[1, 1]") and not again.matches("[1, x]")
    assert Grammar.json().to_ebnf().unsaid == ("that a name occurs only once in an object",)


@pytest.mark.parametrize(
    ("schema", "kept", "refused"),
    [
        ({"format": "email", "maxLength": 1_024}, f'"{"a" * 64}@{"b" * 60}.{"c" * 60}"', '"no email"'),
        ({"pattern": "^[ab]*a[ab]{14}$", "allOf": [{"pattern": "^[ab]*b[ab]{13}$"}]}, f'"{"a" * 16}"', '"ab"'),
    ],
)
def test_what_takes_too_many_states_loses_a_part(schema: dict[str, Any], kept: str, refused: str) -> None:
    """A bound on the length goes before a format; of equal patterns one stays. The part that is left out is named."""
    exported = Grammar.from_json_schema({"type": "string", **schema}).to_gbnf()
    assert [reason for reason in exported.unsaid if "states" in reason]
    again = Grammar.from_gbnf(exported.text)
    assert again.matches(kept) and not again.matches(refused)


def test_counted_groups_are_rules_in_gbnf() -> None:
    """llama.cpp multiplies a count by the groups and names in what is counted, and refuses a product of 2,000."""
    name = {"type": "string", "maxLength": 1_024}
    grammar = Grammar.from_json_schema(
        {"type": "object", "properties": {"a": name, "b": {"type": "array", "items": name}}}
    )
    text = grammar.to_gbnf().text
    assert "){" not in text and "{0,1024}" in text
    again = Grammar.from_gbnf(text)
    for size in (1_024, 1_025):
        assert again.matches(f'{{"a": "{"x" * size}"}}') is (size == 1_024)


def test_negated_classes_are_ascii() -> None:
    """Tokens may end within a character, where llama.cpp refuses a negated class with any character that may follow."""
    text = Grammar.from_regex(r"[^a\u2028]+[^b]").to_gbnf().text
    assert "[\\u0000-\\u0060b-\\u2027\\u2029-" in text and "[^b]" in text


def test_control_tokens() -> None:
    """A control token is named, or given by its id, where the notation can; else that is named."""
    grammar = Grammar.special("<end>") + Grammar.literal("x")
    vocabulary = Vocabulary([b"x", None, None], eos=[1], special={"<end>": 2})
    assert grammar.to_gbnf().text == 'root ::= <end> "x"\n' and grammar.to_lark().text == 'start: <end> "x"\n'
    assert grammar.to_gbnf(vocabulary).text == 'root ::= <[2]> "x"\n'
    assert grammar.to_ebnf(vocabulary).text == 'root ::= Token(2) "x"\n'
    assert grammar.to_ebnf().unsaid == ("that '<end>' is a control token",)
    with pytest.raises(GrammarError, match="control token"):
        grammar.to_regex()


def test_errors() -> None:
    """What is not regular has no regular expression; bytes that are no text have no form at all."""
    with pytest.raises(GrammarError, match="recursive"):
        GRAMMARS["tree"].to_regex()
    with pytest.raises(GrammarError, match="recursive"):  # right recursion that embeds itself at the end
        Grammar.from_gbnf('root ::= "x" b | "y"\nb ::= root "z"').to_regex()
    with pytest.raises(LimitError, match="longer"):  # known before it is built: doing so took minutes
        Grammar.xml(tags=["a", "b", "c"]).to_regex()
    deep = Grammar.from_gbnf(
        "root ::= r0\n" + "\n".join(f'r{n} ::= ("a" | "b" r{n + 1} "c") "d"?' for n in range(900)) + '\nr900 ::= "e"'
    )
    with pytest.raises(LimitError, match="nested too deeply"):
        deep.to_gbnf()
    with pytest.raises(GrammarError, match="UTF-8"):
        Grammar.literal(b"\xff").to_gbnf()


@pytest.mark.parametrize("extra", [{}, {"minItems": 2}, {"maxItems": 2}, {"minItems": 3}])
@pytest.mark.parametrize("values", [["a"], ["a", "b"], ["a", 1, None], ["a", 1, None, True, {"x": 1}, [2]]])
def test_unique_items_of_few_values_are_said_whole(values: list[Any], extra: dict[str, int]) -> None:
    """Each set of earlier items is a state, so that other engines get the exact language of ``uniqueItems``."""
    schema = {"type": "array", "items": {"enum": values}, "uniqueItems": True, **extra}
    if extra.get("minItems", 0) > len(values):
        with pytest.raises(UnsatisfiableSchemaError):
            Grammar.from_json_schema(schema).check()
        return
    grammar = Grammar.from_json_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for exported, read in ((grammar.to_ebnf(), Grammar.from_ebnf), (grammar.to_gbnf(), Grammar.from_gbnf)):
        assert exported.unsaid == ()
        said = read(exported.text)
        for size in range(4):
            for items in itertools.product(values, repeat=size):
                text = json.dumps(list(items))
                assert said.matches(text) == grammar.matches(text) == validator.is_valid(list(items)), text
