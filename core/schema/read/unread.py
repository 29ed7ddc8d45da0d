"""Keywords and formats that constrain nothing although they seem to: misspelt, or unknown to the draft.

In JSON Schema, unknown keywords are annotations. So a misspelt keyword is not an error, but nearly always a mistake.
This module reports; it does not change the meaning of a schema.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

from ...basics.recent_memo import memoised_if_short
from ...errors import Place, SchemaWarning
from ...json import to_pointer
from ..scalars.formats import ENFORCED, REFUSED, SPECIFIED
from .keywords import GRAMMAR, KEYWORDS, Draft, Role
from .resolve import Document

#: Formats of numbers and files, by the registry of OpenAPI: they constrain no string.
_ANNOTATING_FORMATS = frozenset(
    {
        "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "int", "integer", "float",
        "double", "decimal", "decimal128", "double-int", "number", "byte", "binary", "base64url", "char", "password",
        "html", "commonmark", "markdown", "media-range", "http-date", "sf-binary", "sf-boolean", "sf-decimal",
        "sf-integer", "sf-string", "sf-token", "color", "phone", "date-time-local", "time-local", "path", "json",
        "multi-line", "textarea", "any", "string", "enum", "style", "secret", "unix-time", "timestamp", "hidden",
    }
)  # fmt: skip

#: The keyword that is meant by a name that other libraries have for it.
_FOREIGN = {name: row.name for row in KEYWORDS.values() for name in row.foreign}

#: What people write for a format.
_FOREIGN_FORMATS = {
    "url": "uri",
    "guid": "uuid",
    "mail": "email",
    "ip": "ipv4",
    "ipaddress": "ipv4",
    "datetime": "date-time",
    "iso8601": "date-time",
    "host": "hostname",
}

#: Minimum length of a name that may differ from the one that is meant by more than the order of letters.
MIN_LENGTH = 5

_DRAFT_NAMES = {
    Draft.DRAFT_4: "draft 4",
    Draft.DRAFT_6: "draft 6",
    Draft.DRAFT_7: "draft 7",
    Draft.DRAFT_2019_09: "draft 2019-09",
    Draft.DRAFT_2020_12: "draft 2020-12",
}


#: A key that may be meant for a keyword: it is neither marked as an extension nor taken out by a sign in front of it.
_IS_WORD = re.compile(r"(?!x[-_])\$?[A-Za-z]").match


@dataclass(frozen=True)
class Unread:
    """A keyword that constrains nothing.

    Attributes:
        place: its location.
        message: the reason.
        hint: the keyword or format that was probably meant; None: it may well be an annotation.
        code: ``"unread_keyword"`` or ``"unread_format"``.
    """

    place: Place
    message: str
    hint: str | None
    code: str = "unread_keyword"

    def __str__(self) -> str:
        return f"{self.message} ({self.place})" + (f"; {self.hint}" if self.hint else "")


def unread(schema: Any, draft: int = Draft.DRAFT_2020_12, *, formats: bool = True) -> Iterator[Unread]:
    """Yield the keywords of a schema, and of the schemas inside, that constrain nothing although they seem
    to; extensions (``x-``) and known annotations are skipped.

    Args:
        schema: the schema.
        draft: the number of its draft.
        formats: also yield unknown formats.
    """
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), schema)]
    seen: set[int] = set()
    while waiting:
        steps, part = waiting.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        within = []
        for key, value in part.items():
            found = _judged(part, key, value, draft, formats)
            if found is not None:
                code, message, hint = found
                yield Unread(Place(pointer=to_pointer(steps), keyword=key), message, hint, code)
            if key in KEYWORDS:
                within += [((*steps, key, *more), inner) for more, inner in KEYWORDS.subschemas(key, value)]
        waiting += reversed(within)


def _judged(
    schema: Mapping[str, Any], key: object, value: Any, draft: int, formats: bool
) -> tuple[str, str, str | None] | None:
    """Return the code, the message and the hint for a keyword that constrains nothing; None for all others."""
    row = KEYWORDS.get(key) if isinstance(key, str) else None
    if row is not None:
        if row.name == "format":
            return _judged_format(value) if formats and isinstance(value, str) else None
        if row.name not in KEYWORDS.constraining or row.role is Role.REFERENCE:
            return None
        if not row.is_in(draft):
            name = _DRAFT_NAMES[Draft(draft)]
            hint = f"see what {name} has in its place"
            if row.since > draft:
                hint = f"name {_DRAFT_NAMES[row.since]} or a newer one in $schema, or remove $schema"
            return "unread_keyword", f"{name} has no {row.name!r}, so it constrains nothing", hint
        is_true = schema.get(row.name) is True  # a schema that says nothing
        if row.companions and not is_true and schema.keys().isdisjoint(row.companions):
            words = " or ".join(map(repr, row.companions))
            return "unread_keyword", f"{row.name!r} constrains nothing without {words}", f"add {words}, or remove it"
        return None
    if not isinstance(key, str) or key in KEYWORDS.foreign_annotations or not _IS_WORD(key):
        return None
    near = nearest_keyword(key)
    if near is None and key.startswith("$"):
        return None
    message = f"{key!r} is not a keyword of JSON Schema, so it constrains nothing"
    return "unread_keyword", message, None if near is None else f"did you mean {near!r}?"


def _judged_format(name: str) -> tuple[str, str, str | None] | None:
    if name in ENFORCED or name in REFUSED or name in _ANNOTATING_FORMATS:
        return None
    near = nearest_format(name)
    message = f"{name!r} is not a format of JSON Schema, so it constrains nothing"
    return "unread_format", message, None if near is None else f"did you mean {near!r}?"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


_KEYWORDS_MEANT = {_plain(name): name for name in KEYWORDS if name in KEYWORDS.constraining and name != GRAMMAR}
_KEYWORDS_MEANT.update({_plain(name): name for name in ("$ref", "$defs")})
_FORMATS_MEANT = {_plain(name): name for name in sorted(SPECIFIED)}


@memoised_if_short(512)
def nearest_keyword(name: str) -> str | None:
    """Return the keyword that is probably meant by an unknown name; None if there is no near one."""
    return _nearest(name, _KEYWORDS_MEANT, _FOREIGN)


@memoised_if_short(512)
def nearest_format(name: str) -> str | None:
    """Return the format that is probably meant by an unknown name; None if there is no near one."""
    return _nearest(name, _FORMATS_MEANT, _FOREIGN_FORMATS)


def _nearest(name: str, known: Mapping[str, str], foreign: Mapping[str, str]) -> str | None:
    """Return the known name that is equal without case and separators, has the same letters, or is near by
    `difflib`."""
    plain = _plain(name[:40])
    if plain in known or plain in foreign:
        return known.get(plain) or foreign[plain]
    letters = sorted(plain)
    swapped = next((known[word] for word in known if sorted(word) == letters), None)
    if swapped is not None or len(plain) < MIN_LENGTH:  # a short word is near to many
        return swapped
    near = get_close_matches(plain, known, n=1, cutoff=0.82)
    return known[near[0]] if near else None


#: Maximum number of keywords that one warning names.
MAX_NAMED = 5

#: Maximum number of keywords that are examined for a warning, which nobody asked for: schemas may be untrusted.
MAX_EXAMINED = 500


def misspelt(schema: Any, *, formats: bool = True) -> list[Unread]:
    """Return the first keywords and formats of a schema that look like others that exist."""
    if not isinstance(schema, Mapping):
        return []
    examined = islice(unread(schema, Document(schema).age, formats=formats), MAX_EXAMINED)
    return list(islice((each for each in examined if each.hint), MAX_NAMED))


def warn_of_misspelt(found: Sequence[Unread], subject: str) -> None:
    """Warn of misspelt keywords and formats; Python shows the warning once for each line of the caller.

    Args:
        found: the keywords (see `misspelt`); no warning if there are none.
        subject: the owner of the schema, for the warning.
    """
    if found:
        level, frame = 2, sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("toolgrammar."):
            level, frame = level + 1, frame.f_back
        text = "; ".join(map(str, found[:MAX_NAMED]))
        warnings.warn(f"{subject}: {text}", SchemaWarning, stacklevel=level)
