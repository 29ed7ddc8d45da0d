"""Real schemas of MaskBench that were refused although they have values."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from toolgrammar.core import Grammar

from ...vocabularies import BYTES
from .mutants import REAL

pytestmark = pytest.mark.skipif(not REAL.is_file(), reason="the schemas of MaskBench are not beside the repository")


def real(name: str) -> Any:
    """The schema of a name."""
    with gzip.open(REAL, "rt", encoding="utf-8") as lines:
        return next(json.loads(line)["schema"] for line in lines if f'"{name}"' in line[:100])


def test_a_type_that_is_a_conjunction_of_itself() -> None:
    """A definition of Cloudify is ``allOf`` itself and more members: it has these members."""
    schema = real("JsonSchemaStore---cloudify")
    assert json.loads(Grammar.from_json_schema(schema).bind(BYTES).matcher().shortest_completion()) == {}
    name = "nodeTypeCloudifyAzureNodesComputeWindowsVirtualMachineProperties"
    part = Grammar.from_json_schema({**schema["definitions"][name], "definitions": schema["definitions"]})
    assert part.matches('{"os_family": "windows", "agent_config": {}}')
    assert not part.matches('{"agent_config": 1}') and not part.matches("[]")


def test_a_string_of_many_patterns() -> None:
    """A string with one alternative of nine for each of three conjunctions of patterns has a text, of sixty characters."""
    grammar = Grammar.from_json_schema(real("Handwritten---allany17"))
    text = grammar.bind(BYTES).matcher().shortest_completion().decode()
    assert len(json.loads(text)) == 60 and grammar.matches(text) and not grammar.narrowed


def test_a_reference_to_a_group_of_many_words() -> None:
    """The end tag of an icon repeats its name: written for short names, and without an end tag."""
    schema = real("Github_hard---o75605")
    grammar = Grammar.from_json_schema({**schema["definitions"]["icon"], "$schema": schema["$schema"]})
    for text, expected in (("<svg />", True), ("<a>b</a>", True), ("<a>b</b>", False), ("<svg>a</svg>", False)):
        assert grammar.matches(json.dumps(text)) is expected
    whole = Grammar.from_json_schema(schema)
    assert [each.place.pointer for each in whole.narrowed] == ["/definitions/icon"]
    assert "theme" in json.loads(whole.bind(BYTES).matcher().shortest_completion())
