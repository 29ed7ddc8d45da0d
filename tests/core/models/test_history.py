"""Conversations in the shape that a chat template takes, and templates that work too long."""

from __future__ import annotations

import tracemalloc

import pytest

from toolgrammar.core import Message, ToolCall
from toolgrammar.core.errors import ModelError
from toolgrammar.core.models import jinja, sandbox
from toolgrammar.core.models.chat_template import ChatTemplate
from toolgrammar.core.models.template_shape import message_shape

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
        "{{ '%999999999s'|format('x') }}",
        "{{ '{:>999999999}'.format('') }}",
        "{{ '{:>{w}}'.format('', w=10 ** 9) }}",
        "{{ 'a'.ljust(10 ** 9) }}",
        "{{ 'a'.center(10 ** 9) }}",
        "{{ 'a'.zfill(10 ** 9) }}",
        "{{ 'a'.encode().rjust(10 ** 9) }}",
        "{{ ('\t' * 1000).expandtabs(10 ** 7) }}",
        "{{ 'a'|center(10 ** 9) }}",
        "{{ 'a'|indent(10 ** 9, true) }}",
        "{{ [1]|batch(10 ** 9, 'x')|list }}",
        "{{ [1]|slice(10 ** 9)|list }}",
        "{{ ('a' * 9999).replace('a', 'b' * 9999) }}",
        "{{ ('a' * 9999)|replace('a', 'b' * 9999) }}",
        "{{ ('b' * 9999).join(('a' * 9999)|list) }}",
        "{{ ('a' * 9999)|list|join('b' * 9999) }}",
        "{{ ('a' * 9999).translate({97: 'b' * 9999}) }}",
        "{{ ('ab ' * 99999)|wordwrap(3) }}",
        "{{ ([[1] * 8000] * 8000)|tojson }}",
        "{{ [[1] * 8000] * 8000 }}",
        "{{ [[1] * 8000] * 8000 ~ '' }}",
        "{% set s = namespace(t=[1]) %}{% for i in range(60) %}{% set s.t = [s.t, s.t] %}{% endfor %}{{ s.t }}",
        "{% set s = namespace(t=[1]) %}{% for i in range(60) %}{% set s.t = s.t + s.t %}{% endfor %}",
        "{% for i in range(9000) %}{% set s = ('a' * 99999)|upper %}{% endfor %}",
    ],
)
def test_work_is_bounded(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops, powers, widths and growing texts end with an error, before they take memory."""
    monkeypatch.setattr(sandbox, "MAX_ROUNDS", 10_000)
    tracemalloc.start()
    try:
        with pytest.raises(Exception, match="template"):
            jinja.compile_template(source).render()
        assert tracemalloc.get_traced_memory()[1] < 10 * sandbox.MAX_TEXT
    finally:
        tracemalloc.stop()


def test_texts_within_the_bounds_are_made() -> None:
    """Widths, formats and lists as templates use them are as Jinja makes them."""
    source = (
        "{{ 'a'.ljust(5) }}|{{ 'a'|center(5) }}|{{ '{:>4}'.format('b') }}|{{ '%3s'|format('c') }}|{{ 'a\nb'|indent(2) }}"
        "|{{ [1, [2]] }}|{{ {'k': [1]}|tojson }}|{{ [1, 2]|join(', ') }}|{{ 'aba'.replace('a', 'cc') }}|{{ 'x y'|wordwrap(1) }}"
    )
    made = jinja.compile_template(source).render()
    assert made == 'a    |  a  |   b|  c|a\n  b|[1, [2]]|{"k": [1]}|1, 2|ccbcc|x\ny'


def test_a_template_may_append_to_its_own_lists() -> None:
    """Kimi K2's do; what the template was given stays as it is."""
    own = "{% set found = [] %}{% for m in messages %}{% set _ = found.append(m.role) %}{% endfor %}{{ found | join(' ') }}"
    messages = [{"role": "user", "content": [{"type": "text"}]}]
    assert jinja.compile_template(own).render(messages=messages) == "user"
    for given in ("messages", "messages[0].content"):
        for method in ("append(1)", "insert(0, 1)", "pop()", "extend([1])", "clear()", "sort()"):
            with pytest.raises(Exception, match="unsafe"):
                jinja.compile_template(f"{{{{ {given}.{method} }}}}").render(messages=messages)
    assert messages == [{"role": "user", "content": [{"type": "text"}]}]
    with pytest.raises(Exception, match="unsafe"):
        jinja.compile_template("{% set a = [1] %}{% set _ = a.extend(a) %}").render()


TEXT_AND_CALL = [
    Message("system", "Be brief."),
    Message("user", "Hi"),
    Message("assistant", "I look.", tool_calls=CALLS[:1]),
    Message("tool", "one", tool_call_id="call_1"),
    Message("assistant", "Done."),
    Message("user", "More"),
]
ALTERNATING = (
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role != 'system' and m.role != 'tool' and not m.tool_calls %}"
    "{% if (m.role == 'user') != (ns.n % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}"
)


def test_text_beside_calls_is_kept_where_roles_must_alternate() -> None:
    """In front of the assistant's next text, or as a turn of its own where there is none."""
    source = template(PLAIN, head=ALTERNATING)
    text = written(source, TEXT_AND_CALL)
    assert text.index("look") < text.index("[assistant I look.\n\nDone.]") < text.index("[user More]")
    assert "[assistant I look.]<call_1 look" in written(source, TEXT_AND_CALL[:4])
    unanswered = [*TEXT_AND_CALL[:4], Message("user", "More")]
    assert "[assistant I look.]<call_1 look" in written(source, unanswered)


def test_the_shape_of_a_template_that_refuses_tools_is_learned_without_them() -> None:
    """So its calls stay in the history; the tools are described in our words."""
    source = template(
        "{% if m.content %}[assistant {{ m.content }}]{% else %}" + PLAIN + "{% endif %}",
        head="{{ raise_exception('no') if tools }}",
    )
    assert message_shape(source).text == "before"
    assert not message_shape(source).shows_tools
    text = written(source, TEXT_AND_CALL, "OURS")
    assert "OURS" in text
    assert "[assistant I look.]<call_1 look" in text


def test_a_call_that_a_template_leaves_out_is_an_error() -> None:
    """Never is a call missing in silence; the error names it."""
    source = template(
        "{{ m.content }}{% for c in m.tool_calls %}{% if 'at' not in c.function.arguments %}<{{ c.function.name }}>{% endif %}{% endfor %}"
    )
    with pytest.raises(ModelError, match="leaves out calls of the history: look"):
        written(source)


def test_text_that_no_shape_keeps_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A template that writes no assistant's text but its calls: the rest is in the prompt, and a warning is logged."""
    source = PLAIN.join(
        (
            "{% for m in messages %}{% if m.tool_calls %}",
            "{% elif m.role != 'assistant' %}[{{ m.content }}]{% endif %}{% endfor %}",
        )
    )
    with caplog.at_level("WARNING"):
        assert "look" in written(source, TEXT_AND_CALL)
    assert "omits the assistant's text next to calls" in caplog.text


@pytest.mark.parametrize("condition", ["m.role != 'system'", "m.role != 'system' or not tools"])
def test_a_system_text_that_is_not_shown_goes_in_front_of_the_users(condition: str) -> None:
    """A template may leave out the system turn, or have it only without tools."""
    source = f"{{% for m in messages %}}{{% if {condition} %}}[{{{{ m.role }}}} {{{{ m.content }}}}]{{% endif %}}{{% endfor %}}{{{{ tools }}}}"
    assert "[user Be brief.\n\nHi]" in written(source, TEXT_AND_CALL[:2])
    hides_tools = "{% if messages[0].role != 'system' %}{{ tools }}{% endif %}{% for m in messages %}[{{ m.role }} {{ m.content }}]{% endfor %}"
    text = written(hides_tools, TEXT_AND_CALL[:2])
    assert "look" in text
    assert "[user Be brief.\n\nHi]" in text


def test_an_error_names_thinking_where_the_template_refuses_it() -> None:
    """The conversation itself is right."""
    source = template(PLAIN, head="{{ raise_exception('cannot be disabled') if enable_thinking is false }}")
    made = ChatTemplate(source, controls=(), bos="", eos="")
    with pytest.raises(ModelError, match="refuses the conversation: cannot be disabled") as caught:
        made.render_prompt(HISTORY, [TOOL], "", False)
    assert caught.value.hint is not None and caught.value.hint.endswith("or leave out thinking=False")
    assert "look" in written(source)
