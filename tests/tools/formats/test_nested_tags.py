"""Arguments in nested tags: what a text is read as, and that grammar and reader agree."""

from __future__ import annotations

import random
from typing import Any

import pytest

from toolgrammar.core import ToolGrammarError
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import get_format, read_format

from .common import events_of

NS = "]<]minimax[>["
M3 = get_format("minimax-m3")


def element(name: str, *parts: str) -> str:
    """An element."""
    return f"{NS}<{name}>{''.join(parts)}{NS}</{name}>"


def turn(*parts: str, name: str = "f") -> str:
    """A turn of one call."""
    return f'{NS}<tool_call>\n{NS}<invoke name="{name}">{"".join(parts)}{NS}</invoke>\n{NS}</tool_call>'


def tools(**properties: Any) -> ToolSet:
    """One tool with these properties."""
    return ToolSet([Tool("f", "", {"type": "object", "properties": properties})])


WORD, COUNT = {"type": "string"}, {"type": "integer"}
POINT = {"type": "object", "properties": {"x": COUNT, "name": WORD}, "required": ["x"]}
EITHER = {"anyOf": [{"type": "object", "properties": {"x": COUNT}}, {"type": "object", "properties": {"x": WORD}}]}

#: Schema of the argument ``a``, text of its element, and its value; None: the grammar has no such text.
CASES = (
    (WORD, "\n a < b & c\n", "\n a < b & c\n"),
    (WORD, "5", "5"),
    (COUNT, "-14", -14),
    (COUNT, "x", None),
    (COUNT, "", None),
    (POINT, element("x", "5") + element("name", "<b>"), {"x": 5, "name": "<b>"}),
    (POINT, element("name", "b"), None),
    (POINT, '{"x": 5}', None),
    ({"type": "array", "items": WORD}, "", []),
    ({"type": "array", "items": WORD}, element("item", "") + element("item", "b"), ["", "b"]),
    ({"type": "array", "items": POINT}, element("item", element("x", "1")), [{"x": 1}]),
    ({"type": "array", "items": COUNT, "minItems": 2}, element("item", "1"), None),
    ({"type": "array", "prefixItems": [WORD], "items": COUNT}, element("item", "1") * 2, ["1", 1]),
    ({"type": "array", "items": COUNT, "uniqueItems": True}, "[1, 2]", [1, 2]),
    ({"type": "array", "items": COUNT, "uniqueItems": True}, "[1, 1]", None),
    ({"type": "object", "additionalProperties": WORD}, '{"k": "v"}', {"k": "v"}),
    ({"type": "object", "properties": {"x y": WORD}}, '{"x y": "v"}', {"x y": "v"}),
    ({"type": "object", "properties": {}}, "", {}),
    # A text is read over all alternatives: here ``5`` is the integer, so it is not the string of the other.
    (EITHER, element("x", "5"), {"x": 5}),
    (EITHER, element("x", "five"), {"x": "five"}),
    ({"type": ["string", "array"], "items": COUNT}, "", ""),
    ({"type": ["string", "array"], "items": COUNT}, "[]", []),
    ({"type": ["string", "array"], "items": COUNT}, element("item", "1"), [1]),
    ({"type": ["string", "integer"]}, "5", 5),
    ({"type": ["string", "integer"]}, '{"', '{"'),
    ({"type": ["string", "null"]}, "null", None),
    ({"type": ["array", "object"], "items": WORD, "properties": {"item": WORD}}, element("item", "x"), ["x"]),
    ({"type": ["array", "object"], "items": WORD, "properties": {"item": WORD}}, '{"item": "x"}', {"item": "x"}),
    ({"enum": [{"k": [1, "2"]}, "k", None]}, element("k", element("item", "1"), element("item", "2")), {"k": [1, "2"]}),
    ({"const": [[]]}, element("item", ""), [[]]),
)


@pytest.mark.parametrize(("schema", "text", "value"), CASES)
def test_what_an_element_is(schema: Any, text: str, value: Any) -> None:
    """A text is in the grammar if it is a value of the schema, and the parser reads this value, however it is cut."""
    given, written = tools(a=schema), turn(element("a", text))
    is_null = text == "null"
    assert given.grammar(M3).matches(written) == (value is not None or is_null)
    if value is None and not is_null:
        return
    message = given.parse(written, M3)
    assert message.tool_calls[0].arguments == {"a": value}
    assert message.tool_calls[0].error is None
    assert message.leniencies == ()
    sizes = random.Random(0)
    pieces = []
    rest = written
    while rest:
        size = sizes.randint(1, 6)
        pieces.append(rest[:size])
        rest = rest[size:]
    assert events_of(given, M3, pieces) == events_of(given, M3, [written])


def test_recursive_schemas() -> None:
    """A schema that refers to itself is elements of any depth."""
    node = {"type": "object", "properties": {"v": WORD, "kids": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
    given = ToolSet(
        [Tool("f", "", {"type": "object", "properties": {"t": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}})]
    )
    value: dict[str, Any] = {"v": "leaf"}
    text = element("v", "leaf")
    for depth in range(30):
        value = {"v": str(depth), "kids": [value]}
        text = element("v", str(depth)) + element("kids", element("item", text))
    written = turn(element("t", text))
    assert given.grammar(M3).matches(written)
    assert given.parse(written, M3).tool_calls[0].arguments == {"t": value}


def test_without_reasoning() -> None:
    """A turn may begin with the end of reasoning that it does not have; this is no text."""
    given = tools(a=WORD)
    for reasoning in ("none", "optional"):
        for text in ("Hello.", turn(element("a", "x"))):
            assert given.grammar(M3, reasoning=reasoning).matches("</mm:think>" + text)
    assert given.parse("</mm:think>Hello.", M3).text == "Hello."
    assert not given.grammar(M3).matches("Hel</mm:think>lo.")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (f"{NS}<a>cut", "text ends inside"),
        (element("a", "x") + element("a", "y"), "is repeated"),
        (f"{NS}<a>x{NS}</b>", "an element ends that is not open"),
        (element("a", "x" + element("b", "y")), "text beside an element"),
        (f"{NS}<a>" * 500, "more than 400 elements"),
    ],
)
def test_malformed_elements(body: str, problem: str) -> None:
    """What is no element is a call with an error, or the end of the text inside of one; nothing else is raised."""
    given = tools(a=WORD)
    written = turn(body) if "ends inside" not in problem else turn(body)[: turn(body).index("cut")]
    try:
        error = given.parse(written, M3).tool_calls[0].error
    except ToolGrammarError as raised:
        error = str(raised)
    assert problem in str(error)


def test_own_names_only() -> None:
    """Names that tags cannot have, and undeclared ones, are refused for the arguments themselves, by name."""
    with pytest.raises(ToolGrammarError, match="the name 'x y'"):
        ToolSet([Tool("f", "", {"type": "object", "properties": {"x y": WORD}, "required": ["x y"]})]).grammar(M3)
    open_tool = Tool("f", "", {"type": "object", "additionalProperties": WORD})
    with pytest.raises(ToolGrammarError, match="does not declare"):
        ToolSet([open_tool]).grammar(M3)


def test_described() -> None:
    """A format of this shape can be described as data."""
    acme = read_format({"name": "acme", "shape": "nested", "call": "<fn=$name>$args</fn>", "mark": "@@", "item": "li"})
    given = tools(a={"type": "array", "items": WORD})
    written = "<fn=f>@@<a>@@<li>x@@</li>@@</a></fn>"
    assert given.grammar(acme).matches(written)
    assert given.parse(written, acme).tool_calls[0].arguments == {"a": ["x"]}
    with pytest.raises(ToolGrammarError, match="need a mark"):
        read_format({"name": "acme", "shape": "nested", "call": "<fn=$name>$args</fn>"})


@pytest.mark.parametrize("kind", ["array", ["array", "object"]])
def test_another_element_among_items_is_refused(kind: Any) -> None:
    """It is neither an item nor a member."""
    some = tools(a={"type": kind, "items": COUNT, "additionalProperties": True})
    for parts in (["item", "other"], ["item", "item", "other", "item"]):
        text = turn(element("a", *(element(name, "1") for name in parts)), element("b", "1"))
        (call,) = some.parse(text, M3).tool_calls
        assert "the element 'other' stands among the items" in (call.error or "")


def test_an_item_among_members_is_a_member() -> None:
    """The first element has made it an object."""
    some = tools(a={"type": ["array", "object"], "additionalProperties": True})
    (call,) = some.parse(turn(element("a", element("x", "1"), element("item", "2"))), M3).tool_calls
    assert (dict(call.arguments), call.error) == ({"a": {"x": 1, "item": 2}}, None)
