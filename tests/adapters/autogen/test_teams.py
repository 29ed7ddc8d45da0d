"""AutoGen's agents and teams around the client: parallel calls, streams, selectors, handoffs, ledgers, workbenches."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import (
    HandoffMessage,
    ModelClientStreamingChunkEvent,
    StructuredMessage,
    ToolCallExecutionEvent,
)
from autogen_agentchat.teams import MagenticOneGroupChat, SelectorGroupChat, Swarm
from autogen_core import CancellationToken, Component
from autogen_core.memory import ListMemory, MemoryContent
from autogen_core.models import CreateResult, UserMessage
from autogen_core.tools import FunctionTool, StaticWorkbench
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams
from pydantic import BaseModel

from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
from toolgrammar.adapters.autogen.messages import selection, with_speakers
from toolgrammar.core import Message, Model, ToolCall, ToolGrammarError, Vocabulary
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools.formats import format_names

from ...shares import share

Call = Callable[..., Message]

pytestmark = [
    pytest.mark.asyncio,
    # AutoGen's runtime forgets a stream when a team has ended.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Sum(BaseModel):
    """A sum."""

    total: int


def scripted(replies: Any, **arguments: Any) -> ToolGrammarChatCompletionClient:
    """A client that says these replies, with a budget against scripts that the grammar leads astray."""
    return ToolGrammarChatCompletionClient(model=ScriptedModel(replies), **{"max_tokens": 3000, **arguments})


async def add(numbers: list[int]) -> int:
    """Add numbers."""
    await asyncio.sleep(0)
    return sum(numbers)


# -- agents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_parallel_calls_then_an_object(call: Call, stream: bool) -> None:
    """Two calls in one turn run, and the reflection on both is an instance of the output class."""
    both = Message(
        "assistant", tool_calls=(*call("add", numbers=[1, 2]).tool_calls, *call("add", numbers=[3]).tool_calls)
    )
    client = scripted([both, '{"total": 6}'])
    agent = AssistantAgent(
        "adder", client, tools=[add], output_content_type=Sum, reflect_on_tool_use=True, model_client_stream=stream
    )
    messages = [message async for message in agent.run_stream(task="add")]
    (results,) = [message.content for message in messages if isinstance(message, ToolCallExecutionEvent)]
    assert [result.content for result in results] == ["3", "3"]
    (answer,) = [message.content for message in messages if isinstance(message, StructuredMessage)]
    assert answer == Sum(total=6)
    pieces = "".join(message.content for message in messages if isinstance(message, ModelClientStreamingChunkEvent))
    assert pieces == ('{"total": 6}' if stream else "")


async def test_workbench_and_memory(call: Call) -> None:
    """Tools from a workbench are called; what a memory adds is read."""
    memory = ListMemory()
    await memory.add(MemoryContent(content="The user likes sums.", mime_type="text/plain"))
    model = ScriptedModel([call("add", numbers=[2, 2]), "Four."])
    client = ToolGrammarChatCompletionClient(model=model)
    workbench = StaticWorkbench([FunctionTool(add, description="Add.")])
    agent = AssistantAgent("adder", client, workbench=workbench, memory=[memory], reflect_on_tool_use=True)
    assert (await agent.run(task="add")).messages[-1].content == "Four."
    assert any("likes sums" in message.text for message in model.requests[0])
    assert model.requests[1][-1].text == "4"


SERVER = """
from mcp.server.fastmcp import FastMCP
server = FastMCP("sums")
@server.tool()
def total(amounts: dict[str, int], currency: str = "EUR") -> str:
    "Add amounts."
    return f"{sum(amounts.values())} {currency}"
server.run()
"""


async def test_mcp_server(call: Call, tmp_path: Path) -> None:
    """Tools of an MCP server in a process of its own are called, with a map and without the optional argument."""
    (tmp_path / "server.py").write_text(SERVER)
    parameters = StdioServerParams(command=sys.executable, args=[str(tmp_path / "server.py")], read_timeout_seconds=60)
    client = scripted([call("total", amounts={"tea": 3, "bread": 2}), "Five."])
    async with McpWorkbench(parameters) as workbench:
        agent = AssistantAgent("clerk", client, workbench=workbench, reflect_on_tool_use=True)
        messages = (await agent.run(task="add")).messages
    assert messages[-1].content == "Five."
    (results,) = [message.content for message in messages if isinstance(message, ToolCallExecutionEvent)]
    assert "5 EUR" in results[0].content


NESTED_SERVER = """
from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel
server = FastMCP("trees")
class Node(BaseModel):
    value: int
    children: list["Node"] = []
@server.tool()
def tree(root: Node) -> str:
    "Add up a tree."
    return str(root.value + sum(child.value for child in root.children))
@server.tool()
def double(number: int) -> str:
    "Double."
    return str(2 * number)
server.run()
"""


class WholeWorkbench(McpWorkbench):
    """As in the documentation: AutoGen's workbench with the schemas of the server as they are."""

    async def list_tools(self) -> Any:
        """Return the tools."""
        tools: Any = await super().list_tools()
        listed = await (await self._actor.call("list_tools", None))
        for tool, whole in zip(tools, listed.tools, strict=True):
            tool["parameters"] = whole.inputSchema
        return tools


@pytest.mark.parametrize("kind", [McpWorkbench, WholeWorkbench])
async def test_mcp_tools_without_their_definitions(call: Call, tmp_path: Path, kind: Any) -> None:
    """A tool whose definitions AutoGen's workbench lost is left out with a warning, and the others work; with the whole
    schemas it works, too."""
    (tmp_path / "server.py").write_text(NESTED_SERVER)
    parameters = StdioServerParams(command=sys.executable, args=[str(tmp_path / "server.py")], read_timeout_seconds=60)
    is_whole = kind is WholeWorkbench
    wanted = call("tree", root={"value": 1, "children": [{"value": 2, "children": []}]}) if is_whole else None
    client = scripted([wanted or call("double", number=2), "Done."])
    async with kind(parameters) as workbench:
        agent = AssistantAgent("clerk", client, workbench=workbench, reflect_on_tool_use=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            messages = (await agent.run(task="go")).messages
    told = [str(one.message) for one in caught if "left out" in str(one.message)]
    assert bool(told) != is_whole and all("'tree'" in one and "McpWorkbench" in one for one in told)
    (results,) = [message.content for message in messages if isinstance(message, ToolCallExecutionEvent)]
    assert ("3" if is_whole else "4") in results[0].content and not results[0].is_error


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "string", "pattern": "^(.)?\\1$"},
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"$ref": "#/$defs/Node"},
        {"type": "no such type"},
    ],
)
async def test_a_workbenchs_tool_without_a_grammar(call: Call, bad: dict[str, Any]) -> None:
    """It is left out with a warning that names it, and the others are called; a tool object with such a schema is the
    user's own, and an error."""

    def listed(name: str, schema: dict[str, Any]) -> Any:
        parameters = {"type": "object", "properties": {"number": schema}, "required": ["number"]}
        return {"name": name, "description": "", "parameters": parameters}

    class Own(FunctionTool):
        """A tool that says itself what its schema is."""

        @property
        def schema(self) -> Any:
            """Return the bad schema."""
            return listed("bad", bad)

    client = scripted([call("double", number=2)] * 2)
    asked = [UserMessage(content="go", source="user")]
    with pytest.warns(UserWarning, match="the tool 'bad' is left out: .*/properties/number"):
        result = await client.create(asked, tools=[listed("bad", bad), listed("double", {"type": "integer"})])
    assert [one.name for one in result.content if not isinstance(one, str)] == ["double"]
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match="bad"):
        await client.create(asked, tools=[listed("bad", bad)], tool_choice=FunctionTool(add, "", name="bad"))
    with pytest.raises(ToolGrammarError, match="bad"):
        await client.create(asked, tools=[Own(add, "", name="bad")])


@pytest.mark.filterwarnings("ignore::UserWarning")  # AutoGen warns of loading tools from data
async def test_agent_is_a_component() -> None:
    """An agent around a client of a named model is data, and comes back from it."""
    client = ToolGrammarChatCompletionClient("embedded", max_tokens=3, temperature=1.0, seed=2)
    agent = AssistantAgent("adder", client, tools=[FunctionTool(add, description="Add.", global_imports=[])])
    config: Any = json.loads(agent.dump_component().model_dump_json())
    assert config["config"]["model_client"]["config"]["create_args"] == {"max_tokens": 3, "temperature": 1.0, "seed": 2}
    again: Any = AssistantAgent.load_component(config)
    assert isinstance(again, Component) and isinstance(again, AssistantAgent)
    assert (await again.run(task="add")).messages[-1].content


# -- teams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_selector(stream: bool) -> None:
    """The selector's answer is the name of a participant, even of a model that would rather talk; never the last one's."""

    def script(messages: Sequence[Message]) -> str:
        if "role play game" in messages[0].text:
            return "Well, I would say that writer_two should go on"
        return f"line {len(messages)}"

    client = scripted(script, max_tokens=200)
    writers = [AssistantAgent(name, client, description="Writes.") for name in ("writer_one", "writer_two", "x")]
    team = SelectorGroupChat(
        writers, client, termination_condition=MaxMessageTermination(4), model_client_streaming=stream,
        emit_team_events=True, max_selector_attempts=1,
    )  # fmt: skip
    result = await team.run(task="write")
    chosen = [message.content for message in result.messages if type(message).__name__ == "SelectorEvent"]
    spoke = [message.source for message in result.messages if type(message).__name__ == "TextMessage"]
    assert chosen == (spoke[1:] if stream else [])
    assert len(spoke) == 4
    assert all(one != other for one, other in pairwise(spoke))


async def test_what_is_a_selection() -> None:
    """AutoGen's own prompt is known; another that lists names only when the client is told so; never when told not."""
    own = "Then select the next role from ['a_1', 'b'] to play. Only return the role."
    assert selection([Message("user", own)], None) == ("a_1", "b")
    assert selection([Message("user", own)], False) == ()
    other = "Who of ['b'] and ['c', 'd'] is next?"
    assert selection([Message("user", other)], None) == ()
    assert selection([Message("user", other)], True) == ("c", "d")
    assert selection([Message("user", "Who is next?")], True) == ()


@pytest.mark.parametrize("seed", range(3))
async def test_selector_of_noise(noise: Model, seed: int) -> None:
    """Noise with a prompt of ours: one of the names, always."""
    client = ToolGrammarChatCompletionClient(model=noise, temperature=1.0, seed=seed, select_speaker=True)
    result = await client.create([UserMessage(content="Next of ['ann', 'anna', 'bob']?", source="u")])
    assert result.content in ("ann", "anna", "bob")


async def test_swarm(call: Call) -> None:
    """A handoff is a call, it comes alone, and the next agent goes on."""
    hand = Message("assistant", tool_calls=(ToolCall("", "transfer_to_bob", {}), ToolCall("", "add", {"numbers": [1]})))
    ann = AssistantAgent("ann", scripted([hand]), handoffs=["bob"], tools=[add])
    bob = AssistantAgent("bob", scripted(lambda messages: "I am Bob."))
    result = await Swarm([ann, bob], termination_condition=MaxMessageTermination(5)).run(task="go")
    assert any(isinstance(message, HandoffMessage) and message.target == "bob" for message in result.messages)
    assert "I am Bob." in [message.content for message in result.messages if message.source == "bob"]


async def test_magentic_one() -> None:
    """The ledger matches its class, and its next speaker is one of the team, whoever the model had in mind."""

    def script(messages: Sequence[Message]) -> str:
        if '"next_speaker"' not in messages[-1].text:
            return "Facts."
        answers = {"is_request_satisfied": False, "is_in_loop": False, "is_progress_being_made": True}
        answers |= {"next_speaker": "reader_2", "instruction_or_question": "Look."}
        return json.dumps({name: {"reason": "r", "answer": answer} for name, answer in answers.items()})

    client = scripted(script)
    team = MagenticOneGroupChat([AssistantAgent(name, client) for name in ("reader", "typist")], client, max_turns=2)
    messages = (await team.run(task="find out")).messages
    assert {message.source for message in messages} == {"user", "MagenticOneOrchestrator", "reader"}


async def test_only_ledgers_have_speakers() -> None:
    """Without the question in the prompt, or the field in the schema, a schema stays as it is."""
    ledger: dict[str, Any] = {"properties": {"next_speaker": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}}
    asked = [Message("user", '"next_speaker": {\n "reason": string,\n "answer": string (select from: a, b)')]
    assert with_speakers(ledger, [Message("user", "Who?")]) is ledger
    assert with_speakers({"type": "object"}, asked) == {"type": "object"}
    speaker = with_speakers(ledger, asked)["properties"]["next_speaker"]
    assert speaker["properties"]["answer"] == {"enum": ["a", "b"]}


# -- many at once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelled_within_a_step(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the token is cancelled the model runs no further step than the one that it is in."""
    model = ScriptedModel(["word " * 200])
    token = CancellationToken()
    passes: list[int] = []
    start = model.backend.start

    def counted() -> Any:
        session = start()
        extend = session.extend

        def look(ids: Sequence[int]) -> Any:
            passes.append(len(ids))
            if len(passes) == 20:
                token.cancel()
            return extend(ids)

        monkeypatch.setattr(session, "extend", look)
        return session

    monkeypatch.setattr(model.backend, "start", counted)
    client = ToolGrammarChatCompletionClient(model=model)

    async def ask() -> None:
        hello = [UserMessage(content="hello", source="u")]
        if not stream:
            await client.create(hello, cancellation_token=token)
        async for _ in client.create_stream(hello, cancellation_token=token):
            pass

    with pytest.raises(asyncio.CancelledError):
        await ask()
    await asyncio.sleep(0.1)
    assert 20 <= len(passes) <= 21


async def test_fifty_conversations(call: Call) -> None:
    """Fifty conversations at once, ten of them cancelled: each of the others gets its own answer, and nothing is left."""

    def script(messages: Sequence[Message]) -> Message:
        return call("add", numbers=[int(messages[-1].text)] * 5)

    model = ScriptedModel(script)
    client = ToolGrammarChatCompletionClient(model=model)
    tools = [FunctionTool(add, description="Add.")]
    tokens = [CancellationToken() for _ in range(50)]

    async def ask(number: int) -> CreateResult:
        question = [UserMessage(content=str(number), source="u")]
        if number % 2:
            return await client.create(question, tools=tools, cancellation_token=tokens[number])
        stream = client.create_stream(question, tools=tools, cancellation_token=tokens[number])
        *_, last = [piece async for piece in stream]
        assert isinstance(last, CreateResult)
        return last

    before = len(asyncio.all_tasks())
    tasks = [asyncio.create_task(ask(number)) for number in range(50)]
    await asyncio.sleep(0.05)
    for number in range(0, 50, 5):
        tokens[number].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if isinstance(result, CreateResult):
            (made,) = result.content
            assert json.loads(made.arguments) == {"numbers": [number] * 5}  # type: ignore[union-attr]
        else:
            assert number % 5 == 0 and isinstance(result, asyncio.CancelledError)
    assert len(asyncio.all_tasks()) == before
    done = [result for result in results if isinstance(result, CreateResult)]
    assert client.total_usage().completion_tokens == sum(result.usage.completion_tokens for result in done)


@pytest.mark.parametrize("name", share(format_names(), 1, 3))
async def test_stream_equals_result_in_every_format(name: str, vocabulary_of: Callable[[str], Vocabulary]) -> None:
    """In every wire format: a call, text, and text under a class; whole, and cut by the budget."""
    hello = [UserMessage(content="hello", source="u")]
    tools = [FunctionTool(add, description="Add.")]
    vocabulary = vocabulary_of(name)
    for choice, budget, wish in (
        ("required", 600, '{"numbers": [1, 23]}'),
        ("required", 250, '{"numbers": [1, 23' + ", 4" * 300),
        ("none", 300, "It is six."),
    ):
        whole, streamed = [
            ToolGrammarChatCompletionClient(
                model=ScriptedModel([wish], vocabulary=vocabulary), tool_format=name, max_tokens=budget,
                parallel_tool_calls=False,
            )
            for _ in range(2)
        ]  # fmt: skip
        result = await whole.create(hello, tools=tools, tool_choice=choice)  # type: ignore[arg-type]
        stream = streamed.create_stream(hello, tools=tools, tool_choice=choice)  # type: ignore[arg-type]
        *pieces, last = [piece async for piece in stream]
        assert isinstance(last, CreateResult)
        assert (last.finish_reason, last.usage, last.thought) == (result.finish_reason, result.usage, result.thought)
        if isinstance(result.content, str):
            assert "".join(map(str, pieces)) == result.content == last.content == wish
        else:
            assert [each.name for each in result.content] == ["add"]
            assert last.content[0].arguments == result.content[0].arguments  # type: ignore[union-attr]
