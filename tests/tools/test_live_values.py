"""Arguments bound to live values: callables in signatures and schemas, in every format, under every budget."""

import itertools
import json
import random
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from toolgrammar.core import (
    AtLeast,
    AtMost,
    BudgetError,
    CallEnd,
    DaysFromToday,
    Grammar,
    InvalidArgumentsError,
    InvalidSchemaError,
    LiveValues,
    LiveValuesError,
    Message,
    Model,
    ToolCall,
    UnsatisfiableSchemaError,
    Values,
    given,
    load_model,
)
from toolgrammar.core.grammar.sampling import single_bytes
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats.registry import format_names

IDS = {"acme": ["A-1", "A-2", "B-7"], "zeta": ["Z-9"], "none": []}


def tickets(asked: list[dict[str, Any]] | None = None, **options: Any) -> ToolSet:
    """Return a tool whose ticket is one of the project's."""

    def ids(call: dict[str, Any]) -> list[str]:
        if asked is not None:
            asked.append(call)
        return IDS[call["project"]]

    def close_ticket(
        id: Annotated[str, Values(ids, after=("project",), **options)],
        project: Literal["acme", "zeta"],
        note: str | None = None,
    ) -> str:
        """Close a ticket."""
        return id

    return ToolSet([close_ticket])


@pytest.mark.parametrize("name", format_names())
def test_each_format_shows_the_arguments_that_are_written(name: str) -> None:
    """The callable sees the project; the model's id, which does not exist, gives way to one that does."""
    asked: list[dict[str, Any]] = []
    tools = tickets(asked)
    for project, wanted in (("acme", "B-9"), ("zeta", "Q")):
        call = ToolCall("call00000", "close_ticket", {"project": project, "id": wanted})
        model = ScriptedModel([tools.wire_format(name).render("", [call])])
        generation = model.generate("x", tools=tools, tool_choice="required", tool_format=name, max_tokens=1_000)
        (written,) = generation.tool_calls
        assert written.error is None and written.arguments["id"] in IDS[written.arguments["project"]]
    assert asked and all(call in ({"project": "acme"}, {"project": "zeta"}) for call in asked)
    assert len(asked) == 2  # once for an answer: the check of the finished call does not ask again


def test_the_model_reads_nothing_of_the_values() -> None:
    """Neither chat templates nor prompts show callables, their names or their values."""
    tools = tickets()
    for text in (json.dumps(tools.to_openai()), tools.prompt("hermes"), tools.prompt("harmony")):
        assert "x-values" not in text and "A-1" not in text and "id" in text
    assert "x-values" not in json.dumps(tools.to_openai(closed=True))


def test_a_finished_call_is_checked() -> None:
    """Parsed freely, from a server, or as a dict; the error has the place."""
    tools = tickets()
    good = {"name": "close_ticket", "arguments": {"project": "acme", "id": "A-2"}}
    bad = {"name": "close_ticket", "arguments": {"project": "acme", "id": "Z-9"}}
    assert tools.validate(good).arguments["id"] == "A-2" and tools.call(good) == "A-2"
    with pytest.raises(InvalidArgumentsError, match='"Z-9" is not one of the present values') as caught:
        tools.validate(bad)
    assert (caught.value.place.tool, caught.value.place.pointer) == ("close_ticket", "/id")
    text = f"<tool_call>\n{json.dumps(bad)}\n</tool_call>"
    (call,) = tools.parse(text).tool_calls
    assert call.error is not None and "present values" in call.error
    (call,) = tools.parse(text, repair=True).tool_calls
    assert call.error is not None
    assert tools.check_call(call).error is not None
    message, _ = tools.repair(text.replace("Z-9", "A-1").replace("close_ticket", "close_tickets"))
    assert message.tool_calls[0].error is None


@pytest.fixture(scope="module")
def noise() -> Model:
    """The embedded model, whose random weights like any text."""
    return load_model("embedded")


def test_every_budget(noise: Model) -> None:
    """Below the least budget an error names it; from there on each call is whole, within it, and valid."""
    tools = tickets(longest=6)
    request: dict[str, Any] = {
        "tools": tools,
        "tool_choice": "required",
        "temperature": 1.0,
        "parallel_tool_calls": False,
    }
    with pytest.raises(BudgetError, match=r"needs (\d+) tokens") as caught:
        noise.generate("x", max_tokens=3, **request)
    least = int(str(caught.value).split("needs ")[1].split()[0])
    seen = set()
    for budget in range(least, least + 30):
        generation = noise.generate("x", max_tokens=budget, seed=budget, **request)
        assert generation.usage.completion_tokens <= budget
        (call,) = generation.tool_calls
        assert call.error is None
        tools.validate(call)
        seen.add(call.arguments["id"])
    assert len(seen) > 2


def test_a_value_longer_than_its_room_is_an_error_or_fits(noise: Model) -> None:
    """Never an unfinished call: the budget holds a value, or an error says how to keep more room."""

    def touch(id: Annotated[str, Values(lambda: ["x" * 300])]) -> None:
        """Touch a thing."""

    whole = errors = 0
    for budget in (60, 100, 200, 600):
        try:
            generation = noise.generate("x", tools=[touch], tool_choice="required", max_tokens=budget)
        except BudgetError as error:
            assert "longest" in str(error) or "shortest valid output" in str(error)
            errors += 1
            continue
        whole += 1
        assert generation.tool_calls[0].arguments == {"id": "x" * 300}
    assert whole and errors


def test_parallel_calls_and_several_tools(noise: Model) -> None:
    """Each call of an answer sees its own arguments; tools of one source name keep their own callables."""
    asked: list[tuple[str, Any]] = []

    def first(
        kind: Literal["a", "b"],
        id: Annotated[str, Values(lambda call: asked.append(("first", call)) or [call["kind"] + "1"])],
    ) -> None:
        """Do the first thing."""

    def second(
        kind: Literal["a", "b"],
        id: Annotated[str, Values(lambda call: asked.append(("second", call)) or [call["kind"] + "2"])],
    ) -> None:
        """Do the second thing."""

    tools = ToolSet([first, second])
    calls = [
        ToolCall(str(n), name, {"kind": kind, "id": ident})
        for n, (name, kind, ident) in enumerate([("first", "a", "a1"), ("second", "a", "a2"), ("first", "b", "b1")])
    ]
    model = ScriptedModel([Message("assistant", "", tool_calls=tuple(calls))])
    generation = model.generate("x", tools=tools, tool_choice="required", max_tokens=2_000)
    assert [(call.name, call.arguments["id"]) for call in generation.tool_calls[:3]] == [
        ("first", "a1"),
        ("second", "a2"),
        ("first", "b1"),
    ]
    assert len(asked) == len({json.dumps(one) for one in asked})


def test_a_callable_that_fails_ends_the_answer_with_its_reason() -> None:
    """The error has the tool, the parameter and the cause."""

    def broken(project: Literal["acme"], id: Annotated[str, Values(lambda call: call["projekt"])]) -> None:
        """Break."""

    model = ScriptedModel(
        [Message("assistant", "", tool_calls=(ToolCall("1", "broken", {"project": "acme", "id": "?"}),))]
    )
    with pytest.raises(LiveValuesError, match="KeyError: 'projekt'") as caught:
        model.generate("x", tools=[broken], tool_choice="required")
    assert (caught.value.place.tool, caught.value.place.parameter) == ("broken", "id")


class Stop(BaseModel):
    """A stop of a tour."""

    country: Literal["de", "fr"]
    city: Annotated[str, Values(lambda stop: {"de": ["Kiel", "Ulm"], "fr": ["Pau"]}[stop["country"]])]


def test_classes_in_lists_have_values_of_their_own() -> None:
    """A city of each stop's country, in masks and in the check."""

    def tour(stops: list[Stop]) -> int:
        """Plan a tour."""
        return len(stops)

    tools = ToolSet([tour])
    said = {"stops": [{"country": "de", "city": "Pau"}, {"country": "fr", "city": "Ulm"}]}
    good = {"stops": [{"country": "de", "city": "Ulm"}, {"country": "fr", "city": "Pau"}]}
    model = ScriptedModel([Message("assistant", "", tool_calls=(ToolCall("1", "tour", good),))])
    generation = model.generate("x", tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=500)
    assert generation.tool_calls[0].arguments == good
    model = ScriptedModel([Message("assistant", "", tool_calls=(ToolCall("1", "tour", said),))])
    generation = model.generate("x", tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=500)
    stops = generation.tool_calls[0].arguments["stops"]
    assert stops and all(stop["city"] in {"de": ["Kiel", "Ulm"], "fr": ["Pau"]}[stop["country"]] for stop in stops)
    with pytest.raises(InvalidArgumentsError) as caught:
        tools.validate({"name": "tour", "arguments": said})
    assert caught.value.place.pointer == "/stops/0/city"


def test_a_schema_and_an_argument_of_a_tool() -> None:
    """A callable in the schema itself, and a name whose callable the tool has."""
    member: dict[str, Any] = {"type": "string", "x-values": {"source": "ids", "after": ["project"]}}
    parameters = {
        "type": "object",
        "properties": {"id": member, "project": {"enum": ["acme"]}},
        "required": ["id", "project"],
    }
    named = Tool("close", parameters=parameters, values={"ids": lambda call: IDS[call["project"]]})
    assert list(named.parameters["properties"]) == ["project", "id"]
    inline = json.loads(json.dumps(parameters))
    inline["properties"]["id"]["x-values"] = Values(lambda call: IDS[call["project"]], after="project")
    for source in (named, {"name": "close", "parameters": inline}):
        tools = ToolSet([source])
        tools.validate({"name": "close", "arguments": {"project": "acme", "id": "A-1"}})
        with pytest.raises(InvalidArgumentsError):
            tools.validate({"name": "close", "arguments": {"project": "acme", "id": "A-3"}})


def test_random_answers_are_valid(noise: Model) -> None:
    """Sampled calls of a tool with optional, chained and nullable live values, in four formats."""
    draw = random.Random(5)

    def book(
        country: Literal["de", "fr"],
        city: Annotated[str, Values(lambda call: {"de": ["Kiel", "Ulm"], "fr": []}[call["country"]])] = "",
        night: Annotated[int, Values(lambda call: {"minimum": len(call.get("city", "")), "maximum": 9})] = 3,
        hotel: Annotated[str, Values(lambda call: [call["city"] + " Inn"] if "city" in call else [])] | None = None,
    ) -> None:
        """Book a night."""

    tools = ToolSet([book])
    written = set()
    for seed in range(24):
        options: Any = {"tool_format": draw.choice(["hermes", "qwen3-coder", "pythonic", "glm-4.5"]), "seed": seed}
        options |= {
            "exact_choice": draw.random() < 0.3,
            "jump_forward": draw.random() < 0.7,
            "max_tokens": draw.randrange(60, 200),
        }
        generation = noise.generate(
            "x", tools=tools, tool_choice="required", temperature=1.5, parallel_tool_calls=False, **options
        )
        (call,) = generation.tool_calls
        assert call.error is None
        tools.validate(call)
        assert call.arguments["country"] == "de" or "city" not in call.arguments
        written.add(frozenset(call.arguments))
    assert len(written) > 2


def holds(tool: Any, **arguments: Any) -> bool:
    """Return True if a call is valid, by the check and by the grammar alike."""
    tools = ToolSet([tool])
    made = tools[tool.__name__]
    text = json.dumps({name: arguments[name] for name in made.parameters["properties"] if name in arguments})
    grammar = Grammar.from_json_schema(made.parameters, additional_properties=False)
    matcher = grammar.bind(single_bytes()).matcher(LiveValues(made.values))
    written = matcher.accept_bytes(text.encode()) and matcher.is_accepting
    try:
        tools.validate({"name": tool.__name__, "arguments": arguments})
    except InvalidArgumentsError:
        assert not written
        return False
    assert written
    return True


def test_numbers_and_dates_that_depend_on_others() -> None:
    """Not below and not above another argument; without it, or if it is null, there is no bound."""

    def rent(
        start: date,
        end: Annotated[date, AtLeast("start")],
        nights: int | None = None,
        paid: Annotated[float, AtMost("nights")] = 0,
    ) -> None:
        """Rent a car."""

    days = ["1999-12-31", "2026-02-28", "2026-03-01", "2026-03-09", "2026-03-10", "2030-01-01"]
    for start, end in itertools.product(days, days):
        assert holds(rent, start=start, end=end) == (start <= end)
    for nights, paid in itertools.product((-3, 0, 7, 12), (-4, -3, 0, 6.5, 7, 12, 13)):
        assert holds(rent, start=days[0], end=days[1], nights=nights, paid=paid) == (paid <= nights)
    assert holds(rent, start=days[0], end=days[1], nights=None, paid=1e6)
    assert holds(rent, start=days[0], end=days[1], paid=1e6)


def test_times_are_compared_in_one_offset() -> None:
    """A time in another offset is not written, and not taken."""

    def meet(start: datetime, end: Annotated[datetime, AtLeast("start")]) -> None:
        """Meet."""

    def leave(end: datetime, start: Annotated[datetime, AtMost("end")]) -> None:
        """Leave."""

    times = ["2026-03-01T09:30:00", "2026-03-01T10:00:00", "2026-03-01T10:00:00.5", "2026-03-02T08:00:00"]
    for (start, end), offset in itertools.product(itertools.product(times, times), ("Z", "+02:00", "")):
        assert holds(meet, start=start + offset, end=end + offset) == (start <= end)
        assert holds(leave, start=start + offset, end=end + offset) == (start <= end)
    assert not holds(meet, start=times[0] + "Z", end=times[2] + "+02:00")


def test_dates_relative_to_today() -> None:
    """The bounds are those of the day of the call."""

    def book(
        day: Annotated[date, DaysFromToday(1, 30)], since: Annotated[date | None, DaysFromToday(-7)] = None
    ) -> None:
        """Book a day."""

    for days in (-8, -7, -1, 0, 1, 2, 29, 30, 31, 400):
        day = (date.today() + timedelta(days=days)).isoformat()
        assert holds(book, day=day) == (1 <= days <= 30)
        tomorrow = (date.today() + timedelta(days=1)).isoformat()
        assert holds(book, day=tomorrow, since=day) == (days >= -7)


def test_a_bound_of_another_kind_is_an_error() -> None:
    """It says what it was given."""

    def pick(first: str, last: Annotated[str, AtLeast("first")]) -> None:
        """Pick."""

    with pytest.raises(LiveValuesError, match="'b' is neither a number nor a date"):
        holds(pick, first="b", last="c")


def test_callables_see_arguments_that_models_do_not() -> None:
    """`given` reaches requests that begin in its context, in the mask and in the check."""
    tools = ToolSet([mine])
    wish = Message("assistant", "", tool_calls=(ToolCall("1", "mine", {"ticket": "x"}),))
    for user in ("ada", "bo"):
        with given(user=user, connection=object()):
            model = ScriptedModel([wish])
            (call,) = model.generate("x", tools=tools, tool_choice="mine", max_tokens=300).tool_calls
            assert call.arguments == {"ticket": f"{user}-1"}
            assert tools.call(call) == f"{user}-1"
        with given(user="eve"), pytest.raises(InvalidArgumentsError):
            tools.call(call)
    with pytest.raises(LiveValuesError, match="KeyError: 'user'"):
        tools.call(call)


def mine(ticket: Annotated[str, Values(lambda call: [call["user"] + "-1"], after=("user", "connection"))]) -> str:
    """Close my ticket."""
    return ticket


def test_a_dict_of_a_tool_keeps_its_callables_in_the_process() -> None:
    """Frameworks pass tools on as JSON: names of callables find them again, and prompts have none."""
    (tool,) = tickets()
    told = json.loads(json.dumps(tool.to_openai(live=True)))
    again = ToolSet.from_any([told])
    assert again["close_ticket"].parameters == tool.parameters and again["close_ticket"].values == tool.values
    with pytest.raises(InvalidArgumentsError):
        again.validate({"name": "close_ticket", "arguments": {"project": "acme", "id": "Z-9"}})
    assert "x-values" not in json.dumps(again.to_openai())
    lost = json.loads(json.dumps(told).replace("toolgrammar-values-", "toolgrammar-values-9999"))
    with pytest.raises(LiveValuesError, match="nothing gives the values"):
        ToolSet.from_any([lost]).validate({"name": "close_ticket", "arguments": {"project": "acme", "id": "A-1"}})


def test_batches_and_streams(noise: Model) -> None:
    """Answers that are written together, in other threads, have the context of their request."""
    tools = ToolSet([mine])
    with given(user="ada"):
        options: dict[str, Any] = {"tools": tools, "tool_choice": "mine", "max_tokens": 90}
        batch = noise.generate_batch(["x", "y", "z"], **options)
        events = list(noise.stream("x", **options))
    calls = [call for generation in batch for call in generation.tool_calls]
    calls += [event.call for event in events if isinstance(event, CallEnd)]
    assert [call.arguments for call in calls] == [{"ticket": "ada-1"}] * 4


def test_clients_cannot_name_callables_of_a_server() -> None:
    """A name in a request is unknown, unless it is the name of an object of this process, which cannot be guessed."""
    names = {Values(list).name for _ in range(3)}
    assert len(names) == 3 and all(len(name) > 40 for name in names)
    tools = ToolSet.from_any(
        [{"name": "f", "parameters": {"properties": {"a": {"x-values": "ids"}}, "required": ["a"]}}]
    )
    with pytest.raises(LiveValuesError, match="nothing gives the values of 'ids'"):
        ScriptedModel([Message("assistant", "", tool_calls=(ToolCall("1", "f", {"a": "x"}),))]).generate(
            "x", tools=tools, tool_choice="f", max_tokens=200
        )


ID = {"type": "string", "x-copied": "user", "pattern": r"^\S*[0-9]\S*$"}
SEEN_ID = {"type": "string", "x-seen": "order_id"}


@pytest.mark.parametrize(
    ("schema", "said", "is_offered"),
    [
        (ID, "Send it to Ann.", False),
        (ID, "Send it to U-7.", True),
        (ID, " \n", False),
        ({"type": "string", "x-copied": "user"}, " \n", False),
        ({**ID, "maxLength": 2}, "Send it to U-7.", False),
        ({"anyOf": [SEEN_ID, ID]}, "Send it to Ann.", False),
        ({"anyOf": [SEEN_ID, ID]}, "Send it to U-7.", True),
        ({"anyOf": [SEEN_ID, ID, {"$ref": "#/$defs/nobody"}]}, "Send it to Ann.", True),
        ({"allOf": [ID, {"pattern": "^Z"}], "description": "Whose."}, "Send it to U-7.", False),
        ({"$ref": "#/$defs/order"}, "Send it to U-7.", False),
        ({"anyOf": [SEEN_ID, {"$ref": "#/$defs/id"}]}, "Send it to Ann.", False),
        ({"anyOf": [SEEN_ID, {"$ref": "#/$defs/id"}]}, "Send it to U-7.", True),
        ({"anyOf": [ID, {"$ref": "#/$defs/nobody"}], "$defs": {"nobody": False}}, "Send it to Ann.", True),
        ({"type": "array", "items": ID}, "Send it to Ann.", True),
        ({"type": "array", "items": ID, "minItems": 1}, "Send it to Ann.", False),
        ({"type": "boolean", "x-seen": "order_id"}, "Send it to Ann.", False),
    ],
)
def test_a_tool_without_a_value_that_its_constraints_allow_is_not_offered(
    schema: dict[str, Any], said: str, is_offered: bool
) -> None:
    """No copy of the conversation satisfies the other constraints: the tool is left out, and the others stay."""
    order = {"type": "object", "properties": {"id": SEEN_ID}, "required": ["id"]}
    defs = {"nobody": {"const": "nobody"}, "id": ID, "order": order}
    parameters = {"type": "object", "properties": {"to": schema}, "required": ["to"], "$defs": defs}
    tools = ToolSet([Tool("send", "", parameters), Tool("ping", "", {"type": "object"})])
    bound = tools.in_conversation([Message("user", said)])
    for choice in ("auto", "required"):
        grammar = bound.grammar(tool_choice=choice)
        assert grammar.matches('<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>')
    if is_offered:
        bound.require_offered("send")
    else:
        with pytest.raises(LiveValuesError, match="the conversation has no value"):
            bound.require_offered("send")


def test_a_tool_that_contradicts_itself_is_an_error() -> None:
    """A schema without a value in any conversation raises `UnsatisfiableSchemaError`; the tool is not left out."""
    number = {"type": "integer", "minimum": 5, "maximum": 3}
    parameters = {"type": "object", "properties": {"to": ID, "n": number}, "required": ["to", "n"]}
    for said in ("Send it to Ann.", "Send it to U-7."):
        with pytest.raises(UnsatisfiableSchemaError, match="the tool can never be called"):
            ToolSet([Tool("send", "", parameters)]).in_conversation([Message("user", said)]).grammar()


@pytest.mark.parametrize("after", [("ticket",), ("project", "ticket")])
def test_values_that_read_each_other_are_an_error(after: tuple[str, ...]) -> None:
    """A cycle of ``after`` is named."""
    properties = {
        "project": {"type": "string", "x-values": {"source": "projects", "after": ["ticket"]}},
        "ticket": {"type": "string", "x-values": {"source": "tickets", "after": list(after)}},
    }
    with pytest.raises(InvalidSchemaError, match=r"reads 'ticket'.*leave one of them out"):
        Tool("close", "", {"type": "object", "properties": properties})
    for keyword in ("allOf", "anyOf"):
        project = {"type": "string", keyword: [{"x-values": properties["project"]["x-values"]}]}
        with pytest.raises(InvalidSchemaError, match="leave one of them out"):
            Tool("close", "", {"type": "object", "properties": {**properties, "project": project}})
    inner = {"type": "object", "properties": {"end": {"x-values": {"source": "ends", "after": ["ticket"]}}}}
    assert Tool("close", "", {"type": "object", "properties": {"ticket": inner}})  # of an object around it
