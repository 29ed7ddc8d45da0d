"""Bodies with many values are parsed between pauses, or refused; the values are those of the standard parser."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server.exchange import MAX_AT_ONCE, MAX_VALUES, is_small, parse
from toolgrammar.adapters.server.fields import RequestError
from toolgrammar.core.basics.pauses import ended_by
from toolgrammar.core.errors import CancelledError
from toolgrammar.core.testing import ScriptedModel

MANY = MAX_AT_ONCE + 1
VALUES: list[Any] = [
    [],
    {},
    [[], {}, [None, True, False, 'a,[{"é\\\n😀', 1, -2.5e300, 10**40]],
    {"a": [1, {"b": [[{"c": "}"}]]}], "": {"": ""}, "a b": [1.0, -0.0]},
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("indent", [None, 3])
def test_long_bodies_have_the_values_of_short_ones(value: Any, indent: int | None) -> None:
    """Nested values, texts with brackets, escapes and white space."""
    text = json.dumps([value, ["x"] * MANY], indent=indent)
    assert not is_small(text.encode())
    for encoding in ("utf-8", "utf-16"):
        found = parse(text.encode(encoding))
        assert json.dumps(found[0]) == json.dumps(value) and found[1] == ["x"] * MANY


@pytest.mark.parametrize("end", ["", "]]", "] x", ",]", ", NaN]", ', {"a"}]', ", [1 2]]"])
def test_a_long_body_that_is_no_json_is_refused(end: str) -> None:
    """As a short one is."""
    for count in (1, MANY):
        with pytest.raises(RequestError, match="the body is not JSON"):
            parse(("[1" + ",1" * count + end).encode())


def test_depth_is_an_error_of_ours() -> None:
    """Brackets within brackets, without end."""
    for count in (1, MANY):
        with pytest.raises(RequestError, match="the body is not JSON"):
            parse(b"[" * 5_000 + b"[]," * count)


def test_commas_of_a_text_are_no_values() -> None:
    """A long table as the text of a message."""
    table = "1,2,3\n" * 500_000
    assert parse(json.dumps({"content": table}).encode()) == {"content": table}


@pytest.mark.parametrize("body", [b"[" + b"[]," * MAX_VALUES + b"[]]", b"[" + b"1," * 600_000 + b"1]"])
def test_bodies_with_too_many_values_are_refused(body: bytes, http: Callable[..., httpx.Client]) -> None:
    """Status 413, and how many are accepted; they fit into the limit of bytes."""
    client = http({"m": ScriptedModel(["x"])})
    answer = client.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413 and "at most 500,000" in answer.text


def test_a_long_body_is_parsed_between_pauses() -> None:
    """A request that is over is parsed no further."""
    pauses = 0

    def check() -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 50:
            raise CancelledError("over")

    with pytest.raises(CancelledError), ended_by(check):
        parse(json.dumps([{}] * MANY).encode())
