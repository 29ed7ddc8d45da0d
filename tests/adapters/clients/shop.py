"""The task: an agent calls two tools, one after the other, and its answer becomes an object of a class.

The model is scripted, and goes by the conversation alone: a call comes when the result of the one before is in it. So
each framework has to run the tools, and to send back what they said.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel

from ..server.agents.host import Seen, hosted

MODEL = "small"
TASK = "How many bells have we, and what does one cost?"
ASK_OFFER = "Write the offer for all bells."
STOCK, PRICE = "8 pieces are left", "3 euro each"
ANSWER = "We have 8 bells at 3 euro."
OFFER = {"article": "bell", "total": 24}

#: The calls that were run.
CALLS: list[tuple[str, dict[str, Any]]] = []
#: Those of the task.
WANTED = [("count_stock", {"article": "bell"}), ("price_of", {"article": "bell", "currency": "euro"})]

Currency = Literal["euro", "crown"]


class Offer(BaseModel):
    """An offer to a customer."""

    article: str
    total: int = Field(ge=0, le=1000)


def count_stock(article: str) -> str:
    """Count the pieces of an article.

    Args:
        article: its name.
    """
    CALLS.append(("count_stock", {"article": article}))
    return STOCK


def price_of(article: str, currency: Currency) -> str:
    """Look up the price of an article.

    Args:
        article: its name.
        currency: euro or crown.
    """
    CALLS.append(("price_of", {"article": article, "currency": currency}))
    return PRICE


#: The tools for SDKs without agents: name, description and schema of the arguments; and their functions.
SCHEMAS: dict[str, tuple[str, dict[str, Any]]] = {
    "count_stock": (
        "Count the pieces of an article.",
        {"type": "object", "properties": {"article": {"type": "string"}}, "required": ["article"]},
    ),
    "price_of": (
        "Look up the price of an article.",
        {
            "type": "object",
            "properties": {"article": {"type": "string"}, "currency": {"enum": ["euro", "crown"]}},
            "required": ["article", "currency"],
        },
    ),
}
FUNCTIONS: dict[str, Any] = {"count_stock": count_stock, "price_of": price_of}


@dataclass(frozen=True)
class Done:
    """The outcome of a task.

    Attributes:
        text: the agent's last words, or None where the agent's answer is the object itself.
        offer: the object, or its fields.
        pieces: how many pieces of the stream had text or arguments; 0 if nothing was streamed.
    """

    text: str | None
    offer: Any
    pieces: int = 0


class Clerk(ScriptedModel):
    """Plays the agent's part: hands over if it can, calls the two tools in turn, and then answers as it is asked to."""

    def __init__(self) -> None:
        super().__init__(self._reply, context_window=4_000_000)
        self._seen = threading.local()

    def _work(self, request: Any) -> Any:
        self._seen.params = request.params
        return super()._work(request)

    def _reply(self, messages: Sequence[Message]) -> Message | str:
        params = self._seen.params
        tools = {tool.name: tool for tool in params.tools} if params.tools else {}
        said = "\n".join(str(message.content) for message in messages if message.role != "system")
        for result, (name, arguments) in zip((STOCK, PRICE), WANTED):
            called = next((offered for offered in tools if offered.endswith(name)), None)
            if called and result not in said:
                return _call(called, arguments)
        for name, tool in tools.items():
            if name.startswith("transfer_to_") and PRICE not in said and ANSWER not in said:
                return _call(name, {})
            if name == "final_answer":
                return _call(name, {"answer": ANSWER})
            if "total" in tool.parameters.get("properties", {}):
                return _call(name, OFFER)
        if any(each is not None for each in (params.output_type, params.json_mode)):
            return json.dumps(OFFER)
        return ANSWER


def _call(name: str, arguments: dict[str, Any]) -> Message:
    return Message("assistant", tool_calls=(ToolCall("", name, arguments),))


def told(graph: Any, model: Any, stream: bool) -> Done:
    """Run a graph of LangChain's agents, then ask its model for the object."""
    asked = {"messages": [{"role": "user", "content": TASK}]}
    writer = model.with_structured_output(Offer)
    if not stream:
        return Done(str(graph.invoke(asked)["messages"][-1].content), writer.invoke(ASK_OFFER))
    pieces, state = 0, {}
    for path, mode, found in graph.stream(asked, stream_mode=["messages", "values"], subgraphs=True):
        if mode == "values" and not path:
            state = found
        elif mode == "messages":
            pieces += type(found[0]).__name__ == "AIMessageChunk"
    offers = list(writer.stream(ASK_OFFER))
    return Done(str(state["messages"][-1].content), offers[-1], pieces)


@contextmanager
def open_shop() -> Iterator[Seen]:
    """Serve the model while the block runs; its ``url`` is without a path."""
    with hosted(Clerk(), MODEL) as seen:
        yield seen
