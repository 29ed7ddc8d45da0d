"""Tools whose arguments come from the conversation: ids that a tool returned, and copied text."""

import json
from typing import Annotated, Any

import pytest

from toolgrammar.adapters.vllm.envelope import in_conversation
from toolgrammar.core import (
    Copied,
    InvalidArgumentsError,
    InvalidSchemaError,
    LiveValuesError,
    Message,
    Seen,
    ToolCall,
    load_model,
    of_conversation,
)
from toolgrammar.core.conversation.result_values import seen_values
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats.registry import format_names

ORDERS = {"orders": [{"order_id": "O-17"}, {"order_id": "O-18"}]}


def list_orders() -> str:
    """List orders."""
    return json.dumps(ORDERS)


def cancel(order_id: Annotated[str, Seen("order_id")], why: Annotated[str, Copied()] = "") -> str:
    """Cancel an order."""
    return f"cancelled {order_id}"


TOOLS = ToolSet([cancel, list_orders])


def turn(name: str, **arguments: Any) -> Message:
    """Return a turn with one call."""
    return Message("assistant", "", tool_calls=(ToolCall("c1", name, arguments),))


def test_a_conversation_of_several_turns() -> None:
    """Before the list, the tool is not offered; after it, only ids of the list can be written."""
    seen: list[set[str]] = []

    def reply(messages: Any) -> Message:
        return turn("cancel", order_id="O-18", why="it broke")

    messages = [Message("user", "Cancel my order, it broke.")]
    model = ScriptedModel(reply)
    for _ in range(3):
        generation = model.generate(
            messages, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_tokens=900
        )
        (call,) = generation.tool_calls
        seen.append({call.name})
        assert call.error is None
        messages += [generation.message, TOOLS.in_conversation(messages).execute(call).to_message()]
    assert seen == [{"list_orders"}, {"cancel"}, {"cancel"}]
    assert call.arguments == {"order_id": "O-18", "why": "it broke"}
    assert messages[-1].text == "cancelled O-18"


@pytest.mark.parametrize("name", format_names())
def test_every_format(name: str) -> None:
    """Ids and copies, as each format writes strings; the invented id gives way to a real one."""
    messages = [
        Message("user", 'It "broke", <b>twice</b>.'),
        turn("list_orders"),
        Message("tool", json.dumps(ORDERS), tool_call_id="c1"),
    ]
    for why in ('It "broke",', "<b>twice</b>.", "It worked"):
        call = ToolCall("call00000", "cancel", {"order_id": "O-17", "why": why})
        model = ScriptedModel([TOOLS.wire_format(name).render("", [call])])
        generation = model.generate(messages, tools=TOOLS, tool_choice="cancel", tool_format=name, max_tokens=900)
        (written,) = generation.tool_calls
        assert written.error is None and written.arguments["order_id"] in ("O-17", "O-18")
        assert written.arguments.get("why", "It") in messages[0].text


def test_noise_writes_only_what_was_seen() -> None:
    """Random weights, every budget from the least on."""
    model = load_model("embedded")
    messages = [
        Message("user", "It broke twice."),
        turn("list_orders"),
        Message("tool", json.dumps(ORDERS), tool_call_id="c1"),
    ]
    found = set()
    for budget in range(40, 80):
        generation = model.generate(
            messages, tools=TOOLS, tool_choice="cancel", max_tokens=budget, seed=budget, temperature=1.0
        )
        (call,) = generation.tool_calls
        TOOLS.in_conversation(messages).validate(call)
        assert call.arguments["order_id"] in ("O-17", "O-18") and call.arguments.get("why", "It") in messages[0].text
        found.add(call.arguments.get("why"))
    assert len(found) > 2


def test_a_demanded_call_without_values_is_an_error() -> None:
    """It names the tool and the parameter."""
    model = ScriptedModel([turn("cancel", order_id="O-1")])
    for tools, choice in ((TOOLS, "cancel"), (ToolSet([cancel]), "required")):
        with pytest.raises(LiveValuesError, match="no value for a required parameter") as caught:
            model.generate("Cancel O-1.", tools=tools, tool_choice=choice)
        assert (caught.value.place.tool, caught.value.place.parameter) == ("cancel", "order_id")
    assert ToolSet([cancel]).grammar().matches("I cannot.")


def test_calls_are_checked_in_their_conversation() -> None:
    """A finished call outside of it has nothing to be compared with."""
    call = {"name": "cancel", "arguments": {"order_id": "O-1"}}
    TOOLS.validate(call)
    bound = TOOLS.in_conversation([turn("list_orders"), Message("tool", json.dumps(ORDERS), tool_call_id="c1")])
    with pytest.raises(InvalidArgumentsError, match="O-17"):
        bound.validate(call)
    assert bound.prompt() == TOOLS.prompt() and "x-seen" not in TOOLS.prompt() + json.dumps(TOOLS.to_openai())


@pytest.fixture
def tools_of_a_client() -> list[dict[str, Any]]:
    """The tools of a request, as JSON."""
    parameters = {
        "type": "object",
        "properties": {"order_id": {"type": "string", "x-seen": "order_id"}},
        "required": ["order_id"],
    }
    return [{"type": "function", "function": {"name": "cancel", "parameters": parameters}}]


def test_clients_of_the_server_send_the_keyword(tools_of_a_client: list[dict[str, Any]]) -> None:
    """A request with ``x-seen``: its own conversation gives the values."""
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("starlette")
    from toolgrammar.adapters.server import create_app
    from toolgrammar.adapters.server.in_process import InProcess

    process = InProcess(create_app({"m": ScriptedModel(lambda messages: turn("cancel", order_id="O-1"))}), httpx)
    result = {"role": "tool", "tool_call_id": "c1", "content": json.dumps(ORDERS)}
    called = {"id": "c1", "type": "function", "function": {"name": "list_orders", "arguments": "{}"}}
    history = [{"role": "user", "content": "Cancel it."}, {"role": "assistant", "tool_calls": [called]}, result]
    with httpx.Client(transport=process.transport(), base_url="http://server") as client:
        body = {"model": "m", "messages": history, "tools": tools_of_a_client, "tool_choice": "required"}
        answer = client.post("/v1/chat/completions", json=body).json()
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) in ({"order_id": "O-17"}, {"order_id": "O-18"})
        refused = client.post("/v1/chat/completions", json={**body, "messages": history[:1]})
        assert refused.status_code == 400 and "no value for a required parameter" in refused.text


def test_values_of_another_type_do_not_count() -> None:
    """A tool whose number was only seen as a text without digits is not offered; digits count."""

    def refund(number: Annotated[int, Seen("number")]) -> str:
        """Refund an order."""
        return str(number)

    def turns(result: str) -> list[Message]:
        return [turn("list_orders"), Message("tool", result, tool_call_id="c1")]

    tools = ToolSet([refund])
    with pytest.raises(LiveValuesError):
        tools.in_conversation(turns('{"number": "N-1"}')).grammar(tool_choice="required")
    bound = tools.in_conversation(turns('{"number": "17"}'))
    assert bound.to_openai(bound=True)[0]["function"]["parameters"]["properties"]["number"]["enum"] == [17]
    assert ToolSet([refund]).in_conversation([]).to_openai(bound=True) == []


def results(text: str) -> list[Message]:
    """Return a conversation with one result."""
    return [Message("user", "x"), turn("list_orders"), Message("tool", text, tool_call_id="c1", name="list_orders")]


def written(tool: Any, messages: list[Message], **wish: Any) -> dict[str, Any]:
    """Return the arguments of a demanded call by a model that wants others."""
    model = ScriptedModel(lambda _: turn(tool.__name__, **wish))
    (call,) = model.generate(messages, tools=[tool], tool_choice="required", max_tokens=400).tool_calls
    assert call.error is None
    return dict(call.arguments)


# -- malformed keywords ------------------------------------------------------------------------------------------------

MALFORMED: list[dict[str, Any]] = [
    {"x-seen": 5},
    {"x-seen": ""},
    {"x-seen": "orders."},
    {"x-seen": ["a"]},
    {"x-seen": {"kye": "a"}},
    {"x-seen": {"key": "a", "tools": "b"}},
    {"x-copied": 5},
    {"x-copied": "usr"},
    {"x-copied": {"unit": "words"}},
    {"x-copied": {"source": ["user"]}},
    {"x-copied": {"source": "user", "unit": "word"}},
    {"x-copied": "user", "x-seen": 5},
]


def of_member(**keywords: Any) -> dict[str, Any]:
    """Return the schema of an object with one text."""
    return {"type": "object", "properties": {"o": {"type": "string", **keywords}}}


@pytest.mark.parametrize("keywords", MALFORMED)
def test_a_malformed_keyword_is_named(keywords: dict[str, Any]) -> None:
    """As any malformed keyword is: with the tool, the place and a hint; also if the conversation lacks other values."""
    keyword = list(keywords)[-1]
    needy = of_member(**keywords)
    needy["properties"]["p"] = {"type": "string", "x-seen": "nothing"}
    needy["required"] = ["p"]
    for schema in (of_member(**keywords), needy):
        tool = Tool("c", parameters=schema)
        model = ScriptedModel([turn("c", o="x")])
        for attempt in (
            lambda: model.generate("x", tools=[tool], tool_choice="required", max_tokens=400),  # noqa: B023
            lambda: model.generate("x", tools=[tool], max_tokens=400),  # noqa: B023
            lambda: in_conversation([tool.to_openai(live=True)], "auto", [{"role": "user", "content": "x"}]),  # noqa: B023
        ):
            with pytest.raises(InvalidSchemaError, match=f"{keyword} names no (key|source)") as caught:
                attempt()
            place = caught.value.place
            assert (place.tool, place.pointer, place.keyword) == ("c", "/properties/o", keyword)
            assert "write " in str(caught.value.hint)
        with pytest.raises(InvalidSchemaError, match="at /properties/o"):
            ScriptedModel(["{}"]).generate_json("x", schema)
        (skipped,) = ToolSet([Tool("c", parameters=schema, optional=True)]).skipped
        assert keyword in str(skipped)
    with pytest.raises(InvalidSchemaError, match="at /properties/o"):
        in_conversation([], "auto", [{"role": "user", "content": "x"}], of_member(**keywords))


def test_what_only_looks_malformed() -> None:
    """Values that are no schemas are left alone, and constrain nothing."""
    schema = of_member(**{"x-seen": "order_id", "x-other": {"x-seen": 5}, "default": {"x-seen": 5}})
    found = of_conversation(schema, results('{"order_id": "O-1"}'))["properties"]["o"]
    assert found == {"type": "string", "x-other": {"x-seen": 5}, "default": {"x-seen": 5}, "enum": ["O-1"]}


# -- values that no text has -------------------------------------------------------------------------------------------


def test_values_that_json_lacks_are_not_seen() -> None:
    """NaN, infinities, halves of characters, and numbers of more digits than a schema has."""

    def fee(price: Annotated[float, Seen("price")]) -> str:
        """Take a fee."""
        return ""

    text = '[{"price": NaN}, {"price": -Infinity}, {"price": 1e999}, {"price": 1%s}, {"price": 2.5}]' % ("0" * 600)
    assert written(fee, results(text), price=1) == {"price": 2.5}
    with pytest.raises(LiveValuesError):
        written(fee, results('{"price": NaN}'), price=1)
    text = '[{"order_id": "\\ud800"}, {"order_id": "O-1"}] order_id: O-\ud800 order_id: "\udfff"'
    assert seen_values(results(text), "order_id") == ["O-1"]
    assert seen_values(results("{'n': 0x1%s, 'm': {'n': 5}}" % ("0" * 9_000)), "n") == [5, "5"]


@pytest.mark.parametrize("unit", ["words", "lines", "chars"])
def test_copies_around_a_lone_surrogate(unit: str) -> None:
    """It belongs to no copy, and no copy goes over it."""

    def note(text: Annotated[str, Copied(unit=unit)]) -> str:
        """Note a text."""
        return ""

    said = [Message("user", "it\n\ud800\ud83dbroke\n")]
    assert written(note, said, text="broke") == {"text": "broke"}
    assert written(note, said, text="it\nbroke")["text"] in said[0].text
    with pytest.raises(LiveValuesError):
        written(note, [Message("user", "\ud800")], text="a")


# -- results that are text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("See [1]. order_id: O-17", ["O-17"]),
        ("errors: []\norder_id: O-17", ["O-17"]),
        ('order_id: O-1 {"order_id": "O-2"} order_id: O-3', ["O-2", "O-1", "O-3"]),
        ('The text {"note": "order_id: O-1", "order_id": {"order_id": "O-2"}}', ["O-2"]),
        ('order_id: {"name": "x"}', []),
        ('{"list": [{"order_id": "O-1"}, {"order_id": "O 2", "name": "cu', ["O-1", "O 2"]),
        ('order_id: "O 17 b"', ["O 17 b"]),
        ("order_id: 'O 17 b', or 'c'", ["O 17 b"]),
        ("order_id: `O 17 b`.", ["O 17 b"]),
        ("order_id: 'O'Brien'", ["O'Brien"]),
        ('order_id: "a [1] \\"b\\" `c`" d', ['a [1] "b" `c`']),
        ('order_id: "" order_id: "x"', ["x"]),
        ('order_id: "cut', []),
        ('"order_id": "caf\\u00e9 1", "cut', ["café 1"]),
        ("order_id: https://x.y/z?id=4", ["https://x.y/z?id=4"]),
        ("order_id: https://x.y/z?a=1&b=2,3.", ["https://x.y/z?a=1&b=2,3"]),
        ("order_id=https://x.y/z?a=1&b=2", ["https://x.y/z?a=1&b=2"]),
        ("https://x.y/z?a=1&order_id=O-17&b=2", ["O-17"]),
        ("https://x.y/z?order_id=O-17#top", ["O-17"]),
        ("order_id=O-17&b=2", ["O-17"]),
        ("order_id=O-17,order_id=O-18;b=2", ["O-17", "O-18"]),
        ("[{order_id:O-17,b:1},{order_id:O-18}]", ["O-17", "O-18"]),
        ("order_id: /home/a.txt", ["/home/a.txt"]),
        ("order_id: auth0|5", ["auth0|5"]),
        ("order_id: 1,234.50", ["1,234.50"]),
        ("(order_id: O-17).", ["O-17"]),
        ("order_id: O-17; order_id: O-18!", ["O-17", "O-18"]),
        ("order_id: O-17 (sent), order_id: O-18(sent now)", ["O-17", "O-18"]),
        ("**order_id:** O-17, **order_id**: **O-18**.", ["O-17", "O-18"]),
        ("**order_id: O-17**", ["O-17"]),
        ('It said "order_id is O-17", twice.', ["O-17"]),
        ("<b>order_id: O-17</b>", ["O-17"]),
        ("order_id: - none", []),
        ('"order_id: O-17\\nnote: x"', ["O-17"]),
        ('"{\\"order_id\\": \\"O-17\\"}"', ["O-17"]),
    ],
)
def test_values_in_a_text(text: str, values: list[str]) -> None:
    """Whole, outside of JSON, and each once."""
    assert seen_values(results(text), "order_id") == values


@pytest.mark.parametrize("part", ["id=", "id:'a ", "id:a(", "id=1,", "id=a|b-", 'id:"\\', 'id: {"id": 1} ', "id''' "])
def test_long_texts_are_searched_in_linear_time(part: str) -> None:
    """Half a million characters; a search that starts over at each name would take minutes."""
    assert len(seen_values(results(part * (500_000 // len(part))), "id")) <= 2


# -- calls and their results -------------------------------------------------------------------------------------------


def asked(*calls: tuple[str, str, str]) -> Message:
    """Return calls: the id, the tool, and its argument ``id``."""
    return Message("assistant", "", tool_calls=tuple(ToolCall(key, name, {"id": value}) for key, name, value in calls))


def test_ids_that_come_again() -> None:
    """A result belongs to the nearest call with its id that has no result; two calls of one turn get theirs in order."""
    messages = [
        asked(("call_0", "orders", "a")),
        Message("tool", '{"id": "O"}', tool_call_id="call_0"),
        asked(("call_0", "users", "b"), ("call_1", "users", "c")),
        Message("tool", "no", tool_call_id="call_1", is_error=True),
        Message("tool", '{"id": "U"}', tool_call_id="call_0"),
    ]
    assert seen_values(messages, "id", "orders") == ["O"]
    assert seen_values(messages, "id", "users") == ["U"]
    assert seen_values(messages, "id", calls=True) == ["U", "b", "O", "a"]
    same = asked(("", "orders", "a"), ("", "users", "b"))
    both = [Message("tool", '{"id": "O"}', tool_call_id="x"), Message("tool", '{"id": "U"}', tool_call_id="x")]
    calls = [Message("assistant", "", tool_calls=tuple(ToolCall("x", c.name, c.arguments) for c in same.tool_calls))]
    assert seen_values([*calls, *both], "id", "orders", calls=True) == ["O", "a"]
    late = [*messages[:1], asked(("call_0", "users", "b")), messages[4], messages[1]]
    assert seen_values(late, "id", "orders", calls=True) == ["O", "a"]


@pytest.mark.parametrize("named", [True, False])
def test_results_without_ids(named: bool) -> None:
    """By the name, or in order, among the calls of the last turn with calls."""

    def result(text: str, name: str, **fields: Any) -> Message:
        return Message("tool", text, name=name if named else None, **fields)

    messages = [
        asked(("r0", "orders", "old")),
        asked(("r1", "orders", "a"), ("r2", "users", "b"), ("r3", "orders", "c"), ("r4", "orders", "d")),
        *([] if named else [result("", "orders")]),
        result('{"id": "U"}', "users"),
        *([result("", "orders")] if named else []),
        result("no", "orders", is_error=True),
        Message("user", "Go on."),
    ]
    assert seen_values(messages, "id", calls=True) == ["U", "a", "b"]
    assert seen_values(messages, "id", "users") == ["U"]
    assert seen_values(messages, "id", "orders", calls=True) == ["a"]


def test_pairing_is_linear() -> None:
    """Thousands of turns with one id, and turns with thousands of calls."""
    one = [asked(("x", "f", "a")), Message("tool", '{"id": "b"}', tool_call_id="x")]
    assert seen_values(one * 10_000, "id", "f", calls=True) == ["b", "a"]
    wide = asked(*((f"c{number}", "f", "a") for number in range(10_000)))
    assert seen_values([wide, *[Message("tool", "", name="f")] * 10_000], "id", calls=True) == ["a"]
    assert seen_values([wide] + [Message("tool", "", tool_call_id=f"c{n}") for n in range(10_000)], "id") == []


# -- several annotations -----------------------------------------------------------------------------------------------


def test_all_annotations_of_a_parameter_hold() -> None:
    """Two of one kind, and one of each."""

    def by_two(order: Annotated[str, Seen("a"), Seen("b")]) -> str:
        """Two keys."""
        return ""

    def by_copies(order: Annotated[str, Copied(), Copied("tool")]) -> str:
        """Two texts."""
        return ""

    def by_each(order: Annotated[str, Copied(), Seen("a"), Copied("tool"), Seen("b")]) -> str:
        """Two keys and two texts."""
        return ""

    messages = [Message("user", "y and z"), *results('{"a": ["x", "y"], "b": ["y", "z"]}')[1:]]
    for tool in (by_two, by_each):
        for wish in "xyz":
            assert written(tool, messages, order=wish) == {"order": "y"}
    copies = {written(by_copies, messages, order=wish)["order"] for wish in ("x", "y", "z", "and", "y and z")}
    assert copies <= {"y", "z"} and len(copies) == 2
    with pytest.raises(LiveValuesError):
        written(by_two, results('{"a": "x", "b": "z"}'), order="x")
    with pytest.raises(LiveValuesError):
        written(by_each, [Message("user", "x"), *messages[1:]], order="y")
