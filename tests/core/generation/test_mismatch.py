"""Where a text leaves a grammar, in words that a model is told when it is asked again."""

from __future__ import annotations

import pytest

from toolgrammar.core import JsonMode
from toolgrammar.core.generation.mismatch import where_it_stops
from toolgrammar.core.testing import ScriptedModel

SCHEMA = {
    "type": "object",
    "properties": {"unit": {"enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer"}},
    "required": ["unit"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('So: {"unit": "kelvin"}', ['\'{"unit": "\'', "(in /unit)", '`celsius"` or `fahrenheit"`']),
        ('{"unit": "celsius" "days": 1}', ["comes", "`,`", "`}`"]),
        ('{"unit": "celsius"}', []),
    ],
)
def test_where_it_stops(text: str, parts: list[str]) -> None:
    """The last characters that fit, the pointer of the value, and what may follow; nothing for a text that fits."""
    said = where_it_stops(text, SCHEMA)
    assert all(part in said for part in parts) and bool(said) == bool(parts)


def test_a_model_is_told_what_was_expected() -> None:
    """A model whose JSON could not be read is told where it stopped fitting, and what comes there."""
    model = ScriptedModel(['{"unit": "celsius" and then', '{"unit": "celsius"}'])
    mode = JsonMode(constrained_decoding=False, repair=True)
    assert model.generate_json("Unit?", SCHEMA, json_mode=mode) == {"unit": "celsius"}
    assert "comes" in str(model.requests[1][-1].content) and "`}`" in str(model.requests[1][-1].content)


def test_what_is_still_missing_is_named() -> None:
    """Required members that have not come are named by pointer, and white space is nothing that a model is told of."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    said = where_it_stops('{"city": "Oslo"}', schema)
    assert said.endswith("comes `,`; still missing: /days") and "\\n" not in said
