"""Reasoning before the answer: markers by family, budgets, prompts that have begun it, and no confusion by spelling."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import (
    BudgetError,
    CallEnd,
    GenerateParams,
    Grammar,
    JsonMode,
    Message,
    Model,
    ModelError,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Vocabulary,
)
from toolgrammar.core.conversation.reasoning import ReasoningMarkers
from toolgrammar.core.models.reasoning import find_markers, has_begun, marker_text, reasoning_grammar
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.core.validation import is_valid
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import format_names, get_format

from ..backends import Noise

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def get_weather(city: str) -> str:
    """The weather."""
    return city


TOOLS = ToolSet.from_any([get_weather])


def family(specials: Sequence[str] = (), texts: Sequence[str] = (), ending: Sequence[str] = ()) -> Noise:
    """A backend of noise whose prompts may end with given tokens."""
    return Noise(specials, texts=texts, ending=ending, scale=1.0, context_window=4000)


def vocabulary_of(markers: ReasoningMarkers, *, control: bool) -> tuple[list[str], list[str]]:
    """The control tokens and the text tokens of a family."""
    if "|" not in markers.start and not control:
        return [], [markers.start, markers.end]
    known = ["<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|channel>", "<channel|>"]
    found = [name for name in known if name in markers.start + markers.end + markers.after]
    return found or [markers.start, markers.end], []


@pytest.mark.parametrize("markers", ReasoningMarkers.KNOWN, ids=lambda each: each.start)
@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("begun", [True, False])
def test_every_family_reasons_and_then_answers(markers: ReasoningMarkers, control: bool, begun: bool) -> None:
    """Reasoning within its budget, then JSON; events, message and counts agree; the markers are in neither."""
    specials, texts = vocabulary_of(markers, control=control)
    backend = family(specials, texts)
    if begun:
        pieces = [markers.start] if markers.start in (*specials, *texts) else []
        rest = markers.start
        while rest and pieces[-1:] != [markers.start]:
            name = next((each for each in specials if rest.startswith(each)), rest[0])
            pieces.append(name)
            rest = rest[len(name) :]
        backend.ending = [*pieces, "\n"]
    model = Model(backend)
    assert find_markers(backend.vocabulary) == markers
    thinking = None if begun else 40
    request = GenerateParams(json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1, thinking=thinking, max_tokens=120)
    events = list(model.stream("Hello", request))
    generation = model.generate("Hello", request)
    assert is_valid(json.loads(generation.text), SCHEMA)
    assert generation.message.reasoning
    assert "".join(each.text for each in events if isinstance(each, ReasoningDelta)) == generation.message.reasoning
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == generation.text
    assert markers.end not in generation.message.reasoning and markers.start not in generation.message.reasoning
    assert 0 < generation.usage.reasoning_tokens < generation.usage.completion_tokens <= 120
    if not begun:
        assert generation.usage.reasoning_tokens <= 40
    assert generation.raw.endswith(generation.text)


@pytest.mark.parametrize("budget", [0, 1, 2, 5, 17])
@pytest.mark.parametrize("begun", [True, False])
def test_the_budget_of_thinking_is_kept_and_cuts_nothing(budget: int, begun: bool) -> None:
    """Reasoning ends within its budget (or its least length); the answer is whole all the same."""
    backend = family(["<think>", "</think>"], ending=["<think>"] if begun else [])
    backend.boost[ord("}")] = 3.0
    generation = Model(backend).generate(
        "x", json_mode=JsonMode(SCHEMA), thinking=budget, temperature=1.0, seed=2, max_tokens=300
    )
    assert generation.usage.reasoning_tokens <= max(budget, 1 if begun else 2)
    assert generation.finish_reason == "stop" and generation.cut == ()
    assert is_valid(json.loads(generation.text), SCHEMA)


def test_thinking_leaves_room_for_the_answer_at_every_budget() -> None:
    """From the least budget on, both reasoning and answer fit; below it, an error that counts both."""
    model = Model(family(["<think>", "</think>"]))
    request = GenerateParams(json_mode=JsonMode(SCHEMA), thinking=True, temperature=1.0)
    with pytest.raises(BudgetError, match="needs 10 tokens"):  # two markers, and {"n": 0}
        model.generate("x", request, max_tokens=9)
    for budget in range(10, 60):
        generation = model.generate("x", request, max_tokens=budget, seed=budget)
        assert is_valid(json.loads(generation.text), SCHEMA)
        assert len(generation.token_ids) <= budget


AUTO = GenerateParams(json_mode=JsonMode(SCHEMA), thinking="auto")


@pytest.mark.parametrize(
    ("script", "reasoning", "text"),
    [
        ('<think>\nHm.\n</think>\n\n{"n": 4}', "Hm.", '{"n": 4}'),
        ('{"n": 4}', None, '{"n": 4}'),
    ],
)
def test_the_model_decides_whether_to_reason(script: str, reasoning: str | None, text: str) -> None:
    """With thinking="auto", reasoning is what the model begins, in streams as in whole answers."""
    generation = ScriptedModel([script]).generate("x", AUTO)
    assert (generation.message.reasoning, generation.text) == (reasoning, text)
    events = list(ScriptedModel([script]).stream("x", AUTO))
    thought = "".join(each.text for each in events if isinstance(each, ReasoningDelta))
    assert (thought or None) == generation.message.reasoning
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == generation.text


@pytest.mark.parametrize("spelled", [True, False])
def test_a_text_that_begins_like_the_marker_is_text(spelled: bool) -> None:
    """Up to where the two part, what is written may be both; newlines at the beginning of a text are its own."""
    single: list[bytes | None] = [bytes((byte,)) for byte in range(256)]
    vocabulary = Vocabulary([*single, None], eos=[256]) if spelled else None  # no token for the whole marker
    auto = GenerateParams(thinking="auto", thinking_markers=("<think>", "</think>"))
    for script in ("<thin ice>", "\n\nHello", "<", "<think", "Hi <think>x</think>"):
        plain = ScriptedModel([script], vocabulary=vocabulary).generate("x")
        generation = ScriptedModel([script], vocabulary=vocabulary).generate("x", auto)
        assert (generation.text, generation.message.reasoning) == (plain.text, None) == (script, None)
        assert generation.raw == plain.raw and generation.usage.reasoning_tokens == 0
    generation = ScriptedModel(["<think>I see.</think>\nHello"], vocabulary=vocabulary).generate("x", auto)
    assert (generation.text, generation.message.reasoning) == ("Hello", "I see.")


@pytest.mark.parametrize("markers", ReasoningMarkers.KNOWN, ids=lambda each: each.start)
@pytest.mark.parametrize("control", [True, False])
def test_every_family_may_decide(markers: ReasoningMarkers, control: bool, thorough: bool) -> None:
    """Whichever a model of noise begins, the answer is valid at budgets from the least for the answer alone."""
    specials, texts = vocabulary_of(markers, control=control)
    backend = family(specials, texts)
    model = Model(backend)
    backend.boost[min(range(256, backend.vocabulary.size - 1), default=ord("<"))] = 1.5
    with pytest.raises(BudgetError, match="needs 8 tokens"):
        model.generate("x", AUTO, max_tokens=7)
    reasoned = set()
    for budget in range(8, 60) if thorough else (*range(8, 20), *range(20, 60, 4)):
        generation = model.generate("x", AUTO, max_tokens=budget, temperature=1.0, seed=budget)
        assert is_valid(json.loads(generation.text), SCHEMA)
        assert len(generation.token_ids) <= budget
        reasoned.add(generation.usage.reasoning_tokens > 0)
        if generation.usage.reasoning_tokens:
            assert generation.raw.startswith(marker_text(markers.start, specials))
        else:
            assert generation.raw == generation.text
    assert reasoned == {True, False}


def test_the_decision_has_the_models_own_probability() -> None:
    """The share of answers with reasoning is the marker's probability among all that may come first."""
    backend = family(["<think>", "</think>"])
    marker = backend.vocabulary.special["<think>"]
    backend.boost[marker] = 1.5
    logits = backend.start().extend(backend.encode_prompt([Message("user", "x")]))
    weights = np.exp(logits[[marker, *range(ord("0"), ord("9") + 1), ord("-")]].astype(np.float64))
    expected = float(weights[0] / weights.sum())
    request = GenerateParams(json_mode=JsonMode({"type": "integer"}), thinking="auto", temperature=1.0, max_tokens=4)
    draws = 800
    model = Model(backend)
    seen = sum(model.generate("x", request, seed=seed).usage.reasoning_tokens > 0 for seed in range(draws))
    assert 0.1 < expected < 0.9
    assert abs(seen - draws * expected) < 4 * (draws * expected * (1 - expected)) ** 0.5


def test_deciding_where_there_is_nothing_to_decide() -> None:
    """A model without markers does not reason; reasoning that the prompt has begun is finished."""
    assert Model(family()).generate("x", AUTO, max_tokens=60).message.reasoning is None
    begun = Model(family(["<think>", "</think>"], ending=["<think>"])).generate("x", AUTO, max_tokens=60)
    assert begun.usage.reasoning_tokens > 0


def test_no_thinking_closes_what_the_prompt_has_begun() -> None:
    """With thinking=False the markers that a template has opened are closed at once."""
    backend = family(["<think>", "</think>"], ending=["<think>", "\n"])
    generation = Model(backend).generate("x", json_mode=JsonMode(SCHEMA), thinking=False, max_tokens=60)
    assert generation.message.reasoning is None
    assert generation.token_ids[0] == backend.vocabulary.special["</think>"]


def test_a_spelled_marker_is_text() -> None:
    """Where markers are control tokens, text that spells them neither begins nor ends reasoning."""
    backend = family(["<think>", "</think>"], ending=list("<think>"))
    generation = Model(backend).generate("x", json_mode=JsonMode(SCHEMA), max_tokens=60)
    assert generation.message.reasoning is None and generation.usage.reasoning_tokens == 0
    markers = ReasoningMarkers("<think>", "</think>")
    spelled = list(b"a</think>b")
    matcher = reasoning_grammar(markers, backend.vocabulary.special, begun=True).bind(backend.vocabulary).matcher()
    assert all(matcher.accept(token_id) for token_id in spelled)
    assert not matcher.is_finished and matcher.accept(backend.vocabulary.special["</think>"]) and matcher.is_finished


@pytest.mark.parametrize(
    ("prompt", "begun"),
    [("hello", False), ("hello<think>", True), ("hello<think>\n", True), ("<think>\n\n</think>\n\n", False),
     ("<think> well", False), ("<thin", False)],
)  # fmt: skip
def test_a_prompt_tells_whether_reasoning_has_begun(prompt: str, begun: bool) -> None:
    """Only a start marker at the very end, white space aside, has begun it."""
    backend = family(texts=["<think>", "</think>"])
    markers = find_markers(backend.vocabulary)
    assert markers is not None
    assert has_begun(list(prompt.encode()), markers, backend.vocabulary) is begun


def test_tools_and_free_text_come_behind_reasoning() -> None:
    """Calls are parsed, and text is kept, behind the reasoning; newlines between belong to neither."""
    script = (
        '<think>\nI see.\n</think>\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    )
    generation = ScriptedModel([script]).generate("x", tools=TOOLS, tool_choice="required", thinking=True)
    (call,) = generation.tool_calls
    assert (generation.message.reasoning, call.arguments, call.cut) == ("I see.", {"city": "Oslo"}, ())
    assert generation.finish_reason == "tool_calls"
    generation = ScriptedModel(["<think>Hm.</think>\nHello END x"]).generate("x", thinking=True, stop="END")
    assert (generation.message.reasoning, generation.text) == ("Hm.", "Hello ")
    generation = ScriptedModel(["<think>Hm.</think>Hi"]).generate("x", tools=TOOLS, thinking=True)
    assert (generation.message.reasoning, generation.text, generation.tool_calls) == ("Hm.", "Hi", ())


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("thinking", [None, True, 30, "auto"])
def test_what_is_written_is_of_the_bare_grammar_too(thinking: Any, choice: str) -> None:
    """A model that thinks writes texts of `ToolSet.grammar` with its own ``reasoning``, and its parser reads the same."""
    backend = family(texts=["<think>", "</think>", "<tool_call>"], ending=["<think>", "\n"] if thinking is None else [])
    backend.boost = {256: 4.0, 257: 4.0, 258: 6.0}
    model = Model(backend)
    bare = TOOLS.grammar(tool_choice=choice, reasoning="opened" if thinking is None else "optional")
    options: dict[str, Any] = {"thinking": thinking, "tools": TOOLS, "tool_choice": choice, "temperature": 1.0}
    for seed in range(12):
        generation = model.generate("x", seed=seed, max_tokens=160, **options)
        parser = TOOLS.parser(reasoning="opened" if thinking is None else "none")
        events = [*parser.feed(generation.raw), *parser.close()]
        assert bare.matches(generation.raw)
        read = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        assert (read or None) == generation.message.reasoning
        calls = [(event.call.name, event.call.arguments) for event in events if isinstance(event, CallEnd)]
        assert calls == [(call.name, call.arguments) for call in generation.tool_calls]


def test_what_is_cut_is_named_behind_reasoning_too() -> None:
    """Pointers of forced values count from the beginning of the answer, not of the reasoning."""
    note = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}
    script = '<think>Let me write a long one.</think>\n{"a": "done", "b": "' + "long " * 50
    generation = ScriptedModel([script]).generate("x", json_mode=JsonMode(note), thinking=True, max_tokens=60)
    assert generation.cut == ("/b",) and generation.finish_reason == "length"
    assert json.loads(generation.text)["a"] == "done"


def test_misuse_of_thinking_is_named() -> None:
    """A model without markers, a negative budget, a prefix besides, and markers that are none."""
    model = Model(family())
    with pytest.raises(ModelError, match="no markers"):
        model.generate("x", thinking=True)
    with pytest.raises(ModelError, match="thinking is -1"):
        model.generate("x", thinking=-1)
    with pytest.raises(ModelError, match="thinking is 'maybe'"):
        model.generate("x", thinking="maybe")
    with pytest.raises(ModelError, match="prefix and thinking"):
        model.generate("x", thinking="auto", thinking_markers=("[R]", "[/R]"), prefix="I")
    with pytest.raises(ModelError, match="prefix and thinking"):
        model.generate("x", thinking=True, thinking_markers=("[R]", "[/R]"), prefix="I")
    with pytest.raises(ModelError, match="thinking_markers is"):
        model.generate("x", thinking=True, thinking_markers=("", "x"))
    generation = model.generate("x", grammar=Grammar.literal("!"), thinking=9, thinking_markers=("[R]", "[/R]"), seed=1)
    assert generation.raw.startswith("[R]") and generation.raw.endswith("[/R]!")


#: Formats whose models may begin a call inside of their reasoning.
UNCLOSED = [name for name in format_names() if getattr(get_format(name), "reasoning_ends", ())]


@pytest.mark.parametrize("name", UNCLOSED)
def test_the_marker_of_a_call_ends_the_reasoning(name: str) -> None:
    """A call inside open reasoning is a call, as for `ToolSet.parse`, where its marker is a token; the stream is the
    same. Where no call may be, and where the marker is written in several tokens, it ends nothing."""
    wire = get_format(name)
    assert wire.thinking is not None
    call = ToolCall("functions.get_weather:0", "get_weather", {"city": "Oslo"})
    said = f"{wire.thinking.start}Hm. {wire.render('', [call])}"
    parsed = TOOLS.parse(said, wire)
    for marks in (wire.reasoning_ends, ()):
        single: list[bytes | None] = [
            *(bytes((byte,)) for byte in range(256)),
            *(mark.encode() for mark in marks),
            None,
        ]
        vocabulary = Vocabulary(single, eos=[len(single) - 1])
        options: dict[str, Any] = {
            "tools": TOOLS,
            "tool_format": name,
            "thinking": True,
            "thinking_markers": (wire.thinking.start, wire.thinking.end),
            "max_tokens": 600,
        }
        out = ScriptedModel([said], vocabulary=vocabulary).generate("x", **options)
        if marks:
            assert (
                [call.name for call in out.tool_calls] == [call.name for call in parsed.tool_calls] == ["get_weather"]
            )
            assert TOOLS.validate(out.tool_calls[0])
            assert name != "hermes" or out.tool_calls[0].arguments == {
                "city": "Oslo"
            }  # a script is lost in some others
            assert out.message.reasoning == "Hm. "
            events = list(ScriptedModel([said], vocabulary=vocabulary).stream("x", **options))
            assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "Hm. "
            out = ScriptedModel([said], vocabulary=vocabulary).generate("x", **options, tool_choice="none")
        assert not out.tool_calls and "get_weather" in (out.message.reasoning or "")


@pytest.mark.parametrize("name", UNCLOSED)
def test_a_control_token_of_a_call_ends_the_reasoning(name: str) -> None:
    """No reasoning has control tokens; the one that begins a call may be chosen all the same, and ends it."""
    wire = get_format(name)
    assert wire.thinking is not None
    special = [*wire.reasoning_ends, *getattr(wire, "special", ())]
    if not any(token in wire.thinking.start for token in special):
        special += [wire.thinking.start, wire.thinking.end]
    backend = Noise(list(dict.fromkeys(special)), scale=0.1)
    backend.boost = {backend.vocabulary.special[wire.reasoning_ends[0]]: 9.0, ord('"'): 2.0, ord("}"): 2.0}
    given = (wire.thinking.start, wire.thinking.end)
    out = Model(backend).generate(
        "x", tools=TOOLS, tool_format=name, thinking=True, thinking_markers=given, max_tokens=300
    )
    assert out.tool_calls and out.usage.reasoning_tokens < 12
    assert TOOLS.validate(out.tool_calls[0])
