"""Formats with control tokens, written by the decoding loop and read back."""

from __future__ import annotations

import pytest

from toolgrammar.core import Vocabulary
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats.families import FAMILIES
from toolgrammar.tools.formats.harmony import Channels
from toolgrammar.tools.formats.template.format import TemplateFormat

SPECIAL = [wire for wire in FAMILIES if type(wire) in (TemplateFormat, Channels) and wire.special]


@pytest.mark.parametrize("family", SPECIAL, ids=[each.name for each in SPECIAL])
def test_a_required_call(family: TemplateFormat) -> None:
    """A call whose markers are control tokens arrives as a call, with nothing left over as text."""
    names = family.special
    tokens = [bytes([byte]) for byte in range(256)] + [None] * (len(names) + 1)
    special = {name: 256 + i for i, name in enumerate(names)}
    vocabulary = Vocabulary(tokens, eos=[len(tokens) - 1], special=special)
    tools = ToolSet(
        [Tool("now", "", {"type": "object", "properties": {"zone": {"enum": ["utc"]}}, "required": ["zone"]})]
    )
    model = ScriptedModel([""], vocabulary=vocabulary)
    result = model.generate("What time is it?", tools=tools, tool_choice="now", tool_format=family.name, max_tokens=400)
    assert [(call.name, call.arguments, call.error) for call in result.tool_calls] == [("now", {"zone": "utc"}, None)]
    assert result.text == ""
