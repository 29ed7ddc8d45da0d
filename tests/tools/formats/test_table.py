"""The table of formats in the documentation says what the code does."""

from __future__ import annotations

from pathlib import Path

from toolgrammar.tools.formats import format_names, get_format
from toolgrammar.tools.formats.json_calls import JsonCalls
from toolgrammar.tools.formats.xml_calls import XmlCalls

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"


def row(name: str) -> str:
    """A line of the table."""
    wire = get_format(name)
    if not isinstance(wire, JsonCalls):
        return f"| `{name}` | JSON | yes | yes | yes | yes | no |"
    shape = "tags" if isinstance(wire, XmlCalls) else "JSON"
    detected = "yes" if wire.signs else "no"
    parallel = "yes" if wire.parallel else "no"
    return f"| `{name}` | {shape} | {detected} | yes | yes | {parallel} | {'yes' if wire.thinking else 'no'} |"


def test_the_table_is_that_of_the_code() -> None:
    """One line for each format, with what it can do."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert lines == [row(name) for name in format_names()]
