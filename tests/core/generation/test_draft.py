"""A draft: free text first, then the answer under its grammar, which the model writes after reading the draft."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from toolgrammar.core import BudgetError, JsonMode, ModelError, Vocabulary, load_model
from toolgrammar.core.conversation import ReasoningDelta, TextDelta
from toolgrammar.core.models import LocalModel
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.core.validation import is_valid
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import format_names, get_format

SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "yy"]}, "b": {"type": "string", "maxLength": 5}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def get_weather(city: str, days: int = 1) -> str:
    """Look up the weather."""


TOOLS = ToolSet.from_any([get_weather])


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """The embedded model."""
    loaded = load_model("embedded")
    assert isinstance(loaded, LocalModel)
    return loaded


@pytest.mark.parametrize("size", [1, 5, 30])
def test_answers_after_a_draft_are_valid(model: LocalModel, size: int) -> None:
    """The draft is no longer than asked, and what follows is an answer of the grammar within the budget."""
    for seed in range(8):
        options: dict[str, Any] = {"temperature": 1.5, "seed": seed, "draft": size, "max_tokens": 90}
        answer = model.generate("Go.", output_type=SCHEMA, **options)
        assert is_valid(json.loads(answer.text), SCHEMA)
        assert answer.usage.reasoning_tokens <= size and answer.usage.completion_tokens <= 90
        call = model.generate("Go.", tools=TOOLS, tool_choice="required", **options)
        assert [TOOLS.validate(one).name for one in call.tool_calls][:1] == ["get_weather"]
        assert call.raw.startswith(call.message.reasoning or "")


def test_it_streams_as_reasoning(model: LocalModel) -> None:
    """Deltas of reasoning come first; joined they are the message's reasoning."""
    options: dict[str, Any] = {"output_type": SCHEMA, "draft": 12, "temperature": 1.0, "seed": 4, "max_tokens": 60}
    events = list(model.stream("Go.", **options))
    kinds = [type(event) for event in events if isinstance(event, (ReasoningDelta, TextDelta))]
    assert kinds == sorted(kinds, key=lambda kind: kind is TextDelta) and ReasoningDelta in kinds
    whole = model.generate("Go.", **options)
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == whole.message.reasoning


def test_the_model_reads_its_draft() -> None:
    """The answer is written in the same turn, behind the draft and a line break."""
    model = ScriptedModel(["I think it is x.\n" + json.dumps({"a": "x", "b": "ok"})])
    drafted = model.generate("Go.", json_mode=JsonMode(SCHEMA), draft=len("I think it is x."))
    assert drafted.message.reasoning == "I think it is x."
    assert json.loads(drafted.text) == {"a": "x", "b": "ok"} and drafted.finish_reason == "stop"


def test_a_draft_may_end_early() -> None:
    """Where the model ends its turn the answer begins."""
    model = ScriptedModel(["Hm."])
    answer = model.generate("Go.", json_mode=JsonMode({"enum": ["yes"]}), draft=500)
    assert answer.message.reasoning == "Hm." and json.loads(answer.text) == "yes"


def test_wrong_requests(model: LocalModel) -> None:
    """No draft of no tokens; not beside thinking or a prefix; a budget below the shortest answer is an error."""
    with pytest.raises(ModelError, match="draft"):
        model.generate("x", draft=0)
    for options in ({"thinking": True, "thinking_markers": ("<r>", "</r>")}, {"prefix": "I "}):
        with pytest.raises(ModelError, match="exclude each other"):
            model.generate("x", draft=5, **options)  # type: ignore[arg-type]
    with pytest.raises(BudgetError):
        model.generate("x", output_type=SCHEMA, draft=5, max_tokens=2)


def scripted(name: str, control: bool, *replies: str) -> ScriptedModel:
    """A model whose vocabulary has a format's markers as control tokens, or as text."""
    wire = get_format(name)
    special = getattr(wire, "special", ()) if control else ()
    tokens: list[bytes | None] = [*(bytes((byte,)) for byte in range(256)), *[None] * (len(special) + 1)]
    names = {token: 256 + number for number, token in enumerate(special)}
    return ScriptedModel(list(replies), vocabulary=Vocabulary(tokens, eos=[len(tokens) - 1], special=names))


SAY = {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]}

#: Requests, and what their answers have.
REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("call", {"tool_choice": "required"}),
    ("call", {"tool_choice": "get_weather"}),
    ("json", {"output_type": SAY, "tool_choice": "none"}),
    ("text", {"tool_choice": "auto"}),
)


@pytest.mark.parametrize(("number", "name"), [*enumerate(format_names())])
def test_an_empty_draft_changes_nothing(number: int, name: str, thorough: bool) -> None:
    """Where the model ends the draft at once, or the budget has no room for one, the answer is that without a draft,
    token by token, in every format; where there is a draft, the answer is as valid."""
    asked = [(False, REQUESTS[0]), *((True, request) for request in REQUESTS)]
    if not thorough:  # each request meets the formats in turn
        asked = [asked[number % 5], asked[(number + 2) % 5]]
    for control, (kind, options) in asked:
        options = {"tools": TOOLS, "tool_format": name, **options}
        plain = scripted(name, control, "").generate("Go.", **options, max_tokens=400)
        silent = scripted(name, control, "").generate("Go.", **options, max_tokens=400, draft=5)
        assert (silent.token_ids, silent.text, silent.raw) == (plain.token_ids, plain.text, plain.raw)
        assert [call.arguments for call in silent.tool_calls] == [call.arguments for call in plain.tool_calls]
        least = 1
        try:
            scripted(name, control, "").generate("Go.", **options, max_tokens=1)
        except BudgetError as error:
            least = int(re.findall(r"needs (\d+) tokens", str(error))[0])
        for more in (0, 1, 2):
            drafted = scripted(name, control, "So: yes").generate("Go.", **options, max_tokens=least + more, draft=5)
            assert len(drafted.token_ids) <= least + more
            assert not (drafted.message.reasoning or "") or more > 1  # a token, and the line break after it
            if kind == "call":
                (call, *_) = drafted.tool_calls
                assert TOOLS.validate(call) and not drafted.text.strip()
            elif kind == "json":
                assert is_valid(json.loads(drafted.text), SAY)
            else:
                assert drafted.text and not drafted.text.startswith("\n")
