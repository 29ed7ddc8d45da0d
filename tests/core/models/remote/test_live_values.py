"""Models on servers: values of callables never leave the process, and each call is checked."""

import json
from typing import Annotated, Any, Literal

import httpx

from toolgrammar.core import Message, Seen, ToolCall, Values
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.tools import ToolSet

IDS = {"acme": ["SECRET-1", "SECRET-2"], "zeta": []}


def close(
    project: Literal["acme", "zeta"],
    ticket: Annotated[str, Values(lambda call: IDS[call["project"]], after=("project",))],
    by: Annotated[str, Seen("user_id")] = "",
) -> str:
    """Close a ticket."""
    return ticket


def served(*calls: dict[str, Any]) -> tuple[RemoteModel, list[str]]:
    """Return a model whose server writes these calls one after the other, and the requests that it got."""
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.content.decode())
        function = {"name": "close", "arguments": json.dumps(calls[min(len(sent), len(calls)) - 1])}
        message = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        return httpx.Response(200, json={"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    return RemoteModel("m@http://model.test/v1", transport=httpx.MockTransport(answer)), sent


def test_a_wrong_value_is_asked_for_again() -> None:
    """The server sees neither callables nor values, but those in the calls that it wrote."""
    wrong = {"project": "acme", "ticket": "X-9"}
    model, sent = served(wrong, {**wrong, "ticket": "SECRET-2", "by": "u1"}, {**wrong, "ticket": "SECRET-2"})
    generation = model.generate("Close it.", tools=[close], tool_choice="required")
    (call,) = generation.tool_calls
    assert call.error is None and call.arguments == {"project": "acme", "ticket": "SECRET-2"}
    assert len(sent) == 3 and "SECRET" not in sent[0] + sent[1] and not any("x-values" in text for text in sent)
    assert generation.left_out == ("close/properties/ticket/x-values", "close/properties/by/x-seen")
    assert generation.enforced["close/properties/ticket/x-values"] == "validation"


def test_seen_values_are_checked_in_the_conversation() -> None:
    """An id of an earlier result is taken."""
    messages = [
        Message("user", "Close it."),
        Message("assistant", "", tool_calls=(ToolCall("c1", "me", {}),)),
        Message("tool", '{"user_id": "u1"}', tool_call_id="c1"),
    ]
    model, sent = served({"project": "acme", "ticket": "SECRET-1", "by": "u1"})
    (call,) = model.generate(messages, tools=[close], tool_choice="required").tool_calls
    assert call.error is None and len(sent) == 1


def test_a_structural_tag_has_no_live_values() -> None:
    """Another engine has all values of the schema."""
    tag = json.dumps(ToolSet([close]).to_structural_tag(tool_choice="required"))
    assert "x-values" not in tag and "x-seen" not in tag and "SECRET" not in tag
