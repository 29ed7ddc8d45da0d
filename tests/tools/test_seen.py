"""Tools whose arguments come from the conversation: ids that a tool returned, and copied text."""

import json
from typing import Annotated, Any

import pytest

from toolgrammar.core import Copied, InvalidArgumentsError, LiveValuesError, Message, Seen, ToolCall, load_model
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats.registry import format_names

ORDERS = {"orders": [{"order_id": "O-17"}, {"order_id": "O-18"}]}


def list_orders() -> str:
    """List orders."""
    return json.dumps(ORDERS)


def cancel(order_id: Annotated[str, Seen("order_id")], why: Annotated[str, Copied()] = "") -> str:
    """Cancel an order."""
    return f"cancelled {order_id}"


TOOLS = ToolSet([cancel, list_orders])


def turn(name: str, **arguments: Any) -> Message:
    """Return a turn with one call."""
    return Message("assistant", "", tool_calls=(ToolCall("c1", name, arguments),))


def test_a_conversation_of_several_turns() -> None:
    """Before the list, the tool is not offered; after it, only ids of the list can be written."""
    seen: list[set[str]] = []

    def reply(messages: Any) -> Message:
        return turn("cancel", order_id="O-18", why="it broke")

    messages = [Message("user", "Cancel my order, it broke.")]
    model = ScriptedModel(reply)
    for _ in range(3):
        generation = model.generate(
            messages, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_tokens=900
        )
        (call,) = generation.tool_calls
        seen.append({call.name})
        assert call.error is None
        messages += [generation.message, TOOLS.in_conversation(messages).execute(call).to_message()]
    assert seen == [{"list_orders"}, {"cancel"}, {"cancel"}]
    assert call.arguments == {"order_id": "O-18", "why": "it broke"}
    assert messages[-1].text == "cancelled O-18"


@pytest.mark.parametrize("name", format_names())
def test_every_format(name: str) -> None:
    """Ids and copies, as each format writes strings; the invented id gives way to a real one."""
    messages = [
        Message("user", 'It "broke", <b>twice</b>.'),
        turn("list_orders"),
        Message("tool", json.dumps(ORDERS), tool_call_id="c1"),
    ]
    for why in ('It "broke",', "<b>twice</b>.", "It worked"):
        call = ToolCall("call00000", "cancel", {"order_id": "O-17", "why": why})
        model = ScriptedModel([TOOLS.wire_format(name).render("", [call])])
        generation = model.generate(messages, tools=TOOLS, tool_choice="cancel", tool_format=name, max_tokens=900)
        (written,) = generation.tool_calls
        assert written.error is None and written.arguments["order_id"] in ("O-17", "O-18")
        assert written.arguments.get("why", "It") in messages[0].text


def test_noise_writes_only_what_was_seen() -> None:
    """Random weights, every budget from the least on."""
    model = load_model("embedded")
    messages = [
        Message("user", "It broke twice."),
        turn("list_orders"),
        Message("tool", json.dumps(ORDERS), tool_call_id="c1"),
    ]
    found = set()
    for budget in range(40, 80):
        generation = model.generate(
            messages, tools=TOOLS, tool_choice="cancel", max_tokens=budget, seed=budget, temperature=1.0
        )
        (call,) = generation.tool_calls
        TOOLS.in_conversation(messages).validate(call)
        assert call.arguments["order_id"] in ("O-17", "O-18") and call.arguments.get("why", "It") in messages[0].text
        found.add(call.arguments.get("why"))
    assert len(found) > 2


def test_a_demanded_call_without_values_is_an_error() -> None:
    """It names the tool and the parameter."""
    model = ScriptedModel([turn("cancel", order_id="O-1")])
    for tools, choice in ((TOOLS, "cancel"), (ToolSet([cancel]), "required")):
        with pytest.raises(LiveValuesError, match="no value for a required parameter") as caught:
            model.generate("Cancel O-1.", tools=tools, tool_choice=choice)
        assert (caught.value.place.tool, caught.value.place.parameter) == ("cancel", "order_id")
    assert ToolSet([cancel]).grammar().matches("I cannot.")


def test_calls_are_checked_in_their_conversation() -> None:
    """A finished call outside of it has nothing to be compared with."""
    call = {"name": "cancel", "arguments": {"order_id": "O-1"}}
    TOOLS.validate(call)
    bound = TOOLS.in_conversation([turn("list_orders"), Message("tool", json.dumps(ORDERS), tool_call_id="c1")])
    with pytest.raises(InvalidArgumentsError, match="O-17"):
        bound.validate(call)
    assert bound.prompt() == TOOLS.prompt() and "x-seen" not in TOOLS.prompt() + json.dumps(TOOLS.to_openai())


@pytest.fixture
def tools_of_a_client() -> list[dict[str, Any]]:
    """The tools of a request, as JSON."""
    parameters = {
        "type": "object",
        "properties": {"order_id": {"type": "string", "x-seen": "order_id"}},
        "required": ["order_id"],
    }
    return [{"type": "function", "function": {"name": "cancel", "parameters": parameters}}]


def test_clients_of_the_server_send_the_keyword(tools_of_a_client: list[dict[str, Any]]) -> None:
    """A request with ``x-seen``: its own conversation gives the values."""
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("starlette")
    from toolgrammar.adapters.server import create_app
    from toolgrammar.adapters.server.in_process import InProcess

    process = InProcess(create_app({"m": ScriptedModel(lambda messages: turn("cancel", order_id="O-1"))}), httpx)
    result = {"role": "tool", "tool_call_id": "c1", "content": json.dumps(ORDERS)}
    called = {"id": "c1", "type": "function", "function": {"name": "list_orders", "arguments": "{}"}}
    history = [{"role": "user", "content": "Cancel it."}, {"role": "assistant", "tool_calls": [called]}, result]
    with httpx.Client(transport=process.transport(), base_url="http://server") as client:
        body = {"model": "m", "messages": history, "tools": tools_of_a_client, "tool_choice": "required"}
        answer = client.post("/v1/chat/completions", json=body).json()
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) in ({"order_id": "O-17"}, {"order_id": "O-18"})
        refused = client.post("/v1/chat/completions", json={**body, "messages": history[:1]})
        assert refused.status_code == 400 and "no value for a required parameter" in refused.text


def test_values_of_another_type_do_not_count() -> None:
    """A tool whose number was only seen as a text without digits is not offered; digits count."""

    def refund(number: Annotated[int, Seen("number")]) -> str:
        """Refund an order."""
        return str(number)

    def turns(result: str) -> list[Message]:
        return [turn("list_orders"), Message("tool", result, tool_call_id="c1")]

    tools = ToolSet([refund])
    with pytest.raises(LiveValuesError):
        tools.in_conversation(turns('{"number": "N-1"}')).grammar(tool_choice="required")
    bound = tools.in_conversation(turns('{"number": "17"}'))
    assert bound.to_openai(bound=True)[0]["function"]["parameters"]["properties"]["number"]["enum"] == [17]
    assert ToolSet([refund]).in_conversation([]).to_openai(bound=True) == []
