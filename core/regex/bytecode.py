"""Bytecode of anchored patterns: a syntax tree as one string of bytes, from which terms are made.

Patterns that people copy are met in schema after schema, so that what was read of them is worth keeping. As a tree it
is hundreds of objects, at each of which Python's garbage collector looks whenever it collects everything; in a string
of bytes there is nothing to look at. And terms are made of it sooner.

A program is a row of instructions, each ``kind, n`` and ``n`` integers; what the i-th makes is called ``i`` by those
after it, and the last one makes the language.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

from ..language.terms import Terms
from . import syntax

_EMPTY: Final = 0
_CHARS: Final = 1
_SEQ: Final = 2
_ALT: Final = 3
_AND: Final = 4
_NOT: Final = 5
_REPEAT: Final = 6

_OF_ITEMS = {syntax.Seq: _SEQ, syntax.Alt: _ALT, syntax.And: _AND}
_ENDLESS: Final = -1


def assemble(tree: syntax.Regex) -> bytes:
    """Return the bytecode of an anchored syntax tree.

    Law: ``execute(terms, assemble(tree))`` is a term of the language of ``tree``.
    """
    written = array("i")
    count = 0

    def combine(node: syntax.Regex, parts: Sequence[int]) -> int:
        nonlocal count
        numbers: Sequence[int]
        if isinstance(node, syntax.Chars):
            kind, numbers = _CHARS, node.charset.flips
        elif isinstance(node, (syntax.Seq, syntax.Alt, syntax.And)):
            kind, numbers = _OF_ITEMS[type(node)], parts
        elif isinstance(node, syntax.Repeat):
            kind, numbers = _REPEAT, (parts[0], node.min, _ENDLESS if node.max is None else node.max)
        elif isinstance(node, syntax.Not):
            kind, numbers = _NOT, parts
        elif isinstance(node, syntax.Empty):
            kind, numbers = _EMPTY, ()
        else:
            raise TypeError(f"an assertion is left in an anchored language: {node}")
        written.extend((kind, len(numbers), *numbers))
        count += 1
        return count - 1

    syntax.fold(tree, combine)
    return written.tobytes()


def execute(terms: Terms, code: bytes) -> int:
    """Return the term that bytecode makes."""
    row = memoryview(code).cast("i")
    made: list[int] = []
    at = 0
    while at < len(row):
        kind = row[at]
        numbers = row[at + 2 : at + 2 + row[at + 1]]
        at += 2 + len(numbers)
        if kind == _CHARS:
            found = terms.chars_of(numbers)
        elif kind == _SEQ:
            found = terms.sequence([made[each] for each in numbers])
        elif kind == _ALT:
            found = terms.alt([made[each] for each in numbers])
        elif kind == _REPEAT:
            part, least, most = numbers
            found = terms.repeat(made[part], least, None if most == _ENDLESS else most)
        elif kind == _AND:
            found = terms.and_([made[each] for each in numbers])
        elif kind == _NOT:
            found = terms.not_(made[numbers[0]])
        else:
            found = terms.EPSILON
        made.append(found)
    return made[-1]
