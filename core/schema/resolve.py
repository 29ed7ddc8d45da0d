"""Where a subschema stands, and where its references lead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import referencing
import referencing.exceptions
import referencing.jsonschema

from ..errors import InvalidSchemaError, Place, UnsupportedSchemaError

#: Dialects by the address of their metaschema, without a trailing ``#``.
DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema": referencing.jsonschema.DRAFT202012,
    "https://json-schema.org/draft/2019-09/schema": referencing.jsonschema.DRAFT201909,
    "http://json-schema.org/draft-07/schema": referencing.jsonschema.DRAFT7,
    "http://json-schema.org/draft-06/schema": referencing.jsonschema.DRAFT6,
    "http://json-schema.org/draft-04/schema": referencing.jsonschema.DRAFT4,
}


class Located:
    """A subschema and where it stands; equal iff the schema object is the same.

    Args:
        schema: the subschema.
        start: a JSON pointer: of the subschema itself, or of ``above`` if that is given.
        above: the subschema that this one stands in.
        steps: the way from there.
    """

    __slots__ = ("_above", "_start", "_steps", "key", "schema")

    def __init__(
        self, schema: Any, start: str = "", above: Located | None = None, steps: tuple[str | int, ...] = ()
    ) -> None:
        self.schema = schema
        self.key: object = schema if isinstance(schema, bool) else id(schema)
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
            parts.extend("/" + str(step).replace("~", "~0").replace("/", "~1") for step in reversed(here._steps))
            here = here._above
        return here._start + "".join(reversed(parts))

    def child(self, *steps: str | int) -> Located:
        """The subschema some steps below."""
        schema = self.schema
        for step in steps:
            schema = schema[step]
        return Located(schema, "", self, steps)


class Document:
    """A schema document: its dialect, and how its references resolve. Nothing is ever fetched."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self.root = Located(schema, "")
        self._targets: dict[str, Located] = {}

    @cached_property
    def dialect(self) -> Any:
        """The specification that ``$schema`` names; Draft 2020-12 when it names none that we know."""
        name = self.schema.get("$schema") if isinstance(self.schema, Mapping) else None
        return DIALECTS.get(str(name).rstrip("#"), referencing.jsonschema.DRAFT202012)

    @cached_property
    def ref_hides_siblings(self) -> bool:
        """Up to draft 7, keywords beside ``$ref`` are ignored."""
        return self.dialect in (
            referencing.jsonschema.DRAFT4,
            referencing.jsonschema.DRAFT6,
            referencing.jsonschema.DRAFT7,
        )

    @cached_property
    def _registry(self) -> Any:
        resource = self.dialect.create_resource(self.schema)
        return referencing.Registry().with_resource("", resource)

    def resolve(self, located: Located) -> Located:
        """The subschema that ``$ref`` names.

        Raises:
            InvalidSchemaError: there is nothing at that place.
            UnsupportedSchemaError: the reference leaves the document.
        """
        ref = located.schema["$ref"]
        place = Place(pointer=located.pointer, keyword="$ref")
        if not isinstance(ref, str):
            raise InvalidSchemaError(
                "$ref is not a string", hint="give a JSON pointer such as '#/$defs/name'", place=place
            )
        known = self._targets.get(ref)
        if known is not None:
            return known
        if ref == "#" or ref.startswith("#/"):
            target: Any = self.schema
            for step in ref[2:].split("/") if len(ref) > 1 else ():
                step = unquote(step).replace("~1", "/").replace("~0", "~")
                try:
                    target = target[int(step)] if isinstance(target, list) else target[step]
                except (KeyError, IndexError, ValueError, TypeError):
                    raise InvalidSchemaError(
                        f"$ref {ref!r} points at nothing", hint="check the spelling of the pointer", place=place
                    ) from None
            found = Located(target, ref[1:])
        else:
            try:
                resolved = self._registry.resolver().lookup(ref)
            except (referencing.exceptions.Unresolvable, referencing.exceptions.NoSuchResource) as error:
                raise UnsupportedSchemaError(
                    f"$ref {ref!r} leaves the document, and nothing is ever fetched",
                    hint="put the schema under $defs and refer to it with '#/$defs/...'",
                    place=place,
                ) from error
            found = Located(resolved.contents, ref)
        self._targets[ref] = found
        return found
