"""What is written under a Pydantic type's schema passes that type's own validation."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import fractions
import importlib
import ipaddress
import json
import pathlib
import re
import uuid
import zoneinfo
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union, get_args

import pydantic
import pytest
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    NaiveDatetime,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
    networks,
)
from pydantic_core import core_schema
from typing_extensions import TypedDict

from toolgrammar.core import Grammar, InvalidArgumentsError, UnsatisfiableSchemaError, UnsupportedSchemaError
from toolgrammar.core.schema.pydantic.schema import PydanticJsonSchema, json_schema_of

from ...vocabularies import BYTES, random_text

UTC = dt.timezone.utc


class Kind(enum.Enum):
    """An enumeration of mixed values."""

    TEXT = "x"
    NUMBER = 2
    REAL = 1.5


class Level(enum.IntEnum):
    """An enumeration of integers."""

    LOW = 1
    HIGH = 2


class Options(TypedDict, total=False):
    """A typed dict."""

    size: int
    day: dt.date


class Pair(NamedTuple):
    """A named tuple."""

    first: int
    second: str = "x"


@dataclasses.dataclass
class Slot:
    """A dataclass."""

    number: int
    at: Optional[dt.time] = None  # noqa: UP045


class Node(BaseModel):
    """A recursive model."""

    value: int
    children: list[Node] = []


class Cat(BaseModel):
    """A model that a tag tells apart."""

    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    """Another one."""

    kind: Literal["dog"] = "dog"
    name: str


def text(**constraints: Any) -> Any:
    """A string with constraints."""
    return Annotated[str, StringConstraints(**constraints)]


def limited(of: Any, **constraints: Any) -> Any:
    """A type with the constraints of a field."""
    return Annotated[of, Field(**constraints)]


DAY, NOON = dt.date(2020, 1, 15), dt.time(12, 30, 15)
MOMENT = dt.datetime(2020, 1, 15, 12)
TYPES: list[Any] = [
    # dates and times
    *(dt.date, dt.time, dt.datetime, dt.timedelta, NaiveDatetime, AwareDatetime),
    *(pydantic.PastDate, pydantic.FutureDate, pydantic.PastDatetime, pydantic.FutureDatetime),
    *(limited(dt.date, ge=DAY), limited(dt.date, gt=DAY, lt=dt.date(2021, 2, 28)), limited(dt.date, le=DAY)),
    *(limited(dt.datetime, ge=MOMENT), limited(dt.datetime, lt=MOMENT.replace(tzinfo=UTC))),
    limited(AwareDatetime, gt=MOMENT.replace(tzinfo=UTC), lt=dt.datetime(2020, 3, 1, tzinfo=UTC)),
    *(limited(dt.time, ge=NOON), limited(dt.time, gt=NOON, lt=dt.time(13)), limited(dt.time, le=dt.time(10, 0, 0, 5))),
    limited(dt.timedelta, ge=dt.timedelta(hours=1)),
    limited(dt.timedelta, gt=dt.timedelta(0), lt=dt.timedelta(days=2)),
    # numbers
    *(int, float, bool, Decimal, complex, fractions.Fraction, pydantic.FiniteFloat, pydantic.NegativeFloat),
    *(limited(int, multiple_of=7), limited(int, strict=True), limited(int, ge=2, lt=4), pydantic.PositiveInt),
    *(limited(float, multiple_of=0.1), limited(float, multiple_of=0.01, gt=3), limited(float, ge=1e17, le=1e18)),
    *(limited(float, lt=10), limited(float, gt=0.1, lt=0.2)),
    *(limited(Decimal, max_digits=5, decimal_places=2), limited(Decimal, max_digits=3)),
    *(limited(Decimal, decimal_places=2), limited(Decimal, gt=0, le=10), limited(Decimal, multiple_of=Decimal("0.05"))),
    *(limited(Decimal, max_digits=4, decimal_places=4), limited(Decimal, max_digits=5, decimal_places=0)),
    limited(Decimal, ge=-5, max_digits=4, decimal_places=1, multiple_of=Decimal("0.5")),
    limited(Decimal, gt=0, max_digits=6, decimal_places=2),
    pydantic.ByteSize,
    # strings
    *(str, text(min_length=2, max_length=2), text(to_lower=True, pattern="^[a-z]+$"), text(to_upper=True, max_length=2)),
    *(text(strip_whitespace=True, min_length=3), text(strip_whitespace=True, pattern="^a b*$", max_length=4)),
    *(bytes, limited(bytes, max_length=3), limited(bytes, min_length=2, max_length=3)),
    *(pydantic.Base64Bytes, pydantic.Base64Str, pydantic.Base64UrlBytes, pydantic.Base64UrlStr),
    *(pydantic.SecretStr, pydantic.SecretBytes, pydantic.Secret[dt.date], re.Pattern, re.Pattern[str], pathlib.Path),
    *(uuid.UUID, pydantic.UUID1, pydantic.UUID3, pydantic.UUID4, pydantic.UUID5, pydantic.UUID7, zoneinfo.ZoneInfo),
    # addresses
    *(ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface, pydantic.IPvAnyAddress),
    *(ipaddress.IPv6Address, ipaddress.IPv6Network, ipaddress.IPv6Interface, pydantic.IPvAnyNetwork),
    *(pydantic.IPvAnyInterface, pydantic.AnyUrl, pydantic.HttpUrl, pydantic.FileUrl, pydantic.FtpUrl),
    *(networks.WebsocketUrl, networks.AnyWebsocketUrl, networks.PostgresDsn, networks.RedisDsn, networks.MongoDsn),
    *(networks.KafkaDsn, networks.AmqpDsn, networks.MySQLDsn, networks.MariaDBDsn, networks.NatsDsn),
    # collections
    *(list[int], limited(list[int], min_length=1, max_length=2), tuple[int, ...], tuple[int, str], set[int]),
    *(frozenset[str], limited(set[str], min_length=2), limited(dict[str, int], min_length=2)),
    *(dict[int, int], dict[float, int], dict[bool, int], dict[Decimal, int], dict[dt.date, int], dict[dt.datetime, int]),
    *(dict[uuid.UUID, int], dict[ipaddress.IPv4Address, int], dict[tuple[int, int], int], dict[Kind, int]),
    *(dict[Level, int], dict[Literal["a", "b"], int], dict[Literal[1, 2], int], dict[Union[int, str], int]),
    *(dict[Union[int, bool], int], dict[int | None, int], dict[limited(int, ge=0), int]),
    *(dict[limited(int, gt=3, lt=9), int], dict[text(pattern="^a+$"), int], dict[text(min_length=2), int]),
    # the rest
    *(None, Any, Kind, Level, Options, Pair, Slot, Node, Union[int, str, None], Literal["a", 1, None, True]),
    *(limited(Union[int, float], gt=0), limited(Union[str, list[int]], min_length=2, max_length=3)),
    *(limited(Union[Cat, Dog], discriminator="kind"), pydantic.StrictInt, pydantic.StrictBool, pydantic.StrictFloat),
    *(limited(dt.date, strict=True), limited(uuid.UUID, strict=True), limited(set[int], strict=True)),
    *(Literal[1, 2], Literal[1000], limited(Level, strict=True), limited(int, ge=1000, multiple_of=500), dict[str, Level]),
    *(Union[pydantic.StrictInt, str], list[pydantic.StrictInt], limited(list[int], max_length=3), Level | None),
    # JSON inside of a string
    *(pydantic.Json, pydantic.Json[Any], pydantic.Json[int], pydantic.Json[bool], pydantic.Json[float], pydantic.Json[str]),
    *(pydantic.Json[list[int]], pydantic.Json[list[list[str]]], pydantic.Json[Literal['a"b\\', 1, None]]),
    *(pydantic.Json[Union[int, None]], pydantic.Json[tuple[int, str]], pydantic.Json[Options], pydantic.Json[Level]),
    *(list[pydantic.Json[int]], pydantic.Json[int] | None, pydantic.Json[dict[str, int]]),
    create_model("Hex", __config__=ConfigDict(val_json_bytes="hex"), a=(limited(bytes, min_length=2, max_length=4), ...)),
    create_model("Base", __config__=ConfigDict(val_json_bytes="base64"), a=(limited(bytes, max_length=4), ...), b=(bytes, ...)),
    create_model("Stripped", __config__=ConfigDict(str_strip_whitespace=True), a=(text(min_length=2), ...)),
    create_model("Sized", __config__=ConfigDict(str_min_length=2, str_max_length=3), a=(str, ...), b=(pydantic.Json[str], ...)),
    create_model("Own", __config__=ConfigDict(str_min_length=2, str_max_length=3), a=(text(min_length=1, max_length=5), ...)),
    create_model("Seconds", __config__=ConfigDict(ser_json_timedelta="float"), a=(dt.timedelta, ...)),
]  # fmt: skip


@pytest.mark.parametrize("whitespace", ["single", "compact", "flexible"])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: str(kind)[:90])
def test_what_is_written_passes_pydantic(kind: Any, whitespace: Any) -> None:
    """The law, for every type of field."""
    adapter = TypeAdapter(kind)
    schema = adapter.json_schema(schema_generator=PydanticJsonSchema)
    grammar = Grammar.from_json_schema(schema, whitespace=whitespace, plain_integers=True)
    for seed in range(15 if whitespace == "single" else 8):
        written = random_text(grammar, seed, (0, 2, 6, 15, 40, 80))
        try:
            adapter.validate_json(written)
        except ValidationError as error:
            pytest.fail(f"{written!r}: {error}")


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (dt.datetime, ["2020-01-01T00:00:00", "2020-02-29T23:59:59.25+02:00", "2020-01-01T10:30"]),
        (NaiveDatetime, ["2020-01-01T00:00:00"]),
        (dt.time, ["10:30", "10:30:00Z", "10:30:00.5-03:00"]),
        (dt.timedelta, ["PT1H30M", "P2DT12H", "P1Y2M3D", "-P1D", "P3W"]),
        (pydantic.HttpUrl, ["https://example.com", "http://127.0.0.1:8080/a/b?c=d#e", "https://u:p@a-b.example.org/"]),
        (pydantic.AnyUrl, ["mailto:someone@example.com", "urn:isbn:0451450523", "s3://bucket/key"]),
        (networks.PostgresDsn, ["postgresql://user:secret@localhost:5432/app", "postgres://a,b:5433/app"]),
        (ipaddress.IPv4Network, ["10.0.0.0/8", "192.168.1.0/24", "172.16.0.0/12", "1.2.3.4"]),
        (ipaddress.IPv6Network, ["2001:db8::/32", "::1", "::/0"]),
        (Decimal, ["3.14", "-0.50", "12345678901234567890"]),
        (dict[int, str], [{"1": "a", "-20": "b"}]),
        (re.Pattern, ["^[a-z]+(?:x|y)*$", r"\d{3}-\d{4}"]),
        (pydantic.ByteSize, ["10 MiB", "1.5gb", 100]),
        (dt.date, ["2024-02-29"]),
    ],
    ids=str,
)
def test_what_people_write_is_taken(kind: Any, texts: list[Any]) -> None:
    """Narrower than Pydantic, and not so narrow that usual values are refused."""
    grammar = Grammar.from_json_schema(TypeAdapter(kind).json_schema(schema_generator=PydanticJsonSchema))
    for value in texts:
        TypeAdapter(kind).validate_json(json.dumps(value))
        assert grammar.matches(json.dumps(value)), value


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("uuid4", ["12345678-1234-4234-8234-123456789012"], ["12345678-1234-1234-8234-123456789012", "x"]),
        ("ipv4network", ["10.0.0.0/8"], ["10.0.0.1/8", "10.0.0.0/33"]),
        ("ipvanyaddress", ["1.2.3.4", "::1"], ["1.2.3", "1.2.3.4/8"]),
        ("base64", ["", "QUJD", "QQ=="], ["QQ=", "Q", "QR=="]),
        ("base64url", ["_-8="], ["+/8="]),
        ("unheard-of", ["anything"], []),
    ],
)
def test_names_that_pydantic_makes_up_are_enforced_in_any_schema(name: str, good: list[str], bad: list[str]) -> None:
    """A schema of ``model_json_schema()`` is plain data; what its formats say is known."""
    grammar = Grammar.from_json_schema({"type": "string", "format": name})
    assert [value for value in good if not grammar.matches(json.dumps(value))] == []
    assert [value for value in bad if grammar.matches(json.dumps(value))] == []


def test_the_grammar_of_a_class() -> None:
    """`Grammar.from_json_schema` takes a Pydantic class itself."""
    grammar = Grammar.from_json_schema(Dog)
    assert grammar.matches('{"kind": "dog", "name": "Rex"}') and not grammar.matches('{"kind": "cat", "name": "Rex"}')
    assert grammar.schema == json_schema_of(Dog)


INTEGERS: list[Any] = [
    *(int, pydantic.StrictInt, limited(int, ge=1), limited(int, multiple_of=1), Level, Literal[1, 1000], Literal["a", 1]),
    *(Literal[1], Union[int, str], Union[Level, None], pydantic.Json[int]),
]  # fmt: skip


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integers_have_one_spelling_under_every_whitespace_policy(kind: Any) -> None:
    """Pydantic takes neither 1e25 nor 12345678901234567890.0 for an integer; a plain JSON Schema means both."""
    model = create_model("M", a=(kind, ...), b=(list[kind], ...))
    adapter = TypeAdapter(model)
    grammar = Grammar.from_json_schema(model, whitespace="flexible")
    text = '"%s"' if "contentSchema" in str(adapter.json_schema()) else "%s"
    assert grammar.matches('{ "a" : %s, "b" : [ %s ]}' % (text % "1", text % "1"))  # noqa: UP031
    for number in ("1.0", "1e0", "10e-1", "1e25", "12345678901234567890.0"):
        for pair in ((number, "1"), ("1", number)):
            assert not grammar.matches('{"a": %s, "b": [%s]}' % tuple(text % each for each in pair))  # noqa: UP031
    assert Grammar.from_json_schema({"type": "integer"}, whitespace="flexible").matches("1e25")


def test_tools_have_integers_in_one_spelling() -> None:
    """Arguments and answers beside tools are read by Pydantic too, whatever schema they came with."""
    from toolgrammar.tools import ToolSet

    def count(of: pydantic.StrictInt, level: Level) -> None:
        """Count."""

    call = '<tool_call>\n{"name": "count", "arguments": {"of": %s, "level": 1}}\n</tool_call>'
    grammar = ToolSet.from_any([count]).grammar("hermes", whitespace="flexible")
    assert grammar.matches(call % "12") and not grammar.matches(call % "12.0")
    assert not grammar.matches(call.replace("1}", "1.0}") % "12")


def test_sizes_in_bytes_are_numbers_with_units() -> None:
    """The pattern in Pydantic's own schema takes the digits of all alphabets, and any text behind them."""
    grammar = Grammar.from_json_schema(create_model("M", a=(pydantic.ByteSize, ...)))
    assert grammar.matches('{"a": "10 MiB"}')
    assert not any(grammar.matches(json.dumps({"a": each}, ensure_ascii=False)) for each in ("\uabf7", "9(m", "1 x"))


def test_json_in_strings_is_written_or_refused() -> None:
    """What a string holds is JSON of its type; a type without an easy pattern is refused by its place."""
    grammar = Grammar.from_json_schema(create_model("M", a=(pydantic.Json[list[int]], ...)))
    assert grammar.matches('{"a": "[1, 2]"}') and grammar.matches('{"a": "[]"}')
    assert not any(grammar.matches('{"a": %s}' % each) for each in ('""', '"1"', '"[1.5]"', "[1]"))  # noqa: UP031
    for inner in (pydantic.PositiveInt, limited(float, ge=0, le=1), dt.date):
        model = create_model("M", a=(pydantic.Json[inner], ...))
        with pytest.raises(UnsupportedSchemaError, match=r"JSON inside of a string.*\n?.*on_unsupported") as caught:
            Grammar.from_json_schema(model)
        assert (caught.value.place.pointer, caught.value.place.keyword) == ("/properties/a", "format")
    assert Grammar.from_json_schema(model, on_unsupported="validate").unenforced
    with pytest.raises(UnsupportedSchemaError):
        Grammar.from_json_schema(create_model("M", a=(pydantic.Json[enum.Enum("Nothing", [])], ...)))


def test_serialization_schemas_are_pydantics_own() -> None:
    """What a value is written as is not ours to narrow."""
    model = create_model(
        "M", a=(dt.datetime, ...), b=(Decimal, ...), c=(dict[int, int], ...), d=(pydantic.HttpUrl, ...)
    )
    expected = model.model_json_schema(mode="serialization")
    assert model.model_json_schema(mode="serialization", schema_generator=PydanticJsonSchema) == expected


def test_what_no_json_value_can_be_is_never_written() -> None:
    """A class, or a choice among things without a JSON Schema: left out where there is a default, else an error."""

    class Holder(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        kind: type[BaseModel] | None = None
        others: dict[str, object] = {}

    grammar = Grammar.from_json_schema(Holder)
    assert grammar.matches('{"kind": null}') and grammar.matches("{}") and not grammar.matches('{"kind": 1}')
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        Grammar.from_json_schema(create_model("Needed", kind=(type[BaseModel], ...))).check()
    assert caught.value.place.pointer == "/properties/kind"


@pytest.mark.parametrize("name", ["default", "examples", "pet"])
def test_a_tag_is_required_in_a_field_of_any_name(name: str) -> None:
    """A property that is called like a keyword is read as a property."""

    class Cat(BaseModel):
        kind: Literal["cat"] = "cat"

    class Dog(BaseModel):
        kind: Literal["dog"] = "dog"

    pet = Annotated[Union[Cat, Dog], Field(discriminator="kind")]
    grammar = Grammar.from_json_schema(create_model("Owner", **{name: (pet, ...)}))
    assert grammar.matches(json.dumps({name: {"kind": "cat"}}))
    assert not grammar.matches(json.dumps({name: {}}))


def test_a_pattern_that_cannot_be_enforced_is_refused_by_its_text() -> None:
    """An error of ours, not a schema that means something else."""
    config = ConfigDict(regex_engine="python-re")
    model = create_model("M", __config__=config, a=(Annotated[str, Field(pattern=r"(a)\1")], ...))
    with pytest.raises(UnsupportedSchemaError, match="not regular"):
        json_schema_of(model)


def test_decimals_beside_an_excluded_bound_are_not_rounded_to_it() -> None:
    """Pydantic and JSON Schema's validators read doubles."""
    grammar = Grammar.from_json_schema({"type": "number", "exclusiveMaximum": 10, "exclusiveMinimum": 0.1})
    for text, accepted in {
        "9.99999999999999999999": False,
        "9.999999999999998": True,
        "0.10000000000000000001": False,
        "0.10000000000000002": True,
        "10": False,
        "5": True,
    }.items():
        assert grammar.matches(text) is accepted, text
        assert (0.1 < json.loads(text) < 10) is accepted


#: Kinds of errors that Pydantic's own validation raises; all others are of functions of Python.
OWN_ERRORS = set(get_args(core_schema.ErrorType)) - {"value_error", "assertion_error"}


def refusals(cls: type[BaseModel], text: bytes) -> list[str]:
    """Return the kinds of errors with which a class refuses a text."""
    try:
        cls.model_validate_json(text)
    except ValidationError as error:
        return [each["type"] for each in error.errors(include_url=False)]
    except (TypeError, KeyError, AttributeError, NotImplementedError) as error:  # of a validator that its author wrote
        return [type(error).__name__]
    return []


@pytest.mark.parametrize("package", ["openai", "mcp", "autogen_core", "langchain_core"])
def test_classes_of_packages(package: str) -> None:
    """The law for classes that others wrote, as far as they are installed: some of each package, no wrong text."""
    pytest.importorskip(package)
    names = {
        "openai": ("types.chat", ["ChatCompletion", "ChatCompletionChunk", "ChatCompletionMessage"]),
        "mcp": ("types", ["Tool", "CallToolResult", "InitializeRequest", "SamplingMessage", "Resource"]),
        "autogen_core": (
            "models",
            ["UserMessage", "AssistantMessage", "FunctionExecutionResultMessage", "CreateResult"],
        ),
        "langchain_core": ("messages", ["AIMessage", "HumanMessage", "ToolMessage", "SystemMessage"]),
    }
    module, wanted = names[package]
    classes = importlib.import_module(f"{package}.{module}")
    passed = 0
    for name in wanted:
        cls = getattr(classes, name)
        grammar = Grammar.from_json_schema(cls, additional_properties=False)
        problems = [each for seed in range(5) for each in refusals(cls, random_text(grammar, seed, (0, 10, 40, 120)))]
        assert not OWN_ERRORS & set(problems), (name, problems)
        passed += not problems
    assert passed * 2 >= len(wanted)


class Trip(BaseModel):
    """Dates beside today."""

    leaves: pydantic.FutureDate
    booked: pydantic.PastDate
    returns: pydantic.FutureDatetime


def trip(days: int, today: dt.date) -> str:
    """A trip that many days from a day, booked as long before it."""
    ahead, back = (today + dt.timedelta(days=each) for each in (days, -days))
    return f'{{"leaves": "{ahead}", "booked": "{back}", "returns": "{ahead}T10:00:00"}}'


def test_dates_beside_today_are_those_of_the_day_on_which_a_grammar_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema of a class holds on every day; what is made of it has the bounds of that day, also from a cache."""
    from toolgrammar.core import ConstraintCache
    from toolgrammar.core.schema.scalars import dates
    from toolgrammar.tools import ToolSet

    schema = json_schema_of(Trip)
    assert schema["properties"]["leaves"]["format"] == "python-future-date" and "20" not in json.dumps(schema)
    tools, cache, today = ToolSet.from_any([Trip]), ConstraintCache(), dates.today()
    call = '<tool_call>\n{"name": "Trip", "arguments": %s}\n</tool_call>'
    for later in (0, 30):
        day = today + dt.timedelta(days=later)
        monkeypatch.setattr(dates, "today", lambda day=day: day)
        for grammar in (Grammar.from_json_schema(Trip), Grammar.from_json_schema(schema)):
            assert (
                grammar.matches(trip(2, day)) and not grammar.matches(trip(1, day)) and grammar.matches(trip(90, day))
            )
        cached = cache.from_json_schema(schema, BYTES)
        assert cached.matcher().accept_bytes(trip(2, day).encode())
        assert not cached.matcher().accept_bytes(trip(1, day).encode())
        turn = tools.grammar(tool_choice="Trip")
        assert turn is tools.grammar(tool_choice="Trip")
        assert turn.matches(call % trip(2, day)) and not turn.matches(call % trip(1, day))
        assert tools.validate({"name": "Trip", "arguments": json.loads(trip(0, day))}).error is None
        with pytest.raises(InvalidArgumentsError, match="python-past-date"):
            tools.validate({"name": "Trip", "arguments": json.loads(trip(-1, day))})


def test_an_answer_has_the_dates_of_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans and schemas for servers are those of the day, too, though they are kept by what a schema says."""
    from toolgrammar.core.generation import GenerateParams, JsonMode
    from toolgrammar.core.generation.plan import Planner
    from toolgrammar.core.models.remote.schema_dialects import plain_schema
    from toolgrammar.core.schema.scalars import dates

    planner, today = Planner(), dates.today()
    for later in (0, 30):
        day = today + dt.timedelta(days=later)
        monkeypatch.setattr(dates, "today", lambda day=day: day)
        plan = planner.plan(GenerateParams(json_mode=JsonMode(schema=Trip)), None)
        assert (
            plan.grammar is not None and plan.grammar.matches(trip(2, day)) and not plan.grammar.matches(trip(1, day))
        )
        sent = plain_schema(json_schema_of(Trip))["properties"]["leaves"]
        assert sent["format"] == "date" and re.search(sent["allOf"][0]["pattern"], f"{day + dt.timedelta(days=2)}")
        assert not re.search(sent["allOf"][0]["pattern"], f"{day}")
