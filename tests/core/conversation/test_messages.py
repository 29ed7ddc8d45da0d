"""Tool calls that could not be read, and the media types of images."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import ImagePart, InvalidArgumentsError, ModelError, ToolCall
from toolgrammar.core.models.remote.anthropic_messages import AnthropicMessages
from toolgrammar.core.models.remote.chat_completions import _part
from toolgrammar.core.models.remote.converse import Converse
from toolgrammar.core.models.remote.gemini import Gemini


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


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_file_is_sent_as_what_it_is(kind: str, tmp_path: Path) -> None:
    """An image without a media type has that of its file in each form of a server, which may refuse any other."""
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    file = io.BytesIO()
    images.new("RGB", (2, 2)).save(file, kind)
    (tmp_path / "picture").write_bytes(file.getvalue())
    no_self = cast("Any", None)
    for image in (ImagePart(file.getvalue()), ImagePart.of(tmp_path / "picture")):
        for made in (
            _part(image),
            AnthropicMessages._image(no_self, image),
            Gemini._image(no_self, image),
            Converse._image(no_self, image),
        ):
            assert kind.lower() in json.dumps(made)[:120], made


def test_images_of_modes_that_png_lacks() -> None:
    """Colours for print become RGB, and floats are refused."""
    images = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for mode in ("CMYK", "YCbCr"):
        written = images.open(io.BytesIO(ImagePart.of(images.new(mode, (2, 2))).data or b""))
        assert (written.mode, written.size) == ("RGB", (2, 2))
    with pytest.raises(ModelError, match="PNG"):
        ImagePart.of(images.new("F", (2, 2)))
