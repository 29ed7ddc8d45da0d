"""Short reusable languages by name: dates, addresses, identifiers, versions."""

from __future__ import annotations

from ..errors import GrammarError
from ..language.nodes import Nodes
from ..regex.compile import regex_term
from ..schema.scalars import dates
from ..schema.scalars.formats import ENFORCED, format_term

_NUMBER = r"(?:0|[1-9]\d*)"
_LABEL = rf"(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*)"

#: Languages that no format of JSON Schema has.
PATTERNS = {
    # Semantic Versioning 2.0.0, section 2, 9 and 10.
    "semver": rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
}

#: The names; dates that depend on today are left out.
NAMES = sorted((ENFORCED | PATTERNS.keys()) - dates.FORMATS.keys())


def check_name(name: str) -> None:
    """Raise an error if there is no language of a name.

    Raises:
        GrammarError: lists the names that there are.
    """
    if name not in NAMES:
        raise GrammarError(f"unknown format {name!r}", hint=f"known formats: {', '.join(NAMES)}")


def build_word(nodes: Nodes, name: str) -> int:
    """Return the node of a language."""
    terms = nodes.terms
    pattern = PATTERNS.get(name)
    return int(nodes.text(format_term(terms, name) if pattern is None else regex_term(terms, pattern, whole=True)))
