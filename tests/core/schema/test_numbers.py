"""Numbers: the text of a number is accepted iff its value is in range."""

from __future__ import annotations

import json
import math
import random
import re
import sys
from decimal import Decimal
from fractions import Fraction
from types import FrameType
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import Grammar, ToolGrammarError, UnsupportedSchemaError, Vocabulary
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.schema.scalars import numbers as numbers_module
from toolgrammar.core.schema.scalars.number_terms import Numbers
from toolgrammar.core.schema.scalars.numbers import NumberRange, exact
from toolgrammar.core.validation import is_valid

BOUNDS = st.one_of(
    st.integers(-120, 120),
    st.sampled_from([0.1, -0.1, 1e-7, -2.5e-7, 2.5e10, 1e16, -3e20, 99.995, 0.5, 1e300, 10**18, -(10**15)]),
    st.decimals(-200, 200, places=2).map(float),
)
NUMBERS = st.one_of(
    st.integers(-130, 130),
    BOUNDS,
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.floats(-130, 130),
    st.integers(-(10**20), 10**20),
)


@st.composite
def bounded_numbers(draw: st.DrawFn) -> dict[str, Any]:
    """A number schema with up to two bounds."""
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["number", "integer"]))}
    for name in draw(
        st.lists(
            st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), max_size=2, unique=True
        )
    ):
        schema[name] = draw(BOUNDS)
    return schema


@given(bounded_numbers(), st.lists(NUMBERS, min_size=5, max_size=12))
def test_agrees_with_jsonschema(schema: dict[str, Any], numbers: list[float]) -> None:
    """Python's spelling of a number is accepted iff jsonschema finds the number valid (integers: any spelling)."""
    try:
        grammar = Grammar.from_json_schema(schema, whitespace="flexible")
        grammar.program  # noqa: B018
    except ToolGrammarError:
        assert not any(is_valid(number, schema) for number in numbers)
        return
    for number in [*numbers, *(schema[name] for name in schema if name != "type")]:
        assert grammar.matches(json.dumps(number)) == is_valid(number, schema), (number, schema)


@pytest.mark.parametrize("text", ["01", "+1", ".5", "1.", "1e", "--1", "1.5.2", "0x1", "1_0", "", "-", "NaN", "1e999"])
def test_what_is_no_number(text: str) -> None:
    """Texts that JSON does not take, or that overflow, are refused."""
    assert not Grammar.from_json_schema({"type": "number"}).matches(text)


@pytest.mark.parametrize("text", ["0", "-0", "10", "-3.25", "1e5", "1E+05", "2.5e-07", "0.000001", "0e0", "-1.5e300"])
def test_what_is_a_number(text: str) -> None:
    """The usual spellings are accepted."""
    assert Grammar.from_json_schema({"type": "number"}).matches(text)


def test_integers_have_one_spelling_unless_flexible() -> None:
    """`1.0` is an integer only where the whitespace policy allows any spelling."""
    tight = Grammar.from_json_schema({"type": "integer"})
    loose = Grammar.from_json_schema({"type": "integer"}, whitespace="flexible")
    assert tight.matches("1") and not tight.matches("1.0") and not tight.matches("1e3")
    assert loose.matches("1.0") and loose.matches("1.50e3") and not loose.matches("1.5e0")


@given(
    st.integers(10**20, 10**100 - 1) | st.integers(25, 99).map(lambda size: 10**size),
    st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
    st.sampled_from(["integer", "number"]),
    st.sampled_from([1, -1]),
)
def test_bounds_of_many_digits_are_reached(bound: int, keyword: str, kind: str, sign: int) -> None:
    """Integers have as many digits as a bound has, up to 100, so that no schema refuses its own bound or the next
    integer within it."""
    schema = {"type": kind, keyword: sign * bound}
    grammar = Grammar.from_json_schema(schema)
    judge = jsonschema.Draft202012Validator(schema)
    for value in range(sign * bound - 1, sign * bound + 2):
        is_longer = len(str(abs(value))) > max(30, len(str(bound))) and keyword.startswith(("min", "max"))
        assert is_longer or grammar.matches(str(value)) == judge.is_valid(value), value
    assert grammar.narrowed == ()


def test_digits_are_bounded() -> None:
    """A model cannot write digits for ever."""
    grammar = Grammar.from_json_schema({"type": "number"})
    assert grammar.matches("1" * 30) and not grammar.matches("1" * 31)
    assert grammar.matches("0." + "1" * 30) and not grammar.matches("0." + "1" * 31)


@pytest.mark.parametrize(
    "values", [[1], [-7], [10, -120], [1_200, 105, 99], [10**14, -(10**15) + 1, 123_456_789_012_345]]
)
def test_listed_integers_are_the_ranges_that_hold_one_of_them(values: list[int]) -> None:
    """The spellings of listed integers are those of the ranges from each of them to itself."""
    terms = Terms()
    numbers = Numbers(terms)
    whole = NumberRange(integer=True)
    ranges = [whole.at_least(exact(value), False).at_most(exact(value), False) for value in values]
    expected = terms.alt([numbers.term(each, any_spelling=True) for each in ranges])
    listed = numbers.listed(values)
    assert terms.is_empty(terms.and_([expected, terms.not_(listed)]))
    assert terms.is_empty(terms.and_([listed, terms.not_(expected)]))


def test_what_bounds_share_is_built_once_and_changes_no_term() -> None:
    """A range has the same term in a store that knows other ranges as in one whose memo is empty, and what all bounds
    need is not built for each: few calls of Python functions lower a further range."""
    choice, terms, calls = random.Random(62), Terms(), 0
    numbers = Numbers(terms)

    def call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls  # those of the store are no Python calls where it is compiled
        calls += event == "call" and any(part in frame.f_code.co_filename for part in ("schema", "unicode"))

    ranges = []
    for _ in range(300):
        size, places = 10 ** choice.randint(1, 17), choice.choice([0, 0, 2, 5])
        least, most = sorted(round(choice.uniform(-size, size), places) for _ in range(2))
        what = NumberRange(integer=not places).at_least(exact(least), choice.random() < 0.3)
        ranges.append((what.at_most(exact(most), choice.random() < 0.3), choice.random() < 0.5))
    made = [numbers.term(what, any_spelling=loose) for what, loose in ranges[:100]]  # the memo is warm
    sys.setprofile(call)
    try:
        made += [numbers.term(what, any_spelling=loose) for what, loose in ranges[100:]]
    finally:
        sys.setprofile(None)
    assert calls / 200 < 80
    for (what, loose), term in zip(ranges, made, strict=True):
        terms.memo.clear()
        assert numbers.term(what, any_spelling=loose) == term


@given(
    st.lists(st.sampled_from(["3", "0.5", "1.25", "7", "0.75"]), min_size=1, max_size=2),
    st.lists(st.sampled_from(["2", "1.5", "6"]), min_size=1, max_size=2),
    st.integers(-40, 40),
    st.integers(0, 30),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_few_multiples_are_written_out_exactly(
    steps: list[str], others: list[str], least: int, width: int, flags: tuple[bool, bool, bool]
) -> None:
    """The term of a range with few multiples, which lists them, is the language that remainders make."""
    what = NumberRange(
        integer=flags[0],
        least=exact(least),
        least_excluded=flags[1],
        most=exact(least + width),
        multiples=tuple(exact(float(step)) for step in steps),
        not_multiples=tuple(exact(float(step)) for step in others),
    )
    terms = Terms()
    listed = Numbers(terms).term(what, any_spelling=flags[2])
    terms.memo.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers_module, "MAX_LISTED", -100)
        remainders = Numbers(terms).term(what, any_spelling=flags[2])
    assert terms.is_empty(terms.and_([listed, terms.not_(remainders)]))
    assert terms.is_empty(terms.and_([remainders, terms.not_(listed)]))


DRAFT_4 = "http://json-schema.org/draft-04/schema#"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer"},
        {"type": "integer", "minimum": 3},
        {"type": ["integer", "string"]},
        {"type": "integer", "enum": [1, 2.0, 12345]},
        {"allOf": [{"type": "integer"}, {"enum": [1, 12345]}]},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        {"type": "number"},
    ],
)
@pytest.mark.parametrize("draft", [DRAFT_4, "http://json-schema.org/draft-06/schema#"])
def test_integers_of_draft_4_have_no_fraction_or_exponent(schema: dict[str, Any], draft: str) -> None:
    """``jsonschema`` and we agree on what an integer is: since draft 6 any number without a remainder."""
    schema = {"$schema": draft, **schema}
    judge = jsonschema.validators.validator_for(schema)(schema)
    grammar = Grammar.from_json_schema(schema, whitespace="flexible")
    texts = ["1", "1.0", "2", "2.0", "5.0", "12345", "12345.0", "1e3", "1.5", "[1, 5]", "[1.0]", "[1, 2.0]"]
    assert {text: grammar.matches(text) for text in texts} == {text: judge.is_valid(json.loads(text)) for text in texts}


@pytest.mark.parametrize("value", [10**28, 10**28 + 1, -(10**40), 1e300, 0.07, 1e-300, float("inf")])
@pytest.mark.parametrize("step", [7, 0.01, 1e-5, 1e300])
def test_multiples_are_judged_of_numbers_of_any_size(value: float, step: float) -> None:
    """Exact arithmetic, with as many digits as it takes; infinity is a multiple of nothing."""
    expected = value != float("inf") and (Fraction(exact(value)) / Fraction(exact(step))).denominator == 1
    assert is_valid(value, {"multipleOf": step}) is expected


@pytest.mark.parametrize(
    ("schema", "text", "whitespace"),
    [
        ({"type": "number", "exclusiveMinimum": 0.1}, "0.10000000000000000001", "single"),
        ({"type": "number", "exclusiveMaximum": 1}, "0.99999999999999999999", "single"),
        ({"type": "number", "exclusiveMinimum": -1}, "-0.99999999999999999999", "single"),
        ({"type": "number", "not": {"const": 0.1}}, "0.10000000000000000001", "single"),
        ({"not": {"const": 10**20}}, "100000000000000000000.0", "single"),
        ({"not": {"const": 1}}, "1e-0", "single"),
        ({"not": {"const": 1}}, "1.0e0", "single"),
        ({"type": "integer", "multipleOf": 3}, "8120091210110109120.0", "flexible"),
    ],
)
def test_decimals_are_judged_as_doubles(schema: dict[str, Any], text: str, whitespace: Any) -> None:
    """What a reader takes for the double beside a decimal is not written where that double is not valid."""
    assert not jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))
    assert not Grammar.from_json_schema(schema, whitespace=whitespace).matches(text)


#: Numbers where integers and doubles differ, and where doubles end.
EDGES = st.one_of(
    st.builds(lambda middle, step: middle + step, st.sampled_from([2**53, 2**63, 2**64, 10**22, 10**23, 10**25, 10**29]),
              st.integers(-3, 3)),
    st.sampled_from([1e22, 1e23, 1e25, 1e29, 1e30, 2.0**53, 2.0**53 + 2, 1e300, 1e307, 1e308, 1.7976931348623157e308]),
    st.sampled_from([5e-324, 1e-323, 1.5e-323, 2.2250738585072014e-308, 2.225073858507201e-308, 1e-307, 1e-30]),
    st.sampled_from([0, 1, 0.1, 10.0, 9.999999999999998, 4503599627370497.5, 10**30 - 1, 2**1024, 10**400]),
).flatmap(lambda number: st.sampled_from([number, -number]))  # fmt: skip
STEPS = st.sampled_from([1, 3, 7, 10, 0.01, 0.25, 0.5, 2.5, 0.3, 1e-5, 1000])
KEYWORDS = st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const", "enum", "not"])


@st.composite
def edged_numbers(draw: st.DrawFn) -> dict[str, Any]:
    """A schema of numbers at the edges."""
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["number", "integer"]))}
    for keyword in draw(st.lists(KEYWORDS, min_size=1, max_size=2, unique=True)):
        edge = draw(EDGES)
        schema[keyword] = [edge] if keyword == "enum" else {"const": edge} if keyword == "not" else edge
    if draw(st.integers(0, 3)) == 0:
        schema["multipleOf"] = draw(STEPS)
    return schema


def spellings(number: float) -> list[str]:
    """Return spellings of a number, and of others beside it, in which the two kinds of readers differ."""
    if abs(number) >= 2**1024:
        return [str(number)]
    double = float(number)
    beside = [double, math.nextafter(double, math.inf), math.nextafter(double, -math.inf)]
    texts = [repr(each) for each in beside if math.isfinite(each)]
    wholes = [int(each) for each in beside if math.isfinite(each) and abs(each) < 1e30]
    wholes += [int(number)] if abs(number) < 1e30 else []
    texts += [str(whole + step) for whole in wholes for step in (-4, -1, 0, 1)]
    texts += [f"{whole}.0" for whole in wholes] + [f"{Decimal(whole):.25e}" for whole in wholes]
    return texts + [f"{Decimal(repr(each)):.22e}" for each in beside if math.isfinite(each)]


@settings(max_examples=300)
@given(edged_numbers(), st.lists(EDGES, min_size=1, max_size=3), st.sampled_from(["single", "flexible"]))
def test_numbers_at_the_edges_are_judged_as_both_validators_judge_them(
    schema: dict[str, Any], others: list[float], whitespace: Any
) -> None:
    """Beyond 2**53, and where doubles end, no spelling is accepted that a validator refuses, and the usual spelling of a
    number that both accept is written."""
    jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="jsonschema-rs is not installed (the extra dev)")
    other = jsonschema_rs.validator_for(schema)
    without = jsonschema.Draft202012Validator({key: value for key, value in schema.items() if key != "multipleOf"})
    try:
        grammar = Grammar.from_json_schema(schema, whitespace=whitespace)
        grammar.program  # noqa: B018
    except ToolGrammarError:
        return
    edges = [*others, *(value for key, value in schema.items() if key not in ("type", "enum", "not", "multipleOf"))]
    edges += [*schema.get("enum", []), *schema.get("not", {}).values()]
    for text in dict.fromkeys(text for edge in edges for text in spellings(edge)):
        value = json.loads(text)
        # Python's validator divides doubles: 0.07 is no multiple of 0.01 for it.
        valid = other.is_valid(value) and without.is_valid(value)
        assert valid or not grammar.matches(text), (schema, text)
        if "multipleOf" in schema or "enum" in schema or "const" in schema:
            continue
        usual = text in (repr(value), str(value).replace("e+", "e"))
        if valid and usual and (schema["type"] == "number" or isinstance(value, int)) and len(text) <= 30:
            assert grammar.matches(text), (schema, text)


@given(st.lists(EDGES, min_size=1, max_size=2), st.data())
def test_unique_numbers_at_the_edges_are_those_of_both_validators(edges: list[float], data: st.DataObject) -> None:
    """Items that either validator takes for equal are not both written; different ones in their usual spelling are."""
    jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="jsonschema-rs is not installed (the extra dev)")
    texts = st.sampled_from([text for edge in edges for text in spellings(edge)])
    pair = data.draw(texts), data.draw(texts)
    value = [json.loads(text) for text in pair]
    schema = {"type": "array", "items": {"type": "number"}, "uniqueItems": True}
    valid = jsonschema_rs.is_valid(schema, value) and jsonschema.Draft202012Validator(schema).is_valid(value)
    is_matched = Grammar.from_json_schema(schema).matches(f"[{pair[0]}, {pair[1]}]")
    assert valid or not is_matched
    if valid and all(re.fullmatch(r"-?[1-9][0-9]{0,29}", text) for text in pair):
        assert is_matched


@pytest.mark.parametrize(
    "text",
    ["1e308", "1.7976931348623157e308", "1.7976931348623157E+308", "-1.7976931348623157e308", "2.2250738585072014e-308",
     "5e-324", "-4e-324", "1e-323", "0.5e308", "0e-310"],
)  # fmt: skip
def test_every_double_can_be_written(text: str) -> None:
    """Exponents reach from the least subnormal double to the greatest double."""
    assert Grammar.from_json_schema({"type": "number"}).matches(text)


@pytest.mark.parametrize("text", ["1.7976931348623158e308", "2e308", "1e309", "2e-324", "1e-325", "1.8e308"])
def test_what_is_no_double_is_not_written(text: str) -> None:
    """What a reader takes for an infinity, or for zero, is no number."""
    assert not Grammar.from_json_schema({"type": "number"}).matches(text)


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["single", "compact", "flexible"]))
def test_the_usual_spelling_of_any_double_is_accepted(number: float, whitespace: Any) -> None:
    """Python's spelling of each finite double is a number."""
    assert Grammar.from_json_schema({"type": "number"}, whitespace=whitespace).matches(json.dumps(number))


@pytest.mark.parametrize(
    ("least", "most"), [(1e300, 1e301), (1e31, 2e31), (1e-300, 2e-300), (-1e-31, -1e-32), (1e308, None), (1e300, 1e300)]
)
def test_numbers_that_need_an_exponent_are_counted_for_unique_items(least: float, most: float | None) -> None:
    """Different items are found in a range beyond the digits of plain numbers."""
    items = {"type": "number", "minimum": least, **({} if most is None else {"maximum": most})}
    schema = {"type": "array", "items": items, "uniqueItems": True, "minItems": 1 if least == most else 3}
    matcher = Grammar.from_json_schema(schema).bind(Vocabulary([b"["], eos=())).matcher()
    value = json.loads(matcher.shortest_completion())
    assert len(set(value)) == schema["minItems"] and jsonschema.Draft202012Validator(schema).is_valid(value)


@given(STEPS, st.integers(-(10**29), 10**29), st.integers(0, 2))
def test_multiples_of_decimals_have_any_number_of_digits(step: float, count: int, kind: int) -> None:
    """All whole multiples of a step of decimals can be written, and all multiples of a power of ten, of a half, of a
    quarter and so on."""
    jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="jsonschema-rs is not installed (the extra dev)")
    number = count * Decimal(repr(step)) if kind else Decimal(count)
    if kind == 2:
        number = Decimal(round(number))
    text = format(number, "f")
    if len(text.partition(".")[0].lstrip("-")) > 30:
        return
    is_matched = Grammar.from_json_schema({"multipleOf": step}).matches(text)
    judged = jsonschema_rs.is_valid({"multipleOf": step}, json.loads(text))
    assert judged or not is_matched
    if "." not in text or step in (0.01, 1e-5, 0.5, 0.25, 0.125):
        assert is_matched == judged


def test_a_step_of_many_digits_needs_bounds() -> None:
    """A step with too many residues for an automaton is taken where its multiples in the range are few."""
    schema = {"type": "number", "multipleOf": 0.123456789, "minimum": 0, "maximum": 10}
    grammar = Grammar.from_json_schema(schema)
    multiples = [format(count * Decimal("0.123456789"), "f") for count in range(81)]
    assert all(grammar.matches(text) for text in multiples)
    assert not any(grammar.matches(text) for text in ("0.123456788", "0.1234567890001", "10.123456698", "-0.123456789"))
    assert grammar.narrowed == ()


LONG_STEPS: list[tuple[dict[str, Any], list[int], list[int]]] = [  # how often the step is written, and is not
    ({"multipleOf": 0.123456789}, [-1_000, -1, 0, 7, 1_000], [-1_001, 1_001]),
    ({"multipleOf": 0.123456789, "minimum": 1}, [9, 1_009], [0, 8, 1_010]),
    ({"multipleOf": 0.123456789, "maximum": -1}, [-1_009, -9], [-1_010, -8, 0]),
    ({"type": "integer", "multipleOf": 1_234_567}, [-1_000, 0, 1_000], [1_001]),
]


@pytest.mark.parametrize(("schema", "written", "left_out"), LONG_STEPS)
def test_multiples_of_a_long_step_are_narrowed(schema: dict[str, Any], written: list[int], left_out: list[int]) -> None:
    """A step with too many residues has the multiples near zero, which is said."""
    step = Decimal(str(schema["multipleOf"]))
    grammar = Grammar.from_json_schema(schema)
    assert all(grammar.matches(format(step * count, "f")) for count in written)
    assert not any(grammar.matches(format(step * count, "f")) for count in left_out)
    assert not any(grammar.matches(format(step * count + 1, "f")) for count in (*written, *left_out))
    assert [(each.place.keyword, each.left_out is not None) for each in grammar.narrowed] == [("multipleOf", True)]
    with pytest.raises(UnsupportedSchemaError, match="multipleOf"):
        Grammar.from_json_schema(schema, on_unsupported="error")


def test_steps_that_are_long_together() -> None:
    """Several steps whose least common multiple has too many residues: without bounds, multiples near to zero."""
    steps = {"type": "integer", "allOf": [{"multipleOf": 9_973}, {"multipleOf": 9_967}]}
    bounded = Grammar.from_json_schema({**steps, "minimum": 0, "maximum": 10**9})
    assert all(bounded.matches(str(9_973 * 9_967 * count)) for count in range(11)) and not bounded.matches("9973")
    unbounded = Grammar.from_json_schema(steps)
    assert unbounded.matches(str(9_973 * 9_967 * 1_000)) and not unbounded.matches(str(9_973 * 9_967 * 1_001))
    assert "residues" in str(unbounded.narrowed[0]) and unbounded.narrowed[0].left_out


def test_no_multiples_of_a_long_step() -> None:
    """What is no multiple of a long step is no multiple of a divisor of it, or lies below it."""
    grammar = Grammar.from_json_schema({"type": "integer", "not": {"multipleOf": 2 * 5_000_011}})
    assert all(grammar.matches(text) for text in ("1", "-3", "10000021", "10000021000003", "4", "10000020"))
    assert not any(grammar.matches(text) for text in ("0", "10000022", "-20000044", "10000024"))
    assert [each.place.pointer for each in grammar.narrowed] == ["/not"]


def test_few_multiples_of_a_long_step_run_out() -> None:
    """Items that must not repeat are counted among the multiples that can be written."""
    schema = {"type": "array", "items": {"type": "number", "multipleOf": 0.123456789}, "uniqueItems": True}
    with pytest.raises(UnsupportedSchemaError, match="are left out: "):
        Grammar.from_json_schema({**schema, "minItems": 2_002}).bind(Vocabulary([b"["], eos=()))
    matcher = Grammar.from_json_schema({**schema, "minItems": 3}).bind(Vocabulary([b"["], eos=())).matcher()
    assert len(set(json.loads(matcher.shortest_completion()))) == 3
