"""Formats between two regular languages: what is written has the format, what must not have it does not."""

from __future__ import annotations

import gzip
import json
import random
import re
import warnings
from pathlib import Path
from typing import Any

import idna
import pytest

from toolgrammar.core import Grammar, UnsatisfiableSchemaError, UnsupportedSchemaError
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex.compile import regex_term
from toolgrammar.core.regex.parser import parse
from toolgrammar.core.schema.scalars.bounded_formats import BOUNDED
from toolgrammar.core.validation import Validator

SUITE = Path(__file__).resolve().parents[4] / "shared" / "data" / "json-schema-test-suite-2020-12.json.gz"
#: Valid and written, valid and left out, invalid and surely so, invalid and not surely so.
CASES: dict[str, tuple[list[str], list[str], list[str], list[str]]] = {
    "hostname": (
        ["a", "www.example.com", "h0st-n4me.x", "a--b.com", ".".join(["a" * 63] * 3), ".".join(["a" * 14] * 16)],
        ["xn--9n2bp8q.xn--9t4b11yi5a", "ab--cd.org", ".".join(["a" * 63] * 3 + ["b"])],
        ["", ".", "a.", ".a", "-a", "a-", "a_b", "a" * 64, "a b", "\u212aelvin.com"],
        ["xn--X", "XN--aa---o47jg78q"],
    ),
    "idn-hostname": (
        ["example.com", "실례.테스트", "b\u00fccher.de", "例え。テスト", "שלום.com", "हिन्दी.भारत", "straße"],
        ["xn--9n2bp8q", "l\u00b7l", "ü" * 21],
        ["", ".", "a.", "a..b", "-a", "a_b", "a" * 64],
        ["\u0300a", "a\u00b7l", "xn--X", "0a.\u05d0", "Ü.de", "ü" * 60],
    ),
    "regex": (
        ["", "^a+$", "([abc])+\\s+$", "[a-z0-9_.-]{2,63}?", "a|b||(?:c|)", "(?=x)(?!y)(?<=[a-b]c)\\bz", "(" * 20 + ")" * 20],
        ["(?<n>a)\\k<n>", "(a)\\1", "\\p{L}", "(" * 21 + ")" * 21, "a{100,200}"],
        ["*a", "+", "?", "a\\"],
        ["^(abc]", "[z-a]", "a**", "a{2,1}", "(?", "\\y"],
    ),
}  # fmt: skip


def grammar(name: str, *, negated: bool = False) -> Grammar:
    """The grammar of strings that have a format, or do not have it."""
    schema: dict[str, Any] = {"format": name}
    return Grammar.from_json_schema({"type": "string", **({"not": schema} if negated else schema)})


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_cases(name: str) -> None:
    """Each kind of string is judged as it should be."""
    written, left_out, surely_not, not_ = CASES[name]
    has, lacks, judge = grammar(name), grammar(name, negated=True), BOUNDED[name].judge
    cases = [(text, (kind == 0, kind == 2, kind < 2)) for kind, texts in enumerate(CASES[name]) for text in texts]
    for text, expected in cases:
        whole = json.dumps(text, ensure_ascii=False)
        assert (has.matches(whole), lacks.matches(whole), judge(text)) == expected, text
    assert written and left_out and surely_not and not_


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_official_suite(name: str) -> None:
    """The judge agrees with the suite; nothing invalid is in the inner language, nothing valid outside the outer."""
    if not SUITE.is_file():
        pytest.skip("the official suite is not beside the repository")
    groups = json.loads(gzip.decompress(SUITE.read_bytes()))["tests"][f"optional/format/{name}"]
    has, lacks = grammar(name), grammar(name, negated=True)
    validator = Validator({"format": name}, formats=True)
    for test in (test for group in groups for test in group["tests"]):
        assert (next(validator.problems(test["data"]), None) is None) == test["valid"], test
        if isinstance(test["data"], str):
            whole = json.dumps(test["data"], ensure_ascii=False)
            assert not (has.matches(whole) and not test["valid"]), test
            assert not (lacks.matches(whole) and test["valid"]), test


def walk(terms: Terms, term: int, draw: random.Random, length: int) -> str:
    """A string of a language, by a random walk that ends once it may after a length."""
    text: list[str] = []
    while not (terms.nullable(term) and (len(text) >= length or draw.random() < 0.05)):
        starts, targets = terms.segments(term)
        stops = [*starts[1:], 0x110000]
        ways = [
            way for way in zip(starts, stops, targets, strict=True) if not terms.is_empty(way[2]) and way[0] != 0xD800
        ]
        if not ways:
            break
        low, stop, term = draw.choice(ways)
        text.append(chr(draw.choice([low, stop - 1, draw.randrange(low, stop)])))
    return "".join(text)


def is_valid(name: str, text: str) -> bool:
    """What others say of a string."""
    try:
        if name == "regex":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                re.compile(text)
            parse(text)
            return True
        return len(idna.encode(text)) <= 253
    except (re.error, idna.IDNAError):
        return False


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_everything_in_the_inner_language_is_valid(name: str) -> None:
    """Random walks, long and short, to the edges of each class of characters; judged by `idna` and `re`."""
    terms, draw = Terms(), random.Random(7)
    inner = BOUNDED[name].inner(terms)
    texts = [walk(terms, inner, draw, draw.choice([1, 5, 20, 60, 250])) for _ in range(250)]
    texts = [text for text in texts if not any("\ud800" <= character <= "\udfff" for character in text)]
    assert len(texts) > 150
    assert [text for text in texts if not is_valid(name, text)] == []
    assert [text for text in texts if not BOUNDED[name].judge(text)] == []


@pytest.mark.parametrize("name", ["hostname", "idn-hostname"])
def test_the_inner_language_lies_within_the_outer(name: str) -> None:
    """So that a format and its negation exclude one another; and neither has many states."""
    terms = Terms()
    inner, outer = BOUNDED[name].inner(terms), BOUNDED[name].outer(terms)
    assert terms.is_empty(terms.and_([inner, terms.not_(outer)]))
    assert terms.is_empty(terms.and_([inner, regex_term(terms, "@", whole=False)]))
    assert len(terms) < 60_000


def test_what_is_narrowed_is_said() -> None:
    """With its place; refused on demand; an error if nothing is left, that does not claim more than is known."""
    schema = {"properties": {"a": {"type": "string", "format": "hostname"}, "b": {"format": "uuid"}}}
    grammar = Grammar.from_json_schema(schema)
    assert [str(each.place) for each in grammar.narrowed] == ["at /properties/a, keyword 'format'"]
    assert "Punycode" in (grammar.narrowed[0].left_out or "") and grammar.unenforced == ()
    assert Grammar.sequence(Grammar.literal("x"), grammar).narrowed == grammar.narrowed
    validated = Grammar.from_json_schema(schema, on_unsupported="validate")
    assert [each.place for each in validated.narrowed] == [each.place for each in grammar.narrowed]
    assert validated.unenforced == ()
    assert Grammar.from_json_schema(schema, formats=False).narrowed == ()
    with pytest.raises(UnsupportedSchemaError, match="hostname"):
        Grammar.from_json_schema(schema, on_unsupported="error")
    nothing = Grammar.from_json_schema({"format": "hostname", "const": "xn--9n2bp8q"})
    with pytest.raises(UnsupportedSchemaError, match="Punycode"):
        nothing.check()


def test_an_unsatisfiable_schema_matches_nothing() -> None:
    """That is what the question means; the error comes where something is to be written."""
    grammar = Grammar.from_json_schema({"type": "string", "minLength": 2, "maxLength": 1})
    assert not grammar.matches('"a"') and not grammar.begins('"')
    with pytest.raises(UnsatisfiableSchemaError):
        grammar.check()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_what_is_left_out_still_has_the_format(name: str, order: Any) -> None:
    """Where a schema counts what has a format, or asks for one schema alone, a string that is left out has it too."""
    form, texts = {"type": "string", "format": name}, [text for text in CASES[name][1] if BOUNDED[name].judge(text)]
    for text in texts:
        escaped, quiet = (
            re.sub(r"[^\w]", lambda found: f"\\u{{{ord(found[0]):x}}}", text),
            {"maxContains": 0, "minContains": 0},
        )
        for schema, value in (
            ({"oneOf": [form, {"enum": [text, 1]}]}, text),
            ({"oneOf": [form, {"type": "string", "pattern": f"^{escaped}$"}]}, text),
            ({"oneOf": [{"properties": {"a": form}}, {"properties": {"a": {"const": text}}}]}, {"a": text}),
            ({"enum": [[text], [1]], "contains": form, **quiet}, [text]),
            ({"type": "array", "items": {"enum": [text, 1]}, "contains": form, **quiet}, [text]),
            ({"enum": [[1, text], [1]], "oneOf": [{"contains": form}, {"minItems": 1}]}, [1, text]),
            ({"enum": [{text: 1}, {"": 1}, {"(": 1}], "not": {"propertyNames": {"format": name}}}, {text: 1}),
            (
                {
                    "type": "object",
                    "properties": {text: {}},
                    "required": [text],
                    "not": {"propertyNames": {"format": name}},
                },
                {text: 1},
            ),
        ):
            options: dict[str, Any] = {
                "on_unsupported": "narrow",
                "property_order": order,
                "additional_properties": False,
            }
            try:
                is_written = Grammar.from_json_schema(schema, **options).matches(json.dumps(value, ensure_ascii=False))
            except UnsupportedSchemaError as error:  # the only valid values are left out
                is_written = error.left_out is None
            assert not is_written, (schema, value)
