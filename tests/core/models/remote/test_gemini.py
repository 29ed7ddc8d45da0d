"""Gemini's own API: requests and answers by the types of Google's package, and the ladder of its forms."""

from __future__ import annotations

import json
import logging
import random
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("google.genai", reason="google-genai is not installed")

from google import genai
from google.genai import types

from toolgrammar.core import (
    BudgetError,
    CallEnd,
    ContentFilterError,
    ContextOverflowError,
    Finish,
    ImagePart,
    JsonMode,
    Message,
    ModelError,
    ReasoningDelta,
    ServerFailureError,
    TextDelta,
    TextPart,
    ToolCall,
    errors,
    load_model,
)
from toolgrammar.core.models.remote import transport
from toolgrammar.core.models.remote.schema_dialects import GEMINI, strict_schema, with_notes
from toolgrammar.tools import ToolSet

from ....schemas import random_schema, random_value
from .gemini_server import TOO_MANY_STATES, Google, call, chunks, refusal, stream, text
from .test_remote_tools import ARGUMENTS, NAMES, TOOLS, check_calls

KEY = "AIza-very-secret-0123456789"
OSLO = {"city": "Oslo"}
SIGNATURE = "c2lnbmF0dXJl"
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def mode(body: dict[str, Any]) -> str | None:
    """The mode of function calls in a request."""
    found: str | None = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode")
    return found


def test_answers_are_those_of_the_package() -> None:
    """Text, thoughts, calls and counts of a stream are what Google's own client reads in it."""
    parts = [
        text("Oslo.", thought=True),
        text("Let me see."),
        call("weather", {"city": "Osló"}, SIGNATURE),
        call("lamp", {"on": True}),
    ]
    items = list(Google(parts).model().stream("Weather?", tools=TOOLS))
    through = httpx.Client(transport=httpx.MockTransport(lambda request: stream(chunks(parts))))
    client = genai.Client(api_key="key", http_options=types.HttpOptions(httpx_client=through))
    own = list(client.models.generate_content_stream(model="gemini", contents="Weather?"))
    read = [
        part
        for chunk in own
        for one in chunk.candidates or ()
        for part in (one.content.parts if one.content else None) or ()
    ]
    thoughts = [item.text for item in items if isinstance(item, ReasoningDelta)]
    assert "".join(thoughts) == "".join(part.text or "" for part in read if part.thought)
    texts = [item.text for item in items if isinstance(item, TextDelta)]
    assert "".join(texts) == "".join(part.text or "" for part in read if not part.thought)
    made = [item.call for item in items if isinstance(item, CallEnd)]
    assert [(one.name, one.arguments) for one in made] == [
        (part.function_call.name, part.function_call.args) for part in read if part.function_call
    ]
    counts, finish = own[-1].usage_metadata, items[-1]
    assert isinstance(finish, Finish) and counts is not None
    assert (finish.usage.prompt_tokens, finish.usage.cached_tokens) == (counts.prompt_token_count, 4)
    assert finish.usage.completion_tokens == (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
    assert finish.usage.reasoning_tokens == counts.thoughts_token_count


def test_whole_answers_are_read() -> None:
    """A compatible server that does not stream is understood."""
    whole = {"candidates": [{"content": {"parts": [text("Hi")]}, "finishReason": "STOP"}]}
    for body in (whole, [whole]):
        assert Google(httpx.Response(200, json=body)).model().generate("Hi").text == "Hi"


def test_conversations_are_sent_whole() -> None:
    """System prompt, images, calls, results and errors of tools are in the parts of the API; results are one turn."""
    server = Google([text("Fine.")])
    calls = (ToolCall("one", "weather", OSLO), ToolCall("", "lamp", {"on": True}))
    picture = (TextPart("See "), ImagePart(data=b"\x89PNG", media_type="image/png"), ImagePart(url="https://a.test/b"))
    history = [
        Message("system", "Be brief."),
        Message("user", picture),
        Message("assistant", "", tool_calls=calls),
        Message("tool", "Rain.", tool_call_id="one"),
        Message("tool", "Broken.", is_error=True),
        Message("user", "And now?"),
    ]
    server.model().generate(history, tools=TOOLS, max_tokens=50, stop=["X"], top_k=4, seed=3)
    (body,) = server.asked
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    user, said, results = body["contents"]
    assert [next(iter(part)) for part in user["parts"]] == ["text", "inlineData", "fileData"]
    assert [part["functionCall"]["id"] for part in said["parts"]] == ["one", "call_1_1"]
    assert results["parts"] == [
        {"functionResponse": {"id": "one", "name": "weather", "response": {"output": "Rain."}}},
        {"functionResponse": {"id": "call_1_1", "name": "lamp", "response": {"error": "Broken."}}},
        {"text": "And now?"},
    ]
    assert body["generationConfig"] == {"temperature": 0.0, "maxOutputTokens": 50, "seed": 3, "topK": 4}


@pytest.mark.parametrize("carried", [True, False])
def test_signatures_go_back(carried: bool) -> None:
    """A signature returns on its own part, also if the conversation comes back without it."""
    parts = [text("So:"), call("weather", OSLO, SIGNATURE, "one"), call("lamp", {"on": True}, None, "two")]
    server = Google(parts, [text("Rain.")])
    model = server.model()
    answer = model.generate("Weather?", tools=TOOLS)
    said = answer.message if carried else Message("assistant", answer.text, tool_calls=answer.tool_calls)
    results = [Message("tool", "ok", tool_call_id=one.id) for one in answer.tool_calls]
    model.generate([Message("user", "Weather?"), said, *results], tools=TOOLS)
    assert server.asked[1]["contents"][1]["parts"] == parts


def test_calls_of_other_models_are_signed() -> None:
    """Gemini refuses calls without a signature: they get the one that says so, and its own signatures stay."""

    def reply(body: dict[str, Any]) -> Any:
        turns = [part for turn in body["contents"] for part in turn["parts"] if "functionCall" in part]
        if any("thoughtSignature" not in part for part in turns):
            return refusal("Function call is missing a thought_signature in functionCall parts.")
        return (
            refusal("Corrupted thought signature.")
            if "old" in [part["thoughtSignature"] for part in turns]
            else [text("Rain.")]
        )

    history = [
        Message("user", "Weather?"),
        Message("assistant", "", tool_calls=(ToolCall("a", "weather", OSLO),)),
        Message("tool", "Rain", tool_call_id="a"),
    ]
    server = Google(reply)
    model = server.model()
    assert model.generate(history, tools=TOOLS).text == "Rain."
    assert server.asked[-1]["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
    model.generate(history, tools=TOOLS)
    assert len(server.asked) == 3


def test_calls_are_constrained_in_the_subset() -> None:
    """The strongest mode for each choice; bounds that the subset lacks are in descriptions, named, and checked."""
    for choice, wanted in (
        ("auto", {"mode": "VALIDATED"}),
        ("required", {"mode": "ANY"}),
        ("weather", {"mode": "ANY", "allowedFunctionNames": ["weather"]}),
    ):
        server = Google([call("weather", {"city": "X"})], [call("weather", OSLO)])
        answer = server.model(repair=False).generate("Go", tools=TOOLS, tool_choice=choice)
        assert (answer.form, answer.attempts) == ("strict tools", 2)
        assert answer.left_out == ("weather/properties/city/minLength",)
        assert server.asked[0]["toolConfig"]["functionCallingConfig"] == wanted
        sent = server.asked[0]["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]
        assert sent["properties"]["city"] == {"type": "string", "description": "{minLength: 2}"}
        assert sent["properties"]["days"] == {"type": "integer", "minimum": 1, "maximum": 9}
    server = Google([text("No.")])
    assert server.model().generate("Go", tools=TOOLS, tool_choice="none").text == "No."
    assert mode(server.asked[0]) == "NONE"


def test_constants_references_and_recursion() -> None:
    """A constant is a list of one value, a reference stands alone, and a recursive schema is told in words."""
    schema = {
        **CLOSED,
        "properties": {
            "a": {"$ref": "#/$defs/b", "description": "Its b.", "minLength": 1},
            "c": {"const": "x"},
            "d": {"const": True},
        },
        "$defs": {"b": {"type": "string"}},
    }
    sent, left_out = strict_schema(schema, GEMINI) or (None, ())
    assert sent["properties"] == {"a": {"$ref": "#/$defs/b"}, "c": {"enum": ["x"]}, "d": {}}
    assert set(left_out) == {"/properties/a/minLength", "/properties/d/const"}
    tree = {
        "type": "object",
        "properties": {"of": {"type": "array", "items": {"$ref": "#"}}},
        "additionalProperties": False,
    }
    server = Google([call("plant", {"of": [{"of": []}]})])
    answer = server.model().generate("Go", tools=ToolSet.from_any([{"name": "plant", "parameters": tree}]))
    assert answer.left_out == ("plant",) and answer.tool_calls
    assert '"items"' in server.asked[0]["tools"][0]["functionDeclarations"][0]["description"]


def test_the_subset_is_never_narrower() -> None:
    """Whatever is valid for a schema is valid for what is sent of it; ``jsonschema`` is the judge."""
    taken = checked = 0
    for seed in range(1500):
        rng = random.Random(seed)
        schema = random_schema(rng, rng.choice((2, 3)))
        closed = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
        found = strict_schema(closed, GEMINI)
        if found is None:
            continue
        taken += 1
        sent = with_notes(found[0], closed, found[1])
        for _ in range(8):
            value = {"a": random_value(rng)}
            if jsonschema.Draft202012Validator(closed).is_valid(value):
                assert jsonschema.Draft202012Validator(sent).is_valid(value), (closed, sent, value)
                checked += 1
    assert taken > 800 and checked > 800, (taken, checked)


def test_the_ladder() -> None:
    """Too many states: fewer keywords, then free calls, then everything in the prompt; the result is remembered."""
    said = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'

    def refusing(is_refused: Any) -> Any:
        def reply(body: dict[str, Any]) -> Any:
            if is_refused(body):
                return refusal(TOO_MANY_STATES)
            return [call("weather", OSLO)] if "tools" in body else [text(said)]

        return reply

    cases = [
        (lambda body: "minimum" in json.dumps(body.get("tools", "")).replace("{minimum", ""), "strict tools"),
        (lambda body: mode(body) == "VALIDATED", "tools"),
        (lambda body: "tools" in body, "prompt"),
    ]
    for is_refused, form in cases:
        server = Google(refusing(is_refused))
        model = server.model()
        answer = model.generate("Go", tools=TOOLS)
        assert (answer.form, answer.tool_calls[0].arguments) == (form, OSLO)
        asked = len(server.asked)
        model.generate("Go", tools=TOOLS)
        assert len(server.asked) == asked + 1


def test_answers_in_json() -> None:
    """JSON of a schema alone; beside functions only if the model takes it, else in the prompt."""
    server = Google([text('{"a": "b"}')])
    assert server.model().generate_json("Go", CLOSED) == {"a": "b"}
    config = server.asked[0]["generationConfig"]
    assert (config["responseMimeType"], config["responseJsonSchema"]) == ("application/json", CLOSED)
    server = Google([text('{"a": "b"}')])
    answer = server.model().generate("Go", tools=TOOLS, output_type=CLOSED)
    assert (answer.form, answer.text) == ("strict tools + json_schema", '{"a": "b"}')

    def reply(body: dict[str, Any]) -> Any:
        both = "tools" in body and "responseMimeType" in body["generationConfig"]
        said = "Function calling with a response mime type: 'application/json' is unsupported"
        return refusal(said) if both else [text('{"a": "b"}')]

    server = Google(reply)
    answer = server.model().generate("Go", tools=TOOLS, output_type=CLOSED)
    assert (answer.form, answer.text) == ("strict tools", '{"a": "b"}')
    assert "JSON Schema" in server.asked[-1]["systemInstruction"]["parts"][0]["text"]
    answer = Google([text("[1]")]).model().generate("Go", json_mode=JsonMode(schema={"type": "array"}))
    assert (answer.form, answer.text) == ("json_schema", "[1]")


@pytest.mark.parametrize(("asked", "budget"), [(True, -1), ("auto", -1), (False, 0), (512, 512)])
def test_thinking(asked: Any, budget: int) -> None:
    """Thinking has a budget, which the model chooses by -1; a model that refuses it is asked without."""
    server = Google([text("Yes.")])
    server.model().generate("Go", thinking=asked)
    assert server.asked[0]["generationConfig"]["thinkingConfig"] == {
        "thinkingBudget": budget,
        "includeThoughts": budget != 0,
    }

    def reply(body: dict[str, Any]) -> Any:
        refused = "thinkingConfig" in body["generationConfig"]
        return refusal("Budget 0 is invalid. This model only works in thinking mode.") if refused else [text("Yes.")]

    answer = Google(reply).model().generate("Go", thinking=asked)
    assert answer.left_out == ("thinkingConfig",)


def test_fields_of_the_user() -> None:
    """The user's fields override ours, those of ``generationConfig`` one by one."""
    server = Google([text("Yes.")])
    body = {"generationConfig": {"temperature": None, "mediaResolution": "MEDIA_RESOLUTION_LOW"}, "safetySettings": []}
    server.model(body=body).generate("Go", max_tokens=9)
    assert server.asked[0]["generationConfig"] == {"maxOutputTokens": 9, "mediaResolution": "MEDIA_RESOLUTION_LOW"}
    assert server.asked[0]["safetySettings"] == []
    with pytest.raises(ModelError, match="contents"):
        server.model(body={"contents": []})


def test_what_gemini_itself_could_not_read() -> None:
    """A malformed call is asked for again, also after text; cuts and withheld answers are told."""
    broken = stream(
        chunks([text("I will")], stop="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: x(")
    )
    server = Google(broken, [call("weather", OSLO)])
    answer = server.model().generate("Go", tools=TOOLS)
    assert (answer.attempts, answer.tool_calls[0].arguments) == (2, OSLO)
    assert "Malformed function call: x(" in json.dumps(server.asked[1]["contents"])
    with pytest.raises(BudgetError):
        Google(stream(chunks([text('{"a": ')], stop="MAX_TOKENS"))).model().generate_json("Go", CLOSED)
    with pytest.raises(ContentFilterError):
        Google(stream(chunks([text("I")], stop="SAFETY"))).model().generate("Go")
    blocked = stream([{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}])
    with pytest.raises(ContentFilterError, match="PROHIBITED_CONTENT"):
        Google(blocked).model().generate("Go")


def test_each_failure_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Status codes, limits, errors in streams and broken streams: one error each."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(transport.asyncio, "sleep", sleep)
    half = chunks([text("Half an answer")])[:2]
    cases: list[tuple[Any, type[Exception], str]] = [
        (refusal("API key not valid. Please pass a valid API key."), errors.AuthenticationError, "not valid"),
        (refusal("no", 403, "PERMISSION_DENIED"), errors.PermissionDeniedError, "denies access"),
        (refusal("models/gemini is not found", 404, "NOT_FOUND"), errors.NotFoundError, "is not found"),
        (refusal("quota", 429, "RESOURCE_EXHAUSTED", headers={"retry-after": "2"}), errors.RateLimitError, "429"),
        (refusal("overloaded", 503, "UNAVAILABLE"), ServerFailureError, "503"),
        (
            refusal("The input token count (9) exceeds the maximum number of tokens allowed (8)."),
            ContextOverflowError,
            "token count",
        ),
        (refusal("Request contains an invalid argument."), ModelError, "invalid argument"),
        (
            stream([*half, {"error": {"code": 503, "message": "The model is overloaded."}}], is_checked=False),
            ServerFailureError,
            "overloaded",
        ),
        (stream(half), ServerFailureError, "broke off.*Half"),
        (stream([{"what": 1}], is_checked=False), ModelError, "not one of Gemini's.*what"),
        (stream([{"candidates": [5]}], is_checked=False), ModelError, "not one of Gemini's"),
        (httpx.ReadTimeout("slow"), ModelError, "did not answer"),
    ]
    for reply, kind, words in cases:
        server = Google(reply)
        with pytest.raises(kind, match=words):
            server.model().generate("Hi")
    assert slept[:2] == [2.0, 2.0]
    server = Google(refusal("API key not valid. Please pass a valid API key."))
    with pytest.raises(errors.AuthenticationError):
        server.model().generate("Hi", tools=TOOLS)
    assert len(server.asked) == 1  # a wrong key is no reason for another form


def test_keys_are_never_shown(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The key comes from the environment for Google's own address only, in a header, and is shown nowhere."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    server = Google(refusal(f"API key not valid: {KEY}"))
    own = load_model("gemini:gemini", transport=httpx.MockTransport(server))
    for model, sent in ((own, KEY), (server.model(), None)):
        with pytest.raises(ModelError) as caught:
            model.generate("Hi")
        assert server.requests[-1].headers.get("x-goog-api-key") == sent
        assert KEY not in str(server.requests[-1].url) and "authorization" not in server.requests[-1].headers
        if sent is not None:
            shown = [repr(model), repr(vars(model)), str(caught.value), repr(caught.value), caplog.text]
            assert not any(KEY in one for one in shown)
        caplog.clear()


def test_the_window_is_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The context window is asked for, once."""
    server = Google([text("Hi")], facts={"name": "models/gemini", "inputTokenLimit": 1_048_576})
    model = server.model()
    assert model.context_window == 1_048_576 and model.generate("Hi").text == "Hi"
    assert [request.method for request in server.requests] == ["GET", "POST"]


@given(st.data())
def test_a_lying_server_passes_nothing_invalid(data: Any) -> None:
    """Whatever a server sends in the mode that promises valid calls: calls are valid, or there is an error."""
    part = st.one_of(
        st.builds(call, NAMES, ARGUMENTS),
        st.builds(text, st.text(max_size=5)),
        st.builds(call, st.just("weather"), st.sampled_from([[1], "a", None, 5])),
    )
    answers = data.draw(st.lists(st.lists(part, max_size=3), min_size=1, max_size=3))
    stop = data.draw(st.sampled_from(["STOP", "MAX_TOKENS", "OTHER", "MALFORMED_FUNCTION_CALL"]))
    replies = [stream(chunks(one, stop=stop), is_checked=False) for one in answers]
    check_calls(Google(*replies).model())
