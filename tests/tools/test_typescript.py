"""TypeScript declarations become the schemas that TypeScript means."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, LimitError, SchemaError, UnsupportedSchemaError
from toolgrammar.tools import ToolSet, schema_from_typescript, tools_from_typescript

CORPUS = Path(__file__).with_name("typescript_corpus.txt")
TOOL = "tool: "


def corpus() -> dict[str, tuple[str, Any]]:
    """Declarations and what they come to, by name: a schema for the type ``T``, a list of tools after ``tool:``."""
    cases: dict[str, tuple[str, Any]] = {}
    for part in re.split(r"^=== ", CORPUS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        text, expected = rest.split("\n---\n")
        assert name not in cases
        cases[name] = (text, json.loads(expected))
    return cases


CASES = corpus()


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(TOOL)])
def test_types(name: str) -> None:
    """A type is the schema that the corpus says, which is well-formed and can be enforced."""
    text, expected = CASES[name]
    schema = schema_from_typescript(text, "T")
    assert schema == expected
    jsonschema.Draft202012Validator.check_schema(schema)
    assert Grammar.from_json_schema(schema, additional_properties=False)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(TOOL)])
def test_tools(name: str) -> None:
    """Declarations are the tools that the corpus says, and their calls have a grammar."""
    text, expected = CASES[name]
    tools = ToolSet.from_typescript(text)
    found = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools]
    assert found == expected
    assert [list(t["parameters"].get("properties", ())) for t in found] == [
        list(t["parameters"].get("properties", ())) for t in expected
    ]
    assert tools.grammar(tool_choice="required")
    assert list(ToolSet.from_any(text)) == list(ToolSet.from_any([text])) == list(tools)


def test_the_corpus_is_large() -> None:
    """At least 60 declarations have their schema beside them."""
    assert len(CASES) >= 60


REFUSED = [
    ("interface T { a: }", "syntax error", 1, 16),
    ("hello world", "syntax error", 1, 1),
    ("text", "not a type or a function signature", 1, 1),
    ("\n\nimport { A } from './a';", "not a type or a function signature", 3, 1),
    ("class A { x: string }", "not a type or a function signature", 1, 1),
    ("export default class A { x: string }", "not a type or a function signature", 1, 16),
    ("const x = 1;", "not a type or a function signature", 1, 1),
    ("interface T { s: string; f(): void }", "a function is no JSON value", 1, 26),
    ("interface T { a: string; get x(): string }", "a function is no JSON value", 1, 26),
    ("interface T { a: { f: () => void } }", "a function is no JSON value", 1, 23),
    ("interface T { new (x: string): T }", "no JSON value", 1, 15),
    ("interface T { é: Date }", "'Date'", 1, 18),
    ("interface T { d: Map<string, number> }", "'Map'", 1, 18),
    ("interface T { d: bigint }", "'bigint'", 1, 18),
    ("interface T { d: unique symbol }", "'symbol'", 1, 18),
    ("interface T {\n  a: string;\n  b: Foo[];\n}", "'Foo' is not declared", 3, 6),
    ("interface T { a: shapes.Foo }", "'shapes.Foo' is not declared", 1, 18),
    ("interface T { a }", "'a' has no type", 1, 15),
    ("interface T { a: string; a: number }", "declared twice", 1, 26),
    ("interface T { a: string } enum T { B }", "declared twice", 1, 27),
    ("interface T { x: string extends number ? 1 : 2 }", "conditional", 1, 18),
    ("interface T { x: typeof y }", "no values", 1, 18),
    ("interface T { a: (string | undefined)[] }", "no `undefined`", 1, 18),
    ("type T = { t: [...string[], number] };", "after the rest", 1, 29),
    ("type T = { [K in 'a' as `x${K}`]: 1 };", "renamed keys", 1, 13),
    ("type T = { a: string & { brand: 1 } };", "no JSON values", 1, 15),
    ("interface T { [Symbol.iterator]: number }", "not known before", 1, 15),
    ("enum E { A = 1 << 2 } interface T { e: E }", "not a literal", 1, 14),
    ("enum E { A = 'x', B } interface T { e: E }", "needs a value", 1, 19),
    ("enum E { A } interface T { e: E.B }", "no member B", 1, 31),
    ("interface P<X> { a: X } interface T { t: P }", "needs a type", 1, 42),
    ("interface P<X> { a: X } interface T { t: P<1, 2> }", "takes 1 type", 1, 42),
    ("interface T { a: Array }", "needs type arguments", 1, 18),
    ("interface T { a: Record<string> }", "takes 2 type", 1, 18),
    ("interface A { a: string } type T = Pick<A, 'b'>;", "no property 'b'", 1, 44),
    ("interface A { a: string } type T = { x: A['b'] };", "no such property", 1, 43),
    ("interface T { a: [string][1] }", "no such item", 1, 27),
    ("interface T { a: Record<boolean, string> }", "a key is a string", 1, 25),
    ("type T = { a: `x${string[]}` };", "cannot stand in a template", 1, 19),
    ("type A = string; type T = Partial<A> & { x: 1 };", "object of known properties", 1, 35),
    ("type A = B; type B = A; interface T { a: Partial<A> }", "defined by itself", 1, 1),
    ("type T = { x: 1 } | T;", "defined by itself", 1, 1),
    ("interface T extends Partial<T> { a: string }", "defined by itself", 1, 29),
    ("interface T { a: Pick<T, 'a'> }", "defined by itself", 1, 23),
    ("interface T { /** @minLength 3 */ x: number }", "@minLength speaks of strings", 1, 35),
    ("interface T { /** @minimum 3 */ x: string[] }", "@minimum speaks of numbers", 1, 33),
    ("interface T { /** @integer */ x: string }", "@integer speaks of numbers", 1, 31),
    ("interface T { /** @oneOf */ x: string }", "@oneOf speaks of unions", 1, 29),
    ("interface T { /** @minimun 3 */ x: number }", "@minimum is meant", 1, 15),
    ("interface T { /** @minimum three */ x: number }", "takes a number", 1, 15),
    ("interface T { /** @minimum Infinity */ x: number }", "takes a number", 1, 15),
    ("interface T { /** @uniqueItems maybe */ x: 1[] }", "true or false", 1, 15),
    ("interface T { /** @pattern /a/i */ x: string }", "no flags", 1, 15),
    ("interface T { /** @schema [1] */ x: string }", "a JSON object", 1, 15),
    ("interface T { /** @type Date */ x: string }", "not a type that a comment may give", 1, 15),
    ("interface T { x: number /** @minimum 3 */ }", "constrains nothing", 1, 25),
    ("interface T { x: number /** @minimum 0declare */ }", "constrains nothing", 1, 25),
    ("declare function f(...xs: string[]): void;", "no names", 1, 20),
    ("declare function f(x): void;", "'x' has no type", 1, 20),
    ("declare function f(x = new Date()): void;", "'x' has no type", 1, 20),
    ("declare function f<T>(x: T): void;", "generic function", 1, 9),
    ("declare function f(this: any): void;", "`this`", 1, 20),
    ("declare function f(x: string, x: string): void;", "declared twice", 1, 31),
    ("declare function f(a: 1): void; declare function f(b: 1): void;", "overloads", 1, 41),
    ("declare function f({ a }: { a: 1 }, b: 1): void;", "stands for all arguments", 1, 9),
    ("/** @param y No. */ declare function f(x: 1): void;", "no such parameter", 1, 21),
    ("declare function f(x: f): void;", "'f' is not declared", 1, 23),
    ("type f = x => any;", "syntax error", 1, 10),
    ("enum T { A }", "declares no arguments", None, None),
    ("// nothing", "declares nothing", 1, 1),
]


@pytest.mark.parametrize(("text", "said", "line", "column"), REFUSED, ids=[text for text, *_ in REFUSED])
def test_refused(text: str, said: str, line: int | None, column: int | None) -> None:
    """What has no JSON values, or is not evaluated, is refused where it stands, with a way out."""
    with pytest.raises(SchemaError, match=re.escape(said)) as caught:
        tools_from_typescript(text)
    assert (caught.value.place.line, caught.value.place.column) == (line, column)
    assert caught.value.hint


def test_errors_name_tool_and_parameter() -> None:
    """An error in a function says which function and which parameter."""
    with pytest.raises(UnsupportedSchemaError) as caught:
        tools_from_typescript("declare function book(at: string, when: Date): void;")
    assert (caught.value.place.tool, caught.value.place.parameter) == ("book", "when")
    assert "way" not in caught.value.message and "date-time" in str(caught.value.hint)


def test_limits() -> None:
    """Types without end, by nesting or by generics, are stopped."""
    with pytest.raises(LimitError, match="nested"):
        schema_from_typescript(f"type T = {'(' * 200}string{')' * 200};")
    with pytest.raises(LimitError):
        schema_from_typescript("interface N<X> { n: N<X[]> } type T = N<string>;", "T")
    union = " | ".join(f"{{ a{i}: 1 }}" for i in range(20))
    with pytest.raises(LimitError, match="alternatives"):
        schema_from_typescript(f"type U = {union}; type T = U & U;", "T")
    assert schema_from_typescript("type T = " + " | ".join(f'"{i}"' for i in range(3000)) + ";")


def test_a_text_that_the_parser_does_not_finish() -> None:
    """A syntax error that tree-sitter finds no way around is an error of ours after a stated time."""
    text = 'type T = \'it\\\'s\' | "line\\interface T {\n  /** Not empty. @schema {nbreak" | "\\u00e9\\stringx41" | "\\u{1F600}" |type T = { a: string[]; b: Array "tab\\t\\\\";'
    with pytest.raises((LimitError, SchemaError)):
        tools_from_typescript(text)


def test_names_choose() -> None:
    """Names choose the declarations that become tools, in their order; functions are tools before types are."""
    text = "interface A { a: B } interface B { b: 1 } export interface C { c: 1 } declare function f(): void;"
    assert [tool.name for tool in tools_from_typescript(text)] == ["f"]
    assert [tool.name for tool in tools_from_typescript(text, ["B", "A", "f"])] == ["B", "A", "f"]
    assert ToolSet.from_typescript(text, ["C"]).names == ("C",)
    with pytest.raises(SchemaError, match="does not declare 'D'"):
        tools_from_typescript(text, ["D"])


def test_which_schema_is_meant() -> None:
    """Without a name, the only exported type, or the only one that no other refers to, is meant."""
    assert schema_from_typescript("type A = 1; type B = A[];") == {
        "type": "array",
        "items": {"$ref": "#/$defs/A"},
        "$defs": {"A": {"type": "integer", "const": 1}},
    }
    assert schema_from_typescript("export type A = 1; type B = 2;") == {"type": "integer", "const": 1}
    with pytest.raises(SchemaError, match="declares 2 types"):
        schema_from_typescript("type A = 1; type B = 2;")


def test_generated_calls_fit_the_declaration() -> None:
    """The grammar of declared tools takes what fits the declaration, and nothing else."""
    tools = ToolSet.from_typescript("""
        /** Book a table. */
        declare function book(people: 1 | 2 | 3, at: `${"18" | "19"}:${"00" | "30"}`, note?: string): void;
    """)
    grammar = tools.grammar(tool_choice="required")

    def accepts(arguments: str) -> bool:
        return grammar.matches(f'<tool_call>\n{{"name": "book", "arguments": {arguments}}}\n</tool_call>')

    assert accepts('{"people": 2, "at": "18:30"}')
    assert accepts('{"people": 2, "at": "19:00", "note": "By the window."}')
    assert not accepts('{"people": 4, "at": "18:30"}')
    assert not accepts('{"people": 2, "at": "20:00"}')
    assert not accepts('{"people": 2, "at": "18:30", "x": 1}')
    assert not accepts('{"people": 2}')
