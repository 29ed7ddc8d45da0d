"""All findings about a schema in one run: reasons to refuse it, narrowed keywords, and probable mistakes."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import LimitError, SchemaError, ToolGrammarError, UnsatisfiableSchemaError, UnsupportedSchemaError
from ..json import resolve_local
from .compile import compile_schema, every_problem
from .read.options import SchemaOptions
from .read.resolve import Document
from .read.unread import Unread, unread

#: Maximum number of times that a schema is read again without what was refused.
MAX_ROUNDS = 10


@dataclass(frozen=True)
class Findings:
    """The findings about a schema.

    Attributes:
        refused: the reasons why it is refused; empty if it is not. Malformed parts do not hide the others.
        narrowed: keywords of which some valid values are never written.
        never_written: parts that no value satisfies, although the whole schema has values.
        unread: keywords and formats that constrain nothing, probable misspellings first.
    """

    refused: tuple[SchemaError | LimitError, ...] = ()
    narrowed: tuple[UnsupportedSchemaError, ...] = ()
    never_written: tuple[UnsatisfiableSchemaError, ...] = ()
    unread: tuple[Unread, ...] = ()

    @classmethod
    def of(cls, schema: Any, options: SchemaOptions | None = None) -> Findings:
        """Return all findings about a schema.

        Args:
            schema: the schema.
            options: how it is read.

        Raises:
            InvalidSchemaError: it is no JSON Schema at all.
        """
        options = options or SchemaOptions()
        first = refused = every_problem(schema, options)
        said = list(unread(schema, Document(schema).age if isinstance(schema, dict) else 0, formats=options.formats))
        said.sort(key=lambda each: each.hint is None)
        for _ in range(MAX_ROUNDS):
            if not refused:
                break
            schema = _without(schema, refused)
            refused = every_problem(schema, options)
        else:
            return cls(tuple(first), unread=tuple(said))
        try:
            compiled = compile_schema(schema, options)
            whole, parts = compiled.contradictions()
        except ToolGrammarError:  # the whole exceeds a limit: reported when it is compiled
            return cls(tuple(first), unread=tuple(said))
        return cls((*first, *whole), compiled.narrowed, tuple(parts), tuple(said))


def _without(schema: Any, problems: Iterable[SchemaError | LimitError]) -> Any:
    """Return a schema without the keywords and subschemas that have problems."""
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
        except (LookupError, TypeError, AttributeError, ValueError):
            continue  # the place is in another document, or below a part that was removed
    return changed
