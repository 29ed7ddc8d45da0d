"""Agent Framework's approvals are asked for the calls of which the model was not sure."""

from __future__ import annotations

from typing import Any, Literal

import pytest

pytest.importorskip("agent_framework")

from agent_framework import Agent, BaseChatClient, Message

from toolgrammar.adapters.agent_framework import ConfirmUnsure, ToolGrammarChatClient, UnderPolicy
from toolgrammar.core import PolicyError, ToolGrammarError, load_model
from toolgrammar.core.testing import ScriptedModel

RUNS: list[int] = []


def transfer(amount: Literal[10, 1000]) -> str:
    """Transfer money."""
    RUNS.append(amount)
    return f"{amount} sent"


def look(account: Literal["a", "b"]) -> str:
    """Look at an account."""
    RUNS.append(0)
    return f"{account} has 5"


def call(name: str, arguments: str) -> str:
    """Return a call as the model writes it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


TRANSFER = call("transfer", '{"amount": 10}')
LOOK = call("look", '{"account": "a"}')


def agent_of(*replies: str, exact: bool = True, **options: Any) -> Any:
    """Return an agent with the middleware."""
    RUNS.clear()
    given = {"max_tokens": 400, **({"exact_choice": True} if exact else {})}
    client = ToolGrammarChatClient(model=ScriptedModel(list(replies)), default_options=given)
    return client.as_agent(name="bank", tools=[transfer, look], middleware=[ConfirmUnsure(client, **options)])


async def run(agent: Any, asked: Any, session: Any, stream: bool) -> Any:
    """Return the response of a run, streamed or not."""
    if not stream:
        return await agent.run(asked, session=session)
    running = agent.run(asked, session=session, stream=True)
    async for _ in running:
        pass
    return await running.get_final_response()


@pytest.mark.asyncio
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("approved", [True, False])
async def test_an_unsure_call_waits_for_its_approval(stream: bool, approved: bool) -> None:
    """It runs when a person approves it, and only then."""
    agent = agent_of(TRANSFER, "Done.", below=0.9, tools={"transfer": 1.01})
    session = agent.create_session()
    response = await run(agent, "Send ten.", session, stream)
    (asked,) = response.user_input_requests
    assert asked.type == "function_approval_request" and RUNS == []
    assert asked.function_call.name == "transfer" and asked.function_call.parse_arguments() == {"amount": 10}
    sure = asked.additional_properties["sureness"]
    assert 0.5 < sure["least"] <= 1 and list(sure["values"]) == ["/amount"]
    answer = Message("user", [asked.to_function_approval_response(approved)])
    response = await run(agent, answer, session, stream)
    assert ([10] if approved else []) == RUNS and response.text == "Done." and not response.user_input_requests


@pytest.mark.asyncio
@pytest.mark.parametrize("stream", [False, True])
async def test_a_sure_call_runs_at_once(stream: bool) -> None:
    """Nobody is asked."""
    agent = agent_of(TRANSFER, "Done.", below=0.5)
    response = await run(agent, "Send ten.", agent.create_session(), stream)
    assert RUNS == [10] and response.text == "Done."


@pytest.mark.asyncio
@pytest.mark.parametrize("tool_format", ["hermes", "qwen3-coder", "pythonic", "gemma-4"])
async def test_a_guess_is_asked_about_in_every_format(tool_format: str) -> None:
    """Also where the arguments are not written as JSON."""
    RUNS.clear()
    options = {"exact_choice": True, "temperature": 1.0, "seed": 1, "max_tokens": 200, "tool_format": tool_format}
    client = ToolGrammarChatClient(model=load_model("embedded"), default_options=options)
    agent = client.as_agent(tools=[look], middleware=[ConfirmUnsure(client, below=1.0)])
    response = await agent.run("Look.", options={"tool_choice": "required"})
    asked = response.user_input_requests
    assert RUNS == [] and asked and all("/account" in one.additional_properties["sureness"]["values"] for one in asked)


@pytest.mark.asyncio
async def test_thresholds_of_tools() -> None:
    """One tool always asks, another never does, in the same conversation."""
    agent = agent_of(LOOK, TRANSFER, "Done.", below=0.5, exact=False, tools={"look": 0, "transfer": 2})
    response = await agent.run("Look, then send.", session=agent.create_session())
    assert RUNS == [0] and [asked.function_call.name for asked in response.user_input_requests] == ["transfer"]


@pytest.mark.asyncio
async def test_without_probabilities_a_person_is_asked() -> None:
    """A client without ``exact_choice`` knows nothing of its calls."""
    agent = agent_of(LOOK, "Done.", below=0.1, exact=False)
    response = await agent.run("Look.", session=agent.create_session())
    assert RUNS == [] and response.user_input_requests[0].additional_properties["sureness"] is None


@pytest.mark.parametrize("options", [{"below": 1.5}, {"below": -0.1}, {"tools": {"look": -1}}])
def test_thresholds_are_numbers(options: dict[str, Any]) -> None:
    """Others are errors."""
    with pytest.raises(ToolGrammarError):
        agent_of(**options)


ASKS = {"tools": {"transfer": {"amount": ["user", "ask"]}, "look": {"account": {"values": ["a"]}}}}


@pytest.mark.asyncio
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("said", "approved"), [("Send 10.", None), ("Send some.", True), ("Send some.", False)])
async def test_what_a_policy_lets_a_person_confirm(said: str, approved: bool | None, stream: bool) -> None:
    """An approval is asked for a value that only a person allows, and for nothing else; the tool runs if that person
    approves. A policy of the client holds too."""
    RUNS.clear()
    own = {"policy": {"tools": {"*": "free"}}, "max_tokens": 400}
    client = ToolGrammarChatClient(model=ScriptedModel([LOOK, TRANSFER, "Done."]), default_options=own)
    agent = client.as_agent(tools=[transfer, look], middleware=[UnderPolicy(ASKS)])
    session = agent.create_session()
    response = await run(agent, said, session, stream)
    if approved is not None:
        (asked,) = response.user_input_requests
        assert RUNS == [0] and asked.additional_properties["ask"] == ["/amount"]
        response = await run(agent, Message("user", [asked.to_function_approval_response(approved)]), session, stream)
    assert ([0] if approved is False else [0, 10]) == RUNS and response.text == "Done."


@pytest.mark.asyncio
async def test_a_policy_that_asks_needs_somebody_who_does() -> None:
    """Without the middleware the client refuses it; a call of which nothing is known is asked about."""
    with pytest.raises(PolicyError, match="confirm"):
        ToolGrammarChatClient(model=ScriptedModel(["-"]), default_options={"policy": ASKS})
    client = ToolGrammarChatClient(model=ScriptedModel([TRANSFER]))
    with pytest.raises(PolicyError, match="confirm"):
        await client.as_agent(tools=[transfer]).run("Send.", options={"policy": ASKS})
    assert client.asked("unknown") == ("",)

    class Other(BaseChatClient):
        """A client that knows no policies."""

        def _inner_get_response(self, **_: Any) -> Any:
            raise AssertionError

    with pytest.raises(PolicyError, match="client"):
        await Agent(Other(), tools=[transfer], middleware=[UnderPolicy(ASKS)]).run("Send.")
