"""Schemas whose lowering may fail although each of their keywords is well-formed.

A keyword of the table that is *risky* may fail beside some others, or where several schemas constrain one value. Most
of its uses cannot: a pattern of names that only strings have, ``uniqueItems`` of an array that may be empty, an
``allOf`` of schemas that share no member. So few places are left for `explore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..normal.assertions import asserted
from ..read.keywords import APPLICATORS, KEYWORDS, Role, keywords, subschemas
from ..read.located import Located
from ..read.resolve import Document

#: Keywords beside which lowering may fail although each subschema is well-formed.
RISKY = frozenset(row.name for row in KEYWORDS.values() if row.risky)

#: Maximum number of patterns of names that cannot make too many regions (see ``MAX_REGIONS`` of `merged_objects`).
_MAX_PATTERNS = 7

#: Maximum number of references, and of nested ``allOf``, that are followed.
_MAX_LINKS = 8

#: Maximum number of schemas that are followed from a schema to those that apply it; beyond them it counts as combined.
_MAX_USERS = 64

#: Keywords that constrain a value without schemas for its parts, and that cannot fail beside any others.
_SIMPLE = frozenset(keywords(roles=(Role.ASSERTION, Role.FORMAT))) - {"minItems", "multipleOf", "uniqueItems"}

#: Keywords of the parts of an ``allOf`` that meet in no member or item.
_APART = _SIMPLE | {"properties", "additionalProperties", "allOf"}


class Hazards:
    """The risky and the demanding schemas of a document: those that may fail by themselves, and the others.

    Attributes:
        failing: identities of schemas that may fail by themselves.
        tame: identities of risky schemas that can only fail where others constrain the same value.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._joined: dict[int, list[Located] | None] = {}
        risky = {id(located.schema): located for located in document.risky}
        self.failing: set[int] = set(document.demanding)
        self.tame: set[int] = set()
        for key, located in risky.items():
            is_tame = key not in document.demanding and self._is_tame(located) and not self._is_combined(located.schema)
            (self.tame if is_tame else self.failing).add(key)

    def _is_tame(self, located: Located) -> bool:
        """Return True if a schema cannot fail, where nothing else constrains the same value."""
        schema = located.schema
        for keyword in [word for word in schema if word in RISKY]:
            if keyword == "allOf":
                if not _is_synonym(schema) and self.joined(located) is None:
                    return False
            elif keyword not in _TAME or not _TAME[keyword](schema):
                return False
        return "$ref" not in schema

    def joined(self, located: Located) -> list[Located] | None:
        """Return the schemas that together are one with ``allOf``, if no two of them constrain the same member; else
        None. Computed once."""
        key = id(located.schema)
        if key not in self._joined:
            parts: list[Located] = []
            self._joined[key] = parts if self._collect(located, parts, 0) and _are_apart(parts) else None
        return self._joined[key]

    def _collect(self, located: Located, parts: list[Located], depth: int) -> bool:
        """Add a schema, and those that it applies to the same value; False if one does more than to declare members."""
        schema = located.schema
        if isinstance(schema, bool):
            return True
        if depth > _MAX_LINKS or not isinstance(schema, dict) or located.scope is not None:
            return False
        words = asserted(schema)
        document = self._document
        if "$ref" in words:
            if (len(words) > 1 and not document.ref_hides_siblings) or not schema["$ref"].startswith("#"):
                return False
            return self._collect(document.enter(document.resolve(located)), parts, depth + 1)
        if not words <= _APART or not _is_simple(schema.get("additionalProperties", True)):
            return False
        parts.append(located)
        inner = located.items("allOf") if "allOf" in words else ()
        return all(self._collect(document.enter(each), parts, depth + 1) for each in inner)

    def _is_combined(self, schema: Any) -> bool:
        """Return True if another schema may constrain the same values, as far as that shows in a few steps."""
        waiting, seen = [schema], set()
        while waiting:
            part = waiting.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            if len(seen) > _MAX_USERS:
                return True
            for user in self._document.users.get(id(part), ()):
                words = asserted(user) - {"type"}
                if words.isdisjoint(APPLICATORS):
                    continue  # the part is that of a member or an item
                if "$ref" in words and (len(words) == 1 or self._document.ref_hides_siblings):
                    waiting.append(user)
                    continue
                roles = {KEYWORDS[keyword].role for keyword in words for each in _under(user, keyword) if each is part}
                if roles == {Role.PARTS}:
                    continue
                is_union = words == {"anyOf"} or (words == {"oneOf"} and id(user) in self._document.disjoint)
                if is_union or (words == {"allOf"} and _is_synonym(user)):
                    waiting.append(user)
                    continue
                return True
        return False


def _under(schema: Mapping[str, Any], keyword: str) -> Iterator[Any]:
    for _, inner in subschemas(keyword, schema[keyword]):
        yield inner


def _is_synonym(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema only applies another one."""
    asking = [each for each in schema["allOf"] if each is False or (each is not True and asserted(each))]
    return len(asking) == 1 and asserted(schema) == {"allOf"}


def _are_apart(parts: list[Located]) -> bool:
    """Return True if no two of some schemas declare the same member."""
    names: set[str] = set()
    for part in parts:
        declared = part.schema.get("properties", {})
        if not names.isdisjoint(declared):
            return False
        names.update(declared)
    return True


def _is_simple(schema: Any) -> bool:
    """Return True if a schema constrains no parts of a value, and cannot fail beside any others."""
    return isinstance(schema, bool) or asserted(schema) <= _SIMPLE


def _are_patterns_tame(schema: Mapping[str, Any]) -> bool:
    patterns = schema["patternProperties"]
    if len(patterns) == 1 and not schema.get("properties"):
        return True
    return len(patterns) <= _MAX_PATTERNS and all(map(_is_simple, patterns.values()))


#: By risky keyword: True if it cannot fail in a schema, where nothing else constrains the same value.
_TAME: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "patternProperties": _are_patterns_tame,
    "propertyNames": lambda schema: _is_simple(schema["propertyNames"]) and "patternProperties" not in schema,
    "uniqueItems": lambda schema: (
        schema["uniqueItems"] is not True or ("contains" not in schema and not schema.get("minItems"))
    ),
    "multipleOf": lambda schema: True,
}
