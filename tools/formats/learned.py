"""The wire format of a chat template, learned from the turns that it writes.

A family's format is used if its grammar admits, and its parser reads, the turns of the template (`probe`). If only the
parser reads them, the markup is fitted: the format gets the text that the template writes around names and arguments. A
template of no known family is fitted from the bare shapes in `SHAPES`. A call that begins with its name, and has JSON
after it, has no mark by which to know it: of such a template no format is learned.

The *front* and *back* of a call are its markup before the name and after the arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from toolgrammar.core.conversation import CallEnd, ReasoningMarkers, TextDelta
from toolgrammar.core.errors import ToolGrammarError

from .base import TurnSpec, WireFormat
from .families import FAMILIES
from .gemma import BareCalls
from .probe import TOOLS, TURNS, Probe
from .pythonic.calls import DOTTED, PythonicCalls
from .template.format import WORD, TemplateFormat
from .xml.calls import XmlCalls

#: Formats of each shape without a family, in the order in which they are tried.
SHAPES: tuple[TemplateFormat, ...] = (
    TemplateFormat(name="template", call="$name$args", triggers=()),
    XmlCalls(name="template", call="$name$args", triggers=(), parameter="$key$value", parameter_head="$key"),
    PythonicCalls(name="template", call="$name($args)", triggers=()),
)

_PROBED = "probe_alpha"  # the tool of the turn ``one``, whose arguments are {"word": "Qaz7", "count": 31}

_ID = "\U000f0e1d"  # stands for the id of a call in the turns: a character for private use


def learned(template: str, probed: Probe, likely: Sequence[WireFormat]) -> WireFormat | None:
    """Return the format of the turns that a template writes, with its markers as text; None if there is none.

    Args:
        template: the chat template.
        probed: its turns.
        likely: formats that its text points to, which are tried first.
    """
    found = _learned(template, probed, likely)
    if found is None and "{'" in probed.turns.get("nested", ""):
        found = _learned(template, _without_repr(probed), likely)
    text = probed.text
    if not isinstance(found, TemplateFormat) or not text.start or (found.text_start, found.text_end) == text[:2]:
        return found
    last = [text.last] if text.last else []
    ends = tuple(dict.fromkeys((*found.end_tokens, *last)))
    frames = tuple(dict.fromkeys((*found.frames, *last)))
    return replace(found, text_start=text.start, text_end=text.end, end_tokens=ends, frames=frames)


def _without_repr(probed: Probe) -> Probe:
    """Return the turns without that of nested values, where the template writes Python's ``repr`` instead of JSON."""
    return replace(probed, turns={name: body for name, body in probed.turns.items() if name != "nested"})


def _learned(template: str, probed: Probe, likely: Sequence[WireFormat]) -> WireFormat | None:
    """Return the first format that reads and admits the turns: a family's as it is, or one that is fitted, from a
    likely family, a bare shape or another family; else a likely one that only reads them."""
    families = [wire for wire in (*likely, *FAMILIES[::-1]) if isinstance(wire, TemplateFormat)]
    plain = {wire.name: wire.with_special(()) for wire in families}
    reading = [wire for wire in plain.values() if _may_read(wire, probed) and _reads(wire, probed)]
    for wire in reading:
        if _admits(wire, probed):
            return wire
    known = next((m for m in ReasoningMarkers.KNOWN if m.end in template and m.start in template), None)
    shown = probed.thinking
    # Markers that the turns show may have other markup around them: known ones are preferred.
    thinking = known if shown is None or (known is not None and known.start in shown.start) else shown
    shapes = [replace(shape, thinking=thinking) for shape in SHAPES]
    names = {wire.name for wire in likely}
    own = [wire for wire in reading if wire.name in names]
    for wire in (*own, *shapes, *(wire for wire in reading if wire.name not in names)):
        for fitted in _fitted(wire, probed, thinking):
            if _admits(fitted, probed) and _reads(fitted, probed):
                return fitted
    return own[0] if own else None


# -- does a format fit? ----------------------------------------------------------------------------------------


def _may_read(wire: TemplateFormat, probed: Probe) -> bool:
    """Return False if the turn of one call surely has none for the format's parser: a quick test before `_reads`."""
    body = probed.turns["one"].lstrip()
    if wire.anchored:
        return body.startswith(tuple(trigger.lstrip() for trigger in wire.triggers))
    return any(trigger in body for trigger in (*wire.triggers, *wire.openers)) or wire.call.startswith("$name")


def _turns_for(wire: TemplateFormat, probed: Probe) -> dict[str, str]:
    """Return the turns that a format has to have: no text before calls without a marker."""
    return {name: body for name, body in probed.turns.items() if name != "text" or not wire.anchored}


def _reads(wire: TemplateFormat, probed: Probe) -> bool:
    """Return True if the format's parser reads all turns."""
    for name, body in _turns_for(wire, probed).items():
        text, calls = TURNS[name]
        parser = wire.parser(TOOLS, lambda call: call, lambda: "id")
        try:
            events = [*parser.feed(body), *parser.close()]
        except ToolGrammarError:
            return False
        read = [event.call for event in events if isinstance(event, CallEnd)]
        said = "".join(event.text for event in events if isinstance(event, TextDelta))
        if said.strip() != text or [(c.name, c.arguments) for c in read] != [(c.name, c.arguments) for c in calls]:
            return False
    return True


def _admits(wire: TemplateFormat, probed: Probe) -> bool:
    """Return True if the format's grammar admits all turns."""
    try:
        grammar = wire.grammar(TurnSpec(TOOLS))
        return all(grammar.matches(body) for body in _turns_for(wire, probed).values())
    except ToolGrammarError:
        return False


# -- fitting the markup ----------------------------------------------------------------------------------------


def _fitted(base: TemplateFormat, probed: Probe, thinking: ReasoningMarkers | None) -> Iterator[TemplateFormat]:
    """Yield the format with the markup of the turns, once for each possible division of the markup.

    Args:
        base: a family's format or a bare shape.
        probed: the turns.
        thinking: the markers of reasoning.
    """
    turns = {name: _without_ids(body, probed.ids) for name, body in probed.turns.items()}
    if isinstance(base, BareCalls):
        yield from (replace(base, null=null, afterwards=after) for null in ("null", "None") for after in (False, True))
        return
    if base.triggers:
        yield replace(base, loose=True)
    if isinstance(base, XmlCalls):
        made = list(_xml(base, turns))
    elif isinstance(base, PythonicCalls):
        made = list(_python(base, turns))
    else:
        made = list(_json(base, turns))
    for wire in made:
        if wire.is_bare:
            continue
        for spaced in _spaced(wire, turns):
            yield spaced
            if isinstance(spaced, XmlCalls):
                yield replace(spaced, python_words=True)
            elif isinstance(spaced, PythonicCalls):
                yield replace(spaced, json_values=True)
                yield replace(spaced, either=True)
            else:
                yield replace(spaced, spacing="compact")
                yield replace(spaced, spacing="flexible")


def _without_ids(body: str, ids: Sequence[str]) -> str:
    """Return a turn with `_ID` for each id of a call."""
    for own in ids:
        body = body.replace(own, _ID)
    return body


def _json(base: TemplateFormat, turns: dict[str, str]) -> Iterator[TemplateFormat]:
    """Yield formats in which a call has its arguments as one JSON object, after the name of the function.

    Args:
        base: a format with the reasoning and the text of the template.
        turns: what the template writes for each probe: ``one`` call, ``two`` calls, ``text`` and a call.
    """
    one = turns["one"].strip()
    call_of_one = _span(one, _PROBED, 0)
    if call_of_one is None:
        return
    head, tail = one[: call_of_one.name], one[call_of_one.arguments_end :]
    middle = one[call_of_one.name_end : call_of_one.arguments]
    # ... "name": "NAME", "arguments": {ARGUMENTS} ...}
    in_object = "{" in head and re.match(r'"[^{}]*:\s*$', middle) is not None and tail.lstrip().startswith("}")
    name = "$name"
    if in_object:  # the quotes around the name belong to it
        head, middle, name = head[:-1], middle[1:], "$quoted"
    between = None
    if "two" in turns:
        two = turns["two"].strip()
        first = _span(two, _PROBED, 0)
        second = first and _span(two, "probe_beta", first.arguments_end)
        if not first or not second:
            return
        opening_quote = 1 if in_object else 0
        between = two[first.arguments_end : second.name - opening_quote]
    for markup in _divided(head, tail, between):
        call = f"{markup.front}{name}{middle}$args{markup.back}".replace(_ID, "$id")
        wire = with_markup(base, markup.begin, call, markup.separator, markup.finish, between is not None)
        start = call.partition("$")[0]
        if wire.anchored and "text" in turns and not markup.begin and in_object and len(start) > 1:
            # Text may precede a call without a separator: the beginning of a call, up to its name, is the marker.
            yield replace(wire, triggers=(start + '"',), anchored=False)
        yield wire


class _Span(NamedTuple):
    """Where the name of a call, and its arguments as a JSON object after the name, begin and end."""

    name: int
    name_end: int
    arguments: int
    arguments_end: int


def _span(body: str, name: str, start: int) -> _Span | None:
    """Return the places of the first call of a name in a turn, from a position on; None: it has no JSON arguments."""
    at = body.find(name, start)
    brace = body.find("{", at)
    while at >= 0 and brace >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(body, brace)
        except ValueError:
            return None
        if isinstance(value, dict) and "word" in value:
            # The name may be there twice: the one before the arguments counts.
            at = body.rfind(name, start, brace)
            return _Span(at, at + len(name), brace, end)
        brace = body.find("{", brace + 1)
    return None


class _Markup(NamedTuple):
    """The markup of a turn, as fields of `TemplateFormat`, with the front and back of each call."""

    begin: str
    front: str
    back: str
    separator: str
    finish: str


def _divided(head: str, tail: str, between: str | None) -> Iterator[_Markup]:
    """Yield the markup of a turn, divided into that of the turn and that of each call.

    What the beginning of a turn and the text between two calls end with is of each call; so is what the end of a turn
    and the text between two calls begin with. Both are divided where a marker begins or ends:
    ``"<calls><f>", "</f></calls>", "</f>, <f>" -> "<calls>", "<f>", "</f>", ", ", "</calls>"``.

    Args:
        head: the text of a turn before the name of its first call.
        tail: the text after the arguments of its last call.
        between: the text from the arguments of one call to the name of the next; None: there is one call in a turn.
    """
    if between is None:
        yield _Markup("", head, tail, "", "")
        return
    common = (
        size for size in range(min(len(head), len(between)), -1, -1) if between.endswith(head[len(head) - size :])
    )
    size = next(size for size in common if size in (0, len(head)) or head[len(head) - size] in "<[{ \n")
    begin, front = head[: len(head) - size], head[len(head) - size :]
    between = between[: len(between) - size]
    common = (size for size in range(min(len(tail), len(between)), -1, -1) if between.startswith(tail[:size]))
    size = next(size for size in common if size in (0, len(tail)) or tail[size - 1] in ">]}) \n`")
    yield _Markup(begin, front, back=tail[:size], separator=between[size:], finish=tail[size:])


def with_markup(
    base: TemplateFormat, begin: str, call: str, separator: str, finish: str, parallel: bool, **more: Any
) -> TemplateFormat:
    """Return the format with this markup; what a parser looks for is made of it where the base has none.

    Args:
        base: the format.
        begin: the text before the first call.
        call: the template of a call.
        separator: the text between calls.
        finish: the text after the last call.
        parallel: a turn may have several calls.
        more: other fields of the format.
    """
    wire = replace(base, begin=begin, call=call, separator=separator, finish=finish, parallel=parallel, **more)
    if "$id" in call:
        wire = replace(wire, ids=wire.ids or r"[A-Za-z0-9_\-]{1,40}")
    if base.triggers:
        return wire
    if isinstance(wire, PythonicCalls):  # a call begins with its name
        return replace(_with_trigger(wire), skips=tuple(dict.fromkeys(wire.around)), names=DOTTED)
    # A call begins with what stands before its object, or before its name or id.
    opener = call.partition("{" if "$quoted" in call else "$")[0].strip()
    wire = replace(_with_trigger(wire), skips=tuple(dict.fromkeys(wire.around)), openers=(opener,) if opener else ())
    if "$quoted" in call:  # name and arguments are members of one object
        key = re.search(r'"(\w+)":\s*\$quoted', call)
        arguments = re.search(r'"(\w+)":\s*\$args', call)
        keys = dict.fromkeys((*([arguments[1]] if arguments else []), "arguments", "parameters"))
        return replace(wire, name_key=key[1] if key else "name", argument_keys=tuple(keys))
    middle = "$" + call.partition("$args")[0].partition("$")[2]  # from the opener to the arguments
    head = _pattern(middle.rstrip() if isinstance(wire, XmlCalls) else middle)
    return replace(wire, head=head, call_id="$id" if "$id" in call else "")


def _with_trigger(wire: TemplateFormat) -> TemplateFormat:
    """Return the format with the beginning of its calls as the trigger: a marker, a bracket, or a line."""
    marker = wire.first_marker
    if not marker:  # any text may contain what they begin with: it counts only at the beginning of a turn
        return replace(wire, triggers=((wire.begin + wire.call).lstrip()[:1],), anchored=True, prose=False)
    return replace(wire, triggers=(marker,))


def _pattern(markup: str) -> str:
    """Return a regular expression of markup with any white space in it; holes are groups: ``"$name>" ->
    r"\\s*(?P<name>...)>"``."""
    pattern = ""
    for piece in re.split(r"(\$name|\$id|\s+)", markup):
        if piece == "$name":
            pattern += "(?P=name)" if "?P<name>" in pattern else rf"(?P<name>{WORD})"
        elif piece == "$id":
            pattern += r"(?P<id>[A-Za-z0-9_.:\-]+)"
        elif piece.isspace():
            pattern += r"\s*"
        elif piece:
            pattern += r"\s*" * (not pattern) + re.escape(piece)
    if pattern.removesuffix(r"\s*").endswith(rf"(?P<name>{WORD})"):
        # The name has ended only if a character that is none of a name follows: otherwise more of it may come.
        pattern = pattern.removesuffix(r"\s*") + r"(?=\s*[^\sA-Za-z0-9_.\-])"
    return pattern if pattern.startswith(r"\s*") else r"\s*" + pattern


class _Pieces(NamedTuple):
    """The markup of a call of two arguments, ``word`` ("Qaz7") and ``count`` (31): for example
    ``<f=NAME><p=word>Qaz7</p><p=count>31</p></f>``."""

    head: str  # before the name of the tool: "<f="
    first: str  # up to the name of the first argument: "><p="
    inside: str  # between the name of an argument and its value: ">"
    join: str  # between two arguments: "</p><p="
    last: str  # after the last value: "</p></f>"


def _pieces(one: str) -> _Pieces | None:
    """Return the markup of the turn of one call; None: its arguments are not written one by one."""
    at = one.rfind(_PROBED, 0, one.find("word"))
    if at < 0:
        return None
    head = one[:at].replace(_PROBED, "$name")
    first, _, rest = one[at + len(_PROBED) :].partition("word")
    inside, _, rest = rest.partition("Qaz7")
    join, _, rest = rest.partition("count")
    inside_of_number, is_there, last = rest.partition("31")
    if inside != inside_of_number:  # perhaps the first value is marked as a raw string, and the second as none
        inside, inside_of_number = inside.replace("true", "$raw"), inside_of_number.replace("false", "$raw")
    return _Pieces(head, first, inside, join, last) if is_there and inside == inside_of_number else None


def _xml(base: XmlCalls, turns: dict[str, str]) -> Iterator[TemplateFormat]:
    """Yield formats in which each argument has a tag or a pair of markers, from turns as `_json` takes them."""
    pieces = _pieces(turns["one"].strip())
    if pieces is None:
        return
    # The markup before an argument is what the texts before the first and before the second one end with.
    first, join = pieces.first, pieces.join
    limit = min(len(first), len(join))
    common = next((size for size in range(limit, -1, -1) if first.endswith(join[len(join) - size :])), 0)
    sizes = [size for size in range(common, 0, -1) if join[len(join) - size] in "<[] \n"]
    # A tag or a bracket begins the markup rather than white space.
    for size in sorted(sizes, key=lambda size: join[len(join) - size].isspace()):
        before, rest = join[len(join) - size :], join[: len(join) - size]
        for after in dict.fromkeys((rest, rest.rstrip())):
            yield from _xml_divided(base, turns, pieces, before, after, rest[len(after) :])


def _xml_divided(
    base: XmlCalls, turns: dict[str, str], pieces: _Pieces, before: str, after: str, gap: str
) -> Iterator[TemplateFormat]:
    """Yield the format whose arguments are written between ``before`` and ``after``, with ``gap`` between them."""
    head, first, inside, _, last = pieces
    if not (last.startswith(after) and after.strip() and first.endswith(before)):
        return
    middle, tail = first[: len(first) - len(before)], last[len(after) :]  # around the arguments
    empty = turns.get("empty", "").strip()
    if empty and not empty.endswith(f"probe_delta{middle}{tail}"):
        return
    between = None
    if "two" in turns:
        two = turns["two"].strip()
        start = two.find("31") + len("31")
        end = two.rfind("probe_beta", 0, two.find("word", start))
        between = two[start:end][len(after) :].replace("probe_beta", "$name")
    more: dict[str, Any] = {"parameter": f"{before}$key{inside}$value{after}", "gap": gap}
    if not base.triggers:
        more["parameter_head"] = parameter_pattern(before, inside)
    for markup in _divided(head, tail, between):
        call = f"{markup.front}$name{middle}$args{markup.back}".replace(_ID, "$id")
        yield with_markup(base, markup.begin, call, markup.separator, markup.finish, between is not None, **more)


def parameter_pattern(before: str, inside: str) -> str:
    """Return the regular expression of what a parser reads before a value: ``"<p=", ">"`` for ``<p=city>``.

    Args:
        before: the markup before the name of an argument.
        inside: the markup between the name and the value; ``$raw`` in it is "true" for a raw string, else "false".
    """
    name = r"""(?P<key>[^\s<>"'=]+?)"""
    front, raw, back = inside.partition("$raw")
    if raw:
        return rf"{_pattern(before)}{name}{re.escape(front)}(?P<raw>true|false){re.escape(back)}"
    # One newline before a value is markup, further ones belong to the value.
    markup = inside.rstrip("\n")
    return rf"{_pattern(before)}\s*{name}{_pattern(markup)}" + ("\n?" if markup != inside else "")


def _python(base: PythonicCalls, turns: dict[str, str]) -> Iterator[TemplateFormat]:
    """Yield formats in which a call is ``name(argument=value)``, from turns as `_json` takes them.

    The markup may be that of a list: ``[f(a=1), g(b=2)]``.
    """
    one = turns["one"].strip()
    at = one.find(f"{_PROBED}(")
    end = one.find(")", at)
    if at < 0 or end < 0 or "=" not in one[at:end]:
        return
    head, tail, between = one[:at], one[end + 1 :], None
    joined = re.search(r"""Qaz7["'](,\s*)count""", one)
    gap = joined[1] if joined else base.gap
    if "two" in turns:
        two = turns["two"].strip()
        first = two.find(")", two.find(f"{_PROBED}("))
        between = two[first + 1 : two.find("probe_beta(")]
    for begin, front, back, separator, finish in _divided(head, tail, between):
        # Nothing but the call stands in its template: its front and back go to the markup around it.
        begin, separator, finish = begin + front, back + separator + front, back + finish
        yield with_markup(base, begin, "$name($args)", separator, finish, between is not None, gap=gap)


def _spaced(wire: TemplateFormat, turns: dict[str, str]) -> Iterator[TemplateFormat]:
    """Yield the format with the white space around calls that the turns have, without text before calls or with it."""
    one = turns["one"]
    lead, trail = one[: len(one) - len(one.lstrip())], one[len(one.rstrip()) :]
    wire = replace(wire, lead=lead, trail=trail, afterwards="after" in turns, glued=False)
    if "text" not in turns:
        yield replace(wire, prose=False)
        return
    text = turns["text"].strip()
    said = TURNS["text"][0]
    rest = text[len(said) :] if text.startswith(said) else ""
    if not rest or wire.anchored:
        yield replace(wire, prose=False)
        return
    yield replace(wire, joint=rest[: len(rest) - len(rest.lstrip())], prose=True)
