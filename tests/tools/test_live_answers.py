"""What callables of live values may answer, and read: each mistake has an error that names the parameter."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from datetime import time as clock
from typing import Annotated, Any, Optional

import pytest
from pydantic import BaseModel, Field

from toolgrammar.core import (
    AtLeast,
    AtMost,
    CallEnd,
    DaysFromToday,
    GenerationTimeoutError,
    InvalidArgumentsError,
    InvalidSchemaError,
    LiveValuesError,
    Message,
    ToolCall,
    Values,
    given,
)
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet


def wishing(tool: Callable[..., Any], arguments: dict[str, Any]) -> ScriptedModel:
    """Return a model that wants one call."""
    call = Message("assistant", tool_calls=(ToolCall("c", tool.__name__, arguments),))
    return ScriptedModel(lambda messages: call)


def written(tool: Callable[..., Any], arguments: dict[str, Any], **options: Any) -> Any:
    """Return the arguments that are written for those that a model wants."""
    options = {"tool_choice": "required", "max_tokens": 400, **options}
    (call,) = wishing(tool, arguments).generate("Go.", tools=[tool], **options).tool_calls
    assert ToolSet([tool]).validate(call)
    return call.arguments


def refused(tool: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Check that a finished call is none of the present ones."""
    with pytest.raises(InvalidArgumentsError, match="present values"):
        ToolSet([tool]).validate({"name": tool.__name__, "arguments": arguments})


def test_all_annotations_of_a_parameter_hold() -> None:
    """Two `Values` on one parameter are both asked, in the grammar and for a finished call."""

    def rent(start: date, end: Annotated[date, AtLeast("start"), DaysFromToday(0, 30)]) -> str:
        return "rented"

    def between(low: int, high: int, middle: Annotated[int, AtLeast("low"), AtMost("high")]) -> str:
        return "found"

    soon, late = (date.today() + timedelta(days=days) for days in (10, 20))
    wanted = {"start": late.isoformat(), "end": soon.isoformat()}
    assert late.isoformat() <= written(rent, wanted)["end"] <= (late + timedelta(days=10)).isoformat()
    refused(rent, wanted)
    assert written(between, {"low": 5, "high": 9, "middle": 1})["middle"] == 5
    assert written(between, {"low": 5, "high": 9, "middle": 44})["middle"] in range(5, 10)
    refused(between, {"low": 5, "high": 9, "middle": 1})


def test_a_name_that_is_no_parameter() -> None:
    """It is an error of a bound, unless the program gives it; another callable gets what there is."""

    def rent(start: date, end: Annotated[date, AtLeast("strat")]) -> str:
        return "rented"

    wanted = {"start": "2024-01-01", "end": "1999-01-01"}
    with pytest.raises(LiveValuesError, match=r"'strat', which is no parameter.*parameter 'end'.*given"):
        written(rent, wanted)
    with given(strat="2000-01-01"):
        assert written(rent, wanted)["end"] >= "2000-01-01"

    class Renamed(BaseModel):
        project: str = Field(alias="proj")
        ticket: Annotated[str, Values(lambda call: [call["project"]], after=("project",))]

    with pytest.raises(LiveValuesError, match=r"KeyError: 'project'.*Values\(after"):
        ScriptedModel(['{"proj": "a", "ticket": "a"}']).generate_json("Go.", Renamed)


def test_a_mapping_is_a_schema_only_with_its_keywords() -> None:
    """Names with labels are no values; an empty mapping is the schema of anything."""

    def named(ticket: Annotated[str, Values(lambda call: {"E-1": "first", "E-2": "second"})]) -> str:
        return "named"

    def free(ticket: Annotated[str, Values(lambda call: {})]) -> str:
        return "free"

    with pytest.raises(LiveValuesError, match=r"without a keyword of JSON Schema.*'E-1'.*list\(mapping\)"):
        written(named, {"ticket": "E-1"})
    with pytest.raises(LiveValuesError, match="without a keyword"):
        ToolSet([named]).validate({"name": "named", "arguments": {"ticket": "E-1"}})
    assert written(free, {"ticket": "any"}) == {"ticket": "any"}


def sleeping(call: dict[str, Any]) -> list[str]:
    """Return a value late."""
    time.sleep(3)
    return ["x"]


def yielding(call: dict[str, Any]) -> Iterator[str]:
    """Yield a value late."""
    time.sleep(3)
    yield "x"


async def awaiting(call: dict[str, Any]) -> list[str]:
    """Return a value late."""
    await asyncio.sleep(3)
    return ["x"]


@pytest.mark.parametrize("ask", [sleeping, yielding, awaiting])
def test_a_slow_callable_ends_with_its_time_or_that_of_the_answer(ask: Callable[..., Any]) -> None:
    """A generator runs within the callable's time, too."""

    def hasty(value: Annotated[str, Values(ask, timeout=0.2)]) -> str:
        return "done"

    def patient(value: Annotated[str, Values(ask)]) -> str:
        return "done"

    with pytest.raises(LiveValuesError, match=r"within 0\.2 s"):
        written(hasty, {"value": "x"})
    with pytest.raises(GenerationTimeoutError, match=r"0\.3 s"):
        written(patient, {"value": "x"}, timeout=0.3)


def test_no_values_for_a_part_of_a_parameter() -> None:
    """Items without values leave the empty list, and an option without values the other options."""

    def listed(values: list[Annotated[str, Values(lambda call: [])]]) -> str:
        return "listed"

    def optional(value: Optional[Annotated[str, Values(lambda call: [])]]) -> str:  # noqa: UP045 - as users write it
        return "optional"

    assert written(listed, {"values": ["a"]}) == {"values": []}
    assert written(optional, {"value": "a"}) == {"value": None}


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        (float, [float("nan"), 1.5], "ValueError"),
        (str, ["\ud800"], "UnicodeEncodeError"),
        (str, "text", "TypeError: it returned str"),
        (str, SystemExit(3), "SystemExit: 3"),
        (str, [1, 2], "gives 2 values, and none.*the first is 1"),
        (list[str], ["k"], "gives 1 values, and none.*Values on the items of a list"),
    ],
)
def test_values_that_are_none(kind: Any, values: Any, reason: str) -> None:
    """What is not JSON, not an iterable or of another type is an error with its reason."""

    def ask(call: dict[str, Any]) -> Any:
        if isinstance(values, BaseException):
            raise values
        return values

    def choose(value: Any) -> str:
        return "chosen"

    choose.__annotations__["value"] = Annotated[kind, Values(ask)]
    with pytest.raises(LiveValuesError, match=reason) as caught:
        written(choose, {"value": "k"})
    assert caught.value.place is not None and caught.value.place.parameter == "value"


def test_an_optional_parameter_whose_values_are_of_another_type(caplog: pytest.LogCaptureFixture) -> None:
    """It is left out, with one warning."""

    def choose(name: str, number: Annotated[int, Values(lambda call: ["1", "2"])] = 0) -> str:
        return "chosen"

    with caplog.at_level(logging.WARNING, "toolgrammar"):
        assert written(choose, {"name": "a", "number": 1}) == {"name": "a"}
    (record,) = caplog.records
    assert "parameter 'number' is left out" in record.getMessage()


def test_a_stream_sees_what_is_given_where_it_is_asked_for() -> None:
    """An asynchronous stream, too, although it begins later."""

    def close(user: Annotated[str, Values(lambda call: [call["name"]], after=("name",))]) -> str:
        return "closed"

    model = wishing(close, {"user": "q"})

    async def streamed() -> list[Any]:
        with given(name="bob"):
            events = model.astream("Go.", tools=[close], tool_choice="required", max_tokens=200)
        return [event.call.arguments async for event in events if isinstance(event, CallEnd)]

    assert asyncio.run(streamed()) == [{"user": "bob"}]


async def cancelled(call: dict[str, Any]) -> list[str]:
    """Be cancelled, as by a client of a database."""
    raise asyncio.CancelledError


def endless(call: dict[str, Any]) -> Iterator[int]:
    """Yield for ever."""
    number = 0
    while True:
        yield (number := number + 1)


@pytest.mark.parametrize(("ask", "reason"), [(cancelled, "CancelledError"), (endless, r"within 0\.2 s")])
def test_callables_that_do_not_answer(ask: Callable[..., Any], reason: str) -> None:
    """A cancelled coroutine is no cancelled request; a generator without an end is left."""

    def choose(value: Annotated[int, Values(ask, timeout=0.2)]) -> str:
        return "chosen"

    with pytest.raises(LiveValuesError, match=reason):
        written(choose, {"value": 1})
    for wrong in (None, 0, -1, "1", True):
        with pytest.raises(InvalidSchemaError, match="number of seconds"):
            Values(ask, timeout=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_times_of_day_are_compared(zone: str) -> None:
    """`AtLeast` and `AtMost` of times, in the offset of the other one."""

    def later(start: clock, end: Annotated[clock, AtLeast("start")]) -> str:
        return "later"

    def sooner(start: clock, end: Annotated[clock, AtMost("start")]) -> str:
        return "sooner"

    for end in ("09:59:59", "10:00:00", "10:00:01", "23:00:00", "00:00:00"):
        wanted = {"start": f"10:00:00{zone}", "end": f"{end}{zone}"}
        assert (written(later, wanted)["end"] == wanted["end"]) == (end >= "10:00:00"), end
        assert (written(sooner, wanted)["end"] == wanted["end"]) == (end <= "10:00:00"), end
        assert written(later, wanted)["end"] >= wanted["start"]


@pytest.mark.parametrize("bound", [DaysFromToday(0, 1), AtLeast("start")])
def test_a_plain_string_is_a_date_and_nothing_else(bound: Values) -> None:
    """No other text follows the date; a time may."""

    def choose(start: str, day: str) -> str:
        return "chosen"

    choose.__annotations__["day"] = Annotated[str, bound]
    today = date.today().isoformat()
    for text, allowed in (
        ("", True),
        ("T10:00:00Z", True),
        (" 10:00", True),
        ("-2999", False),
        (" or so", False),
        ("x", False),
    ):
        found = written(choose, {"start": today, "day": today + text})["day"]
        assert (found == today + text) == allowed, text
