"""Whole crews: roles that an LLM can have, delegation, planning, guardrails, flows, hooks, streams; all offline."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from crewai import Agent, Crew, Process, Task
from crewai.flow.flow import Flow, listen, start
from crewai.hooks import before_llm_call, clear_before_llm_call_hooks
from crewai.tools import tool
from pydantic import BaseModel

from toolgrammar.adapters.crewai import ToolGrammarLLM
from toolgrammar.core import Message
from toolgrammar.core.testing import ScriptedModel

# CrewAI's agents read fields that CrewAI itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai")

Call = Callable[..., Message]


class Count(BaseModel):
    """How many."""

    total: int


@tool("Word Count")
def word_count(words: dict[str, int], note: str = "none") -> str:
    """Count words."""
    return f"{sum(words.values())} words"


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Nothing leaves the machine: whoever connects or looks a name up fails, and is found out."""
    tried: list[Any] = []

    def refuse(*arguments: Any, **options: Any) -> Any:
        tried.append(arguments)
        raise OSError(f"a test tried to reach {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield tried
    assert tried == []


def agent_of(model: ScriptedModel, role: str = "Clerk", **fields: Any) -> Agent:
    """An agent that speaks by this model."""
    llm = ToolGrammarLLM(model=model, max_tokens=2000)
    return Agent(role=role, goal="Count", backstory="You count.", llm=llm, **{"max_iter": 3, **fields})


def task_of(agent: Agent | None = None, **fields: Any) -> Task:
    """A small task."""
    return Task(description="Count.", expected_output="A number", agent=agent, **fields)


def manager_or_clerk(call: Call, coworker: str) -> Callable[[Sequence[Message]], Any]:
    """A script in which a manager asks a coworker once, and reports what that one says."""

    def script(messages: Sequence[Message]) -> Any:
        if "coworker" not in messages[0].text and "Manage the team" not in messages[0].text:
            return "Five."
        if messages[-1].role == "tool":
            return f"The clerk says: {messages[-1].text}"
        return call("delegate_work_to_coworker", task="Count.", context="a b c d e", coworker=coworker)

    return script


@pytest.mark.parametrize("coworker", ["Clerk", "Cleaner"])
def test_hierarchy(call: Call, coworker: str) -> None:
    """A manager can only delegate to a coworker that there is, whoever it has in mind."""
    model = ScriptedModel(manager_or_clerk(call, coworker))
    manager = ToolGrammarLLM(model=model, max_tokens=2000)
    crew = Crew(agents=[agent_of(model)], tasks=[task_of()], process=Process.hierarchical, manager_llm=manager)
    assert crew.kickoff().raw == "The clerk says: Five."


def test_delegation_among_equals(call: Call) -> None:
    """An agent that may delegate asks its coworker, by the name that it has."""

    def script(messages: Sequence[Message]) -> Any:
        if "You are Asker" not in messages[0].text:
            return "Five."
        if messages[-1].role == "tool":
            return f"It is {messages[-1].text}"
        return call("ask_question_to_coworker", question="How many?", context="a b c d e", coworker="somebody")

    model = ScriptedModel(script)
    asker = agent_of(model, "Asker", allow_delegation=True)
    crew = Crew(agents=[asker, agent_of(model, 'Clerk of "quotes"')], tasks=[task_of(asker)])
    assert crew.kickoff().raw == "It is Five."


def test_sequence_with_context(call: Call) -> None:
    """Each task reads what the one before it said; usage is counted over all of them."""
    model = ScriptedModel([call("word_count", words={"a": 5}), "Five.", '{"total": 5}'])
    first = task_of(agent_of(model, tools=[word_count]))
    second = task_of(agent_of(model, "Writer"), context=[first], output_pydantic=Count)
    result = Crew(agents=[first.agent, second.agent], tasks=[first, second]).kickoff()
    assert result.pydantic == Count(total=5)
    assert "Five." in model.requests[2][-1].text
    assert result.token_usage.successful_requests == 3


def test_planning(call: Call) -> None:
    """A crew's plan matches CrewAI's class for plans, and an agent's plan is a call of the function that makes it."""

    def script(messages: Sequence[Message]) -> Any:
        if "Task Execution Planner" in messages[0].text:
            return '{"list_of_plans_per_task": [{"task_number": 1, "task": "Count.", "plan": "Count aloud."}]}'
        if "You are Clerk" not in messages[0].text:
            return "I would rather talk about it than plan."
        return "Five."

    model = ScriptedModel(script)
    planner = ToolGrammarLLM(model=model, max_tokens=2000)
    agent = agent_of(model)
    assert Crew(agents=[agent], tasks=[task_of(agent)], planning=True, planning_llm=planner).kickoff().raw == "Five."
    assert "Count aloud." in model.requests[-1][-1].text


def test_a_function_that_is_given_is_called() -> None:
    """Where CrewAI reads the function's result and nothing else, as for an agent's plan, a call is demanded."""
    llm = ToolGrammarLLM(model=ScriptedModel(['No. {"name": "plan", "arguments": {"ready": true}}']))
    schema = {"type": "object", "properties": {"ready": {"type": "boolean"}}, "required": ["ready"]}
    tools = [{"type": "function", "function": {"name": "plan", "description": "Plan.", "parameters": schema}}]
    assert llm.call("plan", tools=tools, available_functions={"plan": lambda ready: f"ready: {ready}"}) == "ready: True"


def test_guardrails() -> None:
    """A guardrail sends the agent back to work; one in words is judged by the same LLM, under CrewAI's class."""

    def script(messages: Sequence[Message]) -> str:
        if "guardrail" in messages[-1].text.lower():
            return '{"valid": true, "feedback": null}'
        return "Five, please." if "say please" in messages[-1].text else "Five."

    def polite(output: Any):  # type: ignore[no-untyped-def]  # CrewAI reads the annotation, and not as text
        return ("please" in output.raw, output.raw if "please" in output.raw else "say please")

    agent = agent_of(ScriptedModel(script))
    assert Crew(agents=[agent], tasks=[task_of(agent, guardrail=polite)]).kickoff().raw == "Five, please."
    agent = agent_of(ScriptedModel(script))
    assert Crew(agents=[agent], tasks=[task_of(agent, guardrail="It must be polite.")]).kickoff().raw == "Five."


def test_kickoffs() -> None:
    """Async, natively async, and for each of several inputs: all give the answer."""
    agent = agent_of(ScriptedModel(lambda messages: "Five."))
    crew = Crew(agents=[agent], tasks=[task_of(agent, async_execution=True)])
    assert asyncio.run(crew.kickoff_async()).raw == "Five."
    assert asyncio.run(crew.akickoff()).raw == "Five."
    assert [output.raw for output in crew.kickoff_for_each([{}, {}])] == ["Five.", "Five."]


def test_flow() -> None:
    """A flow whose steps are a direct call and a crew."""

    class Counting(Flow):
        @start()
        def think(self) -> str:
            return str(ToolGrammarLLM(model=ScriptedModel(["Words."])).call("What is counted?"))

        @listen(think)
        def count(self, what: str) -> str:
            agent = agent_of(ScriptedModel(["Five."]))
            return f"{what} {Crew(agents=[agent], tasks=[task_of(agent)]).kickoff().raw}"

    assert Counting().kickoff() == "Words. Five."


def test_streaming_crew(call: Call) -> None:
    """The chunks of a streaming crew are the call's arguments, then the answer, which is also its result."""
    model = ScriptedModel([call("word_count", words={"a": 5}), "Five."])
    agent = agent_of(model, tools=[word_count])
    stream = Crew(agents=[agent], tasks=[task_of(agent)], stream=True).kickoff()
    chunks = [(str(chunk.chunk_type.value), chunk.content) for chunk in stream]
    assert "".join(text for kind, text in chunks if kind == "text") == stream.result.raw == "Five."
    assert "".join(text for kind, text in chunks if kind == "tool_call") == '{"words": {"a": 5}}'


def test_direct_stream() -> None:
    """`stream_events` streams one call, whatever the LLM's own setting."""
    session = ToolGrammarLLM(model=ScriptedModel(["Five."])).stream_events("How many?")
    chunks = [frame.content for frame in session if frame.type == "llm_stream_chunk"]
    assert "".join(chunks) == session.result == "Five."


def test_hooks() -> None:
    """A hook sees the messages before a direct call and may stop it: that is a denial and no failure of ours."""
    seen: list[str] = []

    @before_llm_call
    def look(context: Any) -> bool:
        seen.append(context.messages[-1]["content"])
        return "secret" not in seen[-1]

    llm = ToolGrammarLLM(model=ScriptedModel(["Five."]))
    try:
        assert llm.call("How many?") == "Five."
        with pytest.raises(ValueError, match="blocked"):
            llm.call("a secret")
    finally:
        clear_before_llm_call_hooks()
    assert seen == ["How many?", "a secret"]


def test_a_long_conversation_is_summarised(call: Call) -> None:
    """Near the end of the context window CrewAI has the conversation summarised, by the same LLM, and goes on."""

    def script(messages: Sequence[Message]) -> Any:
        if "summar" in messages[0].text.lower():
            return "<summary>It was five.</summary>"
        if any("It was five." in message.text for message in messages):
            return "Five."
        return call("word_count", words={"a": 5}, note="x" * 1500)

    model = ScriptedModel(script, context_window=5000)
    result = Crew(agents=[(agent := agent_of(model, tools=[word_count], max_iter=6))], tasks=[task_of(agent)]).kickoff()
    assert result.raw == "Five."
