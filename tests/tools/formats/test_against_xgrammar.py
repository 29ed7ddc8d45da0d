"""Our grammars and xgrammar's built-in tags, on rendered turns: the differences are known, each with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import ToolCall
from toolgrammar.tools import Tool, ToolSet

from .common import EVERY

xgrammar = pytest.importorskip("xgrammar", reason="xgrammar is not installed")

#: Our formats, and xgrammar's names for them.
BUILT_IN = {
    "hermes": "qwen_3",
    "qwen3-coder": "qwen_3_coder",
    "mimo-2": "mimo",
    "deepseek-v3": "deepseek_r1",
    "deepseek-v3.1": "deepseek_v3_1",
    "deepseek-v3.2": "deepseek_v3_2",
    "harmony": "harmony",
    "glm-4.5": "glm_4_7",
    "glm-4.7": "glm_4_7",
    "kimi-k2": "kimi",
    "llama-json": "llama",
    "minimax-m2": "minimax",
    "exaone-4": "exaone",
}
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 4}, "n": {"type": "integer"}, "on": {"type": "boolean"}},
    "required": ["text"],
    "additionalProperties": False,
}
TOOLS = ToolSet([Tool("edit", "", SCHEMA), Tool("now", "", {"type": "object", "properties": {}})])


def edit(**arguments: Any) -> ToolCall:
    """A call of the tool with arguments."""
    return ToolCall("c0", "edit", arguments)


#: Turns of calls, and whether the tools allow them.
TURNS: dict[str, tuple[list[ToolCall], bool]] = {
    "one call": ([edit(text="x", n=5, on=True)], True),
    "no arguments": ([ToolCall("c0", "now", {})], True),
    "two calls": ([edit(text="x"), ToolCall("c1", "now", {})], True),
    "another order": ([edit(n=5, text="x")], False),
    "too long": ([edit(text="12345")], False),
    "wrong type": ([edit(text="x", n="y")], False),
    "missing": ([edit(n=5)], False),
    "unknown member": ([edit(text="x", z=1)], False),
    "unknown tool": ([ToolCall("c0", "nothing", {})], False),
}

#: Where xgrammar says otherwise, and why.
_BLANK = "xgrammar wants an empty line where a call has no arguments; the template writes none"
_SPACE = "xgrammar has no space before <|constrain|>, which the documented form has, and wants <|call|> as text"
_NEWLINE = "xgrammar has a tag for GLM-4.7 only, whose calls no new line stands before"
_PREFIX = "with reasoning off, xgrammar's tag begins with </think> and an empty line twice"
DIFFERENCES: dict[tuple[str, str], str] = {
    ("qwen3-coder", "no arguments"): _BLANK,
    ("qwen3-coder", "two calls"): _BLANK,
    **{("harmony", turn): _SPACE for turn in ("one call", "no arguments")},
    **{("glm-4.5", turn): _NEWLINE for turn in ("one call", "no arguments", "two calls")},
    **{("minimax-m2", turn): _PREFIX for turn in ("one call", "no arguments", "two calls")},
}


def theirs(name: str, text: str) -> bool:
    """What xgrammar's built-in tag says of a turn of required calls."""
    from xgrammar.testing import _is_grammar_accept_string

    tools = [{**tool, "function": {**tool["function"], "strict": True}} for tool in TOOLS.to_openai()]
    tag = xgrammar.get_builtin_structural_tag(BUILT_IN[name], tools=tools, tool_choice="required", reasoning="disabled")
    return bool(_is_grammar_accept_string(xgrammar.Grammar.from_structural_tag(tag), text))


@pytest.mark.parametrize("name", BUILT_IN)
def test_differences_are_known(name: str) -> None:
    """Both admit what the tools allow and refuse the rest, but for what is listed with its reason."""
    wire = EVERY[name]
    grammar = TOOLS.grammar(wire, tool_choice="required")
    found = set()
    for turn, (calls, allowed) in TURNS.items():
        if len(calls) > 1 and not getattr(wire, "parallel", True):
            continue
        written = wire.render("", calls)
        assert grammar.matches(written) is allowed, (turn, written)
        if theirs(name, written) is not allowed:
            found.add((name, turn))
    assert found == {key for key in DIFFERENCES if key[0] == name}
