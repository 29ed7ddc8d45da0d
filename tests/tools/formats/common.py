"""What the tests of all formats share: events joined, tools and calls that a format can spell, control tokens."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from toolgrammar.core import ArgumentsDelta, Event, ReasoningDelta, TextDelta, ToolCall, Vocabulary
from toolgrammar.core.schema.lower.arguments_object import READINGS
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import WireFormat, format_names, get_format
from toolgrammar.tools.formats.gemma import BareCalls
from toolgrammar.tools.formats.nested.calls import NestedCalls
from toolgrammar.tools.formats.pythonic.calls import PythonicCalls
from toolgrammar.tools.formats.template.format import TemplateFormat
from toolgrammar.tools.formats.xml.calls import XmlCalls

from ..strategies import names, objects, texts


def spelled_out(name: str) -> WireFormat:
    """A format whose markers are all text, so that `Grammar.matches` can read them."""
    wire = get_format(name)
    return wire.with_special(()) if isinstance(wire, TemplateFormat) else wire


EVERY = {name: spelled_out(name) for name in format_names()}

#: Texts that break the markup of some format.
BREAKING = (
    "</parameter>",
    "</arg_value>",
    "</function>",
    ">>>now\n{}",
    '<|"|>',
    "<escape>",
    "[now()]",
    "'); now(",
    '"), now(',
    "```",
    "None",
    " true ",
    "[1]",
    "<|tool_call_end|>",
)


def key_names(wire: WireFormat) -> st.SearchStrategy[str]:
    """Names of arguments that a format can spell."""
    if isinstance(wire, PythonicCalls):
        return st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,7}", fullmatch=True)
    if isinstance(wire, BareCalls):
        return st.from_regex(r"[A-Za-z0-9_$.\-]{1,8}(?: [a-z]{1,3})?", fullmatch=True)
    if isinstance(wire, XmlCalls):
        return names.filter(lambda name: wire.arguments.spelled(name) is not None)
    if isinstance(wire, NestedCalls):
        return names.filter(lambda name: re.fullmatch(wire.arguments.names, name) is not None and name != wire.item)
    return names


def tool_names(wire: WireFormat) -> list[str]:
    """Names of tools that a format can spell: sharing beginnings, dotted, of other alphabets where it has them."""
    pool = ["get", "get_all", "get_al", "a-b", "x", "Tool_9", "a.b", "a.b.c", "größe", 'quo"te', "日本", "all"]
    allowed = getattr(wire, "name_pattern", "[\\s\\S]+")
    return [name for name in pool if re.fullmatch(allowed, name)]


@st.composite
def turns(draw: st.DrawFn, wire: WireFormat, most: int = 5) -> tuple[ToolSet, list[ToolCall]]:
    """Tools, and one to five calls of them (one, where the format writes one)."""
    tools, examples = [], []
    text = st.one_of(texts, st.sampled_from(BREAKING))
    for name in draw(st.lists(st.sampled_from(tool_names(wire)), min_size=1, max_size=3, unique=True)):
        schema, instance = draw(objects(keys=key_names(wire), strings=text))
        tools.append(Tool(name, "", schema))
        examples.append((name, instance))
    parallel = getattr(wire, "parallel", True)
    pairs = draw(st.lists(st.sampled_from(examples), min_size=1, max_size=most if parallel else 1))
    return ToolSet(tools), [ToolCall(f"c{i}", name, arguments) for i, (name, arguments) in enumerate(pairs)]


def is_spelled(wire: WireFormat, calls: Iterable[ToolCall]) -> bool:
    """Whether every value has a spelling in a format: what `docs/formats.md` says cannot be written."""
    return all(_spelled(wire, value, outer=True) for call in calls for value in call.arguments.values())


def _spelled(wire: WireFormat, value: Any, *, outer: bool) -> bool:
    if isinstance(wire, BareCalls):
        if isinstance(value, str):
            return wire.quote not in value
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return all(_spelled(wire, each, outer=False) for each in inner)
    if isinstance(wire, NestedCalls):
        if isinstance(value, str):
            return wire.mark not in value and not any(re.fullmatch(each, value) for each in READINGS.values())
        if not isinstance(value, (dict, list)):
            return True
        inner = value.values() if isinstance(value, dict) else value
        return bool(inner) and all(_spelled(wire, each, outer=False) for each in inner)  # an empty element may be ""
    if isinstance(wire, XmlCalls) and isinstance(value, str):
        # Where the markup does not say what is a string, one that reads as another kind may be left out.
        reads = wire.arguments.after_name_raw is None and any(re.fullmatch(each, value) for each in READINGS.values())
        return not wire.arguments.is_ended(value) and not reads
    return True


def counter() -> Callable[[], str]:
    """Return a maker of ids: ``c0``, ``c1`` and so on."""
    numbers = itertools.count()
    return lambda: f"c{next(numbers)}"


def events_of(tools: ToolSet, wire: WireFormat | str, pieces: Iterable[str], **options: Any) -> list[Event]:
    """Return the events of the parser, neighbouring deltas of one kind joined."""
    parser = tools.parser(wire, **{"new_id": counter(), **options})
    events = [event for piece in pieces for event in parser.feed(piece)] + list(parser.close())
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            joined[-1] = ReasoningDelta(last.text + event.text)
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta):
            joined[-1] = ArgumentsDelta(event.index, last.text + event.text)
        else:
            joined.append(event)
    return joined


def byte_vocabulary(special: Iterable[str]) -> Vocabulary:
    """256 bytes, the control tokens, and an end."""
    special = list(special)
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    tokens += [None] * (len(special) + 1)
    return Vocabulary(tokens, eos=[len(tokens) - 1], special={name: 256 + i for i, name in enumerate(special)})


def token_ids(text: str, vocabulary: Vocabulary) -> list[int]:
    """A text as tokens, control tokens as such."""
    if not vocabulary.special:
        return list(text.encode())
    words = sorted(vocabulary.special, key=len, reverse=True)
    ids: list[int] = []
    for piece in re.split("(" + "|".join(map(re.escape, words)) + ")", text):
        ids += [vocabulary.special[piece]] if piece in vocabulary.special else list(piece.encode())
    return ids
