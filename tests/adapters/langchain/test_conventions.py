"""LangChain's newer conventions: finish fields, profile, reasoning effort, tools that messages add, block events."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.adapters.langchain.events import NATIVE
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.testing import ScriptedModel


def set_heat(level: int) -> None:
    """Set the heat."""


def note(text: str) -> None:
    """Write a note."""


def calling(*calls: tuple[str, dict[str, Any]], text: str = "") -> Message:
    """Return an answer with calls."""
    return Message("assistant", text, tool_calls=tuple(ToolCall("", name, arguments) for name, arguments in calls))


def scripted(reply: Any, **settings: Any) -> ChatToolGrammar:
    """Return a model that always says the same."""
    return ChatToolGrammar(model=ScriptedModel(lambda messages: reply), **settings)


TWO = calling(("set_heat", {"level": 3}), ("note", {"text": "warm"}), text="I do both.")
LONG = calling(("note", {"text": "so " + "very " * 90 + "long"}))


@pytest.mark.parametrize(
    ("reply", "max_tokens", "normalized", "state"),
    [("Hello.", 100, "stop", None), (TWO, 200, "tool_call", None), ("word " * 90, 10, "length", "incomplete")],
)
def test_finish_fields(reply: Any, max_tokens: int, normalized: str, state: str | None) -> None:
    """The metadata has LangChain's normalized reason, streamed or not, and says where an answer is not whole."""
    bound = scripted(reply, max_tokens=max_tokens).bind_tools([set_heat, note])
    for message in (bound.invoke("x"), list(bound.stream("x"))[-1]):
        assert message.response_metadata["normalized_finish_reason"] == normalized
        assert message.response_metadata.get("finish_state") == state


def test_profile() -> None:
    """The profile has the keys that the installed LangChain knows, and no others."""
    profile: Any = getattr(scripted("x"), "profile", None)
    if profile is None:
        pytest.skip("this LangChain has no profiles")
    from langchain_core.language_models import ModelProfile

    assert set(profile) <= set(ModelProfile.__annotations__)
    expected = {
        "name": "scripted",
        "mid_conversation_system_messages": True,
        "mid_conversation_tools": False,
        "image_url_inputs": False,
    }
    known = {name: value for name, value in expected.items() if name in ModelProfile.__annotations__}
    assert {name: profile[name] for name in known} == {
        **known,
        **({"name": profile["name"]} if "name" in known else {}),
    }


def test_reasoning_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word is a budget of reasoning; that of a call goes before the object's, in either form."""
    model = scripted("x", reasoning_effort="low")

    def thinking(**kwargs: Any) -> Any:
        return model._request([HumanMessage("x")], None, kwargs).params.thinking

    assert thinking() == 512
    assert thinking(reasoning_effort="none") is False
    assert thinking(reasoning_effort="high") is True
    assert thinking(thinking=7) == 7
    assert scripted("x", thinking=9)._request([HumanMessage("x")], None, {}).params.thinking == 9
    assert model._identifying_params["reasoning_effort"] == "low"
    with pytest.raises((ToolGrammarError, ValueError), match="both given"):
        scripted("x", reasoning_effort="low", thinking=True)
    with pytest.raises((ToolGrammarError, ValueError), match="reasoning_effort is 'huge'"):
        model.invoke("x", reasoning_effort="huge")


PARAMETERS = {"type": "object", "properties": {"level": {"type": "integer"}}, "required": ["level"]}
ADDITIONS: list[dict[str, Any]] = [
    {
        "type": "tool_addition",
        "tool": {"type": "tool_definition", "definition": {"name": "set_heat", "input_schema": PARAMETERS}},
    },
    {
        "type": "additional_tools",
        "role": "developer",
        "tools": [{"type": "function", "name": "set_heat", "description": "x", "parameters": PARAMETERS}],
    },
]
ADDITIONS.append({"type": "non_standard", "value": ADDITIONS[0]})


def added(block: dict[str, Any]) -> list[BaseMessage]:
    """Return a conversation with a change of the tools."""
    return [HumanMessage("x"), AIMessage("y"), HumanMessage("z"), SystemMessage([block])]


@pytest.mark.parametrize("block", ADDITIONS)
@pytest.mark.parametrize("bound", [[], [note]])
def test_tools_that_a_message_adds(block: dict[str, Any], bound: list[Any]) -> None:
    """The grammar is of the tools known at that turn: an added tool is callable, and its schema holds."""
    wrong = '<tool_call>\n{"name": "set_heat", "arguments": {"level": "hot"}}\n</tool_call>'
    model = scripted(wrong, max_tokens=80, parallel_tool_calls=False).bind_tools(bound)
    request: Any = model.bound._request(added(block), None, {"tools": model.kwargs["tools"]})  # type: ignore[attr-defined]
    assert [tool.name for tool in request.params.tools] == [*(tool.__name__ for tool in bound), "set_heat"]
    answer = model.invoke(added(block))
    assert [call["name"] for call in answer.tool_calls] == ["set_heat"]
    assert isinstance(answer.tool_calls[0]["args"]["level"], int)
    before = model.invoke(added(block)[:-1]).tool_calls
    assert "set_heat" not in [call["name"] for call in before]


def test_tools_that_a_message_removes() -> None:
    """A removed tool cannot be called; a name that is none of the tools is an error."""
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "set_heat"}}
    model = scripted(calling(("set_heat", {"level": 3})), max_tokens=60)
    calls = model.bind_tools([set_heat, note]).invoke(added(removal)).tool_calls
    assert "set_heat" not in [call["name"] for call in calls]
    with pytest.raises((ToolGrammarError, ValueError), match="names 'set_heat', which is none of the tools"):
        model.bind_tools([note]).invoke(added(removal))
    with pytest.raises((ToolGrammarError, ValueError), match="unsupported content"):
        model.invoke([HumanMessage([removal])])


@pytest.mark.skipif(not NATIVE, reason="this LangChain makes events of chunks")
@pytest.mark.parametrize(("reply", "max_tokens"), [("Hello.", 100), (TWO, 200), (LONG, 60)])
@pytest.mark.asyncio
async def test_block_events(reply: Any, max_tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are LangChain's own, finer: each block ends before the next begins; the message is that of `invoke`."""
    bound: Any = scripted(reply, max_tokens=max_tokens).bind_tools([set_heat, note])
    whole = bound.invoke("x")
    stream = bound.stream_events("x", version="v3")
    events = list(stream)
    astream = await bound.astream_events("x", version="v3")
    assert [event["event"] for event in events] == [event["event"] async for event in astream]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "message-start" and kinds[-1] == "message-finish"
    open_block: list[int] = []
    for event in events[1:-1]:
        if event["event"] == "content-block-start":
            assert not open_block
            open_block.append(event["index"])
        assert open_block == [event["index"]]
        if event["event"] == "content-block-finish":
            open_block.pop()
    assert not open_block
    output = stream.output
    assert output.text == whole.text and output.usage_metadata == whole.usage_metadata
    assert [each["args"] for each in output.tool_calls] == [each["args"] for each in whole.tool_calls]
    assert [(each["args"], each["error"]) for each in output.invalid_tool_calls] == [
        (each["args"], each["error"]) for each in whole.invalid_tool_calls
    ]
    for name in ("finish_reason", "normalized_finish_reason", "model_name", "guarantee", "forced_share"):
        value = whole.response_metadata[name]
        assert output.response_metadata[name] == value
    for index, call in enumerate(whole.tool_calls):
        block = next(e["index"] for e in events if e["event"] == "content-block-finish" and e["content"].get("args") == call["args"])  # fmt: skip
        deltas = [e["delta"] for e in events if e["event"] == "content-block-delta" and e["index"] == block]
        assert {delta["type"] for delta in deltas} == {"tool-call-delta"} and len(deltas) > 1, index
    # LangChain's own conversion of chunks gives the same text and calls.
    monkeypatch.setattr(ChatToolGrammar, "_stream_chat_model_events", None)
    bridged = bound.stream_events("x", version="v3").output
    assert bridged.text == output.text
    assert [each["args"] for each in bridged.tool_calls] == [each["args"] for each in output.tool_calls]


def test_named_schema_everywhere() -> None:
    """OpenAI's inner dict is a schema wherever a schema is taken."""
    named = {"name": "level", "strict": True, "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    model = scripted('{"n": 3}', max_tokens=60)
    assert model.with_structured_output(named).invoke("x") == {"n": 3}
    assert model.bind(response_format=named).invoke("x").text == '{"n": 3}'
