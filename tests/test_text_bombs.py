"""Short texts of grammars that nest, multiply and repeat: each is taken or refused by an error of ours when it is bound, in counted steps."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from toolgrammar.core import Grammar, LimitError, ToolGrammarError
from toolgrammar.tools import ToolSet

from .counted import at_most
from .vocabularies import BYTES

#: Maximum number of calls of functions that one text may take.
MAX_CALLS = 3_000_000
#: Levels of nesting, and of rules that name the next one twice.
DEEP, DOUBLED = 10_000, 40

Bomb = tuple[str, Callable[[], Grammar]]


def nested(opening: str, inner: str, closing: str, depth: int = DEEP) -> str:
    """The inner text within so many pairs."""
    return opening * depth + inner + closing * depth


PATTERNS = {
    "counts of counts": "(((a{1000}){1000}){1000})",
    "an option of them": "b|(((a{1000}){1000}){1000})?c",
    "copies in a row": "a{100000}" * 50,
    "a large count": "a{100000000}",
    "optional counts": "(((a{0,1000}){0,1000}){0,1000})",
    "many options": "|".join(f"a{number}" for number in range(DEEP)),
    "options in a row": "a?" * 1_500 + "a" * 1_500,
    "classes in a row": "[a-z]" * DEEP,
    "open groups": "(" * DEEP,
    "open classes": "[" * DEEP,
    **{
        f"nested {opening}{closing}": nested(opening, "a", closing)
        for opening, closing in [("(", ")"), ("(?:", ")"), ("(", ")*"), ("(", ")?"), ("(", "|b)"), ("(?=", ")"), ("(?!", ")"), ("(?<=", ")")]
    },
}  # fmt: skip


def doubled(body: str, last: str = '"x"', depth: int = DOUBLED) -> str:
    """Rules, each of which has a body of the next one."""
    rules = [f"a{level} ::= {body.replace('a', f'a{level + 1}')}" for level in range(depth)]
    return "\n".join(["root ::= a0", *rules, f"a{depth} ::= {last}"])


RULES = {
    "a large count": 'root ::= "a"{100000000}',
    "an option with one": 'root ::= "b" | "c" "a"{100000000}',
    "counts of counts": 'root ::= ((("a"{1000}){1000}){1000})',
    "counts of rules": doubled("a{1000}", depth=10),
    "a large optional count": 'root ::= "a"{0,100000000}',
    "doubled": doubled("a a"),
    "doubled twelve times": doubled("a a", depth=12),
    "doubled, thousands of rules": doubled("a a", depth=3_000),
    "doubled options": doubled('a | a "y"'),
    "doubled optional rules": doubled("a? a?"),
    "doubled lists": doubled('("q" a)* a'),
    "a chain": doubled("a", depth=DEEP),
    "many options": "root ::= " + " | ".join(f'"a{number}"' for number in range(DEEP)),
    "many parts": "root ::= " + " ".join(f'"a{number}"' for number in range(DEEP)),
    "an ambiguous list": 'root ::= root root | "a"',
    "a circle of left recursion": doubled('a "q" | "w"', 'root "z" | "b"', depth=1_000),
    "open groups": "root ::= " + "(" * DEEP,
    **{f"nested ){sign}": "root ::= " + nested("(", '"a"', f"){sign}") for sign in ("", "*", "?")},
}


def as_lark(rules: str) -> str:
    """The same rules in Lark's notation."""
    counted = re.sub(r"\{(\d+)\}", r"~\1", re.sub(r"\{(\d+),(\d+)\}", r"~\1..\2", rules))
    return counted.replace("root", "start").replace(" ::=", ":")


#: Kinds of structural tags around one another, and their depth.
TAGS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "sequences": (lambda inner: {"type": "sequence", "elements": [inner]}, DEEP),
    "options": (lambda inner: {"type": "or", "elements": [inner]}, DEEP),
    "tags": (lambda inner: {"type": "tag", "begin": "<", "content": inner, "end": ">"}, DEEP),
    "optional parts": (lambda inner: {"type": "optional", "content": inner}, DEEP),
    "lists": (lambda inner: {"type": "plus", "content": inner}, DEEP),
    "triggered tags": (
        lambda inner: {
            "type": "triggered_tags",
            "triggers": ["<"],
            "tags": [{"begin": "<", "content": inner, "end": ">"}],
        },
        DEEP,
    ),
    "doubled sequences": (lambda inner: {"type": "sequence", "elements": [inner, inner]}, 10),
    "counts": (lambda inner: {"type": "repeat", "content": inner, "min": 1000, "max": 1000}, 10),
    "a hundred sequences": (lambda inner: {"type": "sequence", "elements": [inner]}, 98),
}


def as_tag(content: Any) -> Any:
    """A structural tag of a format."""
    return {"type": "structural_tag", "format": content}


def tag_of(kind: str) -> Any:
    """A structural tag of one kind of formats around one another."""
    make, depth = TAGS[kind]
    content: Any = {"type": "const_string", "value": "a"}
    for _ in range(depth):
        content = make(content)
    return as_tag(content)


def repeated(levels: int) -> Grammar:
    """A part, a thousand copies of it, a thousand copies of these, and so on."""
    grammar = Grammar.literal("a")
    for _ in range(levels):
        grammar = Grammar.repeat(grammar, 1_000, 1_000)
    return grammar


def types(body: str, last: str, depth: int = DOUBLED) -> str:
    """Types, each of which has a body of the next one, and a function."""
    lines = [f"type A{level} = {body.replace('A', f'A{level + 1}')};" for level in range(depth)]
    return "\n".join([*lines, f"type A{depth} = {last};", "declare function f(a: A0): void;"])


TYPES = {
    "doubled objects": types("{ a: A; b: A }", "string"),
    "doubled tuples": types("[A, A]", "string"),
    "doubled options": types("A | A[]", "string"),
    "doubled intersections": types("A & { x: A }", "{ z: string }", 12),
    "nested parentheses": f"declare function f(a: {nested('(', 'string', ')')}): void;",
    "nested objects": f"declare function f(a: {nested('{ a: ', 'string', ' }')}): void;",
    "nested arguments": f"declare function f(a: {nested('Array<', 'string', '>')}): void;",
    "nested tuples": f"declare function f(a: {nested('[', 'string', ']')}): void;",
    "nested arrays": f"declare function f(a: string{'[]' * DEEP}): void;",
    "open objects": "declare function f(a: " + "{ a: " * DEEP,
}


def bombs(syntax: str) -> Iterator[Bomb]:
    """Yield the texts of a syntax, each with the function that makes its grammar."""
    if syntax == "regex":
        yield from ((name, lambda text=text: Grammar.from_regex(text)) for name, text in PATTERNS.items())
    elif syntax == "pattern of a schema":
        for name, text in PATTERNS.items():
            yield name, lambda text=text: Grammar.from_json_schema({"type": "string", "pattern": text})
    elif syntax == "regex in Lark":
        yield from ((name, lambda text=text: Grammar.from_lark(f"start: /{text}/")) for name, text in PATTERNS.items())
    elif syntax in ("ebnf", "gbnf"):
        make = Grammar.from_ebnf if syntax == "ebnf" else Grammar.from_gbnf
        yield from ((name, lambda text=text: make(text)) for name, text in RULES.items())
    elif syntax == "lark":
        yield from ((name, lambda text=text: Grammar.from_lark(as_lark(text))) for name, text in RULES.items())
    elif syntax == "structural tags":
        yield from ((kind, lambda kind=kind: Grammar.from_structural_tag(tag_of(kind))) for kind in TAGS)
        for kind, name, texts in (("regex", "pattern", PATTERNS), ("grammar", "grammar", RULES)):
            for each in ("counts of counts", "a large count", "doubled"):
                tag = as_tag({"type": kind, name: texts.get(each, "a")})
                yield f"{kind}: {each}", lambda tag=tag: Grammar.from_structural_tag(tag)
    elif syntax == "parts":
        yield from ((f"{levels} levels", lambda levels=levels: repeated(levels)) for levels in (2, 3, 10))
        yield "an option of them", lambda: Grammar.choice("b", Grammar.sequence("c", repeated(3)))
    else:
        yield from ((name, lambda text=text: ToolSet.from_typescript(text).grammar()) for name, text in TYPES.items())


SYNTAXES = ("regex", "pattern of a schema", "regex in Lark", "ebnf", "gbnf", "lark", "structural tags", "parts", "typescript")  # fmt: skip


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_each_text_is_taken_or_refused_when_it_is_bound(syntax: str) -> None:
    """The error is ours, says the way out, and comes before a text is begun; else a text can be written and finished."""
    if syntax == "typescript" and importlib.util.find_spec("tree_sitter_typescript") is None:
        pytest.skip("tree-sitter-typescript is not installed")
    wrong, taken, refused = [], 0, 0
    for name, make in bombs(syntax):
        try:
            with at_most(MAX_CALLS):
                try:
                    matcher = make().bind(BYTES).matcher()
                except ToolGrammarError as error:
                    refused += 1
                    if not error.hint:
                        wrong.append(f"{name}: no way out: {error}")
                    continue
                for _ in range(20):
                    allowed = [token for token in matcher.allowed_tokens() if token < 256]
                    if allowed:
                        matcher.accept(allowed[-1])
                matcher.shortest_completion()
            taken += 1
        except BaseException as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong
    assert taken and refused


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: Grammar.from_regex("x(((a{1000}){1000}){1000})"), "offset 25"),
        (lambda: Grammar.from_json_schema({"pattern": "^((a{1000}){1000}){1000}$"}), "keyword 'pattern'"),
        (lambda: Grammar.from_gbnf('root ::= "b" | a\na ::= "c"{9000000}'), "rule 'a'"),
        (lambda: Grammar.from_structural_tag(as_tag({"type": "regex", "pattern": "((a{1000}){1000}){1000}"})), "/format/pattern"),
        (lambda: Grammar.from_structural_tag(tag_of("counts")), "/format/content"),
    ],
)  # fmt: skip
def test_the_place_of_what_is_too_long(make: Callable[[], Grammar], where: str) -> None:
    """The error names the part that no model writes to its end."""
    with pytest.raises(ToolGrammarError, match="no model writes more than 4,000,000") as raised:
        make()
    assert where in str(raised.value)


def test_what_is_long_but_can_be_written() -> None:
    """Millions of characters are taken, and completed to their end."""
    for grammar in (Grammar.from_regex("(a{1000}){1000}"), Grammar.from_gbnf('root ::= "a"{1000000} | "b"')):
        matcher = grammar.bind(BYTES).matcher()
        assert matcher.accept_bytes(b"a")
        assert len(matcher.shortest_completion()) == 999_999
    with pytest.raises(LimitError, match="at least 1,000,000,000 bytes"):
        repeated(3).bind(BYTES)
