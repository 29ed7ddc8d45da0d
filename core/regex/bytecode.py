# cython: language_level=3, boundscheck=False, initializedcheck=False
"""Bytecode of patterns: a term, and all that it is made of, as one string of bytes.

The same patterns occur in many schemas, so their compiled form is cached. A tree would be hundreds of objects, each of
which Python's garbage collector visits in a full collection; a string of bytes is one, and terms are made of it faster.

A program is a sequence of instructions, each ``kind, n`` and ``n`` integers. The others refer to the term that the i-th
makes as ``i``, and the last one makes the language. Deferred terms come first: each names the later one that it stands
for.

Compiled where that is possible (Cython in pure-Python mode), as each new pattern of a schema is written once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

if cython.compiled:
    from cython.cimports.toolgrammar.core.language import term_kinds
    from cython.cimports.toolgrammar.core.language.terms import Terms
else:
    from ..language import term_kinds
    from ..language.terms import Terms

#: True if this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)


def assemble(terms: Terms, term: cython.int) -> bytes:
    """Return the bytecode of a term that is made of characters, concatenation, Boolean operations, repetition, and
    deferred terms.

    Law: ``execute(other, assemble(terms, term))`` is a term of the same language in another store.
    """
    deferred = _deferred(terms, term) if terms.builders else {}
    written = array("i")
    numbers: dict = {}
    number: cython.Py_ssize_t
    for node in list(deferred):
        numbers[node] = len(numbers)
        written.extend((term_kinds.DEFERRED, 1, 0))
    for number, body in enumerate(deferred.values()):
        _write(terms, body, numbers, written)
        written[3 * number + 2] = numbers[body]
    _write(terms, term, numbers, written)
    if numbers[term] != len(numbers) - 1:
        written.extend((term_kinds.ALT, 1, numbers[term]))
    return written.tobytes()


@cython.cfunc
def _deferred(terms: Terms, term: cython.int) -> dict:
    """Return the deferred terms in a term, and what they stand for."""
    first_parts: dict = {}
    seen: set = {term}
    waiting: list = [term]
    while waiting:
        top = waiting.pop()
        parts = _parts(terms, top)
        if terms.kind[top] == term_kinds.DEFERRED:
            first_parts[top] = parts[0]
        for part in parts:
            if part not in seen:
                seen.add(part)
                waiting.append(part)
    return first_parts


@cython.cfunc
def _parts(terms: Terms, term: cython.int) -> list:
    """Return the terms of which a term is made."""
    kind: cython.int = terms.kind[term]
    count: cython.int = terms.arg_count[term]
    if kind == term_kinds.DEFERRED:
        return [terms.made(term)]
    if kind == term_kinds.REPEAT:
        count = 1
    elif kind != term_kinds.SEQ and kind != term_kinds.ALT and kind != term_kinds.AND and kind != term_kinds.NOT:
        return []
    at: cython.int = terms.arg_at[term]
    return [terms.args[i] for i in range(at, at + count)]


@cython.cfunc
def _write(terms: Terms, term: cython.int, numbers: dict, written: object) -> object:
    """Write the instructions of a term whose deferred parts are numbered."""
    waiting: list = [term]
    top: cython.int
    kind: cython.int
    at: cython.int
    while waiting:
        top = waiting[-1]
        if top in numbers:
            waiting.pop()
            continue
        parts = _parts(terms, top)
        missing = [part for part in parts if part not in numbers]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        kind = terms.kind[top]
        at = terms.arg_at[top]
        if kind == term_kinds.WORDS or kind == term_kinds.MULTIPLE:
            raise TypeError(f"no part of a pattern: a term of kind {kind}")
        operands: list = [numbers[part] for part in parts]
        if kind == term_kinds.CHARS or kind == term_kinds.REPEAT:  # where membership flips; the bounds
            operands += [terms.args[i] for i in range(at + len(operands), at + terms.arg_count[top])]
        numbers[top] = len(numbers)
        written.append(kind)
        written.append(len(operands))
        written.extend(operands)
    return None


def execute(terms: Terms, code: bytes) -> int:
    """Return the term that bytecode makes."""
    row = array("i")
    row.frombytes(code)
    words: cython.int[::1] = row
    size: cython.Py_ssize_t = len(row)
    at: cython.Py_ssize_t = 0
    begin: cython.Py_ssize_t
    kind: cython.int
    term: cython.int
    made: list = []
    while at < size:
        kind = words[at]
        begin = at + 2
        at = begin + words[at + 1]
        if kind == term_kinds.CHARS:
            term = terms.chars_of([words[i] for i in range(begin, at)])
        elif kind == term_kinds.SEQ:
            term = terms.seq(made[words[begin]], made[words[begin + 1]])
        elif kind == term_kinds.ALT:
            term = terms.alt([made[words[i]] for i in range(begin, at)])
        elif kind == term_kinds.REPEAT:
            most = None if words[begin + 2] == term_kinds.NONE else words[begin + 2]
            term = terms.repeat(made[words[begin]], words[begin + 1], most)
        elif kind == term_kinds.AND:
            term = terms.and_([made[words[i]] for i in range(begin, at)])
        elif kind == term_kinds.NOT:
            term = terms.not_(made[words[begin]])
        elif kind == term_kinds.DEFERRED:
            term = terms.deferred((code, len(made)), _body(made, words[begin]), loops=True)
        else:
            term = term_kinds.EPSILON if kind == term_kinds.EPSILON_KIND else term_kinds.EMPTY
        made.append(term)
    return made[-1]


def _body(made: list, number: int) -> Callable[[Terms], int]:
    return lambda terms: made[number]
