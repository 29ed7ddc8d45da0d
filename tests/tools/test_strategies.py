"""Strategies of Hypothesis: what they draw is valid, and what fails shrinks to the smallest."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.tools.strategies import from_grammar, from_tool

from ..schemas import random_schema

QUIET = settings(
    max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def plan(city: str, days: int = 1, tags: list[str] | None = None) -> None:
    """Plan a journey."""


@QUIET
@given(st.data())
def test_every_drawn_value_is_valid(data: st.DataObject) -> None:
    """Values of random schemas are valid for them; a strategy of a schema that is refused is our error."""
    schema = random_schema(data.draw(st.randoms(use_true_random=False)))
    try:
        strategy = from_grammar(Grammar.from_json_schema(schema), max_bytes=60)
    except ToolGrammarError:
        return
    value = json.loads(data.draw(strategy))
    jsonschema.Draft202012Validator(schema).validate(value)


@pytest.mark.parametrize(
    ("fails", "smallest"),
    [
        (lambda value: True, {"city": ""}),
        (lambda value: len(value["city"]) >= 3, {"city": "aaa"}),
        (lambda value: value.get("days", 0) >= 10, {"city": "", "days": 10}),
        (lambda value: len(value.get("tags") or ()) >= 2, {"city": "", "tags": ["", ""]}),
        (lambda value: "days" in value and "tags" in value, {"city": "", "days": 0, "tags": None}),
    ],
)
def test_what_fails_shrinks_to_the_smallest(fails: Any, smallest: Any) -> None:
    """A property that some arguments break is shown by a smallest call that breaks it."""
    found = find(from_tool(plan), fails, settings=settings(QUIET, max_examples=3000))
    assert len(json.dumps(found)) <= len(json.dumps(smallest)) and fails(found)


@QUIET
@given(from_grammar(Grammar.from_regex("(ab|c)*[0-9]{2,3}é?")))
def test_texts_of_other_grammars(text: str) -> None:
    """A grammar of any texts has a strategy."""
    assert re.fullmatch("(ab|c)*[0-9]{2,3}é?", text)
