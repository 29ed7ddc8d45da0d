"""JSDoc comments: prose for the description, tags for constraints that TypeScript's types cannot express.

A tag of `CONSTRAINTS` is a JSON Schema keyword of the same name, its text a JSON value (a string may stand without
quotes). ``@integer`` (also ``@asType integer``, ``@type integer``) makes a number whole, ``@schema {...}`` adds any
keywords, ``@oneOf`` makes of a union an exclusive one, ``@name`` gives a tool a name that is no identifier. The text
of other tags stays in the description, but not that of tags about things that have no part in a call (``@returns``).
"""

from __future__ import annotations

import difflib
import json
import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from toolgrammar.core.schema import KEYWORDS, Shape

_NUMBERS = frozenset({Shape.BOUND, Shape.STEP, Shape.UPPER_COUNT, Shape.LOWER_COUNT})
#: Tags that are keywords, and the JSON type that each constrains (None: every type).
CONSTRAINTS: dict[str, str | None] = {
    name: KEYWORDS[name].type if name in KEYWORDS else "string"
    for name in (
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("pattern", "format", "contentMediaType", "contentEncoding", "minItems", "maxItems", "uniqueItems"),
        *("minProperties", "maxProperties", "additionalProperties", "title", "default", "examples"),
    )
}
_MARKS = frozenset({"integer", "oneOf", "deprecated", "asType", "type", "schema", "name", "description", "example"})
#: Tags about things that have no part in a call.
_DROPPED = frozenset(
    {"returns", "return", "throws", "exception", "async", "public", "private", "internal", "export", "function"}
)
_PARAMETER = ("param", "arg", "argument")
_KNOWN = frozenset(CONSTRAINTS) | _MARKS
_TAG = re.compile(
    rf"^[ \t]*@(?P<line>[A-Za-z]\w*)|(?<=[ \t])@(?P<inline>{'|'.join(sorted(_KNOWN, key=len, reverse=True))})\b",
    re.MULTILINE,
)
_PARAM = re.compile(r"^(?:\{[^}]*\}\s*)?\[?([\w$.]+)(?:=[^\]]*)?\]?\s*(?:-\s*)?", re.DOTALL)


class JsDocError(ValueError):
    """A tag whose text is malformed; the message names the tag."""


@dataclass
class Doc:
    """Content of a comment.

    Attributes:
        description: its prose.
        keywords: keywords for the schema of the type after it.
        schema: the keywords of ``@schema``, which replace whatever else is said.
        integer: numbers are whole.
        one_of: exactly one alternative of the union holds.
        name: a tool's name.
        parameters: the ``@param`` tag of each parameter.
    """

    description: str = ""
    keywords: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] = field(default_factory=dict)
    integer: bool = False
    one_of: bool = False
    name: str | None = None
    parameters: dict[str, Doc] = field(default_factory=dict)

    @property
    def constrains(self) -> bool:
        """True if it has tags that constrain values."""
        return bool(self.keywords or self.schema or self.integer or self.one_of or self.name is not None)


def parse(comment: str) -> Doc:
    """Return the tags and the text of a comment.

    Args:
        comment: a whole ``/** ... */`` block, or prose.

    Raises:
        JsDocError: a tag's value is malformed, or a tag is nearly one of ours (``@minimun``).
    """
    text = comment
    if comment.startswith("/*"):
        inner = comment[2:-2].lstrip("*")
        text = "\n".join(re.sub(r"^\s*\* ?", "", line) for line in inner.split("\n"))
    return _read(text)


def _read(text: str) -> Doc:
    """Return what a comment says: its prose, and what each of its tags states.

    Raises:
        JsDocError: a tag is misspelt, or its value is not of its kind.
    """
    doc = Doc()
    tags: list[re.Match[str]] = []
    for tag in _TAG.finditer(text):
        # A tag on the line of a @param is about that parameter.
        if tag["line"] or not tags or tags[-1]["line"] not in _PARAMETER:
            tags.append(tag)
    prose = [text[: tags[0].start()] if tags else text]
    for tag, after in zip(tags, [*tags[1:], None], strict=False):
        name = tag["line"] or tag["inline"]
        value = text[tag.end() : after.start() if after else len(text)].strip()
        if name in _PARAMETER:
            _parameter(doc, value)
        elif name == "default" or name == "defaultValue":
            doc.keywords["default"] = json_or_text(value)
        elif name in ("example", "examples"):
            prose += _example(doc, name, value)
        elif name in CONSTRAINTS:
            doc.keywords[name] = _value(name, value)
        elif name in _MARKS:
            _mark(doc, name, value)
        elif name not in _DROPPED:
            near = _nearest(name)
            if near:
                raise JsDocError(f"the tag @{name} is unknown; did you mean @{near}?")
            prose.append(f"@{name} {value}".strip())
    doc.description = "\n".join(part for part in (_tidy(piece) for piece in prose) if part)
    if "description" in doc.keywords:
        doc.description = "\n".join(part for part in (doc.description, doc.keywords.pop("description")) if part)
    return doc


@lru_cache(maxsize=512)
def _nearest(name: str) -> str:
    """Return the known tag that an unknown one resembles; empty if there is none."""
    return next(iter(difflib.get_close_matches(name, _KNOWN, 1, 0.8)), "")


def _parameter(doc: Doc, value: str) -> None:
    """Enter a ``@param`` tag: ``{string} city - Name of it. @minLength 1``."""
    match = _PARAM.match(value)
    if match is None:
        raise JsDocError("@param lacks the name of a parameter")
    doc.parameters[match[1]] = _read(value[match.end() :])


def _example(doc: Doc, name: str, value: str) -> list[str]:
    """Add an example to the keyword if it is JSON; else return it as prose for the description."""
    try:
        decoded = json.loads(value)
    except ValueError:
        return [f"Example: {value}"] if value else []
    examples = doc.keywords.setdefault("examples", [])
    if name == "examples" and isinstance(decoded, list):
        examples.extend(decoded)
    else:
        examples.append(decoded)
    return []


def _mark(doc: Doc, name: str, value: str) -> None:
    """Apply a tag that is no keyword of JSON Schema (``@deprecated``, ``@name``, ``@schema``, ...)."""
    if name == "deprecated":
        doc.keywords["deprecated"] = True
        if value:
            doc.keywords["description"] = f"Deprecated: {value}"
    elif name == "description":
        doc.keywords["description"] = _tidy(value)
    elif name == "name":
        doc.name = json_or_text(value) if value.startswith('"') else value
    elif name == "oneOf":
        doc.one_of = True
    elif name == "schema":
        try:
            keywords = json.loads(value)
        except ValueError as error:
            raise JsDocError(f"@schema takes a JSON object: {error}") from None
        if not isinstance(keywords, dict):
            raise JsDocError("@schema takes a JSON object")
        doc.schema.update(keywords)
    elif name == "integer" or value.strip("{} ") in ("integer", "int"):
        doc.integer = True
    else:
        raise JsDocError(f"@{name} {value}: a comment can only give the type integer")


def _value(name: str, value: str) -> Any:
    """Return the value of a tag that is a keyword of JSON Schema, by the shape of the keyword's values."""
    shape = KEYWORDS[name].shape if name in KEYWORDS else Shape.TEXT
    if shape is Shape.PATTERN:
        return _pattern(value)
    if shape in (Shape.FORMAT, Shape.TEXT):
        decoded = json_or_text(value) if value.startswith('"') else value
        return decoded if isinstance(decoded, str) else value
    if shape is Shape.FLAG or name == "additionalProperties":
        if value not in ("", "true", "false"):
            raise JsDocError(f"@{name} takes true or false, not {value!r}")
        return value != "false"
    if shape in _NUMBERS:
        try:
            number = json.loads(value.split()[0]) if value else None
        except ValueError:
            number = None
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
            raise JsDocError(f"@{name} takes a number, not {value!r}")
        return number
    return json_or_text(value)


def _pattern(value: str) -> str:
    """Return a regular expression, which may stand between slashes: ``/^a/ -> ^a``."""
    if not value or "\n" in value:
        raise JsDocError("@pattern takes a regular expression on one line")
    if len(value) > 1 and value.startswith("/") and (end := value.rfind("/")) > 0:
        if value[end + 1 :] and value[end + 1 :].isalpha():
            raise JsDocError(f"@pattern takes no flags: {value!r}")
        if end == len(value) - 1:
            return value[1:-1]
    return value


def json_or_text(value: str) -> Any:
    """Return a JSON value; else the text, without the quotes or backticks around it."""
    if len(value) > 1 and value[0] == value[-1] and value[0] in "`'":
        inner = value[1:-1]
        return json_or_text(inner) if value[0] == "`" else inner
    try:
        return json.loads(value)
    except ValueError:
        return value


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().split("\n"))
