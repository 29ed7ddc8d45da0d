"""What is dropped is freed at once, by counting references: nothing is left for Python's garbage collector to find."""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

from toolgrammar.core import Grammar, ToolGrammarError, Vocabulary
from toolgrammar.core.masks import COMPILED
from toolgrammar.tools import Tool, ToolSet

WORDS = [b'{"', b'": ', b'": "', b'", "', b'"}}', b"true", b"null", b"12", b"ab", b"abc", b"the ", "é".encode()]
VOCABULARY = Vocabulary([*(bytes([each]) for each in range(256)), *WORDS, None], eos=[256 + len(WORDS)])

SCHEMAS: dict[str, dict[str, Any]] = {
    "object": {"properties": {"a": {"type": "integer"}, "b": {"type": ["string", "null"]}}, "required": ["a"]},
    "array": {"type": "array", "items": {"enum": [1, "x", None]}, "uniqueItems": True, "contains": {"const": 1}},
    "recursive": {"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"l": {"$ref": "#/$defs/t"}}}}},
    "dynamic": {"$dynamicAnchor": "n", "properties": {"n": {"$dynamicRef": "#n"}}, "type": "object"},
    "branches": {
        "oneOf": [{"properties": {"kind": {"const": name}, name: {}}, "required": ["kind"]} for name in ("a", "b", "c")]
    },
    "negation": {"not": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}},
    "conditions": {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 2}},
    "unevaluated": {
        "allOf": [{"properties": {"a": {}}}],
        "anyOf": [{"required": ["a"]}],
        "unevaluatedProperties": False,
    },
    "strings": {"type": "string", "pattern": "^(?!ab)[a-z]{2,9}$", "minLength": 3, "maxLength": 8},
    "formats": {"properties": {"t": {"type": "string", "format": "date-time"}, "u": {"format": "uri"}}},
    "numbers": {"type": "number", "minimum": -1.5, "exclusiveMaximum": 1_000, "multipleOf": 0.25},
    "many states": {"pattern": "^(a|b)*a(a|b){18}$", "type": "string"},
}
MANY = {"allOf": [{"anyOf": [{"minimum": 2 * n + m} for m in range(2)]} for n in range(30)]}
REFUSED: dict[str, dict[str, Any]] = {
    "no value": {"type": "object", "required": ["a"], "properties": {"a": False}},
    "malformed": {"type": "object", "properties": {"a": {"type": "strnig"}, "b": {"minimum": "low"}}},
    "unsupported": {"format": "python-json"},
    "no regular pattern": {"type": "string", "pattern": "^(?:(?<!a.{20})b|a|c)*$"},
    "points at nothing": {"properties": {"a": {"$ref": "#/$defs/nothing"}}},
    "too many branches": MANY,
    "too many branches, met late": {"properties": {"a": {"anyOf": [{"items": MANY}, {"maxItems": 2}]}}},
}


def write(grammar: Grammar) -> None:
    """Texts of a grammar, token by token as the mask allows, with a way back in between; to their ends."""
    constraint = grammar.bind(VOCABULARY)
    out = np.zeros(constraint.words, dtype=np.uint32)
    draw = random.Random(0)
    for _ in range(5):
        matcher = constraint.matcher()
        for step in range(30):
            matcher.fill_mask(out)
            allowed = np.flatnonzero(np.unpackbits(out.view(np.uint8), bitorder="little"))
            if not len(allowed) or not matcher.accept(int(draw.choice(allowed))) or matcher.is_finished:
                break
            if step % 7 == 6:
                matcher.rollback(2)
        if not matcher.is_finished:
            matcher.accept_bytes(matcher.shortest_completion())


def left_behind(use: Callable[[], object]) -> int:
    """How many objects only the garbage collector could free, after a use that is not the first."""
    found = 0
    for _ in range(2):
        gc.collect()
        gc.disable()
        try:
            use()
            found = gc.collect()
        finally:
            gc.enable()
    return found


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_dropped_grammar_is_freed_at_once(name: str, order: Literal["schema", "any"]) -> None:
    """A grammar of a schema that was written with leaves no cycle."""
    assert left_behind(lambda: write(Grammar.from_json_schema(SCHEMAS[name], property_order=order))) == 0


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_freed_at_once(name: str) -> None:
    """A schema that is refused, or hits a limit while a text is written, leaves no cycle, its error neither."""

    def use() -> None:
        with pytest.raises(ToolGrammarError):
            write(Grammar.from_json_schema(REFUSED[name]))

    assert left_behind(use) == 0


def test_a_dropped_tool_set_is_freed_at_once() -> None:
    """A union of tools leaves no cycle."""
    chosen = ["object", "array", "branches", "strings", "formats"]
    tools = [Tool(f"tool_{at}", "", {"properties": {"a": SCHEMAS[name]}}) for at, name in enumerate(chosen)]
    assert left_behind(lambda: write(ToolSet(tools).grammar(tool_choice="required"))) == 0


@pytest.mark.skipif(not COMPILED, reason="interpreted, every value is an object of Python's")
def test_masks_are_no_objects_for_the_collector() -> None:
    """Hundreds of masks that were made for a text, and none at which the garbage collector would look."""
    constraint = Grammar.from_regex("([a-c]|[b-d]e|,){0,400}").bind(VOCABULARY)
    matcher = constraint.matcher()
    out = np.zeros(constraint.words, dtype=np.uint32)
    before = {id(each) for each in gc.get_objects()}
    for token in b"abbe,ccde" * 30:
        matcher.fill_mask(out)
        assert matcher.accept(token)
    kinds = Counter(type(each).__name__ for each in gc.get_objects() if id(each) not in before)
    assert constraint.counters()["states"] > 200
    assert kinds["Mask"] == 0
