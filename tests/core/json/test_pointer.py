"""JSON pointers go through any name, and local references lead where they do."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core.json import escape, resolve_local, to_pointer, unescape

NAMES = ["", "a", "a/b", "~", "~1", "m~n/", "100%", "ü", "0"]


@pytest.mark.parametrize("name", NAMES)
def test_escaping_is_undone(name: str) -> None:
    """Unescaping gives the name back."""
    assert unescape(escape(name)) == name
    assert "/" not in escape(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_leads_through_any_name(name: str) -> None:
    """Whatever is in a name, a reference that was made of it leads there."""
    document = {"$defs": {name: [{"type": "null"}]}}
    reference = "#" + to_pointer(["$defs", name, 0]).replace("%", "%25")
    assert resolve_local(document, reference) == {"type": "null"}


def test_the_empty_pointer_is_the_document() -> None:
    """No steps lead to the document itself."""
    assert to_pointer([]) == ""
    assert resolve_local({"a": 1}, "#") == {"a": 1}


@pytest.mark.parametrize(
    ("document", "reference"),
    [
        ({}, "#/a"),
        ([1], "#/1"),
        ([1], "#/-1"),
        ([1], "#/a"),
        ({"a": 1}, "#/a/b"),
        ({}, "#anchor"),
        ({}, "https://example.com/schema"),
        ({}, ""),
    ],
)
def test_a_reference_to_nothing_is_a_lookup_error(document: Any, reference: str) -> None:
    """Missing members, items and other documents are told by one error type."""
    with pytest.raises(LookupError):
        resolve_local(document, reference)
