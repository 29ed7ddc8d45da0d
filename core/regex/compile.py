"""Regular expressions as terms: ECMA-262 patterns lowered to the hash-consed store."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from ..basics.recent_memo import RecentMemo
from ..language.terms import Terms
from . import syntax
from .assertions import search_language
from .back_references import Bound
from .bytecode import assemble, execute
from .parser import parse


def regex_term(terms: Terms, pattern: str, *, whole: bool, bound: Bound = "exact") -> int:
    """Return the strings that a pattern matches.

    Args:
        terms: where the term is made.
        pattern: ECMA-262 with the ``u`` flag.
        whole: the whole string must match (True), or some part of it, as JSON Schema's ``pattern`` says (False).
        bound: of a pattern that is not regular, the strings in one of its regular bounds (see ``back_references.py``).

    Raises:
        PatternError: malformed, or not regular.
    """
    if bound != "exact" and _MAY_REFER.search(pattern) is None:
        bound = "exact"  # which is what the check of a schema has compiled
    key = ("pattern", pattern, whole, bound)
    term = terms.memo.get(key)
    if term is None:
        term = terms.memo[key] = execute(terms, regex_code(pattern, whole, bound))
    return term


#: Bytecode of the patterns of formats, which take milliseconds to read: written by ``tests/core/regex/generate.py``.
DATA = Path(__file__).parent / "data" / "bytecode.txt"


#: What every pattern with a back-reference has.
_MAY_REFER = re.compile(r"\\[1-9k]")


def regex_code(pattern: str, whole: bool, bound: Bound = "exact") -> bytes:
    """Return the bytecode of `regex_term`, which raises the same errors."""
    key = pattern, whole, bound
    code = _CODES.get(key)
    if code is None:
        code = computed_code(pattern, whole, bound)
        _CODES.put(key, code, 200 + len(pattern) + len(code))
    return code


def computed_code(pattern: str, whole: bool, bound: Bound = "exact") -> bytes:
    """Return the bytecode of `regex_term`, computed anew if the data file does not have it."""
    row = _known().get(row_name(pattern, whole))
    if row is not None:
        return array("i", map(int, row.split())).tobytes()
    tree = parse(pattern, bound)
    if whole:
        tree = syntax.Seq((syntax.Start(), tree, syntax.End()))
    terms = Terms()
    return assemble(terms, search_language(terms, tree))


#: Bytecode of patterns that were met lately, at most 16 MiB: a schema is checked before it is lowered, and formats and
#: the patterns that people copy are met in schema after schema.
_CODES: RecentMemo[bytes] = RecentMemo(4_352, 16 * 2**20)


def row_name(pattern: str, whole: bool) -> str:
    """Return the name under which the data file has a pattern."""
    return sha256(f"{whole} {pattern}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


@lru_cache(maxsize=1)
def _known() -> Mapping[str, str]:
    """Return the rows of the data file by name."""
    rows = DATA.read_text(encoding="ascii").replace("\n ", " ").splitlines()  # the rest of a long row is indented
    return dict(row.split(": ", 1) for row in rows if row and row[0] != "#")
