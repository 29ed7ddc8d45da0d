"""Values that a tool returned, and text that is copied, in schemas of a conversation."""

import itertools
import json
import re
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter

from toolgrammar.core import (
    Copied,
    Grammar,
    InvalidSchemaError,
    Message,
    Seen,
    ToolCall,
    UnsupportedSchemaError,
    of_conversation,
)
from toolgrammar.core.conversation.result_values import seen_values

ORDERS = '{"orders": [{"id": 5, "order_id": "O-17"}, {"id": 6, "order_id": "O-18", "by": {"id": 9}}], "total": 2}'


def result(text: str, call_id: str = "c1", **fields: Any) -> Message:
    """Return the result of a tool."""
    return Message("tool", text, tool_call_id=call_id, **fields)


def calls(*names: str) -> Message:
    """Return calls of tools, with the ids c1, c2, ..."""
    return Message("assistant", "", tool_calls=tuple(ToolCall(f"c{n}", name, {}) for n, name in enumerate(names, 1)))


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        (ORDERS, "order_id", ["O-17", "O-18"]),
        (ORDERS, "orders.id", [5, "5", 6, "6"]),
        (ORDERS, "by.id", [9, "9"]),
        (ORDERS, "id", [5, "5", 6, "6", 9, "9"]),
        (ORDERS, "total", [2, "2"]),
        (ORDERS, "orders", []),
        (ORDERS, "rder_id", []),
        ('{"ids": ["a", "b", "a"], "n": null, "b": true}', "ids", ["a", "b"]),
        ('{"b": true, "n": null}', "b", []),
        ("[{'order_id': 'P-1', 'ok': True}]", "order_id", ["P-1"]),
        (f"Two orders:\n```json\n{ORDERS}\n```\nAnd {{not JSON}}.", "order_id", ["O-17", "O-18"]),
        ("Order order_id: O-17 was sent, **order_id** = `O-18`.", "order_id", ["O-17", "O-18"]),
        ("order_id=12", "order_id", ["12", 12]),
        ("my_order_id: 5", "order_id", []),
        ("", "order_id", []),
        ("[" * 5_000, "order_id", []),
    ],
)
def test_values_of_a_result(text: str, key: str, values: list[Any]) -> None:
    """JSON of any shape, Python's notation of it, JSON inside of text, and text."""
    assert seen_values([calls("f"), result(text)], key) == values


def test_only_results_count() -> None:
    """Not the user's words, calls, or failures; with a tool, only its own results; the latest come first."""
    messages = [
        Message("user", '{"order_id": "U"}'),
        Message("assistant", '{"order_id": "A"}', tool_calls=(ToolCall("c0", "cancel", {"order_id": "C"}),)),
        result('{"order_id": "F"}', "c0", is_error=True),
        calls("list_orders", "list_returns"),
        result('{"order_id": "O"}', "c1"),
        result('{"order_id": "R"}', "c2"),
        result('{"order_id": "N"}', "c9", name="list_orders"),
    ]
    assert seen_values(messages, "order_id") == ["N", "R", "O"]
    assert seen_values(messages, "order_id", "list_orders") == ["N", "O"]


def test_arguments_of_calls_that_did_not_fail_count_if_asked() -> None:
    """Neither those of a failed call, nor of one without a result yet; with a tool, only its own calls."""
    inner = {"to": {"user_id": 7}, "all": [{"user_id": "U-8"}]}
    messages = [
        Message("assistant", "", tool_calls=(ToolCall("c1", "send", {"user_id": "U-1"}), ToolCall("c2", "see", inner))),
        result("sent", "c1"),
        result('{"user_id": "U-2"}', "c2"),
        Message("assistant", "", tool_calls=(ToolCall("c3", "send", {"user_id": "bad"}),)),
        result("no such user", "c3", is_error=True),
        Message("assistant", "", tool_calls=(ToolCall("c4", "send", {"user_id": "open"}),)),
    ]
    assert seen_values(messages, "user_id") == ["U-2"]
    assert seen_values(messages, "user_id", calls=True) == ["U-2", "U-1", 7, "7", "U-8"]
    assert seen_values(messages, "user_id", "send", calls=True) == ["U-1"]
    member = TypeAdapter(Annotated[str, Seen("user_id", calls=True)]).json_schema()
    assert member["x-seen"] == {"key": "user_id", "calls": True}
    grammar = Grammar.from_json_schema(of_conversation(member, messages))
    assert [one for one in ("U-1", "U-2", "7", "bad", "open", "send") if grammar.matches(json.dumps(one))] == [
        *("U-1", "U-2", "7"),
    ]


def test_a_schema_of_a_conversation() -> None:
    """Seen values are an enum beside the rest of the schema; without any, the schema has no value."""
    member = {"type": "string", "description": "An order.", "x-seen": {"key": "order_id", "tool": "f"}}
    schema = {"type": "object", "properties": {"id": member, "n": {"type": "integer", "x-seen": "orders.id"}}}
    grammar = Grammar.from_json_schema(of_conversation(schema, [calls("f"), result(ORDERS)]))
    for identity, number in itertools.product(("O-17", "O-18", "O-19", 5), (5, 6, 7, "5")):
        valid = identity in ("O-17", "O-18") and number in (5, 6)
        assert grammar.matches(json.dumps({"id": identity, "n": number})) == valid
    alone = Grammar.from_json_schema(of_conversation(schema, [calls("f")]))
    assert alone.matches("{}") and not alone.matches('{"id": "O-17"}')


TEXTS = ["To O-17, or x.y@z.de not.\nThat is", 'the question:\t"x" is \\ é']


@pytest.mark.parametrize("unit", ["words", "lines", "chars"])
@pytest.mark.parametrize("source", ["user", "all"])
def test_a_copy_is_a_part_of_a_text(unit: str, source: str) -> None:
    """Each run of units in a message is a copy, and nothing else is: by enumeration."""
    messages = [Message("user", TEXTS[0]), Message("system", "Be brief."), Message("user", TEXTS[1])]
    schema = {"type": "string", "x-copied": {"source": source, "unit": unit}}
    grammar = Grammar.from_json_schema(of_conversation(schema, messages))
    units = {"words": r"\w+(?:[^\w\s]\w+)*|\s+|[^\w\s]", "lines": r"[^\n]+|\n+", "chars": r"[\s\S]"}[unit]
    own = [*TEXTS, *(["Be brief."] if source == "all" else [])]
    copies = set()
    for text in own:
        parts = re.findall(units, text)
        copies |= {"".join(parts[i:j]) for i, j in itertools.combinations(range(len(parts) + 1), 2)}
    if unit == "words":
        copies = {copy.strip() for copy in copies} - {""}
    elif unit == "lines":
        copies = {copy.strip("\n") for copy in copies} - {""}
    for text in own:
        for i, j in itertools.combinations(range(len(text) + 1), 2):
            assert grammar.matches(json.dumps(text[i:j], ensure_ascii=False)) == (text[i:j] in copies), text[i:j]
    assert not grammar.matches('""') and not grammar.matches('"to question"')
    assert grammar.matches('"Be brief."') == (source == "all")


def test_the_place_of_a_copy() -> None:
    """Where a quotation stands, in each message that may be copied."""
    messages = [Message("user", "a rose is a rose"), Message("system", "a rose"), Message("user", "no rose")]
    assert Copied().find("rose", messages) == [(0, 2), (0, 12), (2, 3)]
    assert Copied("all").find("a rose", messages) == [(0, 0), (0, 10), (1, 0)]


def test_outside_of_a_conversation_the_keywords_are_refused() -> None:
    """They would constrain nothing."""
    for schema in ({"x-seen": "id"}, {"x-copied": "user"}):
        with pytest.raises(UnsupportedSchemaError, match="outside of a conversation"):
            Grammar.from_json_schema(schema)
    for malformed in (
        {"x-seen": ""},
        {"x-seen": {"tool": "f"}},
        {"x-seen": {"key": "a", "calls": 1}},
        {"x-copied": "me"},
        {"x-copied": {"unit": "words"}},
    ):
        with pytest.raises(InvalidSchemaError):
            Grammar.from_json_schema(malformed)
    with pytest.raises(InvalidSchemaError, match="unit='word'"):
        Copied(unit="word")
