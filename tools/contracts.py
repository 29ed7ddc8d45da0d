"""Contracts of tools: do the calls of yesterday still work today, and do results stay what they were?

What a caller sends is contravariant: every call that the old tool took must be one that the new tool takes. What it
receives is covariant: every result that the new tool may give must be one that the old tool could give. Argument
schemas are compared as a tool set reads them, so closed by default (see `close_objects`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.grammar import Comparison, Grammar, Witness
from toolgrammar.core.validation import Validator

from .closed_schema import close_objects
from .tool import Tool

#: What became of a tool: nothing that a caller sees, more than before, something that breaks a caller, or not decided;
#: or there is no such tool any more, or not yet.
Verdict = Literal["same", "compatible", "breaks", "undecided", "added", "removed"]

#: Verdicts of a tool that break a caller.
BREAKING: tuple[Verdict, ...] = ("breaks", "removed")


@dataclass(frozen=True)
class Broken:
    """A call or a result that was fine and is not any more.

    Attributes:
        kind: ``"call"``: the new tool refuses it; ``"result"``: the new tool may give it, and the old one could not.
        value: the arguments, or the result; the smallest ones. None: no particular one.
        reason: why it is refused, with its place in the value.
    """

    kind: Literal["call", "result"]
    value: Any
    reason: str


@dataclass(frozen=True)
class ToolChange:
    """What became of one tool.

    Attributes:
        name: its name.
        verdict: see `Verdict`.
        breaks: what breaks; a smallest call and a smallest result at most.
        gains: arguments that only the new tool takes, the smallest ones; None: there are none.
        undecided: why something is not decided.
        renamed: the name of an added tool that takes the same calls, if this one was removed.
    """

    name: str
    verdict: Verdict
    breaks: tuple[Broken, ...] = ()
    gains: Any = None
    undecided: tuple[ToolGrammarError, ...] = ()
    renamed: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON data."""
        return {
            "tool": self.name,
            "verdict": self.verdict,
            "breaks": [{"kind": each.kind, "value": each.value, "reason": each.reason} for each in self.breaks],
            "gains": self.gains,
            "undecided": [str(error) for error in self.undecided],
            "renamed": self.renamed,
        }


@dataclass(frozen=True)
class ToolChanges(Sequence[ToolChange]):
    """What became of the tools of a set, in the order of the old set, then those that were added.

    Attributes:
        changes: one for each tool.
    """

    changes: tuple[ToolChange, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.changes[index]

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[ToolChange]:
        return iter(self.changes)

    @property
    def compatible(self) -> bool | None:
        """True if every old call still works and every result is as before, False if something breaks; None: nothing
        is known to break, and something is not decided."""
        verdicts = {each.verdict for each in self.changes}
        return False if not verdicts.isdisjoint(BREAKING) else None if "undecided" in verdicts else True

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as JSON data."""
        return {"compatible": self.compatible, "tools": [change.to_dict() for change in self.changes]}


@dataclass(frozen=True)
class Contract:
    """What is compared of a tool: two JSON Schemas.

    Attributes:
        name: its name.
        arguments: what it takes.
        result: what it gives; None: it does not say.
    """

    name: str
    arguments: Any
    result: Any = None


def contract_of(tool: Tool, *, is_open: bool) -> Contract:
    """Return what is compared of a tool, with live values left out; ``is_open``: objects take undeclared members."""
    parameters = tool.readable.of_today().parameters
    return Contract(tool.name, parameters if is_open else close_objects(parameters), tool.output_schema)


def compared_contracts(old: Iterable[Contract], new: Iterable[Contract], *, formats: bool = True) -> ToolChanges:
    """Return what became of some contracts.

    Args:
        old: those of the callers.
        new: those of the tools now.
        formats: ``format`` asserts; else it annotates.
    """
    before, after = ({each.name: each for each in contracts} for contracts in (old, new))
    added = [contract for name, contract in after.items() if name not in before]
    changes: list[ToolChange] = []
    for name, contract in before.items():
        if name in after:
            changes.append(_change(contract, after[name], formats))
            continue
        same = (other for other in added if _are_same(contract, other))
        found = next(same, None)
        reason = "the tool is gone" if found is None else f"the tool is called {found.name} now"
        changes.append(
            ToolChange(name, "removed", (Broken("call", None, reason),), renamed=None if found is None else found.name)
        )
    return ToolChanges((*changes, *(ToolChange(contract.name, "added") for contract in added)))


def _change(old: Contract, new: Contract, formats: bool) -> ToolChange:
    """Return what became of one tool."""
    calls = _compared(old.arguments, new.arguments, formats)
    breaks = _broken("call", calls.lost, new.arguments, formats)
    undecided = [] if calls.lost.undecided is None else [calls.lost.undecided]
    changed = not (calls.lost.is_none and calls.gained.is_none)
    if old.result is not None and new.result is None:
        breaks.append(Broken("result", None, "its results have no schema any more"))
    elif old.result is not None:
        results = _compared(new.result, old.result, formats)
        breaks += _broken("result", results.lost, old.result, formats)
        undecided += [] if results.lost.undecided is None else [results.lost.undecided]
        changed = changed or not (results.lost.is_none and results.gained.is_none)
    gains = None if calls.gained.text is None else json.loads(calls.gained.text)
    verdict: Verdict = "breaks" if breaks else "undecided" if undecided else "compatible" if changed else "same"
    return ToolChange(new.name, verdict, tuple(breaks), gains, tuple(undecided))


def _compared(first: Any, second: Any, formats: bool) -> Comparison:
    try:
        grammars = [Grammar.from_json_schema(schema, formats=formats) for schema in (first, second)]
    except ToolGrammarError as error:
        return Comparison(Witness(undecided=error), Witness(undecided=error))
    return grammars[0].compare(grammars[1])


def _broken(kind: Literal["call", "result"], witness: Witness, schema: Any, formats: bool) -> list[Broken]:
    if witness.text is None:
        return []
    value = json.loads(witness.text)
    try:
        reason = next(Validator(schema, formats=formats).violations(value), "")
    except ToolGrammarError:
        reason = ""
    return [Broken(kind, value, reason or "not valid any more")]


def _are_same(one: Contract, other: Contract) -> bool:
    """Return True if two tools with parameters take the same calls."""
    if not isinstance(one.arguments, Mapping) or not one.arguments.get("properties"):
        return False
    names = [set(each.arguments.get("properties", ())) for each in (one, other)]
    return names[0] == names[1] and _compared(one.arguments, other.arguments, True).relation == "equal"
