"""Formats that are learned from a chat template: what it writes is admitted, read back, and shown in the history."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import Message, ToolCall
from toolgrammar.core.conversation import CallEnd, TextDelta
from toolgrammar.core.errors import ToolGrammarError, UnsupportedSchemaError
from toolgrammar.core.models.template_shape import message_shape, render, shaped
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import choose_format, detect_format, get_format
from toolgrammar.tools.formats.template.format import TemplateFormat

from .common import byte_vocabulary

GET = ToolSet([Tool("get", "", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})])

_HEAD = "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}"
_TURNS = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<bot>{{ m.content or '' }}CALLS<end>"
    "{% else %}<{{ m.role }}>{{ m.content }}<end>{% endif %}{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}"
)


def template(call: str, begin: str = "", between: str = "", finish: str = "") -> str:
    """A chat template that writes each call ``c`` of a turn in this way."""
    calls = (
        f"{{% if m.tool_calls %}}{begin}{{% for c in m.tool_calls %}}{call}"
        f"{{{{ '' if loop.last else {between!r} }}}}{{% endfor %}}{finish}{{% endif %}}"
    )
    return _HEAD + _TURNS.replace("CALLS", calls)


_NAME = "{{ c.function.name }}"
_JSON = "{{ c.function.arguments | tojson }}"
_OBJECT = '{"name": "' + _NAME + '", "arguments": ' + _JSON + "}"


def each(parameter: str, between: str = "") -> str:
    """The arguments of a call, one by one."""
    return f"{{% for k, v in c.function.arguments.items() %}}{parameter}{{{{ '' if loop.last else {between!r} }}}}{{% endfor %}}"


_VALUE = "{{ v if v is string else v | tojson }}"

#: Templates by what is special about them, with the name of the format that they have.
TEMPLATES = {
    "hermes in one line": ("hermes", template("<tool_call>" + _OBJECT + "</tool_call>", finish="\n")),
    "hermes, compact": (
        "hermes",
        template(
            '<tool_call>\n{"name": "' + _NAME + '", "arguments": '
            "{{ c.function.arguments | tojson(separators=(',', ':')) }}}\n</tool_call>"
        ),
    ),
    "text right before an object": (
        "template",
        template('{"name": "' + _NAME + '", "parameters": ' + _JSON + "}", between="; "),
    ),
    "indented": (
        "template",
        _HEAD
        + _TURNS.replace(
            "CALLS",
            "{% if m.tool_calls %}<|tool_call|>"
            "{{ m.tool_calls | map(attribute='function') | list | tojson(indent=4) }}{% endif %}",
        ),
    ),
    "tags with Python's words": (
        "qwen3-coder",
        template(
            "<tool_call>\n<function=" + _NAME + ">\n"
            + each("<parameter={{ k }}>\n{{ v | tojson if v is mapping or (v is iterable and v is not string) else v }}\n</parameter>\n")
            + "</function>\n</tool_call>", between="\n", finish="\n",
        ),
    ),
    "a list in unknown markers": ("template", template(_OBJECT, "<calls>[", ", ", "]</calls>")),
    "a name outside of the object": ("template", template("<@call>" + _NAME + "<@args>" + _JSON + "<@end>", between="\n")),
    "ids": ("template", template("<@call>{{ c.id }}<@name>" + _NAME + "<@args>" + _JSON + "<@end>", "<@calls>")),
    "unknown tags": (
        "template",
        template('<do name="' + _NAME + '">' + each('<arg key="{{ k }}">' + _VALUE + "</arg>") + "</do>", between="\n"),
    ),
    "strings that are marked": (
        "template",
        template(
            '<@do name="' + _NAME + '">\n'
            + each('<@arg name="{{ k }}" string="{{ \'true\' if v is string else \'false\' }}">' + _VALUE + "</@arg>", "\n")
            + "\n</@do>", "<@block>\n", "\n", "\n</@block>",
        ),
    ),
    "a name that is repeated": (
        "template",
        template(" to=" + _NAME + "<|msg|><do name=" + _NAME + ">" + each("<p={{ k }}>" + _VALUE + "</p>") + "</do>", between="<|eom|><|bot|>"),
    ),
    "calls of Python with JSON's values": (
        "template",
        template(_NAME + "(" + each("{{ k }}={{ v | tojson }}", ", ") + ")", "<py>", "\n", "</py>"),
    ),
    "arguments that have to be text": (
        "template",
        template("<@call>" + _NAME + "<@args>{{ '' + c.function.arguments }}<@end>"),
    ),
}  # fmt: skip

_TEXTS = st.text(st.sampled_from("ab \n\"'\\ü東🙂{}<>[],:="), max_size=8)
TOOLS = ToolSet(
    [
        Tool(
            "edit",
            "",
            {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "on": {"type": "boolean"},
                    "none": {"type": ["integer", "null"]},
                    "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
                "required": ["text"],
            },
        ),
        Tool("now", "", {"type": "object", "properties": {}}),
    ]
)


@st.composite
def calls(draw: st.DrawFn) -> list[ToolCall]:
    """One to three calls."""
    made = []
    for number in range(draw(st.integers(1, 3))):
        arguments: dict[str, object] = {"text": draw(_TEXTS)}
        if draw(st.booleans()):
            arguments |= {"on": draw(st.booleans()), "none": draw(st.none() | st.integers(-99, 99))}
        if draw(st.booleans()):
            arguments["list"] = [{"a": draw(_TEXTS)} for _ in range(draw(st.integers(0, 2)))]
        name = draw(st.sampled_from(["edit", "now"]))
        made.append(ToolCall(f"abcdefg{number:02}", name, arguments if name == "edit" else {}))
    return made


@pytest.mark.parametrize("case", TEMPLATES)
def test_the_format_is_learned(case: str) -> None:
    """A template has the name of the family whose parser reads it, or none."""
    name, source = TEMPLATES[case]
    found = detect_format(source)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("case", TEMPLATES)
@settings(max_examples=25, deadline=None)
@given(made=calls(), seed=st.integers(0, 99))
def test_what_the_template_writes_is_admitted_and_read(case: str, made: list[ToolCall], seed: int) -> None:
    """Calls that a template writes are in the grammar if the format can spell them, and come back in any pieces."""
    source = TEMPLATES[case][1]
    wire = choose_format(None, source)
    assert isinstance(wire, TemplateFormat)
    shape = message_shape(source)
    whole = render(
        source, [{"role": "user", "content": "Q"}, *shaped([Message("assistant", "", tool_calls=tuple(made))], shape)]
    )
    body = whole.rpartition("<bot>")[2].removesuffix("<end>")
    end = getattr(wire, "parameter_end", None)
    texts = [value for call in made for value in (call.arguments.get("text"),) if isinstance(value, str)]
    if end is not None and any(end in text or text != text.strip("\n") for text in texts):
        return  # cannot be spelled, or loses its newlines between tags
    grammar = TOOLS.grammar(wire, tool_choice="required")
    assert grammar.matches(body), body
    chance = random.Random(seed)
    for size in (len(body), chance.randint(1, 7)):
        parser = TOOLS.parser(wire)
        events = [event for at in range(0, len(body), size) for event in parser.feed(body[at : at + size])]
        events += parser.close()
        read = [event.call for event in events if isinstance(event, CallEnd)]
        assert [(call.name, dict(call.arguments), call.error) for call in read] == [
            (call.name, dict(call.arguments), None) for call in made
        ], body


def test_text_right_before_an_object() -> None:
    """Where text stands before a bare object, the object's beginning is the marker: text with other braces is text."""
    wire = choose_format(None, TEMPLATES["text right before an object"][1])
    call = '{"name": "now", "parameters": {}}'
    for text in ("Saying.", 'A {"set": 1}', '{"name": '):
        for pieces in ([text + call], list(text + call)):
            parser = TOOLS.parser(wire)
            events = [event for piece in pieces for event in parser.feed(piece)] + list(parser.close())
            assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
            assert [event.call.name for event in events if isinstance(event, CallEnd)] == ["now"]
        assert TOOLS.grammar(wire).matches(text + call)
    assert not TOOLS.grammar(wire).matches('Saying. {"name": "then", "parameters": {}}')
    answer: dict[str, object] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    with pytest.raises(ToolGrammarError, match="cannot distinguish this JSON answer from calls"):
        TOOLS.grammar(wire, response_schema=answer)
    answer["properties"] = {"name": {"enum": ["said"]}}
    assert TOOLS.grammar(wire, response_schema=answer).matches('{"name": "said"}')
    assert TOOLS.parse('{"name": "said"}', wire, response_schema=answer).text == '{"name": "said"}'
    assert TOOLS.parse(call, wire, response_schema=answer).tool_calls[0].name == "now"


def test_a_template_that_writes_no_calls_shows_its_signs() -> None:
    """Where a template has no place for calls, the words in it decide."""
    assert detect_format("{{ tools }} answer in <tool_call> {{ messages[0].content }}").name == "hermes"  # type: ignore[union-attr]
    assert detect_format("{{ messages[0].content }}") is None


def test_a_broken_template_shows_its_signs() -> None:
    """A template that cannot be compiled raises nothing here."""
    assert detect_format("{% if %} tools <tool_call>").name == "hermes"  # type: ignore[union-attr]


def test_a_spelling_that_no_grammar_can_have_is_not_learned() -> None:
    """Strings without quotes between commas: no format, so that the library's own prompt replaces the template's."""
    garbled = template(_NAME + "(" + each("{{ k }}={{ v }}") + ")", "[", ", ", "]")
    assert detect_format(garbled) is None


@pytest.mark.parametrize("name", ["pythonic", "llama-4", "olmo-3", "lfm2"])
@settings(max_examples=60, deadline=None)
@given(key=st.text(st.characters(codec="utf-8"), min_size=1, max_size=4))
def test_names_of_arguments_that_the_grammar_admits_are_read(name: str, key: str) -> None:
    """Any name of an undeclared argument that a format of Python's syntax admits, its parser reads."""
    wire = get_format(name)
    assert isinstance(wire, TemplateFormat)
    wire = wire.with_special(())
    tools = ToolSet([Tool("g", "", {"type": "object"})])
    text = f"{wire.begin}g({key}=1){wire.finish}"
    for spelled in (text, f"{wire.begin}g(a{key}=1){wire.finish}"):
        if tools.grammar(wire, tool_choice="required").matches(spelled):
            (call,) = tools.parse(spelled, wire).tool_calls
            assert (call.error, len(call.arguments)) == (None, 1)


@pytest.mark.parametrize("name", ["qwen3-coder", "glm-4.5", "minimax-m2", "deepseek-v3.2"])
def test_a_tool_whose_schema_names_nothing_is_called_without_arguments_in_tags(name: str) -> None:
    """Tags need names: such a tool is called without arguments, and the grammar says so; the set is not refused."""
    tools = ToolSet([Tool("ping", "", {"type": "object"}), Tool("now", "", {"type": "object", "properties": {}})])
    wire = get_format(name)
    assert isinstance(wire, TemplateFormat)
    wire = wire.with_special(())
    grammar = tools.grammar(wire, tool_choice="required")
    assert grammar.matches(wire.render("", [ToolCall("1", "ping", {})]))
    assert {problem.place.tool for problem in grammar.narrowed} == {"ping"}
    loose = ToolSet([Tool("ping", "", {"type": "object"})], strictness={"ping": "object"})
    with pytest.raises(UnsupportedSchemaError):
        loose.grammar(wire).check()


def test_a_template_that_shows_no_calls_has_the_format_of_the_vocabulary() -> None:
    """Only the control tokens say what the model was trained to write, and only where they fit one format."""
    source = "{{ messages[0].content }} List of tools: {{ tools | tojson }}"
    assert detect_format(source) is None
    found = detect_format(source, ["<|tool_call_start|>", "<|tool_call_end|>", "<|im_end|>"])
    assert found is not None and found.name == "lfm2"
    assert detect_format(source, ["[TOOL_CALLS]", "</s>"]) is None  # three formats of Mistral
    assert detect_format("{{ messages[0].content }}", ["<|tool_call_start|>", "<|tool_call_end|>"]) is None


def test_a_trigger_with_white_space_before_it_is_found_at_the_beginning_of_a_turn() -> None:
    """Muse: a message for each recipient; after one for the user, a call may follow."""
    wire = get_format("muse")
    tools = ToolSet([Tool("f", "", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})])
    call = wire.render("", [tools.validate({"name": "f", "arguments": {"n": 1}})])
    message = tools.parse(f" to=user<|message|>Hello.<|eom|><|start|>assistant{call}", wire)
    assert message.text == "Hello."
    assert [dict(call.arguments) for call in message.tool_calls] == [{"n": 1}]
    source = template(
        ' to={{ c.function.name }}<|message|><atem:function_calls>\n<atem:invoke name="{{ c.function.name }}">\n'
        '{% for k, v in c.function.arguments.items() %}<atem:parameter name="{{ k }}">'
        "{{ v if v is string else v | tojson }}</atem:parameter>\n{% endfor %}</atem:invoke>\n</atem:function_calls>",
        between="<|eom|><|start|>assistant",
    )
    assert detect_format(source).name == "muse"  # type: ignore[union-attr]


def test_a_name_before_arguments_without_markup_is_read_to_its_end() -> None:
    """Functionary 2.5: the name ends with its line, however the text is cut."""
    source = template("<|call|>{{ c.function.name }}\n{{ c.function.arguments | tojson }}")
    wire = detect_format(source)
    assert wire is not None
    tools = ToolSet([Tool("ping", "", {"type": "object", "properties": {}})])
    parser = tools.parser(wire)
    events = [event for char in "<|call|>ping\n{}<|call|>ping\n{}" for event in parser.feed(char)] + parser.close()
    assert [event.call.name for event in events if isinstance(event, CallEnd)] == ["ping", "ping"]


def test_python_calls_with_other_commas_and_text_after_them_are_learned() -> None:
    """MiniCPM3: a fence in tags, no space between arguments, and the text of the turn behind the calls."""
    values = each("{{ k }}={{ v | tojson }}", ",")
    calls = f"{{% for c in m.tool_calls %}}{{{{ c.function.name }}}}({values})\n{{% endfor %}}"
    turn = f"{{% if m.tool_calls %}}<calls>\n```python\n{calls}```\n</calls>\n{{% endif %}}{{{{ m.content or '' }}}}"
    source = _HEAD + _TURNS.replace("{{ m.content or '' }}CALLS", turn)
    wire = detect_format(source)
    assert wire is not None
    number, text = {"type": "integer"}, {"type": "string"}
    schema = {"type": "object", "properties": {"city": text, "days": number}, "required": ["city", "days"]}
    tools = ToolSet([Tool("get_weather", "", schema)])
    written = '<calls>\n```python\nget_weather(city="Rome",days=3)\n```\n</calls>\n'
    for said in ("", "I look it up."):
        assert tools.grammar(wire).matches(written + said)
        message = tools.parse(written + said, wire)
        assert message.text.strip() == said
        assert [dict(call.arguments) for call in message.tool_calls] == [{"city": "Rome", "days": 3}]


def test_a_question_that_looks_otherwise_once_it_is_answered_is_no_part_of_the_turn() -> None:
    """A template may write its last question in other words than the ones before: the turn begins after it all the same."""
    ask = "{{ 'ask' if loop.last else 'asked' }}"
    source = _HEAD + (
        f"{{% for m in messages %}}{{% if m.role == 'assistant' %}}{{{{ m.content or '' }}}}"
        f"{{% for c in m.tool_calls or [] %}}<call>{_OBJECT}</call>{{% endfor %}}<end>"
        f"{{% else %}}<{ask}>{{{{ m.content }}}}</{ask}>{{% endif %}}{{% endfor %}}"
    )
    wire = detect_format(source)
    assert wire is not None
    grammar = TOOLS.grammar(wire, tool_choice="required")
    assert grammar.matches('<call>{"name": "now", "arguments": {}}</call>')
    assert not grammar.matches('</asked><call>{"name": "now", "arguments": {}}</call>')


@pytest.mark.parametrize(
    ("start", "end", "last", "opened"),
    [
        ("<|content|>", "", "<|stop|>", ""),
        ("<|START_SAY|>", "<|END_SAY|>", "<|END_OF_TURN_TOKEN|>", ""),
        ("<|START_SAY|>", "<|END_SAY|>", "<|END_OF_TURN_TOKEN|>", "<think>"),
    ],
)
def test_markup_around_text_is_learned(start: str, end: str, last: str, opened: str) -> None:
    """Where every answer stands in markers, the grammar writes them, and the parser reads the text between them."""
    source = (
        "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}<|{{ m.role }}|>"
        "{% if m.tool_calls %}<|calls|>{% for c in m.tool_calls %}<|call|>" + _OBJECT + "<|done|>{% endfor %}"
        f"{{% else %}}{start}{{{{ m.content }}}}{end}{{% endif %}}{last}{{% endfor %}}"
        f"{{% if add_generation_prompt %}}<|assistant|>{opened}{{% endif %}}"
    )
    wire = detect_format(source)
    assert wire is not None
    grammar = GET.grammar(wire)
    answer = f"{start}Hi.{end}"
    assert grammar.matches(answer)
    assert not grammar.matches("Hi.")
    assert GET.parse(answer + last, wire).text == "Hi."
    special = (start, end, last, "<|calls|>", "<|call|>", "<|done|>")
    vocabulary = byte_vocabulary(filter(None, special))
    matcher = GET.grammar(detect_format(source, vocabulary.special)).bind(vocabulary).matcher()
    allowed = {name for name, token in vocabulary.special.items() if token in matcher.allowed_tokens()}
    assert allowed == {start, "<|calls|>"}


def test_a_prompt_that_ends_with_other_white_space_than_the_turn_begins_with() -> None:
    """The header of the assistant's turn is no part of its calls."""
    source = (
        "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}"
        "{% if m.tool_calls %}\nASSISTANT:\n{% for c in m.tool_calls %}<run> " + _OBJECT + "{% endfor %}\n<stop>"
        "{% else %}\n{{ m.role | upper }}: {{ m.content }} <stop>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}\nASSISTANT: \n{% endif %}"
    )
    wire = detect_format(source)
    assert wire is not None
    call = '<run> {"name": "get", "arguments": {"n": 5}}'
    assert GET.grammar(wire, tool_choice="required").matches(call)
    assert [dict(call.arguments) for call in GET.parse(call, wire).tool_calls] == [{"n": 5}]
    assert not GET.grammar(wire, tool_choice="required").matches(f"ASSISTANT:\n{call}")


_KEYWORDS = each("{{ k }}={{ v | tojson }}", ", ")
_TAGS = each("<p={{ k }}>" + _VALUE + "</p>")

#: The forms of a call, of what joins name and arguments, and of what follows the name.
FORMS: dict[str, Callable[[str, str], str]] = {
    "json": lambda join, after: _NAME + after + join + _JSON,
    "object": lambda join, after: '{"name": "' + _NAME + '", "arguments":' + join + _JSON + "}",
    "list": lambda join, after: '[{"name": "' + _NAME + '",' + join + '"arguments": ' + _JSON + "}]",
    "python": lambda join, after: _NAME + after + "(" + _KEYWORDS + ")",
    "tags": lambda join, after: "<f=" + _NAME + after + ">" + join + _TAGS + "</f>",
}
_ID = "{{ c.id }}"

#: Every shape: before a call, form, join, after the name, closer, between calls, around all calls.
SPACE = list(
    itertools.product(
        ("", "<tool_call>", "<tool_call>\n", "[CALL]", "call: ", "[", "\n"),
        FORMS,
        ("", " ", "\n", ": "),
        ("", f"#{_ID}", _ID),
        ("", "</tool_call>", "\n", ";"),
        ("", "\n", ", "),
        (("", ""), ("[", "]"), ("<calls>", "")),
    )
)


def _bare(shape: tuple[Any, ...]) -> bool:
    """Nothing stands before the name of a call."""
    before, form, *_, around = shape
    return not (before + around[0]).strip() and form in ("json", "python")


@pytest.mark.timeout(1_200)
def test_no_shape_of_a_template_is_an_error(request: pytest.FixtureRequest) -> None:
    """Of any prefix, join, id, closer and separator, also empty ones, a format is learned that reads what the template
    writes, or it is ``hermes``."""
    count = 2_000 if request.config.getoption("--slow") else 40
    shapes = random.Random(11).sample(SPACE, count)
    shapes = shapes + random.Random(12).sample([shape for shape in SPACE if _bare(shape)], 20)
    learned = 0
    for before, form, join, after, closer, between, (begin, finish) in shapes:
        written = template(before + FORMS[form](join, after) + closer, begin, between, finish)
        wire = choose_format(None, written)
        if wire.name == "hermes":
            continue
        learned += 1
        message = Message("assistant", "", tool_calls=(ToolCall("abcdefgh0", "get", {"n": 7}),))
        (turn,) = shaped([message], message_shape(written))
        whole = render(written, [turn], [], add_generation_prompt=False)
        read = GET.parse(whole.removeprefix("<bot>").removesuffix("<end>"), wire)
        assert [(call.name, call.arguments, call.error) for call in read.tool_calls] == [("get", {"n": 7}, None)]
    assert learned >= len(shapes) // 4


def test_a_call_that_begins_with_its_name_has_no_format_of_its_own() -> None:
    """``NAME {json}``, as LFM2's templates on a server write it: calls are described to the model as ``hermes``."""
    for join in ("", " ", "\n", ": "):
        assert choose_format(None, template(_NAME + join + _JSON, between="\n")).name == "hermes"
