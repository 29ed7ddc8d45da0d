"""Schemas whose strings come from a conversation: values that a tool returned, and text that is copied.

``x-seen`` and ``x-copied`` have a meaning in a conversation only, so they become an ``enum`` or an ``x-grammar`` when a
request is planned (`of_conversation`).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..errors import InvalidSchemaError
from ..schema.keywords.live import COPIED, SEEN, SOURCES, UNITS
from ..schema.read.keywords import GRAMMAR, map_schemas
from ..schema.read.live import has_keyword
from .messages import Message

#: Maximum number of values of one key that count as seen, and of characters of text that may be copied: the latest.
MAX_SEEN, MAX_COPIED = 20_000, 200_000

#: A JSON value in a text begins with one of these.
_OPENING = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder()

#: A word, with the marks inside of it (an id, a date, an address), white space, or another mark.
_WORDS = re.compile(r"\w+(?:[^\w\s]\w+)*|\s+|[^\w\s]")


@dataclass(frozen=True)
class Seen:
    """Values that a tool returned in the conversation: ``Annotated[str, Seen("order_id")]``.

    Results are read as JSON, also inside of other text; a result without JSON is searched for ``order_id: ...`` and
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

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        """Return the JSON Schema of an annotated type."""
        more = {name: value for name, value in (("tool", self.tool), ("calls", self.calls)) if value}
        return {**handler(core_schema), SEEN: {"key": self.key, **more} if more else self.key}


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
        return {**handler(core_schema), COPIED: {"source": self.source, "unit": self.unit}}

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


def of_conversation(schema: Any, messages: Sequence[Message]) -> Any:
    """Return a schema with the values and texts of a conversation; the same object if it needs none."""
    if not needs_conversation(schema):
        return schema

    def bound(inner: dict[str, Any]) -> Any:
        """Replace ``x-seen`` and ``x-copied`` in one subschema by the values or texts of the conversation; False: there
        are none."""
        if SEEN not in inner and COPIED not in inner:
            return inner
        made = {key: value for key, value in inner.items() if key not in (SEEN, COPIED)}
        more: list[Any] = []
        if SEEN in inner:
            said = inner[SEEN]
            said = {"key": said} if isinstance(said, str) else said
            found = seen_values(messages, said["key"], said.get("tool"), calls=said.get("calls") is True)
            values = _of_type(found, made.get("type"))
            if values and "enum" not in made:
                made["enum"] = values
            else:
                more.append({"enum": values} if values else False)
        if COPIED in inner:
            said = inner[COPIED]
            source, unit = (said, "words") if isinstance(said, str) else (said["source"], said.get("unit", "words"))
            more.append(_copies(copied_texts(messages, source), unit))
        if False in more:
            return False
        if not more:
            return made
        return {**made, "allOf": [*made.get("allOf", ()), *more]} if made else {"allOf": more}

    return map_schemas(schema, bound)


def copied_texts(messages: Sequence[Message], source: str) -> list[str]:
    """Return the texts that may be copied, the latest first."""
    texts, left = [], MAX_COPIED
    for message in reversed(messages):
        if message.role in _roles(source) and message.text.strip():
            texts.append(message.text[-left:])
            left -= len(texts[-1])
            if left <= 0:
                break
    return texts


def _copies(texts: Sequence[str], unit: str) -> Any:
    """Return the schema of the copies of some texts."""
    parts = []
    for text in texts:
        chunks = _chunks(text, unit)
        if chunks:
            parts.append(f"%regex {json.dumps({'substring_chunks': chunks}, ensure_ascii=False)}")
    if not parts:
        return False
    grammar = {"syntax": "lark", "definition": "start: " + "\n    | ".join(f"t{n}" for n in range(len(parts)))}
    grammar["definition"] += "".join(f"\nt{number}: {part}" for number, part in enumerate(parts))
    edges = {"words": r"^\S(?:[\s\S]*\S)?$", "lines": r"^[^\n](?:[\s\S]*[^\n])?$", "chars": r"^[\s\S]"}
    return {"type": "string", GRAMMAR: grammar, "pattern": edges[unit]}


def _chunks(text: str, unit: str) -> list[str]:
    if unit == "chars":
        return list(text)
    return _WORDS.findall(text) if unit == "words" else re.findall(r"\n+|[^\n]+", text)


# -- values that were seen ---------------------------------------------------------------------------------------------


def seen_values(messages: Sequence[Message], key: str, tool: str | None = None, *, calls: bool = False) -> list[Any]:
    """Return the values that tools returned under a key in a conversation, each once, the latest result first; with
    ``calls``, those of the arguments of successful calls too.

    Whole numbers and texts of digits count as both, so that the type of a parameter chooses.
    """
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    path = key.split(".")
    found: dict[tuple[type, Any], Any] = {}
    succeeded: set[str | None] = set()
    for message in reversed(messages):
        values: list[Iterator[Any]] = []
        if message.role == "tool" and not message.is_error:
            succeeded.add(message.tool_call_id)
            if tool is None or tool in (message.name, names.get(message.tool_call_id or "")):
                values.append(_values(message.text, path))
        for call in message.tool_calls if calls else ():
            if call.id in succeeded and tool in (None, call.name):
                values.append(_under(dict(call.arguments), path, ()))
        for value in chain.from_iterable(values):
            for each in (value, *_other_form(value)):
                found.setdefault((type(each), each), each)
            if len(found) >= MAX_SEEN:
                return list(found.values())
    return list(found.values())


def _of_type(values: list[Any], name: Any) -> list[Any]:
    """Return the values of a type of JSON Schema; all, if it is none of those with scalars."""
    kinds: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int, float), "number": (int, float)}
    kind = kinds.get(name) if isinstance(name, str) else None
    return values if kind is None else [value for value in values if isinstance(value, kind)]


def _other_form(value: Any) -> tuple[Any, ...]:
    if type(value) is int:
        return (str(value),)
    if isinstance(value, str) and re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value):
        return (int(value),)
    return ()


def _values(text: str, path: Sequence[str]) -> Iterator[Any]:
    """Yield the values under a path in the text of a result."""
    documents = list(documents_in(text))
    for document in documents:
        yield from _under(document, path, ())
    if not documents:
        name = re.escape(path[-1])
        for match in re.finditer(
            rf"(?<![\w-]){name}[\"'`*]*\s*(?::|=|\bis\b|#)\s*[\"'`*]*([\w][\w.:/@+-]*)", text, re.I
        ):
            yield match[1].rstrip(".:,")


def documents_in(text: str) -> Iterator[Any]:
    """Yield the JSON values (objects and arrays) in a text; Python's notation of them too."""
    at = 0
    while (begin := _OPENING.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, begin.start())
            yield value
            continue
        except (ValueError, RecursionError):
            pass
        if begin.start() == 0 or not text[: begin.start()].strip():
            try:
                yield ast.literal_eval(text.strip())
                return
            except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
                pass
        at = begin.end()


def _under(value: Any, path: Sequence[str], above: tuple[str, ...]) -> Iterator[Any]:
    """Yield the scalars under a path in a value, at any depth."""
    kept = len(path) - 1
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, above)]
    while waiting:
        part, names = waiting.pop()
        if isinstance(part, Mapping):
            around = names[-kept:] if kept else ()
            waiting += [(inner, (*around, str(name))) for name, inner in reversed(list(part.items()))]
        elif isinstance(part, (list, tuple)):
            waiting += [(inner, names) for inner in reversed(part)]
        elif names == tuple(path) and isinstance(part, (str, int, float)) and not isinstance(part, bool):
            yield part
