"""Keywords that constrain no value: names of schemas, definitions, and annotations."""

from __future__ import annotations

from .row import Draft, Holds, Keyword, Role, Shape

#: Keywords of Draft 3 that later drafts lack, and the keyword that says the same in these.
REPLACED = {"extends": "allOf", "disallow": "not", "divisibleBy": "multipleOf"}

#: A keyword of the draft after 2020-12, which is refused.
LATER = "propertyDependencies"

ROWS = (
    Keyword("$defs", Shape.BY_NAME, Role.DEFINITIONS, holds=Holds.PARTS),
    Keyword("definitions", Shape.BY_NAME, Role.DEFINITIONS, holds=Holds.PARTS),
    Keyword("$id", Shape.TEXT, Role.IDENTIFIER, since=Draft.DRAFT_6),
    Keyword("id", Shape.TEXT, Role.IDENTIFIER, until=Draft.DRAFT_6),
    Keyword("$schema", Shape.TEXT, Role.IDENTIFIER, holds=Holds.PARTS),
    Keyword("$anchor", Shape.TEXT, Role.IDENTIFIER, since=Draft.DRAFT_2019_09),
    Keyword("$dynamicAnchor", Shape.TEXT, Role.IDENTIFIER, since=Draft.DRAFT_2020_12),
    Keyword("$recursiveAnchor", Shape.FLAG, Role.IDENTIFIER, since=Draft.DRAFT_2019_09, until=Draft.DRAFT_2020_12),
    Keyword("title", Shape.TEXT, Role.ANNOTATION, holds=Holds.PARTS),
    Keyword("description", Shape.TEXT, Role.ANNOTATION, holds=Holds.PARTS),
    Keyword("$comment", Shape.TEXT, Role.ANNOTATION, holds=Holds.PARTS),
    Keyword("deprecated", Shape.FLAG, Role.ANNOTATION, holds=Holds.PARTS),
    Keyword("readOnly", Shape.FLAG, Role.ANNOTATION, holds=Holds.PARTS),
    Keyword("writeOnly", Shape.FLAG, Role.ANNOTATION, holds=Holds.PARTS),
    Keyword("default", Shape.VALUE, Role.ANNOTATION, holds=Holds.PARTS),
    Keyword("examples", Shape.VALUES, Role.ANNOTATION, holds=Holds.PARTS),
    Keyword("example", Shape.VALUE, Role.ANNOTATION, holds=Holds.PARTS),  # OpenAPI 3.0
    Keyword("contentSchema", Shape.SCHEMA, Role.ANNOTATION, "string", holds=Holds.PARTS),
)
