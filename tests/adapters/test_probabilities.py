"""Probabilities through the adapters: log-probabilities in OpenAI's form, exact choices, and masses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from toolgrammar.adapters.openai import client
from toolgrammar.core import Model, load_model

FLAT: dict[str, Any] = {
    "title": "Verdict",
    "type": "object",
    "properties": {"verdict": {"enum": ["yes", "no", "nobody knows"]}},
    "required": ["verdict"],
    "additionalProperties": False,
}
FORM: Any = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": FLAT}}
OWN: Any = {"toolgrammar": {"exact_choice": True, "masses": True}}


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    """The embedded model."""
    with load_model("embedded") as loaded:
        yield loaded


def rounded(told: Any) -> Any:
    """Return told probabilities without the last digits, which depend on what of the prompt was read before."""
    if isinstance(told, float):
        return round(told, 3)
    if isinstance(told, dict):
        return {name: rounded(value) for name, value in told.items()}
    return [*map(rounded, told)] if isinstance(told, (list, tuple)) else told


def check(told: Any, text: str) -> None:
    """Check the choice and the masses of an answer of `FLAT`."""
    (choice,) = told["choices"]
    assert set(choice["probabilities"]) == set(FLAT["properties"]["verdict"]["enum"])
    assert text[choice["start"] :].startswith(choice["value"]) and 0 < choice["mass"] <= 1
    assert "/verdict" in [mass["pointer"] for mass in told["masses"]]
    assert all(mass["kept"] <= 0 for mass in told["masses"])


def test_openais_protocols_have_an_extension_field(model: Model) -> None:
    """Chat completions and responses take our options in ``toolgrammar``, and tell there, whole and streamed."""
    with client({"m": model}) as made:
        chat: Any = {"model": "m", "messages": [{"role": "user", "content": "Is it?"}], "response_format": FORM}
        answer: Any = made.chat.completions.create(**chat, extra_body=OWN).choices[0]
        check(answer.toolgrammar, answer.message.content)
        chunks: Any = list(made.chat.completions.create(**chat, extra_body=OWN, stream=True))
        assert rounded(chunks[-1].choices[0].toolgrammar) == rounded(answer.toolgrammar)
        assert not hasattr(made.chat.completions.create(**chat).choices[0], "toolgrammar")
        asked: Any = {"model": "m", "input": "Is it?", "text": {"format": {"type": "json_schema", "name": "v"}}}
        asked["text"]["format"]["schema"] = FLAT
        response: Any = made.responses.create(**asked, extra_body=OWN)
        check(response.toolgrammar, response.output_text)
        events: Any = list(made.responses.create(**asked, extra_body=OWN, stream=True))
        assert rounded(events[-1].response.toolgrammar) == rounded(response.toolgrammar)
        for wrong, field in ((5, "toolgrammar.exact_choice"), ("yes", "toolgrammar.exact_choice")):
            with pytest.raises(openai.BadRequestError) as caught:
                made.chat.completions.create(**chat, extra_body={"toolgrammar": {"exact_choice": wrong}})
            assert caught.value.param == field
        with pytest.raises(openai.BadRequestError) as caught:
            made.chat.completions.create(**chat, extra_body={"toolgrammar": {"draft": 0}})
        assert caught.value.param == "toolgrammar.draft"


def test_langchain_has_them_in_the_metadata(model: Model) -> None:
    """``response_metadata`` has OpenAI's ``logprobs``, ``choices`` and ``masses``; a stream adds up to the same."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    chat = ChatToolGrammar(model=model, logprobs=True, top_logprobs=2, exact_choice=True, masses=True)
    bound = chat.bind(response_format=FORM)
    answer = bound.invoke("Is it?")
    check(answer.response_metadata, answer.content)
    tokens = answer.response_metadata["logprobs"]["content"]
    assert b"".join(bytes(token["bytes"]) for token in tokens).decode() == answer.content
    assert all(len(token["top_logprobs"]) in (1, 2) and token["logprob"] <= 0 for token in tokens)
    total: Any = None
    for chunk in bound.stream("Is it?"):
        total = chunk if total is None else total + chunk
    for name in ("logprobs", "choices", "masses"):
        assert rounded(total.response_metadata[name]) == rounded(answer.response_metadata[name])
    plain = ChatToolGrammar(model=model).bind(response_format=FORM).invoke("Is it?")
    assert not {"logprobs", "choices", "masses"} & set(plain.response_metadata)
    assert ChatToolGrammar(model=model).bind(logprobs=True).invoke("Hi", max_tokens=4).response_metadata["logprobs"]


def test_autogen_has_log_probabilities(model: Model) -> None:
    """``CreateResult.logprobs`` has the tokens of a text answer, whole and streamed; without the option it is None."""
    from autogen_core.models import CreateResult, UserMessage

    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    made = ToolGrammarChatCompletionClient(model, logprobs=True, top_logprobs=1, max_tokens=8)
    messages = [UserMessage(content="Hi", source="user")]
    result = asyncio.run(made.create(messages))
    assert result.logprobs and b"".join(bytes(one.bytes or ()) for one in result.logprobs).decode() == result.content
    assert all(one.top_logprobs and len(one.top_logprobs) == 1 for one in result.logprobs)

    async def last() -> Any:
        return [piece async for piece in made.create_stream(messages)][-1]

    streamed = asyncio.run(last())
    assert isinstance(streamed, CreateResult) and [one.token for one in streamed.logprobs or ()] == [
        one.token for one in result.logprobs
    ]
    assert asyncio.run(ToolGrammarChatCompletionClient(model, max_tokens=4).create(messages)).logprobs is None


def test_agent_framework_has_them_beside_the_answer(model: Model) -> None:
    """``additional_properties`` of a response have the same, whole and streamed."""
    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    options: Any = {"logprobs": True, "masses": True, "exact_choice": True, "response_format": FORM}
    made = ToolGrammarChatClient(model)
    answer = asyncio.run(made.get_response("Is it?", options=options))
    check(answer.additional_properties, answer.text)
    assert answer.additional_properties["logprobs"]["content"]

    async def collected() -> Any:
        return await made.get_response("Is it?", options=options, stream=True).get_final_response()

    streamed = asyncio.run(collected()).additional_properties
    assert rounded(streamed["choices"]) == rounded(answer.additional_properties["choices"])
