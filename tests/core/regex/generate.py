"""Generator of ``core/regex/data/bytecode.txt``: the patterns of all formats, compiled.

Run it after a change of a format's pattern, or of how patterns become terms::

    python tests/core/regex/generate.py

It lies among the tests, which compare the file with what it writes, because it is no part of the library.
"""

from __future__ import annotations

import textwrap
from array import array
from unittest.mock import patch

from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex import compile as module
from toolgrammar.core.schema.scalars import dates
from toolgrammar.core.schema.scalars.bounded_formats import BOUNDED
from toolgrammar.core.schema.scalars.formats import ENFORCED, format_term

HEADING = """\
# Patterns of the formats, as bytecode (see core/regex/bytecode.py): written by tests/core/regex/generate.py.
#
# One line for each pattern: the beginning of the SHA-256 of the text "True PATTERN" (the whole string matches; "False":
# some part), a colon, then the integers of its program; a line that begins with a space goes on with the line before.

"""


def bytecodes() -> dict[str, bytes]:
    """Return the bytecode, by its name, of each pattern of formats that are the same on every day."""
    found: dict[str, bytes] = {}
    compiled = module.computed_code

    def noted(pattern: str, whole: bool, bound: str) -> bytes:
        code = found[module.row_name(pattern, whole)] = compiled(pattern, whole)
        return code

    with patch.object(module, "regex_code", noted), patch.object(module, "_known", dict):
        for name in sorted(ENFORCED - dates.FORMATS.keys()):
            terms = Terms()
            terms.segments(format_term(terms, name))  # deferred parts that a text reaches first
            if name in BOUNDED:
                format_term(Terms(), name, outer=True)
        terms = Terms()
        terms.matches(format_term(terms, "time"), "23:59:60Z")  # leap seconds
    return found


def rendered() -> str:
    """Return the data file."""
    rows = [
        textwrap.fill(f"{name}: {' '.join(map(str, array('i', code)))}", 120, subsequent_indent=" ")
        for name, code in sorted(bytecodes().items())
    ]
    return HEADING + "\n".join(rows) + "\n"


if __name__ == "__main__":
    module.DATA.parent.mkdir(exist_ok=True)
    module.DATA.write_text(rendered(), encoding="ascii")
