"""Typed dicts, dataclasses and models as tools: the corners that SDKs and users have."""

import dataclasses
import decimal
import inspect
import math
import typing
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic.dataclasses
import pytest
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, RootModel

from toolgrammar.core import InvalidSchemaError, SchemaError
from toolgrammar.tools import Tool, ToolSet

from .common import only, run

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypes


class Inner(typing.TypedDict):
    """Of the standard library."""

    x: int


class Params(typing_extensions.TypedDict, total=False):
    """As SDKs declare the parameters of their methods."""

    a: typing_extensions.Required[int]
    inner: Inner
    children: "list[Params]"


class Open(typing.TypedDict):
    """With a configuration."""

    x: int


Open.__pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[attr-defined]


class Unresolved(typing_extensions.TypedDict):
    """With a name that exists for type checkers only."""

    ok: int
    amount: typing_extensions.NotRequired["OnlyForTypes"]


@dataclasses.dataclass
class Counter:
    """Count."""

    start: int
    step: dataclasses.InitVar[int] = 1
    now: int = dataclasses.field(init=False, default=0)
    log: list[int] = dataclasses.field(init=False, default_factory=list)

    def __post_init__(self, step: int) -> None:
        """Count once."""
        self.now = self.start + step


@pydantic.dataclasses.dataclass
class Checked:
    """The same of Pydantic."""

    start: int
    now: int = Field(init=False, default=0)


class A(BaseModel):
    """One kind."""

    kind: Literal["a"]


class B(BaseModel):
    """Another kind."""

    kind: Literal["b"]


def test_typed_dicts_of_typing_extensions() -> None:
    """A ``typing_extensions.TypedDict`` is a tool as a ``typing.TypedDict`` is, with others of both kinds inside."""
    tool = only(Params)
    assert (tool.name, tool.description) == ("Params", "As SDKs declare the parameters of their methods.")
    arguments = {"a": 1, "inner": {"x": 2}, "children": [{"a": 3, "inner": {"x": 4}}]}
    assert run(Params, **arguments) == arguments
    assert ToolSet([tool]).execute({"name": "Params", "arguments": {"inner": {"x": 1}}}).code == "invalid_arguments"
    assert ToolSet([tool]).execute({"name": "Params", "arguments": {"a": 1, "inner": {}}}).code == "invalid_arguments"


def test_the_configuration_of_a_typed_dict_is_kept() -> None:
    """``extra="allow"`` counts for both kinds of typed dicts."""
    assert only(Open).parameters["additionalProperties"] is True


def test_typed_dicts_of_a_real_package() -> None:
    """The parameters of OpenAI's SDK are tools, but for files."""
    chat = pytest.importorskip("openai.types.chat")
    classes = {each for each in vars(chat).values() if inspect.isclass(each) and typing_extensions.is_typeddict(each)}
    assert len(classes) > 20
    tools = ToolSet.from_any(classes)
    assert len(tools) == len(classes)
    files = pytest.importorskip("openai.types.file_create_params")
    with pytest.raises(SchemaError) as caught:
        ToolSet.from_any([files.FileCreateParams])
    assert (caught.value.place.tool, caught.value.place.parameter) == ("FileCreateParams", "file")


def unpacked(q: str, **options: typing_extensions.Unpack[Unresolved]) -> None:
    """Options with an unresolved name."""


def unresolved(ok: int, amount: "OnlyForTypes") -> None:
    """An unresolved name."""


class UnresolvedModel(BaseModel):
    """A model with an unresolved name."""

    ok: int
    amount: "OnlyForTypes"


@dataclasses.dataclass
class UnresolvedData:
    """A dataclass with an unresolved name."""

    ok: int
    amount: "OnlyForTypes"


@pytest.mark.parametrize("source", [unpacked, unresolved, Unresolved, UnresolvedModel, UnresolvedData])
def test_names_for_type_checkers_only(source: Any) -> None:
    """A name that is imported under ``TYPE_CHECKING`` is refused with the parameter that uses it."""
    with pytest.raises(SchemaError, match="'OnlyForTypes' is not defined") as caught:
        only(source)
    assert (caught.value.place.tool, caught.value.place.parameter) == (source.__name__, "amount")
    assert "TYPE_CHECKING" in (caught.value.hint or "")


def take(counter: Counter, checked: Checked | None = None) -> int:
    """Take a counter."""
    return counter.now


def test_fields_without_init() -> None:
    """``field(init=False)`` is no argument, at the root and inside; what the class itself computes is there."""
    assert list(only(Counter).parameters["properties"]) == ["start", "step"]
    assert list(only(Checked).parameters["properties"]) == ["start"]
    definitions = only(take).parameters["$defs"]
    assert [list(definitions[name]["properties"]) for name in ("Counter", "Checked")] == [["start", "step"], ["start"]]
    assert run(Counter, start=1, step=2).now == 3
    assert run(take, counter={"start": 1}) == 2
    result = ToolSet.from_any([Counter]).execute({"name": "Counter", "arguments": {"start": 1, "now": 7}})
    assert result.code == "invalid_arguments"


class Limits(BaseModel):
    """Limits."""

    most: float = math.inf
    table: dict[str, float] = {"a": math.nan}
    fine: float = 1.5


def limits(
    most: float = math.inf, least: decimal.Decimal = decimal.Decimal("1"), many: tuple[float, ...] = (math.nan,)
) -> float:
    """Limits."""
    return most


def test_defaults_that_json_cannot_write() -> None:
    """A default of infinity makes a parameter optional and is not shown; the function still gets it."""
    for source in (Limits, limits):
        tool = only(source)
        assert "required" not in tool.parameters
        assert "default" not in tool.parameters["properties"]["most"]
        assert "Infinity" not in ToolSet([tool]).prompt()
    assert only(Limits).parameters["properties"]["fine"]["default"] == 1.5
    assert "default" not in only(Limits).parameters["properties"]["table"]
    assert run(limits) == math.inf
    assert run(Limits).most == math.inf


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("default", math.inf),
        ("enum", [1.0, math.nan]),
        ("maximum", math.inf),
        ("examples", [{"a": [-math.inf]}]),
        ("const", math.nan),
    ],
)
def test_schemas_that_json_cannot_write(keyword: str, value: Any) -> None:
    """A number that is none in JSON is refused in a schema, with its place."""
    with pytest.raises(InvalidSchemaError, match="JSON cannot represent") as caught:
        Tool("w", "", {"type": "object", "properties": {"a": {keyword: value}}})
    assert (caught.value.place.tool, caught.value.place.pointer) == ("w", f"/properties/a/{keyword}")


def test_root_models() -> None:
    """A root model whose root is an object is a tool; another is refused, with its place."""
    assert run(RootModel[dict[str, int]], a=1).root == {"a": 1}
    union: Any = RootModel[Annotated[A | B, Field(discriminator="kind")]]
    assert run(union, kind="b").root == B(kind="b")
    for root in (int | str, list[int], A | int, None, Any):
        model: Any = RootModel[root]  # type: ignore[valid-type]
        with pytest.raises(SchemaError, match="its root is not an object") as caught:
            only(model)
        assert (caught.value.place.tool, caught.value.place.parameter) == (model.__name__, "root")


@dataclasses.dataclass
class DictLike(dict):  # type: ignore[type-arg]
    """A dataclass that is also a dict, as many of huggingface_hub's are."""

    a: int
    b: str = "x"


def test_a_dataclass_that_is_a_dict() -> None:
    """Its fields say what its keys are."""
    tools = ToolSet.from_any([DictLike])
    assert set(tools["DictLike"].parameters["properties"]) == {"a", "b"}
    made = tools.call({"name": "DictLike", "arguments": {"a": 1}})
    assert isinstance(made, DictLike) and made.a == 1


class Unaskable(type):
    """A metaclass of classes that cannot be asked for their instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        raise ValueError("no instances")


class Odd(metaclass=Unaskable):
    """Such a class."""


class Refusing:
    """A type whose own code for its schema fails."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise KeyError("no schema today")


@dataclasses.dataclass
class WithRefusing:
    """A dataclass with such a type."""

    fine: int
    odd: Refusing


@dataclasses.dataclass
class WithOdd:
    """A dataclass with such a default."""

    fine: int
    odd: Odd = dataclasses.field(default_factory=lambda: None)  # type: ignore[assignment, return-value]


def function_of_refusing(fine: int, odd: Refusing) -> None:
    """A function with such a type."""


def function_of_odd(fine: int, odd: Odd) -> None:
    """A function with such a type."""


@pytest.mark.parametrize("source", [WithRefusing, WithOdd, function_of_refusing, function_of_odd])
def test_whatever_the_code_of_a_type_raises_is_told_as_our_error(source: Any) -> None:
    """The error names tool and field, whatever Pydantic or a type's own code raises."""
    with pytest.raises(SchemaError) as caught:
        ToolSet.from_any([source])
    assert (caught.value.place.tool, caught.value.place.parameter) == (source.__name__, "odd")
    assert caught.value.hint


def test_the_advice_of_pydantic_is_left_out() -> None:
    """The error for a parameter of an ordinary class has our hint, and not that of Pydantic."""

    class Plain:
        def __init__(self, a: int) -> None:
            self.a = a

    def draw(shape: Plain) -> None: ...

    with pytest.raises(SchemaError, match="Plain") as caught:
        ToolSet(draw)
    assert "arbitrary_types_allowed" not in str(caught.value) and caught.value.hint
