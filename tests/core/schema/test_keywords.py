"""Every keyword of the table that constrains values does so: alone, beside its type, and negated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolgrammar.core.schema.read.keywords import KEYWORDS, Role

from .support_table import KEYWORDS as EXAMPLES
from .universe import accepted, valid

CONSTRAINING = {Role.ASSERTION, Role.PARTS, Role.SAME_VALUE, Role.REMAINDER, Role.FORMAT}
#: Judged with another keyword, which has a row in the table of examples.
BESIDE = {"then", "else", "additionalItems", "nullable"}
NAMES = sorted(name for name, row in KEYWORDS.items() if row.role in CONSTRAINING and name not in BESIDE)


def example(name: str) -> dict[str, Any]:
    """Return a schema that uses a keyword, in a dialect that has it, and that tells values of the universe apart."""
    if name == "propertyNames":
        return {"propertyNames": {"maxLength": 1}}
    schema: dict[str, Any] = EXAMPLES[name][0]
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema} if name == "dependencies" else schema


@pytest.mark.parametrize("name", NAMES)
def test_keyword_constrains(name: str) -> None:
    """A row without a reader would be ignored in silence, so each must change what is accepted, as ``jsonschema`` says."""
    schema, kind = example(name), KEYWORDS[name].type
    assert accepted(schema) == valid(schema) != valid({})
    if kind is not None and "type" not in schema:
        typed = {"type": kind, **schema}
        assert accepted(typed) == valid(typed) != valid({"type": kind})


@pytest.mark.parametrize("name", [name for name in NAMES if KEYWORDS[name].narrowed is None])
def test_negated_keyword_constrains(name: str) -> None:
    """A row without a negation would refuse every value under ``not``."""
    dialect = {key: value for key, value in example(name).items() if key == "$schema"}
    negated = {**dialect, "not": {key: value for key, value in example(name).items() if key != "$schema"}}
    assert accepted(negated) == valid(negated) != []


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_schema_is_walked(name: str) -> None:
    """`every_schema` yields the schemas that `map_schemas` changes, and neither takes data for a schema."""
    data = {"const": {"items": {"title": "data"}}, "enum": [{"not": {}}], "x-unknown": [{"title": "below"}]}
    schema = {**EXAMPLES[name][0], "properties": {"const": data, "b": True}, "dependencies": {"a": ["b"], "c": {}}}
    changed: list[Any] = []
    assert KEYWORDS.map_schemas(schema, lambda part: changed.append(part) or part) == schema
    walked = sorted(json.dumps(part, sort_keys=True) for part in KEYWORDS.every_schema(schema))
    assert walked == sorted(json.dumps(part, sort_keys=True) for part in changed)
    assert '{"title": "below"}' in walked and '{"title": "data"}' not in walked
