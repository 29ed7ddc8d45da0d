"""TypeScript declarations become the schemas that TypeScript means."""

from __future__ import annotations

import contextlib
import json
import re
import sys
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
    ("\n\nimport { A } from './a';", "has no declarations", 1, 1),
    ("import { A } from './a'; interface T { a: A[] }", "'A' comes from './a', which was not given", 1, 43),
    ("import * as a from './a'; interface T { a: a.B.C }", "'a.B.C' comes from './a', which was not given", 1, 44),
    ("export * from './a'; interface T { a: A }", "'A' is not declared", 1, 39),
    ("const x = 1;", "declares no arguments", None, None),
    ("interface T { a: string } interface U { t: T; f: () => void }", "a function is not a JSON value", 1, 50),
    ("interface T { a: string; (): void }", "a function is not a JSON value", 1, 26),
    ("class A { f(): void {} } interface T { a: A }", "an object of methods alone is not a JSON value", 1, 11),
    ("class A extends Error { x: string } interface T { a: A }", "members that a class inherits", 1, 9),
    ("interface A extends Array<string> { x: string } interface T { a: A }", "an array with properties", 1, 21),
    ("interface T { a: { f: () => void } }", "a function is not a JSON value", 1, 23),
    ("interface T { new (x: string): T }", "not a JSON value", 1, 15),
    ("interface T { é: Date }", "'Date'", 1, 18),
    ("interface T { d: Map<string, number> }", "'Map'", 1, 18),
    ("interface T { d: bigint }", "'bigint'", 1, 18),
    ("interface T { d: unique symbol }", "'symbol'", 1, 18),
    ("interface T {\n  a: string;\n  b: Foo[];\n}", "'Foo' is not declared", 3, 6),
    ("interface T { a: shapes.Foo }", "'shapes.Foo' is not declared", 1, 18),
    ("interface T { a }", "'a' has no type", 1, 15),
    ("interface T { a: string; a: number }", "declared twice", 1, 26),
    ("interface T { a: string } enum T { B }", "declared twice", 1, 27),
    ("interface T { x: typeof y }", "no values", 1, 25),
    ("const y = f(1); interface T { x: typeof y }", "worked out when the program runs", 1, 11),
    ("const f = () => 1; interface T { x: typeof f }", "a function is not a JSON value", 1, 11),
    ("class A { x: string } interface T { a: typeof A }", "the type of a class itself", 1, 1),
    ("type C<X> = X extends string ? 1 : 0; interface T { x: C<1> }", "conditional types are not evaluated", 1, 13),
    ("interface T { x: infer U }", "`infer` is not evaluated", 1, 18),
    ("const f = () => 1; interface T { x: ReturnType<typeof f> }", "ReturnType is not evaluated", 1, 37),
    ("interface T { a: Uppercase<string> }", "Uppercase is not evaluated", 1, 18),
    ("type T = { [K in 'a']: 1 };", "mapped types are not evaluated", 1, 10),
    ("enum E { A = 1 << 2 } interface T { a: E }", "is not a literal", 1, 14),
    ("enum E { A = 1, B = A } interface T { a: E }", "is not a literal", 1, 21),
    ("interface T { a: Exclude<'a' | 'b', 'a'> }", "Exclude is not evaluated", 1, 18),
    ("interface T { a: Extract<'a' | 1, string> }", "Extract is not evaluated", 1, 18),
    ("interface T { a: NonNullable<string | null> }", "NonNullable is not evaluated", 1, 18),
    ("interface T { a: keyof string[] }", "object of known properties", 1, 24),
    ("interface T { a: keyof ({ x: 1 } | { x: 2 }) }", "not evaluated for a union", 1, 24),
    ("interface T { a: keyof { 1: 'x' } }", "a property's name is a number", 1, 24),
    ("type U = { x: 1 } | { x: 2 }; interface T { a: Pick<U, 'x'>; }", "not evaluated for a union", 1, 53),
    ("type T = { a: Omit<{ x: 1 }, string> };", "names of properties are literals", 1, 30),
    ("type T = { a: Partial<[1, 2]> };", "object of known properties", 1, 23),
    ("/** @minLength 2 */ type K = string; interface T { a: Record<K, 1> }", "tags of the comment", 1, 62),
    ("/** @minLength 2 */ type K = string; interface T { [k: K]: 1 }", "tags of the comment", 1, 52),
    ("type T = { a: `x${string}` };", "template types are not evaluated", 1, 15),
    ("interface T { [header: string & { a: 1 }]: string }", "no JSON values", 1, 24),
    ("interface T { [index: number]: string }", "a key is a string", 1, 15),
    ("interface T { 1.5: string }", "a name that is a number is whole", 1, 15),
    ("type T = { a: (/** @minLength 1 */ string) & (/** @maxLength 3 */ string) };", "intersection is not", 1, 15),
    ("interface T { a: import('./a').A }", "`import(...)` is not read", 1, 18),
    ("interface T { next?: this }", "`this` is not evaluated", 1, 22),
    ("const K = 'k'; interface T { [K]: string }", "in brackets", 1, 30),
    ("const c = { a: 'x' }; interface T { c: typeof c }", "may change", 1, 11),
    ("let c = 'x'; interface T { c: typeof c }", "may change", 1, 5),
    ("enum E { A } interface T { c: keyof typeof E }", "the type of an enum itself", 1, 1),
    ("class A { x = 1 } interface T { a: A }", "'x' has no type", 1, 11),
    ("interface T { x: 1; get x(): 1 }", "'x' is declared twice", 1, 21),
    ("interface T { get x(): string; /** @minLength 3 */ set x(value: string) }", "constrains nothing here", 1, 32),
    ("declare class A { private constructor(readonly x: 1); } type T = A", "a constructor's parameters", 1, 39),
    ("class A { constructor(public x: 1) {} y: 2; } interface T { a: A }", "a constructor's parameters declare", 1, 23),
    ("interface T { a: (string | undefined)[] }", "no `undefined`", 1, 18),
    ("type T = { t: [...string[], number] };", "further items of a tuple", 1, 16),
    ("type T = { t: [string, number?] };", "optional and further items", 1, 24),
    ("type T = { t: [a: string, b?: number] };", "optional and further items", 1, 27),
    ("type T = { t: [a: string, ...b: number[]] };", "optional and further items", 1, 27),
    ("interface T { [K in 'a']: 1 }", "cannot be a mapped type", 1, 15),
    ("type T = { a: const };", "a syntax error", 1, 13),
    ("type T = { a: string & { brand: 1 } };", "no JSON values", 1, 15),
    ("interface T { [Symbol.iterator]: number }", "in brackets", 1, 15),
    ("enum E { A = f() } interface T { e: E }", "is not a literal", 1, 14),
    ("enum E { A = 'x', B } interface T { e: E }", "needs a value", 1, 19),
    ("enum E { A } interface T { e: E.B }", "no member B", 1, 31),
    ("interface P<X> { a: X } interface T { t: P }", "needs a type", 1, 42),
    ("interface P<X> { a: X } interface T { t: P<1, 2> }", "takes 1 type", 1, 42),
    ("interface T { a: Array }", "needs type arguments", 1, 18),
    ("interface T { a: Record<string> }", "takes 2 type", 1, 18),
    ("interface A { a: string } type T = Pick<A, 'b'>;", "no property 'b'", 1, 44),
    ("interface A { a: string } type T = { x: A['b'] };", "no such property", 1, 43),
    ("interface T { a: [string][1] }", "only T[number] is evaluated", 1, 27),
    ("interface T { a: Record<boolean, string> }", "a key is a string", 1, 25),
    ("type A = string; type T = Partial<A> & { x: 1 };", "object of known properties", 1, 35),
    ("type A = B; type B = A; interface T { a: Partial<A> }", "defined by itself", 1, 50),
    ("type T = { x: 1 } | T;", "defined by itself", 1, 1),
    ("interface T extends Partial<T> { a: string }", "defined by itself", 1, 29),
    ("interface T { a: T['a'] }", "defined by itself", 1, 18),
    ("interface T { /** @minLength 3 */ x: number }", "@minLength constrains strings", 1, 35),
    ("interface T { /** @minimum 3 */ x: string[] }", "@minimum constrains numbers", 1, 33),
    ("interface T { /** @integer */ x: string }", "@integer constrains numbers", 1, 31),
    ("interface T { /** @oneOf */ x: string }", "@oneOf constrains unions", 1, 29),
    ("interface T { /** @minimun 3 */ x: number }", "did you mean @minimum", 1, 15),
    ("interface T { /** @minimum three */ x: number }", "takes a number", 1, 15),
    ("interface T { /** @minimum Infinity */ x: number }", "takes a number", 1, 15),
    ("interface T { /** @uniqueItems maybe */ x: 1[] }", "true or false", 1, 15),
    ("interface T { /** @pattern /a/i */ x: string }", "no flags", 1, 15),
    ("interface T { /** @schema [1] */ x: string }", "a JSON object", 1, 15),
    ("interface T { /** @type Date */ x: string }", "can only give the type integer", 1, 15),
    ("interface T { x: number /** @minimum 3 */ }", "constrains nothing", 1, 25),
    ("interface T { x: number /** @minimum 0declare */ }", "constrains nothing", 1, 25),
    ("declare function f(...xs: string[]): void;", "has unnamed arguments", 1, 20),
    ("declare function f(x): void;", "'x' has no type", 1, 20),
    ("declare function f(x = new Date()): void;", "'x' has no type", 1, 20),
    ("declare function f<T>(x: T): void;", "generic function", 1, 9),
    ("declare function f(this: any): void;", "`this`", 1, 20),
    ("declare function f(x: string, x: string): void;", "declared twice", 1, 31),
    ("declare function f(a: 1): void; declare function f(b: 1): void;", "overloads", 1, 41),
    ("declare function f({ a }: { a: 1 }, b: 1): void;", "would be all arguments", 1, 9),
    ("/** @param y No. */ declare function f(x: 1): void;", "no such parameter", 1, 21),
    ("declare function f(x: f): void;", "'f' is not declared", 1, 23),
    ("type f = x => any;", "syntax error", 1, 10),
    ("enum T { A }", "declares no arguments", None, None),
    ("// nothing", "has no declarations", 1, 1),
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


_DOUBLING = [
    ("type A0<T> = T;", "type NEXT<T> = LAST<[T, T]>;"),
    ("type A0<T> = T;", "type NEXT<T> = LAST<{ a: T; b: T }>;"),
    ("type A0 = { y: string };", "type NEXT = LAST & { x: LAST };"),
    ("type A0 = { y: string };", "type NEXT = { x: LAST; z: LAST[] };"),
]


class _CountedCalls:
    """Counts the calls of Python functions."""

    count = 0

    def __enter__(self) -> None:
        sys.setprofile(self._count)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, _frame: object, event: str, _argument: object) -> None:
        self.count += event == "call"


def test_limits() -> None:
    """Types without end, by nesting or by generics, are stopped."""
    with pytest.raises(LimitError, match="nested"):
        schema_from_typescript(f"type T = string{'[]' * 200};")
    with pytest.raises(LimitError):
        schema_from_typescript("interface N<X> { n: N<X[]> } type T = N<string>;", "T")
    union = " | ".join(f"{{ a{i}: 1 }}" for i in range(20))
    with pytest.raises(LimitError, match="alternatives"):
        schema_from_typescript(f"type U = {union}; type T = U & U;", "T")
    assert schema_from_typescript("type T = " + " | ".join(f'"{i}"' for i in range(3000)) + ";")


@pytest.mark.parametrize("levels", [20, 90])
@pytest.mark.parametrize(("first", "level"), _DOUBLING)
def test_types_that_double_at_each_level(first: str, level: str, levels: int) -> None:
    """A type that has the type before it twice costs no work for each path: it is read, or refused by a limit."""
    calls = _CountedCalls()
    lines = [first, *(level.replace("NEXT", f"A{i + 1}").replace("LAST", f"A{i}") for i in range(levels))]
    argument = "<string>" if "<T>" in level else ""
    with calls, contextlib.suppress(LimitError):
        schema_from_typescript("\n".join([*lines, f"type Root = A{levels}{argument};"]), "Root")
    assert calls.count < 3_000_000


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
    spaces = "namespace N { export interface A { x: string } } interface A { y: number } export = N.A;"
    assert [*schema_from_typescript(spaces)["properties"]] == ["x"]


UNUSED = """
import { Unused } from "./elsewhere";
import type { Other } from "somewhere";
import required = require("required");
export * from "./more";
export type * from "./types";
export { a as b } from "./c";
const logger = createLogger({ level: 3 });
export class Service extends Unused { run(x: Other): void { logger.info(x); } }
declare function over<const X>(a: X): void;
declare function over(a: number): void;
logger.start();
if (logger) { logger.stop(); }
interface Odd<in out V> { value: V; when: Date; other: Unused; (call: V): void }
"""


def test_what_nobody_uses() -> None:
    """What no named declaration needs is not read: imports, exports, constants, classes, overloads, statements."""
    text = UNUSED + "interface T { a: string }"
    assert schema_from_typescript(text, "T") == schema_from_typescript("interface T { a: string }")
    assert [tool.name for tool in tools_from_typescript(text, ["T"])] == ["T"]
    with pytest.raises(SchemaError, match="overloads") as caught:  # without names, every function is a tool
        tools_from_typescript(text)
    assert (caught.value.place.line, caught.value.place.tool) == (11, "over")


FILES = {
    "main.ts": """
        import Book, { Author as Writer, type Kind } from "./lib/book.js";
        import * as places from './lib/places';
        import { Price } from "shop";
        export interface T {
          book: Book; by: Writer; kind: Kind; at: places.City; where: places.inner.Street; price: Price;
          name: (typeof places.NAMES)[number];
        }
    """,
    "lib/book.ts": """
        import type { Author } from "../people";
        export { Author };
        export default interface Book { title: string; sequel?: Book }
        export * from "./kinds";
    """,
    "lib/kinds.d.ts": "export declare enum Kind { Prose = 'prose', Verse = 'verse' }",
    "lib/places/index.ts": "export * from '../city'; export * as inner from '../street'; export const NAMES = ['x'] as const;",
    "lib/city.ts": "type Town = { name: string }; export { Town as City };",
    "lib/street.ts": "import type { T } from '../main'; export type Street = T['kind'];",
    "people.ts": "export interface Author { name: string }",
    "shop": "export type Price = { amount: number };",
    "broken.ts": "interface {",
}


def test_imports() -> None:
    """Imports are found among the files that are given: by path, with any ending, through exports of other files."""
    schema = schema_from_typescript(FILES["main.ts"], "T", files=FILES)
    assert isinstance(schema, dict)
    value = {
        "book": {"title": "A", "sequel": {"title": "B"}},
        "by": {"name": "C"},
        "kind": "verse",
        "at": {"name": "D"},
        "where": "prose",
        "price": {"amount": 7},
        "name": "x",
    }
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(value)
    for key in value:
        assert not validator.is_valid({**value, key: None}), key
    assert ToolSet.from_typescript(FILES["main.ts"], files=FILES).names == ("T",)


def test_errors_in_other_files_name_them() -> None:
    """An error in a file that is imported says which file."""
    with pytest.raises(SchemaError, match=r"in 'broken.ts'"):
        schema_from_typescript("import { A } from './broken'; type T = A;", "T", files=FILES)
    files = {"a.ts": "export interface A {\n  when: Date }"}
    with pytest.raises(SchemaError, match=r"'Date' \(in 'a.ts'\)") as caught:
        schema_from_typescript("import { A } from './a'; type T = A;", "T", files=files)
    assert (caught.value.place.line, caught.value.place.column) == (2, 9)
    assert schema_from_typescript("import { A } from './a'; type T = 1;", "T", files=files)


def test_parts_without_values() -> None:
    """Optional functions, and members of a union that JSON has no form of, are left out; a lost parameter is an error."""
    text = "interface T { a: string | RegExp | (() => void) | bigint; done?: () => void; f: Function | undefined }"
    assert schema_from_typescript(text) == schema_from_typescript("interface T { a: string }")
    for type_ in ("RegExp | Map<string, 1>", "Date | number", "(() => void) | undefined | Promise<1>"):
        with pytest.raises(UnsupportedSchemaError):
            schema_from_typescript(f"interface T {{ a: {type_} }}")
    for type_ in ("Date", "RegExp", "Promise<1>"):
        with pytest.raises(UnsupportedSchemaError):
            schema_from_typescript(f"interface T {{ a?: {type_} }}")


def test_names_that_stand_for_each_other() -> None:
    """Imports and exports in a circle are an error, not a hang."""
    files = {
        "a.ts": "export { A } from './b'; export * from './b';",
        "b.ts": "export { A } from './a'; export * from './a';",
    }
    with pytest.raises(SchemaError, match="'A' is not declared"):
        schema_from_typescript("import { A } from './a'; type T = A;", "T", files=files)
    with pytest.raises(SchemaError, match="not declared"):
        schema_from_typescript("import A = B; import B = A; type T = A;", "T")


def test_one_name_in_two_namespaces() -> None:
    """Types of one name in different namespaces are two types, and two tools that have to be told apart."""
    text = (
        "namespace Customer { export interface Address { street: string } }"
        "namespace Account { export interface Address { iban: string } }"
    )
    assert schema_from_typescript(text, "Customer.Address") != schema_from_typescript(text, "Account.Address")
    with pytest.raises(SchemaError, match="2 times") as caught:
        schema_from_typescript(text, "Address")
    assert "Customer.Address, Account.Address" in str(caught.value.hint)
    assert tools_from_typescript(text, ["Account.Address"])[0].parameters["required"] == ["iban"]
    with pytest.raises(SchemaError, match="'Address' is not declared"):
        schema_from_typescript(text + "type T = Address;", "T")


def test_methods_of_a_type_are_tools() -> None:
    """An object type that has nothing but methods declares functions, whether it is an interface or an alias."""
    members = "{ /** Add. */ add(x: number, y?: number): number; neg: (x: number) => number }"
    tools = tools_from_typescript(f"export type Api = {members}")
    assert [tool.name for tool in tools] == ["add", "neg"]
    assert tools == tools_from_typescript(f"interface Api {members}")
    assert tools_from_typescript("export const add = (x: number): number => x;", ["add"])[0].parameters["required"] == [
        "x"
    ]
    with pytest.raises(SchemaError, match="overloads"):
        tools_from_typescript("interface Api { add(x: number): number; add(x: string): string }")


def test_newer_syntax_is_not_called_wrong() -> None:
    """What the parser does not know is said to be perhaps newer than it; literals are never touched."""
    assert schema_from_typescript("type T = '<in X>' | 'export type *'; export type * from './x';", "T") == {
        "type": "string",
        "enum": ["<in X>", "export type *"],
    }
    with pytest.raises(SchemaError, match="or syntax that tree-sitter does not know"):
        schema_from_typescript("type T = asserts;;= 1", "T")


def test_generated_calls_fit_the_declaration() -> None:
    """The grammar of declared tools takes what fits the declaration, and nothing else."""
    tools = ToolSet.from_typescript("""
        /** Book a table. */
        declare function book(people: 1 | 2 | 3, at: "18:30" | "19:00", note?: string): void;
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


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("keyof Omit<{ a: 1; b: 2 }, E.A>", ["b"]),
        ("keyof Omit<Record<E, 1>, E.A>", ["b"]),
        ('("a" | "b") & ("b" | "c")', ["b"]),
        ('("a" | 1) & string', ["a"]),
        ('(string & {}) & ("a" | null)', ["a"]),
    ],
)
def test_members_of_unions(type_: str, values: list[Any]) -> None:
    """Members of unions and of enums are those that TypeScript 5.9.3 finds."""
    schema: Any = schema_from_typescript(f'enum E {{ A = "a", B = "b" }} export type T = {type_};', "T")
    assert schema.get("enum", [schema.get("const")]) == values


def test_numbers_as_names() -> None:
    """Names of properties and keys that are whole numbers are what JavaScript makes of the numbers."""
    declared = schema_from_typescript("type T = { 0x10: 1; 1_000: 1; 7: 1 };", "T")
    assert list(declared["properties"]) == ["16", "1000", "7"]
    assert list(schema_from_typescript("type T = Record<0x10 | 7, 1>;", "T")["properties"]) == ["16", "7"]
    assert schema_from_typescript("type T = Record<keyof any, 1>;", "T")["additionalProperties"] == {
        "type": "integer",
        "const": 1,
    }
