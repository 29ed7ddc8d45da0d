"""Tool calls that could not be read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import InvalidArgumentsError, ToolCall


@given(problem=st.text(), name=st.text())
def test_a_fault_does_not_hang_on_words(problem: str, name: str) -> None:
    """A call that could not be read has a fault whatever is wrong with it, also after its error was put in other words;
    its arguments cannot be read until it has no error."""
    call = ToolCall.unread("c", name, "{", problem)
    for unread in (call, replace(call, error=problem)):
        assert unread.fault == ("unfinished" if problem == ToolCall.ENDS_INSIDE else "malformed")
        with pytest.raises(InvalidArgumentsError):
            dict(unread.arguments)
    mended = replace(call, arguments={}, error=None)
    assert (mended.fault, mended.arguments) == (None, {})


@given(error=st.text().filter(lambda error: not error.startswith("malformed call")))
def test_an_invalid_call_was_read(error: str) -> None:
    """A call whose arguments are not valid has them, and no fault."""
    call = ToolCall("c", "f", {}, error=error)
    assert (call.fault, call.arguments) == (None, {})


def test_a_call_made_of_its_error_keeps_its_fault() -> None:
    """Who stores the text of an error, and makes the call anew, gets no call that may run."""
    call = ToolCall.unread("c", "f", "{", "no object")
    assert ToolCall("c", "f", {}, raw="{", error=call.error) == call
