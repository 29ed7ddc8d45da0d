"""The tool parser of vLLM's chat completions, without an engine: what it asks for, and what it reads."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: nox -s engines runs these tests where it is")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.tool_parsers import ToolParserManager

from toolgrammar.adapters.vllm import register
from toolgrammar.core import ToolCall
from toolgrammar.tools.formats import format_names, get_format

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city", "days"],
            },
        },
    }
]
ARGUMENTS = {"city": "Ålesund", "days": 3}
TOKENIZER: Any = SimpleNamespace(chat_template="", all_special_tokens=[], get_vocab=dict)


def request(**more: Any) -> Any:
    """A request of a client."""
    return ChatCompletionRequest(
        model="m", messages=[{"role": "user", "content": "Go"}], **{"tools": TOOLS, "tool_choice": "auto", **more}
    )


def parser(name: str, asked: Any) -> Any:
    """The parser of a wire format for one request."""
    register()
    return ToolParserManager.get_tool_parser(name)(TOKENIZER, asked.tools)


@pytest.mark.parametrize("name", format_names())
def test_each_format_is_read_whole_and_streamed(name: str) -> None:
    """A call comes out as it was written, however the text was cut."""
    asked = request()
    text = get_format(name).render("", [ToolCall("call_1", "get_weather", ARGUMENTS)])
    whole = parser(f"toolgrammar-{name}", asked).extract_tool_calls(text, asked)
    (call,) = whole.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", ARGUMENTS)
    streamed = parser(f"toolgrammar-{name}", asked)
    deltas = [streamed.extract_tool_calls_streaming("", "", piece, [], [], [], asked) for piece in text]
    pieces = [one for delta in [*deltas, streamed.finish_streaming()] if delta for one in delta.tool_calls]
    assert [one.function.name for one in pieces if one.function.name] == ["get_weather"]
    assert json.loads("".join(one.function.arguments or "" for one in pieces)) == ARGUMENTS


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "get_weather"}}])
def test_tools_become_an_envelope(choice: Any) -> None:
    """Under every choice the request has a grammar, and nothing that could cut a call."""
    asked = request(tool_choice=choice, stop=["}"], parallel_tool_calls=False)
    adjusted = parser("toolgrammar-hermes", asked).adjust_request(asked)
    envelope = json.loads(adjusted.structured_outputs.grammar)
    assert envelope["toolgrammar"] == 1 and envelope["format"] == "hermes"
    assert envelope.get("tool_choice", "auto") == choice and envelope["parallel_tool_calls"] is False
    assert not adjusted.stop and not adjusted.skip_special_tokens


def test_no_choice_leaves_the_request_alone() -> None:
    """With ``none`` the answer is text."""
    asked = request(tool_choice="none")
    assert parser("toolgrammar", asked).adjust_request(asked).structured_outputs is None


def test_a_schema_beside_tools_is_that_of_the_text() -> None:
    """``response_format`` is the shape of an answer without calls."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    asked = request(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})
    adjusted = parser("toolgrammar", asked).adjust_request(asked)
    assert json.loads(adjusted.structured_outputs.grammar)["response_schema"] == schema
    assert adjusted.response_format is None


def test_an_envelope_of_the_client_is_kept() -> None:
    """Our own remote models send theirs."""
    own = '{"toolgrammar": 1, "tools": []}'
    asked = request(structured_outputs={"grammar": own})
    assert parser("toolgrammar", asked).adjust_request(asked).structured_outputs.grammar == own


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("name", ["hermes", "llama-json", "qwen3-coder"])
def test_a_call_that_was_cut_open_does_not_parse(name: str, is_streamed: bool) -> None:
    """Wherever its arguments were cut they lack their end, so that no client runs it; behind them it is whole."""
    asked = request()
    wire = get_format(name)
    whole = wire.render("", [ToolCall("1", "get_weather", ARGUMENTS)])
    last = "</function>" if name == "qwen3-coder" else '"days": 3}'
    for end in range(whole.index(last) + len(last)):
        made = parser(f"toolgrammar-{name}", asked)
        arguments = ""
        if is_streamed:
            pieces = [made.extract_tool_calls_streaming("", "", char, [], [], [], asked) for char in whole[:end]]
            for piece in filter(None, [*pieces, made.finish_streaming()]):
                arguments += "".join(call.function.arguments or "" for call in piece.tool_calls)
        elif calls := made.extract_tool_calls(whole[:end], asked).tool_calls:
            arguments = calls[0].function.arguments
        with pytest.raises(ValueError):
            json.loads(arguments)


def test_an_end_that_is_the_whole_answer_is_no_text() -> None:
    """An answer without room for its grammar consists of the token that ends it."""
    register()
    asked = request()
    tokenizer = SimpleNamespace(chat_template="", all_special_tokens=["<|im_end|>"], get_vocab=dict)
    made = ToolParserManager.get_tool_parser("toolgrammar")(tokenizer, asked.tools)
    assert made.extract_tool_calls("<|im_end|>", asked).content is None
    assert made.extract_tool_calls_streaming("", "<|im_end|>", "<|im_end|>", [], [2], [2], asked) is None
    assert made.finish_streaming() is None
