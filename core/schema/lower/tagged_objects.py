"""Unions of objects that a tag tells apart: a first member, required, whose value is one of some constant strings.

The tags are one list of words, and an object is lowered when its tag is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...language import node_kinds
from ..normal.assertions import asserted
from ..read.located import Located, SignedSchema
from .context import GoalNodes
from .object_witnesses import spelled_name

if TYPE_CHECKING:
    from .objects import ObjectLowering


class _Lowering(GoalNodes, Protocol):
    """The part of `Lowering` that tags use.

    Attributes:
        objects: makes the nodes of objects.
    """

    objects: ObjectLowering

    def after_tag(self, located: Located) -> int:
        """Return what follows the tag of an object."""


#: The only keywords of an object that can have a tag, and those of its tag.
_PLAIN = frozenset({"type", "properties", "required", "additionalProperties"})
_CONSTANT = frozenset({"type", "const", "enum"})


class _Tag(NamedTuple):
    """The first member of some objects, which is required and a constant string."""

    name: str
    values: Sequence[str]


@dataclass(slots=True, eq=False)
class _AfterTag:
    """The family of the rules of the rest of an object after its tag.

    Attributes:
        lowering: expands the rules.
        options: by the number of a tag, the objects that have it.
    """

    lowering: _Lowering
    options: list[list[Located]]

    def __call__(self, number: int) -> int:
        """Return the rest of the objects with a tag."""
        return self.lowering.nodes.alt([self.lowering.after_tag(option) for option in self.options[number]])

    def as_empty_as(self, number: int) -> int:
        """Return a node that is empty if and only if no object with a tag can be completed."""
        lowering, options = self.lowering, self.options[number]
        if any(lowering.is_inhabited((SignedSchema(option),)) for option in options):
            return node_kinds.EPSILON
        return lowering.nodes.alt([lowering.subschema(option) for option in options])


def tagged_objects(lowering: _Lowering, options: Sequence[Located]) -> int | None:
    """Return the union of objects whose first member is the same tag; None if they are not.

    Args:
        lowering: lowers what follows a tag. Members come in the schema's order.
        options: the schemas of the objects, without references.
    """
    name: str | None = None
    by_tag: dict[str, list[Located]] = {}
    for option in options:
        schema = option.schema
        tag = _tag(schema) if isinstance(schema, Mapping) else None
        if tag is None or name not in (None, tag.name):
            return None
        name = tag.name
        for value in dict.fromkeys(tag.values):
            by_tag.setdefault(value, []).append(option)
    if name is None:
        return None
    nodes = lowering.nodes
    numbers = list(range(len(by_tag)))
    rests = nodes.lazy_each(_AfterTag(lowering, list(by_tag.values())), numbers, [node_kinds.UNASKED] * len(numbers))
    return lowering.objects.tagged(name, nodes.words(dict(zip(map(spelled_name, by_tag), rests, strict=True))))


def _tag(schema: Mapping[str, Any]) -> _Tag | None:
    """Return the tag of objects; None: they have none, or the schema has other keywords."""
    properties = schema.get("properties")
    if not properties or schema.get("type") != "object" or not asserted(schema) <= _PLAIN:
        return None
    name, tag = next(iter(properties.items()))
    values = listed_strings(tag) if name in schema.get("required", ()) else None
    return None if values is None else _Tag(name, values)


def listed_strings(schema: Any) -> Sequence[str] | None:
    """Return the strings that a schema lists, with ``enum`` or ``const``, if it constrains nothing else; else None."""
    if isinstance(schema, bool) or ("const" in schema) == ("enum" in schema) or not asserted(schema) <= _CONSTANT:
        return None
    values = schema["enum"] if "enum" in schema else (schema["const"],)
    are_strings = schema.get("type", "string") == "string" and all(type(value) is str for value in values)
    return values if are_strings else None
