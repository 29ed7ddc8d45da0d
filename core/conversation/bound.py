"""Schemas whose strings come from a conversation: values that a tool returned, and text that is copied.

``x-seen`` and ``x-copied`` have a meaning in a conversation only, so they become an ``enum`` or an ``x-grammar`` when a
request is planned (`of_conversation`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from types import MappingProxyType
from typing import Any

from ..basics.annotated import with_keyword
from ..errors import InvalidSchemaError, Place
from ..json import to_pointer
from ..schema.keywords.live import COPIED, SEEN, SOURCES, UNITS, wrong_mark
from ..schema.read.keywords import GRAMMAR, KEYWORDS
from ..schema.read.live import has_keyword
from .messages import Message
from .result_values import (
    ANY_FIELD,
    MAX_SEEN,
    ResultField,
    field_values,
    fields_of_results,
    made_calls,
    of_type,
    seen_values,
)
from .written_values import SURROGATES, numbers_in

#: Maximum number of characters of text that may be copied: the latest.
MAX_COPIED = 200_000

#: A copy of texts of whole messages.
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})

#: Maximum number of texts that one message is for copies, if lone surrogates part it: the latest.
MAX_PARTS = 1_000

#: A word, with the marks inside of it (an id, a date, an address), white space, or another mark.
_WORDS = re.compile(r"\w+(?:[^\w\s]\w+)*|\s+|[^\w\s]")


@dataclass(frozen=True)
class Seen:
    """Values that a tool returned in the conversation: ``Annotated[str, Seen("order_id")]``.

    Results are read as JSON, also inside of other text; the text around JSON is searched for ``order_id: ...`` and
    ``order_id=...``. Results of failed calls do not count.

    Args:
        key: the name of the member. With dots, the names of those around it too: ``"orders.id"`` is the ``id`` in the
            member ``orders``, or in one of its items.
        tool: only results of the tool of this name count.
        calls: arguments under the key count too, of earlier calls whose results are there and no errors.
    """

    key: str
    tool: str | None = None
    calls: bool = False

    @staticmethod
    def fields(
        messages: Sequence[Message], field: str, tool: str | None = None, without: Sequence[str] = ()
    ) -> Iterator[ResultField]:
        """Yield the scalars of a field of results; see `fields_of_results`."""
        return fields_of_results(messages, field, tool, without)

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Return the JSON Schema of an annotated type."""
        more = {name: value for name, value in (("tool", self.tool), ("calls", self.calls)) if value}
        return with_keyword(handler(core_schema), SEEN, {"key": self.key, **more} if more else self.key)


@dataclass(frozen=True)
class Copied:
    """Text that is copied from the conversation, so that a quotation cannot be invented: ``Annotated[str, Copied()]``.

    Args:
        source: whose text: ``"user"``, ``"system"``, ``"tool"`` (results), or ``"all"`` three.
        unit: a copy consists of whole ``"words"`` and punctuation, of ``"lines"``, or of any ``"chars"``. Copies of
            words have no white space at their ends. An id, a date or an address without spaces is one word.
    """

    source: str = "user"
    unit: str = "words"

    def __post_init__(self) -> None:
        for name, value, words in (("source", self.source, SOURCES), ("unit", self.unit, UNITS)):
            if value not in words:
                raise InvalidSchemaError(f"Copied({name}={value!r})", hint=f"use one of {', '.join(words)}")

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Return the JSON Schema of an annotated type."""
        return with_keyword(handler(core_schema), COPIED, {"source": self.source, "unit": self.unit})

    def index_in(self, value: Any, text: str) -> int | None:
        """Return the first index at which a value is copied from a text; None if it is not.

        A number is copied in digits, a string in whole units: of ``"to Oslo"``, the words ``"Oslo"`` at 3, and
        ``"Os"`` nowhere.
        """
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return next((at for at, number in numbers_in(text) if number == value), None)
        blank = {"words": None, "lines": "\n", "chars": ""}[self.unit]  # what a copy has not at its ends
        if not value or value != value.strip(blank):
            return None
        at = text.find(value)
        if self.unit != "chars":
            edges = {0, *accumulate(map(len, _chunks(text, self.unit)))}  # the indices at which units begin and end
            while at >= 0 and not {at, at + len(value)} <= edges:
                at = text.find(value, at + 1)
        return None if at < 0 else at

    def find(self, text: str, messages: Sequence[Message]) -> list[tuple[int, int]]:
        """Return the places of a text in a conversation: the index of a message, and the index of the character in its
        text."""
        return [
            (index, match.start())
            for index, message in enumerate(messages)
            if message.role in _roles(self.source)
            for match in re.finditer(f"(?={re.escape(text)})", message.text)
        ]


def _roles(source: str) -> tuple[str, ...]:
    return ("user", "system", "tool") if source == "all" else (source,)


def needs_conversation(schema: Any) -> bool:
    """Return True if a schema has strings that come from a conversation."""
    return has_keyword(schema, (SEEN, COPIED))


def of_conversation(schema: Any, messages: Sequence[Message], *, once: str | None = None) -> Any:
    """Return a schema with the values and texts of a conversation; the same object if it needs none.

    A malformed ``x-seen`` or ``x-copied`` is left, and refused where keywords are checked.

    Args:
        schema: the schema; it is not changed.
        messages: the conversation.
        once: name of the tool whose arguments it describes, if they may not equal those of a call that has a result
            which is no error, since the last message of the user.
    """
    made = [] if once is None else made_calls(messages, once)
    if made:
        schema = {**schema, "allOf": [*schema.get("allOf", ()), {"not": {"enum": made}}]}
    if not needs_conversation(schema):
        return schema
    # False says that a tool is not offered. One with a malformed keyword must come as far as the check of keywords,
    # whatever the conversation lacks.
    is_malformed = any(wrong_mark(*mark) for part in KEYWORDS.every_schema(schema) for mark in _marks(part))
    no_value: Any = {"not": {}} if is_malformed else False

    def bound(inner: dict[str, Any]) -> Any:
        """Replace ``x-seen`` and ``x-copied`` in one subschema by the values or texts of the conversation; False: there
        are none."""
        if not _marks(inner) or any(wrong_mark(*mark) for mark in _marks(inner)):
            return inner
        others = {key: value for key, value in inner.items() if key not in (SEEN, COPIED)}
        conditions: list[Any] = []  # what a value must also satisfy
        if SEEN in inner:
            values = of_type(_seen(messages, inner[SEEN]), others.get("type"))
            if values and "enum" not in others:
                others["enum"] = values
            else:
                conditions.append({"enum": values} if values else False)
        if COPIED in inner:
            conditions.append(_copied(messages, inner[COPIED]))
        if False in conditions:
            return no_value
        if not conditions:
            return others
        return {**others, "allOf": [*others.get("allOf", ()), *conditions]}

    return KEYWORDS.map_schemas(schema, bound)


def _seen(messages: Sequence[Message], mark: Any) -> list[Any]:
    """Return the values in a conversation for a well-formed ``x-seen``."""
    mark = {"key": mark} if isinstance(mark, str) else mark
    if "field" in mark:
        return field_values(messages, mark["field"], mark.get("tool"), mark.get("without", ()))
    return seen_values(messages, mark["key"], mark.get("tool"), calls=mark.get("calls") is True)


def _copied(messages: Sequence[Message], mark: Any) -> Any:
    """Return the schema of the copies from a conversation for a well-formed ``x-copied`` (``mark``); False: there are
    none. With ``"numbers": true``, the numbers in the texts are copies too."""
    mark = {"source": mark} if isinstance(mark, str) else mark
    texts = copied_texts(messages, mark["source"], mark)
    copies = _copies(texts, mark.get("unit", "words"))
    found = chain.from_iterable(map(numbers_in, texts)) if mark.get("numbers") is True else ()
    # Each once, by its type too, because 1 == 1.0.
    numbers = list({(type(number), number): number for _, number in islice(found, MAX_SEEN)}.values())
    return {"anyOf": [*([copies] if copies else ()), {"enum": numbers}]} if numbers else copies


def _marks(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return ``x-seen`` and ``x-copied`` of one schema, with their values."""
    return [(keyword, schema[keyword]) for keyword in (SEEN, COPIED) if keyword in schema]


def require_formed(schema: Any, tool: str | None = None) -> None:
    """Raise an error for a malformed ``x-seen`` or ``x-copied``, for callers that write no grammar of the schema.

    Args:
        schema: a schema.
        tool: whose parameters it describes.

    Raises:
        InvalidSchemaError: with the place in the schema.
    """
    waiting = [(schema, "")]
    while waiting:
        part, pointer = waiting.pop()
        for keyword, value in part.items() if isinstance(part, Mapping) else ():
            wrong = wrong_mark(keyword, value) if keyword in (SEEN, COPIED) else None
            if wrong is not None:
                message, hint = wrong
                raise InvalidSchemaError(message, hint=hint, place=Place(pointer, keyword, tool))
            if keyword in KEYWORDS:
                waiting += [
                    (inner, pointer + to_pointer((keyword, *to))) for to, inner in KEYWORDS.subschemas(keyword, value)
                ]


def copied_texts(messages: Sequence[Message], source: str, fields: Mapping[str, Any] = _NO_FIELDS) -> list[str]:
    """Return the texts that may be copied, the latest first, each once. A lone surrogate ends a text, since no copy has
    one.

    Args:
        messages: the conversation.
        source: whose texts.
        fields: ``field``, ``tool`` and ``without`` of fields of results, as of `fields_of_results`; without them, texts
            of whole messages.
    """
    texts: dict[str, None] = {}
    left = MAX_COPIED  # number of characters that still count; of a longer text, those at its end
    for text in _texts(messages, source, fields):
        if text.strip():
            text = text[-left:]
            parts = [part for part in SURROGATES.split(text) if part.strip()]
            texts |= dict.fromkeys(reversed(parts[-MAX_PARTS:]))
            left -= len(text)
            if left <= 0:
                break
    return list(texts)


def _texts(messages: Sequence[Message], source: str, fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a source, the latest first. Arguments as for `copied_texts`."""
    if source == "tool" and ("tool" in fields or "field" in fields):
        field, tool, without = fields.get("field", ANY_FIELD), fields.get("tool"), fields.get("without", ())
        for found in fields_of_results(messages, field, tool, without):
            if isinstance(found.value, str):
                yield found.value
        return
    for message in reversed(messages):
        if message.role in _roles(source):
            yield message.text


def _copies(texts: Sequence[str], unit: str) -> Any:
    """Return the schema of strings that are a run of consecutive units of one of the texts; False: there are none.

    Its grammar is in Lark, with a rule for each text: ``start: t0``, ``t0: %regex {"substring_chunks": ["to", " ",
    "Oslo"]}``. Its pattern excludes white space at the ends.

    Args:
        texts: the texts.
        unit: ``"words"``, ``"lines"`` or ``"chars"``.
    """
    all_chunks = [chunks for text in texts if (chunks := _chunks(text, unit))]
    if not all_chunks:
        return False
    definition = "start: " + "\n    | ".join(f"t{number}" for number in range(len(all_chunks)))
    for number, chunks in enumerate(all_chunks):
        definition += f"\nt{number}: %regex {json.dumps({'substring_chunks': chunks}, ensure_ascii=False)}"
    edges = {"words": r"^\S(?:[\s\S]*\S)?$", "lines": r"^[^\n](?:[\s\S]*[^\n])?$", "chars": r"^[\s\S]"}
    return {"type": "string", GRAMMAR: {"syntax": "lark", "definition": definition}, "pattern": edges[unit]}


def _chunks(text: str, unit: str) -> list[str]:
    """Split a text into units (see `Copied`) and the white space between them; joined, they are the text."""
    if unit == "chars":
        return list(text)
    return _WORDS.findall(text) if unit == "words" else re.findall(r"\n+|[^\n]+", text)
