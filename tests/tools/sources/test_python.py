"""Functions become tools: signature to schema, docstring to descriptions, arguments to the function's types."""

import dataclasses
import datetime
import enum
import functools
import json
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import pytest
import typing_extensions
from pydantic import BaseModel, Field

from toolgrammar.core import InvalidArgumentsError, SchemaError, ToolCall, ToolCallError
from toolgrammar.tools import Tool, ToolSet


class Unit(enum.Enum):
    """A unit."""

    CELSIUS = "c"
    KELVIN = "k"


class Point(typing.TypedDict, total=False):
    """A point."""

    x: int
    y: typing.Union[int, None]


@dataclasses.dataclass
class Box:
    """A box."""

    width: int
    tags: list[str] = dataclasses.field(default_factory=list)


class Person(BaseModel):
    """A person."""

    name: str
    friend: Optional["Person"] = None


def everything(
    a: int,
    _b: str | None = None,
    *,
    schema: Literal["x", "y"] = "x",
    unit: Unit = Unit.CELSIUS,
    point: Point,
    box: Box | None = None,
    when: datetime.date,
    person: Person,
    level: Annotated[int, Field(ge=1, le=5, description="from the field")] = 2,
    ratio: float = Field(0.5, gt=0),
    free=None,  # type: ignore[no-untyped-def]
    sentinel: Any = object(),  # noqa: B008
) -> dict[str, Any]:
    """Use every kind of parameter.

    And say so at length.

    Args:
        a: the first
        level: not used, the field has its own
        point (Point): where
    """
    return dict(locals())


def tool_of(source: Any) -> Tool:
    """The one tool made of a source."""
    (tool,) = ToolSet.from_any([source])
    return tool


def run(source: Any, **arguments: Any) -> Any:
    """Call the tool made of a source."""
    tools = ToolSet.from_any([source])
    return tools.call(ToolCall("c", tools.names[0], arguments))


def test_schema_of_everything() -> None:
    """Every annotation becomes its schema, under the parameter's own name and in order."""
    tool = tool_of(everything)
    properties = tool.parameters["properties"]
    assert list(properties) == [
        "a", "_b", "schema", "unit", "point", "box", "when", "person", "level", "ratio", "free", "sentinel",
    ]  # fmt: skip
    assert tool.parameters["required"] == ["a", "point", "when", "person"]
    assert properties["a"] == {"type": "integer", "description": "the first"}
    assert properties["_b"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert properties["schema"] == {"enum": ["x", "y"], "type": "string", "default": "x"}
    assert properties["unit"] == {"$ref": "#/$defs/Unit", "default": "c"}
    assert properties["level"] == {
        "type": "integer", "minimum": 1, "maximum": 5, "default": 2, "description": "from the field",
    }  # fmt: skip
    assert properties["ratio"] == {"type": "number", "exclusiveMinimum": 0, "default": 0.5}
    assert properties["free"] == {"default": None}
    assert properties["sentinel"] == {}
    assert properties["when"] == {"type": "string", "format": "python-date"}
    assert properties["point"]["description"] == "where"
    assert tool.parameters["$defs"]["Point"]["properties"].keys() == {"x", "y"}
    assert "required" not in tool.parameters["$defs"]["Point"]
    assert tool.parameters["$defs"]["Person"]["properties"]["friend"]["anyOf"][0] == {"$ref": "#/$defs/Person"}


def test_description() -> None:
    """The tool's description is the docstring without its sections."""
    assert tool_of(everything).description == "Use every kind of parameter.\n\nAnd say so at length."


def test_arguments_become_the_functions_types() -> None:
    """JSON arguments arrive as enums, dates, dataclasses and models; what is not given keeps its default."""
    result = run(
        everything,
        a=1,
        unit="k",
        point={"x": 1},
        box={"width": 3},
        when="2024-02-29",
        person={"name": "A", "friend": {"name": "B"}},
        free=[1, {"x": None}],
    )
    assert result["unit"] is Unit.KELVIN
    assert result["point"] == {"x": 1}
    assert result["box"] == Box(3)
    assert result["when"] == datetime.date(2024, 2, 29)
    assert result["person"] == Person(name="A", friend=Person(name="B"))
    assert result["free"] == [1, {"x": None}]
    assert type(result["sentinel"]) is object


def test_arguments_that_only_the_type_refuses() -> None:
    """What the schema cannot say is refused by the types, as invalid arguments with a pointer."""
    with pytest.raises(InvalidArgumentsError) as caught:
        run(everything, a=1, point={}, when="2023-02-29", person={"name": "A"})
    assert caught.value.place.pointer == "/when"
    assert caught.value.place.tool == "everything"


def google(city: str, days: int = 1) -> None:
    """Forecast.

    Args:
        city: which city
            of the world
        days (int, optional): how many
    """


def numpy_style(city: str, days: int = 1) -> None:
    """Forecast.

    Parameters
    ----------
    city : str
        which city
        of the world
    days : int, optional
        how many
    """


def sphinx(city: str, days: int = 1) -> None:
    """Forecast.

    :param city: which city
        of the world
    :param int days: how many
    """


@pytest.mark.parametrize("function", [google, numpy_style, sphinx])
def test_docstring_styles(function: Callable[..., Any]) -> None:
    """Google, NumPy and Sphinx docstrings describe the parameters."""
    tool = tool_of(function)
    described = {key: value["description"].split() for key, value in tool.parameters["properties"].items()}
    assert described == {"city": ["which", "city", "of", "the", "world"], "days": ["how", "many"]}
    assert tool.description == "Forecast."


class Counter:
    """Has methods."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, amount: int) -> int:
        """Add."""
        self.count += amount
        return self.count

    @classmethod
    def make(cls, kind: str) -> str:
        """Make."""
        return cls.__name__ + kind

    @staticmethod
    def twice(value: int) -> int:
        """Twice."""
        return 2 * value

    def __call__(self, word: str) -> str:
        """Say a word."""
        return word


def test_methods() -> None:
    """Bound methods, class methods, static methods, callable objects and partials are tools; state is the object's."""
    counter = Counter()
    assert run(counter.add, amount=2) == 2
    assert run(counter.add, amount=3) == 5
    assert run(Counter.make, kind="x") == "Counterx"
    assert run(Counter.twice, value=4) == 8
    assert tool_of(counter).name == "Counter"
    assert tool_of(counter).description == "Say a word."
    assert run(counter, word="hi") == "hi"
    assert run(functools.partial(google, "Rome"), days=2) is None
    assert list(tool_of(functools.partial(google, "Rome")).parameters["properties"]) == ["days"]


def test_no_parameters() -> None:
    """A function without parameters takes the empty object and nothing else."""

    def ping() -> str:
        return "pong"

    tools = ToolSet.from_any([ping])
    assert tools.call(ToolCall("c", "ping", {})) == "pong"
    with pytest.raises(InvalidArgumentsError):
        tools.call(ToolCall("c", "ping", {"x": 1}))


def unannotated(value):  # type: ignore[no-untyped-def]  # noqa: D103
    return value


@pytest.mark.parametrize("value", [None, 1, "x", [1], {"a": {}}])
def test_unannotated_takes_any_json(value: Any) -> None:
    """A parameter without annotation takes any JSON value, and keeps it."""
    assert run(unannotated, value=value) == value


def every_kind(
    a: int, b: int = 2, /, c: str = "c", *items: datetime.date, d: bool = False, **more: list[int]
) -> tuple[Any, ...]:
    """Take parameters of every kind.

    Args:
        a: The first.
        *items: The items.
        **more: Whatever else.
    """
    return a, b, c, items, d, more


def test_schema_of_variadic_parameters() -> None:
    """``*items`` is an optional array, ``**more`` further properties, and a parameter without a name has one here."""
    schema = tool_of(every_kind).parameters
    assert list(schema["properties"]) == ["a", "b", "c", "items", "d"]
    assert schema["properties"]["items"] == {
        "type": "array", "items": {"type": "string", "format": "python-date"}, "description": "The items.",
    }  # fmt: skip
    assert schema["additionalProperties"] == {
        "type": "array", "items": {"type": "integer"}, "description": "Whatever else.",
    }  # fmt: skip
    assert schema["required"] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"a": 1}, (1, 2, "c", (), False, {})),
        ({"a": 1, "items": []}, (1, 2, "c", (), False, {})),
        ({"a": 1, "items": ["2024-02-29"]}, (1, 2, "c", (datetime.date(2024, 2, 29),), False, {})),
        ({"a": 1, "b": 3, "c": "x", "d": True, "z": [1]}, (1, 3, "x", (), True, {"z": [1]})),
        ({"c": "x", "a": 1, "more": [2], "p0": []}, (1, 2, "x", (), False, {"more": [2], "p0": []})),
    ],
)
def test_calls_of_variadic_parameters(arguments: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Each argument reaches its parameter, by position or by name, as Python demands."""
    assert run(every_kind, **arguments) == expected
    tools = ToolSet.from_any([every_kind])
    assert tools.grammar("json", tool_choice="required").matches(
        json.dumps(
            [{"name": "every_kind", "arguments": {key: arguments[key] for key in sorted(arguments, key=_order)}}]
        )
    )


def _order(key: str) -> int:
    return "abc".find(key) if key in "abc" else ["items", "d"].index(key) + 3 if key in ("items", "d") else 9


def test_further_arguments_have_their_type() -> None:
    """A further argument of another type is refused at its own place; one without a type takes any JSON."""
    with pytest.raises(InvalidArgumentsError) as caught:
        run(every_kind, a=1, z=["x"])
    assert caught.value.place.pointer == "/z/0"

    def any_more(**options: Any) -> dict[str, Any]:
        return options

    def dated(**days: datetime.date) -> dict[str, Any]:
        return days

    assert run(any_more, options=1, x=[None]) == {"options": 1, "x": [None]}
    assert run(dated, x="2024-02-29") == {"x": datetime.date(2024, 2, 29)}
    with pytest.raises(InvalidArgumentsError) as caught:
        run(dated, x="2023-02-29")
    assert caught.value.place.pointer == "/x"


def test_a_further_argument_never_takes_a_name_that_is_given() -> None:
    """``self``, and what a partial has by position, cannot be the name of a further argument."""

    class Holder:
        def hold(self, value: int, **more: int) -> Any:
            return value, more

    def plain(first: int, second: int, **more: int) -> Any:
        return first, second, more

    for function, name, arguments in (
        (Holder().hold, "self", {"value": 1}),
        (functools.partial(plain, 1), "first", {"second": 2}),
    ):
        tools = ToolSet.from_any([function])
        grammar = tools.grammar("json", tool_choice="required")
        for key, valid in ((name, False), ("other", True)):
            call = {"name": tools.names[0], "arguments": {**arguments, key: 3}}
            assert grammar.matches(json.dumps([call])) is valid
            if valid:
                assert tools.call(call)[-1] == {key: 3}
            else:
                with pytest.raises(InvalidArgumentsError):
                    tools.call(call)


def test_positional_parts_with_a_type_of_their_own() -> None:
    """``*items: Unpack[tuple[...]]`` has the items of the tuple."""

    def pair(*items: typing_extensions.Unpack[tuple[int, str]]) -> Any:
        return items

    def many(*items: typing_extensions.Unpack[tuple[int, ...]]) -> Any:
        return items

    assert tool_of(pair).parameters["properties"]["items"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert run(pair, items=[1, "x"]) == (1, "x")
    assert run(many, items=[1, 2]) == (1, 2) and run(many) == ()


def test_pydantic_ai_makes_the_same_of_variadic_parameters() -> None:
    """The schema of Pydantic AI, where it is installed."""
    pydantic_ai = pytest.importorskip("pydantic_ai")

    def take(a: int, *items: float, **more: list[int]) -> None:
        """Take."""

    theirs = pydantic_ai.Tool(take).function_schema.json_schema
    ours = tool_of(take).parameters
    assert theirs["properties"]["items"] == ours["properties"]["items"]
    assert theirs["additionalProperties"] == ours["additionalProperties"]


def unknown_name(value: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Refused."""


if typing.TYPE_CHECKING:
    from decimal import Decimal


class Elsewhere:
    """A method whose own class and result are imported for type checkers alone."""

    def price(self: "Decimal", amount: int, *, rate: "int" = 2) -> "Decimal":  # type: ignore[misc]
        """Price.

        Args:
            amount: how many
        """
        return amount * rate  # type: ignore[return-value]


def test_only_annotations_of_parameters_are_evaluated() -> None:
    """A return type, the type of ``self`` and that of a parameter which is bound already need not exist at run time."""

    def given(first: "Decimal", second: "int") -> "Decimal":
        return first * second

    @functools.wraps(given)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return given(*args, **kwargs)

    assert run(Elsewhere().price, amount=3) == 6
    assert tool_of(Elsewhere().price).parameters["properties"]["amount"] == {
        "type": "integer",
        "description": "how many",
    }
    for function in (functools.partial(given, 2), functools.partial(wrapper, 2)):  # type: ignore[arg-type]
        assert run(function, second=4) == 8
        assert tool_of(function).parameters["properties"] == {"second": {"type": "integer"}}


def attribute_of_nothing(good: "int", value: "functools.Nowhere") -> None:  # type: ignore[name-defined]
    """Refused."""


def no_schema(good: int, value: Callable[[int], int]) -> None:
    """Refused."""


def foreign(good: int, value: type(functools)) -> None:  # type: ignore[valid-type]
    """Refused."""


@pytest.mark.parametrize(
    ("function", "parameter", "reason"),
    [
        (unknown_name, "value", "Nowhere"),
        (attribute_of_nothing, "value", "Nowhere"),
        (no_schema, "value", "schema"),
        (foreign, "value", "schema"),
        (Counter.add, "self", "unbound"),
    ],
)
def test_refused_signatures(function: Callable[..., Any], parameter: str | None, reason: str) -> None:
    """What cannot be a tool is an error that names tool, parameter, reason and a way out."""
    with pytest.raises(SchemaError, match=reason) as caught:
        ToolSet.from_any([function])
    assert caught.value.place.tool == function.__name__
    assert caught.value.place.parameter == parameter
    assert caught.value.hint


def test_lambda_is_refused() -> None:
    """A lambda has no name to be called by."""
    with pytest.raises(SchemaError, match="lambda"):
        ToolSet.from_any([lambda x: x])


async def slow(value: int) -> int:
    """Async."""
    return value + 1


@pytest.mark.asyncio
async def test_async_functions() -> None:
    """Async functions run through ``acall``, ordinary ones too; ``call`` refuses them where a loop is running."""
    tools = ToolSet.from_any([slow, Counter.twice])
    assert await tools.acall(ToolCall("c", "slow", {"value": 1})) == 2
    assert await tools.acall(ToolCall("c", "twice", {"value": 2})) == 4
    with pytest.raises(ToolCallError, match="acall"):
        tools.call(ToolCall("c", "slow", {"value": 1}))
