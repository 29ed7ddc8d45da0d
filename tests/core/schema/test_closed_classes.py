"""Objects of Python classes are closed where a class is asked for as an answer, as arguments of tools are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, RootModel, TypeAdapter
from typing_extensions import TypedDict

from toolgrammar.core import Grammar, JsonMode
from toolgrammar.core.generation.params import GenerateParams
from toolgrammar.core.generation.plan import Planner, resolve_params
from toolgrammar.core.testing import ScriptedModel


class City(BaseModel):
    """A class as most people write it."""

    name: str


class Trip(BaseModel):
    """A class within a class, in a list and as an alternative."""

    cities: list[City]
    guide: City | None = None
    notes: dict[str, Any] = {}


class Open(BaseModel):
    """A class that says that it is open."""

    model_config = ConfigDict(extra="allow")
    name: str


class Ignoring(BaseModel):
    """A class that says what Pydantic does without a word."""

    model_config = ConfigDict(extra="ignore")
    name: str


class Rooted(RootModel[dict[str, int]]):
    """A class that is a map."""


@dataclass
class Point:
    """A dataclass."""

    x: int


class Box(TypedDict):
    """A typed dict."""

    width: int


CLOSED = [
    (City, {"name": "a"}, {"name": "a", "b": 1}),
    (Trip, {"cities": [{"name": "a"}]}, {"cities": [{"name": "a", "b": 1}]}),
    (Trip, {"cities": [], "guide": {"name": "a"}}, {"cities": [], "guide": {"name": "a", "b": 1}}),
    (Trip, {"cities": [], "notes": {"b": 1}}, {"cities": [], "notes": {}, "b": 1}),
    (Ignoring, {"name": "a"}, {"name": "a", "b": 1}),
    (Point, {"x": 1}, {"x": 1, "y": 1}),
    (Box, {"width": 1}, {"width": 1, "y": 1}),
    (list[City], [{"name": "a"}], [{"name": "a", "b": 1}]),
]


def grammar_of(shape: Any, **options: Any) -> Grammar:
    """Return the grammar of an answer in JSON mode."""
    return Planner().plan(GenerateParams(json_mode=JsonMode(shape, **options)), None).grammar


@pytest.mark.parametrize(("shape", "good", "extra"), CLOSED)
def test_an_answer_has_no_members_but_fields(shape: Any, good: Any, extra: Any) -> None:
    """Undeclared members are written neither in JSON mode, nor for ``output_type``, nor beside tools; on request they
    are, and Pydantic takes both."""
    adapter = TypeAdapter(shape)
    adapter.validate_json(json.dumps(good))
    adapter.validate_json(json.dumps(extra))
    params = resolve_params(None, {"output_type": shape})
    beside = resolve_params(None, {"output_type": shape, "tools": [{"name": "end", "parameters": {}}]})
    closed = [grammar_of(shape), Planner().plan(params, None).grammar]
    closed.append(Planner().plan(beside, "hermes").grammar)
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        closed.append(Grammar.from_json_schema(shape))
        assert Grammar.from_json_schema(shape, additional_properties=True).matches(json.dumps(extra))
        assert grammar_of(shape) == closed[-1]
    for grammar in closed:
        assert grammar.matches(json.dumps(good)) and not grammar.matches(json.dumps(extra))
    assert grammar_of(shape, additional_properties=True).matches(json.dumps(extra))


def test_what_says_that_it_is_open_stays_open() -> None:
    """A class with ``extra="allow"``, a map and a JSON Schema take the members that they take."""
    assert grammar_of(Open).matches('{"name": "a", "b": 1}')
    assert grammar_of(Rooted).matches('{"b": 1}')
    assert grammar_of(City.model_json_schema()).matches('{"name": "a", "b": 1}')
    assert Grammar.from_json_schema(City.model_json_schema()).matches('{"name": "a", "b": 1}')


def test_members_that_no_grammar_held_are_dropped() -> None:
    """An answer that was written freely may have members that Pydantic drops: it is not asked for again."""
    free = JsonMode(constrained_decoding=False)
    model = ScriptedModel(['{"name": "a", "b": 1}'])
    assert model.generate_json("x", City, json_mode=free) == City(name="a")
    assert len(model.requests) == 1


@pytest.mark.parametrize("shape", [int, list[int], Point, Trip], ids=str)
def test_an_int_has_at_most_64_bits(shape: Any) -> None:
    """An ``int`` of Python that has no bounds is written with at most 64 bits; what a schema says stays as it is."""
    wrap = {int: "{}", list[int]: "[{}]", Point: '{{"x": {}}}', Trip: '{{"cities": [], "notes": {{"a": {}}}}}'}[shape]
    grammar = grammar_of(shape)
    for number in (2**63 - 1, -(2**63), 0):
        assert grammar.matches(wrap.format(number))
    for number in (2**63, -(2**63) - 1, 10**29):
        assert grammar.matches(wrap.format(number)) == (shape is Trip)  # there, it is any JSON
    assert grammar_of({"type": "integer"}).matches(str(10**25))


def test_bounds_of_an_int_win() -> None:
    """Bounds that a class gives are kept, also those beyond 64 bits; keys of maps are as they were."""
    from typing import Annotated

    from pydantic import Field

    assert grammar_of(Annotated[int, Field(ge=2**70)]).matches(str(2**71))
    assert grammar_of(Annotated[int, Field(le=2**70, ge=0)]).matches(str(2**70))
    assert not grammar_of(Annotated[int, Field(ge=5)]).matches(str(2**63))
    assert not grammar_of(Annotated[int, Field(gt=5)]).matches("5")
    assert grammar_of(dict[int, int]).matches('{"12": 1}') and grammar_of(dict[int, int]).matches('{"-12": 1}')
