"""The table of formats in the documentation says what the code does."""

from __future__ import annotations

import pytest

from toolgrammar.tools.formats import detect_format

from .table import BEGIN, END, PAGE, TEMPLATES, table


def test_the_table_is_that_of_the_code() -> None:
    """One line for each format, with what checks of each cell say."""
    page = PAGE.read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0] == table()


@pytest.mark.parametrize("name", TEMPLATES)
def test_detection(name: str) -> None:
    """Each family is known by the markers of its template."""
    found = detect_format(TEMPLATES[name])
    assert found is not None
    assert found.name == name


def test_unknown_templates() -> None:
    """A template without markers shows no format."""
    assert detect_format("{{ messages }}") is None
