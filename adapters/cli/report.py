"""Report on a JSON Schema as it is enforced: exact, doubtful, narrowed or refused, with random outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .samples import samples_of
from .source import Source

if TYPE_CHECKING:
    from toolgrammar.core.errors import ToolGrammarError, UnsatisfiableSchemaError, UnsupportedSchemaError
    from toolgrammar.core.schema import Unread
    from toolgrammar.tools import ToolSet
    from toolgrammar.tools.tool_findings import ToolFinding

#: Number of random outputs.
SAMPLES = 5

#: What is said of a schema, by the word for it.
VERDICTS = {
    "exact": "every keyword can be enforced exactly",
    "doubtful": "can be enforced, but parts of it are probably mistakes",
    "narrowed": "can be enforced, but some valid values are never written",
    "refused": "cannot be enforced",
}


@dataclass(frozen=True)
class Report:
    """A schema as it is enforced.

    Attributes:
        source: the schema.
        problems: why it is refused; empty if it is not.
        narrowed: keywords of which some valid values are never written.
        never_written: parts that no value can satisfy.
        unread: keywords and formats that constrain nothing.
        samples: random outputs.
        compared: what comparing the tools of a set shows of this one; without a hint it may be meant.
    """

    source: Source
    problems: tuple[ToolGrammarError, ...]
    narrowed: tuple[UnsupportedSchemaError, ...] = ()
    never_written: tuple[UnsatisfiableSchemaError, ...] = ()
    unread: tuple[Unread, ...] = ()
    samples: tuple[str, ...] = ()
    compared: tuple[ToolFinding, ...] = ()

    @property
    def warnings(self) -> tuple[UnsatisfiableSchemaError | Unread | ToolFinding, ...]:
        """What is probably a mistake: parts that are never written, keywords and formats that look misspelt, and tools
        that look the same."""
        misspelt = (each for each in self.unread if each.hint)
        return (*self.never_written, *misspelt, *(each for each in self.compared if each.hint))

    @property
    def annotations(self) -> tuple[Unread, ...]:
        """Keywords and formats that constrain nothing and that look like no other."""
        return tuple(each for each in self.unread if not each.hint)

    @property
    def notes(self) -> tuple[ToolFinding, ...]:
        """What comparing tools shows, and may be meant."""
        return tuple(each for each in self.compared if not each.hint)

    @property
    def verdict(self) -> str:
        """The word for it: exact, doubtful, narrowed or refused."""
        if self.problems:
            return "refused"
        return "narrowed" if self.narrowed else "doubtful" if self.warnings else "exact"

    @property
    def sentence(self) -> str:
        """What is said of it."""
        said = VERDICTS[self.verdict]
        if self.narrowed and self.warnings and not self.problems:
            said += ", and parts of it are probably mistakes"
        return said if self.source.grammar_form is None else said.replace("keyword", "rule")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        finding = self.source.finding
        return {
            "verdict": self.verdict,
            "enforceable": not self.problems,
            "problems": [finding(problem) for problem in self.problems],
            "warnings": [finding(warning) for warning in self.warnings],
            "narrowed": [{**finding(problem), "left_out": problem.left_out} for problem in self.narrowed],
            "annotations": [finding(annotation) for annotation in self.annotations],
            **({"notes": [finding(each) for each in self.notes]} if self.notes else {}),
            "samples": list(self.samples),
        }


def report_of(source: Source, seed: int = 0) -> Report:
    """Return how a schema is enforced, with random outputs."""
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.core.schema import Findings

    found = Findings()
    try:
        if source.grammar_form is None:
            found = Findings.of(source.document)
        problems, narrowed = found.refused, found.narrowed
        if problems:
            return Report(source, problems, narrowed, found.never_written, found.unread)
        grammar = source.grammar()
        samples = tuple(samples_of(source, SAMPLES, seed))
    except ToolGrammarError as error:
        return Report(source, (error,), (), found.never_written, found.unread)
    return Report(source, (), grammar.narrowed, found.never_written, found.unread, samples)


def report_of_tools(tools: ToolSet, seed: int = 0) -> tuple[list[Report], int]:
    """Return how each tool of a set is enforced, with what comparing them shows, and how many pairs of parameters or
    tools were not compared since there are too many."""
    from toolgrammar.tools import close_objects
    from toolgrammar.tools.tool_findings import SetFindings

    of_set = SetFindings(tools)
    reports = [Report(Source(error.place.tool or "a tool", None), (error,)) for error in tools.skipped]
    for tool in tools:
        report = report_of(Source(tool.name, close_objects(tool.readable.parameters)), seed)
        compared = tuple(finding for finding in of_set.found if finding.place.tool == tool.name)
        reports.append(replace(report, compared=compared))
    return reports, of_set.left
