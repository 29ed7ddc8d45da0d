"""Two documents in one schema: references renamed apart, equal definitions shared, drafts brought together.

What a reference leads to becomes a definition with a number, once for each meaning (see `Located.key`): so ``$id``,
``$anchor``, registries and dynamic scopes of the two documents cannot meet. Definitions that say the same in both
become one, recursive ones too (by partition refinement, as states of a finite automaton are minimised): what did not
change is then known to be the same without a proof. So do equal subschemas: each is one object, for the memos of the
normal form.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from sys import float_info
from typing import Any

from ..errors import Place, UnsupportedSchemaError
from .read.keywords import KEYWORDS, Draft, Shape
from .read.located import Located
from .read.resolve import DIALECTS, Document

_BOUNDS = KEYWORDS.named(shapes=(Shape.BOUND,))
_NUMBERS = frozenset(KEYWORDS.named(shapes=(Shape.BOUND, Shape.STEP, Shape.VALUE, Shape.VALUES)))

#: Numbers between which every range has a number that a text can have: at most so many digits before the point, and
#: after it.
MAX_BEFORE, MAX_AFTER = 28, 15


@dataclass
class _Definition:
    """What a reference leads to.

    Attributes:
        origin: the same in its document.
        content: the schema, with references to definitions.
        references: each of these references, and the number of its definition.
    """

    origin: Located
    content: Any = None
    references: list[tuple[dict[str, str], int]] = field(default_factory=list)


class Joined:
    """Two documents in one schema.

    Args:
        first: a document that was checked.
        second: another.

    Raises:
        InvalidSchemaError: a reference leads nowhere.
        UnsupportedSchemaError: a reference leaves its document, or the drafts of the two differ in a keyword that
            cannot be said in the newer one.
    """

    def __init__(self, first: Document, second: Document) -> None:
        self._age = first.age if first.age == second.age else Draft.DRAFT_2020_12
        self._definitions: list[_Definition] = []
        roots = [self._read(document) for document in (first, second)]
        self._second = roots[1]
        numbers = self._numbers()
        # By the name of a definition, its index: of equal ones the first, which comes last here.
        self._origins = {str(numbers[index]): index for index in reversed(range(len(numbers)))}
        known: dict[str, Any] = {}

        def shared(schema: dict[str, Any]) -> Any:
            """Return the same object for equal schemas."""
            return known.setdefault(json.dumps(schema, sort_keys=True, default=repr), schema)

        contents = {name: self._definitions[index].content for name, index in self._origins.items()}
        self._defs = {name: KEYWORDS.map_schemas(content, shared) for name, content in contents.items()}
        self._roots = [{"$ref": f"#/$defs/{numbers[root]}"} for root in roots]

    @property
    def are_same(self) -> bool:
        """True if the two say the same, word by word (annotations and the order of members apart)."""
        return self._roots[0] == self._roots[1]

    def both(self) -> dict[str, Any]:
        """Return the schema of the values that satisfy both."""
        return self._schema([*self._roots])

    def only(self, which: int) -> dict[str, Any]:
        """Return the schema of the values that satisfy only the first (0) or only the second (1)."""
        return self._schema([self._roots[which], {"not": self._roots[1 - which]}])

    def _schema(self, parts: list[Any]) -> dict[str, Any]:
        return {"$schema": list(DIALECTS)[self._age], "$defs": self._defs, "allOf": parts}

    def place(self, place: Place) -> tuple[int | None, Place]:
        """Return a place in the joined schema as the number of a document (None: neither) and the place in it."""
        steps = (place.pointer or "").split("/")  # "/$defs/3/items": "", "$defs", "3", "items"
        index = self._origins.get(steps[2]) if len(steps) > 2 and steps[1] == "$defs" else None
        if index is None:
            return None, Place()
        pointer = "/".join([self._definitions[index].origin.pointer, *steps[3:]])
        return int(index >= self._second), Place(pointer=pointer, keyword=place.keyword)

    @property
    def far_numbers(self) -> str:
        """A keyword and its number that is so large, or has so many decimals, that no text may have a number beyond it,
        or between it and the next; empty if there is none."""
        for content in self._defs.values():
            for schema in KEYWORDS.every_schema(content):
                for keyword in _NUMBERS.intersection(schema):
                    if found := _far(schema[keyword]):
                        return f"{keyword} {found}"
        return ""

    # -- reading -----------------------------------------------------------------------------------------------

    def _read(self, document: Document) -> int:
        """Add the definitions of a document, and return the number of that of its root."""
        known: dict[object, int] = {}
        root = self._number(document, document.root, known)
        index = root
        while index < len(self._definitions):
            definition = self._definitions[index]
            definition.content = self._copied(document, definition.origin, definition, known)
            index += 1
        return root

    def _number(self, document: Document, located: Located, known: dict[object, int]) -> int:
        """Return the number of the definition of a subschema, which is added if ``known`` (by keys) lacks it."""
        located = document.enter(located)
        number = known.get(located.key)
        if number is None:
            number = known[located.key] = len(self._definitions)
            self._definitions.append(_Definition(located))  # which keeps the key's object alive
        return number

    def _copied(self, document: Document, located: Located, definition: _Definition, known: dict[object, int]) -> Any:
        """Return a schema without what constrains nothing, and with references to definitions."""
        located = document.enter(located)
        schema = located.schema
        if isinstance(schema, bool):
            return schema
        hides = "$ref" in schema and document.ref_hides_siblings
        copied: dict[str, Any] = {}
        found: list[dict[str, str]] = []
        for keyword, value in schema.items():
            if keyword not in KEYWORDS.constraining or not document.knows(keyword) or (hides and keyword != "$ref"):
                continue
            if keyword in KEYWORDS.references:
                found.append({"$ref": ""})  # `_numbers` writes the target
                target = self._number(document, document.resolve(located, keyword), known)
                definition.references.append((found[-1], target))
                continue

            def inside(keyword: str, inner: Any, *steps: str | int) -> Any:
                return self._copied(document, located.below(inner, (keyword, *steps)), definition, known)

            copied[keyword] = KEYWORDS.map_subschemas(keyword, value, partial(inside, keyword))
        if self._age != document.age:
            self._renew(document, located, copied)
        if found and not copied and len(found) == 1:
            return found[0]
        return {**copied, "allOf": [*copied.get("allOf", ()), *found]} if found else copied

    @staticmethod
    def _renew(document: Document, located: Located, schema: dict[str, Any]) -> None:
        """Write what an older draft has in another way than the newest."""
        for keyword in _BOUNDS:
            if isinstance(flag := schema.get(keyword), bool):  # Draft 4
                del schema[keyword]
                bound = keyword.replace("exclusiveM", "m")
                if flag and bound in schema:
                    schema[keyword] = schema.pop(bound)
        if "unevaluatedItems" in schema and not document.contains_evaluates:
            raise UnsupportedSchemaError(
                "unevaluatedItems of Draft 2019-09 cannot be compared with another draft",
                hint="use the same $schema in both",
                place=Place(pointer=located.pointer, keyword="unevaluatedItems"),
            )

    # -- what is the same --------------------------------------------------------------------------------------

    def _numbers(self) -> list[int]:
        """Return a number for each definition, equal for those that say the same, and write it into references.

        Each round tells apart what differs by the numbers of the round before, at first all equal; the last one tells
        no more apart.
        """
        numbers = [0] * len(self._definitions)
        count = 0
        while True:
            for definition in self._definitions:
                for reference, target in definition.references:
                    reference["$ref"] = f"#/$defs/{numbers[target]}"
            texts: dict[str, int] = {}
            said = [json.dumps(definition.content, sort_keys=True, default=repr) for definition in self._definitions]
            numbers = [texts.setdefault(text, len(texts)) for text in said]
            if len(texts) == count:
                return numbers
            count = len(texts)


def _far(value: Any) -> str:
    """Return the first number in a value that is too large or too fine (see `MAX_BEFORE`); empty if none is."""
    if isinstance(value, (list, tuple)):
        return next(filter(None, map(_far, value)), "")
    if isinstance(value, dict):
        return _far(list(value.values()))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) == float_info.max:
        return ""
    number = Decimal(repr(value))
    exponent = number.as_tuple().exponent
    is_fine = isinstance(exponent, int) and exponent < -MAX_AFTER
    return repr(value) if is_fine or number.adjusted() >= MAX_BEFORE else ""
