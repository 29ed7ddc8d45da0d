"""llama.cpp's server under our grammar: an honest one, liars, and the real one."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolgrammar.core import BudgetError, Grammar, TextDelta, ToolCallError, load_model
from toolgrammar.core.generation import JsonMode
from toolgrammar.core.models.remote import RemoteFinish
from toolgrammar.tools import ToolSet

#: ChatML, as SmolLM2's template: it shows neither tools nor calls.
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LOOK = {
    "name": "look",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 9}},
        "required": ["city"],
    },
}
TOOLS = ToolSet.from_any([LOOK])
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 3}},
    "required": ["n"],
    "additionalProperties": False,
}
CALL = '<tool_call>\n{"name": "look", "arguments": {"city": "Bergen"}}\n</tool_call>'


class Llama:
    """The endpoints of llama.cpp's server; it writes the given texts.

    Args:
        texts: answers of ``/completion``, the last one for all further requests.
        probe: answer to the probe.
        template: the chat template.
        ends: other fields of the last event.
    """

    def __init__(self, *texts: str, probe: str = "qzx", template: str | None = TEMPLATE, **ends: Any) -> None:
        self.texts = list(texts)
        self.probe, self.template, self.ends = probe, template, ends
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def __call__(self, path: str, body: Any) -> httpx.Response:
        """Answer one request."""
        self.paths.append(path)
        if path == "/props":
            return httpx.Response(200, json={"chat_template": self.template, "bos_token": "", "eos_token": ""})
        if path == "/tokenize":
            return httpx.Response(200, json={"tokens": [1, 1, *body["content"].encode()]})
        end = {"stop": True, "stop_type": "eos", "tokens_evaluated": 9, "tokens_predicted": 7, "model": "m"}
        if "qzx" in body["grammar"]:
            return httpx.Response(200, json={"content": self.probe, **end})
        self.asked.append(body)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if not body["stream"]:
            return httpx.Response(200, json={"content": text, **end, **self.ends})
        pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
        events = [{"content": piece, "stop": False} for piece in pieces] + [{"content": "", **end, **self.ends}]
        data = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=data.encode())


def test_a_call_is_constrained_by_our_grammar(serve: Any) -> None:
    """The prompt is rendered here, the grammar is that of the turn, and the answer says so; the probe is sent once."""
    native = Llama(CALL)
    server = serve("never asked", native=native)
    model = server.model(server="llama.cpp")
    for _ in range(2):
        answer = model.generate("Go", tools=TOOLS, tool_choice="required", max_tokens=50, top_k=4)
        assert answer.tool_calls[0].arguments == {"city": "Bergen"}
        assert (answer.form, answer.guarantee, answer.left_out, answer.attempts) == ("grammar", "constrained", (), 1)
    assert answer.usage.completion_tokens == 7 and answer.finish_reason == "tool_calls"
    assert native.paths.count("/props") == 1 and not server.asked
    body = native.asked[0]
    prompt = bytes(body["prompt"][1:]).decode()  # one first token of two
    assert prompt.endswith("<|im_start|>user\nGo<|im_end|>\n<|im_start|>assistant\n") and '"look"' in prompt
    assert body["n_predict"] == 50 and body["top_k"] == 4 and "messages" not in body
    sent = Grammar.from_gbnf(body["grammar"])
    assert sent.matches(CALL) and not sent.matches(CALL.replace("look", "cook"))
    assert not sent.matches(CALL.replace("Bergen", "Bergenhusgate")) and not sent.matches("Hello")


def test_json_and_grammars_are_constrained(serve: Any) -> None:
    """Bounds of numbers, which the server's own translation of schemas may lose, and any grammar of the user."""
    native = Llama('{"n": 12}')
    model = serve("never asked", native=native).model(server="llama.cpp")
    assert model.generate_json("Go", SCHEMA) == {"n": 12}
    assert model.generate("Go", json_mode=JsonMode(schema=SCHEMA)).guarantee == "constrained"
    sent = Grammar.from_gbnf(native.asked[0]["grammar"])
    assert sent.matches('{"n": 3}') and not sent.matches('{"n": 2}')
    native.texts = ["yes"]
    answer = model.generate("Go", grammar=Grammar.from_regex("yes|no"))
    assert (answer.text, answer.guarantee) == ("yes", "constrained")


def test_streams_are_read(serve: Any) -> None:
    """Text before a call is handed on as it comes, and the end says what was enforced."""
    model = serve("never asked", native=Llama("I look. " + CALL)).model(server="llama.cpp")
    *events, end = model.stream("Go", tools=TOOLS)
    assert sum(isinstance(event, TextDelta) for event in events) > 1
    assert isinstance(end, RemoteFinish) and end.guarantee == "constrained" and end.reason == "tool_calls"


def test_a_constraint_that_gbnf_cannot_express_is_no_lie(serve: Any) -> None:
    """The server could not know it: the answer is asked for again, and the grammar is still sent."""
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    native = Llama("[1, 1]", "[1, 2]")
    model = serve("never asked", native=native).model(server="llama.cpp", retries=1)
    answer = model.generate("Go", json_mode=JsonMode(schema=schema, strict=False))
    assert (answer.text, answer.form, answer.attempts, len(native.asked)) == ("[1, 2]", "grammar", 2, 2)
    assert "differ" in answer.left_out[0] and answer.guarantee == "validated"


LIES = {
    "text": "Sure, I can look for you.",
    "an invented name": CALL.replace("look", "cook"),
    "an invented member": CALL.replace("city", "town"),
    "a bound ignored": CALL.replace("Bergen", "Bergenhusgate"),
    "a cut that is called an end": CALL[:40],
    "nothing": "",
    "bytes of another protocol": "\ufffd\x00",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
@pytest.mark.parametrize("live", [False, True])
def test_a_liar_is_caught_told_once_and_asked_otherwise(
    serve: Any, complete: Any, caplog: pytest.LogCaptureFixture, lie: str, live: bool
) -> None:
    """It passes the probe, answers 200, and does as it likes: the next form is sent, now and later, even with no
    retries."""
    native = Llama(lie)
    server = serve(complete(None, ("look", {"city": "Oslo"})), native=native)
    model = server.model(server="llama.cpp", retries=0)
    with caplog.at_level(logging.WARNING, "toolgrammar"):
        for _ in range(2):
            if live:
                *_, answer = model.stream("Go", tools=TOOLS, tool_choice="required")
                assert isinstance(answer, RemoteFinish)
            else:
                answer = model.generate("Go", tools=TOOLS, tool_choice="required")
                assert [call.arguments for call in answer.tool_calls] == [{"city": "Oslo"}]
            assert (answer.form, answer.guarantee) == ("tools", "validated")
    assert len(native.asked) == 1 and len(server.asked) == 2
    assert "That is not valid" not in json.dumps(server.asked)  # the lie is the server's, not the model's
    assert sum("ignored the form" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
@pytest.mark.parametrize("live", [False, True])
def test_a_server_that_only_lies_passes_nothing(serve: Any, lie: str, live: bool) -> None:
    """Neither form gives a valid call: the error says so, and a stream has passed no call on."""
    model = serve(lie or " ", native=Llama(lie)).model(server="llama.cpp", retries=1)
    passed: list[Any] = []

    def ask() -> None:
        if live:
            passed.extend(model.stream("Go", tools=TOOLS, tool_choice="required"))
        else:
            model.generate("Go", tools=TOOLS, tool_choice="required")

    with pytest.raises(ToolCallError):
        ask()
    assert all(isinstance(event, TextDelta) for event in passed)


def test_a_valid_answer_outside_of_the_grammar_is_no_constrained_one(serve: Any) -> None:
    """The value is right by luck: it is returned as validated, and the server is trusted no more."""
    native = Llama('Here: {"n": 12}')
    server = serve('{"n": 13}', native=native)
    model = server.model(server="llama.cpp")
    answer = model.generate("Go", json_mode=JsonMode(schema=SCHEMA))
    assert json.loads(answer.text) == {"n": 12} and answer.guarantee == "validated" and answer.left_out
    assert model.generate_json("Go", SCHEMA) == {"n": 13} and len(native.asked) == 1


@pytest.mark.parametrize(
    "native",
    [
        Llama("never", probe="Once upon"),
        Llama("never", template=None),
        Llama("never", template="{% if %}"),
        Llama("never", template=TEMPLATE + "<think>"),
        lambda path, body: httpx.Response(501, json={"error": "disabled"}),
        lambda path, body: httpx.Response(200, text="<html>"),
        lambda path, body: httpx.Response(200, json=[]),
    ],
    ids=["ignores the probe", "no template", "broken template", "reasons", "refuses", "a page", "a list"],
)
def test_a_server_without_grammars_is_asked_as_before(serve: Any, complete: Any, native: Any) -> None:
    """Its answers are validated."""
    server = serve(complete(None, ("look", {"city": "Oslo"})), native=native)
    answer = server.model(server="llama.cpp").generate("Go", tools=TOOLS)
    assert (answer.form, answer.guarantee, len(server.asked)) == ("tools", "validated", 1)


def test_a_refused_grammar_is_remembered(serve: Any, complete: Any) -> None:
    """The server cannot load it: the next form is tried at once."""
    honest, refused = Llama("never"), []

    def native(path: str, body: Any) -> httpx.Response:
        if path != "/completion" or "qzx" in body["grammar"]:
            return honest(path, body)
        refused.append(body)
        return httpx.Response(400, json={"error": {"message": "failed to parse grammar"}})

    server = serve(complete(None, ("look", {"city": "Oslo"})), native=native)
    model = server.model(server="llama.cpp")
    assert [model.generate("Go", tools=TOOLS).form for _ in range(2)] == ["tools", "tools"]
    assert len(refused) == 1


def test_a_cut_call_does_not_run(serve: Any) -> None:
    """The server says that its budget ended; the call is marked, or the answer is an error, and the server trusted."""
    native = Llama(CALL[:60], stop_type="limit")
    model = serve("never asked", native=native).model(server="llama.cpp")
    (call,) = model.generate("Go", tools=TOOLS, tool_choice="required", max_tokens=7).tool_calls
    assert call.cut == ("",) and call.error
    native.texts = ['{"n"']
    with pytest.raises(BudgetError):
        model.generate_json("Go", SCHEMA, max_tokens=7)
    assert len(native.asked) == 2


def test_what_gbnf_cannot_say_is_told(serve: Any) -> None:
    """A constraint that is checked afterwards is named, and the guarantee is no stronger than the check."""
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}
    model = serve("never asked", native=Llama("[1, 2]")).model(server="llama.cpp")
    answer = model.generate("Go", json_mode=JsonMode(schema=schema))
    assert (answer.form, answer.guarantee, answer.attempts) == ("grammar", "validated", 1) and answer.left_out


def test_a_grammar_that_cannot_be_exported_is_not_sent(serve: Any) -> None:
    """Its export is refused in bounded time, and the next form is requested."""
    model = serve('"a+"', native=Llama("never")).model(server="llama.cpp")
    assert model.generate("Go", json_mode=JsonMode(schema={"type": "string", "format": "regex"})).form == "json_schema"


@pytest.fixture(scope="module")
def llama_server(smollm2_file: Path) -> Iterator[str]:
    """The address of a real server of llama.cpp with SmolLM2."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="xllamacpp is not installed, which has llama.cpp's server")
    params = xllamacpp.CommonParams()
    params.model.path = str(smollm2_file)
    params.n_ctx, params.n_parallel, params.port = 2_048, 1, 0
    params.cpuparams.n_threads = 2
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@pytest.mark.slow
def test_a_real_server_writes_only_valid_answers(llama_server: str) -> None:
    """A model of 135 million parameters, at a temperature at which it writes noise, calls and answers right."""
    with load_model(f"openai:smollm2@{llama_server}", server="auto") as model:
        for seed in range(2):
            options = {"temperature": 2.0, "seed": seed, "max_tokens": 200}
            answer = model.generate("Weather in Oslo?", tools=TOOLS, tool_choice="required", **options)
            assert (answer.form, answer.guarantee, answer.attempts) == ("grammar", "constrained", 1)
            assert answer.tool_calls[0].name == "look" and len(answer.tool_calls[0].arguments["city"]) <= 9
            assert model.generate_json("A number?", SCHEMA, **options)["n"] >= 3
