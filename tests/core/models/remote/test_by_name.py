"""``tools_in_prompt="names"`` on servers: a request that chooses tools by name, and one with their schemas."""

import json
from typing import Annotated, Any

import pytest

from toolgrammar.core import (
    ArgumentsDelta,
    BudgetError,
    CallEnd,
    CallStart,
    InvalidArgumentsError,
    LiveValuesError,
    Message,
    Seen,
    TextDelta,
    ToolCall,
)
from toolgrammar.core.models.remote import RemoteFinish
from toolgrammar.tools import ToolSet


def weather(city: str, days: int = 1) -> str:
    """Get the weather of a city. It has at most ten days."""
    return city


def ping() -> str:
    """Answer at once."""
    return "pong"


def cancel(order: Annotated[str, Seen("order_id")]) -> str:
    """Cancel an order."""
    return order


TOOLS = ToolSet([weather, ping, cancel])
NAMES: Any = {"tools": TOOLS, "tools_in_prompt": "names"}
ROME = ("weather", {"city": "Rome"})


def shown(asked: Any) -> list[str]:
    """Return the names of the tools of a request."""
    return [tool["function"]["name"] for tool in asked["tools"]]


def test_two_requests(serve: Any, complete: Any) -> None:
    """The first has names and one line each, the second the schema of the chosen tool, which it demands."""
    server = serve(complete(None, ("weather", {})), complete(None, ROME))
    answer = server.model().generate("Rome?", **NAMES)
    first, second = server.asked
    assert shown(first) == ["weather", "ping"]  # no order was seen
    assert first["tools"][0]["function"]["description"] == "Get the weather of a city."
    assert first["tools"][0]["function"]["parameters"]["properties"] == {} and first["tool_choice"] == "auto"
    assert shown(second) == ["weather"] and second["tool_choice"] == "required"
    assert "city" in second["tools"][0]["function"]["parameters"]["properties"]
    assert first["messages"] == second["messages"]
    (call,) = answer.tool_calls
    assert (call.name, call.arguments, call.error) == ("weather", {"city": "Rome"}, None)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.attempts) == (20, 10, 2)
    assert list(answer.enforced) == ["weather"] and answer.finish_reason == "tool_calls"


def test_a_text_is_the_answer(serve: Any, complete: Any) -> None:
    """The model calls nothing, so there is one request."""
    server = serve(complete("It is sunny."))
    answer = server.model().generate("Rome?", **NAMES)
    assert answer.text == "It is sunny." and not answer.tool_calls and len(server.asked) == 1
    assert answer.attempts == 1 and answer.usage.prompt_tokens == 10


def test_arguments_of_the_first_answer_do_not_count(serve: Any, complete: Any) -> None:
    """A server that guesses them is not asked again for the name."""
    server = serve(complete(None, ("weather", {"town": "Oslo"})), complete(None, ROME))
    assert server.model().generate("Rome?", **NAMES).tool_calls[0].arguments == {"city": "Rome"}
    assert len(server.asked) == 2


def test_parallel_calls(serve: Any, complete: Any) -> None:
    """The second request has each chosen tool once."""
    calls = [ROME, ("ping", {}), ("weather", {"city": "Oslo"})]
    server = serve(complete(None, ("weather", {}), ("ping", {}), ("weather", {"a": 1})), complete(None, *calls))
    answer = server.model().generate("All?", **NAMES)
    assert [(call.name, dict(call.arguments)) for call in answer.tool_calls] == calls
    assert shown(server.asked[1]) == ["weather", "ping"]


@pytest.mark.parametrize("choice", ["weather", "ping"])
def test_a_demanded_tool_needs_no_choice(serve: Any, complete: Any, choice: str) -> None:
    """Its schema alone is sent at once."""
    server = serve(complete(None, ROME if choice == "weather" else ("ping", {})))
    assert server.model().generate("Go", tool_choice=choice, **NAMES).tool_calls[0].name == choice
    assert [shown(asked) for asked in server.asked] == [[choice]]


def test_one_call_is_demanded_by_name(serve: Any, complete: Any) -> None:
    """Without parallel calls, more servers honour the name."""
    server = serve(complete(None, ("weather", {})), complete(None, ROME))
    server.model().generate("Go", tool_choice="required", parallel_tool_calls=False, **NAMES)
    choice = server.asked[1]["tool_choice"]
    assert choice == {"type": "function", "function": {"name": "weather"}}


def test_events_of_a_stream(serve: Any, complete: Any) -> None:
    """Text of the first answer comes at once, and calls once; joined, they are the complete answer."""
    server = serve(complete("Let me see.", ("weather", {})), complete(None, ROME))
    events = list(server.model().stream("Rome?", **NAMES))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Let me see."
    assert [event.name for event in events if isinstance(event, CallStart)] == ["weather"]
    arguments = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
    assert json.loads(arguments) == {"city": "Rome"}
    kinds = [type(event) for event in events]
    assert kinds.index(TextDelta) < kinds.index(CallStart) < kinds.index(CallEnd)
    end = events[-1]
    assert isinstance(end, RemoteFinish) and kinds.count(RemoteFinish) == 1
    assert end.usage.completion_tokens == 10 and end.attempts == 2
    server = serve(complete("Let me see.", ("weather", {})), complete(None, ROME))
    whole = server.model().generate("Rome?", **NAMES)
    assert whole.text == "Let me see." and len(whole.tool_calls) == 1


def test_the_budget_is_that_of_both(serve: Any, complete: Any) -> None:
    """The second request has what the first left; if that is nothing, there is an error."""
    server = serve(complete(None, ("weather", {})), complete(None, ROME))
    server.model().generate("Rome?", max_tokens=50, **NAMES)
    assert [asked["max_tokens"] for asked in server.asked] == [50, 45]
    server = serve(complete(None, ("weather", {})), complete(None, ROME))
    with pytest.raises(BudgetError, match="before the arguments"):
        server.model().generate("Rome?", max_tokens=5, **NAMES)


def test_values_of_the_conversation(serve: Any, complete: Any) -> None:
    """A tool is offered when its ids were seen, and its arguments are checked."""
    turns = [
        Message("user", "Cancel it."),
        Message("assistant", "", tool_calls=(ToolCall("c", "orders", {}),)),
        Message("tool", '{"order_id": "O-4"}', tool_call_id="c"),
    ]
    wrong, right = complete(None, ("cancel", {"order": "O-5"})), complete(None, ("cancel", {"order": "O-4"}))
    server = serve(complete(None, ("cancel", {})), wrong, right)
    answer = server.model().generate(turns, **NAMES)
    assert shown(server.asked[0]) == ["weather", "ping", "cancel"] and answer.attempts == 3
    assert answer.tool_calls[0].arguments == {"order": "O-4"}
    with pytest.raises(LiveValuesError):
        server.model().generate("Cancel it.", tool_choice="cancel", **NAMES)


def test_invalid_arguments_are_an_error(serve: Any, complete: Any) -> None:
    """The second request is repeated as any other."""
    server = serve(complete(None, ("weather", {})), complete(None, ("weather", {"days": "many"})))
    with pytest.raises(InvalidArgumentsError):
        server.model().generate("Rome?", tool_choice="required", **NAMES)
    assert [shown(asked) for asked in server.asked[1:]] == [["weather"]] * 3


def test_large_sets_alone_with_auto(serve: Any, complete: Any) -> None:
    """``"auto"`` is one request with schemas for a small set, and two for a large one; an estimate counts the names."""
    server = serve(complete(None, ROME))
    server.model().generate("Rome?", tools=TOOLS.subset(["weather", "ping"]), tools_in_prompt="auto")
    assert len(server.asked) == 1
    many = [{"name": f"tool_{n}", "description": "Do it. " * 40, "parameters": {"type": "object"}} for n in range(60)]
    tools = ToolSet.from_any([weather, *many])
    server = serve(complete(None, ("weather", {})), complete(None, ROME))
    model = server.model()
    assert model.generate("Rome?", tools=tools, tools_in_prompt="auto").tool_calls[0].name == "weather"
    assert [len(asked["tools"]) for asked in server.asked] == [61, 1]
    assert model.count_tokens("Rome?", tools, "names") < model.count_tokens("Rome?", tools) / 2


async def _asked(model: Any) -> Any:
    return await model.agenerate("Rome?", **NAMES)


def test_async_and_batches(serve: Any, complete: Any) -> None:
    """They ask in the same way."""
    import asyncio

    def reply(asked: Any) -> Any:
        return complete(None, ROME if shown(asked) == ["weather"] else ("weather", {}))

    model = serve(reply).model()
    assert asyncio.run(_asked(model)).tool_calls[0].arguments == {"city": "Rome"}
    answers = model.generate_batch(["Rome?", "Rome?"], **NAMES)
    assert [answer.tool_calls[0].arguments for answer in answers] == [{"city": "Rome"}] * 2
