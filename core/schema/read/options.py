"""How a schema is read and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...basics.options import OnUnsupported, PropertyOrder, Whitespace, require_word
from ..scalars.value_syntax import Arguments, NestedTags, ValueSyntax


@dataclass(frozen=True)
class SchemaOptions:
    """How a schema becomes a grammar.

    Attributes:
        whitespace: which spellings of JSON are allowed (see `toolgrammar.core.Grammar.from_json_schema`).
        additional_properties: the value of ``additionalProperties`` in schemas that do not mention it.
        property_order: ``"schema"``: members are written in the order in which the schema names them, others last;
            ``"any"``: in any order.
        on_unsupported: the treatment of a keyword that cannot be enforced exactly. ``"narrow"``: some of its valid
            values are left out, or it is refused if that is not possible; ``"error"``: it is refused; ``"validate"``:
            it is narrowed, or left out if that is not possible.
        formats: whether ``format`` asserts, or annotates only.
        strict_formats: a format that the specification does not know is refused; else it is an annotation.
        plain_integers: integers, and numbers that the schema lists, have one spelling under any whitespace policy, as
            Pydantic reads them: 1, neither 1.0 nor 1e0.
        registry: schemas that references may name, by address (or a ``referencing.Registry``).
        syntax: how values are written; None: as JSON.
        arguments: how the outermost object is written; None: like any other.
        is_marked: it is for reading (``core/language/reading_marks.py``).
    """

    whitespace: Whitespace = "single"
    additional_properties: bool = True
    property_order: PropertyOrder = "schema"
    on_unsupported: OnUnsupported = "narrow"
    formats: bool = True
    strict_formats: bool = False
    registry: Mapping[str, Any] | Any | None = field(default=None, hash=False)
    syntax: ValueSyntax | None = None
    arguments: Arguments | NestedTags | None = None
    plain_integers: bool = False
    is_marked: bool = False

    def __post_init__(self) -> None:
        """Refuse unknown words."""
        require_word("whitespace", self.whitespace, Whitespace)
        require_word("property_order", self.property_order, PropertyOrder)
        require_word("on_unsupported", self.on_unsupported, OnUnsupported)


def schema_options(
    whitespace: Whitespace,
    additional_properties: bool,
    property_order: PropertyOrder,
    on_unsupported: OnUnsupported,
    formats: bool,
    strict_formats: bool,
    registry: Mapping[str, Any] | Any | None,
    plain_integers: bool,
) -> SchemaOptions:
    """Return the options of documents in JSON's own syntax. Without a registry they are made and checked once, since
    requests ask for the same few."""
    leading = (whitespace, additional_properties, property_order, on_unsupported, formats, strict_formats)
    if registry is None:
        try:
            return _memoised(leading, plain_integers)
        except TypeError:  # a value is not hashable, and so not an option: `SchemaOptions` says which
            pass
    return SchemaOptions(*leading, registry, plain_integers=plain_integers)


@lru_cache(maxsize=64)
def _memoised(
    leading: tuple[Whitespace, bool, PropertyOrder, OnUnsupported, bool, bool], plain_integers: bool
) -> SchemaOptions:
    return SchemaOptions(*leading, plain_integers=plain_integers)
