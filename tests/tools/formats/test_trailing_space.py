"""White space after the last call: a model that writes it, and then ends its turn, is not made to call again."""

from __future__ import annotations

import pytest

from toolgrammar.core import ToolCall
from toolgrammar.tools import Tool, ToolSet, get_format

TOOLS = ToolSet([Tool("f", "", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})])
CALLS = [ToolCall("c0", "f", {"a": 1}), ToolCall("c1", "f", {"a": 2})]


@pytest.mark.parametrize("name", ["hermes", "qwen3-coder", "exaone-4"])
@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_line_end_may_follow_the_last_call(name: str, choice: str, count: int) -> None:
    """Calls are separated by a line end, which may also follow the last one; it adds no call and no text."""
    text = get_format(name).render_calls(CALLS[:count])
    assert TOOLS.grammar(name, tool_choice=choice).matches(text)
    assert TOOLS.grammar(name, tool_choice=choice).matches(f"{text}\n")
    assert not TOOLS.grammar(name, tool_choice=choice).matches(f"{text}\n\n")
    parser = TOOLS.parser(name)
    events = [*parser.feed(f"{text}\n"), *parser.close()]
    assert [type(event).__name__ for event in events].count("CallEnd") == count
    assert "TextDelta" not in [type(event).__name__ for event in events]
    assert parser.leniencies == []


def test_a_single_call_ends_at_once() -> None:
    """Where one call is all, nothing is asked of the model after it."""
    text = get_format("hermes").render("", CALLS[:1])
    grammar = TOOLS.grammar("hermes", tool_choice="required", parallel=False)
    assert grammar.matches(text)
    assert not grammar.matches(f"{text}\n")
