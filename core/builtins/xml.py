"""XML 1.0: well-formed documents of given elements, or of the values of a schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from ..basics.argument_checks import checked_names
from ..errors import GrammarError
from ..json import escape, resolve_local
from ..schema.scalars.value_syntax import QuotedSyntax
from ..text_grammars.expressions import (
    EMPTY_TEXT,
    Expression,
    Literal,
    Reference,
    Repeat,
    choice,
    pattern,
    sequence,
)
from ..text_grammars.rules import ReadGrammar
from .typed import SCALARS, TypedValues, read_grammar, refuse, schema_of

#: Maximum number of attributes of one element, which may come in any order.
MAX_ATTRIBUTES = 8

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
#: Characters of XML (section 2.2) that text and attributes have as such, in ranges; `]]>` is kept out by escaping.
_TEXT = ((0x20, 0x25), (0x27, 0x3B), (0x3D, 0x3D), (0x3F, 0x7E), (0xA0, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF))
_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\t", "&#9;"), ("\n", "&#10;"), ("\r", "&#13;"))
_CHARACTER = r"[\t\n\r -%'-;=?-~\u{A0}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]"
_REFERENCE = r"&(?:amp|lt|gt|quot|apos|#(?:9|10|13|3[2-9]|[4-9]\d|1[01]\d|12[0-6]|1[6-9]\d|[2-9]\d\d|[1-9]\d{3}));"
_COMMENT = r"<!--(?:-?[\t\n\r -,.-~\u{A0}-\u{D7FF}])*-->"
_CDATA = r"<!\[CDATA\[(?:[\t\n\r -\\\^-~]|\](?!\]>))*\]\]>"
_VALUE = rf'"(?:[\t\n\r !#-%\'-;=-~\u{{A0}}-\u{{D7FF}}]|{_REFERENCE})*"'
_SPACE = pattern(r"\n? {0,20}")


def xml_grammar(schema: Any, tags: Any, root: str | None) -> ReadGrammar:
    """Return XML documents of a schema or of given elements."""
    if (schema is None) == (tags is None):
        raise GrammarError("xml() takes either a schema or tags", hint="pass one of them")
    return _of_tags(tags, root) if schema is None else _of_schema(schema_of(schema), root or "root")


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name.lower().startswith("xml"):
        raise GrammarError(
            f"{name!r} cannot name an element or attribute",
            hint="use ASCII letters, digits, '.', '-' and '_', with a letter first, and not 'xml'",
        )
    return name


def _of_tags(tags: Any, root: str | None) -> ReadGrammar:
    """Return documents of elements with these names, nested in any way; a mapping names their attributes."""
    attributes: dict[str, list[str]] = {name: [] for name in checked_names(tags, "tags")}
    if isinstance(tags, Mapping):
        attributes = {name: checked_names(tags[name], f"attributes of {name!r}") if tags[name] else [] for name in tags}
    if root is not None and root not in attributes:
        raise GrammarError(f"the root {root!r} is not among the tags", hint=f"one of {', '.join(attributes)}")
    text = pattern(f"(?:{_CHARACTER}|{_REFERENCE}|{_COMMENT}|{_CDATA})*")
    elements = choice(*(Reference(f"<{name}>") for name in attributes))
    rules: dict[str, Expression] = {
        "root": sequence(_SPACE, Reference(f"<{root}>") if root else elements, _SPACE),
        "content": sequence(text, Repeat(sequence(elements, text), 0, None)),
    }
    for name, names in attributes.items():
        begin = sequence(Literal(f"<{_check_name(name)}"), *_attributes(name, names, rules))
        full = sequence(Literal(">"), Reference("content"), Literal(f"</{name}>"))
        rules[f"<{name}>"] = sequence(begin, pattern(" ?"), choice(full, Literal("/>")))
    return read_grammar("xml", {"tags": attributes, "root": root}, rules)


def _attributes(element: str, names: Sequence[str], rules: dict[str, Expression]) -> list[Expression]:
    """Add the rules of an element's attributes: each at most once, in any order; return the part that names them."""
    if not names:
        return []
    if len(names) > MAX_ATTRIBUTES:
        raise GrammarError(f"element {element!r} has more than {MAX_ATTRIBUTES} attributes", hint="remove items")
    value = pattern(_VALUE)

    def rule_of(left: Sequence[str]) -> str:
        """Return the name of the rule of the attributes that may still follow."""
        return f"<{element} {' '.join(left)}"

    for count in range(len(names) + 1):
        for left in combinations(names, count):
            choices = []
            for name in left:
                rest = Reference(rule_of([other for other in left if other != name]))
                choices.append(sequence(Literal(f" {_check_name(name)}="), value, rest))
            rules[rule_of(left)] = choice(EMPTY_TEXT, *choices)
    return [Reference(rule_of(names))]


def _of_schema(schema: Any, root: str) -> ReadGrammar:
    """Return documents of the values of a schema: an element for each member, and one for each item of an array."""
    if not isinstance(schema, Mapping):
        refuse("the schema of XML is an object", hint='pass {"type": "object", "properties": {...}}')
    reader = _SchemaReader(schema)
    element = reader.element(root, "", schema)
    return reader.values.read("xml", {"schema": schema, "root": root}, {**reader.rules, "root": element})


class _SchemaReader:
    """Rules of the elements of a schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.rules: dict[str, Expression] = {}
        self.values = TypedValues(schema)
        self._syntax = QuotedSyntax(_TEXT, _ESCAPES, null=b"")

    def element(self, name: str, pointer: str, schema: Any) -> Expression:
        """Return an element with the values of a subschema."""
        begin, end = Literal(f"<{_check_name(name)}>"), Literal(f"</{name}>")
        return sequence(begin, self._content(pointer, schema), end)

    def _content(self, pointer: str, schema: Any) -> Expression:
        """Return the content of an element: of an object its members, of a scalar its text; local references are
        followed."""
        while isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
            pointer = schema["$ref"].removeprefix("#")
            if schema["$ref"][:1] != "#" or (schema.keys() - {"$ref", "title", "description", "default"}):
                refuse(
                    "in XML, $ref must be local and without other keywords",
                    pointer=pointer,
                    hint="write the schema out",
                )
            try:
                schema = resolve_local(self.values.schema, f"#{pointer}")
            except LookupError:
                refuse("the reference cannot be resolved", pointer=pointer, hint="define the schema under $defs")
        if isinstance(schema, Mapping) and schema.get("type") == "object":
            return self._object(pointer, schema)
        if isinstance(schema, Mapping) and schema.get("type") == "array":
            refuse("an array is not an element", pointer=pointer, hint="make it a property of an object")
        return self.values.value(pointer, self._syntax)

    def _object(self, pointer: str, schema: Mapping[str, Any]) -> Expression:
        """Return a rule for the members of an object, made once for each pointer, so that objects may be recursive."""
        rule = f"object {pointer}"
        if rule in self.rules:
            return Reference(rule)
        known = {"type", "properties", "required", "title", "description", "additionalProperties", "$defs", "$schema"}
        unknown = sorted(schema.keys() - known)
        if unknown or schema.get("additionalProperties", False) is not False:
            refuse(
                f"{(unknown or ['additionalProperties'])[0]!r} of an object has no form in XML",
                pointer=pointer,
                hint="use type, properties and required",
            )
        self.rules[rule] = EMPTY_TEXT  # its members may contain it
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        for name in required:
            if name not in properties:
                refuse(f"the required {name!r} is not among the properties", pointer=pointer, hint="declare it")
        members: list[Expression] = []
        for name, member in properties.items():
            place = f"{pointer}/properties/{escape(name)}"
            members.append(self._member(name, place, member, is_required=name in required))
        self.rules[rule] = sequence(*members, _SPACE)
        return Reference(rule)

    def _member(self, name: str, pointer: str, schema: Any, *, is_required: bool) -> Expression:
        """Return a property as an element, or as one element for each item of an array; empty if it is left out."""
        if isinstance(schema, Mapping) and schema.get("type") == "array":
            unknown = sorted(schema.keys() - {"type", "items", "minItems", "maxItems", "title", "description"})
            if unknown:
                refuse(f"{unknown[0]!r} of an array has no form in XML", pointer=pointer, hint="use items and minItems")
            item = self.element(name, f"{pointer}/items", schema.get("items", {"type": sorted(SCALARS)}))
            least, most = schema.get("minItems", 0), schema.get("maxItems")
            items = Repeat(sequence(_SPACE, item), least, most)
            return items if is_required or not least else choice(EMPTY_TEXT, items)
        member = sequence(_SPACE, self.element(name, pointer, schema))
        return member if is_required else choice(EMPTY_TEXT, member)
