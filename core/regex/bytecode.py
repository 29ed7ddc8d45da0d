"""Bytecode of patterns: a term, and all that it is made of, as one string of bytes.

The same patterns occur in many schemas, so their compiled form is cached. A tree would be hundreds of objects, each of
which Python's garbage collector visits in a full collection; a string of bytes is one, and terms are made of it faster.

A program is a sequence of instructions, each ``kind, n, a1 ... an``: integers of 32 bits. Instruction i makes term i;
operands that are terms are numbers of earlier instructions, and the last instruction makes the language. The one
exception: DEFERRED instructions come first, and each refers to the later one that is its body.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from ..language import term_kinds
from ..language.term_kinds import ALT, AND, CHARS, DEFERRED, EPSILON_KIND, MULTIPLE, NOT, REPEAT, SEQ, WORDS
from ..language.terms import Terms

#: Kinds of terms whose arguments are all terms.
_OPERATORS = frozenset((SEQ, ALT, AND, NOT))


def assemble(terms: Terms, term: int) -> bytes:
    """Return the bytecode of a term that is made of characters, concatenation, Boolean operations, repetition, and
    deferred terms.

    Law: ``execute(other, assemble(terms, term))`` is a term of the same language in another store.

    Raises:
        TypeError: a part is of another kind.
    """
    shapes = _shapes(terms, term)
    bodies = [args[0] for kind, args in shapes.values() if kind == DEFERRED]
    numbers: dict[int, int] = {}
    written = array("i")
    for node, (kind, _args) in shapes.items():
        if kind == DEFERRED:
            numbers[node] = len(numbers)
            written.extend((DEFERRED, 1, 0))  # the 0 becomes the number of its body, below
    for number, body in enumerate(bodies):
        _write(shapes, body, numbers, written)
        written[3 * number + 2] = numbers[body]
    _write(shapes, term, numbers, written)
    if numbers[term] != len(numbers) - 1:  # the last instruction makes the language: a union of this term alone
        written.extend((ALT, 1, numbers[term]))
    return written.tobytes()


def _shapes(terms: Terms, term: int) -> dict[int, tuple[int, tuple[Any, ...]]]:
    """Return the kind and arguments of a term and of each term in it; of DEFERRED terms the argument is the body."""
    shapes: dict[int, tuple[int, tuple[Any, ...]]] = {}
    waiting = [term]
    while waiting:
        node = waiting.pop()
        if node not in shapes:
            kind, args = terms.shape(node)
            if kind == DEFERRED:
                args = (terms.made(node),)
            shapes[node] = kind, args
            waiting += _parts(kind, args)
    return shapes


def _parts(kind: int, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the terms among the arguments of a term."""
    if kind in _OPERATORS:
        return args
    return args[:1] if kind in (REPEAT, DEFERRED) else ()


def _write(
    shapes: Mapping[int, tuple[int, tuple[Any, ...]]], term: int, numbers: dict[int, int], written: array[int]
) -> None:
    """Write the instructions of a term, operands first; DEFERRED terms are numbered already."""
    waiting = [term]
    while waiting:
        top = waiting[-1]
        if top in numbers:
            waiting.pop()
            continue
        kind, args = shapes[top]
        parts = _parts(kind, args)
        missing = [part for part in parts if part not in numbers]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if kind in (WORDS, MULTIPLE):
            raise TypeError(f"no part of a pattern: a term of kind {kind}")
        operands = [numbers[part] for part in parts]
        if kind == CHARS:  # the code points where membership flips
            operands = [*chain.from_iterable((first, last + 1) for first, last in args)]
        elif kind == REPEAT:
            operands += args[1:]
        numbers[top] = len(numbers)
        written.extend((kind, len(operands), *operands))


def execute(terms: Terms, code: bytes) -> int:
    """Return the term that bytecode makes."""
    words = memoryview(code).cast("i")
    made: list[int] = []
    at = 0
    while at < len(words):
        kind = words[at]
        begin, at = at + 2, at + 2 + words[at + 1]
        operands = words[begin:at].tolist()
        made.append(_execute(terms, kind, operands, made, code))
    return made[-1]


def _execute(terms: Terms, kind: int, operands: Sequence[int], made: list[int], code: bytes) -> int:
    """Return the term of one instruction; ``made`` has those of the instructions before it."""
    if kind == CHARS:
        return terms.chars_of(operands)
    if kind == SEQ:
        return terms.seq(made[operands[0]], made[operands[1]])
    if kind == ALT:
        return terms.alt([made[number] for number in operands])
    if kind == REPEAT:
        most = None if operands[2] == term_kinds.NONE else operands[2]
        return terms.repeat(made[operands[0]], operands[1], most)
    if kind == AND:
        return terms.and_([made[number] for number in operands])
    if kind == NOT:
        return terms.not_(made[operands[0]])
    if kind == DEFERRED:
        return terms.deferred((code, len(made)), _body(made, operands[0]), loops=True)
    return term_kinds.EPSILON if kind == EPSILON_KIND else term_kinds.EMPTY


def _body(made: Sequence[int], number: int) -> Callable[[Terms], int]:
    return lambda terms: made[number]
