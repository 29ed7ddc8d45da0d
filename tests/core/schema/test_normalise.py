"""Normal forms: the alternatives of a goal are empty iff no value is left, and ways to say one thing mean one thing."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, InvalidSchemaError, LimitError, UnsupportedSchemaError
from toolgrammar.core.language.nodes import Nodes
from toolgrammar.core.schema.compile import compile_schema, every_problem
from toolgrammar.core.schema.lower.lowering import Lowering
from toolgrammar.core.schema.normal import normalise
from toolgrammar.core.schema.normal.conjunction import Conjunction
from toolgrammar.core.schema.normal.normalise import Normaliser
from toolgrammar.core.schema.read.keywords import KEYWORDS
from toolgrammar.core.schema.read.located import SignedSchema
from toolgrammar.core.schema.read.options import SchemaOptions
from toolgrammar.core.schema.read.resolve import Document

from ...schemas import random_schema
from .universe import UNIVERSE, accepted, valid

A, B = {"required": ["a"]}, {"required": ["b"]}
INT, STRING = {"type": "integer"}, {"type": "string"}

#: Ways to say the same; the last of each is plain.
SAME: dict[str, list[Any]] = {
    "reference": [{"$ref": "#/$defs/int"}, {"allOf": [{"$ref": "#/$defs/int"}]}, INT],
    "merged": [{"allOf": [A, {"minProperties": 2}]}, {"required": ["a"], "minProperties": 2}],
    "nested": [{"allOf": [{"allOf": [A, {"allOf": [B]}]}]}, {"required": ["a", "b"]}],
    "one option": [{"anyOf": [INT]}, {"oneOf": [INT]}, {"anyOf": [INT, False]}, {"oneOf": [False, INT]}, INT],
    "union": [{"anyOf": [INT, STRING]}, {"oneOf": [STRING, INT]}, {"not": {"not": {"type": ["string", "integer"]}}}],
    "one of": [{"oneOf": [A, B]}, {"anyOf": [A, B], "not": {"allOf": [A, B]}}],
    "both hold": [{"oneOf": [INT, {"minimum": 1}]}, {"anyOf": [INT, {"minimum": 1}], "not": {**INT, "minimum": 1}}],
    "if": [
        {"if": INT, "then": {"minimum": 1}, "else": STRING},
        {"anyOf": [{**INT, "minimum": 1}, {"allOf": [{"not": INT}, STRING]}]},
    ],
    "if alone": [{"if": INT}, {"then": False}, {"else": False}, True],
    "dependent": [
        {"dependentRequired": {"a": ["b"]}},
        {"dependentSchemas": {"a": B}},
        {"if": {"type": "object", **A}, "then": B},
        {"anyOf": [{"not": {"type": "object", **A}}, B]},
    ],
    "nothing": [{"allOf": [INT, STRING]}, {"not": {}}, {"type": "string", "enum": [1]}, {"oneOf": [INT, INT]}, False],
}


def branches(schema: Any) -> list[Conjunction]:
    """Return the alternatives of a document."""
    document = Document(schema)
    return Normaliser(document).branches((SignedSchema(document.root),))


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("value", "denied"),
    [
        ({"type": ["null", "boolean"]}, {"type": "string", "pattern": "x$"}),
        ({"anyOf": [{"type": "string", "enum": ["k"]}, {"type": "null"}]}, {"type": "string", "enum": ["x"]}),
        ({"anyOf": [{"type": "number"}, {"const": None}]}, {"type": "string", "const": "x"}),
        ({"type": ["string", "null"]}, {"type": "string", "enum": ["x"]}),
    ],
)
def test_what_is_denied_of_other_values_adds_no_alternatives(value: Any, denied: Any, closed: bool) -> None:
    """A value that is no string meets the denial of a string in one way, however many strings are denied."""
    strings = [json.loads(json.dumps(denied).replace("x", f"x{index}")) for index in range(40)]
    document = Document({**value, "allOf": [{"not": each} for each in strings]})
    found = Normaliser(document, open_objects=not closed).branches((SignedSchema(document.root),))
    assert 1 <= len(found) <= 2


@pytest.mark.parametrize("name", SAME)
def test_ways_to_say_the_same(name: str) -> None:
    """All take the same values, alone, below a member, and under a negation; ``jsonschema`` says so too."""
    for frame in ("plain", "member", "negated"):
        verdicts = []
        for schema in SAME[name]:
            inner: Any = {"allOf": [schema], "$defs": {"int": INT}}
            if frame == "member":
                inner = {"properties": {"a": schema}, "items": schema, "$defs": {"int": INT}}
            if frame == "negated":
                inner = {"not": schema, "$defs": {"int": INT}}
            verdicts.append(accepted(inner))
            assert verdicts[-1] == valid(inner), inner
        assert all(verdict == verdicts[0] for verdict in verdicts)


def test_no_alternative_is_left_iff_no_value_is() -> None:
    """Beside a list of values, which makes the question finite: the alternatives are empty iff none of them is valid."""
    empty = refused = 0
    total = 250
    for seed in range(total):
        rng = random.Random(seed)
        schema = random_schema(rng, 2)
        values = rng.sample(UNIVERSE, 3)
        whole = {"$defs": schema.pop("$defs", {}), "allOf": [schema, {"enum": values}]}
        try:
            taken = accepted(whole)
            left = branches(whole)
        except (UnsupportedSchemaError, LimitError):
            refused += 1
            continue
        assert taken == valid(whole), whole
        assert left or not taken
        empty += not taken
    assert refused < 0.15 * total and 30 < empty < total - refused - 30, (refused, empty)


def test_alternatives_do_not_multiply_where_types_differ() -> None:
    """Options of different types are as many alternatives as there are options."""
    options = [{"type": kind} for kind in ("null", "boolean", "string", "array")]
    assert len(branches({"allOf": [{"anyOf": options}] * 6})) == len(options)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [STRING, {"not": {"$ref": "#"}}]},
        {"$ref": "#/$defs/x", "$defs": {"x": {"oneOf": [{"$ref": "#/$defs/y"}]}, "y": {"$ref": "#/$defs/x"}}},
    ],
    ids=json.dumps,
)
def test_schemas_that_describe_nothing_but_themselves(schema: Any) -> None:
    """A schema that refers to itself about the same value is an error."""
    with pytest.raises(InvalidSchemaError):
        Grammar.from_json_schema(schema)


def test_recursion_about_a_part() -> None:
    """A schema that refers to itself about items and members describes them."""
    schema = {"type": ["array", "object", "null"], "items": {"$ref": "#"}, "additionalProperties": {"$ref": "#"}}
    assert len(accepted(schema)) > 1 and accepted(schema) == valid(schema)


def test_too_many_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the place; the limit is counted in alternatives."""
    options = [{"properties": {name: INT}, "required": [name]} for name in "abcd"]
    schema = {"allOf": [{"anyOf": options}, {"anyOf": [{"minProperties": 2}, {"maxProperties": 3}]}]}
    assert len(branches(schema)) > 4
    monkeypatch.setattr(normalise, "MAX_BRANCHES", 4)
    with pytest.raises(LimitError, match="alternatives"):
        branches(schema)


def test_a_schema_without_applicators_needs_no_normal_form() -> None:
    """Its texts are those of its goal, as the same node, and no goal is expanded for them."""
    rng = random.Random(62)
    compared = 0
    for _ in range(300):
        schema = random_schema(rng, 2)
        if not KEYWORDS.applicators.isdisjoint(schema):
            continue
        try:
            compiled = compile_schema(schema, SchemaOptions())
        except (LimitError, UnsupportedSchemaError):
            continue
        lowering = Lowering(Normaliser(compiled.document), compiled.options, Nodes(), every_problem)
        try:
            node = lowering.expand(compiled.document.root)
        except LimitError:
            continue
        assert (SignedSchema(compiled.document.root),) not in lowering.normaliser.expanded
        assert node == lowering._value((SignedSchema(compiled.document.root),)), schema
        compared += 1
    assert compared > 75
