"""Every JSON value of a small world, and the two verdicts on them: that of the grammar and that of ``jsonschema``."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema

from toolgrammar.core import Grammar, UnsatisfiableSchemaError

SCALARS: tuple[Any, ...] = (None, True, False, -1, 0, 1, 1.5, 2, 3, "", "a", "b", "ab", "2024-02-29")
INNER: tuple[Any, ...] = (None, 1, "a", [1], {"a": 1})
NAMES = ("a", "b", "ab")

#: Scalars, arrays of up to three items, and objects of up to three members, of a few inner values.
UNIVERSE: tuple[Any, ...] = (
    *SCALARS,
    *(list(items) for size in range(3) for items in itertools.product(INNER, repeat=size)),
    *(list(items) for items in itertools.product((1, "a"), repeat=3)),
    *(
        dict(zip(names, items, strict=True))
        for size in range(3)
        for names in itertools.combinations(NAMES, size)
        for items in itertools.product(INNER, repeat=size)
    ),
    *(dict(zip(NAMES, items, strict=True)) for items in itertools.product((1, "a"), repeat=3)),
)
_TEXTS = tuple(json.dumps(value) for value in UNIVERSE)


def accepted(schema: Any, **options: Any) -> list[str]:
    """Return the texts of the values that the grammar of a schema accepts, with members in any order."""
    grammar = Grammar.from_json_schema(schema, property_order="any", whitespace="flexible", **options)
    try:
        grammar.program  # noqa: B018
    except UnsatisfiableSchemaError:
        return []
    return [text for text in _TEXTS if grammar.matches(text)]


def _is_of_grammar(judge: Any, given: Any, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """Judge our keyword, of regular expressions alone."""
    assert given["syntax"] == "regex"
    if isinstance(value, str) and not re.fullmatch(given["definition"], value):
        yield jsonschema.ValidationError("is not of the grammar")


def valid(schema: Any, **options: Any) -> list[str]:
    """Return the texts of the values that ``jsonschema`` calls valid, in the dialect of the schema."""
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    # ``dependencies`` is taken in any draft.
    others = {
        "x-grammar": _is_of_grammar,
        "dependencies": jsonschema.Draft7Validator.VALIDATORS["dependencies"],
    }
    kind = jsonschema.validators.extend(kind, {**others, **kind.VALIDATORS})
    judge = kind(schema, format_checker=kind.FORMAT_CHECKER, **options)
    return [text for text, value in zip(_TEXTS, UNIVERSE, strict=True) if judge.is_valid(value)]
