"""Schemas whose strings come from a conversation: values that a tool returned, and text that is copied.

``x-seen`` and ``x-copied`` have a meaning in a conversation only, so they become an ``enum`` or an ``x-grammar`` when a
request is planned (`of_conversation`).
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from types import MappingProxyType
from typing import Any

from ..basics.annotated import with_keyword
from ..errors import InvalidSchemaError, Place
from ..json import escape, to_pointer
from ..schema.keywords.live import COPIED, SEEN, SOURCES, UNITS, wrong_mark
from ..schema.keywords.values import MAX_INTEGER
from ..schema.read.keywords import GRAMMAR, KEYWORDS
from ..schema.read.live import has_keyword
from .messages import Message, ToolCall

#: Maximum number of values of one key that count as seen, and of characters of text that may be copied: the latest.
MAX_SEEN, MAX_COPIED = 20_000, 200_000

#: Any field of a result, also the whole of one that is no object or list.
ANY_FIELD = "**"

#: A copy of texts of whole messages.
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})

#: A number in digits, which is no part of a word, a date or a longer number.
_NUMBERS = re.compile(
    r"(?<![\w.,:/+-])(?<!\d-)-?(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,17})(?:\.\d{1,17})?(?![\w:/-]|[.,]\d)", re.ASCII
)

#: Maximum number of texts that one message is for copies, if lone surrogates part it: the latest.
MAX_PARTS = 1_000

#: A JSON value in a text begins with one of these.
_OPENING = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder()

#: A word, with the marks inside of it (an id, a date, an address), white space, or another mark.
_WORDS = re.compile(r"\w+(?:[^\w\s]\w+)*|\s+|[^\w\s]")

#: Halves of characters, which no text in UTF-8 has.
_SURROGATES = re.compile(r"[\ud800-\udfff]+")

#: A quoted value in a text, by its quote. An apostrophe before a letter is no quote.
_QUOTED = {
    '"': re.compile(r'"((?:[^"\\\n]|\\.)*)"'),
    "'": re.compile(r"'((?:[^'\\\n]|\\.|'(?=\w))*)'"),
    "`": re.compile(r"`([^`\n]*)`"),
}

#: What may end a value without quotes: white space, markup, the end of a quotation around it, a bracket, and a mark
#: before another pair (``a=1,b=2``).
_ENDS = re.compile(r"""[\s<>()\[\]{}#,;|&]|(?<!["'`*])["'`*]+(?=[\s.,;:!?)\]}|<]|\Z)""")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_NEXT = {"=": re.compile(r"[,;|&][\w.-]+="), ":": re.compile(r"[,;|][\w.-]+:")}

#: The first character of such a value; and the beginning of an address, in which ``a=1&b=2`` is no other pair.
_BEGIN, _ADDRESS = re.compile(r"[\w/~.@+-]"), re.compile(r"(?:\w+:/)?/")

#: What ends a sentence, and marks around a value.
_TRAILING = ".,;:!?|*\"'`"


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
        """Return the first index at which a text has a string as a copy of whole units, or a number in digits; None: it
        has none."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return next((at for at, number in _numbers_in(text) if number == value), None)
        is_stripped = self.unit == "chars" or value == value.strip("\n" if self.unit == "lines" else None)
        if not value or not is_stripped:
            return None
        ends = {0, *accumulate(map(len, () if self.unit == "chars" else _chunks(text, self.unit)))}
        at = text.find(value)
        while at >= 0 and not (self.unit == "chars" or (at in ends and at + len(value) in ends)):
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
    # A tool with a malformed keyword must come as far as that check, whatever the conversation lacks; a plain False
    # would say that it is not offered.
    is_malformed = any(wrong_mark(*mark) for part in KEYWORDS.every_schema(schema) for mark in _marks(part))
    nothing: Any = {"not": {}} if is_malformed else False

    def bound(inner: dict[str, Any]) -> Any:
        """Replace ``x-seen`` and ``x-copied`` in one subschema by the values or texts of the conversation; False: there
        are none."""
        if not _marks(inner) or any(wrong_mark(*mark) for mark in _marks(inner)):
            return inner
        made = {key: value for key, value in inner.items() if key not in (SEEN, COPIED)}
        more: list[Any] = []
        if SEEN in inner:
            said = inner[SEEN]
            said = {"key": said} if isinstance(said, str) else said
            if "field" in said:
                found = field_values(messages, said["field"], said.get("tool"), said.get("without", ()))
            else:
                found = seen_values(messages, said["key"], said.get("tool"), calls=said.get("calls") is True)
            values = _of_type(found, made.get("type"))
            if values and "enum" not in made:
                made["enum"] = values
            else:
                more.append({"enum": values} if values else False)
        if COPIED in inner:
            said = inner[COPIED]
            said = {"source": said} if isinstance(said, str) else said
            texts = copied_texts(messages, said["source"], said)
            copies = _copies(texts, said.get("unit", "words"))
            numbers = chain.from_iterable(map(_numbers_in, texts)) if said.get("numbers") is True else ()
            if found := list({(type(number), number): number for _, number in islice(numbers, MAX_SEEN)}.values()):
                copies = {"anyOf": [*([copies] if copies else ()), {"enum": found}]}
            more.append(copies)
        if False in more:
            return nothing
        if not more:
            return made
        return {**made, "allOf": [*made.get("allOf", ()), *more]} if made else {"allOf": more}

    return KEYWORDS.map_schemas(schema, bound)


def _marks(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
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
                raise InvalidSchemaError(wrong[0], hint=wrong[1], place=Place(pointer, keyword, tool))
            if keyword in KEYWORDS:
                waiting += [
                    (inner, pointer + to_pointer((keyword, *to))) for to, inner in KEYWORDS.subschemas(keyword, value)
                ]


def copied_texts(messages: Sequence[Message], source: str, of: Mapping[str, Any] = _NO_FIELDS) -> list[str]:
    """Return the texts that may be copied, the latest first, each once. A lone surrogate ends a text, since no copy has
    one.

    Args:
        messages: the conversation.
        source: whose texts.
        of: ``field``, ``tool`` and ``without`` of fields of results, as of `fields_of_results`; without them, texts of
            whole messages.
    """
    texts: dict[str, None] = {}
    left = MAX_COPIED
    for text in _texts(messages, source, of):
        if text.strip():
            text = text[-left:]
            parts = [part for part in _SURROGATES.split(text) if part.strip()]
            texts |= dict.fromkeys(reversed(parts[-MAX_PARTS:]))
            left -= len(text)
            if left <= 0:
                break
    return list(texts)


def _texts(messages: Sequence[Message], source: str, of: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a source, the latest first."""
    if source == "tool" and ("tool" in of or "field" in of):
        for found in fields_of_results(messages, of.get("field", ANY_FIELD), of.get("tool"), of.get("without", ())):
            if isinstance(found.value, str):
                yield found.value
        return
    for message in reversed(messages):
        if message.role in _roles(source):
            yield message.text


def _numbers_in(text: str) -> Iterator[tuple[int, int | float]]:
    """Yield the numbers that stand in a text in digits, after their indices; commas in ``1,250.50`` are left out."""
    for match in _NUMBERS.finditer(text):
        number = json.loads(match[0].replace(",", ""))
        if _is_writable(number):
            yield match.start(), number


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
    path = key.split(".")
    found: dict[tuple[type, Any], Any] = {}
    answered = _answered(messages)
    succeeded = {answered[index] for index in answered if not messages[index].is_error}
    for index in reversed(range(len(messages))):
        message = messages[index]
        values: list[Iterator[Any]] = []
        if message.role == "tool" and not message.is_error:
            call = _call_at(messages, answered.get(index))
            if tool is None or tool in (message.name, call and call.name):
                values.append(_values(message.text, path))
        for number, call in enumerate(message.tool_calls if calls else ()):
            if (index, number) in succeeded and tool in (None, call.name):
                values.append(_under(dict(call.arguments), path, ()))
        for value in chain.from_iterable(values):
            for each in (value, *_other_form(value)):
                found.setdefault((type(each), each), each)
            if len(found) >= MAX_SEEN:
                return list(found.values())
    return list(found.values())


@dataclass(frozen=True)
class ResultField:
    """A scalar in a result that is one JSON value (or Python's notation of one); else the whole text.

    Attributes:
        index: that of the result's message.
        names: the names of the members that lead to it; lists add none.
        pointer: its JSON pointer in the result.
        value: itself.
    """

    index: int
    names: tuple[str, ...]
    pointer: str
    value: Any

    @property
    def forms(self) -> tuple[Any, ...]:
        """The value, and the other form of a whole number: text or number, as the type of a parameter chooses."""
        return (self.value, *_other_form(self.value))

    def is_of(self, field: str, *, below: bool = False) -> bool:
        """Return True if it is a field: one of a name (``id``), of names after each other (``order.id``), or of the
        names from the root on (``/order/id``); `ANY_FIELD` is each. ``below``: or part of such a field."""
        if field == ANY_FIELD:
            return True
        is_whole = field.startswith("/")
        path = tuple(step.replace("~1", "/").replace("~0", "~") for step in field[1:].split("/"))
        path = path if is_whole else tuple(field.split("."))
        ends = range(len(self.names) + 1) if below else (len(self.names),)
        return any(self.names[0 if is_whole else max(end - len(path), 0) : end] == path for end in ends)


def fields_of_results(
    messages: Sequence[Message], field: str, tool: str | None = None, without: Sequence[str] = ()
) -> Iterator[ResultField]:
    """Yield the scalars of a field in results that are no errors, the latest result first.

    Unlike `seen_values`, nothing is read out of text: what a member of a result says in its text is not a member.

    Args:
        messages: the conversation.
        field: the field, as of `ResultField.is_of`.
        tool: only results of the tool of this name count.
        without: fields that do not count, with all below them.
    """
    answered = _answered(messages)
    for index in reversed(range(len(messages))):
        message = messages[index]
        if message.role != "tool" or message.is_error:
            continue
        call = _call_at(messages, answered.get(index))
        if tool is None or tool == (message.name if call is None else call.name):
            for names, pointer, value in _scalars(_whole_value(message.text)):
                found = ResultField(index, names, pointer, value)
                if found.is_of(field) and not any(found.is_of(each, below=True) for each in without):
                    yield found


def _whole_value(text: str) -> Any:
    """Return the JSON value that a text is as a whole, or that of Python's notation; else the text."""
    for read in (json.loads, ast.literal_eval) if _OPENING.match(text.strip()[:1]) else (json.loads,):
        try:
            return read(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return text


def _scalars(value: Any) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    """Yield the strings and numbers in a value, each after the names and the pointer that lead to it."""
    waiting: list[tuple[Any, tuple[str, ...], str]] = [(value, (), "")]
    while waiting:
        part, names, pointer = waiting.pop()
        if isinstance(part, Mapping):
            inner = [(each, (*names, str(name)), f"{pointer}/{escape(str(name))}") for name, each in part.items()]
            waiting += reversed(inner)
        elif isinstance(part, (list, tuple)):
            waiting += reversed([(each, names, f"{pointer}/{number}") for number, each in enumerate(part)])
        elif _is_writable(part):
            yield names, pointer, part


def made_calls(messages: Sequence[Message], tool: str) -> list[dict[str, Any]]:
    """Return the arguments of the calls of a tool that have a result that is no error, since the last message of the
    user."""
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=-1)
    calls = [
        _call_at(messages, place) for index, place in _answered(messages).items() if _is_news(messages, index, last)
    ]
    return [dict(call.arguments) for call in calls if call is not None and call.name == tool and call.error is None]


def _is_news(messages: Sequence[Message], index: int, last: int) -> bool:
    return index > last and not messages[index].is_error


def field_values(messages: Sequence[Message], field: str, tool: str | None, without: Sequence[str]) -> list[Any]:
    """Return the values of a field of results, as `fields_of_results` has them, each once and in both forms."""
    found: dict[tuple[type, Any], Any] = {}
    for each in fields_of_results(messages, field, tool, without):
        for value in each.forms:
            found.setdefault((type(value), value), value)
        if len(found) >= MAX_SEEN:
            break
    return list(found.values())


def _answered(messages: Sequence[Message]) -> dict[int, tuple[int, int]]:
    """Return the call that each result belongs to: the index of its message, and its index there, by the index of the
    result's message.

    Ids may come again in later turns, so a result belongs to the nearest earlier call with its id that has no result
    yet; another result for an id, to the one before. A result without an id belongs to the first call of its name in
    the last turn with calls, or without a name to the first call there, of those without a result.
    """
    found: dict[int, tuple[int, int]] = {}
    done: set[tuple[int, int]] = set()
    latest: dict[str, tuple[int, int]] = {}
    # Calls that may have no result yet, the next one last.
    by_id: dict[str, list[tuple[int, int]]] = {}
    by_name: dict[str | None, list[tuple[int, int]]] = {}
    for index, message in enumerate(messages):
        if message.tool_calls:
            by_name = {}
            for number, call in reversed(list(enumerate(message.tool_calls))):
                by_id.setdefault(call.id, []).append((index, number))
                by_name.setdefault(call.name, []).append((index, number))
                by_name.setdefault(None, []).append((index, number))
        if message.role != "tool":
            continue
        identity = message.tool_call_id
        waiting = by_id.get(identity, []) if identity else by_name.get(message.name or None, [])
        while waiting and waiting[-1] in done:
            waiting.pop()
        call_at = waiting.pop() if waiting else latest.get(identity or "")
        if call_at is not None:
            found[index] = call_at
            done.add(call_at)
            if identity:
                latest[identity] = call_at
    return found


def _call_at(messages: Sequence[Message], place: tuple[int, int] | None) -> ToolCall | None:
    return None if place is None else messages[place[0]].tool_calls[place[1]]


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
    if text.lstrip().startswith('"'):  # a text as JSON: what it holds may be JSON again
        try:
            said = json.loads(text)
        except ValueError:
            said = text
        text = said if isinstance(said, str) else text
    documents = list(documents_in(text))
    for _, _, document in documents:
        yield from _under(document, path, ())
    yield from _named(text, path[-1], [(begin, end) for begin, end, _ in documents])


def _named(text: str, name: str, documents: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield the values that stand after a name and a separator in a text, outside of its JSON documents.

    Args:
        text: the text.
        name: the name, in any case.
        documents: the places of the documents, in order.
    """
    pattern = re.compile(rf"(?<![\w-]){re.escape(name)}([\"'`*]*)\s*(:|=|\bis\b|#)\**\s*\**", re.I)
    later = iter((*documents, (len(text) + 1, len(text) + 1)))
    begin, end = next(later)
    without: dict[str, int] = {}  # up to where no such quote ends a value
    at = 0
    while (head := pattern.search(text, at)) is not None:
        while end <= head.start():
            begin, end = next(later)
        if begin <= head.start():
            at = end
            continue
        at = head.end()
        quote = text[at : at + 1]
        value = ""
        if quote in _QUOTED:  # without its closing quote, a value may be cut
            match = _QUOTED[quote].match(text, at) if at >= without.get(quote, 0) else None
            if match is not None:
                value, at = _unquoted(match, is_json=head[1].startswith('"')), match.end()
            elif at >= without.get(quote, 0):
                line = text.find("\n", at)
                without[quote] = len(text) if line < 0 else line
        elif _BEGIN.match(quote):
            is_in_query = text[max(head.start() - 1, 0) : head.start()] in ("?", "&")
            value, at = _bare(text, at, "query" if is_in_query else head[2])
        if value.strip() and not _SURROGATES.search(value):
            yield value


def _unquoted(match: re.Match[str], is_json: bool) -> str:
    """Return a value without its quotes; ``is_json``: its name has quotes too, as in JSON that is cut."""
    if is_json and match[0].startswith('"'):
        try:
            return str(json.loads(match[0]))
        except ValueError:
            pass
    return match[1].replace("\\" + match[0][0], match[0][0])


def _bare(text: str, at: int, separator: str) -> tuple[str, int]:
    """Return the value without quotes that begins at an index of a text, and where it ends.

    Args:
        text: the text.
        at: the index.
        separator: what stands before it; ``"query"``: it is that of a name in the query of an address.
    """
    following = None if _ADDRESS.match(text, at) else _NEXT.get(separator)
    opened: list[int] = []
    end = len(text)
    for found in _ENDS.finditer(text, at):
        mark = found[0]
        if mark in "([{":
            opened.append(found.start())
            continue
        if mark in _CLOSING:
            ends = not opened or text[opened.pop()] != _CLOSING[mark]  # it closes what was opened before the value
        elif mark in "#&" and separator == "query":
            ends = True
        else:
            ends = mark not in "#,;|&" or (following is not None and following.match(text, found.start()) is not None)
        if ends:
            end = found.start()
            break
    value = text[at : opened[0] if opened else end].rstrip(_TRAILING)
    return (value if re.search(r"\w", value) else ""), max(end, at + 1)


def documents_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the JSON values (objects and arrays) in a text, Python's notation of them too, after where they begin and
    end."""
    at = 0
    while (begin := _OPENING.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, begin.start())
            yield begin.start(), at, value
            continue
        except (ValueError, RecursionError):
            pass
        if begin.start() == 0 or not text[: begin.start()].strip():
            try:
                yield 0, len(text), ast.literal_eval(text.strip())
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
        elif names == tuple(path) and _is_writable(part):
            yield part


def _is_writable(value: Any) -> bool:
    """Return True for a string or a number that a list of values may have."""
    if isinstance(value, str):
        return value.isascii() or _SURROGATES.search(value) is None
    if isinstance(value, int):
        return not isinstance(value, bool) and -MAX_INTEGER < value < MAX_INTEGER
    return isinstance(value, float) and math.isfinite(value)
