"""References: a document means what ``jsonschema`` and ``referencing`` say, in every dialect; errors name the place."""

from __future__ import annotations

from typing import Any

import pytest
import referencing
import referencing.jsonschema

from toolgrammar.core import Grammar, InvalidSchemaError, UnsupportedSchemaError
from toolgrammar.core.schema.read.resolve import DIALECTS, Document

from .universe import UNIVERSE, accepted, valid

INT, STRING = {"type": "integer"}, {"type": "string"}
DRAFT_4, DRAFT_7, DRAFT_2019 = (f"{list(DIALECTS)[index]}#" for index in (0, 2, 3))

#: Documents that refer to schemas in the ways there are.
DOCUMENTS: dict[str, Any] = {
    "pointer": {"$ref": "#/$defs/x", "$defs": {"x": INT}},
    "escapes": {"allOf": [{"$ref": "#/$defs/a~1b~0c"}, {"$ref": "#/$defs/%25%20"}], "$defs": {"a/b~c": INT, "% ": INT}},
    "into an array": {"$ref": "#/anyOf/1", "anyOf": [STRING, INT]},
    "into properties": {"properties": {"a": INT, "b": {"$ref": "#/properties/a"}}},
    "root": {"properties": {"a": {"$ref": "#"}}, "maxProperties": 1},
    "chain": {"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/y"}, "y": INT}},
    "siblings count": {"$ref": "#/$defs/x", "minimum": 1, "$defs": {"x": INT}},
    "siblings are ignored": {"$schema": DRAFT_7, "$ref": "#/definitions/x", "minimum": 1, "definitions": {"x": INT}},
    "an address of its own": {
        "$id": "http://test.test/root",
        "properties": {"a": {"$ref": "part"}, "b": {"$ref": "#/$defs/x"}},
        "$defs": {"part": {"$id": "part", "$ref": "#/$defs/x", "$defs": {"x": STRING}}, "x": INT},
    },
    "through an address": {
        "$id": "http://test.test/root",
        "$ref": "#/$defs/part/$defs/y",
        "$defs": {"part": {"$id": "part", "$defs": {"x": STRING, "y": {"$ref": "#/$defs/x"}}}, "x": INT},
    },
    "anchor": {"$ref": "#here", "$defs": {"x": {"$anchor": "here", "type": "integer"}}},
    "anchor elsewhere": {
        "$id": "http://test.test/root",
        "$ref": "part#here",
        "$defs": {"part": {"$id": "part", "$defs": {"x": {"$anchor": "here", **STRING}}}, "x": {"$anchor": "here"}},
    },
    "draft 4": {
        "$schema": DRAFT_4,
        "id": "http://test.test/root",
        "$ref": "#/definitions/x",
        "definitions": {"x": INT},
    },
    "anchors of draft 7": {"$schema": DRAFT_7, "$ref": "#x", "definitions": {"x": {"$id": "#x", "type": "integer"}}},
    "dynamic, overridden": {
        "$id": "http://test.test/ints",
        "$ref": "list",
        "$defs": {
            "int": {"$dynamicAnchor": "item", "type": "integer"},
            "list": {
                "$id": "list",
                "items": {"$dynamicRef": "#item"},
                "$defs": {"any": {"$dynamicAnchor": "item"}},
            },
        },
    },
    "dynamic, as it stands": {
        "items": {"$dynamicRef": "#item"},
        "$defs": {"any": {"$dynamicAnchor": "item", "type": "string"}},
    },
    "recursive, overridden": {
        "$schema": DRAFT_2019,
        "$id": "http://test.test/closed",
        "$recursiveAnchor": True,
        "$ref": "tree",
        "maxProperties": 1,
        "$defs": {"tree": {"$id": "tree", "$recursiveAnchor": True, "additionalProperties": {"$recursiveRef": "#"}}},
    },
    "another document": {
        "items": {"$ref": "http://test.test/other#/$defs/x"},
        "properties": {"a": {"$ref": "urn:o:x"}},
    },
}

#: What the documents may refer to besides.
OTHERS = {
    "http://test.test/other": {"$id": "http://test.test/other", "$defs": {"x": {"$ref": "#/$defs/y"}, "y": INT}},
    "urn:o:x": STRING,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_mean_what_jsonschema_says(name: str) -> None:
    """Over a small universe, with two documents in the registry; no document takes everything."""
    resources = {
        uri: referencing.Resource.from_contents(each, default_specification=referencing.jsonschema.DRAFT202012)
        for uri, each in OTHERS.items()
    }
    registry = referencing.Registry().with_resources(resources.items())
    expected = valid(DOCUMENTS[name], registry=registry)
    assert accepted(DOCUMENTS[name], registry=OTHERS) == expected
    assert accepted(DOCUMENTS[name], registry=registry) == expected
    assert 0 < len(expected) < len(UNIVERSE)


def test_one_schema_is_one_place() -> None:
    """Two references to a schema lead to equal places, unless its own references mean something else there."""
    document = Document({"properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}}, "$defs": {"x": INT}})
    first, second = (document.resolve(document.root.child("properties", name)) for name in "ab")
    assert first == second and hash(first) == hash(second) and first.pointer == "/$defs/x"
    shared = {"$ref": "#/$defs/x"}
    parts = {name: {"$id": name, "allOf": [shared], "$defs": {"x": kind}} for name, kind in (("i", INT), ("s", STRING))}
    document = Document({"$id": "http://test.test/root", "$defs": parts})
    places = [document.enter(document.root.child("$defs", name)).child("allOf", 0) for name in "is"]
    assert places[0] != places[1] and places[0].schema is places[1].schema
    assert [document.resolve(place).schema for place in places] == [INT, STRING]


def test_pointers_are_escaped() -> None:
    """A place below names with ``/`` and ``~`` has them escaped."""
    place = Document({"properties": {"a/b": {"items": [{"~": {}}]}}}).root.child("properties", "a/b")
    assert place.child("items", 0).child("~").pointer == "/properties/a~1b/items/0/~0"


@pytest.mark.parametrize(
    ("schema", "error", "pointer"),
    [
        ({"items": {"$ref": "#/nowhere"}}, InvalidSchemaError, "/items"),
        ({"items": {"$ref": "#/items/0"}}, InvalidSchemaError, "/items"),
        ({"anyOf": [True, {"$ref": "#nowhere"}]}, InvalidSchemaError, "/anyOf/1"),
        ({"properties": {"a/b": {"$ref": 3}}}, InvalidSchemaError, "/properties/a~1b"),
        ({"items": {"$dynamicRef": "#nowhere"}}, InvalidSchemaError, "/items"),
        ({"items": {"$ref": "http://test.test/unknown"}}, UnsupportedSchemaError, "/items"),
        ({"items": {"$ref": "other.json"}}, UnsupportedSchemaError, "/items"),
    ],
    ids=repr,
)
def test_references_that_lead_nowhere(schema: Any, error: type[Exception], pointer: str) -> None:
    """A missing place in the document is a mistake; another document is never fetched."""
    with pytest.raises(error) as caught:
        Grammar.from_json_schema(schema)
    assert caught.value.place.pointer == pointer  # type: ignore[attr-defined]


def test_many_addresses_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """References to many schemas with an address of their own read the document once, not once for each."""
    read = 0
    honest = referencing.Resource.subresources

    def subresources(resource: Any) -> Any:
        nonlocal read
        read += 1
        return honest(resource)

    monkeypatch.setattr(referencing.Resource, "subresources", subresources)
    counts = []
    for many in (50, 200):
        read = 0
        schema = {
            "$id": "http://x/root",
            "type": "object",
            "properties": {f"p{i}": {"$ref": f"http://x/{i}"} for i in range(many)},
            "$defs": {f"d{i}": {"$id": f"http://x/{i}", "type": "array", "items": {"$ref": "#"}} for i in range(many)},
        }
        grammar = Grammar.from_json_schema(schema)
        assert grammar.matches('{"p7": [[], []]}') and not grammar.matches('{"p7": [1]}')
        counts.append(read)
    assert counts[1] < 5 * counts[0]
