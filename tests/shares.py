"""Parameters that several tests share: each takes its part, and all of them with ``--slow``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def share(values: Iterable[Any], place: int, of: int) -> list[Any]:
    """Return values as parameters: one in so many, from a place on; the others are slow.

    For laws of two things, such as formats and frameworks, where each of both has met several of the other.
    """
    return [
        value if number % of == place else pytest.param(value, marks=pytest.mark.slow)
        for number, value in enumerate(values)
    ]
