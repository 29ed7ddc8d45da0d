"""Random outputs of a schema that show it: most of the optional members are there, and no invented ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .source import Source

#: Share of the optional members that are written.
SHARE = 0.75

#: Number of times that such an output is tried for, before any output is taken.
ATTEMPTS = 3

#: Maximum length in characters of a schema, as JSON, that is changed for each output.
MAX_SIZE = 200_000


def samples_of(source: Source, count: int, seed: int, length: int | None = None) -> Iterator[str]:
    """Yield random outputs, each as soon as it is drawn; equal seeds give equal outputs.

    Args:
        source: the schema, or the grammar.
        count: number of outputs.
        seed: of the random draw.
        length: in bytes; from this length on, an output ends as soon as it may. None: a length for readers.

    Raises:
        ToolGrammarError: the schema cannot be enforced, or has no output.
    """
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.core.grammar import Grammar, random_text

    grammar = source.grammar()
    grammar.check()
    draw = random.Random(seed)
    is_small = source.grammar_form is None and len(json.dumps(source.document, default=str)) < MAX_SIZE
    unsatisfiable = _unsatisfiable(source) if is_small else []
    for _ in range(count):
        for _ in range(ATTEMPTS if is_small else 0):
            try:
                fuller = Grammar.from_json_schema(
                    _fuller(source.document, draw, unsatisfiable), additional_properties=False
                )
                sample = random_text(fuller, draw, length)
            except ToolGrammarError:
                continue
            if grammar.matches(sample):  # not so where more members make a condition true
                break
        else:
            sample = random_text(grammar, draw, length)
        yield sample


def _unsatisfiable(source: Source) -> list[Any]:
    """Return the parts of a schema that have no value."""
    from toolgrammar.core.json import resolve_local
    from toolgrammar.core.schema import Findings

    never = Findings.of(source.document).never_written
    return [resolve_local(source.document, f"#{error.place.pointer}") for error in never]


def _fuller(schema: Any, draw: random.Random, unsatisfiable: list[Any]) -> Any:
    """Return a schema whose objects require most of their members, but for those that have no value."""
    from toolgrammar.core.schema import KEYWORDS

    def require(part: dict[str, Any]) -> dict[str, Any]:
        declared, required = part.get("properties"), part.get("required", [])
        if not isinstance(declared, dict) or not isinstance(required, list):
            return part
        optional = [name for name, inner in declared.items() if name not in required and inner not in unsatisfiable]
        wanted = [name for name in optional if draw.random() < SHARE]
        return {**part, "required": [*required, *wanted]}

    return KEYWORDS.map_schemas(schema, require)
