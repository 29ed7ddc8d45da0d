"""Railroad diagrams of JSON Schemas, drawn with the package ``railroad-diagrams`` (the extra ``diagrams``)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: Maximum length of what stands in one box, maximum number of alternatives, and maximum depth of one diagram.
MAX_LENGTH = 48
MAX_CHOICES = 24
MAX_DEPTH = 6

#: Maximum number of diagrams.
MAX_DIAGRAMS = 40

#: Keywords that say nothing of the value.
_SILENT = frozenset(
    {"$schema", "$id", "$defs", "definitions", "title", "description", "examples", "default", "$comment"}
)

_UNITS = {"string": "characters", "array": "items", "object": "members"}


def diagrams(schema: Any) -> list[tuple[str, str]]:
    """Return the diagrams of a schema: its own, and those of the definitions that it names, as title and SVG.

    Raises:
        MissingDependencyError: ``railroad-diagrams`` is not installed.
    """
    try:
        import railroad
    except ImportError as error:
        from toolgrammar.core.errors import MissingDependencyError

        raise MissingDependencyError(
            "a diagram needs the package railroad-diagrams", hint="pip install 'toolgrammar[diagrams]'"
        ) from error
    drawing = _Drawing(railroad, schema)
    diagrams: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = [("#", schema)]
    seen = {"#"}
    while waiting and len(diagrams) < MAX_DIAGRAMS:
        reference, part = waiting.pop(0)
        drawing.references = []
        parts: list[str] = []
        railroad.Diagram(drawing.item(part, 0)).writeSvg(parts.append)
        diagrams.append(("the value" if reference == "#" else reference, "".join(parts)))
        for name in drawing.references:
            if name not in seen:
                seen.add(name)
                target = drawing.target(name)
                if target is not None:
                    waiting.append((name, target))
    return diagrams


class _Drawing:
    """Turns schemas into items of a diagram, and collects the references on the way."""

    def __init__(self, railroad: Any, root: Any) -> None:
        self._railroad = railroad
        self._root = root
        self.references: list[str] = []

    def target(self, reference: str) -> Any:
        """Return what a local reference leads to; None if it cannot be resolved."""
        from toolgrammar.core.json import resolve_local

        try:
            return resolve_local(self._root, reference)
        except (LookupError, TypeError):
            return None

    def item(self, schema: Any, depth: int) -> Any:
        """Return the item of a schema."""
        draw = self._railroad
        if schema is True or schema == {}:
            return draw.NonTerminal("any JSON")
        if schema is False:
            return draw.Comment("nothing")
        if not isinstance(schema, Mapping):
            return draw.NonTerminal(_short(json.dumps(schema, default=str)))
        if isinstance(schema.get("$ref"), str):
            self.references.append(schema["$ref"])
            return draw.NonTerminal(_short(schema["$ref"]))
        if depth > MAX_DEPTH:
            return draw.NonTerminal("…")
        if "const" in schema:
            return draw.Terminal(_short(json.dumps(schema["const"], ensure_ascii=False)))
        if isinstance(schema.get("enum"), list):
            return self._choice([draw.Terminal(_short(json.dumps(one, ensure_ascii=False))) for one in schema["enum"]])
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list) and schema[keyword]:
                return self._choice([self.item(part, depth + 1) for part in schema[keyword]])
        types = schema.get("type")
        if isinstance(types, list):
            return self._choice([self._of_type(schema, kind, depth) for kind in types])
        if types is None:
            types = next(
                (kind for word, kind in (("properties", "object"), ("items", "array")) if word in schema), None
            )
        return self._of_type(schema, types, depth)

    def _of_type(self, schema: Mapping[str, Any], kind: Any, depth: int) -> Any:
        draw = self._railroad
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "boolean":
            return draw.Choice(0, draw.Terminal("true"), draw.Terminal("false"))
        if kind == "null":
            return draw.Terminal("null")
        return draw.NonTerminal(_short(_facts(schema, kind)))

    def _object(self, schema: Mapping[str, Any], depth: int) -> Any:
        """Draw an object: its members in order, optional ones with a way around them."""
        draw = self._railroad
        required = schema.get("required") or []
        members = []
        for name, part in (schema.get("properties") or {}).items():
            member = draw.Sequence(
                draw.Terminal(_short(json.dumps(name, ensure_ascii=False))),
                draw.Terminal(":"),
                self.item(part, depth + 1),
            )
            members.append(member if name in required else draw.Optional(member))
        for pattern, part in (schema.get("patternProperties") or {}).items():
            name = draw.NonTerminal(_short(f"name like {pattern}"))
            members.append(draw.ZeroOrMore(draw.Sequence(name, draw.Terminal(":"), self.item(part, depth + 1))))
        rest = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
        if rest is not False:
            other = draw.Sequence(draw.NonTerminal("any other name"), draw.Terminal(":"), self.item(rest, depth + 1))
            members.append(draw.ZeroOrMore(other))
        body = draw.Stack(*members) if len(members) > 1 else members[0] if members else draw.Skip()
        inside = draw.Sequence(draw.Terminal("{"), body, draw.Terminal("}"))
        words = _more(schema, "object")
        return draw.Group(inside, _short(words)) if words else inside

    def _array(self, schema: Mapping[str, Any], depth: int) -> Any:
        draw = self._railroad
        prefix = schema.get("prefixItems") or []
        items = schema.get("items", True)
        if isinstance(items, list):
            prefix, items = items, schema.get("additionalItems", True)
        parts = [draw.Terminal("["), *(self.item(part, depth + 1) for part in prefix)]
        if items is not False:
            parts.append(draw.ZeroOrMore(self.item(items, depth + 1), draw.Terminal(",")))
        inside = draw.Sequence(*parts, draw.Terminal("]"))
        words = _more(schema, "array")
        return draw.Group(inside, _short(words)) if words else inside

    def _choice(self, items: list[Any]) -> Any:
        if len(items) > MAX_CHOICES:
            items = [*items[: MAX_CHOICES - 1], self._railroad.Comment(f"{len(items) - MAX_CHOICES + 1} more")]
        return items[0] if len(items) == 1 else self._railroad.Choice(0, *items) if items else self._railroad.Skip()


def _facts(schema: Mapping[str, Any], kind: Any) -> str:
    """Return what a schema says of a scalar, in words."""
    words = str(kind or "any JSON")
    from toolgrammar.core.schema import ENFORCED

    pattern, form = schema.get("pattern"), schema.get("format")
    words += f" like {pattern}" if pattern else ""
    words += f" ({form})" if form in ENFORCED else ""
    more = _more(schema, str(kind))
    return f"{words}, {more}" if more else words


#: Keywords that the diagram itself shows, or that `_more` says in words.
_SHOWN = _SILENT | {
    "type", "properties", "required", "items", "prefixItems", "additionalProperties", "additionalItems", "pattern",
    "patternProperties", "unevaluatedProperties", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
}  # fmt: skip


def _more(schema: Mapping[str, Any], kind: str) -> str:
    """Return the bounds of a value in words, and the keywords that no diagram shows, as JSON; what is no keyword
    constrains nothing, and is left out."""
    from toolgrammar.core.schema import KEYWORDS

    words = []
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", _UNITS["string"]),
        ("minItems", "maxItems", _UNITS["array"]),
        ("minProperties", "maxProperties", _UNITS["object"]),
    ):
        least, most = schema.get(low), schema.get(high)
        if least is not None and most is not None:
            nothing = ": no value" if _is_above(least, most) else ""
            words.append(f"{least} to {most} {unit}".strip() + nothing)
        elif least is not None:
            words.append(f"at least {least} {unit}".strip())
        elif most is not None:
            words.append(f"at most {most} {unit}".strip())
    for keyword, sign in (("exclusiveMinimum", ">"), ("exclusiveMaximum", "<")):
        if keyword in schema:
            words.append(f"{sign} {schema[keyword]}")
    others = [name for name in schema if name in KEYWORDS and name not in _SHOWN]
    words += [f"{name}: {json.dumps(schema[name], ensure_ascii=False)}" for name in others]
    return ", ".join(words)


def _is_above(least: Any, most: Any) -> bool:
    return isinstance(least, (int, float)) and isinstance(most, (int, float)) and least > most


def _short(text: str) -> str:
    """Return a text for a box, without what no XML may hold."""
    text = re.sub(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"
