"""Errors for keywords that cannot be enforced exactly."""

from __future__ import annotations

from ...errors import Place, UnsupportedSchemaError
from ..read.located import Located

#: Hints for a keyword that cannot be enforced exactly.
CHECK_LATER = "have it checked after generation with on_unsupported='validate'"
NARROW = "allow that with on_unsupported='narrow'"


def unsupported(located: Located, keyword: str, how: str = "", left_out: str | None = None) -> UnsupportedSchemaError:
    """Return the error for a keyword that cannot be enforced exactly.

    Args:
        located: the schema.
        keyword: its keyword.
        how: the rest of the sentence, for example ``"with more than 10 options"``.
        left_out: the valid values that a narrowed grammar does not write; None: the keyword cannot be narrowed.
    """
    return UnsupportedSchemaError(
        f"the keyword {keyword!r} cannot be enforced exactly{' ' + how if how else ''}"
        + (f", only without {left_out}" if left_out else ""),
        hint=f"remove it, write it in another way, or {NARROW if left_out else CHECK_LATER}",
        place=Place(pointer=located.pointer, keyword=keyword),
        left_out=left_out,
    )
