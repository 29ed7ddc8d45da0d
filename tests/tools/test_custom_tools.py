"""Custom tools in every wire format: the input is a text of a grammar, a JSON string or raw."""

from __future__ import annotations

import asyncio
import json
import random

import lark
import pytest
from langchain_core.tools import Tool as LangChainTool

from toolgrammar.core import GenerateParams, GrammarError, InvalidArgumentsError, ToolCall, load_model
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import WireFormat
from toolgrammar.tools.formats.xml.calls import XmlCalls

from .formats.common import EVERY, events_of

#: Nested calls of functions over numbers and strings; no regular expression says it.
FORMULA = r"""
start: sum
sum: product (("+" | "-") product)*
product: NUMBER | TEXT | "(" sum ")" | NAME "(" [sum ("," sum)*] ")"
NAME: /[a-z]{1,4}/
NUMBER: /[0-9]{1,3}/
TEXT: /"[^"]*"/
"""
TEXTS = ("1", "f(1,g())", '("a\\b"+"é😀")', '"\n\t"', '"</"-2', 'f("<|x|>",3)', '"' + "x" * 40 + '"')
BROKEN = ("", "1+", "f(", "(1", "1)", '"', "F(1)", " 1", "1+(2,3)")
calculate = Tool.custom("calculate", "Evaluate a formula.", definition=FORMULA)
DATE = Tool.custom("when", definition=r"[0-9]{4}-[0-9]{2}", syntax="regex")
TOOLS = ToolSet([calculate, DATE, Tool.custom("say")])
ORACLE = lark.Lark(FORMULA, parser="earley", lexer="dynamic")
each_format = pytest.mark.parametrize("wire", EVERY.values(), ids=EVERY)


def call(text: str, tool: str = "calculate") -> ToolCall:
    """Return a call of a custom tool."""
    return ToolCall("c0", tool, {"input": text})


@each_format
def test_inputs_are_written_and_read(wire: WireFormat) -> None:
    """What is rendered is in the grammar, and the parser returns the text; broken texts are neither written nor valid."""
    grammar = TOOLS.grammar(wire, tool_choice="required")
    for text in TEXTS:
        written = wire.render("", [call(text)])
        assert grammar.matches(written), text
        assert [one.arguments for one in TOOLS.parse(written, wire).tool_calls] == [{"input": text}]
        assert events_of(TOOLS, wire, list(written)) == events_of(TOOLS, wire, [written])
    for text in BROKEN:
        written = wire.render("", [call(text)])
        assert not grammar.matches(written), text
        assert "not a text of the grammar" in str(TOOLS.parse(written, wire).tool_calls[0].error)


@each_format
@pytest.mark.parametrize("seed", range(4))
def test_random_texts_are_of_the_grammar(wire: WireFormat, seed: int) -> None:
    """Random walks of the union grammar: each input is of its grammar, as the ``lark`` library reads it."""
    text = random_text(TOOLS.grammar(wire, tool_choice="calculate", parallel=False), random.Random(seed), 120)
    (made,) = TOOLS.parse(text, wire).tool_calls
    assert made.error is None and made.name == "calculate", text
    ORACLE.parse(made.arguments["input"])


@each_format
def test_a_raw_input_does_not_hold_the_mark_that_ends_it(wire: WireFormat) -> None:
    """Where strings are raw, a text with the closing tag is left out, also where rules meet in it; in a format that
    tells the tag in a text from the one that ends it, only with what follows the latter."""
    if not isinstance(wire, XmlCalls) or wire.block is not None:
        pytest.skip("strings are not raw, or stand in a block")
    end = wire.parameter_end + (*wire.follows, "")[0]
    begin, rest = json.dumps(end[:3], ensure_ascii=False), json.dumps(end[3:], ensure_ascii=False)
    tools = ToolSet([Tool.custom("tag", definition=f'start: {begin} part\npart: {rest} | "x" | "(" start ")"')])
    grammar = tools.grammar(wire, tool_choice="required")
    written = wire.render("", [ToolCall("c0", "tag", {"input": "TEXT"})])
    assert grammar.matches(written.replace("TEXT", end[:3] + "x"))
    assert grammar.matches(written.replace("TEXT", f"{end[:3]}({end[:3]}x)"))
    assert not grammar.matches(written.replace("TEXT", end))
    assert not grammar.matches(written.replace("TEXT", f"{end[:3]}({end})"))
    (narrowed,) = grammar.narrowed
    assert (narrowed.place.tool, narrowed.place.parameter, narrowed.place.keyword) == ("tag", "input", "x-grammar")
    where = " before another argument or the end of the call" if wire.follows else ""
    assert narrowed.left_out == f"texts that contain {wire.parameter_end!r}{where}"


@each_format
def test_inputs_that_are_left_out_are_named(wire: WireFormat) -> None:
    """What is narrowed for a custom tool is named, in a tool set of several tools too; where no text of the grammar
    holds the mark, or where texts are JSON, nothing is."""
    anything = Tool.custom("any", definition='start: "[" part "]"\npart: /(?s:.*)/ | "(" part ")"')
    narrowed = ToolSet([DATE, anything]).grammar(wire).narrowed
    assert {problem.place.tool for problem in narrowed} <= {"any"}
    if isinstance(wire, XmlCalls):
        assert len(narrowed) == 1 and wire.parameter_end in str(narrowed[0].left_out)
    elif narrowed:
        assert wire.name == "minimax-m3"


def test_calls_run() -> None:
    """The function is given the text; an invalid one is an error that names the place."""
    seen: list[str] = []

    async def later(text: str) -> str:
        return text.upper()

    tools = ToolSet(
        [Tool.custom("calculate", definition=FORMULA, function=seen.append), Tool.custom("up", function=later)]
    )
    tools.call(call("1+2"))
    tools.call({"type": "custom", "id": "c1", "custom": {"name": "calculate", "input": "f(1)"}})
    tools.call({"type": "custom_tool_call", "call_id": "c2", "name": "calculate", "input": "(1)"})
    assert seen == ["1+2", "f(1)", "(1)"]
    assert tools.call(call("a", "up")) == "A" == asyncio.run(tools.acall(call("a", "up")))
    with pytest.raises(InvalidArgumentsError, match="not a text of the grammar") as caught:
        tools.call(call("1+"))
    assert caught.value.place.pointer == "/input"


def test_broken_inputs_are_repaired() -> None:
    """What surrounds the input is repaired."""
    turn = '<tool_call>\n{"name": "calculate", "arguments": {"input": %s}\n</tool_call>'
    message, _ = ToolSet([calculate]).repair(turn % '"f(1,2)"', seconds=60)
    assert message.tool_calls[0].arguments == {"input": "f(1,2)"}


def test_sources() -> None:
    """OpenAI's two forms of a custom tool are the same tool; LangChain's names its argument otherwise, and runs."""
    form = {"type": "grammar", "syntax": "lark", "definition": FORMULA}
    nested = {"type": "grammar", "grammar": {"syntax": "lark", "definition": FORMULA}}
    chat = {"type": "custom", "custom": {"name": "calculate", "description": "Evaluate a formula.", "format": nested}}
    flat = {"type": "custom", "name": "calculate", "description": "Evaluate a formula.", "format": form}
    assert ToolSet.from_any([chat]) == ToolSet.from_any([flat]) == ToolSet([calculate])
    assert ToolSet.from_any([{"type": "custom", "name": "say", "format": {"type": "text"}}]) == ToolSet(
        [Tool.custom("say")]
    )
    metadata = {"type": "custom_tool", "format": form}
    theirs = LangChainTool(name="calculate", func=len, description="d", metadata=metadata)
    (tool,) = ToolSet.from_any([theirs])
    assert tool.parameters["properties"]["__arg1"]["x-grammar"] == {"syntax": "lark", "definition": FORMULA}
    assert ToolSet([tool]).call(ToolCall("", "calculate", {"__arg1": "1+2"})) == 3


@pytest.mark.parametrize(
    ("definition", "syntax", "said"),
    [
        ("start: a", "lark", "line 1, column 8"),
        ("(a", "regex", "never closed"),
        ("start: %json {}", "lark", "not allowed in a string"),
        ("start: <|end|>", "lark", "control token"),
        ('start: "a" start', "lark", "never ends"),
        ("root ::= x", "gbnf", "x"),
        ("x", "abnf", "one of lark, regex, gbnf, ebnf"),
    ],
)
def test_wrong_grammars_are_refused_at_once(definition: str, syntax: str, said: str) -> None:
    """The error names the place in the grammar, and what to do."""
    with pytest.raises(GrammarError) as caught:
        Tool.custom("x", definition=definition, syntax=syntax)
    assert said in str(caught.value)


@pytest.mark.parametrize("seed", range(3))
def test_a_model_of_noise_writes_valid_inputs(seed: int) -> None:
    """Whatever the model wants, and however small its budget is."""
    noise = load_model("embedded")
    for budget in (30, 60, 200):
        params = GenerateParams(tools=TOOLS, tool_choice="calculate", temperature=1.5, seed=seed, max_tokens=budget)
        (made,) = noise.generate("Hello", params).tool_calls
        ORACLE.parse(made.arguments["input"])
