"""Random answers over all formats and options (`sweep.py`)."""

from __future__ import annotations

from collections import Counter

import pytest

from .sweep import judge


def test_random_answers_are_valid(request: pytest.FixtureRequest) -> None:
    """Calls are valid, streams are whole answers, and no option refuses what is answered without it."""
    outcomes = Counter(judge(seed) for seed in range(3_000 if request.config.getoption("--slow") else 80))
    assert sum(outcomes[kind] for kind in ("call", "text")) > sum(outcomes.values()) / 2
    assert outcomes["call"] > 5
