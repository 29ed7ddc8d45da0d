"""What a model is shown of earlier calls and results is what happened: by every template, format and server."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest

from toolgrammar.core import Message, ToolCall, Vocabulary
from toolgrammar.core.conversation.message_dicts import past_call
from toolgrammar.core.conversation.messages import UNREADABLE, as_shown
from toolgrammar.core.models.chat_template import ChatTemplate
from toolgrammar.core.models.local_model import LocalModel
from toolgrammar.core.models.prompts import plain_prompt, spelled_history
from toolgrammar.core.models.remote.chat_completions import openai_messages
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import format_names

from ...core.backends import FakeBackend
from .templates import FAMILIES

_PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = ToolSet([Tool(name, "Look.", _PARAMETERS) for name in ("weather", "time", "price")])
#: Calls whose ids, in their own form and in that of any template, and values are all different.
CALLS = tuple(
    ToolCall(f"callAb0{number}", name, {"city": city})
    for number, (name, city) in enumerate(
        [("weather", "Oslo"), ("weather", "Bari"), ("price", "Lima"), ("time", "Rome")]
    )
)
RESULTS = tuple(
    Message("tool", f"{word}Result", tool_call_id=call.id, name=call.name)
    for call, word in zip(CALLS, ("first", "second", "third", "fourth"), strict=True)
)


class _Prompts(FakeBackend):
    """A backend that keeps the prompt as text; it writes nothing."""

    def __init__(self, template: str | None) -> None:
        super().__init__(Vocabulary([bytes((byte,)) for byte in range(256)] + [None], eos=[256]), 100_000)
        self.tool_format = None  # type: ignore[assignment]
        self.chat_template = template  # type: ignore[assignment]
        self.text = ""

    def encode_prompt(self, messages: Any, tools: Any = (), tool_prompt: str = "") -> list[int]:
        """Render the template, or the prompt of models without one."""
        if self.chat_template is None:
            ids = plain_prompt(messages, tool_prompt, self.vocabulary, self.encode, None)
            self.text = self.vocabulary.decode(ids).decode()
            return ids
        made = ChatTemplate(self.chat_template, controls=(), bos="", eos="")
        self.text = "".join(text for text, _ in made.render_prompt(messages, tools, tool_prompt, None))
        return self.encode(self.text)


def shown(template: str | None, history: Sequence[Any], tool_format: str | None = None) -> str:
    """Return the prompt of a conversation."""
    backend = _Prompts(template)
    backend.tool_format = tool_format  # type: ignore[assignment]
    with LocalModel(backend) as model:  # type: ignore[arg-type]
        model.count_tokens([Message("user", "Go."), *history], TOOLS)
    return backend.text.rpartition("Go.")[2]


#: Everything that writes a conversation for a local model: templates, formats, and a model without a template.
RENDERERS = [pytest.param(template, None, id=f"{name} template") for name, template, _, _ in FAMILIES]
RENDERERS += [pytest.param(FAMILIES[0][1], name, id=f"{name} format") for name in format_names()]
RENDERERS += [pytest.param(None, None, id="plain")]
each_renderer = pytest.mark.parametrize(("template", "tool_format"), RENDERERS)


@each_renderer
def test_results_are_shown_in_the_order_of_their_calls(template: str | None, tool_format: str | None) -> None:
    """However results arrive, the prompt is that of results in the order of the calls, with which their order pairs
    them."""
    turn = Message("assistant", "", tool_calls=CALLS)
    text = shown(template, [turn, *RESULTS], tool_format)
    places = [text.rindex(result.text) for result in RESULTS]
    assert places == sorted(places)
    for arrived in itertools.islice(itertools.permutations(RESULTS), 1, None, 5):
        assert shown(template, [turn, *arrived], tool_format) == text


def test_results_are_sent_to_servers_in_the_order_of_their_calls() -> None:
    """Servers render templates too; the order is made before any protocol writes a message."""
    told = as_shown([Message("assistant", "", tool_calls=CALLS), *reversed(RESULTS)])
    assert [turn["tool_call_id"] for turn in openai_messages(told)[1:]] == [call.id for call in CALLS]


def test_a_model_for_words_is_told_results_in_order() -> None:
    """The embedded model reads results as a sentence each."""
    told = as_shown([Message("assistant", "", tool_calls=CALLS), *reversed(RESULTS)])
    words = spelled_history(told)[-1].text
    assert words.index("first") < words.index("second") < words.index("third")


def order(*messages: Message) -> list[str]:
    """Return the texts of a conversation as it is shown."""
    return [message.text for message in as_shown(messages)]


def test_results_that_cannot_be_ordered_stay() -> None:
    """Unknown, equal and missing ids, equal ids of calls, and results of another turn: nothing is moved."""
    turn = Message("assistant", "", tool_calls=CALLS)
    a, b, c, d = RESULTS
    unknown = Message("tool", "unknown", tool_call_id="call_9")
    none = Message("tool", "none", name="time")
    for results in ([b, a, unknown], [b, a, a], [b, none, a], [b, Message("user", "And?"), a], [none, unknown]):
        assert order(turn, *results)[1:] == [result.text for result in results]
    same = Message("assistant", "", tool_calls=(CALLS[0], CALLS[0]))
    assert order(same, b, a)[1:] == [b.text, a.text]
    assert order(c, a) == [c.text, a.text]
    assert order(turn, d, b) == ["", b.text, d.text]  # two of four calls have results


def test_ids_that_come_again_belong_to_the_nearest_turn() -> None:
    """Ids count from the same number in each turn of some clients; the last turn with calls gives the order."""
    first, second = (Message("assistant", "", tool_calls=calls) for calls in (CALLS[:2], CALLS[1::-1]))
    a, b = RESULTS[:2]
    assert order(first, b, a, second, a, b) == ["", a.text, b.text, "", b.text, a.text]


def test_a_turn_for_each_call() -> None:
    """Calls in turns of their own, one after the other, are calls of one turn."""
    turns = [Message("assistant", "", tool_calls=(call,)) for call in CALLS]
    assert order(*turns, *reversed(RESULTS)) == order(*turns, *RESULTS)


def test_results_with_names_alone_are_ordered_by_them() -> None:
    """Ollama's results name the tool and have no id; different names are as good."""
    calls = tuple(ToolCall("", name, {}) for name in ("weather", "time", "price"))
    results = [Message("tool", name, name=name) for name in ("price", "weather", "time")]
    assert order(Message("assistant", "", tool_calls=calls), *results)[1:] == ["weather", "time", "price"]


# -- arguments that are no object ------------------------------------------------------------------------------

BROKEN = [
    '{"city": "Os',
    '{"city": Oslo}',
    '["Oslo"]',
    "Oslo",
    '{"city": NaN}',
    '{"city": "Oslo"}}',
    '{"a": 1} {"b": 2}',
]


@pytest.mark.parametrize("broken", BROKEN)
@each_renderer
def test_broken_arguments_are_shown_as_they_were_written(
    template: str | None, tool_format: str | None, broken: str
) -> None:
    """A call that could not be read is not shown as one without arguments: its text is there, in JSON or plainly."""
    call = past_call("callAb01", "weather", broken)
    assert call.error is not None
    text = shown(template, [Message("assistant", "", tool_calls=(call,))], tool_format)
    assert UNREADABLE in text
    assert any(form in text for form in (broken, json.dumps(broken)[1:-1], broken.replace("\\", "\\\\")))


def test_broken_arguments_are_sent_to_servers_as_text() -> None:
    """Servers and their templates fail on invalid JSON, so the text is the value of a member."""
    told = as_shown([Message("assistant", "", tool_calls=(past_call("c1", "weather", BROKEN[0]),))])
    (sent,) = openai_messages(told)[0]["tool_calls"]
    assert json.loads(sent["function"]["arguments"]) == {UNREADABLE: BROKEN[0]}


@pytest.mark.parametrize("times", [1, 2, 3])
def test_arguments_that_were_encoded_again_are_unwrapped(times: int) -> None:
    """A text that holds the text of an object is that object, and no error."""
    text = '{"city": "Oslo"}'
    for _ in range(times):
        text = json.dumps(text)
    call = past_call("c1", "weather", text)
    assert call.arguments == {"city": "Oslo"} and call.error is None
    assert json.loads(call.raw or "") == {"city": "Oslo"}


@pytest.mark.parametrize("nothing", [None, "", " \n", {}, "{}", '"{}"'])
def test_no_arguments_are_no_error(nothing: Any) -> None:
    """Frameworks have None and an empty text for a call of a tool without parameters."""
    call = past_call("c1", "time", nothing)
    assert call.arguments == {} and call.error is None
    assert as_shown([Message("assistant", "", tool_calls=(call,))])[0].tool_calls == (call,)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {("a", "b"): 1}])
def test_mappings_that_are_no_json_are_shown_as_text(value: Any) -> None:
    """A framework's mapping may hold what JSON has not; no prompt has NaN as a value."""
    call = past_call("c1", "weather", {"city": value})
    assert call.error is not None and "city" in (call.raw or "")
