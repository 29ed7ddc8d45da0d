"""A row is the one place of a field: it is read, checked, described and known by it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server import fields, parts, rows
from toolgrammar.adapters.server.failures import failure_of
from toolgrammar.adapters.server.fields import Fields, RequestError
from toolgrammar.adapters.server.protocols.chat_completions import CHAT_COMPLETIONS, ChatCompletions
from toolgrammar.adapters.server.protocols.messages import MESSAGES
from toolgrammar.adapters.server.rows import Form
from toolgrammar.adapters.server.served import Served
from toolgrammar.adapters.server.unused import HEADER
from toolgrammar.core import GenerateParams
from toolgrammar.core.testing import ScriptedModel

from ...core.generation.option_values import other

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize("option", ["max_tokens", "thinking", *parts.OWN])
def test_an_error_names_the_protocols_own_field(option: str) -> None:
    """Of any option that a protocol calls otherwise, unless it was given in the field ``toolgrammar``."""
    failure = failure_of(RequestError(f"{option} is -5", field=option), {option: "inner.theirs"})
    assert (failure.field, failure.message) == ("inner.theirs", "inner.theirs is -5")
    assert failure_of(RequestError(f"{option} is -5", field=option)).field == option
    place = f"toolgrammar.{option}"
    assert failure_of(RequestError(f"{option} is -5", field=place), {option: "inner.theirs"}).field == place


@pytest.mark.parametrize("option", parts.OWN)
def test_an_option_has_one_value(option: str) -> None:
    """A field of a protocol and the field ``toolgrammar`` may have the same option: an absent one changes nothing, and
    both are an error."""
    served, value = Served({"m": ScriptedModel([""])}), other(option)

    def params(alias: Any, own: Any) -> Any:
        extension = None if own is None else Fields({option: own}, Form(parts.OWN, exact=True))
        return getattr(served.params("m", {option: alias}, extension), option)

    assert params(None, None) == getattr(GenerateParams(), option)
    assert params(value, None) == params(None, value) == value
    with pytest.raises(RequestError, match=f"toolgrammar.{option} is given in a field of its own too"):
        params(value, value)


def test_names_are_those_of_the_base_too() -> None:
    """A protocol that adds a name of its own keeps the others, that of the schema among them."""

    class Renamed(ChatCompletions):
        names = MappingProxyType({"draft": "ahead"})

    assert dict(Renamed.names) == {**ChatCompletions.names, "draft": "ahead"} and "schema" in Renamed.names


def test_a_field_is_added_in_one_place(http: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch) -> None:
    """With its row it is taken and described, its type and words are checked, and its name is known if misspelt."""
    row = rows.inner({"mood": rows.word("calm", "merry", needed=True)})
    made = Form({**CHAT_COMPLETIONS.form.rows, "temper": row})
    told = http({"m": ScriptedModel(lambda messages: "x")}).post("/v1/chat/completions", json={**CHAT, "temper": 5})
    assert told.status_code == 200 and told.headers[HEADER] == "temper"
    monkeypatch.setattr(type(CHAT_COMPLETIONS), "form", made)
    client = http({"m": ScriptedModel(lambda messages: "x")})
    paths = client.get("/openapi.json").json()["paths"]
    body = paths["/v1/chat/completions"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    described = {"type": "object", "properties": {"mood": {"enum": ["calm", "merry"]}}, "required": ["mood"]}
    assert body["properties"]["temper"] == {"anyOf": [described, {"type": "null"}]}
    for value, status, words in (
        ({"mood": "calm"}, 200, ""),
        (None, 200, ""),
        (5, 400, "temper is not an object"),
        ({"mood": 5}, 400, "temper.mood is not a text"),
        ({"mood": "sad"}, 400, "temper.mood is 'sad'. Hint: give one of 'calm', 'merry'"),
        ({}, 400, "temper.mood is missing"),
    ):
        answer = client.post("/v1/chat/completions", json={**CHAT, "temper": value})
        assert answer.status_code == status and words in answer.text and HEADER not in answer.headers
    answer = client.post("/v1/chat/completions", json={**CHAT, "tempper": {"mood": "calm"}})
    assert answer.status_code == 400 and "did you mean temper?" in answer.text


def test_the_work_of_reading_follows_what_is_sent() -> None:
    """Not what is known: a body of two fields takes few calls, whatever a form has beside them."""
    seen: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and Path(frame.f_code.co_filename) == Path(fields.__file__):
            seen[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        Fields(CHAT, CHAT_COMPLETIONS.form)
    finally:
        sys.setprofile(None)
    assert seen.total() <= 20, seen


def test_base64_of_other_letters_is_an_error_of_the_request(http: Callable[..., httpx.Client]) -> None:
    """Letters beyond ASCII are no internal error."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "é"}}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [image]}]}
    answer = http({"m": ScriptedModel(["x"])}).post("/v1/messages", json=body)
    assert answer.status_code == 400 and "messages[0].content[0].source.data is not base64" in answer.text


@pytest.mark.parametrize(
    ("form", "body", "field"),
    [
        (CHAT_COMPLETIONS.form, {**CHAT, "stop": ["x", None]}, "stop[1]"),
        (MESSAGES.form, {**CHAT, "max_tokens": 9, "stop_sequences": [5]}, "stop_sequences[0]"),
        (CHAT_COMPLETIONS.form, {**CHAT, "messages": [{"role": "user", "content": [{"type": "text"}]}]},
         "messages[0].content[0].text"),
        (CHAT_COMPLETIONS.form, {**CHAT, "messages": []}, "messages"),
        (CHAT_COMPLETIONS.form, {**CHAT, "tools": [{"type": "fuction"}]}, "tools[0].type"),
    ],
)  # fmt: skip
def test_an_error_has_its_place(form: Form, body: dict[str, Any], field: str) -> None:
    """Also inside lists and objects."""
    with pytest.raises(RequestError) as caught:
        Fields(body, form)
    assert caught.value.field == field
