"""Conveniences, those that are on by default and those that are asked for, never refuse what works without them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from toolgrammar.core import BudgetError, ToolGrammarError
from toolgrammar.core.conversation import Generation, Message
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import format_names

from .odd_tools import BUDGET, ODD, OFF, ON, SAID


def asked(tools: ToolSet, wire: str, said: str, options: dict[str, Any]) -> Generation:
    """The answer of a model that says this, after a result."""
    prompt = [Message("user", "Go."), Message("assistant", "Going."), Message("tool", "Done.", tool_call_id="c")]
    return ScriptedModel([said]).generate(
        prompt if len(said) % 2 else "Go.", **{"tools": tools, "tool_format": wire, "max_tokens": BUDGET, **options}
    )


def outcome(tools: ToolSet, wire: str, said: str, options: dict[str, Any]) -> ToolGrammarError | None:
    """What a request is refused with; None: it is answered, and each call is valid."""
    try:
        out = asked(tools, wire, said, options)
    except ToolGrammarError as error:
        return error
    for call in out.tool_calls:
        tools.validate(call)
    return None


def test_a_convenience_never_refuses(request: pytest.FixtureRequest) -> None:
    """Odd tools, in every format, with every option: what is answered with all conveniences off is answered with each
    of them on; what a format cannot write is refused by the format's name, with a hint at one that can."""
    rng = random.Random(7)
    held = refused = 0
    for _ in range(6_000 if request.config.getoption("--slow") else 110):
        name, wire = rng.choice(sorted(ODD)), rng.choice(format_names())
        tools, said, options = ODD[name], rng.choice(SAID), rng.choice(ON)
        asking = {"tool_choice": options["tool_choice"]} if "tool_choice" in options else {}
        where = f"{name}, {wire}, {said!r}, {options}"
        without = outcome(tools, wire, said, OFF | asking)
        if without is None:
            held += 1
            error = outcome(tools, wire, said, options)
            assert error is None, f"{where}: {error}"
            continue
        refused += 1
        assert not isinstance(without, BudgetError), where
        if name != "never":
            assert outcome(tools, "hermes", said, OFF | asking) is None, where
            assert wire in str(without) and "hermes" in (without.hint or "") and wire != "hermes", f"{where}: {without}"
    assert held > 4 * refused > 0


@pytest.mark.parametrize("name", sorted(ODD))
def test_odd_tools_are_no_odd_case_by_default(name: str) -> None:
    """A model without a template of its own takes each of them, with the defaults."""
    for said in SAID[:3]:
        assert outcome(ODD[name], "hermes", said, {}) is None
