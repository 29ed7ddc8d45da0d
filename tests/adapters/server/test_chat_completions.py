"""Chat completions, through the real SDK of OpenAI: every call valid, every field met or refused by name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
from jsonschema import Draft202012Validator
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from toolgrammar.adapters.openai import async_client, async_http_client, client, http_client
from toolgrammar.core import GenerateParams, Message, Model, ToolCall, Vocabulary
from toolgrammar.core.testing import ScriptedModel

from ...double_precision import in_double_precision
from .conftest import BOOKING, openai_tool

HELLO: Any = [{"role": "user", "content": "Hello"}]
TOOLS: Any = [openai_tool("book"), openai_tool("cancel")]
VALID = Draft202012Validator(BOOKING)


@pytest.fixture(scope="module")
def noisy(noise: Model) -> Iterator[openai.OpenAI]:
    """OpenAI's client over the model of noise, which samples."""
    with client({"noise": noise}, defaults=GenerateParams(temperature=1.5)) as made:
        yield made


def joined(chunks: list[ChatCompletionChunk]) -> tuple[str, dict[int, list[str]], str | None]:
    """The text, the calls by index (id, name, arguments), and the finish reason of a stream."""
    text, calls, reason = "", {}, None
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                one = calls.setdefault(call.index, ["", "", ""])
                assert call.function is not None
                for place, piece in enumerate((call.id, call.function.name, call.function.arguments)):
                    one[place] += piece or ""
            reason = choice.finish_reason or reason
    return text, calls, reason


@pytest.mark.parametrize("seed", range(4))
def test_required_calls_are_valid(noisy: openai.OpenAI, seed: int) -> None:
    """Noise under ``required`` writes only calls that validate, and the stream of the same seed says the same."""
    asked: Any = {"model": "noise", "messages": HELLO, "tools": TOOLS, "tool_choice": "required", "max_tokens": 300}
    answer = noisy.chat.completions.create(**asked, seed=seed)
    calls = answer.choices[0].message.tool_calls
    assert answer.choices[0].finish_reason in ("tool_calls", "length") and calls
    whole = [call for call in calls if "<cut short" not in call.function.arguments]
    assert whole
    for call in whole:
        assert call.function.name in ("book", "cancel")
        VALID.validate(json.loads(call.function.arguments))
    chunks = list(noisy.chat.completions.create(**asked, seed=seed, stream=True))
    _, streamed, reason = joined(chunks)
    assert [one[1:] for one in streamed.values()] == [[call.function.name, call.function.arguments] for call in calls]
    assert reason == answer.choices[0].finish_reason
    assert len({one[0] for one in streamed.values()}) == len(calls)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"type": "function", "function": {"name": "cancel"}}, {"cancel"}),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOLS[1]]}}, {"cancel"}),
        ("none", set()),
    ],
)
def test_tool_choice_is_kept(noisy: openai.OpenAI, choice: Any, names: set[str]) -> None:
    """A named tool, a subset and no tool at all are what the answer has."""
    for seed in range(2):
        answer = noisy.chat.completions.create(
            model="noise", messages=HELLO, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False, seed=seed,
            max_tokens=60,
        )  # fmt: skip
        calls = answer.choices[0].message.tool_calls or []
        assert {call.function.name for call in calls} == names and len(calls) == len(names)


def test_response_format_is_kept(noisy: openai.OpenAI) -> None:
    """JSON of a schema, JSON objects, and the SDK's own parsing of a class."""

    class Part(BaseModel):
        name: str
        sizes: list[int]

    form: Any = {"type": "json_schema", "json_schema": {"name": "booking", "schema": BOOKING, "strict": True}}
    answer = noisy.chat.completions.create(
        model="noise", messages=HELLO, response_format=form, seed=1, max_completion_tokens=120
    )
    VALID.validate(json.loads(answer.choices[0].message.content or ""))
    answer = noisy.chat.completions.create(
        model="noise", messages=HELLO, response_format={"type": "json_object"}, seed=1, max_tokens=40
    )
    assert isinstance(json.loads(answer.choices[0].message.content or ""), dict)
    form["json_schema"]["strict"] = "true"  # as vLLM takes it, too
    answer = noisy.chat.completions.create(model="noise", messages=HELLO, response_format=form, seed=1, max_tokens=120)
    VALID.validate(json.loads(answer.choices[0].message.content or ""))
    form["json_schema"]["strict"] = "yes"
    with pytest.raises(openai.BadRequestError, match="strict is 'yes'"):
        noisy.chat.completions.create(model="noise", messages=HELLO, response_format=form, max_tokens=9)
    form = {"type": "json_object", "schema": BOOKING}  # as llama.cpp has it
    answer = noisy.chat.completions.create(model="noise", messages=HELLO, response_format=form, seed=1, max_tokens=120)
    VALID.validate(json.loads(answer.choices[0].message.content or ""))
    with client(ScriptedModel(['{"name": "bell", "sizes": [1, 2]}'])) as made:
        parsed = made.chat.completions.parse(model="scripted", messages=HELLO, response_format=Part)
    assert parsed.choices[0].message.parsed == Part(name="bell", sizes=[1, 2])


def test_a_whole_conversation(call: Callable[..., Message]) -> None:
    """A call, its result, and an answer that the model writes knowing both."""
    model = ScriptedModel([call("book", code="AB123", seats=2), "Booked."])
    with client(model) as made:
        messages = [{"role": "developer", "content": "Be brief."}, *HELLO]
        first = made.chat.completions.create(model="scripted", messages=messages, tools=TOOLS)
        message = first.choices[0].message
        assert message.tool_calls and message.content is None
        assert json.loads(message.tool_calls[0].function.arguments) == {"code": "AB123", "seats": 2}
        messages += [
            message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": [{"type": "text", "text": "ok"}]},
        ]
        second = made.chat.completions.create(model="scripted", messages=messages, tools=TOOLS)
    assert second.choices[0].message.content == "Booked." and second.choices[0].finish_reason == "stop"
    seen = model.requests[1]
    assert [one.role for one in seen] == ["system", "user", "assistant", "tool"]
    assert seen[2].tool_calls[0].arguments == {"code": "AB123", "seats": 2} and seen[3].text == "ok"


def test_a_cut_call_does_not_parse_and_is_named(
    call: Callable[..., Message], http: Callable[..., httpx.Client]
) -> None:
    """Near the budget: finish reason ``length``, arguments that no client can run, and the cut values by name."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    asked = {"model": "long", "messages": HELLO, "tools": [openai_tool("f", schema)], "max_tokens": 100}
    plain = http({"long": ScriptedModel(lambda messages: call("f", x="long" * 100))})
    choice = plain.post("/v1/chat/completions", json=asked).json()["choices"][0]
    assert choice["finish_reason"] == "length" and choice["toolgrammar"]["cut"] == ["f/x"]
    with pytest.raises(ValueError, match="Extra data"):
        json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
    events = plain.post("/v1/chat/completions", json={**asked, "stream": True}).text.split("\n\n")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert chunks[-1]["choices"][0]["toolgrammar"]["cut"] == ["f/x"]
    _, calls, reason = joined([ChatCompletionChunk.model_validate(chunk) for chunk in chunks])
    assert reason == "length" and calls[0][2] == choice["message"]["tool_calls"][0]["function"]["arguments"]


def test_responses_have_the_types_of_the_sdk(noise: Model, http: Callable[..., httpx.Client]) -> None:
    """Whole answers and every chunk validate as the SDK's own types."""
    plain = http({"noise": noise})
    asked: Any = {"model": "noise", "messages": HELLO, "tools": TOOLS, "n": 2, "seed": 1, "temperature": 1.2}
    for extra in ({}, {"tool_choice": "required"}, {"tool_choice": "none", "stop": ["e", "a"]}):
        whole = plain.post("/v1/chat/completions", json={**asked, **extra, "max_tokens": 60})
        answer = ChatCompletion.model_validate_json(whole.content, strict=True)
        assert [choice.index for choice in answer.choices] == [0, 1]
        streaming = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 60}
        lines = plain.post("/v1/chat/completions", json={**asked, **extra, **streaming}).text.split("\n\n")
        assert lines[-2:] == ["data: [DONE]", ""]
        chunks = [
            ChatCompletionChunk.model_validate_json(line.removeprefix("data: "), strict=True) for line in lines[:-2]
        ]
        assert chunks[-1].choices == [] and isinstance(chunks[-1].usage, CompletionUsage)
        assert chunks[-1].usage.completion_tokens == answer.usage.completion_tokens  # type: ignore[union-attr]
        for index, choice in enumerate(answer.choices):
            mine = [chunk for chunk in chunks if chunk.choices and chunk.choices[0].index == index]
            text, calls, reason = joined(mine)
            assert text == (choice.message.content or "") and reason == choice.finish_reason
            assert len(calls) == len(choice.message.tool_calls or ())


def test_edges_of_sampling(noise: Model, http: Callable[..., httpx.Client]) -> None:
    """``top_p: 0`` is the most likely token; a negative seed is a seed, but for -1, which is any."""
    plain = http({"noise": noise})

    def answer(**options: Any) -> str:
        asked = {"model": "noise", "messages": HELLO, "max_tokens": 20, "temperature": 1.3, **options}
        return str(plain.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]["content"])

    assert answer(top_p=0) == answer(temperature=0)
    assert answer(seed=-5) == answer(seed=-5) != answer(seed=5)
    assert len({answer(seed=-1) for _ in range(4)}) > 1
    ollama = {"model": "noise", "messages": HELLO, "stream": False, "options": {"num_predict": 20, "seed": -1}}
    assert plain.post("/api/chat", json=ollama).status_code == 200


def test_reasoning_comes_apart(thinking: Model) -> None:
    """Reasoning is in a field of its own, whole and streamed."""
    with client(thinking) as made:
        message: Any = made.chat.completions.create(model="scripted", messages=HELLO).choices[0].message
        assert message.content == "Four." and message.reasoning_content == "2 and 2"
        deltas: Any = [
            c.choices[0].delta for c in made.chat.completions.create(model="scripted", messages=HELLO, stream=True)
        ]
        assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "2 and 2"


def test_effort_needs_a_model_that_reasons() -> None:
    """A model without markers of reasoning is not told to reason; no effort is no reasoning."""
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), None], eos=[256])
    with client(ScriptedModel(lambda messages: "Four.", vocabulary=vocabulary)) as made:
        answer = made.chat.completions.create(model="scripted", messages=HELLO, reasoning_effort="none")
        assert answer.choices[0].message.content == "Four."
        with pytest.raises(openai.BadRequestError, match="has no reasoning"):
            made.chat.completions.create(model="scripted", messages=HELLO, reasoning_effort="low")


lark, unclosed = (
    {"type": "custom", "custom": {"name": "sql", "format": {"type": "grammar", "grammar": grammar}}}
    for grammar in ({"syntax": "lark", "definition": "start: x"}, {"syntax": "regex", "definition": "(a"})
)
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"store": True}, "store"),
    ({"max_completion_tokens": 0}, "max_completion_tokens"),
    ({"temperature": [1]}, "temperature"),
    ({"top_logprobs": 2}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"frequency_penalty": 0.5}, "frequency_penalty"),
    ({"functions": []}, "functions"),
    ({"modalities": ["text", "audio"]}, "modalities"),
    ({"guided_json": {}}, "guided_json"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": -1}, "temperature"),
    ({"top_p": -0.1}, "top_p"),
    ({"seed": -(2**64)}, "seed"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": True}, "max_tokens"),
    ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
    ({"n": 0}, "n"),
    ({"n": 17}, "n"),
    ({"stop": ["a", 1]}, "stop[1]"),
    ({"reasoning_effort": "vast"}, "reasoning_effort"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "fly"}}}, "tool_choice"),
    ({"tools": [{"type": "custom"}]}, "tools[0].custom"),
    ({"tools": [lark]}, "tools[0].custom.format.grammar.definition"),
    ({"tools": [unclosed]}, "tools[0].custom.format.grammar.definition"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": 5}}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "tools": 5}}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "tools": [{"type": {}}]}}, "tool_choice"),
    ({"tools": TOOLS, "tool_choice": {"mode": "auto", "allowed_tools": 5}}, "tool_choice"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": [openai_tool("f", {"type": "text"})]}, "tools[0].function.parameters"),
    ({"tools": [openai_tool("f"), openai_tool("f", {"type": "object"})]}, "tools"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format.json_schema.schema"),
    ({"messages": []}, "messages"),
    ({"messages": [{"content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "bot", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0].type"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "messages[0].content",
    ),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
    ({"model": "gpt-9"}, "model"),
]


@pytest.mark.parametrize(("fields", "named"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_met_is_refused_by_name(noisy: openai.OpenAI, fields: dict[str, Any], named: str) -> None:
    """No constraint is ignored: the error is OpenAI's, and has the field's path."""
    asked = {"model": "noise", "messages": HELLO, **fields}
    for stream in ({}, {"stream": True}):
        with pytest.raises(openai.APIStatusError) as caught:
            noisy.post("/chat/completions", body={**asked, **stream}, cast_to=ChatCompletion)
        assert caught.value.status_code == (404 if named == "model" else 400)
        assert caught.value.param == named and caught.value.type == "invalid_request_error"


def test_fields_that_ask_for_nothing_are_taken(noisy: openai.OpenAI) -> None:
    """Labels, and values that are what the server does anyway."""
    answer = noisy.chat.completions.create(
        model="noise", messages=HELLO, max_tokens=5, user="me", metadata={"a": "b"}, store=False, logprobs=False,
        frequency_penalty=0, presence_penalty=0.0, service_tier="auto", modalities=["text"], reasoning_effort="none",
        parallel_tool_calls=True, prompt_cache_key="k", extra_body={"top_k": 5, "min_p": 0.1},
    )  # fmt: skip
    assert answer.usage is not None and answer.usage.completion_tokens <= 5


def test_an_overflow_has_the_code_that_agents_know(noisy: openai.OpenAI) -> None:
    """A prompt beyond the window is ``context_length_exceeded``."""
    with pytest.raises(openai.BadRequestError) as caught:
        noisy.chat.completions.create(model="noise", messages=[{"role": "user", "content": "word " * 20_000}])
    assert caught.value.code == "context_length_exceeded"


@pytest.mark.asyncio
async def test_the_asynchronous_client() -> None:
    """Many requests at a time, from this event loop, each with its own answer; leaving a stream ends its request."""
    async with async_client(Model(in_double_precision())) as made:

        async def ask(seed: int) -> str | None:
            answer = await made.chat.completions.create(
                model="embedded", messages=HELLO, max_tokens=10, temperature=1, seed=seed
            )
            return answer.choices[0].message.content

        first = await asyncio.gather(*map(ask, range(8)))
        assert first == await asyncio.gather(*map(ask, range(8))) and len(set(first)) > 4
        async with await made.chat.completions.create(model="embedded", messages=HELLO, stream=True) as stream:
            async for _ in stream:
                break
        assert await ask(0) == first[0]


def test_a_failure_inside_a_stream_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first event an error can only be told in the stream: the SDK raises it, and nothing of its words leaks."""
    model = ScriptedModel(lambda messages: "One two three.")
    real = model.astream

    async def breaking(*arguments: Any) -> Any:
        async for event in real(*arguments):
            yield event
            raise RuntimeError("the secret of the prompt")

    monkeypatch.setattr(model, "astream", breaking)
    with client(model) as made, pytest.raises(openai.APIError, match="internal error") as caught:
        list(made.chat.completions.create(model="scripted", messages=HELLO, stream=True))
    assert "secret" not in str(vars(caught.value))


def test_autogens_own_openai_client(call: Callable[..., Message]) -> None:
    """AutoGen's client for OpenAI, with an agent that runs a tool."""
    for package in ("autogen_agentchat", "autogen_ext"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    def book(code: str, seats: int) -> str:
        """Book."""
        return f"{code}: {seats}"

    model = ScriptedModel([call("book", code="AB123", seats=2), "Booked two."])
    inner = async_http_client(model)
    info: Any = {
        "vision": False,
        "function_calling": True,
        "json_output": True,
        "family": "unknown",
        "structured_output": True,
    }

    async def main() -> Any:
        autogen = OpenAIChatCompletionClient(
            model="scripted", api_key="x", model_info=info, http_client=inner, base_url=str(inner.base_url)
        )
        agent = AssistantAgent("clerk", autogen, tools=[book], reflect_on_tool_use=True)
        result = await agent.run(task="Book two.")
        await autogen.close()
        return result

    assert asyncio.run(main()).messages[-1].content == "Booked two."


def test_langchains_own_openai_model(call: Callable[..., Message]) -> None:
    """LangChain's ``ChatOpenAI``: tools, and a class by its own JSON mode."""
    langchain_openai = pytest.importorskip("langchain_openai", exc_type=ImportError)

    class Part(BaseModel):
        name: str

    model = ScriptedModel([call("book", code="AB123", seats=2), '{"name": "bell"}'])
    with http_client(model) as inner:
        chat = langchain_openai.ChatOpenAI(model="scripted", api_key="none", http_client=inner)
        answer = chat.bind_tools(TOOLS, tool_choice="any").invoke("Book two.")
        assert answer.tool_calls[0]["args"] == {"code": "AB123", "seats": 2}
        assert chat.with_structured_output(Part).invoke("A part.") == Part(name="bell")


def test_a_result_of_a_tool_that_failed_is_read() -> None:
    """A call that an earlier answer could not finish comes back in the history as it was, and is no error."""
    model = ScriptedModel(["I see."])
    broken = {"id": "1", "type": "function", "function": {"name": "book", "arguments": '{"code": "A"} <cut>'}}
    history: Any = [
        *HELLO,
        {"role": "assistant", "tool_calls": [broken]},
        {"role": "tool", "tool_call_id": "1", "content": "no"},
    ]
    with client(model) as made:
        assert made.chat.completions.create(model="scripted", messages=history).choices[0].message.content == "I see."
    kept: ToolCall = model.requests[0][1].tool_calls[0]
    assert kept.arguments == {"code": "A"} and kept.error


def test_schemas_that_cannot_be_met_name_their_field() -> None:
    """A schema is compiled when the model is asked; the error still names the field, and no way out in Python."""
    broken = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(?:(?<!a.{20})b|a|c)*$"}}}
    with client("embedded") as made:
        with pytest.raises(openai.BadRequestError, match="tool 'f', at /properties/a") as caught:
            made.chat.completions.create(model="embedded", messages=HELLO, tools=[openai_tool("f", broken)])
        assert caught.value.param == "tools" and "ToolSet(" not in caught.value.message
        form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": broken}}
        with pytest.raises(openai.BadRequestError, match="at /properties/a") as caught:
            made.chat.completions.create(model="embedded", messages=HELLO, response_format=form, stream=True)
        assert caught.value.param == "response_format"
        with pytest.raises(openai.BadRequestError, match="max_output_tokens is 0") as caught:
            made.responses.create(model="embedded", input="Hello", max_output_tokens=0)
        assert caught.value.param == "max_output_tokens"


def test_unknown_endpoints_are_errors_in_the_form_of_the_protocol() -> None:
    """With what there is instead."""
    with client("embedded") as made:
        with pytest.raises(openai.NotFoundError, match=r"/v1/batches.*/v1/completions"):
            made.batches.list()
        with pytest.raises(openai.APIStatusError, match="does not make embeddings"):
            made.embeddings.create(model="embedded", input="x")
        with pytest.raises(openai.APIStatusError, match=r"/v1/chat/completions does not take GET.*POST") as caught:
            made.get("/chat/completions", cast_to=object)
        assert caught.value.status_code == 405


def test_misspelt_keywords_of_clients_are_no_warnings(http: Callable[..., httpx.Client]) -> None:
    """Whoever runs a server did not write the schemas: a misspelt keyword shows no warning there (the tests make an
    error of each)."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLenght": 1}}}
    model = ScriptedModel([Message("assistant", "", tool_calls=(ToolCall("1", "f", {"a": "x"}),))] * 2)
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [openai_tool("f", schema)]}
    assert http({"m": model}).post("/v1/chat/completions", json=body).status_code == 200


@pytest.mark.parametrize("kind", ["functon", "vendor"])
def test_a_tool_of_a_misspelt_type_is_refused(noisy: openai.OpenAI, kind: str) -> None:
    """What has a function is one: leaving it out would be a call less, unseen."""
    tool: Any = {"type": kind, "function": {"name": "a", "parameters": {"type": "object"}}}
    with pytest.raises(openai.BadRequestError, match="did you mean 'function'"):
        noisy.chat.completions.create(model="noise", messages=HELLO, tools=[tool], max_tokens=5)
