"""Turns that begin as a call in the spelling of another family: held to the call, and read as one."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest

from toolgrammar.core import CallEnd, Seen, TextDelta
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import format_names, get_format

from .common import EVERY


def get_weather(city: str, days: int = 1) -> str:
    """Get the weather."""
    return f"{city}, {days}"


def ping() -> str:
    """Ping."""
    return "pong"


TOOLS = ToolSet([get_weather, ping])
PARIS = ("get_weather", {"city": "Paris", "days": 2})
PING: tuple[str, dict[str, Any]] = ("ping", {})

#: Texts of other families, and their calls.
SPELLED = (
    (
        '```json\n{\n  "name": "get_weather",\n  "arguments": {\n    "city": "Paris",\n    "days": 2\n  }\n}\n```',
        [PARIS],
    ),
    ('{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}', [PARIS]),
    ('{"type": "function", "name": "get_weather", "parameters": {"city": "Paris", "days": 2}}', [PARIS]),
    ('```\n{"name": "ping", "arguments": {}}\n```\n```\n{"name": "ping", "arguments": {}}\n```', [PING, PING]),
    (
        '[{"name": "ping", "arguments": {}}, {"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}]',
        [PING, PARIS],
    ),
    ('<function=get_weather>{"city": "Paris", "days": 2}</function>', [PARIS]),
    (
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>",
        [PARIS],
    ),
    ("<function=ping>\n</function>", [PING]),
    ("```xml\n<function=ping>\n</function>\n```", [PING]),
    ('[get_weather(city="Paris", days=2), ping()]', [PARIS, PING]),
    ('```tool_code\nget_weather(city="Paris", days=2)\n```', [PARIS]),
    ("ping()", [PING]),
)

#: Texts that are no calls, although they begin alike.
PLAIN = (
    "Hello.",
    '{"name": "Paris", "arguments": {"a": 1}}',
    '{"name": "get_weather", "description": "Get the weather.", "parameters": {"type": "object"}}',
    '```json\n{"answer": "get_weather"}\n```',
    '```rust\n{"name": "ping", "arguments": {}}\n```',
    'An example:\n```json\n{"name": "get_weather", "arguments": {"town": 1}}\n```',
    'get_weather("Paris") is a function.',
    "ping is a tool.",
    "<function=other>{}</function>",
    "<function=get_weather>\n</function>",
)

#: Texts that begin as a call and are no valid one.
REFUSED = (
    '{"name": "get_weather", "arguments": {"town": "Paris"}}',
    '```json\n{"name": "get_weather", "arguments": {"city": 7}}\n```',
    '{"name": "get_weather", "arguments": "Paris"}',
    '{"name": "get_weather", "arguments": {"city": "Paris"}} is a call.',
    '<function=get_weather>{"city": 7}</function>',
    'get_weather(city="Paris", town=1)',
)


def _read(text: str, format: str = "hermes") -> tuple[list[tuple[str, dict[str, Any]]], str, list[str]]:
    """Return the calls in a text, what is text, and the names of the leniencies; the same in pieces."""
    found = []
    for pieces in ([text], list(text)):
        parser = TOOLS.parser(format, other_spellings=True)
        events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
        calls = [event.call for event in events if isinstance(event, CallEnd)]
        assert [call.error for call in calls] == [None] * len(calls)
        said = "".join(event.text for event in events if isinstance(event, TextDelta))
        found.append(([(call.name, dict(call.arguments)) for call in calls], said, [e.why for e in parser.leniencies]))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize(("text", "calls"), SPELLED)
def test_a_call_in_another_spelling_is_a_call(text: str, calls: list[Any]) -> None:
    """The grammar has it, and the parser reads it, in any pieces."""
    assert TOOLS.grammar("hermes", other_spellings=True).matches(text)
    assert _read(text) == (calls, "", ["other_spelling"])


@pytest.mark.parametrize("text", PLAIN)
def test_any_other_text_is_text(text: str) -> None:
    """JSON that names no tool, a tool's declaration and code are text, as without the option."""
    assert TOOLS.grammar("hermes", other_spellings=True).matches(text)
    assert TOOLS.grammar("hermes").matches(text)
    assert _read(text) == ([], text, [])


@pytest.mark.parametrize("text", REFUSED)
def test_from_its_head_on_it_is_held_to_the_call(text: str) -> None:
    """Invalid arguments cannot be written, nor text after the call."""
    assert not TOOLS.grammar("hermes", other_spellings=True).matches(text)
    assert TOOLS.grammar("hermes").matches(text)


def with_more(k: str, **extra: int) -> str:
    """Take further arguments."""
    return k


#: Parameters that a spelling with tags, or that of Python, cannot write.
UNSPELLED: dict[str, dict[str, Any]] = {
    "open": {"properties": {"k": {"type": "string"}}, "required": ["k"], "additionalProperties": True},
    "map": {"additionalProperties": {"type": "integer"}},
    "patterns": {"patternProperties": {"^x": {"type": "integer"}}},
    "space": {"properties": {"a b": {"type": "string"}}, "required": ["a b"]},
    "quote": {"properties": {'a"b': {"type": "string"}}, "required": ['a"b']},
    "end": {"properties": {"k": {"const": "</parameter>\n</function>"}}, "required": ["k"]},
}


@pytest.mark.parametrize("parameters", UNSPELLED.values(), ids=UNSPELLED.keys())
def test_a_spelling_leaves_out_the_tools_that_it_cannot_write(parameters: dict[str, Any]) -> None:
    """It refuses none; the other spellings, and its calls of other tools, are as before, in grammar and parser."""
    tools = ToolSet([{"name": "odd", "parameters": {"type": "object", **parameters}}, with_more, *TOOLS])
    grammar = tools.grammar("hermes", other_spellings=True)
    for text, calls in SPELLED:
        assert grammar.matches(text)
        parser = tools.parser("hermes", other_spellings=True)
        read = [event.call for event in (*parser.feed(text), *parser.close()) if isinstance(event, CallEnd)]
        assert [(call.name, dict(call.arguments), call.error) for call in read] == [(*call, None) for call in calls]
    assert grammar.matches('{"name": "with_more", "arguments": {"k": "v", "n": 3}}')
    for text in ("<function=odd>\n<parameter=k>", "<function=with_more>\n<parameter=k>\nv\n</parameter>\n</function>"):
        assert grammar.matches(text)
        parser = tools.parser("hermes", other_spellings=True)
        events = [*parser.feed(text), *parser.close()]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text


def test_an_open_tool_is_called_like_any_other() -> None:
    """A model whose format writes it answers an ordinary request."""
    text = '{"name": "with_more", "arguments": {"k": "v", "n": 3}}'
    for said in (text, f"<tool_call>\n{text}\n</tool_call>", f"```json\n{text}\n```"):
        out = ScriptedModel([said]).generate("Go.", tools=[with_more])
        assert [dict(call.arguments) for call in out.message.tool_calls] == [{"k": "v", "n": 3}]


@pytest.mark.parametrize("name", format_names())
def test_every_format_reads_what_its_grammar_has(name: str) -> None:
    """A text of the grammar is the format's own calls, calls in another spelling, or text, for every format."""
    wire = EVERY[name]
    grammar = TOOLS.grammar(wire, other_spellings=True)
    held = 0
    for text, calls in SPELLED:
        if not grammar.matches(text):
            continue
        parser = TOOLS.parser(wire, other_spellings=True)
        events = [*parser.feed(text), *parser.close()]
        read = [(event.call.name, dict(event.call.arguments)) for event in events if isinstance(event, CallEnd)]
        if parser.leniencies:
            assert read == calls
            held += 1
        else:  # the format's own, or text
            assert read in (calls, []), text
    assert held or get_format(name).text_marker or any(mark.startswith("```") for mark in wire.triggers)  # type: ignore[attr-defined]


def test_the_format_wins_where_it_writes_the_same() -> None:
    """Without a fence, JSON that a format writes itself has no leniency."""
    text = '{"name": "get_weather", "parameters": {"city": "Paris", "days": 2}}'
    assert _read(text, "llama-json") == ([PARIS], "", [])
    assert _read(f"```json\n{text}\n```", "llama-json") == ([PARIS], "", ["other_spelling"])


def test_a_model_that_writes_another_spelling_calls() -> None:
    """The answer is the call, with the leniency; the text is as it was written."""
    text = SPELLED[0][0]
    out = ScriptedModel([text]).generate("Weather?", tools=TOOLS)
    assert [(call.name, dict(call.arguments), call.error) for call in out.message.tool_calls] == [(*PARIS, None)]
    assert (out.text, out.raw, out.finish_reason) == ("", text, "tool_calls")
    assert [(edit.why, edit.start) for edit in out.message.leniencies] == [("other_spelling", 0)]


def test_what_it_gets_wrong_is_made_right() -> None:
    """From the head on, the model can write nothing but the call."""
    out = ScriptedModel(['{"name": "get_weather", "arguments": {"town": "Paris"}}']).generate("Weather?", tools=TOOLS)
    (call,) = out.message.tool_calls
    assert call.name == "get_weather" and "town" not in call.arguments and call.error is None


def test_it_can_be_turned_off() -> None:
    """Then it is text."""
    text = SPELLED[1][0]
    out = ScriptedModel([text]).generate("Weather?", tools=TOOLS, other_spellings=False)
    assert (out.text, out.message.tool_calls) == (text, ())


@pytest.mark.parametrize("options", [{"tool_choice": "none"}, {"output_type": True}])
def test_where_no_call_may_be_it_is_no_call(options: dict[str, Any]) -> None:
    """With ``tool_choice="none"``, and where text is JSON of a schema, JSON is text."""
    out = ScriptedModel([SPELLED[1][0]]).generate("Weather?", tools=TOOLS, **options)
    assert out.message.tool_calls == () and json.loads(out.text)["name"] == "get_weather"


def test_at_every_budget_the_call_is_whole() -> None:
    """Once it is certainly a call, it is completed; before, it is text."""
    text = SPELLED[0][0]
    seen = set()
    for budget in range(1, 130):
        out = ScriptedModel([text]).generate("Weather?", tools=TOOLS, max_tokens=budget)
        assert len(out.token_ids) <= budget
        calls = out.message.tool_calls
        assert [call.error for call in calls] == [None] * len(calls)
        seen.add(bool(calls))
    assert seen == {False, True}


def test_a_stop_string_ends_no_call() -> None:
    """Stop strings are looked for in text."""
    out = ScriptedModel([SPELLED[0][0]]).generate("Weather?", tools=TOOLS, stop=["Paris", "```"])
    assert [dict(call.arguments) for call in out.message.tool_calls] == [PARIS[1]]


def test_many_tools_have_the_json_spellings() -> None:
    """The others compile each schema, so they are for few tools; the head does not grow the parser."""
    tools = ToolSet([{"name": f"tool_{number}", "parameters": {"type": "object"}} for number in range(100)])
    grammar = tools.grammar("hermes", other_spellings=True)
    assert grammar.matches('{"name": "tool_77", "arguments": {}}')
    assert not grammar.matches('{"name": "tool_77", "arguments": []}')
    assert grammar.matches("tool_77()")  # text
    parser = tools.parser("hermes", other_spellings=True)
    assert not any(isinstance(event, CallEnd) for event in [*parser.feed("tool_77()"), *parser.close()])


def test_the_grammar_survives_its_json() -> None:
    """The beginnings that are excluded are in the data of the grammar, and in its source."""
    from toolgrammar.core import Grammar

    grammar = TOOLS.grammar("hermes", other_spellings=True)
    again = Grammar.loads(grammar.dumps())
    for text, _ in SPELLED:
        assert again.matches(text)
    for text in REFUSED:
        assert not again.matches(text)


def test_a_tool_that_is_not_offered_is_not_called() -> None:
    """Its call in another spelling is not held by the grammar, so the parser reads it as text."""

    def cancel(order_id: Annotated[str, Seen("order_id")]) -> str:
        """Cancel an order."""
        return order_id

    text = '{"name": "cancel", "arguments": {"order_id": 7}}'
    tools = ToolSet([cancel, ping])
    assert tools.grammar("hermes", other_spellings=True).matches(text)
    out = ScriptedModel([text]).generate("Cancel it.", tools=tools)
    assert (out.message.tool_calls, out.text) == ((), text)


def test_a_call_of_python_without_arguments_is_one_of_any_tool() -> None:
    """The grammar lets no text go on from there if arguments are required; in a tag such a text is text."""
    needs = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = ToolSet([Tool("f", "", needs), Tool("g", "", {**needs, "required": []})])
    grammar = tools.grammar("hermes", other_spellings=True)
    assert [grammar.matches(text) for text in ("f(", "f()", "f() is one", "g()", 'f(city="a")')] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert grammar.matches("<function=f>\n</function>") and grammar.matches("<function=g>\n</function>")
    for text, names in (("f()", ["f"]), ("<function=f>\n</function>", []), ("<function=g>\n</function>", ["g"])):
        parser = tools.parser("hermes", other_spellings=True)
        events = [*parser.feed(text), *parser.close()]
        assert [event.call.name for event in events if isinstance(event, CallEnd)] == names


@pytest.mark.parametrize("space", [0, 511, 512, 600, 3_000])
@pytest.mark.parametrize("call", ["g()", 'g(city="a")', '{"name": "g", "arguments": {}}', "<function=g>\n</function>"])
def test_a_call_behind_much_white_space_is_one_however_the_text_is_cut(space: int, call: str) -> None:
    """Also where the text ends before it has grown enough to be looked at again."""
    tools = ToolSet([Tool("g", "", {"type": "object", "properties": {"city": {"type": "string"}}})])
    text = "\n" * space + call
    for pieces in ([text], list(text), [text[:520], text[520:]]):
        parser = tools.parser("hermes", other_spellings=True)
        events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
        assert [event.call.name for event in events if isinstance(event, CallEnd)] == ["g"]


@pytest.mark.parametrize("name", ["größe", "数", "get_weather"])
@pytest.mark.parametrize("fence", ["", "```\n", "```python\n"])
def test_a_call_of_python_is_read_character_by_character(name: str, fence: str) -> None:
    """Its name may have letters of any script."""
    tools = ToolSet([Tool(name, "", {"type": "object", "properties": {}})])
    parser = tools.parser("hermes", other_spellings=True)
    events = [event for char in f"{fence}{name}()" for event in parser.feed(char)] + parser.close()
    assert [event.call.name for event in events if isinstance(event, CallEnd)] == [name]
