"""Built-in grammars: random texts, read by the parser that each notation has."""

from __future__ import annotations

import ast
import csv
import io
import json
import random
import re
import sqlite3
import uuid
from collections.abc import Callable
from datetime import date
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from toolgrammar.core import Grammar, GrammarError
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.tools import ToolSet

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "weight": {"type": "number"},
        "kind": {"enum": ["a,b", 'q"x', "p|q\\", "<&>", "z", 1e30]},
        "ok": {"type": ["boolean", "null"]},
        "born": {"$ref": "#/$defs/day"},
    },
    "required": ["name", "age", "weight", "kind", "ok"],
    "additionalProperties": False,
    "$defs": {"day": {"type": "string", "format": "date"}},
}
NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1, "maxItems": 4},
        "size": {"type": "object", "properties": {"w": {"type": "number"}, "h": {"type": "number"}}, "required": ["w"]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
    },
    "required": ["title", "tags", "size"],
    "$defs": {
        "part": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}}},
            "required": ["id"],
        }
    },
}
TABLES: dict[str, dict[str, str]] = {
    "people": {"id": "integer", "name": "string", "member": "boolean"},
    "order": {"id": "integer", "person": "integer", "total price": "number", "select": "string"},
}


def scalar(text: str, schema: dict[str, Any]) -> Any:
    """Return the value of a cell, as the type of its column says."""
    kinds = schema.get("type", "string")
    if text == "" and "null" in kinds:
        return None
    if kinds in ("integer", "number") or kinds == ["boolean", "null"]:
        return json.loads(text)
    return 1e30 if text == "1e+30" else text


def row_is_valid(cells: list[str]) -> bool:
    """Return True if the cells of a row are a person; an empty one of a property that is not required is none."""
    person = {
        name: scalar(cell, schema)
        for (name, schema), cell in zip(PERSON["properties"].items(), cells, strict=True)
        if cell or name in PERSON["required"]
    }
    jsonschema.validate(person, PERSON)
    return True


def reads_csv(text: str) -> bool:
    """Read a table of people."""
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    return header == list(PERSON["properties"]) and all(map(row_is_valid, rows))


def reads_one_column(text: str) -> bool:
    """Read a table of one column: as many records as lines are meant."""
    records = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    return all(len(record) == 1 for record in records)


def reads_markdown(text: str) -> bool:
    """Read a table of people by the rules of GitHub's Markdown: a pipe that is not escaped ends a cell."""
    rows = []
    for line in text.rstrip("\n").split("\n"):
        cells = re.findall(r"((?:[^|\\]|\\.)*)\|", line[1:])
        rows.append([re.sub(r"\\(.)", r"\1", cell[1:-1] if len(cell) > 1 else "") for cell in cells])
    header, delimiters, *body = rows
    return (
        header == list(PERSON["properties"])
        and all(re.fullmatch(":?-{3,}:?", cell) for cell in delimiters)
        and all(map(row_is_valid, body))
    )


def reads_xml(text: str) -> bool:
    """Read XML of given elements."""
    root = ElementTree.fromstring(text)
    allowed = {"page": {"id", "lang", "x"}, "p": set(), "br": {"n"}}
    return all(set(element.attrib) <= allowed[element.tag] for element in root.iter())


def of_element(element: ElementTree.Element, schema: dict[str, Any]) -> Any:
    """Return the value of an element, as a schema says."""
    schema = NESTED["$defs"]["part"] if "$ref" in schema else schema
    if schema["type"] != "object":
        assert not list(element)
        return scalar(element.text or "", schema)
    value: dict[str, Any] = {}
    for child in element:
        member = schema["properties"][child.tag]
        if member.get("type") == "array":
            value.setdefault(child.tag, []).append(of_element(child, member["items"]))
        else:
            assert child.tag not in value
            value[child.tag] = of_element(child, member)
    return value


def reads_nested_xml(text: str) -> bool:
    """Read the XML of a value of the nested schema."""
    jsonschema.validate(of_element(ElementTree.fromstring(text), NESTED), NESTED)
    return True


def reads_yaml(schema: Any) -> Callable[[str], bool]:
    """Read YAML, and compare its value with a schema; what is also JSON means the same there."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

    def read(text: str) -> bool:
        value = yaml.safe_load(text)
        jsonschema.validate(value, schema)
        for line in text.split("\n") if schema is PERSON else ():
            name, _, written = line.partition(": ")
            assert not name or value[name] == json.loads(written)
        return True

    return read


def reads_python(schema: Any) -> Callable[[str], bool]:
    """Read a Python literal, and compare its value with a schema."""

    def read(text: str) -> bool:
        value = ast.literal_eval(text)
        if schema is not True:
            jsonschema.validate(value, schema)
        return True

    return read


def reads_jsonl(text: str) -> bool:
    """Read JSON Lines."""
    for line in text.splitlines() if "\u2028" not in text else text.split("\n")[:-1]:
        jsonschema.validate(json.loads(line), PERSON)
    return text.endswith("\n") or not text


def runs_sql(text: str) -> bool:
    """Compile a statement in SQLite, and read it with sqlglot where that is installed."""
    database = sqlite3.connect(":memory:")
    types = {"integer": "INTEGER", "number": "REAL", "string": "TEXT", "boolean": "BOOLEAN"}
    for table, columns in TABLES.items():
        database.execute(
            f'CREATE TABLE "{table}" ({", ".join(f"{chr(34)}{c}{chr(34)} {types[t]}" for c, t in columns.items())})'
        )
    database.execute("EXPLAIN " + text)
    try:
        import sqlglot
    except ImportError:
        return True
    tree = sqlglot.parse_one(text, dialect="postgres")
    assert isinstance(tree, sqlglot.exp.Select)
    from_tables = {table.name for table in tree.find_all(sqlglot.exp.Table)}
    for column in tree.find_all(sqlglot.exp.Column):
        owners = [column.table] if column.table else from_tables
        assert any(column.name in TABLES[owner] for owner in owners), (column, text)
    return from_tables <= set(TABLES)


CASES: dict[str, tuple[Grammar, Callable[[str], bool]]] = {
    "csv": (Grammar.csv(PERSON, min_rows=1), reads_csv),
    "csv of one column": (Grammar.csv(["a"], header=False, newline="\n", min_rows=2), reads_one_column),
    "markdown": (Grammar.markdown_table(PERSON, min_rows=1), reads_markdown),
    "xml of tags": (Grammar.xml(tags={"page": ["id", "lang", "x"], "p": [], "br": ["n"]}), reads_xml),
    "xml of a schema": (Grammar.xml(NESTED), reads_nested_xml),
    "yaml": (Grammar.yaml(), reads_yaml(True)),
    "yaml of a schema": (Grammar.yaml(PERSON), reads_yaml(PERSON)),
    "yaml of a nested schema": (Grammar.yaml(NESTED), reads_yaml(NESTED)),
    "yaml in flow style": (Grammar.yaml({"type": "array", "items": NESTED["properties"]["size"]}), reads_yaml(True)),
    "python": (Grammar.python_literal(), reads_python(True)),
    "python of a schema": (Grammar.python_literal(NESTED), reads_python(NESTED)),
    "json lines": (Grammar.jsonl(PERSON, min_items=1, max_items=4), reads_jsonl),
    "sql": (Grammar.sql_select(TABLES), runs_sql),
}


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_parsers_read_every_text(name: str, request: pytest.FixtureRequest) -> None:
    """The notation's own parser reads random texts: 10,000 in a slow run."""
    grammar, reads = CASES[name]
    draw = random.Random(name)
    seen = set()
    for _ in range(10_000 if request.config.getoption("--slow") else 150):
        text = random_text(grammar, draw, draw.choice([20, 100, 300]))
        assert grammar.matches(text)
        assert reads(text), text
        seen.add(text)
    assert len(seen) > 30


def test_formats() -> None:
    """A format is a language without quotes; texts are read by their own parsers."""
    draw = random.Random(5)
    for _ in range(100):
        date.fromisoformat(random_text(Grammar.format("date"), draw))
        uuid.UUID(random_text(Grammar.format("uuid"), draw))
    semver = Grammar.format("semver")
    assert all(map(semver.matches, ["1.0.0", "1.2.3-alpha.1+build.01", "0.0.4", "1.0.0-0A.is.legal", "2.0.0+build"]))
    assert not any(map(semver.matches, ["1.0", "01.0.0", "1.0.0-01", "1.0.0-", "v1.0.0", "1.0.0-a..b"]))
    mail = Grammar.format("email")
    assert mail.matches("a.b@example.org") and not mail.matches("a@b@c") and not mail.matches("a b@c.de")


def test_texts_that_people_write() -> None:
    """Usual texts are in the languages."""
    table = Grammar.csv({"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}, newline="\n")
    assert table.matches('id,name\n1,Ann\n2,"Smith, J.\n""Joe"""\n') and table.matches("id,name")
    assert not table.matches("id,name\nx,Ann") and not table.matches("id,name\n1") and not table.matches("name,id\n")
    page = Grammar.xml(tags={"a": ["href", "id"], "b": []}, root="a")
    assert page.matches('<a id="1" href="x&amp;y">1 &lt; 2<b/>\n<!-- so --><![CDATA[<]]></a>')
    for wrong in ('<a id="1" id="2"/>', "<a></b>", "<b/>", "<a>&</a>", "<a><a></a>", "<c/>", "<a x='1'/>"):
        assert not page.matches(wrong), wrong
    query = Grammar.sql_select(TABLES)
    assert query.matches(
        "SELECT name, id FROM people WHERE id > 3 AND (name LIKE 'A%' OR name IS NULL) ORDER BY id LIMIT 5;"
    )
    assert query.matches('SELECT people.name FROM people JOIN "order" ON people.id = "order".person')
    assert query.matches("SELECT name, COUNT(*) FROM people GROUP BY name")
    for wrong in (
        "SELECT total FROM people",
        "SELECT name FROM people WHERE id = 'x'",
        "DROP TABLE people",
        "SELECT *",
    ):
        assert not query.matches(wrong), wrong
    assert Grammar.yaml().matches("name: Ann\nlist:\n  - a: 1\n".replace("- a: 1", "-\n    a: 1"))
    assert not Grammar.yaml().matches("a: b: c") and not Grammar.yaml().matches("a: yes")
    assert Grammar.python_literal().matches("{'a': [1, (2,), {3}], 4: None}")
    assert not Grammar.python_literal().matches("{[1]: 2}") and not Grammar.python_literal().matches("f()")


def test_builders_compose() -> None:
    """A built-in is a grammar like every other, beside schemas, free text and the calls of tools."""

    def weather(city: str) -> str:
        """Tell the weather."""
        return city

    calls = ToolSet(ToolSet.from_any([weather])).grammar(tool_choice="required")
    answer = Grammar.until("```csv\n") + Grammar.csv(["a", "b"], newline="\n") + Grammar.literal("\n```\n") + calls
    call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    assert answer.matches(f"See:\n```csv\na,b\n1,2\n```\n{call}") and not answer.matches(f"```csv\na,b\n1\n```\n{call}")
    version = Grammar.literal('version = "') + Grammar.format("semver") + Grammar.literal('"')
    assert version.matches('version = "1.2.3"')


def test_builtins_are_values() -> None:
    """Equal arguments make equal grammars, which print as what made them."""
    assert Grammar.csv(["a"]) == Grammar.csv(["a"]) != Grammar.csv(["b"])
    assert hash(Grammar.xml(tags=["a"])) == hash(Grammar.xml(tags=["a"]))
    assert eval(repr(Grammar.sql_select({"t": ["a"]}, joins=False))) == Grammar.sql_select({"t": ["a"]}, joins=False)
    assert eval(repr(Grammar.yaml())) == Grammar.yaml() and repr(Grammar.format("date")) == "Grammar.format('date')"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grammar.csv({"properties": {"a": {"type": "array"}}}), "array"),
        (lambda: Grammar.csv({}), "has none"),
        (lambda: Grammar.csv(["a"], min_rows=2, max_rows=1), "between 2 and 1"),
        (lambda: Grammar.xml(), "either"),
        (lambda: Grammar.xml(tags=["a b"]), "cannot name"),
        (lambda: Grammar.xml({"type": "object", "patternProperties": {}}), "no form in XML"),
        (lambda: Grammar.sql_select({}), "needs a table"),
        (lambda: Grammar.sql_select({"t": {"a": "blob"}}), "no known type"),
        (lambda: Grammar.format("soup"), "unknown format 'soup'"),
        (lambda: Grammar.jsonl(whitespace="flexible"), "line break"),
    ],
)
def test_errors(make: Callable[[], Grammar], message: str) -> None:
    """What has no meaning is refused, with a hint."""
    with pytest.raises(GrammarError, match=message) as raised:
        make()
    assert raised.value.hint
