"""The union grammar: which tools, how many calls, a final answer beside them, and how strictly arguments are held."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolgrammar.core import Grammar, ToolCall, ToolGrammarError, UnknownToolError
from toolgrammar.core.language.nodes import Nodes
from toolgrammar.core.schema.compile import CompiledSchema
from toolgrammar.core.schema.lower.lowering import Lowering
from toolgrammar.tools import Tool, ToolSet, get_format
from toolgrammar.tools.formats import WireFormat
from toolgrammar.tools.formats.template.format import TemplateFormat

from ..vocabularies import BYTES

FORMATS = ("hermes", "qwen3-coder", "pythonic", "mistral-v13", "json", "gemma-4")

#: A vocabulary in which each byte is a token.


def plain(name: str) -> WireFormat:
    """The format with its markers as text."""
    wire = get_format(name)
    return wire.with_special(()) if isinstance(wire, TemplateFormat) else wire


def tool(name: str, **properties: Any) -> Tool:
    """A tool whose arguments are all required."""
    return Tool(name, "", {"type": "object", "properties": properties, "required": list(properties)})


NAMES = ("a", "ab", "abc", "b")
TOOLS = ToolSet([tool(name) for name in NAMES])
each_format = pytest.mark.parametrize("wire", [plain(name) for name in FORMATS], ids=FORMATS)


def written(wire: WireFormat, *names: str) -> str:
    """A turn of calls without arguments."""
    return wire.render("", [ToolCall(f"c{index}", name, {}) for index, name in enumerate(names)])


@each_format
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_counts_and_choices(wire: WireFormat, data: st.DataObject) -> None:
    """A turn is in the grammar iff its calls are of allowed tools, as many as asked for, and none twice if so asked."""
    allowed = data.draw(st.none() | st.sets(st.sampled_from(NAMES), min_size=1))
    least, most = data.draw(st.integers(1, 2)), data.draw(st.integers(2, 4))
    distinct = data.draw(st.booleans())
    within = allowed or set(NAMES)
    assume(not distinct or least <= len(within))
    grammar = TOOLS.grammar(
        wire, tool_choice="required", allowed=allowed, min_calls=least, max_calls=most, distinct=distinct
    )
    for _ in range(4):
        names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5))
        expected = least <= len(names) <= most and set(names) <= within
        expected = expected and not (distinct and len(set(names)) < len(names))
        assert grammar.matches(written(wire, *names)) is expected, names


@each_format
def test_each_name_has_its_own_arguments(wire: WireFormat) -> None:
    """Names that begin like others keep their own arguments."""
    schemas = {"get": "integer", "get_all": "boolean", "get_al": "null"}
    values: dict[str, Any] = {"integer": 5, "boolean": True, "null": None}
    tools = ToolSet([tool(name, x={"type": kind}) for name, kind in schemas.items()])
    grammar = tools.grammar(wire, tool_choice="required")
    for name, kind in itertools.product(schemas, values):
        assert grammar.matches(wire.render("", [ToolCall("c", name, {"x": values[kind]})])) is (schemas[name] == kind)


def test_bounds_that_cannot_be_met_are_errors() -> None:
    """Contradicting bounds, unknown names and formats of single calls are named."""
    with pytest.raises(ToolGrammarError, match="at least 3 calls, and at most 2"):
        TOOLS.grammar(min_calls=3, max_calls=2)
    with pytest.raises(ToolGrammarError, match="at least 5 calls, and at most 4"):
        TOOLS.grammar(min_calls=5, distinct=True)
    with pytest.raises(UnknownToolError, match="'c'"):
        TOOLS.grammar(allowed=["c"])
    with pytest.raises(ToolGrammarError, match="one call"):
        TOOLS.grammar("llama-json", tool_choice="required", min_calls=2)
    with pytest.raises(UnknownToolError, match="'c'"):
        ToolSet([tool("a")], strictness={"c": "open"})


ANSWER = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}


@pytest.mark.parametrize("name", [*FORMATS, "llama-json", "xlam", "llama-4", "functionary-v3.2", "harmony"])
def test_a_final_answer_beside_calls(name: str) -> None:
    """With a response schema, a turn is calls, or JSON of that schema; the parser tells them apart."""
    wire = plain(name)
    grammar = TOOLS.grammar(wire, response_schema=ANSWER)
    answer = wire.render('{"answer": 42}', [])
    assert grammar.matches(answer)
    assert not grammar.matches(wire.render('{"answer": "x"}', []))
    assert grammar.matches(written(wire, "ab"))
    assert TOOLS.parse(answer, wire, response_schema=ANSWER).text == '{"answer": 42}'
    message = TOOLS.parse(written(wire, "ab"), wire, response_schema=ANSWER)
    assert (message.text, [call.name for call in message.tool_calls]) == ("", ["ab"])
    parser = TOOLS.parser(wire, response_schema=ANSWER)
    events = [event for char in answer for event in parser.feed(char)] + list(parser.close())
    assert "".join(event.text for event in events) == '{"answer": 42}'  # type: ignore[union-attr]


def test_answers_that_look_like_calls_are_refused() -> None:
    """Bare JSON calls beside a schema that admits the same texts cannot be told apart, and that is said."""
    like = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    with pytest.raises(ToolGrammarError, match="cannot distinguish"):
        TOOLS.grammar("llama-json", response_schema=like)
    other = {"type": "object", "properties": {"name": {"const": "nobody"}}, "required": ["name"]}
    assert TOOLS.grammar("llama-json", response_schema=other).matches('{"name": "nobody"}')


def test_strictness_per_tool() -> None:
    """Closed, open and any object, each for its own tool; what an unheld call gets wrong is said of it."""
    tools = ToolSet(
        [tool("shut", n={"type": "integer"}), tool("wide", n={"type": "integer"}), tool("free", n={"type": "integer"})],
        strictness={"wide": "open", "free": "object"},
    )
    grammar = tools.grammar(tool_choice="required")
    wire = get_format("hermes")

    def admits(name: str, arguments: dict[str, Any]) -> bool:
        return grammar.matches(wire.render("", [ToolCall("c", name, arguments)]))

    assert [admits(name, {"n": 1, "x": 2}) for name in tools.names] == [False, True, True]
    assert [admits(name, {"n": "1"}) for name in tools.names] == [False, False, True]
    message = tools.parse(wire.render("", [ToolCall("c", name, {"n": 1, "x": 2}) for name in tools.names]))
    assert [call.error is None for call in message.tool_calls] == [False, True, False]
    assert tools.subset(["wide"]) != ToolSet([tool("wide", n={"type": "integer"})])


@pytest.mark.parametrize("name", FORMATS)
def test_a_thousand_tools(name: str) -> None:
    """A thousand tools: each is callable with its own arguments, and only what a text comes to is built."""
    tools = ToolSet([tool(f"tool_{index}", **{f"n{index}": {"type": "integer"}}) for index in range(1000)])
    wire = plain(name)
    grammar = tools.grammar(wire, tool_choice="required")
    constraint = grammar.bind(BYTES)
    before = constraint.counters()["states"]  # the store may serve other tests too: only what is added counts
    assert constraint.matcher().allowed_tokens()
    for index in (7, 77, 777):
        assert grammar.matches(wire.render("", [ToolCall("c", f"tool_{index}", {f"n{index}": 1})]))
        assert not grammar.matches(wire.render("", [ToolCall("c", f"tool_{index}", {"n1": 1})]))
    assert constraint.counters()["states"] - before < 2_000


def test_only_the_tool_that_is_called_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the names part, tools that surely can be called are not looked into; those that perhaps cannot were before."""
    lowered: list[str] = []
    lowering = CompiledSchema._lowering

    def counted(self: CompiledSchema, nodes: Nodes) -> Lowering:
        lowered.append(next(iter(self.document.schema["properties"])))
        return lowering(self, nodes)

    monkeypatch.setattr(CompiledSchema, "_lowering", counted)
    tools = [tool(f"tool_{index}", **{f"sure{index}": {"type": "integer"}}) for index in range(50)]
    tools.append(tool("tool_x", x={"type": "string", "pattern": "^a+$", "minLength": 2}))  # perhaps no string at all
    grammar = ToolSet(tools).grammar(plain("hermes"), tool_choice="required")
    matcher = grammar.bind(BYTES).matcher()
    for byte in b'<tool_call>\n{"name": "tool_':
        assert matcher.accept(byte)
    allowed = {chr(token) for token in matcher.allowed_tokens()}
    assert allowed == set("0123456789x")
    assert lowered == ["x"]
    for byte in b'7", "arguments": {"sure7"':
        assert matcher.accept(byte)
    assert lowered == ["x", "sure7"]


def test_cases_and_distinct_parts() -> None:
    """Keys may begin others; distinct parts come in any order, once each, within bounds."""
    cases = Grammar.cases({"a": Grammar.literal("1"), "ab": Grammar.literal("2"), "b": Grammar.literal("")})
    assert [cases.matches(text) for text in ("a1", "ab2", "b", "a2", "ab1", "a")] == [True, True, True] + [False] * 3
    parts = [Grammar.literal(each) for each in "xyz"]
    distinct = Grammar.distinct(parts, Grammar.literal(","), 1, 2)
    texts = [",".join(each) for size in range(4) for each in itertools.product("xyz", repeat=size)]
    for text in texts:
        names = text.split(",") if text else []
        assert distinct.matches(text) is (1 <= len(names) <= 2 and len(set(names)) == len(names)), text
    with pytest.raises(ToolGrammarError, match="parts"):
        Grammar.distinct(parts, Grammar.literal(","), 4)
    with pytest.raises(ToolGrammarError, match="at least one case"):
        Grammar.cases({})


def test_reasoning_before_the_answer() -> None:
    """Reasoning may come first, or must be closed where the prompt has opened it; then the calls are held as ever."""
    call = written(get_format("hermes"), "a")
    optional = TOOLS.grammar(tool_choice="required", reasoning="optional")
    assert optional.matches(call)
    assert optional.matches(f"<think>\nHm <tool_call>?\n</think>\n\n{call}")
    assert not optional.matches(f"Hm.</think>{call}")
    opened = TOOLS.grammar(tool_choice="required", reasoning="opened")
    assert opened.matches(f"Hm.</think>\n\n{call}")
    assert not opened.matches(call)
    text = f"Hm.\n</think>\n\n{call}"
    for pieces in ([text], list(text)):
        parser = TOOLS.parser(reasoning="opened")
        kinds = [type(event).__name__ for piece in pieces for event in parser.feed(piece)]
        kinds += [type(event).__name__ for event in parser.close()]
        assert list(dict.fromkeys(kinds)) == ["ReasoningDelta", "CallStart", "ArgumentsDelta", "CallEnd"]
    assert TOOLS.parse(f"<think>Hm.</think>{call}").reasoning == "Hm."
    harmony = plain("harmony")
    thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    grammar = TOOLS.grammar(harmony, tool_choice="required", reasoning="optional")
    assert grammar.matches(thought + written(harmony, "a"))
    assert TOOLS.parse(thought + written(harmony, "a"), harmony).reasoning == "Hm."
