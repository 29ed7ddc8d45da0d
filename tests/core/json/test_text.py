"""JSON text: where strings begin."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core.json import string_start


@given(before=st.text(alphabet='a"\\', max_size=6), value=st.text(alphabet='a"\\é', max_size=6))
def test_a_string_begins_at_the_nearest_quote_that_is_not_escaped(before: str, value: str) -> None:
    """From the closing quote of a string, or from inside of it, its opening quote is found, whatever is before it."""
    head = json.dumps([before])[:-1] + ", "
    text = (head + json.dumps(value)).encode()
    assert string_start(text, len(text) - 1) == len(head)
    assert string_start(bytearray(text), len(text) - 1) == len(head)


@pytest.mark.parametrize(
    ("text", "quote", "escape", "start"),
    [
        (b"no string", b'"', b"\\", -1),
        (b"'a\\'", b"'", b"\\", 0),
        (b"'a\\\\'", b"'", b"\\", 4),
        (b'"a\\"', b'"', b"", 3),
    ],
)
def test_quotes_and_escapes_of_other_notations(text: bytes, quote: bytes, escape: bytes, start: int) -> None:
    """Another quote, another escape, or none."""
    assert string_start(text, len(text), quote, escape) == start
