"""Tools as text in a prompt: short, and nothing lost that a model could use."""

from __future__ import annotations

import json

from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats.described import described


def test_what_goes_without_saying_is_left_out() -> None:
    """Titles that repeat a name, closed objects, null as default; all else stays, also under such names."""
    parameters = {
        "type": "object",
        "title": "BookArguments",
        "properties": {
            "guest_name": {"type": "string", "title": "Guest Name", "minLength": 1},
            "code": {"type": "string", "title": "Code of the partner", "default": None},
            "title": {"type": "string", "default": "x"},
            "additionalProperties": {"enum": [{"title": "a", "default": None}, False]},
            "map": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": False}},
            "open": {"type": "object", "additionalProperties": True},
        },
        "required": ["guest_name"],
        "additionalProperties": False,
    }
    (tool,) = ToolSet.from_any([{"name": "book", "description": "Books.", "parameters": parameters}])
    assert json.loads(described(tool)) == {
        "name": "book",
        "description": "Books.",
        "parameters": {
            "type": "object",
            "properties": {
                "guest_name": {"type": "string", "minLength": 1},
                "code": {"type": "string", "title": "Code of the partner"},
                "title": {"type": "string", "default": "x"},
                "additionalProperties": {"enum": [{"title": "a", "default": None}, False]},
                "map": {"type": "object", "additionalProperties": {"type": "object"}},
                "open": {"type": "object", "additionalProperties": True},
            },
            "required": ["guest_name"],
        },
    }
    assert "\n" not in described(tool) and ": " not in described(tool)
    assert "additionalProperties" in json.dumps(tool.parameters)  # the tool itself is as it was
