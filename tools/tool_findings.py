"""Findings about the tools of one set: parameters that exclude each other, and tools that a reader cannot tell apart.

Both are proved by comparing grammars, as in `contracts`. What is not decided is not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from toolgrammar.core.errors import Place, ToolGrammarError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import escape

from .contracts import contract_of
from .tool import Tool

#: Maximum number of comparisons for one set.
MAX_COMPARISONS = 500


@dataclass(frozen=True)
class ToolFinding:
    """What the schemas of a set say, perhaps by mistake.

    Attributes:
        place: its location; the pointer is into the arguments of the tool.
        message: what it is.
        hint: what to do, if it is a mistake.
        code: ``"excluded_parameters"`` or ``"alike_tools"``.
    """

    place: Place
    message: str
    hint: str | None
    code: str


class SetFindings:
    """Findings about the tools of a set, whose objects are closed.

    Attributes:
        found: all findings, by tools.
        left: pairs of parameters and of tools that were not compared, since there are more than `MAX_COMPARISONS`.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self.found: list[ToolFinding] = []
        self.left = 0
        self._comparisons_left = MAX_COMPARISONS
        # Names and grammars of tools with different calls, by what a reader is told of them:
        told_the_same: dict[Hashable, list[tuple[str, Grammar]]] = {}
        for tool in tools:
            arguments = contract_of(tool, is_open=False).arguments
            properties = arguments.get("properties")
            if not isinstance(properties, Mapping) or not properties:
                continue
            try:
                grammar = Grammar.from_json_schema(arguments)
                self._find_alike(tool.name, grammar, told_the_same.setdefault(_told(tool, properties), []))
                required = arguments.get("required", ())
                names = [name for name, schema in properties.items() if schema is not False and name not in required]
                self._find_excluded(tool.name, grammar, names)
            except ToolGrammarError:
                continue  # the report of the tool itself says so

    def _may_compare(self) -> bool:
        """Return True if a comparison is left, and use it up; else count a pair that is not compared."""
        if self._comparisons_left == 0:
            self.left += 1
            return False
        self._comparisons_left -= 1
        return True

    def _find_alike(self, name: str, grammar: Grammar, others: list[tuple[str, Grammar]]) -> None:
        """Compare a tool with those of which a reader is told the same; add it to them if its calls differ."""
        for other, known in others:
            if self._may_compare() and known.compare(grammar).relation == "equal":
                message = f"takes the same calls as {other!r}, and no description tells them apart"
                hint = "say in the descriptions when to call which, or offer one of them"
                self.found.append(ToolFinding(Place(tool=name), message, hint, "alike_tools"))
                return
        others.append((name, grammar))

    def _find_excluded(self, tool: str, grammar: Grammar, names: Sequence[str]) -> None:
        """Find the optional parameters of a tool that are never given together."""
        if len(names) < 2 or not self._may_compare() or _call_with(grammar, names).text is not None:
            return  # one call has them all
        # A parameter that is never given at all is no finding here.
        names = [name for name in names if self._may_compare() and not _call_with(grammar, [name]).is_none]
        excluded: dict[str, list[str]] = {}
        for one, other in self._excluded_pairs(grammar, names):
            excluded.setdefault(one, []).append(other)
        for one, others in excluded.items():
            place = Place(tool=tool, pointer=f"/properties/{escape(one)}")
            message = f"is never given together with {', '.join(others)}"
            self.found.append(ToolFinding(place, message, None, "excluded_parameters"))

    def _excluded_pairs(self, grammar: Grammar, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield the pairs of parameters that no call has."""
        found: list[set[str]] = []  # the parameters of the calls so far: a call has each pair in them
        for pair in combinations(names, 2):
            if any(parameters.issuperset(pair) for parameters in found) or not self._may_compare():
                continue
            call = _call_with(grammar, pair)
            if call.text is not None:
                found.append(set(json.loads(call.text)))
            elif call.is_none:
                yield pair


def _call_with(grammar: Grammar, names: Sequence[str]) -> Any:
    """Return a smallest call with some parameters, a `Witness`: its ``text``, or ``is_none``, or neither if that is not
    decided."""
    return grammar.compare(Grammar.from_json_schema({"not": {"required": list(names)}})).lost


def _told(tool: Tool, properties: Mapping[str, Any]) -> Hashable:
    """Return what a reader is told of a tool: descriptions, and the name where the tool has none."""
    about = _words(tool.description)
    parameters = [
        (name, _words(schema.get("description", "") if isinstance(schema, Mapping) else ""))
        for name, schema in properties.items()
    ]
    name = "".join(_words(tool.name)).replace("_", "")  # add_user, addUser -> adduser
    return about or name, tuple(sorted(parameters))


def _words(text: object) -> tuple[str, ...]:
    """Return the words of a text without case and marks: ``"Add it."`` -> ``("add", "it")``."""
    return tuple(re.findall(r"\w+", str(text).casefold()))
