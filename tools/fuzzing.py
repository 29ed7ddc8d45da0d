"""Calls of the tools of a server at the borders of their schemas, and what the server makes of them.

A valid call must be answered, and its answer must match the schema that the server promises. A call just outside of
the schema must be refused: by MCP's ``isError``, an error of the protocol, or an HTTP status of 4xx.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any
from xml.etree import ElementTree

from toolgrammar.core.errors import ToolCallError, ToolGrammarError
from toolgrammar.core.grammar import Grammar, edits, single_bytes
from toolgrammar.core.validation import Validator

from .fuzz_targets import Answer, FailureKind, Target
from .tool import Tool

#: Maximum number of failures of one kind that are kept of a tool.
MAX_FAILURES = 5

#: Maximum number of calls that are made to find a smaller call with the same failure.
MAX_SHRINKS = 60

#: Maximum number of edits of calls that are looked at.
MAX_EDITS = 2_000


@dataclass(frozen=True)
class FuzzFailure:
    """A call that a server did wrong.

    Attributes:
        kind: what it did wrong.
        arguments: of the smallest such call that was found.
        shows: what the call is about, such as ``/unit is "C"``.
        reason: what the server answered, or why it should have refused the call.
    """

    kind: FailureKind
    arguments: dict[str, Any]
    shows: str
    reason: str


@dataclass
class FuzzedTool:
    """What became of the calls of one tool.

    Attributes:
        name: name of the tool.
        calls: number of valid calls.
        refusable: number of invalid calls.
        errors: number of valid calls that were answered by ``isError``, or a declared status of 4xx: no failure, as a
            file may be absent.
        failures: what went wrong, at most `MAX_FAILURES` of each kind.
        more: number of failures beyond these, and of random calls that fail in a known way.
        left_out: why it was not called, or not to the end; empty if it was.
    """

    name: str
    calls: int = 0
    refusable: int = 0
    errors: int = 0
    failures: list[FuzzFailure] = field(default_factory=list)
    more: int = 0
    left_out: str = ""


@dataclass(frozen=True)
class FuzzReport:
    """What became of the calls of each tool."""

    tools: tuple[FuzzedTool, ...]

    @property
    def failed(self) -> bool:
        """True if some tool has a failure."""
        return any(tool.failures for tool in self.tools)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        tools = [{**vars(tool), "failures": [vars(each) for each in tool.failures]} for tool in self.tools]
        return {"failed": self.failed, "tools": tools}

    def to_junit(self) -> str:
        """Return the report as JUnit XML: a case for each tool."""
        suite = ElementTree.Element("testsuite", name="toolgrammar fuzz", tests=str(len(self.tools)))
        for tool in self.tools:
            case = ElementTree.SubElement(suite, "testcase", name=tool.name, classname="toolgrammar.fuzz")
            for each in tool.failures:
                message = f"{each.kind}: {json.dumps(each.arguments)}"
                ElementTree.SubElement(case, "failure", type=each.kind, message=message).text = each.reason
            if tool.left_out and not tool.failures:
                ElementTree.SubElement(case, "skipped", message=tool.left_out)
        suite.set("failures", str(sum(bool(tool.failures) for tool in self.tools)))
        suite.set("skipped", str(sum(bool(tool.left_out and not tool.failures) for tool in self.tools)))
        return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def fuzz(
    target: Target,
    *,
    names: Collection[str] = (),
    destructive: bool = False,
    calls: int = 200,
    seconds: float = 120.0,
    seed: int = 0,
) -> FuzzReport:
    """Call the tools of a server at the borders of their schemas.

    Args:
        target: the server: `McpTarget` or `HttpTarget`.
        names: the tools to call, whatever they say of themselves; empty: all that are harmless (`Target.is_harmless`).
        destructive: call the others too.
        calls: maximum number of calls of one tool; those that make a failure smaller are not counted.
        seconds: maximum time of the run, which is looked at between two calls.
        seed: seed of the choice of calls; equal seeds choose equally.

    Raises:
        ToolCallError: the server does not start, or has no tool of a name.
    """
    is_lost = False

    def ask(tool: Tool, arguments: dict[str, Any], is_valid: bool) -> Answer:
        """Call a tool as `Target.ask`; open the connection again if the last call lost it."""
        nonlocal is_lost
        if is_lost:
            target.open()
        answer = target.ask(tool, arguments, is_valid)
        is_lost = answer.failure in ("crash", "hang")
        return answer

    end = time.monotonic() + seconds
    try:
        tools = target.open()
        unknown = sorted(set(names) - {tool.name for tool in tools})
        if unknown:
            hint = f"it has {', '.join(tool.name for tool in tools)}"
            raise ToolCallError(f"the server has no tool {unknown[0]!r}", hint=hint)
        reports = []
        for tool in tools:
            reports.append(report := FuzzedTool(tool.name))
            if names and tool.name not in names:
                report.left_out = "another tool was asked for"
            elif not names and not destructive and not target.is_harmless(tool):
                report.left_out = "it may destroy something"
            else:
                try:
                    _Calls(tool, target, ask, end, report).make(calls, seed)
                except ToolGrammarError as error:
                    report.left_out = error.message
        skipped = [FuzzedTool(each.place.tool or "(unnamed)", left_out=each.message) for each in tools.skipped]
        return FuzzReport((*reports, *skipped))
    finally:
        target.close()


def _edited(calls: list[Any]) -> Iterator[Any]:
    """Yield the calls one edit away from some others, with the words of `Grammar.counterexamples`."""
    edits_of_calls = chain.from_iterable(((call, edit) for edit in edits(json.loads(call.text))) for call in calls)
    for call, (pointer, words, value) in islice(edits_of_calls, MAX_EDITS):
        yield replace(call, text=json.dumps(value), shows=f"{pointer or '(root)'} {words}")


def _shorter(grammar: Grammar, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield calls like one, and shorter: with the shortest values, without a member, or with less of one value.

    Of a value, first the beginning is kept (nothing, the half, three quarters, ...), then the end (the half, ...).
    """
    yield {name: _shortest(grammar, name, "", value) for name, value in arguments.items()}
    yield from (fewer for _, words, fewer in edits(arguments) if words.startswith("lacks "))
    for name, value in arguments.items():
        text = json.dumps(value, ensure_ascii=False)
        size = len(text) - 1  # the last character ends the value
        for power in range(size.bit_length() + 1):
            beginning = text[: size - (size >> power)]
            yield {**arguments, name: _shortest(grammar, name, beginning, value)}
        if isinstance(value, (str, list)):
            for power in range(1, len(value).bit_length() + 1):
                yield {**arguments, name: value[len(value) >> power or 1 :]}


def _shortest(grammar: Grammar, name: str, beginning: str, value: Any) -> Any:
    """Return the shortest value of an argument whose JSON begins with a text, or ``value`` if there is no shorter."""
    written = f"{{{json.dumps(name, ensure_ascii=False)}: {beginning}"
    try:
        matcher = grammar.bind(single_bytes()).matcher()
        if not matcher.accept_bytes(written.encode()):
            return value
        shortest = json.loads(written + matcher.shortest_completion().decode())[name]
    except (ToolGrammarError, ValueError):
        return value
    return shortest if len(json.dumps(shortest)) < len(json.dumps(value)) else value


class _Calls:
    """The calls of one tool, made until a time.

    Args:
        tool: the tool.
        target: what tells which calls arrive as valid.
        ask: makes a call: `Target.ask`, on a connection that is opened again when it was lost.
        end: time at which the run ends, by ``time.monotonic``.
        report: where the results go.
    """

    def __init__(
        self,
        tool: Tool,
        target: Target,
        ask: Callable[[Tool, dict[str, Any], bool], Answer],
        end: float,
        report: FuzzedTool,
    ) -> None:
        self._tool, self._target, self._ask, self._end, self._report = tool, target, ask, end, report
        self._judge = Validator(tool.parameters)

    def make(self, calls: int, seed: int) -> None:
        """Call the tool at all borders of its schema."""
        grammar = Grammar.from_json_schema(self._tool.parameters, additional_properties=False)
        half = max(calls // 2, 1)
        valid = self._sent(grammar.examples(half, seed), True)
        taken = self._call_each(valid, True)
        if self._report.left_out:
            return
        # `_sent` leaves out what JSON Schema allows and the grammar does not: unknown members of open objects, any text
        # for a format.
        invalid = self._sent(grammar.counterexamples(2 * half, seed), False)
        # A server that refuses the rest of a call does not see the edit: make it in a call that was taken.
        wanted = {each.shows for each in invalid}
        near = self._sent((each for each in _edited(taken) if each.shows in wanted), False)
        better = {each.shows: each for each in reversed(near)}  # the first of several
        invalid = [better.get(each.shows, each) for each in invalid]
        self._call_each(invalid[: calls - len(valid)], False)

    def _sent(self, examples: Iterable[Any], is_valid: bool) -> list[Any]:
        """Return the examples that are calls and arrive as valid, or as invalid if not ``is_valid``."""
        calls = ((each, json.loads(each.text)) for each in examples)
        return [each for each, value in calls if isinstance(value, dict) and self._arrives(value) is is_valid]

    def _arrives(self, arguments: dict[str, Any]) -> bool | None:
        """Return whether arguments are valid as they arrive (see `Target.verdict`); None: they cannot be sent."""
        return self._target.verdict(self._tool, self._judge, arguments)

    def _call_each(self, calls: list[Any], is_valid: bool) -> list[Any]:
        """Make calls, the shortest first, and return those that were answered without an error."""
        taken, report = [], self._report
        for call in sorted(calls, key=lambda call: len(call.text)):
            if time.monotonic() > self._end:
                report.left_out = "the time was over"
                break
            arguments = json.loads(call.text)
            answer = self._ask(self._tool, arguments, is_valid)
            if is_valid:
                report.calls += 1
            else:
                report.refusable += 1
            if answer.failure is not None:
                self._add(FuzzFailure(answer.failure, arguments, call.shows, answer.words), is_valid)
            elif not answer.words:
                taken.append(call)
            elif is_valid:
                report.errors += 1
        return taken

    def _add(self, failure: FuzzFailure, is_valid: bool) -> None:
        """Add a failure to the report, by a smallest call, unless it is known.

        A random call is about nothing in particular (``shows`` is ``"random"``), so it adds nothing to a known kind.
        """
        alike = [each for each in self._report.failures if each.kind == failure.kind]
        if len(alike) >= MAX_FAILURES or (alike and failure.shows == "random"):
            self._report.more += 1
            return
        smallest = self._smaller(failure, is_valid)
        # Compared as JSON, where true is not 1.
        if json.dumps(smallest.arguments, sort_keys=True) not in (
            json.dumps(each.arguments, sort_keys=True) for each in alike
        ):
            self._report.failures.append(smallest)

    def _smaller(self, failure: FuzzFailure, is_valid: bool) -> FuzzFailure:
        """Return a failure by a call with as few and as short members as fail like this."""
        tries = {"hang": 3, "crash": 20}.get(failure.kind, MAX_SHRINKS)  # each of these two costs a start of the server
        grammar = Grammar.from_json_schema(self._tool.parameters, additional_properties=False, property_order="any")
        tried: set[str] = set()
        pending = _shorter(grammar, failure.arguments)
        while tries and time.monotonic() < self._end and (fewer := next(pending, None)) is not None:
            text = json.dumps(fewer)
            if text not in tried and self._arrives(fewer) is is_valid:
                tried.add(text)
                tries -= 1
                try:
                    answer = self._ask(self._tool, fewer, is_valid)
                except ToolCallError:  # the server does not start again: the next call says so
                    break
                if answer.failure == failure.kind:
                    failure = replace(failure, arguments=fewer, reason=answer.words)
                    pending = _shorter(grammar, fewer)
        if failure.kind == "accepted":
            failure = replace(failure, reason=next(self._judge.violations(failure.arguments), failure.reason))
        return failure
