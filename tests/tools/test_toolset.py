"""`ToolSet`: the union grammar, tool choices, validation, and running calls."""

from __future__ import annotations

import json
import re
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar

import pytest
from pydantic import BaseModel, Field, ValidationError

from toolgrammar.core import (
    Grammar,
    GrammarError,
    InvalidArgumentsError,
    SchemaError,
    ToolCall,
    ToolCallError,
    ToolGrammarError,
    UnknownToolError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from toolgrammar.core.generation.params import ToolInterface
from toolgrammar.tools import Tool, ToolSet, get_format

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}, "unit": {"enum": ["c", "k"]}}, "required": ["n"]}
TOOLS = ToolSet([Tool("get", "", CITY), Tool("get_all", "", NUMBER), Tool("now", "", {})])
ONE = get_format("hermes").render_calls([ToolCall("", "get", {"city": "x"})])
OTHER = get_format("hermes").render_calls([ToolCall("", "get_all", {"n": 1, "unit": "k"})])
NOW = get_format("hermes").render_calls([ToolCall("", "now", {})])


def written(name: str, arguments: str) -> str:
    """A call in the history form."""
    return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n</tool_call>'


def test_interface() -> None:
    """A tool set is what the engine expects of one."""
    assert isinstance(TOOLS, ToolInterface)


def test_collection() -> None:
    """Names, lookup, membership, iteration and length."""
    assert TOOLS.names == ("get", "get_all", "now")
    assert TOOLS["get"].parameters == CITY
    assert "get" in TOOLS
    assert "gets" not in TOOLS
    assert [tool.name for tool in TOOLS] == ["get", "get_all", "now"]
    assert len(TOOLS) == 3
    assert bool(TOOLS)
    assert not ToolSet()
    assert TOOLS.subset(["now", "get"]).names == ("get", "now")
    with pytest.raises(UnknownToolError, match="get, get_all, now"):
        TOOLS["nope"]


def test_equality() -> None:
    """Sets that allow the same calls are equal and hash alike, whatever their descriptions; options and order count."""
    same = ToolSet([Tool(tool.name, "other words", tool.parameters) for tool in TOOLS])
    assert same == TOOLS
    assert hash(same) == hash(TOOLS)
    assert ToolSet(TOOLS, additional_properties=True) != TOOLS
    assert ToolSet(reversed(list(TOOLS))) != TOOLS


#: A text, and for which choices it is a turn: a(uto), r(equired), n(one), g(et); capitals: parallel calls off.
TURNS = [
    ("", ""),
    ("Hello", "aAnN"),
    (" ", "aAnN"),
    (ONE, "aArRgG"),
    (OTHER, "aArR"),
    (NOW, "aArR"),
    ("Well,\n" + ONE, "aA"),
    ("<tool_" + ONE, "aA"),
    (f"{ONE}\n{OTHER}", "ar"),
    (f"{ONE}\n{ONE}", "ar"),
    ("\n".join([NOW] * 16), "ar"),
    ("\n".join([NOW] * 17), ""),
    (ONE + "\n", "ar"),
    (ONE + " bye", ""),
    (f"{ONE}{ONE}", ""),
    ("<tool_call>", ""),
    ("a<tool_call>b", ""),
    ("</tool_call>", "aAnN"),
    (ONE[:-1], ""),
    (written("nope", "{}"), ""),
    (written("ge", '{"city": "x"}'), ""),
    (written("get_all", '{"city": "x"}'), ""),
    (written("get", '{"n": 1}'), ""),
    (written("get", "{}"), ""),
    (written("get", '{"city": 1}'), ""),
    (written("get", '{"city": "x", "more": 1}'), ""),
    (written("now", '{"x": 1}'), ""),
    (written("get_all", '{"n": 1, "unit": "f"}'), ""),
    (ONE.replace("arguments", "parameters"), ""),
]


@pytest.mark.parametrize(
    ("text", "choices"), TURNS, ids=[repr(text[:60]) + str(i) for i, (text, _) in enumerate(TURNS)]
)
def test_turns(text: str, choices: str) -> None:
    """Each choice admits exactly its turns, each name only its own arguments, nothing after the calls."""
    for choice, letter in (("auto", "a"), ("required", "r"), ("none", "n"), ("get", "g")):
        for parallel in (True, False):
            grammar = TOOLS.grammar(tool_choice=choice, parallel=parallel)
            wanted = letter if parallel else letter.upper()
            assert grammar.matches(text) == (wanted in choices), (choice, parallel)


def test_max_calls() -> None:
    """The bound on calls in one turn is an option."""
    three = "\n".join([NOW] * 3)
    assert not ToolSet(TOOLS, max_calls=2).grammar().matches(three)
    assert ToolSet(TOOLS, max_calls=3).grammar().matches(three)
    assert ToolSet(TOOLS, max_calls=None).grammar().matches("\n".join([NOW] * 40))
    with pytest.raises(ToolGrammarError):
        ToolSet(TOOLS, max_calls=0)


def test_additional_properties() -> None:
    """An option opens the arguments, for the grammar and for validation alike."""
    more = written("get", '{"city": "x", "more": 1}')
    opened = ToolSet(TOOLS, additional_properties=True)
    assert opened.grammar().matches(more)
    assert opened.parse(more).tool_calls[0].error is None
    assert TOOLS.parse(more).tool_calls[0].error is not None


def test_response_schema() -> None:
    """Beside a response schema a turn is calls, or JSON of that schema; nothing else."""
    for grammar in (TOOLS.grammar(response_schema=NUMBER), TOOLS.grammar(response_schema=Numbers)):
        assert grammar.matches('{"n": 1}')
        assert grammar.matches(f"{ONE}\n{NOW}")
        assert not grammar.matches("Hello")
        assert not grammar.matches('{"n": "x"}')
        assert not grammar.matches("Well\n" + ONE)
    assert TOOLS.grammar(tool_choice="none", response_schema=NUMBER).matches('{"n": 1}')
    assert not TOOLS.grammar(tool_choice="none", response_schema=NUMBER).matches(ONE)
    assert not TOOLS.grammar(tool_choice="required", response_schema=NUMBER).matches('{"n": 1}')


class Numbers(BaseModel):
    """A structured answer."""

    n: int


def test_whitespace() -> None:
    """The policy holds for arguments."""
    compact = written("get_all", '{"n":1,"unit":"c"}')
    assert TOOLS.grammar(whitespace="compact").matches(compact)
    assert not TOOLS.grammar().matches(compact)
    assert TOOLS.grammar(whitespace="flexible").matches(written("get_all", '{ "n" : 1,\n"unit":"c" }'))


def test_unknown_choice() -> None:
    """A choice that is no word and no tool lists both."""
    with pytest.raises(UnknownToolError, match="get, get_all, now") as caught:
        TOOLS.grammar(tool_choice="gett")
    assert "required" in str(caught.value)
    for odd in (None, 5, ["get"], {"x": 1}):
        with pytest.raises(UnknownToolError):
            TOOLS.grammar(tool_choice=odd)  # type: ignore[arg-type]


def test_unknown_words() -> None:
    """A word that an option does not have is an error, whatever else is asked for; it would mean one of the others."""
    for choice in ("auto", "none", "required"):
        with pytest.raises(GrammarError, match="whitespace is 'nonsense'"):
            TOOLS.grammar(tool_choice=choice, whitespace="nonsense")  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="reasoning is"):
        TOOLS.grammar(reasoning="some")  # type: ignore[arg-type]
    for option in ("whitespace", "property_order", "on_unsupported"):
        with pytest.raises(GrammarError, match=f"{option} is 'nonsense'"):
            Grammar.from_json_schema({"type": "integer"}, **{option: "nonsense"})


def test_no_tools() -> None:
    """Without tools a turn is text; a required call is an error."""
    assert ToolSet().grammar().matches("hi")
    assert ToolSet().grammar(response_schema=NUMBER).matches('{"n": 1}')
    assert not ToolSet().grammar(response_schema=NUMBER).matches("hi")
    with pytest.raises(ToolGrammarError):
        ToolSet().grammar(tool_choice="required")


def test_unenforceable_schema_names_the_tool() -> None:
    """A schema that cannot be enforced is an error that says whose it is and where."""
    bad = {"type": "object", "properties": {"x": {"type": "string", "pattern": "(a)?\\1"}}}
    with pytest.raises(ToolGrammarError) as caught:
        ToolSet([*TOOLS, Tool("bad", "", bad)]).grammar()
    assert caught.value.place.tool == "bad"
    assert isinstance(caught.value, UnsupportedSchemaError) or caught.value.code == "pattern"


IMPOSSIBLE = {
    "": ("required", {"type": "object", "properties": {"a": {}}, "required": ["b"]}),
    "/properties/a": ("required", {"properties": {"a": {"$ref": "#/$defs/x"}}, "required": ["a"], "$defs": {}}),
    "/properties/n": (None, {"properties": {"n": {"type": "integer", "minimum": 2, "maximum": 1}}, "required": ["n"]}),
    "/properties/l/items": (
        "enum",
        {"properties": {"l": {"type": "array", "minItems": 1, "items": {"enum": []}}}, "required": ["l"]},
    ),
}
IMPOSSIBLE["/properties/a"][1]["$defs"]["x"] = {"type": "object", "properties": {}, "required": ["b"]}


@pytest.mark.parametrize("pointer", IMPOSSIBLE)
@pytest.mark.parametrize("choice", ["auto", "required", "never"])
@pytest.mark.parametrize("format", ["hermes", "mistral-v11", "glm-4.5", "pythonic", "react"])
def test_a_tool_that_can_never_be_called_is_an_error(pointer: str, choice: str, format: str) -> None:
    """A tool whose arguments nothing satisfies does not vanish from the grammar: an error names it and the place."""
    keyword, schema = IMPOSSIBLE[pointer]
    tools = ToolSet([*TOOLS, Tool("never", "", {"type": "object", **schema})])
    wire: Any = format
    if format == "react":
        wire = pytest.importorskip("toolgrammar.adapters.crewai.react").React()
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        tools.grammar(wire, tool_choice=choice)
    assert caught.value.place.tool == "never"
    assert caught.value.place.keyword == keyword
    assert caught.value.place.pointer == (pointer if "a" not in pointer else "/$defs/x")
    assert tools.grammar(wire, tool_choice="none" if format == "react" else "now")
    if keyword == "required" and format == "hermes":  # as the standard reads the schema, nothing forbids the name
        assert "strictness={'never': 'open'}" in (caught.value.hint or "")
        ToolSet(tools, strictness={"never": "open"}).grammar(wire, tool_choice=choice)


def test_the_tag_of_a_discriminated_union_is_written() -> None:
    """Pydantic refuses a value without it, though its schema does not require what has a default."""

    class Cat(BaseModel):
        kind: Literal["cat"] = "cat"
        age: int

    class Dog(BaseModel):
        kind: Literal["dog"] = "dog"
        age: int

    class Owner(BaseModel):
        pet: Annotated[Cat | Dog, Field(discriminator="kind")]
        other: Cat | None = None

    for source in (Owner, {"name": "Owner", "parameters": Owner.model_json_schema()}):
        tools = ToolSet.from_any([source])
        grammar = tools.grammar("hermes", tool_choice="Owner")
        for arguments in ('{"pet": {"age": 0}}', '{"pet": {"kind": "dog", "age": 0}}'):
            valid = True
            try:
                Owner.model_validate_json(arguments)
            except ValidationError:
                valid = False
            assert valid == ("kind" in arguments)
            assert grammar.matches(written("Owner", arguments)) == valid
            problem = tools.check_call(ToolCall("", "Owner", json.loads(arguments))).error
            assert (problem is None) == valid
        assert grammar.matches(written("Owner", '{"pet": {"kind": "dog", "age": 0}, "other": {"age": 1}}'))


def test_grammar_is_shared() -> None:
    """The same question gets the same grammar object, also from several threads."""
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(TOOLS.grammar(tool_choice="required"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(grammar) for grammar in found}) == 1


def test_many_tools_of_one_prefix() -> None:
    """Hundreds of tools whose names begin alike stay apart."""
    many = ToolSet([Tool("f" * size, "", {"properties": {f"p{size}": {"type": "null"}}}) for size in range(1, 201)])
    grammar = many.grammar(tool_choice="required", parallel=False)
    assert grammar.matches(written("f" * 200, '{"p200": null}'))
    assert grammar.matches(written("f", '{"p1": null}'))
    assert not grammar.matches(written("f" * 199, '{"p200": null}'))
    assert not grammar.matches(written("f" * 201, "{}"))


# -- calls -----------------------------------------------------------------------------------------------------------


def call(name: str, arguments: dict[str, Any], **more: Any) -> ToolCall:
    """A call with an id."""
    return ToolCall("c", name, arguments, **more)


def test_validate() -> None:
    """A valid call comes back; the rest raises with tool, place and names."""
    good = call("get", {"city": "x"})
    assert TOOLS.validate(good) is good
    assert TOOLS.validate({"name": "get", "arguments": {"city": "x"}}).arguments == {"city": "x"}
    with pytest.raises(UnknownToolError, match="get, get_all, now"):
        TOOLS.validate(call("nope", {}))
    for arguments in ({}, {"city": 1}, {"city": "x", "more": 1}):
        with pytest.raises(InvalidArgumentsError) as caught:
            TOOLS.validate(call("get", arguments))
        assert caught.value.place.tool == "get"


def test_validate_refuses_malformed_calls() -> None:
    """A call that could not be read is not valid, although its arguments are empty."""
    (broken,) = TOOLS.parse('<tool_call>{"name": "now", "arguments": {"a": }}</tool_call>').tool_calls
    with pytest.raises(ToolCallError, match="malformed"):
        TOOLS.validate(broken)


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def fail(why: str) -> None:
    """Fail."""
    raise RuntimeError(why)


async def later(a: int) -> int:
    """Add one, later."""
    return a + 1


RUNNABLE = ToolSet.from_any([add, fail, later, Tool("described", "", CITY)])


def test_call() -> None:
    """A call runs its function; what the function raises comes through."""
    assert RUNNABLE.call(call("add", {"a": 2})) == 3
    with pytest.raises(RuntimeError, match="because"):
        RUNNABLE.call(call("fail", {"why": "because"}))
    with pytest.raises(InvalidArgumentsError):
        RUNNABLE.call(call("add", {"a": "2"}))
    with pytest.raises(ToolCallError, match="no function"):
        RUNNABLE.call(call("described", {"city": "x"}))


def test_cut_calls_are_refused() -> None:
    """A call whose values were cut by the budget runs only when asked for."""
    cut = call("add", {"a": 2}, cut=("/a",))
    with pytest.raises(InvalidArgumentsError, match="/a"):
        RUNNABLE.call(cut)
    assert RUNNABLE.call(cut, allow_cut=True) == 3


@pytest.mark.parametrize(
    ("asked", "is_error", "said"),
    [
        (call("add", {"a": 2}), False, "3"),
        (call("add", {}), True, "'a' is a required property"),
        (call("nope", {}), True, "add, fail, later, described"),
        (call("fail", {"why": "because"}), True, "RuntimeError: because"),
        (call("later", {"a": 1}), False, "2"),
    ],
)
def test_execute(asked: ToolCall, is_error: bool, said: str) -> None:
    """Every outcome becomes a message that a model can read."""
    message = RUNNABLE.execute(asked).to_message()
    assert (message.role, message.tool_call_id, message.name, message.is_error) == ("tool", "c", asked.name, is_error)
    assert said in message.text


@pytest.mark.asyncio
async def test_aexecute() -> None:
    """The same for async functions."""
    assert (await RUNNABLE.aexecute(call("later", {"a": 1}))).value == 2
    assert "because" in ((await RUNNABLE.aexecute(call("fail", {"why": "because"}))).error or "")


@pytest.mark.parametrize(
    ("value", "text"),
    [("plain", "plain"), ({"a": [1, None]}, '{"a":[1,null]}'), (Numbers(n=1), '{"n":1}'), (None, "null")],
)
def test_result_text(value: Any, text: str) -> None:
    """Strings are shown as they are, other results as JSON."""

    def give() -> Any:
        return value

    assert ToolSet.from_any([give]).execute(call("give", {})).to_message().text == text


def test_result_without_json() -> None:
    """A result that JSON cannot say is shown as Python shows it."""

    class Thing:
        def __str__(self) -> str:
            return "a thing"

    def give() -> Any:
        return Thing()

    assert ToolSet.from_any([give]).execute(call("give", {})).to_message().text == "a thing"


def test_nothing_is_evaluated() -> None:
    """Strings that look like code arrive as strings."""
    seen: list[str] = []

    def note(text: str) -> None:
        seen.append(text)

    text = "__import__('os').abort()"
    ToolSet.from_any([note]).call(call("note", {"text": text}))
    assert seen == [text]


def test_to_openai() -> None:
    """The OpenAI form holds the full schema, and makes the same tools again."""
    assert ToolSet.from_any(TOOLS.to_openai()) == TOOLS


def first(function: Callable[..., Any]) -> Tool:
    """The tool of a function."""
    return next(iter(ToolSet.from_any([function])))


def test_renamed() -> None:
    """A renamed tool runs the same function."""
    tools = ToolSet([first(add).renamed("plus")])
    assert tools.call(call("plus", {"a": 1})) == 2


@pytest.mark.parametrize(
    "schema",
    [{"type": "string", "pattern": r"(a)?\1"}, {"type": "string", "format": "python-json"}],
    ids=["pattern", "format"],
)
@pytest.mark.parametrize("format", ["hermes", "glm-4.5"])
def test_what_cannot_be_enforced_names_a_way_out_that_a_tool_set_has(schema: Any, format: str) -> None:
    """The hint can be followed."""
    tool = Tool("f", "", {"type": "object", "properties": {"a": schema}, "required": ["a"]})
    with pytest.raises(UnsupportedSchemaError) as caught:
        ToolSet([tool]).grammar(format, tool_choice="f")
    assert "on_unsupported" not in str(caught.value) and "strictness={'f': 'object'}" in str(caught.value)
    ToolSet([tool], strictness={"f": "object"}).grammar("hermes", tool_choice="f")


@pytest.mark.parametrize("wrong", ["open", ["f"], 5, {"f": "opne"}, {"f": None}, {"f": ["open"]}])
def test_a_wrong_strictness_is_an_error(wrong: Any) -> None:
    """It names the words, or the form; none is passed over."""
    with pytest.raises(ToolGrammarError, match=r"strictness (is|of 'f' is)") as caught:
        ToolSet([Tool("f", "", {"type": "object"})], strictness=wrong)
    assert "open" in (caught.value.hint or "")


@pytest.mark.parametrize("wrong", [None, 5, b"hermes", [], {"format": "hermes"}])
def test_a_format_that_is_no_name_is_an_error(wrong: Any) -> None:
    """It lists the names, whatever was given."""
    with pytest.raises(ToolGrammarError, match="unknown tool format") as caught:
        ToolSet([Tool("f", "", {"type": "object"})]).grammar(wrong)
    assert "hermes" in (caught.value.hint or "")


@pytest.mark.parametrize("wrong", [0, -1, "3", 1.5, []])
def test_a_wrong_number_of_calls_is_an_error(wrong: Any) -> None:
    """It says what may be given."""
    with pytest.raises(ToolGrammarError, match="max_calls is"):
        ToolSet(max_calls=wrong)


def test_patterns_of_functions_and_classes_are_read_as_pydantic_reads_them() -> None:
    """And one that cannot be is refused with tool and parameter."""

    def order(code: Annotated[str, Field(pattern=r"(?i)\A[a-z]\d\z")]) -> None:
        """Order."""

    tools = ToolSet.from_any([order])
    grammar = tools.grammar("hermes", tool_choice="order")
    for code, good in {"A1": True, "z\u0663": True, "A1\\n": False, "11": False}.items():
        arguments = json.dumps({"code": code.replace("\\n", "\n")}, ensure_ascii=False)
        assert grammar.matches(written("order", arguments)) is good, code
        assert (tools.check_call(ToolCall("", "order", json.loads(arguments))).error is None) is good

    def bad(code: Annotated[str, Field(pattern=re.compile(r"(a)?\1"))]) -> None:
        """Take what repeats."""

    class Bad(BaseModel):
        code: Annotated[str, Field(pattern=re.compile(r"(a)?\1"))]

    for source, tool, parameter in ((bad, "bad", "code"), (Bad, "Bad", None)):
        with pytest.raises(UnsupportedSchemaError) as caught:
            ToolSet.from_any([source])
        assert (caught.value.place.tool, caught.value.place.parameter) == (tool, parameter)
        assert caught.value.place.keyword == "pattern"


Item = TypeVar("Item")


@dataclass
class Pair(Generic[Item]):
    """Two of a kind."""

    first: Item
    second: Item


def test_the_constructor_takes_whatever_from_any_takes() -> None:
    """A `ToolSet` is made of a function, a class, a dict, a module or a list of these; what is no tool is named."""

    def find(text: str) -> str:
        """Find a text."""
        return text

    class Place(BaseModel):
        """A place."""

        city: str

    given = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    for source in (find, Place, given, [find, Place, given], (find,), ToolSet([find]), iter([find])):
        assert ToolSet(source) == ToolSet.from_any(
            [find] if not isinstance(source, (list, tuple, dict, type)) else source
        )
    module = types.ModuleType("of_tools")
    exec(
        "from os.path import join\ndef f(a: int): 'One.'\ndef g(a: int): 'Two.'\ndef _h(a: int): 'None.'", vars(module)
    )
    assert ToolSet(module).names == ToolSet([module]).names == ("f", "g")
    module.__all__ = ["g"]  # type: ignore[attr-defined]
    assert ToolSet(module).names == ("g",)
    assert ToolSet(json.dumps(given)) == ToolSet(json.dumps({"tools": [given]})) == ToolSet(given)
    assert ToolSet(None) == ToolSet() == ToolSet([])
    with pytest.raises(SchemaError, match="cannot make a tool of a value of the type int"):
        ToolSet(5)
    with pytest.raises(SchemaError, match="NoneType"):  # what a function without a value gave
        ToolSet([find, None])
    for kind in (int | None, int | str, list[int], Callable[[], int], Pair[int], Literal, NewType("Id", int)):
        with pytest.raises(SchemaError, match="cannot make a tool of the type"):
            ToolSet([kind])


def test_any_is_required() -> None:
    """The choice ``"any"`` of other libraries is ``"required"``, unless a tool has this name."""

    def anything(text: str) -> str:
        """Say anything."""
        return text

    tools = ToolSet(anything)
    text = '<tool_call>\n{"name": "anything", "arguments": {"text": "x"}}\n</tool_call>'
    assert tools.grammar(tool_choice="any").matches(text) and not tools.grammar(tool_choice="any").matches("text")
    named = ToolSet([{"name": "any", "parameters": {"type": "object"}}, anything])
    assert not named.grammar(tool_choice="any").matches(text)
