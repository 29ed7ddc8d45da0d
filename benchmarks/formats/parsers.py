"""Streaming parsers under hostile text: the slowest text of each wire format, in seconds per megabyte.

    python -m benchmarks formats/parsers [--formats hermes,glm-4.5] [--size 65536] [--places 12] [--full]

Each text is the beginning of a turn, cut at some place, and then one filler over and over: white space, digits,
quotes, brackets, marks of the format and halves of them. It is read in pieces of 4 characters and in one piece. With
``--full``, a million characters of the slowest text of each format are read again, and those times printed. Times are
processor times.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

from toolgrammar.core import ParseError, ToolCall
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import format_names, get_format

EDIT = Tool(
    "edit",
    "",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}, "size": {"type": "number"}, "tags": {"type": "array"}, "any": {}},
    },
)
TOOLS = ToolSet([EDIT, Tool("now", "", {})])
PLAIN = (*" \nx7\"'\\[{(<>,:=-é]", '{"a":', "[1,", "</")
TUPLES = ("triggers", "special", "openers", "frames", "end_tokens", "call_ends")
STRINGS = ("start", "end", "begin", "separator", "finish", "parameter_end", "quote")


class TooSlow(Exception):
    """A text took longer than its limit."""


def marks(wire: Any) -> list[str]:
    """Every string that means something in a format."""
    found = [mark for name in TUPLES for mark in getattr(wire, name, ())]
    found += [getattr(wire, name, "") for name in STRINGS]
    if wire.thinking is not None:
        found += [wire.thinking.start, wire.thinking.end]
    return sorted({mark for mark in found if mark.strip()})


def texts(wire: Any, size: int, places: int) -> Iterator[tuple[str, str]]:
    """Names and texts."""
    turn = wire.render("", [ToolCall("call_1", "edit", {"text": "ab", "size": 12, "tags": ["x"], "any": {"b": [1]}})])
    cuts = [match.end() for match in re.finditer(r"\w+|\W", turn)]
    cuts = [0, *sorted(random.Random(0).sample(cuts, min(places, len(cuts))))]
    words = marks(wire)
    fillers = [*PLAIN, *words, *(word[:-1] for word in words if len(word) > 1)]
    fillers += [turn, turn[: len(turn) // 2], turn[: len(turn) // 3]]
    for cut in cuts:
        for filler in dict.fromkeys(fillers):
            yield f"{turn[:cut]!r} + {filler!r} * n", turn[:cut] + filler * (size // len(filler) + 1)


def seconds(wire: Any, text: str, piece: int, limit: float) -> float:
    """The time of parsing a text in pieces."""
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    parser = TOOLS.parser(wire)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    start = time.process_time()
    try:
        for each in pieces:
            parser.feed(each)
        parser.close()
    except ParseError:
        pass
    except TooSlow:
        return limit
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - start


def main(formats: str = ",".join(format_names()), size: int = 1 << 16, places: int = 12, full: bool = False) -> None:
    """Print a line for each format."""

    def stop(*_: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGVTALRM, stop)
    for name in formats.split(","):
        wire = get_format(name)
        wire = wire.with_special(()) if hasattr(wire, "with_special") else wire
        TOOLS.parse(wire.render("", [ToolCall("call_1", "edit", {"text": "a"})]), wire)  # what is made once
        worst = dict.fromkeys((4, 1 << 30), (0.0, "", ""))
        for label, text in texts(wire, size, places):
            for piece in worst:
                took = seconds(wire, text, piece, 60.0) * 1e6 / len(text)
                worst[piece] = max(worst[piece], (took, label, text))
        for piece, (took, label, text) in worst.items():
            if full:
                took = seconds(wire, (text * (1_000_000 // len(text) + 1))[:1_000_000], piece, 600.0)
            print(f"{name:18} {'4 chars' if piece == 4 else 'whole':8} {took:8.2f} s/MB  {label[:110]}", flush=True)
