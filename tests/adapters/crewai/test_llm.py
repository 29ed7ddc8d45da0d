"""The CrewAI LLM: what it passes on, what it returns, the events on the way, and crews around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import (
    LLMCallCompletedEvent,
    LLMCallFailedEvent,
    LLMCallStartedEvent,
    LLMStreamChunkEvent,
    LLMThinkingChunkEvent,
)
from crewai.llms.base_llm import BaseLLM, call_stop_override
from crewai.tools import BaseTool, tool
from crewai.tools.agent_tools.add_image_tool import AddImageTool
from crewai.utilities.agent_utils import convert_tools_to_openai_schema, is_context_length_exceeded
from crewai.utilities.exceptions.context_window_exceeding_exception import LLMContextLengthExceededError
from pydantic import BaseModel

from toolgrammar.adapters import _shared
from toolgrammar.adapters.crewai import ToolGrammarLLM
from toolgrammar.adapters.crewai.llm import original_tools
from toolgrammar.core import (
    BudgetError,
    ContextOverflowError,
    InvalidArgumentsError,
    Message,
    Model,
    ModelError,
    Vocabulary,
)
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools.formats import format_names

from ...shares import share
from ..shared_parts import PNG, PNG_ADDRESS, Tree, are_one_image
from .tools import RAN, turn, word_count

# CrewAI's agents read fields that CrewAI itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai")

Call = Callable[..., Message]


class Grow(BaseTool):
    """A tool whose schema CrewAI cannot pass on whole."""

    name: str = "Grow a Tree"
    description: str = "Grow."
    args_schema: type[BaseModel] = Tree

    def _run(self, value: int, children: Any = ()) -> str:
        return f"grown to {value}"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """No calls from other tests."""
    RAN.clear()


def scripted(*replies: str | Message, **fields: Any) -> ToolGrammarLLM:
    """An LLM that says these replies."""
    return ToolGrammarLLM(model=ScriptedModel(replies), **fields)


def offered(*tools: Any) -> list[dict[str, Any]]:
    """The tools as CrewAI's executor hands them over."""
    return convert_tools_to_openai_schema(list(tools))[0]


class Seen:
    """The events of one block of code, in order."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def seen() -> Iterator[Seen]:
    """What goes over CrewAI's bus."""
    record = Seen()
    with crewai_event_bus.scoped_handlers():
        for kind in (
            LLMCallStartedEvent,
            LLMCallCompletedEvent,
            LLMCallFailedEvent,
            LLMStreamChunkEvent,
            LLMThinkingChunkEvent,
        ):

            @crewai_event_bus.on(kind)
            def _(source: Any, event: Any) -> None:
                record.events.append(event)

        yield record


# -- the object ----------------------------------------------------------------------------------------------------


def test_is_ours(noise: Model) -> None:
    """The provider is ours, and no other is taken: CrewAI would take an unknown one for a hosted service."""
    with pytest.raises(ModelError, match="provider"):
        ToolGrammarLLM(model=noise, provider="openai")
    llm = ToolGrammarLLM(model=noise, temperature=0.5)
    assert isinstance(llm, BaseLLM)
    assert (llm.provider, llm.model, llm.temperature) == ("toolgrammar", "embedded", 0.5)
    assert llm.supports_function_calling() is True
    assert llm.get_context_window_size() == int(noise.context_window * 0.85)
    assert llm.get_input_tokens_count("hello") == noise.count_tokens("hello")
    assert llm.get_input_tokens_count("hello", offered(turn)) > noise.count_tokens("hello") + 20


def test_unknown_fields_are_refused(noise: Model) -> None:
    """CrewAI takes any field and drops it unseen; a misspelt one, or a penalty that no model here has, is an error."""
    for wrong in ({"temprature": 0}, {"frequency_penalty": 0.5}):
        with pytest.raises(ModelError, match=next(iter(wrong))):
            ToolGrammarLLM(model=noise, **wrong)


def test_text_is_returned() -> None:
    """A conversation in CrewAI's form is answered with text; the messages are left as they were."""
    model = ScriptedModel(["Hello."])
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi.", "cache_breakpoint": True},
    ]
    before = json.dumps(messages)
    assert ToolGrammarLLM(model=model).call(messages) == "Hello."
    assert json.dumps(messages) == before
    assert model.requests == [(Message("system", "Be brief."), Message("user", "Hi."))]


def test_calls_are_returned(call: Call) -> None:
    """With tools the answer is a list of calls in OpenAI's form, for CrewAI to run."""
    llm = scripted(call("turn", angle=90, fast=True))
    (made,) = llm.call("turn around", tools=offered(turn))
    assert made["type"] == "function"
    assert made["id"]
    assert made["function"]["name"] == "turn"
    assert json.loads(made["function"]["arguments"]) == {"angle": 90, "fast": True}


def test_available_functions_are_run(call: Call) -> None:
    """Given the functions, the call is run and its result returned."""
    llm = scripted(call("turn", angle=90, fast=True))
    functions = {"turn": lambda angle, fast: f"{angle} {fast}"}
    assert llm.call("turn around", tools=offered(turn), available_functions=functions) == "90 True"


def test_cut_call_does_not_run(call: Call) -> None:
    """A call that the budget cut does not parse, so CrewAI reports it; run by us, it is an error."""
    said = call("word_count", words={"a": 1}, note="x" * 500)
    (made,) = scripted(said, max_tokens=120).call("count", tools=offered(word_count))
    with pytest.raises(json.JSONDecodeError):
        json.loads(made["function"]["arguments"])
    assert "cut short by the token budget at /note" in made["function"]["arguments"]
    functions = {"word_count": lambda **arguments: RAN.append(arguments)}
    with pytest.raises(InvalidArgumentsError):
        scripted(said, max_tokens=120).call("count", tools=offered(word_count), available_functions=functions)
    assert RAN == []


@pytest.mark.parametrize(
    ("choice", "history", "called"),
    [
        ("auto", False, False),
        ("required", False, True),
        ("required", True, True),
        ("required_first", False, True),
        ("required_first", True, False),
    ],
)
def test_tool_choice(choice: str, history: bool, called: bool) -> None:
    """CrewAI cannot demand a call, so the LLM can: always, or until the first result."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "turn"}]
    if history:
        function = {"name": "turn", "arguments": '{"angle": 1, "fast": true}'}
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]})
        messages.append({"role": "tool", "content": "turned", "tool_call_id": "1", "name": "turn"})
    wish = 'No. {"name": "turn", "arguments": {"angle": 5, "fast": true}}'
    answer = scripted(wish, tool_choice=choice, parallel_tool_calls=False).call(messages, tools=offered(turn))
    assert isinstance(answer, list) is called


def test_forced_last_answers_hold_no_call() -> None:
    """After an agent's last turn CrewAI asks for text without tools: none of a call is in it, natively or in words."""
    from crewai.agents.parser import AgentFinish, parse
    from crewai.utilities.i18n import I18N_DEFAULT

    forced = {"role": "user", "content": I18N_DEFAULT.errors("force_final_answer")}
    function = {"name": "turn", "arguments": '{"angle": 1, "fast": true}'}
    native: list[dict[str, Any]] = [
        {"role": "user", "content": "turn"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]},
        {"role": "tool", "content": "turned", "tool_call_id": "1", "name": "turn"},
        forced,
    ]
    wish = '<tool_call>\n{"name": "turn", "arguments": {"angle": 5, "fast": true}}\n</tool_call>'
    answer = scripted(f"Well. {wish}", max_tokens=60).call(native)
    assert isinstance(answer, str) and answer.strip() == "Well."
    with pytest.raises(BudgetError, match="nothing but the beginning of a call"):
        scripted(wish, max_tokens=60).call(native)
    words = "Action: the action to take, only one name of [turn], just the name\nAction Input: the input\n"
    messages = [{"role": "user", "content": words}, forced]
    answer = scripted('Action: turn\nAction Input: {"angle": 1}', max_tokens=60).call(messages)
    assert isinstance(answer, str) and isinstance(parse(answer), AgentFinish)
    short = scripted("Thought: hm", max_tokens=15).call(messages)
    assert short.isprintable() and "Final Answer:" in short


def test_response_model() -> None:
    """With a response model the answer is an instance of it; one that the budget cut is an error."""
    said = '{"value": 1, "children": [{"value": 2, "children": []}]}'
    assert scripted(said).call("grow", response_model=Tree) == Tree(value=1, children=[Tree(value=2)])
    with pytest.raises(BudgetError, match="children"):
        scripted(said, max_tokens=40).call("grow", response_model=Tree)


def test_stop_words_end_text_only(call: Call) -> None:
    """Stop words, those of one call too, end a text; inside arguments they are left alone."""
    assert scripted("one two", stop=["two"]).call("count") == "one "
    llm = scripted("one two", call("word_count", words={"one": 1}, note="two"))
    with call_stop_override(llm, ["two"]):
        assert llm.call("count") == "one "
        (made,) = llm.call("count", tools=offered(word_count))
    assert json.loads(made["function"]["arguments"])["note"] == "two"


def test_overflow_is_crewais() -> None:
    """A prompt that does not fit is an error that CrewAI knows, and ours."""
    llm = ToolGrammarLLM(model=ScriptedModel(["x"], context_window=50))
    with pytest.raises(LLMContextLengthExceededError) as caught:
        llm.call("word " * 100)
    assert isinstance(caught.value, ContextOverflowError)
    assert is_context_length_exceeded(caught.value)


def test_usage_is_counted() -> None:
    """Token counts add up over the calls of one LLM."""
    llm = scripted("one", "three")
    llm.call("a")
    llm.call("b")
    summary = llm.get_token_usage_summary()
    assert (summary.completion_tokens, summary.successful_requests) == (len("one") + len("three"), 2)
    assert summary.total_tokens == summary.prompt_tokens + summary.completion_tokens


# -- schemas -------------------------------------------------------------------------------------------------------


class Owner:
    """An agent or a task, as far as its tools are concerned."""

    def __init__(self, *tools: Any) -> None:
        self.tools = list(tools)


def test_original_schemas_are_found() -> None:
    """Recursion, maps and optional arguments come from the agent's tools, under the names that CrewAI gave them."""
    lossy = offered(Grow(), word_count)
    grow, count = original_tools(lossy, Owner(Grow(), word_count), None)
    assert [each["function"]["name"] for each in (grow, count)] == ["grow_a_tree", "word_count"]
    assert "$ref" in json.dumps(grow["function"]["parameters"])
    assert count["function"]["parameters"]["properties"]["words"]["additionalProperties"] == {"type": "integer"}
    assert count["function"]["parameters"]["required"] == ["words"]


def test_unreachable_tools_keep_their_schema() -> None:
    """A tool that is not found, or has other arguments where it is found, keeps the schema that was passed on."""
    given = offered(turn)
    assert original_tools(given, None, None)[0]["function"]["parameters"]["properties"].keys() == {"angle", "fast"}

    @tool("Turn")
    def other(page: str) -> str:
        """Turn a page."""
        return page

    assert original_tools(given, None, Owner(other)) == original_tools(given, None, None)


# -- events --------------------------------------------------------------------------------------------------------


def test_events(seen: Seen) -> None:
    """One call is one start and one end, with usage and finish reason."""
    scripted("Hello.").call("hi")
    crewai_event_bus.flush()
    (started,) = seen.of(LLMCallStartedEvent)
    (completed,) = seen.of(LLMCallCompletedEvent)
    assert started.call_id == completed.call_id
    assert completed.response == "Hello."
    assert completed.finish_reason == "stop"
    assert completed.usage["completion_tokens"] == len("Hello.")
    assert seen.of(LLMStreamChunkEvent) == []


def test_stream_events(seen: Seen, call: Call) -> None:
    """While streaming, the chunks add up to the answer, and those of a call carry what is written so far."""
    llm = scripted("Hello.", call("turn", angle=90, fast=True), stream=True)
    text = llm.call("hi")
    crewai_event_bus.flush()
    assert "".join(event.chunk for event in seen.of(LLMStreamChunkEvent)) == text == "Hello."
    seen.events.clear()
    (made,) = llm.call("turn", tools=offered(turn))
    crewai_event_bus.flush()
    chunks = seen.of(LLMStreamChunkEvent)
    assert "".join(event.chunk for event in chunks) == made["function"]["arguments"]
    assert chunks[-1].tool_call.function.arguments == made["function"]["arguments"]
    assert chunks[-1].tool_call.function.name == "turn"
    assert chunks[-1].tool_call.id == made["id"]


def test_thinking_events(seen: Seen, thinking: Model) -> None:
    """While streaming, thinking has its own events and is not part of the answer."""
    assert ToolGrammarLLM(model=thinking, stream=True).call("2 and 2?") == "Four."
    crewai_event_bus.flush()
    assert "".join(event.chunk for event in seen.of(LLMThinkingChunkEvent)) == "2 and 2"
    assert "".join(event.chunk for event in seen.of(LLMStreamChunkEvent)) == "Four."


def test_failure_is_reported(seen: Seen) -> None:
    """A failing call ends with a failure on the bus."""
    with pytest.raises(ContextOverflowError):
        ToolGrammarLLM(model=ScriptedModel(["x"], context_window=20)).call("word " * 100)
    crewai_event_bus.flush()
    assert len(seen.of(LLMCallFailedEvent)) == 1
    assert seen.of(LLMCallCompletedEvent) == []


# -- crews ---------------------------------------------------------------------------------------------------------


def crew_of(llm: ToolGrammarLLM, *tools: Any, **task: Any) -> Crew:
    """One agent, one task."""
    agent = Agent(role="Clerk", goal="Count", backstory="You count.", tools=list(tools), llm=llm, max_iter=3)
    return Crew(agents=[agent], tasks=[Task(description="Count.", expected_output="A number", agent=agent, **task)])


@pytest.mark.parametrize("stream", [False, True])
def test_crew_calls_tool(call: Call, stream: bool) -> None:
    """An agent's tool runs with the arguments of the call: a map, and a default that was left out."""
    model = ScriptedModel([call("word_count", words={"a": 3, "b": 2}), "There are five."])
    result = crew_of(ToolGrammarLLM(model=model, stream=stream), word_count).kickoff()
    assert result.raw == "There are five."
    assert RAN == [{"words": {"a": 3, "b": 2}, "note": "none"}]
    assert model.requests[1][-1].text == "5 words"
    assert model.requests[1][-1].role == "tool"


@pytest.mark.parametrize("form", ["output_pydantic", "output_json"])
def test_crew_gives_an_object(call: Call, form: str) -> None:
    """A task with an output class gets an instance, or a dict, after its agent has used a tool; no call is made for it."""
    said = '{"value": 5, "children": []}'
    model = ScriptedModel([call("turn", angle=5, fast=False), said])
    if form == "output_pydantic":
        assert crew_of(ToolGrammarLLM(model=model), turn, output_pydantic=Tree).kickoff().pydantic == Tree(value=5)
    else:
        result = crew_of(ToolGrammarLLM(model=model), turn, output_json=Tree).kickoff()
        assert result.json_dict == {"value": 5, "children": []}
    assert RAN == [{"angle": 5, "fast": False}]


def test_crew_tells_the_model_of_a_cut_call(call: Call) -> None:
    """A cut call does not run; the model reads why, and the crew goes on."""
    model = ScriptedModel([call("word_count", words={"a": 1}, note="x" * 900), "I give up."])
    result = crew_of(ToolGrammarLLM(model=model, max_tokens=150), word_count).kickoff()
    assert result.raw == "I give up."
    assert RAN == []
    assert "Failed to parse" in model.requests[1][-1].text


@pytest.mark.parametrize("seed", range(3))
def test_crew_of_noise(noise: Model, seed: int) -> None:
    """A crew of noise: the tool that must run first, and may run again, is given arguments that validate."""
    llm = ToolGrammarLLM(
        model=noise, temperature=1.0, seed=seed, max_tokens=60, tool_choice="required_first", parallel_tool_calls=False
    )
    assert crew_of(llm, turn).kickoff().raw
    assert RAN
    for arguments in RAN:
        assert type(arguments["angle"]) is int
        assert type(arguments["fast"]) is bool


@pytest.mark.parametrize("seed", range(5))
def test_any_call_validates(noise: Model, seed: int) -> None:
    """Noise at temperature 1: every call that parses validates against its tool."""
    llm = ToolGrammarLLM(model=noise, temperature=1.0, seed=seed, max_tokens=60, tool_choice="required")
    models = {"turn": turn.args_schema, "grow_a_tree": Tree}
    agent = Agent(role="Clerk", goal="Count", backstory="You count.", tools=[turn, Grow()], llm=llm)
    calls = llm.call("do it", tools=offered(turn, Grow()), from_agent=agent)
    assert calls
    for each in calls:
        text = each["function"]["arguments"]
        if "<cut short" not in text:
            models[each["function"]["name"]].model_validate_json(text, strict=True)


@pytest.mark.asyncio
async def test_fifty_conversations(call: Call) -> None:
    """Fifty conversations at once, ten of them cancelled: each of the others gets its own answer, and nothing is left."""

    def script(messages: Sequence[Message]) -> Message:
        return call("turn", angle=int(messages[-1].text), fast=True)

    llm = ToolGrammarLLM(model=ScriptedModel(script))
    before = len(asyncio.all_tasks())
    tasks = [asyncio.create_task(llm.acall(str(number), tools=offered(turn))) for number in range(50)]
    await asyncio.sleep(0.05)
    for number in range(0, 50, 5):
        tasks[number].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if isinstance(result, list):
            assert json.loads(result[0]["function"]["arguments"])["angle"] == number
        else:
            assert number % 5 == 0
            assert isinstance(result, asyncio.CancelledError)
    assert len(asyncio.all_tasks()) == before
    done = sum(isinstance(result, list) for result in results)
    assert llm.get_token_usage_summary().successful_requests == done


@pytest.mark.parametrize("name", share(format_names(), 2, 3))
def test_stream_equals_result_in_every_format(
    name: str, seen: Seen, vocabulary_of: Callable[[str], Vocabulary]
) -> None:
    """In every wire format, of a call that is whole, one that the budget cut, and text: the chunks are the result."""
    for choice, budget, wish in (
        ("required", 800, '{"angle": 5, "fast": true}'),
        ("required", 400, '{"angle": ' + "5" * 600),
        ("auto", 400, "It turned."),
    ):
        model = ScriptedModel([wish, wish], vocabulary=vocabulary_of(name))
        fields: dict[str, Any] = {"tool_format": name, "max_tokens": budget, "parallel_tool_calls": False}
        llm = ToolGrammarLLM(model=model, tool_choice=choice, **fields)
        whole = llm.call("turn", tools=offered(turn))
        llm.stream = True
        seen.events.clear()
        streamed = llm.call("turn", tools=offered(turn))
        crewai_event_bus.flush()
        chunks = "".join(event.chunk for event in seen.of(LLMStreamChunkEvent))
        if isinstance(whole, str):
            assert chunks == streamed == whole == wish
        else:
            (made,), (again,) = whole, streamed
            assert again["function"] == made["function"]
            assert made["function"]["arguments"].startswith(chunks)
            assert chunks == made["function"]["arguments"].partition(" <cut short")[0]


def test_a_saved_flow_gets_address_and_settings() -> None:
    """What differs from the defaults, as JSON; CrewAI restores it by LiteLLM, under our provider's prefix."""
    llm = ToolGrammarLLM("embedded", temperature=0.5, top_k=3, max_tokens=20)
    config = llm.to_config_dict()
    assert config == {"model": "toolgrammar/embedded", "temperature": 0.5, "top_k": 3, "max_tokens": 20}
    assert json.loads(json.dumps(config)) == config
    assert ToolGrammarLLM("openai:org/m@http://127.0.0.1:1/v1").to_config_dict() == {
        "model": "toolgrammar/openai:org/m@http://127.0.0.1:1/v1"
    }


def test_images_reach_a_model_that_reads_them() -> None:
    """The model decides; files become content blocks of the OpenAI form."""
    assert not ToolGrammarLLM("embedded").supports_multimodal()
    llm = ToolGrammarLLM("openai:m@http://127.0.0.1:1/v1")
    assert llm.supports_multimodal()
    added = AddImageTool()._run(PNG_ADDRESS, action="Look.")  # what an agent with `multimodal=True` adds
    assert are_one_image([_shared.message_of(made) for made in llm._format_messages([added])], 1)
    files = pytest.importorskip("crewai_files", reason="crewai-files is not installed")
    messages = [{"role": "user", "content": "look", "files": {"dot": files.ImageFile(source=PNG)}}]
    (made,) = llm._format_messages(messages)
    assert [block["type"] for block in made["content"]] == ["text", "image_url"]
    assert are_one_image([_shared.message_of(made)], 1)
