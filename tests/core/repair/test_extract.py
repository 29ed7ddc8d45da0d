"""Finding and repairing JSON in free text: spelling is corrected, an end that is missing never supplied."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import BudgetError, JsonMode, ParseError
from toolgrammar.core.repair import ends_early, extract_json
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(value=VALUES.filter(lambda value: isinstance(value, (dict, list, str))), data=st.data())
def test_beginnings_of_json_are_not_read(value: Any, data: st.DataObject) -> None:
    """No beginning of an object, an array or a string gives a value, however it is spelled, fenced or introduced."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, (dict, list)) and data.draw(st.booleans()):
        text = repr(value).replace("\\x", "\\\\x")
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    around = data.draw(st.sampled_from(["{}", "```json\n{}"] + ["Here it is: {}"] * (not isinstance(value, str))))
    assert ends_early(cut)
    for whole in (False, True):
        with pytest.raises(ParseError):
            extract_json(around.replace("{}", cut), repair=True, whole=whole)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('See [note]: {"a": 1}.', {"a": 1}),
        ("{'a': 'it\\'s', 'b': [1,],}", {"a": "it's", "b": [1]}),
        ('{"a": "it\'s {", b: 2}', {"a": "it's {", "b": 2}),
        ("{a: 1} or so", {"a": 1}),
        ('"a [ b"', "a [ b"),
        ("12", 12),
    ],
)
def test_what_is_read(text: str, value: Any) -> None:
    """Values alone, in fences, in prose, and in another spelling."""
    assert extract_json(text, repair=True) == value


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"b": 2', '{"x": [1, 2], "y": ', 'get({"a": 1}, b="cu', '{"a": 1}, "b": 2}']
)
def test_a_part_is_not_the_whole(text: str) -> None:
    """A value inside a cut value, or one that more follows, is not what was written."""
    with pytest.raises(ParseError):
        extract_json(text, repair=True, whole=True)


def test_calls_of_models_that_nothing_holds() -> None:
    """`ToolSet.parse` repairs the spelling of arguments, and leaves those that are not closed as errors."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    tools = ToolSet.from_any([{"name": "f", "parameters": schema}])
    for written, found in (("{'a': 1, 'b': 'x',}", {"a": 1, "b": "x"}), ('{"a": 1, "b": "x', None)):
        text = f'<tool_call>\n{{"name": "f", "arguments": {written}}}\n</tool_call>'
        for call in tools.parse(text, repair=True).tool_calls:
            assert (dict(call.arguments) if call.error is None else None) == found


def test_free_json_that_the_budget_cut() -> None:
    """A local model that nothing constrains: JSON that the budget cut is an error, not closed and handed over."""
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    mode = JsonMode(schema=schema, constrained_decoding=False)
    text = '{"a": [1, 22, 333]}'
    assert ScriptedModel([text]).generate("x", json_mode=mode, max_tokens=100).text == text
    for size in range(1, len(text)):
        with pytest.raises(BudgetError):
            ScriptedModel([text]).generate("x", json_mode=mode, max_tokens=size)
    with pytest.raises(BudgetError):
        ScriptedModel(["1234"]).generate("x", json_mode=JsonMode(schema=True, constrained_decoding=False), max_tokens=2)


@pytest.mark.timeout(60)
def test_long_texts_are_judged_in_linear_time() -> None:
    """A million quotes, brackets or backslashes are no trouble."""
    for unit in ('\\"', "'", "{' ", "[ ", "{'a': ", "} "):
        ends_early('{"a": "' + unit * 300_000)
        ends_early("[" + unit * 300_000)
