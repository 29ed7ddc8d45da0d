"""Bytecode: what it makes is the term of which it was made."""

from __future__ import annotations

import gc
import runpy
from pathlib import Path

import pytest

from toolgrammar.core.language.term_kinds import ALT, AND, NOT, REPEAT, SEQ
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex.bytecode import assemble, execute
from toolgrammar.core.regex.compile import DATA, regex_term
from toolgrammar.core.schema.scalars import dates
from toolgrammar.core.schema.scalars.formats import ENFORCED, format_term
from toolgrammar.core.unicode.charset import CharSet


def test_every_kind_of_term() -> None:
    """Each term becomes one of the same shape in another store."""
    terms = Terms()
    a, b = terms.chars(CharSet.range("a", "f")), terms.chars(~CharSet.of("xé€😀"))
    made = [
        terms.EPSILON,
        terms.EMPTY,
        terms.ALL,
        b,
        terms.sequence([a, b, a]),
        terms.alt([a, terms.seq(b, b)]),
        terms.repeat(a, 2, 70_000),
        terms.repeat(b, 1, None),
        terms.and_([terms.repeat(a, 0, 3), terms.not_(b)]),
    ]
    other = Terms()
    for term in made:
        again = execute(other, assemble(terms, term))
        assert spelled(other, again) == spelled(terms, term)
        assert execute(terms, assemble(terms, term)) == term


def spelled(terms: Terms, term: int) -> object:
    """Return a term as a tree."""
    kind, args = terms.shape(term)
    if kind in (SEQ, ALT, AND, NOT):
        parts = [spelled(terms, part) for part in args]
        return kind, parts if kind in (SEQ, NOT) else sorted(parts, key=repr)
    return kind, (spelled(terms, args[0]), *args[1:]) if kind == REPEAT else args


def test_terms_that_hold_themselves() -> None:
    """A deferred term that holds itself is one again; also where it is the whole language."""
    terms = Terms()
    a, b = (terms.chars(CharSet.of(char)) for char in "ab")
    loop = terms.deferred("loop", lambda terms: body, loops=True)
    body = terms.alt([b, terms.seq(a, loop)])
    for whole, begin in ((loop, ""), (terms.seq(b, loop), "b")):
        other = Terms()
        again = execute(other, assemble(terms, whole))
        assert [text for text in ("b", "aab", "bab", "aa", "") if other.matches(again, begin + text)] == ["b", "aab"]


def test_what_is_shared_is_written_once() -> None:
    """A term that stands in many places is one instruction: doubling it again and again stays small."""
    terms = Terms()
    a = terms.chars(CharSet.of("a"))
    term = terms.chars(CharSet.of("b"))
    for _ in range(60):
        term = terms.alt([terms.seq(term, terms.seq(a, term)), a])
    assert len(assemble(terms, term)) < 5_000


def test_other_kinds_have_no_bytecode() -> None:
    """Words are no part of a pattern."""
    terms = Terms()
    with pytest.raises(TypeError, match="no part of a pattern"):
        assemble(terms, terms.words(["a", "bc"]))


def test_patterns_are_kept_where_the_collector_need_not_look() -> None:
    """Patterns that are remembered are hardly any objects for the garbage collector."""
    gc.collect()
    before = len(gc.get_objects())
    for number in range(100):
        regex_term(Terms(), f"^([a-f]{{2}}|x[0-9]+|{number})+(-[a-z]*){{0,3}}$", whole=False)
    gc.collect()
    assert len(gc.get_objects()) - before < 100


def test_the_data_file_is_what_the_generator_writes() -> None:
    """The patterns of formats are compiled ahead as they would be compiled now."""
    generator = runpy.run_path(str(Path(__file__).with_name("generate.py")))
    assert DATA.read_text(encoding="ascii") == generator["rendered"](), f"run {generator['__file__']}"


def test_no_format_is_read_from_its_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first use of a format costs no more than a later one; formats that depend on the day are read then."""
    monkeypatch.setattr("toolgrammar.core.regex.compile.parse", None)
    for name in sorted(ENFORCED - dates.FORMATS.keys()):
        for outer in (False, True):
            assert not (terms := Terms()).is_empty(format_term(terms, name, outer=outer)), name
