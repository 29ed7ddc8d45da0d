"""Which values were closed by force."""

from __future__ import annotations

import pytest

from toolgrammar.core.generation.json_places import truncated_pointers

TEXT = '{"a": "hello", "b": [1, {"c": true}], "d/e": 12}'


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        ("", ("",)),
        ("{", ("", "/a", "/b", "/d~1e")),
        ('{"a": "he', ("/a", "/b", "/d~1e")),
        ('{"a": "hello"', ("", "/b", "/d~1e")),
        ('{"a": "hello", "b": [1', ("/b/0", "/b/1", "/d~1e")),
        ('{"a": "hello", "b": [1, {"c": tr', ("/b/1/c", "/d~1e")),
        ('{"a": "hello", "b": [1, {"c": true', ("/b/1", "/d~1e")),  # a literal is whole, a number might go on
        ('{"a": "hello", "b": [1, {"c": true}', ("/b", "/d~1e")),
        ('{"a": "hello", "b": [1, {"c": true}], "d/e": 1', ("/d~1e",)),
        ('{"a": "hello", "b": [1, {"c": true}], "d/e": 12', ("/d~1e",)),
    ],
)
def test_names_the_open_value_and_those_written_by_force(until: str, expected: tuple[str, ...]) -> None:
    """The innermost open value comes first, then every value that begins after the cut."""
    assert TEXT.startswith(until)
    assert truncated_pointers(TEXT, len(until)) == expected


def test_scalars_at_the_root() -> None:
    """A root string or number that was closed is named by the empty pointer."""
    assert truncated_pointers('"abc"', 2) == ("",)
    assert truncated_pointers("[]", 1) == ("",)
    assert truncated_pointers("{}", 1) == ("",)
