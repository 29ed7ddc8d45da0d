"""Argument types and a model that the tests of several adapters share."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, field_validator

from toolgrammar.core import GenerateParams, ImagePart, Message
from toolgrammar.core.testing import ScriptedModel

#: A PNG of one pixel, in Base64 and as an address.
CODED_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PNG = base64.b64decode(CODED_PNG)
PNG_ADDRESS = f"data:image/png;base64,{CODED_PNG}"
FAR_PNG = "https://example.org/a.png"


def are_one_image(messages: Sequence[Message], near: int, far: int = 0) -> bool:
    """The images of messages are `PNG`, as often as said, then the one at `FAR_PNG`."""
    images = [image for message in messages for image in message.images]
    return images == [ImagePart(PNG, media_type="image/png")] * near + [ImagePart(url=FAR_PNG)] * far


class Tree(BaseModel):
    """A tree of numbers."""

    value: int
    children: list[Tree] = []


class Even(BaseModel):
    """An even number."""

    value: int

    @field_validator("value")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


class Recording(ScriptedModel):
    """Says one word for ever, and keeps the parameters of its requests."""

    def __init__(self) -> None:
        super().__init__(lambda messages: "words")
        self.asked: list[GenerateParams] = []

    def _work(self, request: Any) -> Any:
        self.asked.append(request.params)
        return super()._work(request)
