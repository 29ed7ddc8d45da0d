"""The value of an answer, its partial values as it comes, and the whole answer at the end of a stream."""

from __future__ import annotations

import asyncio
import copy
import datetime
import enum
import json
import pickle
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType, Optional, Union

import pytest
from pydantic import BaseModel, Field, RootModel, field_validator
from typing_extensions import TypedDict

from toolgrammar.core import Grammar, InvalidArgumentsError, Message, ModelError, ToolCall, load_model
from toolgrammar.core.conversation import MessageBuilder
from toolgrammar.core.generation.partial import PartialReader
from toolgrammar.core.models import AsyncStream, Stream
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet


class Kind(enum.Enum):
    """A kind."""

    SMALL = "small"
    LARGE = "large"


class Item(BaseModel):
    """A Pydantic class with bounds that no beginning of its fields satisfies."""

    name: str = Field(min_length=5)
    count: int = Field(ge=10, alias="howMany")
    kind: Kind


@dataclass
class Address:
    """A dataclass."""

    street: str
    codes: list[int]


class Cat(TypedDict):
    """One animal."""

    kind: Literal["cat"]
    lives: int


class Dog(TypedDict):
    """Another animal."""

    kind: Literal["dog"]
    name: str


Name = NewType("Name", str)


class Order(BaseModel):
    """An order with all kinds of fields."""

    items: list[Item]
    address: Optional[Address]  # noqa: UP045
    when: datetime.date
    note: Annotated[str, Field(max_length=40)]
    pet: Union[Cat, Dog]
    by: Name
    more: dict[str, Address]


TEXT = json.dumps(
    {
        "items": [
            {"name": "spoons", "howMany": 12, "kind": "small"},
            {"name": "ladder", "howMany": 10, "kind": "large"},
        ],
        "address": {"street": "Main", "codes": [12, 345]},
        "when": "2026-11-28",
        "note": "at the door",
        "pet": {"kind": "dog", "name": "Rex"},
        "by": "Eve",
        "more": {"home": {"street": "Side", "codes": []}},
    }
)


def test_an_answer_has_its_value() -> None:
    """`generate`, a batch and a stream give the instance lazily beside the text; without a shape it is None."""
    model = ScriptedModel(lambda messages: TEXT)
    whole = Order.model_validate_json(TEXT)
    assert model.generate("?", output_type=Order).value == whole
    assert [one.value for one in model.generate_batch(["?", "?"], output_type=Order)] == [whole, whole]
    assert model.stream("?", output_type=Order).result.value == whole
    assert model.generate("?", output_type=Order.model_json_schema()).value == json.loads(TEXT)
    assert model.generate("?").value is None

    async def ask() -> list[Any]:
        batch = await model.agenerate_batch(["?"], output_type=Order)
        return [(await model.agenerate("?", output_type=Order)).value, batch[0].value]

    assert asyncio.run(ask()) == [whole, whole]


@pytest.mark.parametrize(
    ("shape", "text", "value"),
    [
        (["yes", "no"], '"no"', "no"),
        (list[Address], '[{"street": "S", "codes": []}]', [Address("S", [])]),
        (bool, "true", True),
        (Literal[1, 2], "2", 2),
        (Grammar.from_json_schema({"type": "integer"}), "12", 12),
        (RootModel[list[int]], "[1]", RootModel[list[int]]([1])),
    ],
)
def test_the_value_of_each_kind_of_shape(shape: Any, text: str, value: Any) -> None:
    """Lists of words, generics, literals, schemas, grammars of JSON: the value is that of the type."""
    answer = ScriptedModel([text]).generate("?", output_type=shape)
    assert (answer.value, str(answer)) == (value, text)


def test_a_value_that_the_validators_refuse() -> None:
    """The text is there, and only reading the value raises an error, which says what asks again."""

    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def is_even(cls, number: int) -> int:
            """Refuse odd numbers."""
            if number % 2:
                raise ValueError("odd")
            return number

    answer = ScriptedModel(['{"number": 3}']).generate("?", output_type=Even)
    assert answer.text == '{"number": 3}'
    with pytest.raises(InvalidArgumentsError, match="odd"):
        answer.value  # noqa: B018


def test_an_answer_with_calls_is_readable_and_has_no_value() -> None:
    """Text and calls, one a line; the value is None, and that of the text without calls."""
    call = Message("assistant", "", tool_calls=(ToolCall("1", "find", {"name": "Zoë"}),))

    def find(name: str) -> str:
        """Find."""
        return name

    model = ScriptedModel([call, '{"street": "S", "codes": []}'])
    answer = model.generate("?", tools=[find], output_type=Address)
    assert (str(answer), answer.value) == ('find({"name": "Zoë"})', None)
    assert model.generate("?", tools=[find], output_type=Address).value == Address("S", [])


def test_answers_are_copied_and_pickled_with_their_values() -> None:
    """A copy has the same value; equality is that of the text."""
    answer = ScriptedModel([TEXT]).generate("?", output_type=Order)
    for other in (copy.deepcopy(answer), pickle.loads(pickle.dumps(answer))):
        assert other == answer and other.value == answer.value


def test_partial_values_are_typed() -> None:
    """After each byte: what is complete is what the type makes of it, what is not is None or the beginning of a string,
    and each value is told to be complete once, when it is."""
    model = ScriptedModel([TEXT])
    seen: list[Any] = []
    told: list[str] = []
    for partial in model.stream("?", output_type=Order).partials():
        seen.append(copy.deepcopy(partial.value))
        told += partial.new
    whole = Order.model_validate_json(TEXT)
    assert seen[-1] == whole and told[-1] == "" and len(told) == len(set(told))
    assert told[:5] == ["/items/0/name", "/items/0/howMany", "/items/0/kind", "/items/0", "/items/1/name"]
    values = [value for value in seen if value is not None and type(value) is not Order]
    assert {type(value).__name__ for value in values} == {"PartialOrder"}
    items = [value.items for value in values if value.items]
    assert {type(item).__name__ for item, *_ in items} == {"PartialItem", "Item"}
    assert {item.count for item, *_ in items} == {None, 12} and {item.kind for item, *_ in items} == {None, Kind.SMALL}
    assert [*dict.fromkeys(value.note for value in values)] == [None, *("at the door"[:size] for size in range(12))]
    assert {value.when for value in values} == {None, datetime.date(2026, 11, 28)}
    streets = [value.address.street for value in values if value.address is not None]
    assert streets[0] is None and {"M", "Ma", "Mai", "Main"} <= set(streets)
    assert {"name": "R", "kind": "dog"} in [value.pet for value in values] and "Ev" in [value.by for value in values]
    assert whole.more["home"] in [value.more["home"] for value in values if value.more]


def test_each_beginning_has_a_partial_value() -> None:
    """At each cut of the text, for a reader of any pieces: no error, and the same value whatever the pieces were."""
    schema, whole = Order.model_json_schema(), Order.model_validate_json(TEXT)
    letters = PartialReader.of_schema(schema, shape=Order)
    for size in range(1, len(TEXT) + 1):
        slow, fast = letters.feed(TEXT[size - 1]), PartialReader.of_schema(schema, shape=Order).feed(TEXT[:size])
        assert (repr(slow.value), {*slow.missing}, slow.open) == (repr(fast.value), {*fast.missing}, fast.open)
    assert slow.value == whole and slow.is_whole


def test_partial_values_of_other_shapes() -> None:
    """A schema, a grammar and a list have plain partial values; text has none."""
    address = {"street": "S", "codes": [1]}
    for shape in (Grammar.from_json_schema(True), {"type": "object"}, True):
        stream = ScriptedModel([json.dumps(address)]).stream("?", output_type=shape)
        assert [partial.value for partial in stream.partials()][-1] == address
    with pytest.raises(ModelError, match="no shape"):
        ScriptedModel(["Hi"]).stream("?").partials()


def test_a_stream_is_an_iterator_with_a_result() -> None:
    """The result comes after all events, after some, or after none; not after an early end."""
    model = ScriptedModel(lambda messages: "Hello")
    stream = model.stream("?")
    next(stream)
    assert (str(stream.result), list(stream)) == ("Hello", [])
    with model.stream("?") as left:
        next(left)
    with pytest.raises(ModelError, match="has no result"):
        left.result  # noqa: B018

    async def ask() -> tuple[Any, list[Any]]:
        stream = model.astream("?", output_type={"type": "integer"}, max_tokens=3)
        partials = [partial.value async for partial in stream.partials()]
        async with model.astream("?") as other:
            await other.__anext__()
        with pytest.raises(ModelError, match="has no result"):
            await other.result()
        return (await stream.result()).value, partials

    value, partials = asyncio.run(ask())
    assert isinstance(value, int) and partials[-1] == value


def test_random_answers_of_a_model_have_typed_partial_values(thorough: bool) -> None:
    """Random orders: the last partial value is the value of the answer."""
    with load_model("embedded") as model:
        for seed in range(20 if thorough else 6):
            stream = model.stream("?", output_type=Order, temperature=1.0, seed=seed, max_tokens=600)
            partials = list(stream.partials())
            assert repr(partials[-1].value) == repr(stream.result.value)


def test_notebooks_show_answers_tools_and_grammars() -> None:
    """A cell shows the text, the calls and the usage, the tools, or the grammar, with every text escaped."""

    def find(name: str) -> str:
        """Find <b>things</b>."""
        return name

    call = Message("assistant", "", tool_calls=(ToolCall("1", "find", {"name": "<script>"}),))
    tools = ToolSet([find])
    answer = ScriptedModel([call]).generate("?", tools=tools)
    for value, said in (
        (answer, "find({&quot;name&quot;: &quot;&lt;script&gt;&quot;})"),
        (tools, "Find &lt;b&gt;things&lt;/b&gt;."),
        (Grammar.from_regex("<a>+"), "&lt;a&gt;+"),
    ):
        html = value._repr_html_()
        assert said in html and "<script" not in html and "<b>" not in html


def find(name: str) -> str:
    """Find a person."""
    return name


ANSWERS = {
    "text": ("Good.", {}),
    "reasoning": (Message("assistant", "Good.", reasoning="So."), {}),
    "calls": (Message("assistant", "", tool_calls=(ToolCall("1", "find", {"name": "Zoë"}),)), {"tools": [find]}),
    "probabilities": ('"Zoë"', {"output_type": Literal["Zoë", "Ann"], "exact_choice": True, "masses": True}),
    "cut": ('{"street": "A long street", "codes": [1, 2]}', {"output_type": Address, "max_tokens": 32}),
    "stopped": ("A long answer", {"stop": "long"}),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_that_comes_whole_ends_as_its_stream(kind: str) -> None:
    """Its last event is that of the model's stream, its events join to its message, and the result is itself."""
    answer, options = ANSWERS[kind]
    options = {"max_tokens": 60, **options}
    ends = [*ScriptedModel([answer]).stream("?", **options)]
    whole = ScriptedModel([answer]).generate("?", **options)
    stream, built = Stream.of(lambda: whole), MessageBuilder()
    events = [*stream]
    for event in events:
        built.add(event)
    assert vars(events[-1]) == vars(ends[-1])
    assert built.message() == whole.message and stream.result is whole
    with pytest.raises(ModelError, match="came whole"):
        stream.partials()


def test_an_asynchronous_answer_that_comes_whole() -> None:
    """It has the events of a synchronous one, and the same result."""

    async def ask() -> None:
        model = ScriptedModel(["Good."])
        stream = AsyncStream.of(lambda: model.agenerate("?"))
        events = [event async for event in stream]
        whole = await stream.result()
        assert events == whole.events() and whole.text == "Good."

    asyncio.run(ask())
