"""Where a subschema stands, and where its references lead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import referencing
import referencing.exceptions
import referencing.jsonschema

from ...errors import InvalidSchemaError, Place, UnsupportedSchemaError
from ...json_pointer import escape, reference_steps, step_into
from .keywords import KEYWORDS, VALIDATION, Draft

#: Dialects by the address of their metaschema, without a trailing ``#``, oldest first.
DIALECTS = {
    "http://json-schema.org/draft-04/schema": referencing.jsonschema.DRAFT4,
    "http://json-schema.org/draft-06/schema": referencing.jsonschema.DRAFT6,
    "http://json-schema.org/draft-07/schema": referencing.jsonschema.DRAFT7,
    "https://json-schema.org/draft/2019-09/schema": referencing.jsonschema.DRAFT201909,
    "https://json-schema.org/draft/2020-12/schema": referencing.jsonschema.DRAFT202012,
}

_AGES = {address: age for age, address in enumerate(DIALECTS)}

#: A schema by its address, for references that leave the document.
Registry = referencing.Registry


class Located:
    """A subschema and where it stands; equal iff the schema object (and what its references mean) is the same.

    Attributes:
        entered: what references mean here is known already, an address of its own included.

    Args:
        schema: the subschema.
        start: a JSON pointer: of the subschema itself, or of ``above`` if that is given.
        above: the subschema that this one stands in.
        steps: the way from there.
        resolver: what references mean here; None: they are relative to the document's root.
    """

    __slots__ = ("_above", "_start", "_steps", "entered", "key", "resolver", "schema")

    def __init__(
        self,
        schema: Any,
        start: str = "",
        above: Located | None = None,
        steps: tuple[str | int, ...] = (),
        resolver: Any = None,
    ) -> None:
        self.schema = schema
        self.resolver = resolver
        self.key: object
        if isinstance(schema, bool):
            self.key = schema
        else:
            self.key = id(schema) if resolver is None else (id(schema), *_scope(resolver))
        self.entered = False
        self._start = start
        self._above = above
        self._steps = steps

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Located) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def pointer(self) -> str:
        """The JSON pointer (RFC 6901); put together when asked for, since a deep one is long."""
        parts: list[str] = []
        here: Located = self
        while here._above is not None:
            parts.extend("/" + escape(step) for step in reversed(here._steps))
            here = here._above
        return here._start + "".join(reversed(parts))

    def child(self, *steps: str | int) -> Located:
        """The subschema some steps below."""
        schema = self.schema
        for step in steps:
            schema = schema[step]
        return Located(schema, "", self, steps, self.resolver)


@cache
def _specifications() -> Registry[Any]:
    """The metaschemas of the specifications; read when first needed."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    found: Registry[Any] = REGISTRY
    return found


def _scope(resolver: Any) -> tuple[str, ...]:
    """The addresses that a resolver has come through, nearest first, each once: what dynamic references depend on."""
    return tuple(dict.fromkeys([resolver._base_uri, *(uri for uri, _ in resolver.dynamic_scope())]))


class Document:
    """A schema document: its dialect, and how its references resolve. Nothing is ever fetched.

    Attributes:
        entries: how many keywords, names and listed values it has, about: those that were met when it was checked.
        demanding: identities of the schemas of which many must fail at once: what that asks is looked into (`explore`).

    Args:
        schema: the document.
        registry: schemas that references may name besides, by address. The specification's own metaschemas are known.
        dynamic: it uses ``$dynamicRef`` or ``$recursiveRef``, so what a subschema means depends on the way to it.
    """

    def __init__(
        self, schema: Any, registry: Registry[Any] | Mapping[str, Any] | None = None, dynamic: bool = False
    ) -> None:
        self.schema = schema
        self.registry = registry
        self.dynamic = dynamic
        self.entries = 0
        self.demanding: set[int] = set()
        self._targets: dict[str, Located] = {}
        self._words: dict[str, bool] = {}
        self.root = Located(schema, "", resolver=self._resolver if dynamic else None)

    @cached_property
    def dialect(self) -> Any:
        """The specification that ``$schema`` names; Draft 2020-12 when it names none that we know."""
        return list(DIALECTS.values())[self.age]

    @cached_property
    def age(self) -> int:
        """The number of the dialect (see `DIALECTS`)."""
        name = self.schema.get("$schema") if isinstance(self.schema, Mapping) else None
        return _AGES.get(str(name).rstrip("#"), len(_AGES) - 1)

    @cached_property
    def _validates(self) -> bool:
        """Whether the metaschema, if it is one that was handed in, has the vocabulary of assertions (core, 8.1)."""
        name = self.schema.get("$schema") if isinstance(self.schema, Mapping) else None
        if self.registry is None or not isinstance(name, str) or name.rstrip("#") in DIALECTS:
            return True
        try:
            contents = self._resolver.lookup(name).contents
        except referencing.exceptions.Unresolvable:
            return True
        vocabularies = contents.get("$vocabulary") if isinstance(contents, Mapping) else None
        return vocabularies is None or any(str(each).endswith("/validation") for each in vocabularies)

    def knows(self, keyword: str) -> bool:
        """Whether a keyword means something in this dialect. Unknown keywords are annotations."""
        known = self._words.get(keyword)
        if known is None:
            row = KEYWORDS.get(keyword)
            known = row is not None and row.is_in(self.age) and (keyword not in VALIDATION or self._validates)
            self._words[keyword] = known
        return known

    @property
    def ref_hides_siblings(self) -> bool:
        """Up to draft 7, keywords beside ``$ref`` are ignored."""
        return self.age < Draft.DRAFT_2019_09

    @property
    def contains_evaluates(self) -> bool:
        """Since 2020-12, items that match ``contains`` count as evaluated."""
        return self.age >= Draft.DRAFT_2020_12

    @cached_property
    def address(self) -> str:
        """The document's own address."""
        name = self.schema.get("$id" if self.age else "id") if isinstance(self.schema, Mapping) else None
        return name.rstrip("#") if isinstance(name, str) else ""

    @cached_property
    def _resolver(self) -> Any:
        given = self.registry
        if not isinstance(given, referencing.Registry):
            pairs = [(uri, self._resource(schema)) for uri, schema in (given or {}).items()]
            given = referencing.Registry().with_resources(pairs)
        registry = _specifications().combine(given)
        resource = self.dialect.create_resource(self.schema)
        keyword = "$id" if self.age else "id"
        if isinstance(self.schema, Mapping) and not isinstance(self.schema.get(keyword, ""), str):
            raise InvalidSchemaError(f"{keyword} is not a string", place=Place(pointer="", keyword=keyword))
        return registry.with_resource(self.address, resource).resolver_with_root(resource)

    def _resource(self, schema: Any) -> Any:
        return referencing.Resource.from_contents(schema, default_specification=self.dialect)

    def resolve(self, located: Located, keyword: str = "$ref") -> Located:
        """The subschema that ``$ref`` (or ``$dynamicRef``, ``$recursiveRef``) names.

        Raises:
            InvalidSchemaError: there is nothing at that place.
            UnsupportedSchemaError: the reference leaves the document.
        """
        ref = located.schema[keyword]
        if not isinstance(ref, str):
            raise InvalidSchemaError(
                f"{keyword} is not a string",
                hint="give a JSON pointer such as '#/$defs/name'",
                place=Place(pointer=located.pointer, keyword=keyword),
            )
        if located.resolver is None and keyword == "$ref" and (ref == "#" or ref.startswith("#/")):
            known = self._targets.get(ref)
            if known is None:
                known = self._targets[ref] = self._point(ref, located)
            return known
        try:
            resolver = located.resolver or self._resolver
            if keyword == "$recursiveRef":
                resolved = referencing.jsonschema.lookup_recursive_ref(resolver)
            else:
                resolved = resolver.lookup(ref)
        except (referencing.exceptions.Unresolvable, referencing.exceptions.NoSuchResource) as error:
            place = Place(pointer=located.pointer, keyword=keyword)
            if ref.startswith("#"):
                raise InvalidSchemaError(
                    f"{keyword} {ref!r} points at nothing", hint="check the spelling", place=place
                ) from None
            raise UnsupportedSchemaError(
                f"{keyword} {ref!r} leaves the document, and nothing is ever fetched",
                hint="put the schema under $defs and refer to it with '#/$defs/...', or hand it in with registry=",
                place=place,
            ) from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:  # all that has an address is read for it
            raise InvalidSchemaError(
                f"{keyword} {ref!r} cannot be looked up: something in the document is not a schema",
                hint="give a schema, or a mapping of schemas, wherever one belongs",
                place=Place(pointer=located.pointer, keyword=keyword),
            ) from error
        found = Located(resolved.contents, ref, resolver=self._settled(resolved.resolver))
        # A resource that was found by its address is entered; a place inside of one may begin another.
        found.entered = "#" not in ref or not ref.partition("#")[2].startswith("/")
        return found

    def _settled(self, resolver: Any) -> Any:
        """A resolver without the way that led to it, where nothing depends on that."""
        if self.dynamic or resolver._base_uri in _specifications():
            return resolver
        return None if resolver._base_uri == self.address else resolver._registry.resolver(resolver._base_uri)

    def _point(self, ref: str, located: Located) -> Located:
        """The subschema at a JSON pointer in the document, to which a ``$ref`` refers."""
        target: Any = self.schema
        resolver = None
        for step in reference_steps(ref):
            try:
                target = step_into(target, step)
            except LookupError:
                raise InvalidSchemaError(
                    f"$ref {ref!r} points at nothing",
                    hint="check the spelling of the pointer",
                    place=Place(pointer=located.pointer, keyword="$ref"),
                ) from None
            if isinstance(target, (dict, Mapping)) and self.is_resource(target):
                resolver = (resolver or self._resolver).in_subresource(self.dialect.create_resource(target))
        found = Located(target, ref[1:], resolver=None if resolver is None else self._settled(resolver))
        found.entered = True
        return found

    def is_resource(self, schema: Mapping[str, Any]) -> bool:
        """Whether a subschema has an address of its own."""
        name = schema.get("$id" if self.age else "id")
        return isinstance(name, str) and not name.startswith("#") and not ("$ref" in schema and self.ref_hides_siblings)

    def enter(self, located: Located) -> Located:
        """The subschema with what references mean inside it, which an address of its own changes."""
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
        resolver = located.resolver or self._resolver
        inner = resolver.in_subresource(self.dialect.create_resource(schema))
        if inner._base_uri == resolver._base_uri:
            return located
        found = Located(schema, "", located, (), self._settled(inner))
        found.entered = True
        return found
