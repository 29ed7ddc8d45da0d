"""Ollama's chat, through the real client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import ollama
import pytest
from jsonschema import Draft202012Validator

from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core import GenerateParams, Message, Model
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING, openai_tool

HELLO: Any = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Callable[..., ollama.Client]:
    """Make Ollama's client over models in this process."""

    def make(models: Any, **options: Any) -> ollama.Client:
        process = InProcess(create_app(models, **options), httpx)
        request.addfinalizer(process.close)
        return ollama.Client(host=BASE_URL, transport=process.transport())

    return make


def test_a_whole_conversation(client: Callable[..., ollama.Client], call: Callable[..., Message]) -> None:
    """A call, its result and the answer, whole and streamed."""
    model = ScriptedModel([call("book", code="AB123", seats=2), "Booked.", call("book", code="CD456", seats=1)])
    made = client({"small": model})
    first = made.chat("small", HELLO, tools=[openai_tool("book")])
    assert first.message.tool_calls and first.message.tool_calls[0].function.arguments == {"code": "AB123", "seats": 2}
    history = [*HELLO, first.message, {"role": "tool", "content": "ok", "tool_name": "book"}]
    second = made.chat("small", history, tools=[openai_tool("book")])
    assert second.message.content == "Booked." and second.done and second.done_reason == "stop"
    assert (second.prompt_eval_count or 0) > 0 and second.eval_count == len("Booked.")
    assert model.requests[1][1].tool_calls[0].arguments == {"code": "AB123", "seats": 2}
    lines = list(made.chat("small", HELLO, tools=[openai_tool("book")], stream=True))
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]
    assert lines[0].message.tool_calls and lines[0].message.tool_calls[0].function.arguments["code"] == "CD456"


def test_a_prompt_is_answered_or_gone_on_with(client: Callable[..., ollama.Client]) -> None:
    """Whole and streamed, as a message with a system text, as a raw text, in a format; without a prompt, it is loaded."""
    model = ScriptedModel(lambda messages: "Four.")
    made = client({"small": model})
    whole = made.generate("small", "2 and 2?", system="Be brief.")
    assert whole.response == "Four." and whole.done and whole.eval_count == len("Four.")
    lines = list(made.generate("small", "2 and 2?", stream=True))
    assert "".join(line.response for line in lines) == "Four." and lines[-1].done
    assert [[message.role for message in request] for request in model.requests] == [["system", "user"], ["user"]]
    assert made.generate("small", "2 and 2 are", raw=True).response and model.requests[-1] == ()
    Draft202012Validator(BOOKING).validate(json.loads(made.generate("small", "Book.", format=BOOKING).response))
    loaded = made.generate("small")
    assert (loaded.response, loaded.done_reason) == ("", "load")
    for fields in ({"template": "x"}, {"suffix": "x"}, {"context": [1]}, {"raw": True, "system": "x"}):
        asked: Any = {"model": "small", "prompt": "x", **fields}
        with pytest.raises(ollama.ResponseError, match=next(iter(fields))):
            made.generate(**asked)


def test_formats_are_kept(client: Callable[..., ollama.Client], noise: Model) -> None:
    """Noise writes JSON of the schema, or an object."""
    made = client({"noise": noise}, defaults=GenerateParams(temperature=1.5, seed=2))
    answer = made.chat("noise", HELLO, format=BOOKING, options={"num_predict": 120})
    Draft202012Validator(BOOKING).validate(json.loads(answer.message.content or ""))
    assert isinstance(
        json.loads(made.chat("noise", HELLO, format="json", options={"num_predict": 40}).message.content or ""), dict
    )


def test_models_are_told(client: Callable[..., ollama.Client], noise: Model, http: Callable[..., httpx.Client]) -> None:
    """Tags, show, version."""
    made = client({"noise": noise})
    assert [model.model for model in made.list().models] == ["noise"]
    shown = made.show("noise")
    assert "tools" in (shown.capabilities or []) and shown.modelinfo
    assert http(noise).get("/api/version").json()["version"]
    with pytest.raises(ollama.ResponseError) as caught:
        made.show("other")
    assert caught.value.status_code == 404


@pytest.mark.parametrize(("served", "asked"), [("small", "small:latest"), ("small:latest", "small")])
def test_the_default_tag(client: Callable[..., ollama.Client], noise: Model, served: str, asked: str) -> None:
    """A model is found with or without the tag that Ollama adds to a name; streamed too."""
    made = client({served: noise})
    said: list[Any] = [{"role": "user", "content": "x"}]
    options = {"num_predict": 20}
    assert made.chat(asked, said, format={"type": "integer"}, options=options).message.content
    assert "".join(each.message.content or "" for each in made.chat(asked, said, stream=True, options=options))


def test_a_cut_call_is_not_passed_on(call: Callable[..., Message], http: Callable[..., httpx.Client]) -> None:
    """Near the budget the call is left out, and what was cut is named."""
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    plain = http({"long": ScriptedModel(lambda messages: call("f", x="long" * 100))})
    asked = {"model": "long", "messages": HELLO, "tools": [openai_tool("f", schema)], "options": {"num_predict": 100}}
    whole = plain.post("/api/chat", json={**asked, "stream": False}).json()
    last = json.loads(plain.post("/api/chat", json=asked).text.splitlines()[-1])
    for end in (whole, last):
        assert end["done_reason"] == "length" and end["toolgrammar"] == {"cut": ["f/x"]}
        assert "tool_calls" not in end["message"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"options": {"mirostat": 1}}, "options.mirostat"),
        ({"options": {"num_ctx": 10**9}}, "options.num_ctx"),
        ({"options": {"repeat_penalty": 1.2, "repeat_last_n": 64}}, "options.repeat_last_n"),
        ({"options": {"regex": "a"}}, "options.regex"),
        ({"format": "xml"}, "format"),
        ({"think": "vast"}, "think"),
        ({"logprobs": "yes"}, "logprobs"),
        ({"template": "x"}, "template"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"messages": [{"role": "user", "content": "x", "images": ["*"]}]}, "messages[0].images[0]"),
    ],
)
def test_what_cannot_be_met_is_refused_by_name(
    noise: Model, http: Callable[..., httpx.Client], fields: dict[str, Any], named: str
) -> None:
    """No constraint is ignored."""
    refused = http({"noise": noise}).post("/api/chat", json={"model": "noise", "messages": HELLO, **fields})
    assert refused.status_code == 400 and named in refused.json()["error"]
