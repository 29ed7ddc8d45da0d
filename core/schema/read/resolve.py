"""References between the subschemas of a document: dialects, base URIs, and the target of each reference."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import referencing
import referencing.exceptions
import referencing.jsonschema

from ...errors import InvalidSchemaError, Place, UnsupportedSchemaError
from ...json import reference_steps, step_into
from .keywords import KEYWORDS, Draft
from .located import Located
from .scope import Registry, Scope

#: Dialects by the address of their metaschema, without a trailing ``#``, oldest first.
DIALECTS = {
    "http://json-schema.org/draft-04/schema": referencing.jsonschema.DRAFT4,
    "http://json-schema.org/draft-06/schema": referencing.jsonschema.DRAFT6,
    "http://json-schema.org/draft-07/schema": referencing.jsonschema.DRAFT7,
    "https://json-schema.org/draft/2019-09/schema": referencing.jsonschema.DRAFT201909,
    "https://json-schema.org/draft/2020-12/schema": referencing.jsonschema.DRAFT202012,
}

#: The metaschema of Draft 3, of which the keywords are read that Draft 4 has, too.
_DRAFT_3 = "http://json-schema.org/draft-03/schema"

_AGES = {**{address: age for age, address in enumerate(DIALECTS)}, _DRAFT_3: 0}

#: The keywords of each dialect that mean something.
_KNOWN = [frozenset(row.name for row in KEYWORDS.values() if row.is_in(age)) for age in range(len(DIALECTS))]


@cache
def _specifications() -> Registry[Any]:
    """Return the metaschemas of the specifications; read when first needed."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    registry: Registry[Any] = REGISTRY
    return registry


@cache
def _specified() -> frozenset[str]:
    """Return the addresses of the metaschemas: to ask the registry itself takes much longer."""
    return frozenset(_specifications())


class Document:
    """A schema document: its dialect, and how its references resolve. Nothing is ever fetched.

    Attributes:
        age: the number of the dialect (see `DIALECTS`); that of Draft 2020-12 if ``$schema`` names no known dialect.
        is_draft_3: ``$schema`` names Draft 3; it is read as Draft 4.
        ref_hides_siblings: up to Draft 7, keywords beside ``$ref`` are ignored.
        contains_evaluates: since 2020-12, items that match ``contains`` count as evaluated.
        entries: approximate number of keywords, names and listed values; set by the check.
        values: number of these that are listed values, and the bytes that they take (estimated); set by the check.
        value_bytes: see ``values``.
        has_common: it has a format or a bound of `common_values`; set by the check.
        may_be_vast: counts and references multiply so far that a value may be too long for any model; set by the check.
        disjoint: identities of schemas with a ``oneOf`` of which no value satisfies two options.
        is_live: see below.

    Args:
        schema: the document.
        registry: other schemas that references may name, by address. The specification's own metaschemas are known.
        dynamic: it uses ``$dynamicRef`` or ``$recursiveRef``, so that the meaning of a subschema depends on the path to
            it.
        is_live: it has live values (``x-values``).
    """

    def __init__(
        self,
        schema: Any,
        registry: Registry[Any] | Mapping[str, Any] | None = None,
        dynamic: bool = False,
        is_live: bool = False,
    ) -> None:
        self.schema = schema
        self.is_live = is_live
        self.registry = registry
        self.dynamic = dynamic
        self._named = schema.get("$schema") if isinstance(schema, (dict, Mapping)) else None  # the metaschema's address
        address = "" if self._named is None else str(self._named).rstrip("#")
        self.age = _AGES.get(address, len(DIALECTS) - 1)
        self.is_draft_3 = address == _DRAFT_3
        self.ref_hides_siblings = self.age < Draft.DRAFT_2019_09
        self.contains_evaluates = self.age >= Draft.DRAFT_2020_12
        self._id = "$id" if self.age else "id"  # the keyword that gives a schema an address
        self.entries = self.values = self.value_bytes = 0
        self.has_common = False
        self.may_be_vast = False
        self.disjoint: set[int] = set()
        self._targets: dict[str, Located] = {}  # by reference
        # by the key of a schema with an address of its own: the scope inside it, in a tuple; None: the same as around
        self._entered: dict[object, tuple[Scope | None] | None] = {}
        self._known: frozenset[str] | None = None  # the keywords of the dialect, once they were asked for
        self._base: Scope | None = None  # the scope of the root, once it was asked for
        self.root = Located(schema, scope=self._scope() if dynamic else None)

    @property
    def dialect(self) -> Any:
        """The specification of the dialect."""
        return list(DIALECTS.values())[self.age]

    def _validates(self) -> bool:
        """Return True unless the metaschema is one that was handed in and lacks the vocabulary of assertions (core,
        section 8.1)."""
        name = self._named
        if self.registry is None or not isinstance(name, str) or name.rstrip("#") in DIALECTS:
            return True
        try:
            contents = self._scope().lookup(name).contents
        except (referencing.exceptions.Unresolvable, referencing.exceptions.NoSuchResource):
            return True
        vocabularies = contents.get("$vocabulary") if isinstance(contents, Mapping) else None
        return vocabularies is None or any(str(address).endswith("/validation") for address in vocabularies)

    def knows(self, keyword: str) -> bool:
        """Return True if a keyword means something in this dialect. Unknown keywords are annotations."""
        if self._known is None:
            known = _KNOWN[self.age]
            self._known = known if self._validates() else known - KEYWORDS.assertions
        return keyword in self._known

    @property
    def address(self) -> str:
        """The document's own address."""
        name = self.schema.get(self._id) if isinstance(self.schema, Mapping) else None
        return name.rstrip("#") if isinstance(name, str) else ""

    def _scope(self) -> Scope:
        """Return the scope of the document's root."""
        if self._base is None:
            self._base = self._read_scope()
        return self._base

    def _read_scope(self) -> Scope:
        """Return the registry of the document, the given schemas and the specifications, and the document's address in
        it."""
        given = self.registry
        if not isinstance(given, referencing.Registry):
            pairs = [(uri, self._resource(schema)) for uri, schema in (given or {}).items()]
            given = referencing.Registry().with_resources(pairs)
        if isinstance(self.schema, Mapping) and not isinstance(self.schema.get(self._id, ""), str):
            raise InvalidSchemaError(
                f"{self._id} is not a string",
                hint="give a URI, or remove it",
                place=Place(pointer="", keyword=self._id),
            )
        resource = self.dialect.create_resource(self.schema)
        address = resource.id() or ""
        registry = _specifications().combine(given).with_resources([(self.address, resource), (address, resource)])
        # Else each reference that leads to an address would look for all addresses in the document.
        with suppress(AttributeError, IndexError, TypeError, ValueError):  # what is malformed is found by its reference
            registry = registry.crawl()
        return Scope(registry, address)

    def _resource(self, schema: Any) -> Any:
        return referencing.Resource.from_contents(schema, default_specification=self.dialect)

    def resolve(self, located: Located, keyword: str = "$ref") -> Located:
        """Return the subschema that ``$ref`` (or ``$dynamicRef``, ``$recursiveRef``) names.

        Raises:
            InvalidSchemaError: the reference leads nowhere.
            UnsupportedSchemaError: the reference leaves the document.
        """
        reference = located.schema[keyword]
        local = located.scope is None and keyword == "$ref" and type(reference) is str
        if local:
            target = self._targets.get(reference)
            if target is not None:
                return target
        if not isinstance(reference, str):
            raise InvalidSchemaError(
                f"{keyword} is not a string",
                hint="give a JSON pointer such as '#/$defs/name'",
                place=Place(pointer=located.pointer, keyword=keyword),
            )
        if local and (reference == "#" or reference.startswith("#/")):
            target = self._targets[reference] = self._point(reference, located)
            return target
        resolved = self._looked_up(reference, located, keyword)
        # A resource that was found by its address is entered; a schema inside of one may begin another.
        entered = "#" not in reference or not reference.partition("#")[2].startswith("/")
        return Located(resolved.contents, reference, scope=self._settled(resolved.resolver), entered=entered)

    def _looked_up(self, reference: str, located: Located, keyword: str) -> Any:
        """Return the contents and the scope that a reference leads to, by its address (`Scope.lookup`).

        Raises:
            InvalidSchemaError, UnsupportedSchemaError: see `resolve`.
        """
        try:
            scope: Any = located.scope or self._scope()  # a resolver, for the library
            if keyword == "$recursiveRef":
                return referencing.jsonschema.lookup_recursive_ref(scope)
            return scope.lookup(reference)
        except (
            referencing.exceptions.Unresolvable,
            referencing.exceptions.NoSuchResource,
            referencing.exceptions.Unretrievable,
        ) as error:
            place = Place(pointer=located.pointer, keyword=keyword)
            nowhere = referencing.exceptions.PointerToNowhere, referencing.exceptions.NoSuchAnchor
            if reference.startswith("#") or isinstance(error, nowhere):  # the document is there
                raise InvalidSchemaError(
                    f"{keyword} {reference!r} points at nothing", hint="check the spelling", place=place
                ) from None
            raise UnsupportedSchemaError(
                f"{keyword} {reference!r} leaves the document, and nothing is ever fetched",
                hint="put the schema under $defs and refer to it with '#/$defs/...', or pass it with registry=",
                place=place,
            ) from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            # The library reads the whole document for addresses, and fails at a part that is not a schema.
            raise InvalidSchemaError(
                f"{keyword} {reference!r} cannot be looked up: something in the document is not a schema",
                hint="check that every value under properties, $defs and the like is an object, true or false",
                place=Place(pointer=located.pointer, keyword=keyword),
            ) from error

    def _settled(self, scope: Scope) -> Scope | None:
        """Return a scope without its dynamic scope, if nothing depends on that."""
        if self.dynamic or scope.address in _specified():
            return scope
        return None if scope.address == self.address else Scope(scope.registry, scope.address)

    def _point(self, reference: str, located: Located) -> Located:
        """Return the subschema at a JSON pointer in the document, to which a ``$ref`` refers."""
        target: Any = self.schema
        scope: Scope | None = None
        is_plain = reference != "#" and "%" not in reference and "~" not in reference
        steps = reference[2:].split("/") if is_plain else reference_steps(reference)  # here most take no call
        for step in steps:
            if type(target) is dict and step in target:  # almost always
                target = target[step]
            else:
                try:
                    target = step_into(target, step)
                except LookupError:
                    raise InvalidSchemaError(
                        f"$ref {reference!r} points at nothing",
                        hint="check the spelling of the pointer",
                        place=Place(pointer=located.pointer, keyword="$ref"),
                    ) from None
            if (type(target) is dict or isinstance(target, Mapping)) and self.is_resource(target):
                scope = (scope or self._scope()).at(target[self._id])
        settled = None if scope is None else self._settled(scope)
        return Located(target, reference[1:], scope=settled, entered=True)

    def is_resource(self, schema: Mapping[str, Any]) -> bool:
        """Return True if a subschema has an address of its own."""
        if self._id not in schema:
            return False
        name = schema[self._id]
        return isinstance(name, str) and not name.startswith("#") and not ("$ref" in schema and self.ref_hides_siblings)

    def enter(self, located: Located) -> Located:
        """Return the subschema with the scope for references inside it: an ``$id`` of its own changes the scope."""
        if located.entered:
            return located
        schema = located.schema
        if (
            not isinstance(schema, (dict, Mapping))
            or located is self.root
            or located.key == self.root.key
            or not self.is_resource(schema)
        ):
            located.entered = True
            return located
        key = located.key
        if key not in self._entered:
            outer = located.scope or self._scope()
            inner = outer.at(schema[self._id])
            self._entered[key] = None if inner.address == outer.address else (self._settled(inner),)
        entered = self._entered[key]
        if entered is None:  # the same scope as around
            located.entered = True
            return located
        return Located(schema, "", located, (), entered[0], entered=True)
