"""Log-probabilities in chat completions, responses and Ollama's chat: of the text's tokens, whole and streamed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import ollama
import openai
import pytest

from toolgrammar.adapters.openai import client
from toolgrammar.core import GenerateParams, Model
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING, openai_tool

HELLO: Any = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def noisy(noise: Model) -> Iterator[openai.OpenAI]:
    """OpenAI's client over the model of noise, which samples."""
    with client({"noise": noise}, defaults=GenerateParams(temperature=1.5, seed=3)) as made:
        yield made


def spelled(tokens: Any) -> str:
    """The text that tokens spell by their bytes."""
    return b"".join(bytes(token.bytes) for token in tokens).decode("utf-8", "replace")


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"stop": ["e", "an"]},
        {"tools": [openai_tool("book")]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": BOOKING}}},
    ],
    ids=["text", "stop", "tools", "json"],
)
def test_chat_completions_have_them(noisy: openai.OpenAI, extra: Any) -> None:
    """The tokens spell the content, each with the others; chunks have the same, with the text that they wrote."""
    asked: Any = {"model": "noise", "messages": HELLO, "logprobs": True, "top_logprobs": 4, "max_tokens": 60, **extra}
    choice = noisy.chat.completions.create(**asked).choices[0]
    text = choice.message.content or ""
    assert choice.logprobs is not None and choice.logprobs.content is not None
    tokens = choice.logprobs.content
    assert text and text.startswith(spelled(tokens))
    assert len(text) - len(spelled(tokens)) < 20  # a token that a stop string cuts is not told
    for token in tokens:
        likely = [one.logprob for one in token.top_logprobs]
        assert token.logprob <= 0 and 1 <= len(likely) <= 4 and likely == sorted(likely, reverse=True)
        assert likely[0] >= token.logprob and sum(map(math.exp, likely)) <= 1.000001
    streamed: list[Any] = []
    seen = ""
    for chunk in noisy.chat.completions.create(**asked, stream=True):
        for one in chunk.choices:
            seen += one.delta.content or ""
            if one.logprobs is not None:
                streamed += one.logprobs.content or []
                assert seen.startswith(spelled(streamed))
    assert [token.token for token in streamed] == [token.token for token in tokens]
    assert [token.logprob for token in streamed] == pytest.approx([token.logprob for token in tokens], abs=1e-3)


def test_reasoning_and_calls_have_none(call: Callable[..., Any]) -> None:
    """What is no content has no place among them."""
    with client(ScriptedModel([call("book", code="AB123", seats=2)])) as made:
        answer = made.chat.completions.create(
            model="scripted", messages=HELLO, tools=[openai_tool("book")], logprobs=True  # type: ignore[list-item]
        )  # fmt: skip
    assert answer.choices[0].message.tool_calls
    assert answer.choices[0].logprobs is not None and answer.choices[0].logprobs.content == []
    with client(ScriptedModel(["Four."])) as made:
        plain = made.chat.completions.create(model="scripted", messages=HELLO)
    assert plain.choices[0].logprobs is None


def test_responses_have_them(noisy: openai.OpenAI) -> None:
    """In the text's part when it is included, or when likely tokens are asked for; deltas say the same."""
    asked: Any = {"model": "noise", "input": "Hello", "max_output_tokens": 20}
    for extra in ({"include": ["message.output_text.logprobs"]}, {"top_logprobs": 2}):
        part: Any = noisy.responses.create(**asked, **extra).output[0].content[0]  # type: ignore[union-attr, index]
        assert spelled(part.logprobs) == part.text
        assert {len(token.top_logprobs) for token in part.logprobs} == {extra.get("top_logprobs", 0)}
        events: list[Any] = list(noisy.responses.create(**asked, **extra, stream=True))
        told = [token for event in events if event.type == "response.output_text.delta" for token in event.logprobs]
        assert [token.token for token in told] == [token.token for token in part.logprobs]
        assert [token.logprob for token in events[-1].response.output[0].content[0].logprobs] == [
            token.logprob for token in told
        ]
    assert noisy.responses.create(**asked).output[0].content[0].logprobs == []  # type: ignore[union-attr, index]


def test_ollama_has_them(noise: Model, http: Callable[..., httpx.Client]) -> None:
    """In Ollama's own form, which its types read."""
    plain = http({"noise": noise})
    asked = {
        "model": "noise", "messages": HELLO, "logprobs": True, "top_logprobs": 2,
        "options": {"num_predict": 12, "seed": 1, "temperature": 1.0},
    }  # fmt: skip
    whole = ollama.ChatResponse.model_validate_json(plain.post("/api/chat", json={**asked, "stream": False}).content)
    assert whole.logprobs and "".join(one.token for one in whole.logprobs) == whole.message.content
    assert all(one.top_logprobs is not None and len(one.top_logprobs) == 2 for one in whole.logprobs)
    lines = [json.loads(line) for line in plain.post("/api/chat", json=asked).text.splitlines()]
    told = [one for line in lines for one in line.get("logprobs", ())]
    assert [one["token"] for one in told] == [one.token for one in whole.logprobs]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
