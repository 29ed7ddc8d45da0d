"""The table of JSON Schema keywords, and walks of the schemas in their values.

A keyword is a row with its functions (`core/schema/keywords/`). All that knows keywords follows the rows of this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...json.values import TYPES
from ..keywords import any_value, applied, arrays, live, numbers, objects, other, strings
from ..keywords.row import Draft, Holds, Keyword, Role, Shape, Steps
from ..keywords.strings import GRAMMAR

__all__ = [
    "GRAMMAR",
    "KEYWORDS",
    "TYPES",
    "Draft",
    "Holds",
    "Keyword",
    "KeywordTable",
    "Role",
    "Shape",
]

#: Annotations of other tools and specifications, in addition to keys that begin with ``x-``.
_FOREIGN_ANNOTATIONS = frozenset(
    {
        "propertyOrdering", "discriminator", "xml", "externalDocs", "contentMediaType", "contentEncoding", "strict",
        "enumNames", "enumDescriptions", "markdownDescription", "examples", "order", "$vocabulary", "defaultSnippets",
        "errorMessage", "deprecationMessage", "doNotSuggest", "markdownEnumDescriptions", "tsType", "tsEnumNames",
        "javaType", "patternErrorMessage", "allowComments", "allowTrailingCommas",
    }
)  # fmt: skip

#: Shapes of one schema, of a list of schemas (`Shape.ITEMS` may be either), and of schemas by a name.
_ONE = (Shape.SCHEMA, Shape.ITEMS)
_LISTS = (Shape.SCHEMAS, Shape.ALTERNATIVES, Shape.ITEMS)
_NAMED = (Shape.BY_NAME, Shape.BY_PATTERN, Shape.DEPENDENCIES)

#: Python types of a dependency that lists names (in Draft 3, one name), instead of being a schema.
_NAMES = (list, tuple, str)


class KeywordTable(dict[str, Keyword]):
    """Every keyword with a meaning here, by name. All others are annotations.

    Attributes:
        one_schema: keywords whose value is one schema.
        schema_lists: whose value is a list of schemas.
        schema_maps: whose value is schemas by name or by pattern.
        data: whose value is data, in which nothing is a schema although it may look like one.
        annotations: that constrain nothing.
        foreign_annotations: annotations of other tools and specifications, in addition to keys that begin with ``x-``.
        references: that refer to a schema.
        assertions: the vocabulary of assertions (Draft 2020-12 validation, section 6), which a metaschema may leave
            out.
        definitions: that hold schemas for references.
        applicators: that apply other schemas to the same value: without them, the assertions of a schema are one
            conjunction.
        constraining: that may constrain a value, or make others do so.
        listing: those of an object that lists all that it may have: no other keyword speaks of its members.
    """

    def __init__(self, rows: Iterable[Keyword]) -> None:
        super().__init__((row.name, row) for row in rows)
        self.one_schema = frozenset(self.named(shapes=(Shape.SCHEMA,)))
        self.schema_lists = frozenset(self.named(shapes=(Shape.SCHEMAS, Shape.ALTERNATIVES)))
        self.schema_maps = frozenset(self.named(shapes=(Shape.BY_NAME, Shape.BY_PATTERN)))
        self.data = frozenset(self.named(shapes=(Shape.VALUE, Shape.VALUES)))
        self.annotations = frozenset(self.named(roles=(Role.ANNOTATION,)))
        self.foreign_annotations = _FOREIGN_ANNOTATIONS
        self.references = self.named(roles=(Role.REFERENCE,))
        standard = {*self.named(roles=(Role.ASSERTION,)), *self.named(shapes=(Shape.REQUIREMENTS,))}
        self.assertions = frozenset(name for name in standard if not name.startswith("x-"))  # ours are of no vocabulary
        self.definitions = frozenset(self.named(roles=(Role.DEFINITIONS,)))
        self.applicators = frozenset(self.named(roles=(Role.REFERENCE, Role.SAME_VALUE, Role.REMAINDER)))
        self.constraining = self.applicators.union(
            self.named(roles=(Role.PARTS, Role.ASSERTION, Role.FORMAT, Role.LIVE))
        )
        self.listing = frozenset(("type", "properties", "required", "additionalProperties", "$schema", "$defs"))
        self.listing |= {"title", "description"}

    def named(
        self,
        *,
        shapes: Iterable[Shape] = tuple(Shape),
        roles: Iterable[Role] = tuple(Role),
        types: Iterable[str | None] = (None, *TYPES),
    ) -> tuple[str, ...]:
        """Return the keywords of these shapes, roles and JSON types, in the order of the table."""
        shapes, roles, types = frozenset(shapes), frozenset(roles), frozenset(types)
        return tuple(
            row.name for row in self.values() if row.shape in shapes and row.role in roles and row.type in types
        )

    def map_schemas(self, schema: Any, change: Callable[[dict[str, Any]], Any]) -> Any:
        """Return a schema in which a change was made to it and to every schema inside, inner schemas first.

        The values of ``data`` are unchanged. The values of unknown keywords are changed, since a reference may lead
        there.
        """
        if isinstance(schema, list):
            return [self.map_schemas(inner, change) for inner in schema]
        if not isinstance(schema, Mapping):
            return schema

        def within(inner: Any, *steps: str | int) -> Any:
            return self.map_schemas(inner, change)

        return change(
            {
                key: self.map_subschemas(key, value, within) if key in self else within(value)
                for key, value in schema.items()
            }
        )

    def every_schema(self, schema: Any) -> Iterator[Mapping[str, Any]]:
        """Yield a schema and every schema inside, if they are objects: the schemas that `map_schemas` changes."""
        waiting = [schema]
        while waiting:
            part = waiting.pop()
            if isinstance(part, list):
                waiting += part
            elif isinstance(part, Mapping):
                yield part
                for key, value in part.items():
                    waiting += [inner for _, inner in self.subschemas(key, value)] if key in self else [value]

    def subschemas(self, keyword: str, value: Any) -> Iterator[tuple[Steps, Any]]:
        """Yield each schema in a keyword's value after the steps that lead to it; a value of another shape has none."""
        row = self.get(keyword)
        if row is None or row.shape > Shape.DEPENDENCIES:
            return
        if row.shape in _NAMED:
            if isinstance(value, (dict, Mapping)):
                for name, inner in value.items():
                    if row.shape is not Shape.DEPENDENCIES or not isinstance(inner, _NAMES):
                        yield (name,), inner
        elif isinstance(value, (list, tuple)):
            if row.shape in _LISTS:
                for index, inner in enumerate(value):
                    yield (index,), inner
        elif row.shape in _ONE:
            yield (), value

    def map_subschemas(self, keyword: str, value: Any, change: Callable[..., Any]) -> Any:
        """Return a keyword's value with each schema in it changed; a value of another shape as it is.

        Args:
            keyword: its name.
            value: its value.
            change: takes a schema, and its name or index if it is one of several.
        """
        row = self.get(keyword)
        if row is None or row.shape > Shape.DEPENDENCIES:
            return value
        if row.shape in _NAMED:
            if not isinstance(value, Mapping):
                return value
            names = _NAMES if row.shape is Shape.DEPENDENCIES else ()
            return {name: inner if isinstance(inner, names) else change(inner, name) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [change(inner, index) for index, inner in enumerate(value)] if row.shape in _LISTS else value
        return change(value) if row.shape in _ONE else value


KEYWORDS = KeywordTable(
    row for module in (objects, any_value, applied, arrays, strings, numbers, live, other) for row in module.ROWS
)
