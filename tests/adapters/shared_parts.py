"""Argument types and a model that the tests of several adapters share."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, field_validator

from toolgrammar.core import GenerateParams
from toolgrammar.core.testing import ScriptedModel


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
