"""Literals of Python are read as Python reads them."""

from __future__ import annotations

import ast
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats.literals import PYTHON, read_literal

TOOLS = ToolSet(
    [
        Tool(
            "f",
            "",
            {"type": "object", "properties": {"any": {}, "number": {"type": "integer"}, "many": {"type": "array"}}},
        )
    ]
)

_NUMBERS = ("0", "1", "-2", "+3", "1_000", "1.5", "1.", ".5", "1e3", "1_0.2_5e-1_0", "0x10", "1__0", "1j", "007", "1_")
_STRINGS = ("''", "'a'", '"b"', "'''c'd'''", r"'\x41\n\N{EM DASH}\101'", r"'\N{NO SUCH}'", "b'a'", "'a' 'b'", "'\\\n'")
_ATOMS = st.sampled_from((*_NUMBERS, *_STRINGS, "True", "False", "None", "name", "...", ""))


def _bracketed(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts with items in brackets of each kind, with a comma after the last or not; some are no literals."""
    several = st.builds(
        lambda parts, last: ", ".join(parts) + last, st.lists(items, max_size=3), st.sampled_from(["", ","])
    )
    members = st.lists(st.builds("{}: {}".format, items, items), max_size=3).map(", ".join)
    return st.one_of(
        st.builds(lambda inner, pair: pair[0] + inner + pair[1], several, st.sampled_from(["[]", "()", "{}"])),
        members.map("{{{}}}".format),
    )


def _as_json(node: ast.expr) -> Any:
    """Return the JSON value of a literal: lists for tuples and sets, in their order.

    Raises:
        ValueError: it has none.
    """
    value = ast.literal_eval(node)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_as_json(item) for item in node.elts]
    if isinstance(node, ast.Set):
        items: dict[Any, ast.expr] = {}
        for item in node.elts:
            items.setdefault(ast.literal_eval(item), item)
        return [_as_json(item) for item in items.values()]
    if isinstance(node, ast.Dict):
        if len(value) < len(node.keys) or not all(isinstance(key, str) for key in value):
            raise ValueError("keys are repeated, or no strings")
        return dict(zip(value, map(_as_json, node.values), strict=True))
    if isinstance(value, (bytes, complex)) or value is ...:
        raise ValueError("JSON has no such value")
    return value


@settings(max_examples=600, deadline=None)
@given(st.recursive(_ATOMS, _bracketed, max_leaves=8))
def test_a_literal_has_the_value_that_python_gives_it(text: str) -> None:
    """What is read has Python's value; what Python reads is read, but for hexadecimal, strings side by
    side, and keys in brackets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = repr(_as_json(ast.parse(text, mode="eval").body))
        except (ValueError, TypeError, SyntaxError):
            expected = "refused"
    if "007" in text:  # which Python refuses
        return
    try:
        value = repr(read_literal(text, PYTHON))
    except ValueError:
        value = "refused"
    assert value == expected or (value == "refused" and any(mark in text for mark in ("0x", "' '", "):")))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1)", 1),
        ("((('a')))", "a"),
        ("(1,)", [1]),
        ("()", []),
        ("([1])", [1]),
        ("{1, 2}", [1, 2]),
        ("{1, 1.0, True}", [1]),
        ("{(1, 2), 'a'}", [[1, 2], "a"]),
        ("{}", {}),
        ("{'a': {3}}", {"a": [3]}),
    ],
)
def test_brackets_are_those_of_python(text: str, value: Any) -> None:
    """Round ones around one value without a comma say nothing; items of a set are there once."""
    assert read_literal(text, PYTHON) == value
    (call,) = TOOLS.parse(f"[f(any={text})]", "pythonic").tool_calls
    assert (dict(call.arguments), call.error) == ({"any": value}, None)


@pytest.mark.parametrize(
    "text", ["{[1]}", "{{1}}", "{({},)}", "{1: 2}", "{'a': 1, 2}", "{'a', 'b': 1}", "{a: 1}", "('a' 'b')"]
)
def test_what_is_no_value_is_refused(text: str) -> None:
    """No part of it is read."""
    with pytest.raises(ValueError):
        read_literal(text, PYTHON)
    assert TOOLS.parse(f"[f(any={text})]", "pythonic").tool_calls[0].error


@pytest.mark.parametrize(
    ("name", "text", "value"), [("any", "(555)", "(555)"), ("number", "(555)", 555), ("many", "(5,)", [5])]
)
def test_brackets_around_a_number_in_a_tag_make_no_array(name: str, text: str, value: Any) -> None:
    """A telephone number, say, in an argument that may be a string."""
    call = f"<tool_call>\n<function=f>\n<parameter={name}>\n{text}\n</parameter>\n</function>\n</tool_call>"
    assert TOOLS.parse(call, "qwen3-coder").tool_calls[0].arguments == {name: value}
