"""Assertions of a single schema as one fact: all keywords except those that apply other schemas to the value."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Set
from typing import Any

from ...language.terms import Terms
from ...regex.compile import regex_term
from ..keywords.any_value import listed_values
from ..keywords.arrays import array_part
from ..keywords.objects import object_part
from ..keywords.row import Facts
from ..read.keywords import KEYWORDS
from ..read.located import Located, SignedSchema
from ..read.resolve import Document
from ..scalars.formats import ENFORCED
from .conjunction import EVERY, ArrayPart, Arrays, Conjunction, Formula, ObjectPart, Objects, Strings

#: By keyword: the function that adds its value to the facts of its schema.
_FACTS = {row.name: row.facts for row in KEYWORDS.values() if row.facts is not None}

#: Marks assertions that were not read yet.
_UNREAD = Conjunction()


class Assertions:
    """Reads the assertions of a document's subschemas.

    Attributes:
        document: where the subschemas are.
        unenforced: keywords that are left out, as pairs of a subschema's key and the keyword; the language can only
            grow.
        formats: True if ``format`` is an assertion, False if it is an annotation.
    """

    def __init__(
        self, document: Document, unenforced: Collection[tuple[object, str]] = (), formats: bool = True
    ) -> None:
        self.document = document
        self.unenforced = unenforced
        self.formats = formats
        self._own: dict[Located, Conjunction | None] = {}
        self._objects: dict[Located, ObjectPart] = {}
        self._arrays: dict[Located, ArrayPart] = {}
        self._constants: dict[str, Formula] = {}  # by the text of a value
        self._terms: Terms | None = None

    @property
    def terms(self) -> Terms:
        """A separate store for the patterns that names are matched with; most documents have none."""
        if self._terms is None:
            self._terms = Terms()
        return self._terms

    def asserts(self, located: Located, keyword: str) -> bool:
        """Return True if a subschema has a keyword that its dialect knows, that is not beside a reference which hides
        it, and that is not left out."""
        return (
            keyword in located.schema
            and self.document.knows(keyword)
            and not (self.document.ref_hides_siblings and keyword != "$ref" and "$ref" in located.schema)
            and not (
                self.unenforced
                and (located.key, keyword) in self.unenforced
                and not KEYWORDS[
                    keyword
                ].narrowed  # such a keyword is exact where it must hold: only its negation is not
            )
        )

    def assertions(self, located: Located) -> Conjunction | None:
        """Return the assertions of a schema; None if they leave no type or no listed value. Computed once."""
        own = self._own.get(located, _UNREAD)
        if own is _UNREAD:
            own = self._own[located] = self._read(located)
        return own

    def _read(self, located: Located) -> Conjunction | None:
        """Return the facts that the keywords of a subschema state, without applicators; None if they leave no type or
        no listed value. (Bounds that exclude each other are found where conjunctions meet.)"""
        schema = located.schema
        if "$ref" in schema and self.document.ref_hides_siblings:
            return EVERY
        facts = Facts(self, located)
        for keyword, value in schema.items():
            read = _FACTS.get(keyword)
            if read is not None and self.asserts(located, keyword):
                read(facts, value)
        if facts.values == () or not facts.types:
            return None
        return Conjunction(
            facts.types,
            facts.values,
            (),
            facts.numbers,
            Strings(**facts.strings) if facts.strings else EVERY.strings,
            Arrays(**facts.arrays) if facts.arrays else EVERY.arrays,
            Objects(**facts.objects) if facts.objects else EVERY.objects,
        )

    def asserts_format(self, located: Located) -> bool:
        """Return True if a subschema's ``format`` is more than an annotation."""
        return self.formats and self.asserts(located, "format") and located.schema["format"] in ENFORCED

    def values(self, located: Located) -> tuple[Any, ...] | None:
        """Return the values that a schema lists; None: it lists none."""
        return listed_values(self, located)

    def matches(self, pattern: str, name: str) -> bool:
        """Return True if a pattern matches some part of a name."""
        return self.terms.matches(regex_term(self.terms, pattern, whole=False), name)

    def object_part(self, located: Located) -> ObjectPart:
        """Return the schemas of members by name and by pattern; computed once."""
        part = self._objects.get(located)
        if part is None:
            part = self._objects[located] = object_part(self, located)
        return part

    def array_part(self, located: Located) -> ArrayPart:
        """Return the schemas of items by position; computed once."""
        part = self._arrays.get(located)
        if part is None:
            part = self._arrays[located] = array_part(self, located)
        return part

    def constant(self, *values: Any) -> Formula:
        """Return the formula of one of some values, in a keyword that every draft has: Draft 4 lacks ``const``."""
        text = json.dumps(values, sort_keys=True)
        formula = self._constants.get(text)
        if formula is None:
            formula = self._constants[text] = SignedSchema(Located({"enum": values}))
        return formula


def asserted(schema: Mapping[str, Any]) -> Set[str]:
    """Return the keywords of a schema that may constrain a value, or make others do so."""
    constraining = KEYWORDS.constraining
    # Faster than the meet of two sets of different sizes.
    return {keyword for keyword in schema if keyword in constraining}


def asserts_only(schema: Mapping[str, Any], keyword: str) -> bool:
    """Return True if of a schema's keywords ``keyword`` is the only one that `asserted` returns."""
    for other in schema:
        if other != keyword and other in KEYWORDS.constraining:
            return False
    return keyword in schema


def lists_strings(schema: Mapping[str, Any]) -> bool:
    """Return True if a schema has an ``enum`` of strings alone, and no ``type`` that excludes them."""
    values = schema.get("enum")
    return (
        values is not None and schema.get("type", "string") == "string" and all(type(value) is str for value in values)
    )
