"""Texts and JSON of models on servers: streamed, validated, mended, asked for again."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, field_validator

from toolgrammar.core import (
    BudgetError,
    Grammar,
    InvalidArgumentsError,
    InvalidSchemaError,
    JsonMode,
    ModelError,
    ParseError,
    ReasoningDelta,
    TextDelta,
)
from toolgrammar.tools import ToolSet

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
GOOD = {"name": "Åsa", "age": 3}


def test_text_is_streamed_as_it_comes(serve: Any, complete: Any) -> None:
    """Free text comes in the server's pieces, reasoning apart, whether the server tells it apart or not."""
    for reply in (complete("Hello you", reasoning_content="hm hm"), complete("<think>hm hm</think>\n\nHello you")):
        events = list(serve(reply).model().stream("Hi"))
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello you"
        assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "hm hm"
        assert sum(isinstance(event, TextDelta) for event in events) >= 3
        message = serve(reply).model().generate("Hi").message
        assert (message.text, message.reasoning) == ("Hello you", "hm hm")


@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang", "llama.cpp", "ollama"])
def test_json_is_demanded_and_checked(serve: Any, kind: str) -> None:
    """The schema goes out as a response format; what is not valid is asked for again, and comes in one spelling."""
    server = serve('{"name": "Åsa", "age": -3}', '```json\n{"age":3,"name":"Åsa"}\n```')
    answer = server.model(server=kind).generate("Who?", json_mode=JsonMode(schema=SCHEMA))
    assert answer.text == '{"age": 3, "name": "Åsa"}'
    form = "structural tag" if kind in ("vllm", "sglang") else "json_schema"  # what let it through is not asked again
    assert (answer.attempts, answer.form) == (2, form)
    sent = server.asked[0]["response_format"]
    assert sent["type"] == "json_schema" and sent["json_schema"]["schema"]["required"] == ["name", "age"]
    assert "minimum" in server.asked[1]["messages"][-1]["content"]


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize("written", [1_000, 1_024])
def test_reasoning_before_json_is_taken_off(serve: Any, complete: Any, repair: bool, written: int) -> None:
    """Where the server does not tell it apart, also without repair, and of an answer that may be cut by its length."""
    reply = complete(f"I must think.</think>\n{json.dumps(GOOD)}")
    reply["usage"] = {"prompt_tokens": 10, "completion_tokens": written}
    answer = serve(reply).model().generate("Who?", json_mode=JsonMode(schema=SCHEMA, repair=repair), max_tokens=1_024)
    assert (json.loads(answer.text), answer.attempts) == (GOOD, 1)


def test_weaker_forms_are_tried(serve: Any) -> None:
    """A server that refuses a form is asked in the next weaker one, with the schema in the prompt; it is remembered."""

    def reply(body: dict[str, Any]) -> Any:
        kind = body.get("response_format", {}).get("type")
        if kind == "json_schema" or "schema" in body.get("response_format", {}):
            return httpx.Response(422, json={"detail": [{"msg": f"unknown {kind}"}]})
        return json.dumps(GOOD)

    server = serve(reply)
    model = server.model()
    answer = model.generate("Who?", json_mode=JsonMode(schema=SCHEMA))
    assert (answer.form, len(server.asked)) == ("json_object", 5)  # two of them without "minimum"
    assert '"minimum": 0' in server.asked[-1]["messages"][0]["content"]
    assert model.generate("Who?", json_mode=JsonMode(schema=SCHEMA)).form == "json_object"
    assert len(server.asked) == 6


def test_a_request_that_no_form_makes_good(serve: Any) -> None:
    """When every form is refused, the first refusal is the error, and nothing wrong is remembered."""
    server = serve(httpx.Response(400, json={"error": {"message": "temperature is odd"}}))
    model = server.model()
    for _ in range(2):
        with pytest.raises(ModelError, match="temperature is odd"):
            model.generate("Who?", json_mode=JsonMode(schema=SCHEMA))
    assert len(server.asked) == 2 * 6


def test_generate_json_gives_values(serve: Any) -> None:
    """``generate_json`` gives the value, or an instance whose validators were heard too."""

    class Person(BaseModel):
        name: str
        age: int

        @field_validator("name")
        @classmethod
        def _short(cls, name: str) -> str:
            if len(name) > 5:
                raise ValueError("at most five letters")
            return name

    assert serve(json.dumps(GOOD)).model().generate_json("Who?", SCHEMA) == GOOD
    server = serve('{"name": "Annabell", "age": 3}', json.dumps(GOOD))
    assert server.model().generate_json("Who?", Person) == Person(name="Åsa", age=3)
    assert "at most five letters" in server.asked[1]["messages"][-1]["content"]
    with pytest.raises(InvalidArgumentsError, match="five letters"):
        serve('{"name": "Annabell", "age": 3}').model().generate_json("Who?", Person)


def test_json_without_repair(serve: Any) -> None:
    """With ``repair=False`` nothing is mended, and nothing asked for again."""
    server = serve("```json\n{}\n```")
    with pytest.raises(InvalidArgumentsError, match="asked once"):
        server.model().generate("Who?", json_mode=JsonMode(schema={"type": "object"}, repair=False))
    assert len(server.asked) == 1


def test_free_json_is_not_demanded(serve: Any) -> None:
    """``constrained_decoding=False`` tells the model of the schema, and demands nothing of the server."""
    server = serve(f"Here: {json.dumps(GOOD)}")
    answer = server.model().generate("Who?", json_mode=JsonMode(schema=SCHEMA, constrained_decoding=False))
    assert json.loads(answer.text) == GOOD
    assert "response_format" not in server.asked[0]


def test_cut_json_is_an_error(serve: Any, complete: Any) -> None:
    """JSON that the budget cut is an error with what was received; a number at its end may not be whole."""
    for text, schema in (('{"name": "Å', SCHEMA), ("12", {"type": "integer"})):
        server = serve(complete(text, finish="length"))
        with pytest.raises(BudgetError, match="received"):
            server.model(repair=False).generate("Who?", json_mode=JsonMode(schema=schema))
        assert len(server.asked) == 1
    assert serve(complete("12")).model().generate("?", json_mode=JsonMode(schema={"type": "integer"})).text == "12"
    text = serve(complete("It was a dark", finish="length")).model().generate("Tell", max_tokens=4)
    assert (text.text, text.finish_reason) == ("It was a dark", "length")


def test_broken_json_that_was_cut_is_not_mended_into_a_whole(serve: Any, complete: Any) -> None:
    """Mending would close what the budget cut, and show half an answer as a whole one."""
    for text in ('{"name": "Åsa", "age": 1', '{"age": 1, "name": "Åsa"'):
        with pytest.raises(BudgetError):
            serve(complete(text, finish="length")).model().generate("Who?", json_mode=JsonMode(schema=SCHEMA))


def test_texts_of_a_grammar(serve: Any) -> None:
    """A text of a grammar is checked by the grammar itself."""
    grammar = Grammar.from_regex("yes|no")
    server = serve("Maybe", "no")
    assert server.model().generate("Well?", grammar=grammar).text == "no"
    with pytest.raises(ParseError, match="form that was asked for"):
        serve("Maybe").model().generate("Well?", grammar=grammar)


def test_answers_beside_tools(serve: Any, complete: Any) -> None:
    """With tools and a response schema, an answer is valid calls or valid JSON."""
    tools = ToolSet.from_any([{"name": "look", "parameters": {"type": "object", "properties": {}}}])
    server = serve("Fine!", json.dumps(GOOD))
    answer = server.model().generate("Who?", tools=tools, output_type=SCHEMA)
    assert (json.loads(answer.text), answer.tool_calls, answer.attempts) == (GOOD, (), 2)
    assert "response_format" in server.asked[0]
    other = serve(complete(None, ("look", {})))
    assert other.model(server="vllm").generate("Who?", tools=tools, output_type=SCHEMA).tool_calls
    assert "response_format" not in other.asked[0]  # there it would forbid calls
    assert "JSON Schema" in other.asked[0]["messages"][0]["content"]


def test_what_nothing_can_satisfy_is_not_asked(serve: Any) -> None:
    """A malformed schema, and options that exclude each other, are errors before anything is sent."""
    server = serve("{}")
    with pytest.raises(InvalidSchemaError):
        server.model().generate("?", json_mode=JsonMode(schema={"type": "strange"}))
    with pytest.raises(ModelError):
        server.model().generate("?", json_mode=JsonMode(), grammar=Grammar.literal("x"))
    with pytest.raises(ModelError):
        server.model().generate("?", tool_choice="required")
    assert server.asked == []


def test_empty_and_refused_answers(serve: Any, complete: Any) -> None:
    """An empty answer is asked for again; a refusal is a text, and no JSON."""
    assert serve("", "Hi").model().generate("?").attempts == 2
    refusal = complete(None, refusal="I must not.")
    assert serve(refusal).model().generate("?").text == "I must not."
    with pytest.raises(InvalidArgumentsError, match="refuses: I must not"):
        serve(refusal).model().generate("?", json_mode=JsonMode(schema=SCHEMA))
    with pytest.raises(ModelError, match="content_filter"):
        serve(complete("Half", finish="content_filter")).model().generate("?")


def test_batches_keep_their_order(serve: Any) -> None:
    """A batch is many requests, its results in order, errors in their places."""
    server = serve(lambda body: "" if body["messages"][0]["content"] == "3" else body["messages"][0]["content"])
    results = server.model(retries=0).generate_batch([str(number) for number in range(8)], return_errors=True)
    assert [getattr(each, "text", None) for each in results] == ["0", "1", "2", None, "4", "5", "6", "7"]
    assert isinstance(results[3], ParseError)
