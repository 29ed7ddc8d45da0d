"""Turns that a chat template writes for probe calls: the format of the template writes and reads them.

The words in the probe calls ("Qaz7", "Saying this.") occur in no template, so what stands around them is markup.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from toolgrammar.core.conversation import Message, ReasoningMarkers, ToolCall

from ..tool import Tool

#: What a template is given for the end token: a character for private use.
_END = "\U000f0e0d"

#: The last words of the probe calls: what ends a turn comes after them.
_LAST = ("Qaz7", "31", "Edc9", "Rfv2", "1.5", "\u6771", "probe_delta", "probe_void", "probe_theta")

#: Spellings of the end of a sequence.
_EOS = re.compile(r"<[|\uff5c][^<>]*eos[^<>]*[|\uff5c]>")

#: Markers around reasoning that may precede a call, in addition to `ReasoningMarkers.KNOWN`.
_PREFILLS = ("<|open|>response<|sep|><|close|>response<|sep|>",)


def _tool(name: str, **properties: Any) -> Tool:
    described = {key: {"description": "It.", **value} for key, value in properties.items()}
    return Tool(name, "A tool.", {"type": "object", "properties": described, "required": list(properties)})


_WORD, _COUNT = {"type": "string"}, {"type": "integer"}
_INNER = {"type": "object", "properties": {"inner": _WORD}, "required": ["inner"]}
TOOLS = (
    _tool("probe_alpha", word=_WORD, count=_COUNT),
    _tool("probe_beta", word=_WORD),
    _tool("probe_gamma", items={"type": "array", "items": _INNER}),
    _tool("probe_delta"),
    _tool("probe_omega", yes={"type": "boolean"}, no={"type": "boolean"}, ratio={"type": "number"}),
    _tool("probe_theta", options={"type": "object", "properties": {"fast": {"type": "boolean"}}, "required": ["fast"]}),
    _tool("probe_void", none={"type": ["integer", "null"]}),
)

_FLAT = ToolCall("probeAb00", "probe_alpha", {"word": "Qaz7", "count": 31})
_SECOND = ToolCall("probeAb01", "probe_beta", {"word": "Edc9"})
#: The probe turns by name: text and calls.
TURNS: Mapping[str, tuple[str, tuple[ToolCall, ...]]] = {
    "one": ("", (_FLAT,)),
    "two": ("", (_FLAT, _SECOND)),
    "text": ("Saying this.", (_FLAT,)),
    "after": ("Saying this.", (_FLAT,)),
    "nested": ("", (ToolCall("probeAb00", "probe_gamma", {"items": [{"inner": "Wsx8"}, {"inner": "Rfv2"}]}),)),
    "empty": ("", (ToolCall("probeAb00", "probe_delta", {}),)),
    "words": ("", (ToolCall("probeAb00", "probe_omega", {"yes": True, "no": False, "ratio": 1.5}),)),
    "flag": ("", (ToolCall("probeAb00", "probe_theta", {"options": {"fast": True}}),)),
    "null": ("", (ToolCall("probeAb00", "probe_void", {"none": None}),)),
    "umlaut": ("", (ToolCall("probeAb00", "probe_beta", {"word": "Gr\u00fc\u00dfe, \u6771"}),)),
}


class TextMarkup(NamedTuple):
    """The markup of a turn of text; all empty if there is none."""

    start: str = ""
    end: str = ""
    last: str = ""  # the marker that ends such a turn


@dataclass(frozen=True)
class Probe:
    """The output of a template.

    Attributes:
        turns: the assistant's turns by name of `TURNS`, without reasoning and the end of the turn. Turns that the
            template refuses, or writes in part only, are left out.
        ids: the ids of the calls, as given to the template.
        thinking: the markers around reasoning before a call.
        text: the markup around a turn of text.
    """

    turns: Mapping[str, str]
    ids: tuple[str, ...]
    thinking: ReasoningMarkers | None = None
    text: TextMarkup = field(default_factory=TextMarkup)


def probe(template: str, ends: Sequence[str]) -> Probe | None:
    """Return the turns that a chat template writes for `TURNS`; None if it writes no calls.

    Args:
        template: the chat template.
        ends: tokens that may end a turn.
    """
    from toolgrammar.core.models import message_shape, render, shaped

    shape = message_shape(template)
    if not shape.writes_calls:
        return None
    question = {"role": "user", "content": "Question."}
    with_tools = [[tool.to_openai() for tool in TOOLS]] if shape.shows_tools else []
    for described in (*with_tools, []):
        try:
            prompt = render(template, [question], described, eos_token=_END, add_generation_prompt=True)
        except Exception:  # a template may raise anything; some refuse the tools
            continue
        break
    else:
        return None

    def written(text: str, calls: Sequence[ToolCall], reasoning: str | None = None) -> str | None:
        """Return the conversation with a turn of the assistant; None if the template refuses it."""
        turns = shaped([Message("assistant", text, tool_calls=tuple(calls), reasoning=reasoning)], shape)
        try:
            return render(template, [question, *turns], described, eos_token=_END, add_generation_prompt=False)
        except Exception:  # likewise
            return None

    spoken = written("Saying this.", ()) or ""
    after = spoken.rpartition("Saying this.")[2]
    found: dict[str, str] = {}
    for name, (text, calls) in TURNS.items():
        if name == "after" or (text and shape.text != "beside") or (len(calls) > 1 and not shape.several):
            continue
        whole = written(text, calls)
        if whole is None:
            continue
        body = _end(_begin(whole, prompt, spoken, calls[0].name), after, ends)
        if all(name in body for call in calls for name in (call.name, *call.arguments)) and text in body:
            found[name] = body
    if "one" not in found:
        return None
    _place_text(found)
    (turn,) = shaped([Message("assistant", "", tool_calls=(_FLAT,))], shape)
    second = shaped([Message("assistant", "", tool_calls=(_FLAT, _SECOND))], shape)[-1]
    ids = turn["tool_calls"][0]["id"], second["tool_calls"][-1]["id"]
    whole = written("", (_FLAT,), "Thinking so.") or ""
    begun = prompt.rpartition("Question.")[2]
    thinking = _thinking(whole.rpartition("Question.")[2], begun, found["one"])
    return Probe(found, ids, thinking, _around_text(spoken, prompt, ends))


def _place_text(found: dict[str, str]) -> None:
    """Leave the turn ``text`` only if it has the text before the call; it is ``after`` if the call comes first."""
    if "text" not in found:
        return
    said, call, body = TURNS["text"][0], found["one"].strip(), found["text"].strip()
    if body.startswith(call) and body.removeprefix(call).strip() == said:
        found["after"] = found["text"]
    if not body.endswith(call) or body.removesuffix(call).strip() != said:
        del found["text"]


#: Control tokens, with nothing between them.
_CONTROLS = re.compile(r"(?:<\|[^<>|\s]+\|>)+")


def _around_text(spoken: str, prompt: str, ends: Sequence[str]) -> TextMarkup:
    """Return the markup of a turn of text, if it begins with a control token.

    Args:
        spoken: a conversation with a turn of text.
        prompt: the conversation before that turn.
        ends: tokens that may end a turn.
    """
    none = TextMarkup()
    opened = next(
        (m.start for m in ReasoningMarkers.KNOWN if m.start and prompt.rstrip().endswith(m.start.strip())), ""
    )
    prompt = prompt.rstrip().removesuffix(opened.strip()) if opened else prompt
    if not spoken.startswith(prompt):
        return none
    before, said, after = spoken[len(prompt) :].partition("Saying this.")
    after = after.replace(_END, "")
    if not said or not _CONTROLS.fullmatch(before) or not (after == "" or _CONTROLS.fullmatch(after)):
        return none
    if any(marker.start and marker.start in before for marker in ReasoningMarkers.KNOWN):
        return none
    tokens = re.findall(r"<[^<>]+>", after)
    if not tokens:
        return TextMarkup(before)
    last = next((index for index, token in enumerate(tokens) if token in ends), len(tokens) - 1)
    return TextMarkup(before, "".join(tokens[:last]), tokens[last])


def _thinking(turn: str, prompt: str, call: str) -> ReasoningMarkers | None:
    """Return the markers around the reasoning of a turn; None if they are not to be seen.

    Args:
        turn: what follows the question, with the reasoning "Thinking so." and a call.
        prompt: what follows the question where the turn begins.
        call: the turn of the same call without reasoning.
    """
    before, said, rest = turn.removeprefix(prompt).partition("Thinking so.")
    # What stands between the reasoning and the first tag of the call.
    after = rest.partition(call.split(">")[0] + ">")[0] if call.strip() in rest else ""
    end = re.match(r"\s*(<[^<>]+>|\[[A-Z_/]+\])", after)
    if not said or not before.strip() or end is None or not turn.startswith(prompt):
        return None
    return ReasoningMarkers(before, end[1], after[end.end() :].strip())


def _begin(whole: str, prompt: str, spoken: str, name: str) -> str:
    """Return the text of a conversation after the prompt of its last turn, without reasoning.

    Args:
        whole: the conversation, with the turn.
        prompt: the conversation up to the turn, as a model is asked for it.
        spoken: the same conversation with a turn of text.
        name: of the tool that is called first.
    """
    end_of_prompt = "Question." + prompt.rpartition("Question.")[2]
    found = whole.rfind(end_of_prompt)
    if found >= 0:  # as a rule, the turn follows the prompt
        return _answer(whole[found + len(end_of_prompt) :], name)
    at = next((at for at in range(min(len(prompt), len(whole))) if prompt[at] != whole[at]), len(whole))
    if at < len(prompt) and not prompt[at:].strip():  # the prompt ends with other white space than the turn begins with
        return _answer(whole[at:].lstrip(), name)
    before, said, _ = spoken.rpartition("Saying this.")
    if "Question." in whole[at:] and said and whole.startswith(before):  # a question looks otherwise once answered
        return _answer(whole[len(before) :], name)
    if at < len(prompt):  # the prompt goes on with reasoning, or with less than the turn has: go back to a marker's end
        common = prompt[:at]
        at = max((common.rfind(mark) + len(mark) for mark in (">", "\n", "]") if mark in common), default=0)
        for marker in ReasoningMarkers.KNOWN:  # or to the beginning of one that opens reasoning
            opened = common.rfind(marker.start)
            if opened > 0 and opened + len(marker.start) == at:
                at = opened
    return _answer(whole[at:], name)


def _answer(body: str, name: str) -> str:
    """Return a turn without the reasoning before the call of a tool."""
    for end in (*(marker.end for marker in ReasoningMarkers.KNOWN), *_PREFILLS):
        cut = body.find(end)
        if 0 <= cut < body.find(name):
            body = body[cut + len(end) :].lstrip(" \n")
    return body


def _end(body: str, after: str, ends: Sequence[str]) -> str:
    """Return a turn without the markup that ends it: what a turn of text ends with, too, from a marker on, and what
    follows the last word of a call from a token on that may end a turn.

    Args:
        body: the turn.
        after: what follows the text in a turn of text: what both end with ends a turn.
        ends: tokens that may end a turn.
    """
    common = len(body)
    for char, ending in zip(reversed(body), reversed(after), strict=False):
        if char != ending:
            break
        common -= 1
    starts = [at for at, char in enumerate(body[common:], common) if char in "<[" + _END]  # of markers
    if starts:
        # A word between two control tokens belongs to both: the end begins after it.
        is_inside = len(starts) > 1 and re.search(r"<\|[^<>]*>[a-z_]+$", body[: starts[0]]) is not None
        body = body[: starts[1] if is_inside else starts[0]]
    last = max(body.rfind(word) for word in _LAST)
    cuts = [at for mark in (*ends, _END) if (at := body.find(mark, last)) >= 0]
    cuts += [match.start() for match in _EOS.finditer(body, last)][:1]
    return body[: min(cuts)] if cuts else body
