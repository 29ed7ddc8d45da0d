"""What a grammar of calls admits, the parser reads, and `validate` takes: random turns in every format."""

from __future__ import annotations

from collections import Counter

import pytest

from toolgrammar.tools.formats import format_names

from .law import LawError, judge

#: Maximum share of turns whose tools a format may refuse.
MAX_REFUSED = 0.6


@pytest.mark.parametrize("name", format_names())
def test_what_the_grammar_admits_is_read(name: str) -> None:
    """Random tools, values and markers, control tokens in the vocabulary, whole and in pieces."""
    outcomes: Counter[str] = Counter()
    faults = []
    for seed in range(25):
        try:
            outcomes[judge(name, seed)] += 1
        except LawError as error:
            faults.append(str(error))
    assert not faults, "\n\n".join(faults[:3])
    assert outcomes["written"] >= 25 * (1 - MAX_REFUSED), outcomes
