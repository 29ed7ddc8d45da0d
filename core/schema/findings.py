"""All findings about a schema in one run: why it is refused, what of it is narrowed, and what is probably a mistake."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..basics.json_pointer import resolve_local
from ..errors import LimitError, SchemaError, ToolGrammarError, UnsatisfiableSchemaError, UnsupportedSchemaError
from .compile import check, compile_schema
from .read.options import SchemaOptions
from .read.resolve import Document
from .read.unread import Unread, unread

#: Maximum number of times that a schema is read again without what was refused.
MAX_ROUNDS = 10


@dataclass(frozen=True)
class Findings:
    """What was found about a schema.

    Attributes:
        refused: why it is refused; empty if it is not. A part that is malformed hides no other.
        narrowed: keywords of which some valid values are never written.
        never_written: parts that no value can satisfy, though the whole has values.
        unread: keywords and formats that constrain nothing, first those that look misspelt.
    """

    refused: tuple[SchemaError | LimitError, ...] = ()
    narrowed: tuple[UnsupportedSchemaError, ...] = ()
    never_written: tuple[UnsatisfiableSchemaError, ...] = ()
    unread: tuple[Unread, ...] = ()


def findings(schema: Any, options: SchemaOptions | None = None) -> Findings:
    """Return all findings about a schema.

    Args:
        schema: the schema.
        options: how it is read.

    Raises:
        InvalidSchemaError: it is no JSON Schema at all.
    """
    options = options or SchemaOptions()
    first = refused = check(schema, options)
    said = list(unread(schema, Document(schema).age if isinstance(schema, dict) else 0, formats=options.formats))
    said.sort(key=lambda each: each.hint is None)
    for _ in range(MAX_ROUNDS):
        if not refused:
            break
        schema = _without(schema, refused)
        refused = check(schema, options)
    else:
        return Findings(tuple(first), unread=tuple(said))
    try:
        compiled = compile_schema(schema, options)
        whole, parts = compiled.contradictions()
    except ToolGrammarError:  # the whole is beyond a limit: that is found where it is compiled
        return Findings(tuple(first), unread=tuple(said))
    return Findings((*first, *whole), compiled.narrowed, tuple(parts), tuple(said))


def _without(schema: Any, problems: Iterable[SchemaError | LimitError]) -> Any:
    """Return a schema without what is wrong with it."""
    changed = copy.deepcopy(schema)
    for problem in problems:
        pointer, keyword = problem.place.pointer or "", problem.place.keyword
        try:
            if keyword is not None:
                resolve_local(changed, f"#{pointer}").pop(keyword, None)
            elif pointer:
                above, _, last = pointer.rpartition("/")
                part = resolve_local(changed, f"#{above}")
                part[int(last) if isinstance(part, list) else last.replace("~1", "/").replace("~0", "~")] = True
            else:
                return True
        except (
            LookupError,
            TypeError,
            AttributeError,
            ValueError,
        ):  # it is in another document, or was in what is gone
            continue
    return changed
