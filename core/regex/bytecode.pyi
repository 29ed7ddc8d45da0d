# Types of `bytecode` for type checkers.

from __future__ import annotations

from ..language.terms import Terms

COMPILED: bool

def assemble(terms: Terms, term: int) -> bytes: ...
def execute(terms: Terms, code: bytes) -> int: ...
