"""`ToolSet.to_structural_tag`: read back by our reader and by xgrammar, for every format that it can say."""

from __future__ import annotations

import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, GrammarError, ToolCall, ToolGrammarError
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import format_names, get_format

TOOLS = ToolSet.from_any(
    [
        {
            "name": "weather",
            "description": "",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
        {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
    ]
)
CALLS = [ToolCall("1", "weather", {"city": "Oslo", "days": 3}), ToolCall("2", "now", {})]


def sayable() -> dict[str, dict[str, Any]]:
    """Return the tags of all formats that have one, with calls demanded."""
    tags = {}
    for name in format_names():
        try:
            tags[name] = TOOLS.to_structural_tag(name, tool_choice="required")
        except GrammarError as error:
            assert error.hint
    return tags


TAGS = sayable()


def test_most_formats_have_one() -> None:
    """Most formats can be said; the others are refused with a way out."""
    assert len(TAGS) >= 0.7 * len(format_names())
    assert {"hermes", "qwen3-coder", "glm-4.5", "kimi-k2", "deepseek-v3.1", "mistral-v13"} <= set(TAGS)
    assert "pythonic" not in TAGS


@pytest.mark.parametrize("name", sorted(TAGS))
def test_calls_of_the_format(name: str) -> None:
    """What the format renders is a text of the tag, and what the tag admits is read as valid calls."""
    wire = get_format(name)
    grammar = Grammar.from_structural_tag(TAGS[name], whitespace=getattr(wire, "spacing", None) or "single")
    calls = CALLS if getattr(wire, "parallel", True) else CALLS[:1]
    source = random.Random(4)
    if "$id" not in getattr(wire, "call", ""):  # the ids of these are the format's own
        written = wire.render_calls(calls)
        assert grammar.matches(written), written
    for _ in range(8):
        text = random_text(grammar, source, 120)
        message = TOOLS.parse(text, name)
        assert message.tool_calls, text
        assert [call.error for call in message.tool_calls if call.error] == [], text
    assert not grammar.matches("") and not grammar.matches("Hello.")


@pytest.mark.parametrize("name", sorted(TAGS))
def test_in_xgrammar(name: str) -> None:
    """xgrammar accepts the texts that we accept of a tag."""
    xgrammar = pytest.importorskip(
        "xgrammar", reason="xgrammar is not installed (pip install --no-deps xgrammar==0.2.8)"
    )
    from xgrammar.testing import _is_grammar_accept_string

    compiled = xgrammar.Grammar.from_structural_tag(TAGS[name])
    grammar, source = Grammar.from_structural_tag(TAGS[name], whitespace="single"), random.Random(5)
    texts = {random_text(grammar, source, 120) for _ in range(6)}
    assert [text for text in texts if not _is_grammar_accept_string(compiled, text)] == []


def test_choices() -> None:
    """Text, calls or both, one call or several, as the request says."""
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    other = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'

    def matches(text: str, **options: Any) -> bool:
        return Grammar.from_structural_tag(TOOLS.to_structural_tag(**options)).matches(text)

    assert matches("Hello.") and matches(call) and matches(f"So:\n{call}") and matches(f"{call}\n{other}")
    assert not matches("<tool_call>") and not matches(f"{call}x")
    assert not matches(f"{call}\n{other}", parallel=False) and matches(call, parallel=False)
    assert not matches("Hello.", tool_choice="required") and not matches(f"x{call}", tool_choice="required")
    assert matches(other, tool_choice="weather") and not matches(call, tool_choice="weather")
    assert matches("Hello.", tool_choice="none") and not matches(f"{call}\n{call}\n{call}", max_calls=2)
    assert not matches(call, tool_choice="required", min_calls=2)
    with pytest.raises(GrammarError, match="begin like a call"):
        TOOLS.to_structural_tag("json")
    with pytest.raises(ToolGrammarError, match="cannot express"):
        ToolSet.from_any([{"name": "a b", "description": "", "parameters": {"type": "object"}}]).to_structural_tag(
            "glm-4.5"
        )
