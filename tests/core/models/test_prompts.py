"""Conversations for chat templates: turns with several calls, where a template takes one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolgrammar.core import Message, ToolCall, Vocabulary
from toolgrammar.core.models.call_ids import with_call_ids
from toolgrammar.core.models.chat_template import ChatTemplate
from toolgrammar.core.models.prompts import spelled_history, template_ids

TURN = "{{ message.role }}:{{ message.content }}{{ message.tool_call_id }}"
# As Llama 3.1's template does.
REFUSES = (
    "{% for message in messages %}" + TURN + "{% if 'tool_calls' in message %}"
    "{% if not message.tool_calls|length == 1 %}{{ raise_exception('This model only supports single tool-calls') }}"
    "{% endif %} {{ message.tool_calls[0].function.name }}{% endif %}{{ '\\n' }}{% endfor %}"
)
# As templates do that never expected a second one.
DROPS = (
    "{% for message in messages %}" + TURN + "{% if message.tool_calls %} {{ message.tool_calls[0].function | tojson }}"
    "{% endif %}{{ '\\n' }}{% endfor %}"
)
TAKES = (
    "{% for message in messages %}" + TURN + "{% for call in message.tool_calls %} {{ call.function.name }}"
    "{% endfor %}{{ '\\n' }}{% endfor %}"
)


def written(source: str, messages: list[Message]) -> str:
    """Return the prompt that a template makes of a conversation."""
    template = ChatTemplate(source, controls=(), bos="", eos="")

    return "".join(text for text, _ in template.render_prompt(messages, (), "", None))


def conversation(*ids: str) -> list[Message]:
    """Return a conversation with two calls in one turn, and their results in the other order."""
    calls = (ToolCall(ids[0], "look", {"at": 1}), ToolCall(ids[1], "turn", {"by": 2}))
    return [
        Message("user", "Hi"),
        Message("assistant", "Both.", tool_calls=calls),
        *(Message("tool", f"result {number}", tool_call_id=number) for number in ids[2:]),
        Message("assistant", "Done."),
    ]


@pytest.mark.parametrize("source", [REFUSES, DROPS])
def test_one_call_a_turn(source: str) -> None:
    """Where a template takes one call in a turn, several become turns, each with its result; none is lost."""
    lines = written(source, conversation("1", "2", "2", "1")).splitlines()
    assert [line.split("{")[0].split()[0] for line in lines] == [
        *("user:Hi", "assistant:Both.", "tool:result", "assistant:", "tool:result", "assistant:Done."),
    ]
    assert ["look" in lines[1], "result 11" in lines[2], "turn" in lines[3], "result 22" in lines[4]] == [True] * 4


def test_results_without_ids() -> None:
    """Results that name no call are in the order of the calls; those of no call at all come last, and are kept."""
    lines = written(DROPS, conversation("", "", "", "")).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    lines = written(REFUSES, conversation("1", "2", "3")).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["user", "assistant", "assistant", "tool", "assistant"]


def test_templates_that_take_several_get_them() -> None:
    """A template that writes all calls of a turn is not given other turns."""
    assert written(TAKES, conversation("1", "2", "1", "2")).splitlines()[1] == "assistant:Both. look turn"


def test_history_in_plain_words() -> None:
    """Calls become text of the assistant, neighbouring results one turn of the user; all else stays as it is."""
    call = ToolCall("1", "get_weather", {"city": "Oslo"})
    messages = [
        Message("user", "Weather?"),
        Message("assistant", "Let me see.", tool_calls=(call, replace(call, id="2"))),
        Message("tool", "rain", tool_call_id="1", name="get_weather"),
        Message("tool", "snow", tool_call_id="2"),
        Message("assistant", "Both."),
        Message("assistant", "", tool_calls=(call,)),
        Message("tool", "fog", name="get_weather"),
    ]
    line = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    ask = "\n\nWrite one short English sentence with"
    assert [(each.role, each.text) for each in spelled_history(messages)] == [
        ("user", "Weather?"),
        ("assistant", f"Let me see.\n{line}\n{line}"),
        ("user", f"The result of get_weather is: rain\nThe result of the call is: snow{ask} these results."),
        ("assistant", "Both."),
        ("assistant", line),
        ("user", f"The result of get_weather is: fog{ask} this result."),
    ]
    assert not any(each.tool_calls for each in spelled_history(messages))


@pytest.mark.parametrize("space", [b"", b" "])
def test_text_after_a_spelled_control_token(space: bytes) -> None:
    """Nothing of a prompt is lost or added between its pieces: neither a line break that merges with the one before, nor
    the space with which some tokenizers begin a text."""
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [b"\n\n", None], eos=[257], special={"<e>": 257})

    def encode(text: str) -> list[int]:
        data, ids = text.encode(), []
        while data:
            pair = data.startswith(b"\n\n")
            ids.append(256 if pair else data[0])
            data = data[2 if pair else 1 :]
        return ids

    def tokenize(text: str) -> list[int]:
        ids = list(space)
        for number, part in enumerate(text.split("<e>")):
            ids += ([257] if number else []) + encode(part)
        return ids

    pieces = [("a", False), ("<e>", True), ("\n\n<e>b", False), ("<e>", True), ("\nc", False)]
    ids = template_ids(pieces, encode, tokenize, vocabulary)
    assert ids.count(257) == 1
    assert vocabulary.decode(ids) == space + b"a<e>\n\nb<e>\nc"


def test_calls_without_ids_get_them_and_results_answer_them_in_order() -> None:
    """Calls get ids by their places, results without one those of the last calls in order, with the tools' names; ids
    that are there stay, also of an earlier turn's call."""
    calls = (ToolCall("", "a", {}), ToolCall("own", "b", {}), ToolCall("", "c", {}))
    told = with_call_ids(
        [
            Message("user", "Go."),
            Message("assistant", tool_calls=calls),
            Message("tool", "1"),
            Message("tool", "3", tool_call_id="call_1_2"),
            Message("assistant", tool_calls=(ToolCall("", "d", {}),)),
            Message("tool", "4"),
            Message("tool", "2", tool_call_id="own"),
            Message("tool", "alone"),
        ]
    )
    assert [call.id for turn in told for call in turn.tool_calls] == ["call_1_0", "own", "call_1_2", "call_4_0"]
    answered = [(turn.tool_call_id, turn.name) for turn in told if turn.role == "tool"]
    assert answered == [("call_1_0", "a"), ("call_1_2", "c"), ("call_4_0", "d"), ("own", "b"), ("call_7", None)]
