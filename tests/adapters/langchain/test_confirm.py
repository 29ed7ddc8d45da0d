"""LangChain's human in the loop looks at the calls of which the model was not sure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from toolgrammar.adapters.langchain import AskInstead, ChatToolGrammar, UnderPolicy, unsure
from toolgrammar.core import PolicyError, ToolGrammarError, load_model
from toolgrammar.core.testing import ScriptedModel

middleware = pytest.importorskip("langchain.agents.middleware", reason="needs langchain")


def transfer(amount: Literal[10, 1000]) -> str:
    """Transfer money."""
    return f"{amount} sent"


CALL = '<tool_call>\n{"name": "transfer", "arguments": {"amount": 10}}\n</tool_call>'


@pytest.mark.parametrize("asked", [False, True])
def test_an_unsure_call_is_interrupted(asked: bool) -> None:
    """The middleware runs a call of which the model was sure; it asks if nothing is known of it."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    model = ChatToolGrammar(model=ScriptedModel([CALL, "Done."]), exact_choice=None if asked else True)
    config: Any = {"allowed_decisions": ["approve", "reject"], "when": unsure(0.5)}
    loop = middleware.HumanInTheLoopMiddleware(interrupt_on={"transfer": config})
    agent = create_agent(model, [transfer], middleware=[loop], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    state = agent.invoke({"messages": [("user", "Send ten.")]}, thread)
    assert ("__interrupt__" in state) == asked
    told = next(each for each in state["messages"] if getattr(each, "tool_calls", ())).response_metadata
    if asked:
        assert "sureness" not in told
        state = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    else:
        assert 0.5 < told["sureness"][0]["least"] <= 1 and list(told["sureness"][0]["values"]) == ["/amount"]
    assert [each.content for each in state["messages"] if each.type == "tool"] == ["10 sent"]


def test_a_call_without_probabilities_is_looked_at() -> None:
    """A person is asked of a call with a lower probability, and of one without."""
    from langchain_core.messages import AIMessage

    call: Any = {"name": "transfer", "args": {}, "id": "1", "type": "tool_call"}

    def asks(*told: dict[str, Any]) -> bool:
        message = AIMessage("", tool_calls=[call], response_metadata={"sureness": list(told)})
        return unsure(0.5)(SimpleNamespace(tool_call=call, state={"messages": [message]}))

    assert asks() and asks({"id": "2", "least": 0.9}) and asks({"id": "1", "least": 0.4})
    assert not asks({"id": "2", "least": 0.1}, {"id": "1", "least": 0.5})


@pytest.mark.parametrize("tool_format", ["hermes", "qwen3-coder", "pythonic", "gemma-4"])
def test_a_guess_is_looked_at_in_every_format(tool_format: str) -> None:
    """Also where the arguments are not written as JSON: by a person, or by a question of the model."""
    options: dict[str, Any] = {"temperature": 1.0, "seed": 1, "max_tokens": 200, "tool_format": tool_format}
    model = ChatToolGrammar(model=load_model("embedded"), exact_choice=True, **options)
    message = model.bind_tools([transfer], tool_choice="any").invoke("Send.")
    assert message.tool_calls
    for call in message.tool_calls:
        request = SimpleNamespace(tool_call=call, state={"messages": [message]})
        assert unsure(1.0)(request)
        assert AskInstead(1.0)._is_unsure(call, message.response_metadata["sureness"])


@pytest.mark.parametrize("below", [-0.1, 1.5])
def test_a_threshold_is_a_probability(below: float) -> None:
    """Anything else is an error."""
    with pytest.raises(ToolGrammarError, match="from 0 to 1"):
        unsure(below)


@pytest.mark.asyncio
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_question_instead_of_an_unsure_call(is_async: bool) -> None:
    """The turn is text: the model asks without tools, and is told of the call; the tool does not run."""
    from langchain.agents import create_agent

    runs: list[int] = []
    asked: list[str] = []

    def send(amount: Literal[10, 1000]) -> str:
        """Send money."""
        runs.append(amount)
        return f"{amount} sent"

    def reply(messages: Any) -> str:
        asked.append(messages[-1].text)
        return "How much?" if "not sure" in asked[-1] else CALL.replace("transfer", "send")

    model = ChatToolGrammar(model=ScriptedModel(reply), exact_choice=True, max_tokens=300)
    agent = create_agent(model, [send], middleware=[AskInstead(0.5, tools={"send": 1.01})])
    asking: Any = {"messages": [("user", "Send some.")]}
    state = await agent.ainvoke(asking) if is_async else agent.invoke(asking)
    assert state["messages"][-1].content == "How much?" and not state["messages"][-1].tool_calls
    assert len(state["messages"]) == 2 and runs == [] and 'send({"amount": 10})' in asked[-1]


@pytest.mark.parametrize("options", [{"below": 0.5}, {"below": 1.0, "tools": {"send": 0}}])
def test_a_sure_call_runs(options: dict[str, Any]) -> None:
    """So does one of a tool that is never asked about."""
    from langchain.agents import create_agent

    def send(amount: Literal[10, 1000]) -> str:
        """Send money."""
        return f"{amount} sent"

    said = [CALL.replace("transfer", "send"), "Done."]
    agent = create_agent(
        ChatToolGrammar(model=ScriptedModel(said), exact_choice=True, max_tokens=300),
        [send],
        middleware=[AskInstead(**options)],
    )
    state = agent.invoke({"messages": [("user", "Send ten.")]})
    assert [each.content for each in state["messages"] if each.type == "tool"] == ["10 sent"]
    assert state["messages"][-1].content == "Done."


def test_the_thresholds_of_questions() -> None:
    """Calls without probabilities are left alone, unless the tool is always asked about."""
    call: Any = {"name": "send", "args": {}, "id": "1"}
    assert not AskInstead(0.9)._is_unsure(call, ()) and AskInstead(0.9, tools={"send": 2})._is_unsure(call, ())
    told = [{"id": "1", "least": 0.8}]
    assert AskInstead(0.9)._is_unsure(call, told) and not AskInstead(0.9, tools={"send": 0.7})._is_unsure(call, told)
    for wrong in ({"below": 2}, {"tools": {"send": -1}}):
        with pytest.raises(ToolGrammarError):
            AskInstead(**wrong)


def pay(to: str, amount: int) -> str:
    """Pay."""
    return f"paid {to}"


PAY = '<tool_call>\n{"name": "pay", "arguments": {"to": "%s", "amount": 5}}\n</tool_call>'
ASKS = {"tools": {"pay": {"to": ["user", "ask"], "amount": "user"}, "*": "ask"}}


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("to", "decision", "ran"), [("Bob", None, True), ("Eve", "approve", True), ("Eve", "reject", False)]
)
def test_what_a_policy_lets_a_person_confirm(
    to: str, decision: str | None, ran: bool, streams: bool, mode: str
) -> None:
    """LangGraph is interrupted for a value that only a person allows, and for nothing else; the tool runs if that
    person approves, and what nobody may confirm is not written."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    model = ChatToolGrammar(
        model=ScriptedModel([PAY % to, "Done."]), streaming=streams, policy={"tools": {"p*": "free"}}
    )
    loop = UnderPolicy(ASKS, interrupt_mode=mode)
    agent = create_agent(model, [pay, transfer], middleware=[loop], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    state = agent.invoke({"messages": [("user", "Pay Bob 5.")]}, thread)
    assert ("__interrupt__" in state) == (decision is not None)
    if decision is not None:
        (asked,) = state["__interrupt__"]
        assert "/to" in str(asked.value) and "/amount" not in str(asked.value)
        answer: Any = {"type": decision}
        state = agent.invoke(Command(resume={"decisions": [answer]} if mode == "batched" else answer), thread)
    results = [each.content for each in state["messages"] if each.type == "tool"]
    assert (results == [f"paid {to}"]) == ran and state["messages"][-1].content == "Done."


def test_a_policy_that_asks_needs_somebody_who_does() -> None:
    """Without the middleware the model refuses it, by its settings and in a call; a call of which nothing is known is
    asked about."""
    from langchain_core.messages import AIMessage

    with pytest.raises(ValueError, match="confirm"):
        ChatToolGrammar(model=ScriptedModel(["-"]), policy=ASKS)
    with pytest.raises(PolicyError, match="confirm"):
        ChatToolGrammar(model=ScriptedModel(["-"])).bind_tools([pay]).invoke("Pay.", policy=ASKS)
    when: Any = UnderPolicy(ASKS).interrupt_on["pay"]["when"]
    call: Any = {"name": "pay", "args": {}, "id": "1", "type": "tool_call"}
    assert when(SimpleNamespace(tool_call=call, state={"messages": [AIMessage("")]}))
    assert not when(SimpleNamespace(tool_call=call, state={"messages": [AIMessage("", tool_calls=[call])]}))
