"""Rows of options: one declaration, from which the other places are written."""

from __future__ import annotations

from toolgrammar.core.generation.params import OPTIONS, RANGES, GenerateParams
from toolgrammar.core.validation import is_valid

from .generate import GROUPS, declared, written


def test_what_follows_from_the_rows_is_written() -> None:
    """The keyword options, the settings of adapters and the tables of the docs are those of the rows."""
    for path, text in written().items():
        assert path.read_text(encoding="utf-8") == text, f"run python -m tests.core.generation.generate ({path.name})"


def test_every_option_has_a_row() -> None:
    """Each field has a row with a known group, and a meaning."""
    assert list(declared()) == list(OPTIONS)
    assert {row.group for row in OPTIONS.values()} == GROUPS.keys()


def test_defaults_are_in_their_ranges() -> None:
    """The default of each option is allowed, by its check and by its JSON Schema."""
    for name, value in vars(GenerateParams()).items():
        assert RANGES[name].holds(value), name
        if value is not None and RANGES[name].schema:
            assert is_valid(list(value) if isinstance(value, tuple) else value, dict(RANGES[name].schema)), name
