"""Conversations in the shape that a chat template takes, and templates that work too long."""

from __future__ import annotations

import pytest

from toolgrammar.core import Message, ToolCall
from toolgrammar.core.errors import ModelError
from toolgrammar.core.models import jinja
from toolgrammar.core.models.chat_template import ChatTemplate
from toolgrammar.core.models.history import message_shape

TOOL = {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}
CALLS = (ToolCall("call_1", "look", {"at": "x", "deep": [{"a": "y"}]}), ToolCall("call_2", "turn", {}))
HISTORY = [
    Message("user", "Hi"),
    Message("assistant", "Both.", tool_calls=CALLS, reasoning="Hm."),
    Message("tool", "one", tool_call_id="call_1"),
    Message("tool", "two", tool_call_id="call_2"),
]


def template(turn: str, result: str = "({{ m.name }} {{ m.tool_call_id }} {{ m.content }})", head: str = "") -> str:
    """A template from how it writes a turn with calls, and a result."""
    return (
        head + "{% for t in tools or [] %}{{ t.function.name }};{% endfor %}{% for m in messages %}"
        f"{{% if m.role == 'tool' %}}{result}{{% elif m.tool_calls %}}{turn}"
        "{% else %}[{{ m.role }} {{ m.content }}]{% endif %}{% endfor %}"
    )


def written(source: str, messages: list[Message] = HISTORY, tool_prompt: str = "") -> str:
    """Return the prompt that a template makes of a conversation."""
    made = ChatTemplate(source, controls=(), bos="", eos="")
    return "".join(text for text, _ in made.render_prompt(messages, [TOOL], tool_prompt, None))


EACH = "{% for c in m.tool_calls %}<{{ c.id }} {{ c.function.name }} ARGUMENTS>{% endfor %}"
PLAIN = EACH.replace("ARGUMENTS", "{{ c.function.arguments | tojson }}")
FULL = '{"at": "x", "deep": [{"a": "y"}]}'


def test_arguments_as_an_object_or_as_text() -> None:
    """Arguments are what the template makes JSON of: an object, its text, or an object of texts."""
    assert FULL in written(template("{{ m.content }}" + PLAIN))
    assert FULL in written(template("{{ m.content }}" + EACH.replace("ARGUMENTS", "{{ '' + c.function.arguments }}")))
    inner = "{% for k, v in c.function.arguments.items() %}<{{ k }}>{{ v }}</{{ k }}>{% endfor %}"
    text = written(template("{{ m.content }}" + EACH.replace("ARGUMENTS", inner)))
    assert '<at>x</at><deep>[{"a": "y"}]</deep>' in text


def test_content_of_a_turn_of_calls() -> None:
    """A template that writes calls only where there is no content gets none; the text is a turn before them."""
    source = template("{% if m.content is none %}" + PLAIN + "{% else %}[{{ m.content }}]{% endif %}")
    assert message_shape(source).empty is None
    text = written(source)
    assert text.index("[assistant Both.]") < text.index(FULL)


def test_ids() -> None:
    """Ids have the form that the template demands, and a result has that of its call."""
    nine = template(
        "{% for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception('9') }}{% endif %}{% endfor %}"
        + PLAIN
    )
    text = written(nine)
    assert f"(look {'call1'.rjust(9, '0')} one)" in text
    assert f"(turn {'call2'.rjust(9, '0')} two)" in text
    counted = template(
        "{% for c in m.tool_calls %}<{{ c.id }} {{ c.function.arguments | tojson }}>{% endfor %}", "({{ m.content }})"
    )
    assert "<functions.look:0 " in written(counted)
    assert "<functions.turn:1 " in written(counted)


def test_names_of_results_come_from_the_calls() -> None:
    """A result without a name has the name of its call."""
    assert "(look call_1 one)(turn call_2 two)" in written(template(PLAIN))


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_under_the_name_that_the_template_reads(key: str) -> None:
    """Reasoning is under one of the usual names."""
    assert "{Hm.}" in written(template("{{ '{' + m." + key + " + '}' if m." + key + " }}" + PLAIN))


def test_a_template_that_takes_reasoning_or_text() -> None:
    """Where both are refused, nothing is raised, and the text stays."""
    source = template(
        "{% if m.thinking and m.content %}{{ raise_exception('both') }}{% endif %}{{ m.thinking or m.content }}" + PLAIN
    )
    assert "Both." in written(source)


def test_variables_that_a_template_needs() -> None:
    """Firefunction's template reads the tools as JSON, and the time."""
    assert '"look"' in written(template(PLAIN, head="{{ functions }}{{ 'It is ' + datetime }}"))


def test_tools_that_a_template_cannot_describe() -> None:
    """Tools without descriptions get empty ones; where that does not help, our own words describe them."""
    described = template(
        PLAIN,
        head="{% for t in tools %}{% for p in t.function.parameters.properties.values() %}{{ '' + p.description }}{% endfor %}{% endfor %}",
    )
    assert "look;" in written(described, [Message("user", "Hi")])
    broken = template(PLAIN, head="{% if tools %}{{ raise_exception('no') }}{% endif %}")
    assert "[system OURS]" in written(broken, [Message("user", "Hi")], "OURS")


def test_a_refusal_names_the_message() -> None:
    """The error says which message, and why."""
    source = template(PLAIN, result="{{ raise_exception('no results') }}")
    with pytest.raises(ModelError, match=r"no results \(at message 3 of 4, of the tool\)"):
        written(source)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
        "{{ 'a' * 10 ** 9 }}",
        "{% set s = namespace(t='aa') %}{% for i in range(60) %}{% set s.t = s.t ~ s.t %}{% endfor %}",
        "{% set s = namespace(t='aa') %}{% for i in range(60) %}{% set s.t = s.t + s.t %}{% endfor %}",
        "{{ 2 ** 99999 }}",
        "{{ '%999999999d' % 1 }}",
    ],
)
def test_work_is_bounded(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops, powers and growing texts end with an error."""
    monkeypatch.setattr(jinja, "MAX_ROUNDS", 10_000)
    with pytest.raises(Exception, match="template"):
        jinja.compile_template(source).render()
