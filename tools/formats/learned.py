"""The wire format of a chat template, learned from the turns that it writes.

A family's format is used if its grammar admits, and its parser reads, the turns of the template (`probe`). If only the
parser reads them, the markup is fitted: the format gets the text that the template writes around names and arguments. A
template of no known family is fitted from the bare shapes in `SHAPES`. A call that begins with its name, and has JSON
after it, has no mark by which to know it: of such a template no format is learned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

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
    start, end, last = probed.text
    if not isinstance(found, TemplateFormat) or not start or (found.text_start, found.text_end) == (start, end):
        return found
    ends = tuple(dict.fromkeys((*found.end_tokens, *([last] if last else ()))))
    frames = tuple(dict.fromkeys((*found.frames, *([last] if last else ()))))
    return replace(found, text_start=start, text_end=end, end_tokens=ends, frames=frames)


def _without_repr(probed: Probe) -> Probe:
    """Return the turns without that of nested values, where the template writes Python's ``repr`` instead of JSON."""
    return replace(probed, turns={name: body for name, body in probed.turns.items() if name != "nested"})


def _learned(template: str, probed: Probe, likely: Sequence[WireFormat]) -> WireFormat | None:
    families = [wire for wire in (*likely, *FAMILIES[::-1]) if isinstance(wire, TemplateFormat)]
    plain = {wire.name: wire.with_special(()) for wire in families}
    reading = [wire for wire in plain.values() if _may_read(wire, probed) and _reads(wire, probed)]
    for wire in reading:
        if _admits(wire, probed):
            return wire
    known = next((m for m in ReasoningMarkers.KNOWN if m.end in template and m.start in template), None)
    shown = probed.thinking
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
    """Yield the format with the markup of the turns, once for each possible division of the markup."""
    turns = {name: _marked(body, probed.ids) for name, body in probed.turns.items()}
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


def _marked(body: str, ids: Sequence[str]) -> str:
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
    first = _span(one, _PROBED, 0)
    if first is None:
        return
    head, middle, tail = one[: first[0]], one[first[1] : first[2]], one[first[3] :]
    in_object = "{" in head and re.match(r'"[^{}]*:\s*$', middle) is not None and tail.lstrip().startswith("}")
    name = "$name"
    if in_object:
        head, middle, name = head[:-1], middle[1:], "$quoted"
    between = None
    if "two" in turns:
        two = turns["two"].strip()
        again = _span(two, _PROBED, 0)
        second = again and _span(two, "probe_beta", again[3])
        if not again or not second:
            return
        opening_quote = 1 if name == "$quoted" else 0
        between = two[again[3] : second[0] - opening_quote]
    for begin, front, back, separator, finish in _divided(head, tail, between):
        call = f"{front}{name}{middle}$args{back}".replace(_ID, "$id")
        wire = with_markup(base, begin, call, separator, finish, between is not None)
        start = call.partition("$")[0]
        if wire.anchored and "text" in turns and not begin and in_object and len(start) > 1:
            # Text may precede a call without a separator: the beginning of a call, up to its name, is the marker.
            yield replace(wire, triggers=(start + '"',), anchored=False)
        yield wire


def _span(body: str, name: str, start: int) -> tuple[int, int, int, int] | None:
    """Return where a call's name and its arguments, a JSON object after the name, begin and end."""
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
            return at, at + len(name), brace, end
        brace = body.find("{", brace + 1)
    return None


def _divided(head: str, tail: str, between: str | None) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield begin, the text of a call before its name and after its arguments, separator and finish.

    What the beginning of a turn and the text between two calls end with is of each call; so is what the end of a turn
    and the text between two calls begin with. Both are divided where a marker begins or ends:
    ``"<calls><f>", "</f></calls>", "</f>, <f>" -> "<calls>", "<f>", "</f>", ", ", "</calls>"``.

    Args:
        head: the text of a turn before the name of its first call.
        tail: the text after the arguments of its last call.
        between: the text from the arguments of one call to the name of the next; None: there is one call in a turn.
    """
    if between is None:
        yield "", head, tail, "", ""
        return
    common = (
        size for size in range(min(len(head), len(between)), -1, -1) if between.endswith(head[len(head) - size :])
    )
    size = next(size for size in common if size in (0, len(head)) or head[len(head) - size] in "<[{ \n")
    begin, front = head[: len(head) - size], head[len(head) - size :]
    between = between[: len(between) - size]
    common = (size for size in range(min(len(tail), len(between)), -1, -1) if between.startswith(tail[:size]))
    size = next(size for size in common if size in (0, len(tail)) or tail[size - 1] in ">]}) \n`")
    yield begin, front, tail[:size], between[size:], tail[size:]


def with_markup(
    base: TemplateFormat, begin: str, call: str, separator: str, finish: str, parallel: bool, **more: Any
) -> TemplateFormat:
    """Return the format with this markup; what a parser looks for is made of it where the base has none."""
    wire = replace(base, begin=begin, call=call, separator=separator, finish=finish, parallel=parallel, **more)
    if "$id" in call:
        wire = replace(wire, ids=wire.ids or r"[A-Za-z0-9_\-]{1,40}")
    if base.triggers:
        return wire
    if isinstance(wire, PythonicCalls):  # a call begins with its name
        return replace(_with_trigger(wire), skips=tuple(dict.fromkeys(wire.around)), names=DOTTED)
    opener = call.partition("{" if "$quoted" in call else "$")[0].strip()
    wire = replace(_with_trigger(wire), skips=tuple(dict.fromkeys(wire.around)), openers=(opener,) if opener else ())
    if "$quoted" in call:  # name and arguments are members of one object
        key = re.search(r'"(\w+)":\s*\$quoted', call)
        arguments = re.search(r'"(\w+)":\s*\$args', call)
        keys = dict.fromkeys((*([arguments[1]] if arguments else []), "arguments", "parameters"))
        return replace(wire, name_key=key[1] if key else "name", argument_keys=tuple(keys))
    middle = "$" + call.partition("$args")[0].partition("$")[2]
    head = _pattern(middle.rstrip() if isinstance(wire, XmlCalls) else middle)
    return replace(wire, head=head, call_id="$id" if "$id" in call else "")


def _with_trigger(wire: TemplateFormat) -> TemplateFormat:
    """Return the format with the beginning of its calls as the trigger: a marker, a bracket, or a line."""
    marker = wire.first_marker
    if not marker:  # any text may contain what they begin with: it counts only at the beginning of a turn
        return replace(wire, triggers=((wire.begin + wire.call).lstrip()[:1],), anchored=True, prose=False)
    return replace(wire, triggers=(marker,))


def _pattern(markup: str) -> str:
    """Return a regular expression of markup with any white space in it; holes are groups."""
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
        pattern = pattern.removesuffix(r"\s*") + r"(?=\s*[^\sA-Za-z0-9_.\-])"  # the name has ended
    return pattern if pattern.startswith(r"\s*") else r"\s*" + pattern


def _xml(base: XmlCalls, turns: dict[str, str]) -> Iterator[TemplateFormat]:
    """Yield formats in which each argument has a tag or a pair of markers, from turns as `_json` takes them.

    The probe has the arguments ``word`` ("Qaz7") and ``count`` (31): what stands between them is the markup."""
    one = turns["one"].strip()
    at = one.rfind(_PROBED, 0, one.find("word"))
    if at < 0:
        return
    head = one[:at].replace(_PROBED, "$name")
    first, _, rest = one[at + len(_PROBED) :].partition("word")
    inside, _, rest = rest.partition("Qaz7")
    join, _, rest = rest.partition("count")
    inside_of_number, is_there, last = rest.partition("31")
    if not is_there:
        return
    if inside != inside_of_number:  # perhaps a mark of raw strings
        if inside.replace("true", "$raw") != inside_of_number.replace("false", "$raw"):
            return
        inside = inside.replace("true", "$raw")
    # The markup before an argument is what the texts before the first and before the second one end with.
    limit = min(len(first), len(join))
    same = next((size for size in range(limit, -1, -1) if first.endswith(join[len(join) - size :])), 0)
    starts = [size for size in range(same, 0, -1) if join[len(join) - size] in "<[] \n"]
    for shared in sorted(starts, key=lambda size: join[len(join) - size].isspace()):
        before, whole = join[len(join) - shared :], join[: len(join) - shared]
        for after in dict.fromkeys((whole, whole.rstrip())):
            yield from _xml_divided(base, turns, (head, first, inside, last), before, after, whole[len(after) :])


def _xml_divided(
    base: XmlCalls, turns: dict[str, str], pieces: tuple[str, str, str, str], before: str, after: str, gap: str
) -> Iterator[TemplateFormat]:
    """Yield the format whose arguments are written between ``before`` and ``after``, with ``gap`` between them.

    ``pieces`` are the texts before the name, from it to the first argument's name, from there to its value, and after
    the last value.
    """
    head, first, inside, last = pieces
    none = turns.get("empty", "").strip()
    if last.startswith(after) and after.strip() and first.endswith(before):
        shared = len(before)
        middle, tail = first[: len(first) - shared], last[len(after) :]
        if none and not none.endswith(f"probe_delta{middle}{tail}"):
            return
        between = None
        if "two" in turns:
            two = turns["two"].strip()
            begin = two.find("31") + len("31")
            end = two.rfind("probe_beta", 0, two.find("word", begin))
            between = two[begin:end][len(after) :].replace("probe_beta", "$name")
        more: dict[str, Any] = {"parameter": f"{before}$key{inside}$value{after}", "gap": gap}
        if not base.triggers:
            more["parameter_head"] = parameter_pattern(before, inside)
        for begin_, front, back, separator, finish in _divided(head, tail, between):
            call = f"{front}$name{middle}$args{back}".replace(_ID, "$id")
            yield with_markup(base, begin_, call, separator, finish, between is not None, **more)


def parameter_pattern(before: str, inside: str) -> str:
    """Return what a parser reads before a value."""
    name = r"""(?P<key>[^\s<>"'=]+?)"""
    front, raw, back = inside.partition("$raw")
    if raw:
        return rf"{_pattern(before)}{name}{re.escape(front)}(?P<raw>true|false){re.escape(back)}"
    newline = inside[len(inside.rstrip("\n")) :]
    return rf"{_pattern(before)}\s*{name}{_pattern(inside[: len(inside) - len(newline)])}" + ("\n?" if newline else "")


def _python(base: PythonicCalls, turns: dict[str, str]) -> Iterator[TemplateFormat]:
    """Yield formats in which a call is ``name(argument=value)``, from turns as `_json` takes them."""
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
        yield with_markup(
            base, begin + front, "$name($args)", back + separator + front, back + finish, between is not None, gap=gap
        )


def _spaced(wire: TemplateFormat, turns: dict[str, str]) -> Iterator[TemplateFormat]:
    """Yield the format with the white space around calls that the turns have."""
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
