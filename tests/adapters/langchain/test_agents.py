"""LangChain's agents, graphs and chains around the model: scripts for what they do, noise for what is valid."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelFallbackMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.tools import InjectedState
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import PydanticOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel
from langchain_core.tools import InjectedToolCallId, ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core import BudgetError, Message, Model, ToolCall
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..shared_parts import Tree
from .common import Unit

Call = Callable[..., Message]


TREE = '{"value": 1, "children": [{"value": 2, "children": []}]}'

needs_profile = pytest.mark.skipif(
    "profile" not in BaseChatModel.model_fields,
    reason="before langchain-core 1.1 no model says what it can do, and agents take the tool strategy",
)

InjectedId = Annotated[str, InjectedToolCallId]


def scripted(*replies: str | Message, **fields: Any) -> ChatToolGrammar:
    """A chat model that says these replies."""
    return ChatToolGrammar(model=ScriptedModel(replies), **fields)


@tool
def set_heat(degrees: int, unit: Unit = Unit.celsius, boost: bool = False) -> str:
    """Set the heat."""
    return f"{degrees} {unit.value}"


@tool
def note(text: str) -> str:
    """Write something down."""
    raise AssertionError("a cut call must not run")


def test_agent_loop(call: Call) -> None:
    """An agent calls its tool with the arguments of the call, and answers with the result in view."""
    model = ScriptedModel([call("set_heat", degrees=20), "It is 20 degrees."])
    agent = create_agent(ChatToolGrammar(model=model), tools=[set_heat])
    messages = agent.invoke({"messages": [("user", "warm, please")]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[2].content == "20 celsius"
    assert model.requests[1][-1] == Message(
        "tool", "20 celsius", tool_call_id=messages[1].tool_calls[0]["id"], name="set_heat"
    )


@pytest.mark.parametrize(
    "strategy", [pytest.param(Tree, marks=needs_profile), ProviderStrategy(Tree), ToolStrategy(Tree)]
)
def test_agent_structured_response(strategy: Any, call: Call) -> None:
    """Agents give structured responses; asked by the class alone, they take the constrained text and force no call."""
    by_tool = isinstance(strategy, ToolStrategy)
    last = call("Tree", **json.loads(TREE)) if by_tool else TREE
    model = ScriptedModel([call("set_heat", degrees=20), last])
    agent = create_agent(ChatToolGrammar(model=model), tools=[set_heat], response_format=strategy)
    result = agent.invoke({"messages": [("user", "warm, please")]})
    assert result["structured_response"] == Tree.model_validate_json(TREE)


@pytest.mark.parametrize("mode", ["values", "messages"])
def test_a_model_that_repeats_its_answer(call: Call, mode: Any) -> None:
    """Under the tool strategy, which wants one call, a model that writes it twice has answered; none is asked again."""
    twice = replace(call("Tree", **json.loads(TREE)), tool_calls=call("Tree", **json.loads(TREE)).tool_calls * 2)
    model = ScriptedModel(lambda messages: twice)
    agent = create_agent(ChatToolGrammar(model=model), tools=[], response_format=ToolStrategy(Tree))
    request: Any = {"messages": [("user", "a tree, please")]}
    chunks = list(agent.stream(request, {"recursion_limit": 8}, stream_mode=mode))
    assert chunks and len(model.requests) == 1
    answer = agent.invoke(request, {"recursion_limit": 8})
    assert answer["structured_response"] == Tree.model_validate_json(TREE) and len(model.requests) == 2


@pytest.mark.parametrize("mode", ["values", "messages"])
def test_agent_does_not_run_a_cut_call(call: Call, mode: Any) -> None:
    """The agent tells the model that a call was cut; the tool does not run, not even when LangGraph makes it stream."""
    model = ScriptedModel([call("note", text="x" * 500), "Sorry."])
    agent = create_agent(ChatToolGrammar(model=model, max_tokens=100), tools=[note])
    assert list(agent.stream({"messages": [("user", "note it")]}, stream_mode=mode))
    for request in model.requests[1:]:
        assert request[-1].is_error


@pytest.mark.parametrize("seed", range(4))
def test_tools_run_with_valid_arguments(noise: Model, seed: int) -> None:
    """An agent of noise: every tool that runs is given arguments that validate."""
    ran: list[dict[str, Any]] = []

    def turn(angle: int, axis: Annotated[Unit, "the axis"], fast: bool) -> str:
        """Turn."""
        ran.append({"angle": angle, "axis": axis.value, "fast": fast})
        return "done"

    model = ChatToolGrammar(model=noise, temperature=1.0, seed=seed, max_tokens=80)
    bound = model.bind_tools([turn, note], tool_choice="turn")
    tools = ToolSet.from_any([turn])
    answer = bound.invoke("turn it")
    for each in answer.tool_calls:
        tools.call(tools.validate({"name": each["name"], "arguments": each["args"]}))
    assert len(ran) == len(answer.tool_calls) == 1


# -- agents: strategies ----------------------------------------------------------------------------------------------


@needs_profile
def test_provider_strategy_is_chosen(call: Call) -> None:
    """Asked for a class, an agent takes the constrained text: the model may answer at once, and no call is forced."""
    model = ScriptedModel([TREE])
    agent = create_agent(ChatToolGrammar(model=model), tools=[set_heat], response_format=Tree)
    result = agent.invoke({"messages": [("user", "a tree, please")]})
    assert result["structured_response"] == Tree.model_validate_json(TREE)
    assert [message.type for message in result["messages"]] == ["human", "ai"]


@dataclass
class Point:
    """A point."""

    x: int
    y: int


class Settings(TypedDict):
    """Settings."""

    x: int
    y: int


@pytest.mark.parametrize(
    "strategy", [ProviderStrategy, ToolStrategy, pytest.param(lambda schema: schema, marks=needs_profile)]
)
@pytest.mark.parametrize("schema", [Point, Settings, {"title": "Point", **TypeAdapter(Point).json_schema()}])
def test_agent_response_of_any_kind(strategy: Any, schema: Any, call: Call) -> None:
    """Dataclasses, typed dicts and JSON Schemas are response formats of agents, by either strategy."""
    name = schema.__name__ if isinstance(schema, type) else "Point"
    last = call(name, x=1, y=2) if strategy is ToolStrategy else '{"x": 1, "y": 2}'
    agent = create_agent(scripted(last), tools=[set_heat], response_format=strategy(schema))
    answer = agent.invoke({"messages": [("user", "where?")]})["structured_response"]
    assert answer == (Point(1, 2) if schema is Point else {"x": 1, "y": 2})


def test_cut_response_is_an_error() -> None:
    """An agent's structured response that the budget cut is valid, and still an error: LangChain would not notice."""
    model = scripted(TREE, max_tokens=40)
    agent = create_agent(model, tools=[set_heat], response_format=ProviderStrategy(Tree))
    with pytest.raises(BudgetError, match="children"):
        agent.invoke({"messages": [("user", "a tree, please")]})


def test_noise_answers_in_the_schema(noise: Model) -> None:
    """Whatever noise does, an agent with a response format ends with an instance, or says that the budget is over."""

    class Level(BaseModel):
        unit: Unit
        level: Annotated[int, Field(ge=1, le=9)]

    for seed in range(4):
        model = ChatToolGrammar(model=noise, temperature=1.0, seed=seed, max_tokens=60)
        result = create_agent(model, tools=[], response_format=ProviderStrategy(Level)).invoke(
            {"messages": [("user", "warm")]}
        )
        assert isinstance(result["structured_response"], Level)


def test_several_calls_in_one_turn() -> None:
    """Two calls of one turn are both run, in order, and both results are in view on the next turn."""
    calls = (ToolCall("", "set_heat", {"degrees": 20}), ToolCall("", "set_heat", {"degrees": 5, "unit": "fahrenheit"}))
    model = ScriptedModel([Message("assistant", tool_calls=calls), "Done."])
    create_agent(ChatToolGrammar(model=model), tools=[set_heat]).invoke({"messages": [("user", "warm, then cold")]})
    assert [message.text for message in model.requests[1][-2:]] == ["20 celsius", "5 fahrenheit"]


def test_a_tool_that_fails() -> None:
    """What a tool raises is told to the model as a failed call when the tool says so."""

    @tool
    def ask(question: str) -> str:
        """Ask."""
        raise ToolException("nobody is there")

    ask.handle_tool_error = True
    wish = Message("assistant", tool_calls=(ToolCall("", "ask", {"question": "who?"}),))
    model = ScriptedModel([wish, "Nobody."])
    create_agent(ChatToolGrammar(model=model), tools=[ask]).invoke({"messages": [("user", "ask")]})
    assert (model.requests[1][-1].text, model.requests[1][-1].is_error) == ("nobody is there", True)


def test_injected_arguments_are_not_the_models(call: Call) -> None:
    """What LangGraph injects into a tool is no part of its grammar."""

    @tool
    def remember(text: str, state: Annotated[dict[str, Any], InjectedState], call_id: InjectedId) -> str:
        """Remember."""
        return f"{text}: {len(state['messages'])} messages, {call_id[:5]}"

    model = ScriptedModel([call("remember", text="this"), "Done."])
    create_agent(ChatToolGrammar(model=model), tools=[remember]).invoke({"messages": [("user", "remember")]})
    assert model.requests[1][-1].text == "this: 2 messages, call_"


# -- agents: middleware ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(
    "trigger" not in inspect.signature(SummarizationMiddleware).parameters,
    reason="this middleware's settings had other names before langchain 1.1",
)
def test_summary_when_the_conversation_is_long() -> None:
    """The summary comes when the model's own count says so, and the agent goes on with it."""
    model = ScriptedModel(["They spoke at length.", "Hello."], context_window=5_000)
    chat = ChatToolGrammar(model=model)
    middleware = SummarizationMiddleware(
        model=chat, trigger=("tokens", 600), keep=("messages", 1), token_counter=chat.get_num_tokens_from_messages
    )
    agent = create_agent(chat, tools=[], middleware=[middleware])
    long = [("user", "word " * 60), ("assistant", "word " * 60), ("user", "and now?")]
    result = agent.invoke({"messages": long})
    assert result["messages"][-1].text == "Hello."
    assert "They spoke at length." in model.requests[1][0].text
    assert len(model.requests[1]) == 2


def test_old_results_are_cleared_by_the_models_count(call: Call) -> None:
    """Context editing counts by the model, tools included, where LangChain's own count is 0 offline."""

    @tool
    def read() -> str:
        """Read."""
        return "line\n" * 200

    model = ScriptedModel([call("read"), call("read"), "Read."])
    edit = ClearToolUsesEdit(trigger=1_200, keep=1)
    middleware = ContextEditingMiddleware(edits=[edit], token_count_method="model")
    agent = create_agent(ChatToolGrammar(model=model), tools=[read], middleware=[middleware])
    agent.invoke({"messages": [("user", "read")]})
    assert [message.text[:9] for message in model.requests[2] if message.role == "tool"] == ["[cleared]", "line\nline"]


def test_overflow_is_langchains() -> None:
    """A prompt that does not fit is the error that LangChain's fallback and retry middleware act on."""
    small = ChatToolGrammar(model=ScriptedModel(["x"], context_window=50))
    large = ChatToolGrammar(model=ScriptedModel(["Hello."]))
    agent = create_agent(small, tools=[], middleware=[ModelFallbackMiddleware(large)])
    assert agent.invoke({"messages": [("user", "word " * 100)]})["messages"][-1].text == "Hello."


def test_selected_tools_are_real_ones(noise: Model) -> None:
    """A model that selects tools for another one can only name tools that there are, even if it is noise."""
    asked: list[list[str]] = []

    class Seen(AgentMiddleware):  # type: ignore[type-arg]
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            asked.append([each.name for each in request.tools])
            return handler(request)

    selector = ChatToolGrammar(model=noise, temperature=1.0, seed=1, max_tokens=200)
    middleware = [LLMToolSelectorMiddleware(model=selector, max_tools=1), Seen()]
    create_agent(scripted("Done."), tools=[set_heat, note], middleware=middleware).invoke({"messages": [("user", "x")]})
    assert len(asked) == 1
    assert set(asked[0]) <= {"set_heat", "note"}


def test_a_person_is_asked(call: Call) -> None:
    """A call waits for approval, is changed by it, and runs; the state is kept meanwhile."""
    model = ScriptedModel([call("set_heat", degrees=90), "Done."])
    agent = create_agent(
        ChatToolGrammar(model=model),
        tools=[set_heat],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"set_heat": True})],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "1"}}
    waiting = agent.invoke({"messages": [("user", "hot")]}, config)
    (asked,) = waiting["__interrupt__"][0].value["action_requests"]
    assert (asked["name"], asked["args"]) == ("set_heat", {"degrees": 90})
    edited = {"type": "edit", "edited_action": {"name": "set_heat", "args": {"degrees": 20}}}
    result = agent.invoke(Command(resume={"decisions": [edited]}), config)
    assert result["messages"][-1].text == "Done."
    assert model.requests[1][-1].text.endswith("20 celsius")


def test_limits_on_calls(call: Call) -> None:
    """Under a demand for calls on every turn, LangChain's limit on calls ends what a weak model would go on with."""
    agent = create_agent(
        ChatToolGrammar(model=ScriptedModel(lambda messages: call("set_heat", degrees=1))),
        tools=[set_heat],
        middleware=[ToolCallLimitMiddleware(run_limit=3, exit_behavior="end")],
    )
    messages = agent.invoke({"messages": [("user", "go on")]})["messages"]
    ran = [each for each in messages if each.type == "tool" and each.status == "success"]
    assert len(ran) == 3


# -- graphs ----------------------------------------------------------------------------------------------------------


def graph(model: Any, checkpointer: Any = None) -> Any:
    """The loop that LangGraph's documentation begins with: a model, and a node for its tools."""

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([set_heat]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=checkpointer)


MODES = ["values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"]


@pytest.mark.parametrize("mode", MODES)
def test_graph_streams_in_every_mode(mode: Any, call: Call) -> None:
    """Whatever way a graph is streamed, the tool runs once with the model's arguments and the answer is the same."""
    model = ScriptedModel([call("set_heat", degrees=20), "It is 20 degrees."])
    compiled = graph(ChatToolGrammar(model=model).bind_tools([set_heat]), InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    pieces = list(compiled.stream({"messages": [("user", "warm")]}, config, stream_mode=mode))
    assert pieces or mode == "custom"
    messages = compiled.get_state(config).values["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[1].tool_calls[0]["args"] == {"degrees": 20}
    assert (messages[2].content, messages[3].text) == ("20 celsius", "It is 20 degrees.")
    assert messages[3].usage_metadata["output_tokens"] == len("It is 20 degrees.")
    if mode == "messages":
        said = [chunk for chunk, about in pieces if about["langgraph_node"] == "agent"]
        assert "".join(chunk.text for chunk in said) == "It is 20 degrees."
        assert len(said) > 20  # token by token, although the node says invoke


@pytest.mark.asyncio
async def test_graph_streams_asynchronously(call: Call) -> None:
    """Several modes at once, asynchronously, and LangChain's events: the same conversation."""
    model = ScriptedModel(lambda messages: call("set_heat", degrees=20) if messages[-1].role == "user" else "Done.")
    compiled = create_agent(ChatToolGrammar(model=model), tools=[set_heat])
    question: Any = {"messages": [("user", "warm")]}
    modes: Any = ["updates", "messages"]
    pieces = [piece async for piece in compiled.astream(question, stream_mode=modes)]
    assert {mode for mode, _ in pieces} == {"updates", "messages"}
    events = [event async for event in compiled.astream_events(question, version="v2")]
    said = [event["data"]["chunk"].text for event in events if event["event"] == "on_chat_model_stream"]
    assert "".join(said) == "Done."
    assert [event["data"]["output"].content for event in events if event["event"] == "on_tool_end"] == ["20 celsius"]


def test_conversations_are_kept_apart(call: Call) -> None:
    """A checkpointer keeps each thread's history, and the model sees that of its own thread alone."""
    model = ScriptedModel(lambda messages: f"{len(messages)} so far")
    compiled = graph(ChatToolGrammar(model=model).bind_tools([set_heat]), InMemorySaver())
    one: Any = {"configurable": {"thread_id": "1"}}
    other: Any = {"configurable": {"thread_id": "2"}}
    texts = []
    for config in (one, other, one):
        state = compiled.invoke({"messages": [("user", "hello")]}, config)
        texts.append(state["messages"][-1].text)
    assert texts == ["1 so far", "1 so far", "3 so far"]


def test_cut_call_in_a_stored_conversation(call: Call) -> None:
    """A conversation with a cut call can be stored, taken up again, and shown to the model."""
    long = call("note", text="x" * 500)
    model = ScriptedModel([long, "Sorry."])
    agent = create_agent(ChatToolGrammar(model=model, max_tokens=100), tools=[note], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "note it")]}, config)
    result = agent.invoke({"messages": [("user", "and?")]}, config)
    assert result["messages"][-1].text == "Sorry."
    (cut,) = model.requests[1][1].tool_calls
    assert cut.name == "note"
    assert set(cut.arguments["text"]) == {"x"}


# -- chains ----------------------------------------------------------------------------------------------------------


def test_chain_of_prompt_model_and_parser() -> None:
    """Prompts, parsers and parallel branches compose with the model as with any other."""
    prompt = ChatPromptTemplate.from_messages([("system", "Speak {language}."), ("human", "{question}")])
    model = ScriptedModel(lambda messages: f"{messages[0].text} {messages[1].text}!")
    chain = prompt | ChatToolGrammar(model=model) | StrOutputParser()
    assert chain.invoke({"language": "Latin", "question": "Quid"}) == "Speak Latin. Quid!"
    assert "".join(chain.stream({"language": "Latin", "question": "Quid"})) == "Speak Latin. Quid!"
    both = RunnableParallel(one=chain, other=chain | (lambda text: len(text)))
    assert both.invoke({"language": "Latin", "question": "Quid"}) == {"one": "Speak Latin. Quid!", "other": 18}
    assert chain.batch([{"language": "L", "question": str(n)} for n in range(3)])[2] == "Speak L. 2!"


@pytest.mark.asyncio
async def test_structured_chain(noise: Model) -> None:
    """A structured answer is a link of a chain, asynchronous and in batches, and noise keeps to its schema."""

    class Choice(BaseModel):
        unit: Unit
        level: Annotated[int, Field(ge=1, le=9)]

    prompt = ChatPromptTemplate.from_template("How warm, {name}?")
    model = ChatToolGrammar(model=noise, temperature=1.0, max_tokens=60)
    chain = prompt | model.with_structured_output(Choice) | (lambda choice: (choice.unit, choice.level))
    for unit, level in await chain.abatch([{"name": name} for name in "abc"]):
        assert isinstance(unit, Unit) and 1 <= level <= 9


def test_structured_output_parser_with_its_schema() -> None:
    """Chains with LangChain's parsers of text work as before; bound to the parser's schema they cannot fail."""
    parser = PydanticOutputParser(pydantic_object=Tree)
    told = f"A tree.\n{parser.get_format_instructions()}"
    free = scripted("Here is your tree: " + TREE.replace("}]}", "") + " oh")
    with pytest.raises(OutputParserException):
        (free | parser).invoke(told)
    held = scripted("Here is your tree: " + TREE)
    assert isinstance((held.bind(response_format=Tree) | parser).invoke(told), Tree)
