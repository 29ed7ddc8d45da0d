"""Contracts of tools: do the calls of yesterday still work today, and do results stay what they were?

What a caller sends is contravariant: every call that the old tool took must be one that the new tool takes. What it
receives is covariant: every result that the new tool may give must be one that the old tool could give. Argument
schemas are compared as a tool set reads them, so closed by default (see `close_objects`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.grammar import Grammar

from .closed_schema import close_objects
from .tool import Tool

#: What became of a tool: nothing that a caller sees, more than before, something that breaks a caller, or not decided;
#: or there is no such tool any more, or not yet.
Verdict = Literal["same", "compatible", "breaks", "undecided", "added", "removed"]

#: Verdicts of a tool that break a caller.
BREAKING: tuple[Verdict, ...] = ("breaks", "removed")


#: What breaks.
Kind = Literal["call", "result", "value"]


@dataclass(frozen=True)
class Broken:
    """A call, a result or a value that was fine and is not any more.

    Attributes:
        kind: ``"call"``: the new tool refuses it; ``"result"``: the new tool may give it, and the old one could not;
            ``"value"``: of JSON Schemas, the new one refuses it.
        text: the arguments, the result or the value, as JSON; the smallest ones. None: no particular one.
        reason: why it is refused, with its place in the value.
    """

    kind: Kind
    text: str | None
    reason: str

    @property
    def value(self) -> Any:
        """The arguments, the result or the value; None also where there is no particular one."""
        return None if self.text is None else json.loads(self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data; without ``value`` where there is no particular one."""
        value = {} if self.text is None else {"value": self.value}
        return {"kind": self.kind, **value, "reason": self.reason}


@dataclass(frozen=True)
class ToolChange:
    """What became of one tool.

    Attributes:
        name: its name.
        verdict: see `Verdict`.
        breaks: what breaks; a smallest call and a smallest result at most.
        gains_text: arguments that only the new tool takes, as JSON; the smallest ones; None: there are none.
        undecided: why something is not decided.
        renamed: the name of an added tool that takes the same calls, if this one was removed.
    """

    name: str
    verdict: Verdict
    breaks: tuple[Broken, ...] = ()
    gains_text: str | None = None
    undecided: tuple[ToolGrammarError, ...] = ()
    renamed: str | None = None

    @property
    def gains(self) -> Any:
        """Arguments that only the new tool takes; None also where there are none."""
        return None if self.gains_text is None else json.loads(self.gains_text)

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON data; without ``gains`` where there are none."""
        return {
            "tool": self.name,
            "verdict": self.verdict,
            "breaks": [each.to_dict() for each in self.breaks],
            **({} if self.gains_text is None else {"gains": self.gains}),
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
        result: what it gives; None: it does not say; an error: that cannot be read.
        kind: what its arguments are: ``"value"`` if they are those of a JSON Schema, and of no tool.
    """

    name: str
    arguments: Any
    result: Any = None
    kind: Kind = "call"


def contract_of(tool: Tool, *, is_open: bool) -> Contract:
    """Return what is compared of a tool, with live values left out; ``is_open``: objects take undeclared members."""
    parameters = tool.readable.of_today().parameters
    result: Any = tool.output_schema
    if result is None and tool.operation is not None:
        try:
            result = tool.operation.answers()
        except ToolGrammarError as error:
            result = error
    return Contract(tool.name, parameters if is_open else close_objects(parameters), result)


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
        renamed = next((other.name for other in added if _are_same(contract, other)), None)
        reason = "the tool is gone" if renamed is None else f"the tool is called {renamed} now"
        changes.append(ToolChange(name, "removed", (Broken("call", None, reason),), renamed=renamed))
    return ToolChanges((*changes, *(ToolChange(contract.name, "added") for contract in added)))


def _change(old: Contract, new: Contract, formats: bool) -> ToolChange:
    """Return what became of one tool."""
    calls = _Side(old.kind, old.arguments, new.arguments, formats)
    sides = [calls]
    if old.result is not None and new.result is not None:
        # Results are covariant: a new result that the old schema refuses breaks callers, so the sides are swapped.
        sides.append(_Side("result", new.result, old.result, formats))
    breaks = [side.breaks for side in sides if side.breaks is not None]
    if old.result is not None and new.result is None:
        breaks.append(Broken("result", None, "its results have no schema any more"))
    undecided = tuple(side.undecided for side in sides if side.undecided is not None)
    is_same = all(side.is_same for side in sides)
    verdict: Verdict = "breaks" if breaks else "undecided" if undecided else "same" if is_same else "compatible"
    return ToolChange(new.name, verdict, tuple(breaks), calls.gains, undecided)


class _Side:
    """A comparison of calls, of results, or of values.

    Args:
        kind: of what.
        first: the schema of what callers rely on; an error: it cannot be read.
        second: likewise, the schema that takes its place.
        formats: ``format`` asserts; else it annotates.

    Attributes:
        breaks: a value of the first schema that is none of the second; None: none is known.
        gains: a value of the second that is none of the first, as JSON; None: none is known.
        undecided: why it is not decided whether there is one of the first kind; None: it is.
        is_same: there are neither.
    """

    breaks: Broken | None = None
    gains: str | None = None
    undecided: ToolGrammarError | None = None
    is_same = False

    def __init__(self, kind: Kind, first: Any, second: Any, formats: bool) -> None:
        try:
            for schema in (first, second):
                if isinstance(schema, ToolGrammarError):
                    raise schema
            before, after = (Grammar.from_json_schema(schema, formats=formats) for schema in (first, second))
        except ToolGrammarError as error:
            self.undecided = error
            return
        comparison = before.compare(after)
        self.is_same = comparison.relation == "equal"
        self.undecided, self.gains = comparison.lost.undecided, comparison.gained.text
        lost = comparison.lost.text
        if lost is not None:
            from toolgrammar.core.validation import Validator

            try:
                reason = next(Validator(second, formats=formats).violations(json.loads(lost)), "")
            except ToolGrammarError:
                reason = ""
            self.breaks = Broken(kind, lost, reason or "not valid any more")


def _are_same(one: Contract, other: Contract) -> bool:
    """Return True if two tools with parameters take the same calls."""
    names = [set(each.arguments.get("properties") or ()) for each in (one, other)]
    return names[0] == names[1] != set() and _Side("call", one.arguments, other.arguments, True).is_same
