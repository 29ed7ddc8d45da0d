"""What a grammar of calls admits, the parser reads, and `validate` takes: random turns in every format."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.tools.formats import format_data, format_names, get_format

from .law import LawError, judge
from .test_format_file import MARKUP, NOT_DERIVED

#: Formats of no model.
OWN: dict[str, dict[str, Any]] = {
    "listed-calls": {
        "begin": "<calls>\n",
        "call": '<call name="$name">$args</call>',
        "separator": "\n",
        "finish": "\n</calls>",
    },
    "one": {"call": "[[$name $args]]", "parallel": False},
}

#: Maximum share of turns whose tools a format may refuse.
MAX_REFUSED = 0.6


@pytest.mark.parametrize(("number", "name"), [*enumerate((*format_names(), "program"))])
def test_what_the_grammar_admits_is_read(number: int, name: str, thorough: bool) -> None:
    """Random tools, values and markers, control tokens in the vocabulary, whole and in pieces: others in each format,
    so that formats that share a parser show its faults together."""
    outcomes: Counter[str] = Counter()
    faults = []
    count = 25 if thorough else 10
    for seed in range(number * count, (number + 1) * count):
        try:
            outcomes[judge(name, seed)] += 1
        except LawError as error:
            faults.append(str(error))
    assert not faults, "\n\n".join(faults[:3])
    assert outcomes["written"] >= count * (1 - MAX_REFUSED), outcomes


@pytest.mark.parametrize("name", [*OWN, *(name for name in format_names() if name not in NOT_DERIVED)])
def test_formats_of_description_files(name: str, tmp_path: Path, thorough: bool) -> None:
    """The law holds of formats that a TOML file describes by their markup alone."""
    markup = (
        {key: value for key, value in format_data(get_format(name)).items() if key in MARKUP}
        if name not in OWN
        else OWN[name]
    )
    path = tmp_path / f"{name}.toml"
    path.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in {"name": name, **markup}.items()))
    count = 8 if thorough else 4
    outcomes = Counter(judge(str(path), seed) for seed in range(count))
    assert outcomes["written"] >= count * (1 - MAX_REFUSED), outcomes
