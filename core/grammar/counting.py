"""Texts of a finite language by counting: all of them in random order, each order as likely as the others.

The automaton is deterministic, so each text is one path, and the paths from a state are counted exactly. A JSON value
counts once, however it may be spelled: paths keep to plain spellings (`_PLAIN`), and of the few spellings of a value
that are left, `is_plainest` has one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import cache

from ..automaton.encoding import REFUSED
from ..automaton.lazy_dfa import Program
from ..basics.pauses import pause
from ..regex.compile import regex_term

#: Maximum number of texts of a language that counts as finite (an integer without bounds has more: those of 30 digits),
#: and of steps of its automaton.
MAX_TEXTS, MAX_STEPS = 2**64, 50_000

#: JSON without escapes of what needs none, and without zeros at the end of a fraction, but for that of 1.0.
_STRING = r'"([^"\\]|\\["\\bfnrt]|\\u(00[01]|d[89a-f][0-9a-f])[0-9a-f])*"'
_NUMBER = r"(-?(0|[1-9][0-9]*)(\.(0|[0-9]*[1-9]))?([eE][+-]?[0-9]+)?)?"
_PLAIN = rf'{_NUMBER}(({_STRING}|[^"0-9.-]){_NUMBER})*'

#: A state of the automaton, and that of `_PLAIN` after the same text, if texts are JSON; and the steps of each by
#: bytes.
Pair = tuple[int, int]
Steps = dict[Pair, list[tuple[int, Pair]]]


@cache
def _plain() -> Program:
    return Program(lambda nodes: nodes.text(regex_term(nodes.terms, _PLAIN, whole=True)))


def shuffled(program: Program, source: random.Random, *, is_json: bool) -> Iterator[str] | None:
    """Return all texts of a program in random order, each once; None: there are too many, or they cannot be counted.

    Args:
        program: one that is not empty, in a store of its own.
        source: of the randomness.
        is_json: leave out what is not in a plain spelling.
    """
    plain = _plain() if is_json else None
    begin = program.start, REFUSED if plain is None else plain.start
    steps: Steps = {}
    counts: dict[Pair, int] = {}  # the texts from each pair on
    steps_left = MAX_STEPS
    stack = [begin]  # depth first: a pair is counted after those that follow it
    while stack:
        pair = stack[-1]
        state, _ = pair
        if pair in counts:
            stack.pop()
        elif pair in steps:
            counts[pair] = program.automaton.accepts(state) + sum(counts[after] for _, after in steps[pair])
        else:
            found = steps[pair] = list(_following(program, plain, pair))
            steps_left -= len(found) + 1
            depends_on_text = any(state < REFUSED for _, (state, _) in found)  # an open state
            is_cycle = any(after in steps and after not in counts for _, after in found)  # endlessly many texts
            if steps_left < 0 or depends_on_text or is_cycle:
                return None
            stack += [after for _, after in found if after not in counts]
    return _drawn(program, begin, steps, counts, source) if counts[begin] <= MAX_TEXTS else None


def _following(program: Program, plain: Program | None, pair: Pair) -> Iterator[tuple[int, Pair]]:
    """Yield the bytes that may come next, each with the pair after it; with ``plain``, in a plain spelling."""
    pause()
    state, plain_state = pair
    for byte in program.automaton.following(state):
        plain_after = REFUSED
        if plain is not None:
            with plain.lock:
                plain_after = plain.automaton.step(plain_state, byte)
        if plain is None or plain_after != REFUSED:
            yield byte, (program.automaton.step(state, byte), plain_after)


def _drawn(
    program: Program, begin: Pair, steps: Steps, counts: dict[Pair, int], source: random.Random
) -> Iterator[str]:
    """Yield the counted texts in random order: the shuffle of Fisher and Yates of their numbers, of which only those
    that were moved are kept."""
    moved: dict[int, int] = {}
    for place in range(counts[begin]):
        chosen = source.randrange(place, counts[begin])
        number = moved.get(chosen, chosen)
        moved[chosen] = moved.pop(place, place)
        yield _numbered(program, begin, steps, counts, number)


def _numbered(program: Program, pair: Pair, steps: Steps, counts: dict[Pair, int], number: int) -> str:
    """Return the text of a number, counted from 0 in the order of bytes, from a pair of states on."""
    text = bytearray()
    while number or not program.automaton.accepts(pair[0]):
        number -= program.automaton.accepts(pair[0])  # the text that ends here comes first
        for byte, after in steps[pair]:  # noqa: B007
            if number < counts[after]:
                break
            number -= counts[after]
        text.append(byte)
        pair = after
    return text.decode("utf-8", "replace")


def is_plainest(text: str, matches: Callable[[str], bool]) -> bool:
    """Return False if a language has a plainer spelling of a JSON value: 0 for -0.0, a character for its escape."""

    def number(said: str) -> float:
        value = float(said)
        return int(value) if value.is_integer() else value

    plainest = json.dumps(json.loads(text, parse_float=number), ensure_ascii=False)
    return plainest == text or not matches(plainest)
