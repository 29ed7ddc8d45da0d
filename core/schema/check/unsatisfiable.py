"""The innermost place of a schema that no value can satisfy."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import Place, UnsatisfiableSchemaError
from ...language.nodes import Nodes
from ..lower.lowering import Lowering
from ..read.located import Located

_CONTRADICTION = "look for constraints that contradict each other"


def unsatisfiable(lowering: Lowering, nodes: Nodes) -> UnsatisfiableSchemaError:
    """Return the error for a schema that no value can satisfy.

    Args:
        lowering: of the whole document.
        nodes: the store that it lowers into.
    """
    return _Search(lowering, nodes).error(lowering.normaliser.document.root)


class _Search:
    """Descends into what must be there, as long as that cannot be there."""

    def __init__(self, lowering: Lowering, nodes: Nodes) -> None:
        self.lowering = lowering
        self.document = lowering.normaliser.document
        self.nodes = nodes

    def error(self, located: Located) -> UnsatisfiableSchemaError:
        """Return the reason why no value can satisfy a subschema."""
        seen: set[object] = set()
        while True:
            located = self.document.enter(located)
            if located.key in seen or not isinstance(located.schema, Mapping):
                break
            seen.add(located.key)
            inner = next((needed for needed in self._needed(located) if self._is_empty(needed)), None)
            if inner is None:
                break
            located = inner
        name = self._undeclared(located)
        if name is not None:
            return UnsatisfiableSchemaError(
                f"no value can satisfy the schema: {name!r} is required, but is not among the properties, "
                "and others are not allowed",
                hint=f"declare {name!r} under properties, or leave it out of required",
                place=Place(pointer=located.pointer, keyword="required"),
            )
        return UnsatisfiableSchemaError(
            "no value can satisfy the schema", hint=_CONTRADICTION, place=Place(pointer=located.pointer)
        )

    def _is_empty(self, located: Located) -> bool:
        return self.nodes.is_empty(self.lowering.subschema(located))

    def _needed(self, located: Located) -> list[Located]:
        """Return the subschemas that must have a value if the schema is to have one."""
        schema, asserts = located.schema, self.lowering.normaliser.asserts
        needed: list[Located] = []
        if asserts(located, "$ref"):
            needed.append(self.document.resolve(located))
            if self.document.ref_hides_siblings:
                return needed
        if asserts(located, "allOf"):
            needed += [located.child("allOf", index) for index in range(len(schema["allOf"]))]
        for keyword in ("anyOf", "oneOf"):
            if asserts(located, keyword) and len(schema[keyword]) == 1:
                needed.append(located.child(keyword, 0))
        properties = schema.get("properties", {})
        if self._is_only(located, "object") and isinstance(schema.get("required"), (list, tuple)):
            needed += [located.child("properties", name) for name in schema["required"] if name in properties]
        if self._is_only(located, "array") and asserts(located, "minItems"):
            prefix = schema.get("prefixItems", ())
            needed += [
                located.child("prefixItems", index) for index in range(min(len(prefix), int(schema["minItems"])))
            ]
            if isinstance(schema.get("items"), (Mapping, bool)) and schema["minItems"] > len(prefix):
                needed.append(located.child("items"))
        return needed

    def _undeclared(self, located: Located) -> str | None:
        """Return a required name that a closed object does not declare."""
        schema, normaliser = located.schema, self.lowering.normaliser
        if not isinstance(schema, Mapping) or not self._is_only(located, "object"):
            return None
        properties, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        additional = schema.get(
            "additionalProperties", self.lowering.options.additional_properties or "properties" not in schema
        )
        names = schema.get("required", ())
        if additional is not False or not isinstance(names, (list, tuple)):
            return None
        for name in names:
            if name not in properties and not any(normaliser.matches(pattern, name) for pattern in patterns):
                return str(name)
        return None

    @staticmethod
    def _is_only(located: Located, kind: str) -> bool:
        return located.schema.get("type") in (kind, [kind])
