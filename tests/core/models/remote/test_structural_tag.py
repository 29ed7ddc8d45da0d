"""Stock vLLM and SGLang under our grammar in a structural tag, and Ollama under a schema of calls; honest, and lying."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import pytest

from toolgrammar.core import Grammar
from toolgrammar.core.generation import JsonMode
from toolgrammar.core.models.remote import RemoteFinish
from toolgrammar.tools import ToolSet

TOOLS = ToolSet.from_any(
    [
        {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "maxLength": 9}},
                "required": ["city"],
            },
        }
        for name in ("look", "go")
    ]
)
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 3}},
    "required": ["n"],
    "additionalProperties": False,
}
CALL = '<tool_call>\n{"name": "look", "arguments": {"city": "Bergen"}}\n</tool_call>'


def tag_of(kind: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """The structural tag of a request, by the field of a kind of server."""
    if kind == "vllm":
        text = body.get("structured_outputs", {}).get("structural_tag")
        return None if text is None else json.loads(text)
    given = body.get("response_format", {})
    return given if given.get("type") == "structural_tag" else None


def grammar_in(tag: dict[str, Any] | None) -> Grammar:
    """The grammar of a structural tag, as its EBNF says it."""
    assert tag is not None and tag["type"] == "structural_tag" and tag["format"]["type"] == "grammar"
    return Grammar.from_ebnf(tag["format"]["grammar"])


def without_tools(kind: str, text: str) -> Any:
    """A server without a parser of calls: it refuses native tools, and writes a text."""

    def reply(body: dict[str, Any]) -> Any:
        if "tools" in body:
            return httpx.Response(400, json={"error": {"message": '"auto" tool choice requires a parser'}})
        return text if tag_of(kind, body) else "no tag"

    return reply


KINDS = pytest.mark.parametrize("kind", ["vllm", "sglang"])


@KINDS
def test_a_server_that_refuses_native_tools_gets_our_grammar(serve: Any, kind: str) -> None:
    """The tag is made of the tools and the choice; calls are parsed here, and the answer says that it was enforced."""
    server = serve(without_tools(kind, CALL))
    model = server.model(server=kind)
    answer = model.generate("Go", tools=TOOLS, tool_choice="required")
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Bergen"}]
    assert (answer.form, answer.guarantee, answer.left_out) == ("structural tag", "constrained", ())
    sent = server.asked[-1]
    assert "tools" not in sent and "tool_choice" not in sent and '"look"' in sent["messages"][0]["content"]
    grammar = grammar_in(tag_of(kind, sent))
    assert grammar.matches(CALL) and grammar.matches(CALL.replace("look", "go")) and not grammar.matches("Hello")
    assert grammar.matches(f"{CALL}\n{CALL}") and not grammar.matches(CALL.replace("Bergen", "Bergenhusgate"))
    *_, end = model.stream("Go", tools=TOOLS, tool_choice="look", parallel_tool_calls=False)
    assert isinstance(end, RemoteFinish) and (end.form, end.guarantee) == ("structural tag", "constrained")
    grammar = grammar_in(tag_of(kind, server.asked[-1]))
    assert grammar.matches(CALL) and not grammar.matches(CALL.replace("look", "go"))
    assert not grammar.matches(f"{CALL}\n{CALL}")


@KINDS
def test_grammars_formats_and_answers_beside_tools_are_constrained_at_once(serve: Any, kind: str) -> None:
    """No other field of these servers says them. Native tools and JSON stay first where they do."""
    server = serve("yes")
    model = server.model(server=kind)
    answer = model.generate("Go", grammar=Grammar.from_regex("yes|no"))
    assert (answer.text, answer.form, answer.guarantee) == ("yes", "structural tag", "constrained")
    server = serve('{"n": 12}')
    answer = server.model(server=kind).generate("Go", tools=TOOLS, output_type=SCHEMA)
    assert (answer.text, answer.form, answer.guarantee) == ('{"n": 12}', "structural tag", "constrained")
    grammar = grammar_in(tag_of(kind, server.asked[0]))
    assert grammar.matches('{"n": 12}') and grammar.matches(CALL) and not grammar.matches('{"n": 2}')
    answer = serve(CALL).model(server=kind).generate("Go", tools=TOOLS, tool_format="hermes", tool_choice="look")
    assert (answer.tool_calls[0].name, answer.form) == ("look", "structural tag")
    server = serve('{"n": 12}')
    answer = server.model(server=kind).generate("Go", json_mode=JsonMode(schema=SCHEMA))
    assert answer.form == "json_schema" and tag_of(kind, server.asked[0]) is None


@KINDS
def test_stop_strings_and_other_servers(serve: Any, kind: str) -> None:
    """A stop string may end a text inside of the grammar, so it is not sent beside one; other servers get no tag."""
    server = serve("yes")
    answer = server.model(server=kind).generate("Go", grammar=Grammar.from_regex("yes|no"), stop=("z", "e"))
    assert (answer.text, answer.guarantee) == ("yes", "constrained")
    assert tag_of(kind, server.asked[0]) is not None and "stop" not in server.asked[0]
    server.model(server="openai").generate("Go", grammar=Grammar.from_regex("yes|no"))
    assert tag_of(kind, server.asked[1]) is None


@KINDS
def test_unsaid_constraints_are_named_and_checked(serve: Any, kind: str) -> None:
    """EBNF cannot say that items differ: the answer is validated, and asked for again."""
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}

    def reply(body: dict[str, Any]) -> Any:
        if tag_of(kind, body) is None:
            return httpx.Response(400, json={"error": {"message": "no JSON here"}})
        return "[1, 1]" if len(body["messages"]) < 4 else "[1, 2]"

    answer = serve(reply).model(server=kind, retries=1).generate("Go", json_mode=JsonMode(schema=schema, strict=False))
    assert answer.text == "[1, 2]" and answer.form == "structural tag"
    assert answer.left_out and answer.guarantee == "validated"


LIES = {
    "text": "Sure, I can look for you.",
    "an invented name": CALL.replace("look", "cook"),
    "an invented member": CALL.replace("city", "town"),
    "a bound ignored": CALL.replace("Bergen", "Bergenhusgate"),
    "a cut that is called an end": CALL[:40],
}


@KINDS
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_server_that_ignores_the_tag_is_told_once_and_asked_otherwise(
    serve: Any, caplog: pytest.LogCaptureFixture, kind: str, lie: str
) -> None:
    """It takes the field, answers 200, and does as it likes: nothing invalid comes through."""
    server = serve(lambda body: lie if tag_of(kind, body) else CALL)
    model = server.model(server=kind, retries=0)
    with caplog.at_level(logging.WARNING, "toolgrammar"):
        for _ in range(2):
            answer = model.generate("Go", tools=TOOLS, tool_format="hermes", tool_choice="required")
            assert [call.arguments for call in answer.tool_calls] == [{"city": "Bergen"}]
            assert (answer.form, answer.guarantee) == ("prompt", "validated")
    assert [tag_of(kind, body) is not None for body in server.asked] == [True, False, False]
    assert "That is not valid" not in json.dumps(server.asked)
    assert sum("ignored the form 'structural tag'" in record.message for record in caplog.records) == 1


@KINDS
@pytest.mark.parametrize("lie", ["cook", "not JSON", "no call"])
def test_strict_tools_that_are_not_strict_are_followed_by_our_grammar(
    serve: Any, complete: Any, caplog: pytest.LogCaptureFixture, kind: str, lie: str
) -> None:
    """A parser of calls without a grammar writes what the model likes, although the tools are strict."""
    native = {
        "cook": complete(None, ("cook", {"city": "Bergen"})),
        "not JSON": complete(None, ("look", '{"city": Bergen')),
        "no call": complete("Sure!"),
    }[lie]
    server = serve(lambda body: native if "tools" in body else CALL)
    model = server.model(server=kind, retries=0, repair=False)
    with caplog.at_level(logging.WARNING, "toolgrammar"):
        for _ in range(2):
            answer = model.generate("Go", tools=TOOLS, tool_choice="required")
            assert [call.arguments for call in answer.tool_calls] == [{"city": "Bergen"}]
            assert (answer.form, answer.guarantee) == ("structural tag", "constrained")
    assert ["tools" in body for body in server.asked] == [True, False, False]
    assert sum("ignored the form 'strict tools'" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("is_honest", [True, False])
def test_guidance_gets_our_grammar_in_lark(serve: Any, is_honest: bool) -> None:
    """vLLM's guidance backend refuses structural tags, and so all requests that demand a call; it reads Lark."""

    def reply(body: dict[str, Any]) -> Any:
        if "grammar" in body.get("structured_outputs", {}):
            return CALL if is_honest else "Sure!"
        if "tools" in body or "structured_outputs" in body:
            return httpx.Response(400, json={"error": {"message": "Invalid grammar specification: 'triggers'"}})
        return CALL

    server = serve(reply)
    model = server.model(server="vllm", retries=0)
    answer = model.generate("Go", tools=TOOLS, tool_choice="required")
    assert [call.arguments for call in answer.tool_calls] == [{"city": "Bergen"}]
    told = [
        one["structured_outputs"]["grammar"] for one in server.asked if "grammar" in one.get("structured_outputs", ())
    ]
    grammar = Grammar.from_lark(told[-1])
    assert grammar.matches(CALL) and not grammar.matches(CALL.replace("Bergen", "Bergenhusgate"))
    if is_honest:
        assert (answer.form, answer.guarantee) == ("Lark grammar", "constrained")
    else:
        assert (answer.form, answer.guarantee) == ("prompt", "validated")


def test_a_server_that_takes_strict_tools_gets_no_lark(serve: Any, complete: Any) -> None:
    """It reads structural tags, so a refusal of one has another cause."""
    native = complete(None, ("look", {"city": "Bergen"}))
    refused = httpx.Response(400, json={"error": {"message": "the grammar is too large"}})
    replies = iter([native, refused, refused])
    server = serve(lambda body: next(replies, CALL))
    model = server.model(server="vllm", retries=0)
    for _ in range(2):
        assert model.generate("Go", tools=TOOLS, tool_choice="required").tool_calls
    assert not any("grammar" in body.get("structured_outputs", ()) for body in server.asked)


@KINDS
def test_a_keyword_that_strict_tools_do_not_enforce_is_no_lie(serve: Any, complete: Any, kind: str) -> None:
    """The second attempt has our grammar, which enforces it. The next request begins with native tools again."""
    native = complete(None, ("look", {"city": "Bergenhusgate"}))
    server = serve(lambda body: native if "tools" in body else CALL)
    model = server.model(server=kind, retries=1)
    for _ in range(2):
        answer = model.generate("Go", tools=TOOLS, tool_choice="required")
        assert (answer.form, answer.attempts) == ("structural tag", 2)
        assert answer.tool_calls[0].arguments == {"city": "Bergen"}
    assert ["tools" in body for body in server.asked] == [True, False, True, False]
    assert "not valid" in server.asked[1]["messages"][-1]["content"]


@pytest.mark.parametrize("choice", ["required", "look"])
def test_ollama_gets_a_schema_of_the_calls_that_it_has_to_make(serve: Any, choice: str) -> None:
    """Ollama knows no tool choice, but its ``format``, to which its OpenAI endpoint maps ``json_schema``."""
    call = {"name": "look", "arguments": {"city": "Bergen"}}
    server = serve(json.dumps([call] if choice == "required" else call))
    answer = server.model(server="ollama").generate("Go", tools=TOOLS, tool_choice=choice)
    assert [each.arguments for each in answer.tool_calls] == [{"city": "Bergen"}]
    assert (answer.form, answer.guarantee) == ("json_schema of calls", "validated")
    (sent,) = server.asked
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["look", "go"]
    grammar = Grammar.from_json_schema(sent["response_format"]["json_schema"]["schema"])
    assert grammar.matches(json.dumps([call])) is (choice == "required")
    assert grammar.matches(json.dumps(call)) is (choice == "look")
    assert not grammar.matches("[]") and not grammar.matches(json.dumps({**call, "name": "cook"}))
    assert not grammar.matches(json.dumps({**call, "arguments": {"city": "Bergenhusgate"}}))


def test_an_ollama_that_ignores_the_schema_is_told_once(
    serve: Any, complete: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its text is no call: from then on it gets the tools alone."""
    native = complete(None, ("look", {"city": "Bergen"}))
    server = serve(lambda body: "Sure!" if "response_format" in body else native)
    model = server.model(server="ollama", retries=0)
    with caplog.at_level(logging.WARNING, "toolgrammar"):
        for _ in range(2):
            answer = model.generate("Go", tools=TOOLS, tool_choice="required")
            assert [call.name for call in answer.tool_calls] == ["look"] and answer.form == "tools"
    assert ["response_format" in body for body in server.asked] == [True, False, False]
    assert sum("ignored the form 'json_schema of calls'" in record.message for record in caplog.records) == 1


def test_an_ollama_that_does_not_know_a_keyword_is_asked_without_it(serve: Any) -> None:
    """No request is sent twice."""

    def reply(body: dict[str, Any]) -> Any:
        if "minItems" in json.dumps(body):
            return httpx.Response(400, json={"error": {"message": "schema: minItems is not supported"}})
        return json.dumps([{"name": "look", "arguments": {"city": "Bergen"}}])

    server = serve(reply)
    answer = server.model(server="ollama").generate("Go", tools=TOOLS, tool_choice="required")
    assert answer.form == "json_schema of calls" and answer.tool_calls and len(server.asked) == 2


def test_ollama_keeps_native_tools_where_no_schema_can_say_the_calls(serve: Any, complete: Any) -> None:
    """A free choice, and references, which are relative to the root of their own schema."""
    server = serve(complete(None, ("look", {"city": "Bergen"})))
    assert server.model(server="ollama").generate("Go", tools=TOOLS).form == "tools"
    inner = {"$defs": {"c": {"type": "string"}}, "type": "object", "properties": {"city": {"$ref": "#/$defs/c"}}}
    tools = ToolSet.from_any([{"name": "look", "parameters": inner}])
    assert server.model(server="ollama").generate("Go", tools=tools, tool_choice="required").form == "tools"
    assert all("response_format" not in body for body in server.asked)


@pytest.mark.parametrize("values", [["a", "b"], [1, 2.5, None, True, {"x": 1}, ["y"]]])
@KINDS
def test_unique_items_of_few_values_are_constrained_after_an_invalid_answer(
    serve: Any, complete: Any, kind: str, values: list[Any]
) -> None:
    """Stock engines ignore ``uniqueItems`` in strict tools; the next request has the finite language as a grammar."""
    items = {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": 2}
    schema = {"type": "object", "properties": {"tags": items}, "required": ["tags"]}
    tools = ToolSet.from_any([{"name": "tag", "parameters": schema}])
    text = f'<tool_call>\n{{"name": "tag", "arguments": {{"tags": {json.dumps(values[:2])}}}}}\n</tool_call>'
    server = serve(complete(None, ("tag", {"tags": [values[0]] * 2})), text)
    answer = server.model(server=kind).generate("Go", tools=tools, tool_choice="required", parallel_tool_calls=False)
    assert (answer.form, answer.guarantee, answer.left_out) == ("structural tag", "constrained", ())
    assert answer.tool_calls[0].arguments == {"tags": values[:2]} and answer.attempts == len(server.asked) == 2
    grammar = grammar_in(tag_of(kind, server.asked[1]))
    assert grammar.matches(text) and not grammar.matches(text.replace(json.dumps(values[1]), json.dumps(values[0])))
