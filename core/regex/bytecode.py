"""Bytecode of patterns: a term, and all that it is made of, as one string of bytes.

The same patterns occur in many schemas, so their compiled form is cached. A tree would be hundreds of objects, each of
which Python's garbage collector visits in a full collection; a string of bytes is one, and terms are made of it faster.

A program is a sequence of instructions, each ``kind, n`` and ``n`` integers. The others refer to the term that the i-th
makes as ``i``, and the last one makes the language. Deferred terms come first: each names the later one that it stands
for.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Final

from ..language import term_kinds
from ..language.terms import Terms

_OF_PARTS: Final = frozenset((term_kinds.SEQ, term_kinds.ALT, term_kinds.AND))


def assemble(terms: Terms, term: int) -> bytes:
    """Return the bytecode of a term that is made of characters, concatenation, Boolean operations, repetition, and
    deferred terms.

    Law: ``execute(other, assemble(terms, term))`` is a term of the same language in another store.
    """
    deferred = _deferred(terms, term)
    written = array("i")
    for _ in deferred:
        written.extend((term_kinds.DEFERRED, 1, 0))
    numbers = {node: number for number, node in enumerate(deferred)}
    for number, body in enumerate(deferred.values()):
        _write(terms, body, numbers, written)
        written[3 * number + 2] = numbers[body]
    _write(terms, term, numbers, written)
    if numbers[term] != len(numbers) - 1:
        written.extend((term_kinds.ALT, 1, numbers[term]))
    return written.tobytes()


def _deferred(terms: Terms, term: int) -> dict[int, int]:
    """Return the deferred terms in a term, and what they stand for."""
    first_parts: dict[int, int] = {}
    seen = {term}
    waiting = [term]
    while waiting:
        top = waiting.pop()
        kind, parts = _parts(terms, top)
        if kind == term_kinds.DEFERRED:
            first_parts[top] = parts[0]
        for part in parts:
            if part not in seen:
                seen.add(part)
                waiting.append(part)
    return first_parts


def _parts(terms: Terms, term: int) -> tuple[int, Sequence[int]]:
    """Return the kind of a term and the terms of which it is made."""
    kind, args = terms.shape(term)
    if kind == term_kinds.DEFERRED:
        return kind, (terms.made(term),)
    if kind in _OF_PARTS or kind == term_kinds.NOT:
        return kind, args
    return kind, args[:1] if kind == term_kinds.REPEAT else ()


def _write(terms: Terms, term: int, numbers: dict[int, int], written: array[int]) -> None:
    """Write the instructions of a term whose deferred parts are numbered."""
    waiting = [term]
    while waiting:
        top = waiting[-1]
        if top in numbers:
            waiting.pop()
            continue
        kind, parts = _parts(terms, top)
        missing = [part for part in parts if part not in numbers]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        operands: Sequence[int] = [numbers[part] for part in parts]
        if kind == term_kinds.CHARS:
            operands = [flip for low, high in terms.ranges(top) for flip in (low, high + 1)]
        elif kind == term_kinds.REPEAT:
            operands = (*operands, *terms.shape(top)[1][1:])
        elif kind not in _OF_PARTS and kind not in (term_kinds.NOT, term_kinds.EPSILON_KIND, term_kinds.EMPTY_KIND):
            raise TypeError(f"no part of a pattern: a term of kind {kind}")
        numbers[top] = len(numbers)
        written.extend((kind, len(operands), *operands))


def execute(terms: Terms, code: bytes) -> int:
    """Return the term that bytecode makes."""
    row = memoryview(code).cast("i")
    made: list[int] = []
    at = 0
    while at < len(row):
        kind = row[at]
        numbers = row[at + 2 : at + 2 + row[at + 1]]
        at += 2 + len(numbers)
        if kind == term_kinds.CHARS:
            term = terms.chars_of(numbers)
        elif kind == term_kinds.SEQ:
            term = terms.seq(made[numbers[0]], made[numbers[1]])
        elif kind == term_kinds.ALT:
            term = terms.alt([made[item] for item in numbers])
        elif kind == term_kinds.REPEAT:
            part, least, most = numbers
            term = terms.repeat(made[part], least, None if most == term_kinds.NONE else most)
        elif kind == term_kinds.AND:
            term = terms.and_([made[item] for item in numbers])
        elif kind == term_kinds.NOT:
            term = terms.not_(made[numbers[0]])
        elif kind == term_kinds.DEFERRED:
            term = terms.deferred((code, len(made)), _body(made, numbers[0]), loops=True)
        else:
            term = terms.EPSILON if kind == term_kinds.EPSILON_KIND else terms.EMPTY
        made.append(term)
    return made[-1]


def _body(made: list[int], number: int) -> Callable[[Terms], int]:
    return lambda terms: made[number]
