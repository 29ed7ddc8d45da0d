"""The model for pydantic-ai: requests in, responses and streams out, agents around it."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")

from pydantic_ai import Agent, BinaryContent, BinaryImage, ImageUrl, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import (
    AgentRunError,
    IncompleteToolCall,
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelRateLimitError,
    OutputTokenLimitExceeded,
    UserError,
)
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolCallPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.settings import ToolOrOutput
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import UsageLimits

from toolgrammar.adapters.pydantic_ai import ToolGrammarModel
from toolgrammar.adapters.pydantic_ai.messages import sampling, to_messages, to_tool
from toolgrammar.core import (
    BudgetError,
    ContextOverflowError,
    ImagePart,
    Message,
    Model,
    ModelError,
    RateLimitError,
    ToolCall,
    ToolGrammarError,
    UnsupportedSchemaError,
)
from toolgrammar.core import TextPart as OurText
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..shared_parts import FAR_PNG, PNG, PNG_ADDRESS, Even, Recording, Tree, are_one_image

Call = Callable[..., Message]

pytestmark = pytest.mark.asyncio


RAN: list[dict[str, Any]] = []


def turn(angle: int = 90, note: str = "") -> str:
    """Turn."""
    RAN.append({"angle": angle, "note": note})
    return "turned"


def grow(tree: Tree, sizes: dict[str, int]) -> str:
    """Grow."""
    RAN.append({"tree": tree, "sizes": sizes})
    return "grown"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """No calls from other tests."""
    RAN.clear()


def scripted(*replies: str | Message, **settings: Any) -> ToolGrammarModel:
    """A model that says these replies."""
    given: Any = {"max_tokens": 2000, **settings}
    return ToolGrammarModel(ScriptedModel(replies), settings=given)


def definition(function: Callable[..., Any]) -> ToolDefinition:
    """A function as the definition that an agent passes on."""
    agent = Agent(scripted("x"), tools=[function])
    return agent._function_toolset.tools[function.__name__].tool_def


def asked(text: str) -> list[Any]:
    """A conversation of one question."""
    return [ModelRequest.user_text_prompt(text)]


# -- requests ------------------------------------------------------------------------------------------------------


async def test_messages() -> None:
    """Texts, images, thinking, calls and their results become ours; a failed result is marked."""
    messages = to_messages(
        [
            ModelRequest([SystemPromptPart("Be brief."), UserPromptPart(["see", BinaryContent(b"\x89PNG", media_type="image/png")])]),
            ModelResponse([ThinkingPart("hm"), ToolCallPart("turn", '{"angle": 1}', "c1")]),
            ModelRequest([ToolReturnPart("turn", "no", "c1", outcome="failed")]),
            ModelResponse([TextPart("done")]),
            ModelResponse([]),
        ]
    )  # fmt: skip
    assert messages == [
        Message("system", "Be brief."),
        Message("user", (OurText("see"), ImagePart(data=b"\x89PNG", media_type="image/png"))),
        Message("assistant", reasoning="hm", tool_calls=(ToolCall("c1", "turn", {"angle": 1}, raw='{"angle": 1}'),)),
        Message("tool", "no", tool_call_id="c1", name="turn", is_error=True),
        Message("assistant", "done"),
    ]
    with pytest.raises(ModelError, match="audio/wav"):
        to_messages([ModelRequest([UserPromptPart([BinaryContent(b"x", media_type="audio/wav")])])])


async def test_every_form_of_an_image_is_one_part() -> None:
    """Contents and addresses, in a prompt and in the result of a tool."""
    given = [
        BinaryContent(PNG, media_type="image/png"),
        BinaryImage(PNG, media_type="image/png"),
        ImageUrl(PNG_ADDRESS),
    ]
    for part in (UserPromptPart([*given, ImageUrl(FAR_PNG)]), ToolReturnPart("see", [*given, ImageUrl(FAR_PNG)], "c1")):
        assert are_one_image(to_messages([ModelRequest([part])]), 3, 1)


async def test_schemas_are_whole() -> None:
    """Recursion and maps of a tool survive, and objects are closed."""
    tools = ToolSet.from_any([to_tool(definition(grow))])
    good = {"tree": {"value": 1, "children": [{"value": 2, "children": []}]}, "sizes": {"a": 1}}
    tools.validate({"name": "grow", "arguments": good})
    for bad in ({**good, "sizes": {"a": "1"}}, {**good, "more": 1}, {**good, "tree": {"value": 1, "children": [3]}}):
        with pytest.raises(ValueError, match="grow"):
            tools.validate({"name": "grow", "arguments": bad})


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("auto", None),
        ("none", None),
        ("required", "turn"),
        (["grow"], "grow"),
        (ToolOrOutput(["grow"]), None),
    ],
)
async def test_tool_choice(choice: Any, called: str | None) -> None:
    """A demanded call comes, of the tool or of one of the tools that are allowed."""
    parameters = ModelRequestParameters(function_tools=[definition(turn), definition(grow)])
    settings: Any = {"tool_choice": choice, "max_tokens": 300, "parallel_tool_calls": False}
    response = await model_request(
        scripted('No. {"name": "turn", "arguments": {"angle": 5}}'),
        asked("hello"),
        model_settings=settings,
        model_request_parameters=parameters,
    )
    assert [part.tool_name for part in response.tool_calls] == ([] if called is None else [called])


async def test_instructions_come_first(call: Call) -> None:
    """Instructions stand after the system prompt and before the conversation, once, in every turn."""
    model = ScriptedModel([call("turn", angle=1), "Done."])
    agent = Agent(ToolGrammarModel(model), tools=[turn], system_prompt="You turn.", instructions="Be brief.")
    assert (await agent.run("turn it")).output == "Done."
    assert [(each.role, each.text) for each in model.requests[-1]] == [
        ("system", "You turn."), ("system", "Be brief."), ("user", "turn it"), ("assistant", ""), ("tool", "turned"),
    ]  # fmt: skip


#: A value for each setting, and the parameter that it becomes.
SETTINGS: dict[str, tuple[Any, str, Any]] = {
    "temperature": (0.5, "temperature", 0.5),
    "max_tokens": (7, "max_tokens", 7),
    "top_p": (0.9, "top_p", 0.9),
    "top_k": (5, "top_k", 5),
    "seed": (3, "seed", 3),
    "timeout": (99, "timeout", 99),
    "logit_bias": ({"1": 2}, "logit_bias", {1: 2}),
    "stop_sequences": (["zz"], "stop", ("zz",)),
    "parallel_tool_calls": (False, "parallel_tool_calls", False),
    "toolgrammar_min_p": (0.1, "min_p", 0.1),
    "toolgrammar_jump_forward": (False, "jump_forward", False),
    "toolgrammar_on_budget": ("error", "on_budget", "error"),
}


@pytest.mark.parametrize("name", sorted(SETTINGS))
async def test_settings_reach_the_model(name: str) -> None:
    """Each setting, of the model or of a request, is in the parameters."""
    value, ours, expected = SETTINGS[name]
    given: Any = {name: value}
    model = Recording()
    await model_request(ToolGrammarModel(model, settings=given), asked("x"))
    await model_request(ToolGrammarModel(model), asked("x"), model_settings=given)
    assert [getattr(params, ours) for params in model.asked] == [expected] * 2


async def test_settings_that_cannot_be_obeyed() -> None:
    """A setting that asks for something that we do not have is an error; one for another provider is not ours."""
    for name, value in {"temprature": 1, "presence_penalty": 0.5, "extra_body": {"a": 1}, "service_tier": "flex", "max_retries": 2, "toolgrammar_tempo": 1}.items():  # fmt: skip
        given: Any = {name: value}
        with pytest.raises(ModelError, match=name):
            ToolGrammarModel(Recording(), settings=given)
        with pytest.raises(UserError, match=name):
            await model_request(ToolGrammarModel(Recording()), asked("x"), model_settings=given)
    fine: Any = {"presence_penalty": 0.0, "service_tier": "auto", "openai_user": "ann", "request_timeout": 60.0}
    await model_request(ToolGrammarModel(Recording()), asked("x"), model_settings=fine)
    with pytest.raises(ModelError, match="seed"):
        ToolGrammarModel(Recording(), settings={"seed": -1})


# -- responses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [lambda kind: kind, NativeOutput, ToolOutput, PromptedOutput])
@pytest.mark.parametrize("stream", [False, True])
async def test_output_modes(call: Call, mode: Any, stream: bool) -> None:
    """Each output mode is enforced, after a call of a tool; the default is native."""
    said = '{"value": 1, "children": [{"value": 2, "children": []}]}'
    last = call("final_result", **json.loads(said)) if mode is ToolOutput else said
    model = ScriptedModel([call("turn", angle=5), last])
    agent: Any = Agent(ToolGrammarModel(model), tools=[turn], output_type=mode(Tree))
    if stream:
        async with agent.run_stream("grow") as result:
            pieces = [each async for each in result.stream_output(debounce_by=None)]
            output = await result.get_output()
        assert pieces[-1] == output
    else:
        output = (await agent.run("grow")).output
    assert output == Tree(value=1, children=[Tree(value=2)])
    assert RAN == [{"angle": 5, "note": ""}]


@pytest.mark.parametrize("mode", [NativeOutput, ToolOutput, PromptedOutput])
@pytest.mark.parametrize("seed", range(3))
async def test_noise_is_valid(noise: Model, mode: Any, seed: int) -> None:
    """Noise at temperature 1: an answer is an instance of the class, or the budget was too small for it."""
    settings: Any = {"temperature": 1.0, "seed": seed, "max_tokens": 60}
    agent: Any = Agent(ToolGrammarModel(noise, settings=settings), output_type=mode(Even), retries=0)
    try:
        assert isinstance((await agent.run("grow")).output, Even)
    except AgentRunError as error:
        text = f"{error} {error.__cause__}"
        assert "even" in text or "budget" in text or "token limit" in text or "output retries" in text


async def test_validation_is_retried() -> None:
    """pydantic-ai runs the validators, and the model is asked again with their message."""
    model = ScriptedModel(['{"value": 3}', '{"value": 4}'])
    agent = Agent(ToolGrammarModel(model), output_type=Even)
    assert (await agent.run("even")).output == Even(value=4)
    assert any("must be even" in message.text for message in model.requests[-1])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_stream_equals_response(noise: Model, seed: int, choice: str) -> None:
    """Joined, a stream is the response: parts, finish reason, usage; ids apart."""
    settings: Any = {"temperature": 1.0, "seed": seed, "max_tokens": 50, "tool_choice": choice}
    parameters = ModelRequestParameters(function_tools=[definition(turn)])
    model = ToolGrammarModel(noise)

    def told(response: ModelResponse) -> Any:
        shown = [(part.part_kind, getattr(part, "content", None) or (part.tool_name, part.args)) for part in response.parts]  # fmt: skip
        return shown, response.finish_reason, response.usage.input_tokens, response.usage.output_tokens

    whole = await model_request(model, asked("x"), model_settings=settings, model_request_parameters=parameters)
    async with model_request_stream(
        model, asked("x"), model_settings=settings, model_request_parameters=parameters
    ) as stream:
        async for _ in stream:
            pass
    assert told(stream.get()) == told(whole)
    assert stream.get().provider_details == whole.provider_details == {"guarantee": "constrained"}


async def test_arguments_come_in_pieces(call: Call) -> None:
    """The name of a call comes first, then its arguments in several pieces."""
    parameters = ModelRequestParameters(function_tools=[definition(turn)])
    model = scripted(call("turn", angle=5, note="a long way round"))
    async with model_request_stream(model, asked("x"), model_request_parameters=parameters) as stream:
        events = [event async for event in stream]
    (start,) = [event for event in events if isinstance(event, PartStartEvent)]
    assert isinstance(start.part, ToolCallPart) and start.part.tool_name == "turn"
    deltas = [event.delta.args_delta for event in events if isinstance(event, PartDeltaEvent) and isinstance(event.delta, ToolCallPartDelta)]  # fmt: skip
    assert len(deltas) > 3
    (made,) = stream.get().tool_calls
    assert made.args_as_dict() == {"angle": 5, "note": "a long way round"}


async def test_thinking(thinking: Model) -> None:
    """Thinking is a part of its own, whole and streamed; the setting reaches a model that can think."""
    model = ToolGrammarModel(thinking)
    response = await model_request(model, asked("x"))
    assert [(part.part_kind, part.content) for part in response.parts] == [("thinking", "2 and 2"), ("text", "Four.")]
    async with model_request_stream(model, asked("x")) as stream:
        async for _ in stream:
            pass
    assert [part.part_kind for part in stream.get().parts] == ["thinking", "text"]
    recording = Recording()
    for level in (True, "high", False):
        settings: Any = {"thinking": level, "max_tokens": 60}
        await model_request(ToolGrammarModel(recording), asked("x"), model_settings=settings)
    assert [params.thinking for params in recording.asked] == [True, True, False]


@pytest.mark.parametrize("stream", [False, True])
async def test_cut_call_does_not_run(call: Call, stream: bool) -> None:
    """A cut call is an error of the framework, and the tool does not run."""
    model = scripted(*[call("turn", angle=1, note="x" * 500)] * 4, max_tokens=120)
    agent = Agent(model, tools=[turn], retries=0)

    async def run() -> None:
        if not stream:
            await agent.run("turn it")
            return
        async with agent.run_stream("turn it") as result:
            await result.get_output()

    with pytest.raises(IncompleteToolCall):
        await run()
    assert RAN == []


async def test_cut_answer_is_an_error() -> None:
    """Half a structured answer is an error, whole and streamed."""
    said = '{"value": 1, "children": [{"value": 2, "children": []}]}'
    agent = Agent(scripted(said, said, max_tokens=40), output_type=NativeOutput(Tree))
    with pytest.raises(BudgetError, match="children") as caught:
        await agent.run("x")
    assert isinstance(caught.value, OutputTokenLimitExceeded)
    with pytest.raises(BudgetError, match="children"):
        async with agent.run_stream("x") as result:
            await result.get_output()


# -- errors --------------------------------------------------------------------------------------------------------


async def test_errors_are_the_frameworks() -> None:
    """What cannot be done is the framework's error and ours, with place and hint; it can be pickled."""
    with pytest.raises(ContextOverflowError) as overflow:
        await model_request(ToolGrammarModel(ScriptedModel(["x"], context_window=20)), asked("word " * 50))
    assert isinstance(overflow.value, ModelContextWindowExceededError)
    assert overflow.value.model_name == "scripted"
    again = pickle.loads(pickle.dumps(overflow.value))
    assert isinstance(again, ModelContextWindowExceededError) and again.model_name == "scripted"
    bad = ToolDefinition(name="f", parameters_json_schema={"type": "object", "properties": {"a": {"$ref": "#/x"}}})
    with pytest.raises(ToolGrammarError, match="'f'"):
        await model_request(
            scripted("x"), asked("x"), model_request_parameters=ModelRequestParameters(function_tools=[bad])
        )
    assert issubclass(UnsupportedSchemaError, ToolGrammarError)


class Server(httpx.AsyncBaseTransport):
    """A server that is busy."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Say so."""
        return httpx.Response(429, json={"error": "busy"}, headers={"retry-after": "0"})


async def test_servers_and_fallback() -> None:
    """A busy server is a rate limit with all that the framework reads of one; another model answers instead."""
    busy = ToolGrammarModel(
        "openai:m", base_url="http://model.test/v1", api_key="k", max_retries=0, options={"transport": Server()}
    )
    with pytest.raises(RateLimitError) as caught:
        await Agent(busy).run("x")
    assert isinstance(caught.value, ModelRateLimitError) and isinstance(caught.value, ModelAPIError)
    assert (caught.value.model_name, caught.value.body, caught.value.in_stream) == ("openai:m", None, False)
    assert (await Agent(FallbackModel(busy, scripted("Here."))).run("x")).output == "Here."
    async with Agent(FallbackModel(busy, scripted("Here."))).run_stream("x") as result:
        assert await result.get_output() == "Here."


# -- the model -----------------------------------------------------------------------------------------------------


async def test_counting(noise: Model) -> None:
    """Tokens are counted by the model's tokenizer, before a request too."""
    model = ToolGrammarModel(noise, settings={"max_tokens": 3})
    response = await model_request(model, asked("hello"))
    counted = await model.count_tokens(asked("hello"), None, ModelRequestParameters())
    assert response.usage.input_tokens == counted.input_tokens
    limits = UsageLimits(input_tokens_limit=5, count_tokens_before_request=True)
    with pytest.raises(AgentRunError, match="input_tokens_limit"):
        await Agent(model).run("hello", usage_limits=limits)


async def test_profile(noise: Model) -> None:
    """The profile names what the model can do; the user's changes win."""
    model = ToolGrammarModel(noise)
    assert (model.profile["default_structured_output_mode"], model.system) == ("native", "toolgrammar")
    assert model.context_window == noise.context_window
    assert ToolGrammarModel(noise, profile={"default_structured_output_mode": "tool"}).profile["default_structured_output_mode"] == "tool"  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelling(noise: Model, stream: bool) -> None:
    """Cancelling the task, or the stream, stops the model; it is free again at once."""
    model = ToolGrammarModel(noise, settings={"temperature": 1.0, "seed": 1, "max_tokens": 2000})
    if stream:
        async with model_request_stream(model, asked("x")) as response:
            async for _ in response:
                await response.cancel()
        assert response.get().state == "interrupted"
        assert response.get().usage.output_tokens < 500
    else:
        task = asyncio.ensure_future(model_request(model, asked("x")))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, timeout=5)
    assert (await model_request(model, asked("x"), model_settings={"max_tokens": 2})).text


async def test_fifty_conversations(call: Call) -> None:
    """Fifty agents' turns at once, ten cancelled: each of the others gets its own answer, and no task is left."""

    def script(messages: Sequence[Message]) -> Message | str:
        if messages[-1].role == "tool":
            return f"{messages[-2].tool_calls[0].arguments['angle']} done"
        return call("turn", angle=int(messages[-1].text))

    agent = Agent(ToolGrammarModel(ScriptedModel(script)), tools=[turn])
    before = len(asyncio.all_tasks())
    tasks = [asyncio.create_task(agent.run(str(number))) for number in range(50)]
    await asyncio.sleep(0.05)
    for number in range(0, 50, 5):
        tasks[number].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if isinstance(result, BaseException):
            assert number % 5 == 0 and isinstance(result, asyncio.CancelledError), result
        else:
            assert result.output == f"{number} done"
    assert len(asyncio.all_tasks()) == before


@pytest.mark.parametrize("name", ["presence_penalty", "frequency_penalty"])
async def test_the_hint_for_a_refused_penalty_names_no_other(name: str) -> None:
    """Neither of the two penalties is supported, so neither is what to write instead."""
    with pytest.raises(ToolGrammarError) as error:
        sampling({name: 0.5}, None)
    assert "_penalty" not in (error.value.hint or "").replace("repetition_penalty", "")
