"""`Thinking`: how a family marks its reasoning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Thinking:
    """The markers around a model's reasoning.

    Attributes:
        start: begins it; empty if nothing does.
        end: ends it.
    """

    start: str = "<think>"
    end: str = "</think>"
