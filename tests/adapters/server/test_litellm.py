"""The LiteLLM provider: whole and streamed, blocking and not, with its errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolgrammar.core import GenerateParams, Message, Model
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING, openai_tool

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

litellm: Any = pytest.importorskip("litellm", reason="litellm is not installed", exc_type=ImportError)

from toolgrammar.adapters.litellm import ToolGrammarProvider, register  # noqa: E402

HELLO: Any = [{"role": "user", "content": "Hello"}]
TOOLS: Any = [openai_tool("book")]


@pytest.fixture
def known() -> Iterator[Callable[..., ToolGrammarProvider]]:
    """Register models, and forget them at the end."""
    made: list[ToolGrammarProvider] = []

    def make(models: Any, **options: Any) -> ToolGrammarProvider:
        made.append(register(models, **options))
        return made[-1]

    yield make
    litellm.custom_provider_map = []
    for provider in made:
        provider.close()


def test_noise_calls_as_it_must(known: Callable[..., ToolGrammarProvider], noise: Model) -> None:
    """All four ways give the same valid call."""
    known({"noise": noise}, defaults=GenerateParams(temperature=1.5))
    asked: Any = {
        "model": "toolgrammar/noise", "messages": HELLO, "tools": TOOLS, "tool_choice": "required", "seed": 5,
        "parallel_tool_calls": False, "max_tokens": 120,
    }  # fmt: skip
    answer = litellm.completion(**asked)
    (wanted,) = answer.choices[0].message.tool_calls
    Draft202012Validator(BOOKING).validate(json.loads(wanted.function.arguments))
    assert answer.choices[0].finish_reason == "tool_calls" and answer.usage.completion_tokens > 5

    async def main() -> tuple[Any, list[Any]]:
        whole = await litellm.acompletion(**asked)
        return whole, [chunk async for chunk in await litellm.acompletion(**asked, stream=True)]

    awaited, achunks = asyncio.run(main())
    chunks = list(litellm.completion(**asked, stream=True))
    for one in (awaited, litellm.stream_chunk_builder(achunks), litellm.stream_chunk_builder(chunks)):
        (again,) = one.choices[0].message.tool_calls
        assert (again.function.name, again.function.arguments) == (wanted.function.name, wanted.function.arguments)
        assert one.choices[0].finish_reason == "tool_calls"


def test_text_and_formats(known: Callable[..., ToolGrammarProvider], call: Callable[..., Message]) -> None:
    """Text streams; a schema is kept; a conversation with results is read."""
    model = ScriptedModel([call("book", code="AB123", seats=2), "Booked.", "Good bye."])
    known(model)
    first = litellm.completion(model="toolgrammar/scripted", messages=HELLO, tools=TOOLS).choices[0].message
    history = [*HELLO, first, {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "ok"}]
    second = litellm.completion(model="toolgrammar/scripted", messages=history, tools=TOOLS)
    assert second.choices[0].message.content == "Booked." and second.choices[0].finish_reason == "stop"
    chunks = litellm.completion(model="toolgrammar/scripted", messages=HELLO, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Good bye."
    assert [message.role for message in model.requests[1]] == ["user", "assistant", "tool"]


def test_frameworks_are_told_what_models_take(known: Callable[..., ToolGrammarProvider], noise: Model) -> None:
    """LiteLLM's model info says before the first request that schemas and tools are taken; what was replaced is gone.

    DSPy sends the schema of a signature only then, and else asks for any JSON object.
    """
    known({"old": ScriptedModel(["Hello."])})
    known({"small": ScriptedModel(lambda messages: "I will not."), "noise": noise})
    for name in ("toolgrammar/small", "toolgrammar/noise"):
        assert litellm.supports_response_schema(model=name, custom_llm_provider="toolgrammar")
        assert litellm.supports_function_calling(model=name)
        assert "response_format" in litellm.get_supported_openai_params(model=name)
    facts = litellm.get_model_info("toolgrammar/noise")
    assert facts["max_input_tokens"] == noise.context_window and facts["input_cost_per_token"] == 0
    assert "toolgrammar/old" not in litellm.model_cost
    schema = {"type": "object", "properties": {"k": {"enum": ["red", "blue"]}}, "required": ["k"]}
    form = {"type": "json_schema", "json_schema": {"name": "k", "schema": schema}}
    answer = litellm.completion(model="toolgrammar/small", messages=HELLO, response_format=form)
    Draft202012Validator(schema).validate(json.loads(answer.choices[0].message.content))


def test_parameters_that_models_lack(known: Callable[..., ToolGrammarProvider]) -> None:
    """A penalty is refused by name, and with ``drop_params`` dropped; an effort is taken where LiteLLM lets it pass."""
    known(ScriptedModel(lambda messages: "Hello."))
    asked: Any = {"model": "toolgrammar/scripted", "messages": HELLO}
    with pytest.raises(litellm.BadRequestError, match="presence_penalty"):
        litellm.completion(**asked, presence_penalty=0.5)
    for more in ({"presence_penalty": 0.5}, {"reasoning_effort": "low"}):
        assert litellm.completion(**asked, **more, drop_params=True).choices[0].message.content == "Hello."
    effort = {"reasoning_effort": "none", "allowed_openai_params": ["reasoning_effort"]}
    assert litellm.completion(**asked, **effort).choices[0].message.content == "Hello."


def test_errors_are_litellms(known: Callable[..., ToolGrammarProvider], noise: Model) -> None:
    """What cannot be met is refused by name, in LiteLLM's classes."""
    known({"noise": noise})
    long = [{"role": "user", "content": "word " * 20_000}]
    for extra, wanted in (
        ({"model": "toolgrammar/other"}, litellm.NotFoundError),
        ({"tool_choice": "required"}, litellm.BadRequestError),
        ({"messages": long}, litellm.ContextWindowExceededError),
    ):
        asked: Any = {"model": "toolgrammar/noise", "messages": HELLO, **extra}
        with pytest.raises(wanted):
            litellm.completion(**asked)
        with pytest.raises(wanted):
            list(litellm.completion(**asked, stream=True))
