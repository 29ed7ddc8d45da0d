"""Page of ``toolgrammar check --html``: a schema as it is enforced, with random outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from toolgrammar.core.pages import escape, page

from .output import in_words_of_the_shell
from .report import Report

if TYPE_CHECKING:
    from .source import Finding

_STYLE = """
.fair { color: var(--removed); font-weight: 600; }
.findings td:first-child { width: 34%; }
.findings td, .findings code { overflow-wrap: normal; word-break: normal; }
.findings td p.hint { margin: .2rem 0 0; }
ol.source { background: var(--card); border-radius: 8px; padding: .7rem .7rem .7rem 3.2rem; margin: .4rem 0; }
ol.source li { white-space: pre-wrap; overflow-wrap: anywhere; }
ol.source li::marker { color: var(--dim); }
ol.source mark { background: var(--forced); color: var(--closed); outline: 1px solid var(--closed); font-weight: 600; }
"""

#: A value of JSON, or the bracket with which it begins.
_VALUE = re.compile(r'"(?:\\.|[^"\\])*"?|[{\[]|[^\s,}\]]+')

#: Maximum number of unknown annotations that are listed.
MAX_ANNOTATIONS = 50

#: Maximum number of lines of the schema that are shown.
MAX_LINES = 2_000


def check_page(report: Report) -> str:
    """Return the page of a report."""
    colour = {"exact": "good", "refused": "bad"}.get(report.verdict, "fair")
    narrowed = [(finding, f"never writes {finding.left_out}", None) for finding in report.narrowed]
    problems = [(finding, finding.message, finding.hint) for finding in report.problems]
    warnings = [(finding, finding.message, finding.hint) for finding in report.warnings]
    annotations = [(finding, finding.message, finding.hint) for finding in report.annotations[:MAX_ANNOTATIONS]]
    parts = [
        f"<header><h1>{escape(report.source.name)}</h1>",
        f'<p class="{colour}">{escape(report.sentence)}</p></header>',
        _findings("Refused", "why, and the way out", report, problems),
        _findings("Probably mistakes", "why, and what may be meant", report, warnings),
        _findings("Narrowed", "left out", report, narrowed),
        _findings("Annotations that are not known", "what they do", report, annotations),
    ]
    if report.samples:
        outputs = "".join(f"<pre>{escape(text)}</pre>" for text in report.samples)
        parts.append(f"<section><h2>Random outputs</h2>{outputs}</section>")
    parts.append(_schema(report))
    return page(f"{report.source.name}: {report.sentence}", "\n".join(parts), style=_STYLE)


def _findings(title: str, heading: str, report: Report, found: Sequence[tuple[Finding, str, str | None]]) -> str:
    """Return a table of findings, each with what it says and a hint."""
    if not found:
        return ""
    rows = "".join(
        f"<tr><td>{_broken(report.source.where(finding))}</td><td>{escape(in_words_of_the_shell(text))}"
        + (f'<p class="hint">{escape(in_words_of_the_shell(hint))}</p>' if hint else "")
        + "</td></tr>"
        for finding, text, hint in found
    )
    table = f'<table><thead><tr><th scope="col">place</th><th scope="col">{heading}</th></tr></thead>'
    return f'<section><h2>{title}</h2><div class="scroll findings">{table}<tbody>{rows}</tbody></table></div></section>'


def _broken(place: str) -> str:
    """Return a place that breaks before a slash, and not within a name."""
    line, separator, path = place.partition(": ")
    where = f'<span class="hint">{escape(line)}</span><br>' if separator else ""
    return f"{where}<code>{escape(path if separator else place).replace('/', '<wbr>/')}</code>"


def _schema(report: Report) -> str:
    """Return the schema, with the places of findings marked."""
    source = report.source
    text: Any = source.text
    if text is None:
        value = source.document if source.grammar_form is None else json.loads(source.grammar().dumps())
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    findings = (*report.narrowed, *report.warnings, *report.problems)
    places = [source.place(finding.place.pointer, finding.place.keyword) for finding in findings]
    columns: dict[int, set[int]] = {}
    for place in places:
        if place is not None:
            line_number, column = place
            columns.setdefault(line_number, set()).add(column)
    lines = text.splitlines()
    shown = "".join(
        f'<li class="mono">{_marked(line, sorted(columns.get(number, ()))) or " "}</li>'
        for number, line in enumerate(lines[:MAX_LINES], 1)
    )
    more = f'<p class="hint">… and {len(lines) - MAX_LINES} lines more</p>' if len(lines) > MAX_LINES else ""
    what = "schema" if source.grammar_form is None else "grammar"
    return f'<section><h2>The {what}</h2><ol class="source">{shown}</ol>{more}</section>'


def _marked(line: str, columns: Iterable[int]) -> str:
    """Return a line with the values marked that begin at some columns, which count from 1 and rise."""
    parts, done = [], 0
    for column in columns:
        value = _VALUE.match(line, column - 1)
        if value is not None and value.start() >= done:
            parts.append(f"{escape(line[done : value.start()])}<mark>{escape(value[0])}</mark>")
            done = value.end()
    return "".join(parts) + escape(line[done:])
