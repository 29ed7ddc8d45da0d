"""Live values in nested objects, in every format: what a callable is given is what the call says in the end."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field
from typing_extensions import NotRequired, TypedDict

from toolgrammar.core import LiveValuesError, Model, ToolCall, Values, load_model
from toolgrammar.core.live import read_call
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import get_format
from toolgrammar.tools.formats.registry import format_names

#: What the callables read: a member beside theirs, the nearest of two around it, and an argument.
AFTER = ("q", "near", "day")

#: Strings with what ends and begins values, strings and members in formats.
HOSTILE = ('it\'s ]} "x" {[', '\'}, {"q": "', '"]}', "a:{[,", "x=[(\\", "")


def tools_of(asked: list[dict[str, Any]]) -> list[ToolSet]:
    """Return tools with live values in an object, in a list of objects, and in objects in a list in an object."""

    def answers(call: dict[str, Any]) -> list[str]:
        asked.append(call)
        return [answer(call)]

    class Thing(TypedDict):
        """A thing."""

        n: int
        q: Annotated[str, Field(max_length=20)]
        t: Annotated[str, Values(answers, after=AFTER)]

    class Part(TypedDict):
        """A part, perhaps with a name."""

        q: Annotated[str, Field(max_length=4)]
        t: NotRequired[Annotated[str, Values(answers, after=AFTER)]]

    class Box(TypedDict):
        """A box."""

        near: bool
        parts: Annotated[list[Part], Field(min_length=1, max_length=2)]
        things: Annotated[list[Thing], Field(min_length=1, max_length=2)]

    def one(day: bool, near: bool, thing: Thing) -> None:
        """Take a thing."""

    def many(
        a: Annotated[str, Field(max_length=20)],
        day: bool,
        near: bool,
        things: Annotated[list[Thing], Field(min_length=2, max_length=3)],
    ) -> None:
        """Take things."""

    def deep(day: bool, near: bool, x: Box, y: Annotated[list[Part], Field(max_length=2)]) -> None:
        """Take a box."""

    return [ToolSet([tool]) for tool in (one, many, deep)]


def answer(call: dict[str, Any]) -> str:
    """Return the value that belongs to the mapping of a callable."""
    return f"{len(call['q'])}-{call['near']}-{call['day']}"


def readings(value: Any, around: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the objects in a value that may have a live value, each with the mapping of its callable."""
    if isinstance(value, dict):
        around = {**around, **{name: value[name] for name in AFTER if name in value}}
        if "q" in value:
            yield value, around
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from readings(each, around)


def check(arguments: Any, asked: list[dict[str, Any]]) -> None:
    """Check what a call says, and the mappings that the callables were given, against each other.

    A part may have no name, so its callable is also asked when a token could end the string before: then the string
    is another one.
    """
    found = list(readings(arguments, {}))
    assert all(value["t"] == answer(mapping) for value, mapping in found if "t" in value)
    assert all(mapping in asked for value, mapping in found if "t" in value)
    mappings = [mapping for _, mapping in found]
    parts = [{**mapping, "q": None} for value, mapping in found if "n" not in value]
    assert all(each in mappings or {**each, "q": None} in parts for each in asked)


@pytest.fixture(scope="module")
def noise() -> Model:
    """The embedded model, whose random weights like any text."""
    return load_model("embedded")


each_format = pytest.mark.parametrize(("number", "name"), [*enumerate(format_names())])


@each_format
def test_callables_see_the_objects_around_their_member(number: int, name: str, noise: Model, thorough: bool) -> None:
    """At each depth, and however the model writes the call: one depth in each format, and all with ``--slow``."""
    asked: list[dict[str, Any]] = []
    for tools in tools_of(asked)[slice(None) if thorough else slice(number % 3, None, 3)]:
        asked.clear()
        generation = noise.generate(
            "Go",
            tools=tools,
            tool_choice="required",
            tool_format=name,
            parallel_tool_calls=False,
            max_tokens=900,
            temperature=1.0,
            seed=1,
        )
        (call,) = generation.tool_calls
        assert call.error is None
        tools.validate(call)
        assert asked
        check(call.arguments, asked)


@each_format
def test_strings_may_hold_brackets_and_quotes(number: int, name: str, thorough: bool) -> None:
    """They are no brackets of the call; neither are those of the text before it, where a format has one."""
    asked: list[dict[str, Any]] = []
    _, many, deep = tools_of(asked)
    told: dict[str, Any] = {"day": True, "near": False}

    def thing(text: str, near: bool = False) -> dict[str, Any]:
        return {"n": 7, "q": text, "t": answer({"q": text, "day": True, "near": near})}

    box = {"near": True, "parts": [{"q": "]'"}], "things": [thing(text, near=True) for text in HOSTILE[:2]]}
    calls = [
        (many, {"a": HOSTILE[at], **told, "things": [thing(text) for text in HOSTILE[at : at + 3]]}) for at in (0, 3)
    ]
    calls.append((deep, {**told, "x": box, "y": [{"q": '{"'}]}))
    for tools, arguments in calls[slice(None) if thorough else slice(number % 3, None, 3)]:
        (tool,) = tools
        wire = tools.wire_format(name)
        for prose in ("", 'It\'s {"so": [') if getattr(wire, "prose", True) else ("",):
            asked.clear()
            model = ScriptedModel([wire.render(prose, [ToolCall("call00000", tool.name, arguments)])])
            generation = model.generate(
                "x", tools=tools, tool_choice="auto" if prose else "required", tool_format=name, max_tokens=3_000
            )
            assert (generation.text.strip(), len(generation.tool_calls)) == (prose, 1)
            (written,) = generation.tool_calls
            assert written.error is None
            assert written.arguments == arguments
            check(written.arguments, asked)


@pytest.mark.parametrize("name", ["hermes", "gemma-4"])
@pytest.mark.parametrize(
    "begun",
    [
        '[many(a="x", day=True, near=False, things=[{"n": 7, "q": "w\'", "t": "Z"}, {"n": 8, "q": "]", "t": "Z"}])]',
        "<function=many>\n<parameter=a>\nx'{\n</parameter>\n<parameter=day>\ntrue\n</parameter>\n<parameter=near>\nfalse\n"
        '</parameter>\n<parameter=things>\n[{"n": 7, "q": "w\'", "t": "Z"}, {"n": 8, "q": "]", "t": "Z"}]\n</parameter>\n'
        "</function>",
    ],
)
def test_calls_in_another_spelling(name: str, begun: str) -> None:
    """Small models write calls as other families do."""
    asked: list[dict[str, Any]] = []
    _, many, _ = tools_of(asked)
    generation = ScriptedModel([begun]).generate(
        "x", tools=many, tool_choice="auto", tool_format=name, max_tokens=3_000
    )
    (call,) = generation.tool_calls
    assert call.error is None
    assert asked
    check(call.arguments, asked)


def test_a_call_that_cannot_be_read_is_an_error() -> None:
    """It does not say that the callable is missing."""
    (tools, *_) = tools_of([])
    wire = get_format("gemma-4")
    with pytest.raises(LiveValuesError, match="cannot read the call"):
        read_call([lambda: tools.grammar(wire, marked=True)], b"A text.", ())
