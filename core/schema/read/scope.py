"""The address that references in a part of a document are relative to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urldefrag, urljoin

import referencing
import referencing.jsonschema

from ...basics.cached import cached_property
from ...basics.recent_memo import memoised_if_short

#: Schemas by address, for references that leave the document.
Registry = referencing.Registry

#: Addresses that were joined lately: many schemas use the same.
_joined = memoised_if_short(1_024)(urljoin)


@dataclass(frozen=True)
class Scope:
    """The address that references are relative to: a resolver in the sense of ``referencing``.

    Attributes:
        registry: the schemas that have addresses.
        address: the base URI.
        previous: the base URIs that references came through, nearest first (the dynamic scope).
        key: equal iff references mean the same.
    """

    registry: Registry[Any] = field(compare=False)
    address: str
    previous: tuple[str, ...] = ()

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The addresses, each once."""
        return tuple(dict.fromkeys((self.address, *self.previous)))

    def lookup(self, reference: str) -> Any:
        """Return the ``referencing.jsonschema`` contents and scope that a reference leads to.

        Raises:
            referencing.exceptions.NoSuchResource, Unretrievable, Unresolvable: it leads nowhere.
        """
        if reference.startswith("#"):
            address, fragment = self.address, reference[1:]
        else:
            address, fragment = urldefrag(_joined(self.address, reference))
        retrieved = self.registry.get_or_retrieve(address)
        if fragment.startswith("/"):
            return retrieved.value.pointer(fragment, self._moved(retrieved.registry, address))
        if fragment:
            anchor = retrieved.registry.anchor(address, fragment)
            return anchor.value.resolve(self._moved(anchor.registry, address))
        return retrieved.value.pointer("", self._moved(retrieved.registry, address))

    def _moved(self, registry: Registry[Any], address: str) -> Any:
        moves = self.address and (not self.previous or address != self.address)
        return Scope(registry, address, (self.address, *self.previous) if moves else self.previous)

    def in_subresource(self, resource: referencing.Resource[Any]) -> Scope:
        """Return the scope inside a schema that may have an address of its own."""
        name = resource.id()
        return self if name is None else self.at(name)

    def at(self, name: str) -> Scope:
        """Return the scope inside a schema of this address."""
        return Scope(self.registry, _joined(self.address, name.rstrip("#")), self.previous)

    def dynamic_scope(self) -> Iterator[tuple[str, Registry[Any]]]:
        """Yield the addresses that references came through, nearest first."""
        return ((address, self.registry) for address in self.previous)
