"""Completions, through the real SDK of OpenAI: a text is gone on with, by the model alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
from jsonschema import Draft202012Validator
from openai.types import Completion

from toolgrammar.adapters.openai import client
from toolgrammar.core import GenerateParams, Grammar, Model
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING, openai_tool

TEXT = "The capital of Norway is "


@pytest.fixture(scope="module")
def noisy(noise: Model) -> Iterator[openai.OpenAI]:
    """OpenAI's client over the model of noise, which samples."""
    with client({"noise": noise}, defaults=GenerateParams(temperature=1.5)) as made:
        yield made


def test_a_text_is_gone_on_with() -> None:
    """The model reads the text and nothing else, no chat template; the answer goes on, and stops where it is asked to."""
    model = ScriptedModel(lambda messages: TEXT + "Oslo. Yes.")
    with client(model) as made:
        answer = made.completions.create(model="scripted", prompt=TEXT, max_tokens=50)
        assert answer.choices[0].text == "Oslo. Yes." and answer.choices[0].finish_reason == "stop"
        assert answer.object == "text_completion" and answer.usage and answer.usage.completion_tokens == 10
        stopped = made.completions.create(model="scripted", prompt=TEXT, stop=".", max_tokens=50, echo=True)
        assert stopped.choices[0].text == TEXT + "Oslo"
        cut = made.completions.create(model="scripted", prompt=TEXT, max_tokens=4)
        assert cut.choices[0].text == "Oslo" and cut.choices[0].finish_reason == "length"
    assert set(model.requests) == {()}


def test_several_prompts_and_answers(noisy: openai.OpenAI, noise: Model) -> None:
    """Each text, given as such or as token ids, has ``n`` answers in order; ids are the text's; a seed repeats them."""
    ids = noise.encode("def add(")
    asked: Any = {"model": "noise", "n": 2, "seed": 4, "max_tokens": 8}
    many = noisy.completions.create(**asked, prompt=[TEXT, "def add("], logprobs=0)
    single = noisy.completions.create(**asked, prompt=ids, logprobs=0)
    assert [choice.index for choice in many.choices] == [0, 1, 2, 3]
    assert len({choice.text for choice in many.choices}) == 4
    assert [choice.text for choice in single.choices] == [choice.text for choice in many.choices[2:]]
    assert many.usage and single.usage
    assert many.usage.prompt_tokens > single.usage.prompt_tokens and many.usage.completion_tokens == 32
    assert noisy.completions.create(**asked, prompt=[ids]).choices[1].text == many.choices[3].text


def test_streams_say_the_same(noise: Model, http: Callable[..., httpx.Client]) -> None:
    """Every chunk has the SDK's type; texts, log-probabilities, reasons and counts are those of the whole answer."""
    plain = http({"noise": noise})
    asked: Any = {
        "model": "noise", "prompt": [TEXT, "x = "], "n": 2, "seed": 1, "temperature": 1.2, "max_tokens": 12,
    }  # fmt: skip
    for extra in ({"logprobs": 2}, {"echo": True}, {"stop": ["e", "a"], "logprobs": 0}):
        whole = Completion.model_validate_json(
            plain.post("/v1/completions", json={**asked, **extra}).content, strict=True
        )
        streaming = {**asked, **extra, "stream": True, "stream_options": {"include_usage": True}}
        lines = plain.post("/v1/completions", json=streaming).text.split("\n\n")
        assert lines[-2:] == ["data: [DONE]", ""]
        chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
        usage = chunks.pop()["usage"]
        for index, choice in enumerate(whole.choices):
            mine = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == index]
            assert "".join(one["text"] for one in mine) == choice.text
            assert [one["finish_reason"] for one in mine if one["finish_reason"]] == [choice.finish_reason]
            if choice.logprobs is not None:
                for name in ("tokens", "text_offset", "token_logprobs"):
                    joined = [item for one in mine if one["logprobs"] for item in one["logprobs"][name]]
                    expected = getattr(choice.logprobs, name)
                    assert joined == (pytest.approx(expected, abs=1e-3) if name == "token_logprobs" else expected)
        assert whole.usage and usage["completion_tokens"] == whole.usage.completion_tokens
        assert usage["prompt_tokens"] == whole.usage.prompt_tokens
        for chunk in chunks:
            chunk["choices"][0]["finish_reason"] = chunk["choices"][0]["finish_reason"] or "stop"  # as OpenAI's: null
            Completion.model_validate(chunk, strict=True)


def test_log_probabilities_are_in_their_form(noisy: openai.OpenAI) -> None:
    """Tokens spell the text, at their offsets, with as many others as were asked for."""
    choice = noisy.completions.create(model="noise", prompt=TEXT, logprobs=3, max_tokens=10, seed=2).choices[0]
    told = choice.logprobs
    assert told and told.tokens and told.token_logprobs and told.top_logprobs and told.text_offset
    assert len(told.tokens) == 10 and told.text_offset[0] == 0
    for token, offset, value, others in zip(
        told.tokens, told.text_offset, told.token_logprobs, told.top_logprobs, strict=True
    ):
        assert token.startswith("bytes:\\x") or choice.text[offset:].startswith(token)
        assert value <= 0 and len(others) == 3
        assert others.get(token, value) == value and max(others.values()) >= value


def test_json_may_follow_a_text(noisy: openai.OpenAI) -> None:
    """``response_format`` holds here, too: it is ours."""
    form = {"type": "json_schema", "json_schema": {"name": "booking", "schema": BOOKING}}
    answer = noisy.completions.create(
        model="noise", prompt="Booking: ", max_tokens=120, seed=1, extra_body={"response_format": form}
    )
    Draft202012Validator(BOOKING).validate(json.loads(answer.choices[0].text))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["x", ""]}, "prompt[1]"),
        ({"prompt": [[1, -5]]}, "prompt[0]"),
        ({"prompt": [10**9]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"n": 0}, "n"),
        ({"n": 9, "prompt": ["x", "y"]}, "n"),
        ({"best_of": 3}, "best_of"),
        ({"suffix": "end"}, "suffix"),
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"logprobs": 21}, "logprobs"),
        ({"logprobs": True}, "logprobs"),
        ({"presence_penalty": 1}, "presence_penalty"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tools": []}, "tools"),
    ],
)
def test_what_cannot_be_met_is_refused_by_name(noisy: openai.OpenAI, fields: dict[str, Any], named: str) -> None:
    """No field is ignored."""
    with pytest.raises(openai.BadRequestError) as caught:
        noisy.post("/completions", body={"model": "noise", "prompt": TEXT, **fields}, cast_to=Completion)
    assert caught.value.param == named


FORMS = ['root ::= "(" root* ")"', {"syntax": "lark", "definition": 'start: "(" start* ")"'}]


@pytest.mark.parametrize("form", [*FORMS, Grammar.from_gbnf(FORMS[0]).dumps()], ids=["gbnf", "lark", "dumps"])
@pytest.mark.parametrize(
    "path", ["/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate"]
)
def test_the_field_grammar(http: Callable[..., httpx.Client], noise: Model, path: str, form: Any) -> None:
    """Every protocol takes a grammar, as text, as an object, or as data; the answer is one of its texts."""
    body: dict[str, Any] = {"model": "noise", "max_tokens": 30, "grammar": form, "stream": False}
    messages = [{"role": "user", "content": "x"}]
    if path in ("/v1/completions", "/api/generate"):
        body["prompt"] = "x"
    elif path == "/v1/responses":
        body |= {"input": "x", "max_output_tokens": body.pop("max_tokens")}
    else:
        body["messages"] = messages
    if path in ("/api/chat", "/api/generate"):
        body["options"] = {"num_predict": body.pop("max_tokens"), "grammar": body.pop("grammar")}
    answer = http({"noise": noise}).post(path, json=body)
    assert answer.status_code == 200, answer.text
    text = max(_texts(answer.json()), key=lambda text: text.count("("))
    assert Grammar.from_any(form).matches(text), answer.text


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"grammar": "root ::= )"}, "line 1, column 10"),
        ({"grammar": 5}, "grammar is not a text or an object"),
        ({"grammar": {"type": "object"}}, "an object with 'type'"),
        ({"grammar": 'root ::= "a"', "response_format": {"type": "json_object"}}, "combined with a schema"),
        ({"grammar": 'root ::= "a"', "tools": [openai_tool("book")]}, "combined with tools"),
        ({"grammar": "root ::= " + '"a" ' * 400_000}, "at most"),
    ],
)
def test_wrong_grammars(http: Callable[..., httpx.Client], noise: Model, fields: dict[str, Any], message: str) -> None:
    """A grammar that cannot be met is an error that names the field, and the place in the text."""
    body = {"model": "noise", "messages": [{"role": "user", "content": "x"}], "max_tokens": 5, **fields}
    answer = http({"noise": noise}).post("/v1/chat/completions", json=body)
    assert answer.status_code in (400, 413), answer.text
    error = answer.json()["error"]
    assert message in error["message"] and (error["param"] == "grammar" or answer.status_code == 413)
