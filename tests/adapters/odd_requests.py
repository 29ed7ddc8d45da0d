"""The law of conveniences through a framework: what is answered with all of them off is answered with each of them on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from toolgrammar.core import ToolGrammarError
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..tools.odd_tools import BUDGET, ODD, OFF, ON, SAID

#: Asks a model by an adapter, with these tools, options by name and tool choice; returns the calls' names and arguments.
Ask = Callable[[ScriptedModel, ToolSet, dict[str, Any], str], Iterable[tuple[str, Any]]]

#: Wire formats of the requests: as any model has it, mostly; by tags; in Python's form.
WIRES = ("hermes", "hermes", "hermes", "qwen3-coder", "pythonic")


def outcome(ask: Ask, name: str, said: str, wire: str, options: Mapping[str, Any], choice: str) -> Exception | None:
    """What a request is refused with; None: it is answered, and each call is valid."""
    tools = ODD[name]
    try:
        calls = [*ask(ScriptedModel([said]), tools, {"max_tokens": BUDGET, "tool_format": wire, **options}, choice)]
    except ToolGrammarError as error:  # frameworks' errors are ours as well
        return error
    for called, arguments in calls:
        tools.validate({"name": called, "arguments": arguments})
    return None


def read(calls: Iterable[tuple[str, str]]) -> list[tuple[str, Any]]:
    """Read the arguments of calls; those that the token budget cut are handed on so that they do not parse."""
    found = []
    for name, text in calls:
        try:
            found.append((name, json.loads(text)))
        except ValueError:
            assert len(text) > BUDGET // 2, text
    return found


def never_refuses(ask: Ask, known: Collection[str], seed: int, rounds: int = 1) -> None:
    """Ask with each set of odd tools and random conveniences, those whose names the adapter knows."""
    rng = random.Random(seed)
    off = {name: value for name, value in OFF.items() if name in known}
    rows = [row for row in ON if set(row) <= {*known, "tool_choice"}]
    assert len(rows) >= 10 and len(off) >= 4, (rows, off)
    held = refused = 0
    for name in sorted(ODD) * rounds:
        row, said, wire = dict(rng.choice([{}, *rows])), rng.choice(SAID), rng.choice(WIRES)
        choice = row.pop("tool_choice", "auto")
        where = f"{name}, {wire}, {said!r}, {row}, {choice}"
        if outcome(ask, name, said, wire, off, choice) is not None:
            refused += 1
            continue
        held += 1
        error = outcome(ask, name, said, wire, row, choice)
        assert error is None, f"{where}: {error}"
    assert held > 4 * refused, (held, refused)


def as_openai(tools: ToolSet) -> list[dict[str, Any]]:
    """The tools as frameworks hand them on."""
    return tools.to_openai()
