"""Reading of texts by the grammar that wrote them: calls, names and values, by place.

A reading grammar has marks (``core/language/reading_marks.py``). `Reader` runs its automaton over a text and collects
the marks that the text passes: a tagged automaton (Laurikari 2000). `Reader.calls` makes of them the calls of a text,
with the places of all names and values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from ..language.reading_marks import ReadingMark as ReadingMark
    from .calls import ReadCall as ReadCall, ReadValue as ReadValue
    from .marked import marked_json as marked_json, marked_place as marked_place
    from .reader import Reader as Reader

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            ".language.reading_marks": "ReadingMark",
            "calls": "ReadCall ReadValue",
            "marked": "marked_json marked_place",
            "reader": "Reader",
        },
    )
