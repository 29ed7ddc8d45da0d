"""Wire formats as data: every built-in format, formats of markup alone, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import CallEnd, GrammarError, ToolCall
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import format_data, format_names, get_format, read_format
from toolgrammar.tools.formats.template.format import TemplateFormat

#: What a description needs at least; the rest of a built-in format is left out.
MARKUP = (
    "name",
    "shape",
    "begin",
    "call",
    "separator",
    "finish",
    "parameter",
    "mark",
    "gap",
    "parallel",
    "names",
    "ids",
)
#: Built-in formats of which the markup alone does not say how calls are read.
NOT_DERIVED = {
    *("hunyuan-4", "iquest-q1", "k2-horizon", "kimi-k3", "glm-4.7", "glm-4.5", "gemma-4", "functiongemma"),
    *("functionary-v3.2", "harmony", "kimi-k2", "deepseek-v3", "command-r7b", "apertus", "inkling"),
}
ACME: dict[str, Any] = {
    "name": "acme",
    "begin": "<calls>\n",
    "call": '<call name="$name">$args</call>',
    "separator": "\n",
    "finish": "\n</calls>",
}


def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return city


@pytest.mark.parametrize("name", format_names())
def test_built_in_formats_are_data(name: str) -> None:
    """Each built-in format is read from its description, which is JSON."""
    wire = get_format(name)
    assert read_format(json.loads(json.dumps(format_data(wire)))) == wire


@pytest.mark.parametrize("name", [name for name in format_names() if name not in NOT_DERIVED])
def test_markup_is_enough(name: str) -> None:
    """Of most formats, the markup of a turn is enough to read what they write, in one piece and in many."""
    wire = get_format(name)
    assert isinstance(wire, TemplateFormat)
    described = read_format({key: value for key, value in format_data(wire).items() if key in MARKUP})
    tools = ToolSet(ToolSet.from_any([weather]))
    calls = [ToolCall(f"call0000{number}", "weather", {"city": "Oslo", "days": number}) for number in (1, 2)]
    text = described.render_calls(calls if wire.parallel else calls[:1])
    for cut in (1, 7, len(text)):
        parser = described.parser(tuple(tools), lambda call: call, lambda: "id")
        events = [event for at in range(0, len(text), cut) for event in parser.feed(text[at : at + cut])]
        events += parser.close()
        read = [dict(event.call.arguments) for event in events if isinstance(event, CallEnd)]
        assert read == [dict(call.arguments) for call in calls[: len(read)]] and len(read) == 1 + wire.parallel


def test_toml_by_path(tmp_path: Path) -> None:
    """The path of a TOML file stands for a format wherever a name does."""
    path = tmp_path / "acme.toml"
    path.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in ACME.items()))
    assert get_format(str(path)) == read_format(ACME) == read_format(path)
    text = '<calls>\n<call name="weather">{"city": "Oslo"}</call>\n</calls>'
    tools = ToolSet(ToolSet.from_any([weather]))
    assert tools.grammar(str(path), tool_choice="required").matches(text)
    assert tools.parse(text, str(path)).tool_calls[0].arguments == {"city": "Oslo"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name is missing"),
        ({"begin": "", "call": "$name: $args"}, "would look like text"),
        ({"shape": "yaml"}, "shape is not known"),
        ({"call": "<call>$args</call>"}, "placeholder for the name"),
        ({"beginn": "<x>"}, "unknown field 'beginn'"),
        ({"parallel": "yes"}, "parallel is 'yes'"),
        ({"head": "("}, "head is not a valid regular expression"),
        ({"thinking": {"begin": "<t>"}}, "thinking has no field 'begin'"),
        ({"shape": "tags"}, "parameter lacks"),
        ({"triggers": ["<calls>"], "head": "(?P<name>x)"}, "cannot parse its own call"),
    ],
)
def test_descriptions_that_are_refused(change: dict[str, Any], message: str) -> None:
    """A description that means nothing, or whose calls are not read as they are written, is refused with a hint."""
    with pytest.raises(GrammarError, match=message) as raised:
        read_format({**ACME, **change})
    assert raised.value.hint


def test_files_that_are_refused(tmp_path: Path) -> None:
    """Invalid TOML and a missing file are errors with the reason."""
    with pytest.raises(GrammarError, match="not valid TOML"):
        read_format("name = \n")
    with pytest.raises(GrammarError, match="no description"):
        get_format(str(tmp_path / "none.toml"))
