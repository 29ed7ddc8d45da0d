"""The envelope: what it carries, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import pytest

from toolgrammar.adapters._shared import require_no_policy
from toolgrammar.adapters.vllm import envelope
from toolgrammar.adapters.vllm.envelope import Tokens, in_conversation, is_envelope, read_envelope, refusal, wanted
from toolgrammar.core import Grammar, Message, Seen, Values
from toolgrammar.core.errors import (
    GrammarError,
    LiveValuesError,
    PolicyError,
    ToolGrammarError,
    UnsupportedSchemaError,
)
from toolgrammar.tools import ToolSet, program_tool

TOOLS = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }
    for name in ("one", "two")
]


def call(name: str, n: int = 1) -> str:
    """A call as Hermes models write it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{"n": {n}}}}}\n</tool_call>'


@pytest.mark.parametrize(
    ("options", "taken", "refused"),
    [
        ({}, ["hello", call("one"), call("one") + "\n" + call("two")], [call("three")]),
        ({"tool_choice": "required"}, [call("two")], ["hello", call("three")]),
        ({"tool_choice": "two"}, [call("two")], [call("one")]),
        ({"tool_choice": {"type": "function", "function": {"name": "one"}}}, [call("one")], [call("two"), "hello"]),
        ({"tool_choice": "none"}, ["hello"], []),
        ({"tool_choice": "required", "parallel_tool_calls": False}, [call("one")], [call("one") + "\n" + call("two")]),
        ({"response_schema": {"type": "integer"}}, ["12", call("one")], ["hello"]),
    ],
)
def test_what_an_envelope_allows(options: dict[str, Any], taken: list[str], refused: list[str]) -> None:
    """The grammar is the tool set's union grammar under the choice."""
    grammar = read_envelope(envelope(TOOLS, format="hermes", **options), Tokens()).grammar
    assert all(grammar.matches(text) for text in taken)
    assert not any(grammar.matches(text) for text in refused)


def test_tools_under_a_policy() -> None:
    """A tool set says what its policy allows in the conversation; an envelope that could not hold it is an error, and
    so is a policy beside the tools, which the engine would ignore."""
    tools, turn = ToolSet(TOOLS), [Message("user", "One of 7.")]
    under = tools.under({"tools": {"one": {"n": "user"}}})
    grammar = read_envelope(envelope(under.in_conversation(turn), format="hermes"), Tokens()).grammar
    assert grammar.matches(call("one", 7)) and not grammar.matches(call("one", 8)) and not grammar.matches(call("two"))
    for wrong in (under, tools.under({"tools": {"one": "ask"}}).in_conversation(turn)):
        with pytest.raises(PolicyError):
            envelope(wrong)
    assert envelope(tools) == envelope(tools.to_openai())
    require_no_policy({"other": 1})
    with pytest.raises(PolicyError, match="policy"):
        require_no_policy({"policy": {"tools": {}}})
    tag = under.in_conversation(turn).to_structural_tag("hermes", tool_choice="one")
    assert [Grammar.from_structural_tag(tag).matches(call("one", n)) for n in (7, 8)] == [True, False]


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ({"values": [7]}, [7]),
        ({"constant": 7}, [7]),
        ({"schema": {"maximum": 7}}, [1, 7]),
        ("never", []),
        ("user", [7]),
    ],
)
def test_rules_that_need_no_conversation(rule: Any, allowed: list[int]) -> None:
    """The envelope and the structural tag allow what the grammar does, whatever source a rule names."""
    under = ToolSet(TOOLS).under({"tools": {"one": {"n": rule}}}).in_conversation([Message("user", "One of 7.")])
    envelope_of, tag = envelope(under, format="hermes"), under.to_structural_tag("hermes", tool_choice="one")
    for grammar in (read_envelope(envelope_of, Tokens()).grammar, Grammar.from_structural_tag(tag), under.grammar()):
        assert [n for n in (1, 7, 8) if grammar.matches(call("one", n))] == allowed
        assert not grammar.matches(call("two"))


def test_callables_of_a_tool_set_are_refused_with_their_place() -> None:
    """Tool sets and conversations keep the keyword, so that nothing is dropped on the way to the engine."""

    def close(ticket: Annotated[str, Values(lambda: ["T-1"])], by: Annotated[str, Seen("user_id")] = "") -> str:
        """Close a ticket."""
        return ticket

    place = "tool 'close', at /properties/ticket, keyword 'x-values'"
    with pytest.raises(UnsupportedSchemaError, match=place):
        envelope(ToolSet([close]))
    tools, _ = in_conversation([next(iter(ToolSet([close]))).to_openai(live=True)], "auto", CONVERSATION)
    assert place in (refusal("GRAMMAR", envelope(tools)) or "")


@pytest.mark.parametrize(("most", "allowed"), [(2, 2), (16, 16), (None, 17)])
def test_the_bound_of_calls(most: int | None, allowed: int) -> None:
    """That of a tool set holds in the engine."""
    tools = ToolSet(TOOLS, max_calls=most)
    grammar = read_envelope(envelope(tools, format="hermes"), Tokens()).grammar
    for number in (1, 2, 3, 16, 17):
        text = "\n".join(call("one", n) for n in range(number))
        assert grammar.matches(text) == tools.grammar().matches(text) == (number <= allowed)


def test_the_grammar_of_programs() -> None:
    """A tool of programs keeps its grammar."""

    def find(name: str) -> list[str]:
        """Find people."""
        return [name]

    def text(program: str) -> str:
        return f'<tool_call>\n{{"name": "run_program", "arguments": {{"input": "{program}"}}}}\n</tool_call>'

    grammar = read_envelope(envelope(ToolSet([program_tool([find])]), format="hermes"), Tokens()).grammar
    assert grammar.matches(text("return find(name='Ann')")) and not grammar.matches(text("import os"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"toolgrammar": 2, "tools": []}', "version 2"),
        ('{"tools": []}', "version None"),
        ('{"toolgrammar": 1, "tool": []}', "unknown fields of the envelope: tool"),
        ('{"toolgrammar": 1, "tools": {}}', "tools of the envelope is {}"),
        ('{"toolgrammar": 1, "tools": [3]}', r"tools\[0\] of the envelope is 3"),
        ('{"toolgrammar": 1, "tools": [{"name": "now"}]}', r'tools\[0\] of the envelope is {"name": "now"}'),
        ('{"toolgrammar": 1, "tools": [{"type": "function", "function": {"name": 3}}]}', r"tools\[0\]"),
        ('{"toolgrammar": 1, "max_calls": 0}', "max_calls of the envelope is 0"),
        ('{"toolgrammar": 1, "parallel_tool_calls": 1}', "parallel_tool_calls of the envelope is 1"),
        ('{"toolgrammar": 1, "format": "unheard"}', "unknown tool format 'unheard'"),
        ('{"toolgrammar": 1, "format": 5}', "format of the envelope is 5"),
        ('{"toolgrammar": 1, "tools": [], "tool_choice": "required"}', "there are no tools"),
        ('{"toolgrammar": 1, "tools": [], "tool_choice": {"type": 3}}', "tool choice"),
        ('{"toolgrammar": 1, "thinking": "maybe"}', 'thinking of the envelope is "maybe"'),
        ('{"toolgrammar": 1, "thinking": ["none"]}', "thinking of the envelope"),
        ('{"toolgrammar": 1, "response_schema": 7}', "expected a schema"),
        ('{"toolgrammar": 1', "not JSON"),
    ],
)
def test_an_envelope_that_cannot_be_read_is_refused(text: str, said: str) -> None:
    """Nothing that was asked for is ignored, and the error names what is wrong, in the server's check too."""
    with pytest.raises(ToolGrammarError, match=said):
        read_envelope(text, Tokens())
    if is_envelope(text):
        assert re.search(said, refusal("GRAMMAR", text) or "")


def test_the_format_of_the_template_is_the_default() -> None:
    """Without a format, calls are written as the chat template shows."""
    template = '{% if tools %}<tool_call>{"name": ..., "arguments": ...}</tool_call>{% endif %}'
    grammar = read_envelope(envelope(TOOLS, tool_choice="one"), Tokens(template)).grammar
    assert grammar.matches(call("one"))


@pytest.mark.parametrize(
    ("kind", "text", "taken", "refused"),
    [
        (
            "JSON",
            '{"type": "array", "items": {"type": "integer"}, "uniqueItems": true, "not": {"maxItems": 1}}',
            "[1, 2]",
            "[1, 1]",
        ),
        ("JSON", '{"type": "object", "properties": {"a": {"type": "integer"}}}', '{"a": 1}', '{"b": 1}'),
        ("JSON_OBJECT", "", '{"a": [1]}', "[1]"),
        ("REGEX", "a{2,3}", "aa", "aaaa"),
        ("CHOICE", '["yes", "no"]', "no", "maybe"),
        ("GRAMMAR", 'root ::= "(" root ")" | "x"', "((x))", "((x)"),
        ("GRAMMAR", Grammar.from_gbnf('root ::= "(" root ")" | "x"').dumps(), "((x))", "((x)"),
        ("GRAMMAR", 'start: "(" start ")" | "x" // not ::=', "((x))", "((x)"),
        (
            "STRUCTURAL_TAG",
            '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"enum": [1, 2]}}}',
            "2",
            "3",
        ),
    ],
)
def test_request_types(kind: str, text: str, taken: str, refused: str) -> None:
    """Each of vLLM's request types becomes a grammar."""
    grammar = wanted(kind, text, Tokens()).grammar
    assert grammar.matches(taken) and not grammar.matches(refused)


@pytest.mark.parametrize(
    ("kind", "text"), [("JSON", "{"), ("JSON", '{"type": "colour"}'), ("REGEX", "(a"), ("GRAMMAR", 'start: "a')]
)
def test_a_request_that_cannot_be_met_is_refused(kind: str, text: str) -> None:
    """The refusal comes before the engine, and says why."""
    assert refusal(kind, text)


def test_an_unknown_type_is_refused() -> None:
    """A type of a later vLLM is no free text."""
    with pytest.raises(GrammarError):
        wanted("DIAGRAM", "", Tokens())


def test_an_envelope_is_short() -> None:
    """Defaults are left out."""
    assert set(json.loads(envelope(TOOLS))) == {"toolgrammar", "tools"}


def test_token_ids_wait_for_the_vocabulary() -> None:
    """A grammar that names tokens by id is not refused where no vocabulary is at hand."""
    assert refusal("GRAMMAR", "root ::= Token(3)") is None


def settled(keyword: str, value: Any) -> dict[str, Any]:
    """Return a tool with a keyword whose values a program or a conversation gives."""
    ticket = {"type": "string", keyword: value}
    parameters = {"type": "object", "properties": {"ticket": ticket}, "required": ["ticket"]}
    return {"type": "function", "function": {"name": "close", "parameters": parameters}}


@pytest.mark.parametrize(
    ("keyword", "hint"), [("x-values", "in another process"), ("x-seen", "in_conversation"), ("x-copied", "resolve")]
)
def test_live_values_are_refused_with_their_place(keyword: str, hint: str) -> None:
    """The engine runs in another process: the error names the tool, the place, and what to do instead."""
    tool = settled(keyword, "user" if keyword == "x-copied" else "tickets")
    schema = tool["function"]["parameters"]
    tag = {"format": {"type": "json_schema", "json_schema": schema}, "type": "structural_tag"}
    requests = {
        "GRAMMAR": [envelope([tool]), envelope([tool], tool_choice="required"), envelope([], response_schema=schema)],
        "JSON": [json.dumps(schema)],
        "STRUCTURAL_TAG": [json.dumps(tag)],
    }
    for kind, texts in requests.items():
        for number, text in enumerate(texts):
            said = refusal(kind, text)
            assert said is not None and hint in said and f"at /properties/ticket, keyword '{keyword}'" in said
            assert ("tool 'close'" in said) == (kind == "GRAMMAR" and number < 2)


CONVERSATION = [
    {"role": "user", "content": "Close it, it broke."},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "l", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": '{"tickets": ["T-1", "T-2"]}'},
]


def test_values_of_the_conversation() -> None:
    """Bound tools have the ids of the results and the words of the user; a tool without values is not offered."""
    seen, copied = settled("x-seen", "tickets"), settled("x-copied", "user")
    copied["function"]["name"] = "note"
    tools, schema = in_conversation([seen, copied], "auto", CONVERSATION, seen["function"]["parameters"])
    grammar = read_envelope(envelope(tools, format="hermes", response_schema=schema), Tokens()).grammar

    def text(name: str, ticket: str) -> str:
        return f'<tool_call>\n{{"name": "{name}", "arguments": {{"ticket": "{ticket}"}}}}\n</tool_call>'

    assert grammar.matches(text("close", "T-2")) and not grammar.matches(text("close", "T-3"))
    assert grammar.matches(text("note", "it broke")) and not grammar.matches(text("note", "it smashed"))
    assert grammar.matches('{"ticket": "T-1"}') and not grammar.matches('{"ticket": "T-3"}')
    assert [tool["function"]["name"] for tool in in_conversation([seen, copied], None, CONVERSATION[:1])[0]] == ["note"]
    with pytest.raises(LiveValuesError, match="no value for a required parameter"):
        in_conversation([seen, copied], "close", CONVERSATION[:1])
