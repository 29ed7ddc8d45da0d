"""`Model.run`: the model calls, the calls run, it reads their results, until it answers."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from toolgrammar.core import CallEnd, Finish, Message, ModelError, ToolCall
from toolgrammar.core.models import RepeatedCall
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolResult, ToolSet

ASK: Any = "What does the register say?"


def call(name: str = "read", **arguments: Any) -> ToolCall:
    """A call of a tool."""
    return ToolCall("any", name, arguments)


def turn(*calls: ToolCall) -> Message:
    """A turn of the model with calls."""
    return Message("assistant", "", tool_calls=calls)


class Register:
    """A register: tools that read it, write it, and fail."""

    def __init__(self) -> None:
        self.stored: dict[str, float] = {"a": 1}
        self.log: list[str] = []

    def tools(self) -> ToolSet:
        """The tools."""

        def read(key: str) -> float:
            """Read a number."""
            self.log.append(f"read {key}")
            return self.stored[key]

        def write(key: str, number: float) -> str:
            """Write a number."""
            self.log.append(f"write {key}")
            self.stored[key] = number
            return "written"

        return ToolSet([read, write])


def both(replies: Any, tools: Any = None, **options: Any) -> tuple[list[Any], Any, Any]:
    """Run once each way; return the events and the result of the first, and the model of the second, which must be
    alike."""
    made = [Register().tools() if tools is None else tools for _ in range(2)]
    first = ScriptedModel(replies).run(ASK, tools=made[0], **options)
    events = list(first)

    async def other() -> tuple[list[Any], Any, ScriptedModel]:
        model = ScriptedModel(replies)
        run = model.arun(ASK, tools=made[1], **options)
        return [event async for event in run], await run.result(), model

    others, result, model = asyncio.run(other())
    assert [type(event) for event in others] == [type(event) for event in events]
    assert (str(result), result.ended_by, result.repeats) == (
        str(first.result), first.result.ended_by, first.result.repeats,
    )  # fmt: skip
    assert [(said.role, said.text) for said in result.messages] == [
        (said.role, said.text) for said in first.result.messages
    ]
    return events, first.result, model


def test_calls_run_until_the_model_answers() -> None:
    """Each call runs once, its result stands after it by its id, and the answer is the last turn."""
    events, result, model = both([turn(call(key="a")), turn(call("write", key="b", number=2)), "Done."])
    assert (str(result), result.ended_by, result.repeats, len(result.turns)) == ("Done.", "answer", 0, 3)
    assert [said.role for said in result.messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    for said, shown in zip(result.messages, result.messages[1:], strict=False):
        assert not said.tool_calls or said.tool_calls[0].id == shown.tool_call_id
    assert [type(event).__name__ for event in events if isinstance(event, (CallEnd, ToolResult, Finish))] == [
        "CallEnd", "Finish", "ToolResult", "CallEnd", "Finish", "ToolResult", "Finish",
    ]  # fmt: skip
    assert result.usage.completion_tokens == sum(each.usage.completion_tokens for each in result.turns)
    assert model.requests[-1][-1].text == "written"


def test_calls_of_one_turn_run_in_order_and_concurrently_with_arun() -> None:
    """Three calls of one turn have their results in their order; with `arun` asynchronous tools wait together."""
    many = turn(call(key="a"), call(key="b"), call(key="c"))
    started: list[str] = []

    async def ask() -> Any:
        together = asyncio.Event()

        async def read(key: str) -> str:
            """Read a text."""
            started.append(key)
            if len(started) == 3:
                together.set()
            await asyncio.wait_for(together.wait(), 30)
            return key

        return await ScriptedModel([many, "Done."]).arun(ASK, tools=[read]).result()

    assert [said.text for said in asyncio.run(ask()).messages[2:5]] == ["a", "b", "c"]
    register = Register()
    register.stored = {"a": 1, "b": 2, "c": 3}
    run = ScriptedModel([many, "Done."]).run(ASK, tools=register.tools())
    assert [said.text for said in run.result.messages[2:5]] == ["1", "2", "3"]
    assert register.log == ["read a", "read b", "read c"]


def test_a_repeated_call_ends_in_an_answer_without_the_repetition() -> None:
    """By default the model that repeats a call must answer; it is told of one call and one result, and the event names
    the repetition."""
    events, result, model = both([turn(call(key="a")), turn(call(key="a")), "One."])
    assert (str(result), result.ended_by, result.repeats) == ("One.", "repeat", 1)
    assert [event.call.name for event in events if isinstance(event, RepeatedCall)] == ["read"]
    assert sum(isinstance(event, ToolResult) for event in events) == 1
    assert [said.role for said in model.requests[-1]] == ["user", "assistant", "tool"]
    assert [said.role for said in result.messages] == ["user", "assistant", "tool", "assistant"]


def test_equal_calls_are_equal_by_value() -> None:
    """1.0 repeats 1."""
    again = turn(call("write", key="b", number=1.0))
    register = Register()
    run = ScriptedModel([turn(call("write", key="b", number=1)), again, "Done."]).run(ASK, tools=register.tools())
    assert (run.result.ended_by, register.log) == ("repeat", ["write b"])


def test_a_call_is_no_repetition_after_news() -> None:
    """Reading again after writing runs; a circle of calls whose results are all known ends."""
    write, read = turn(call("write", key="a", number=5)), turn(call(key="a"))
    _, result, _ = both([read, write, read, "Five."])
    assert (str(result), result.ended_by) == ("Five.", "answer")
    register = Register()
    circle = ScriptedModel([read, write, read, write, read, "Five."]).run(ASK, tools=register.tools())
    assert (str(circle.result), circle.result.ended_by) == ("Five.", "repeat")
    assert register.log == ["read a", "write a", "read a", "write a"]


def test_a_known_call_beside_a_new_one_gets_its_result_without_running() -> None:
    """Of a turn with a known and a new call, only the new one runs; both have results."""
    register = Register()
    register.stored["b"] = 2
    replies = [turn(call(key="a")), turn(call(key="a"), call(key="b")), "Done."]
    run = ScriptedModel(replies).run(ASK, tools=register.tools())
    assert (run.result.ended_by, run.result.repeats) == ("answer", 1)
    assert register.log == ["read a", "read b"]
    assert [said.text for said in run.result.messages[3:6]] == ["", "1", "2"]


def test_stop_ends_with_the_repeated_calls_and_run_executes_them() -> None:
    """`on_repeat="stop"` gives the calls to the caller; ``"run"`` polls until the tool says something else."""
    _, stopped, _ = both([turn(call(key="a")), turn(call(key="a"))], on_repeat="stop")
    assert (stopped.ended_by, stopped.answer.tool_calls[0].name, stopped.repeats) == ("repeat", "read", 1)
    _, polled, _ = both([turn(call(key="a"))] * 3 + ["Done."], on_repeat="run")
    assert (polled.ended_by, polled.repeats, len(polled.turns)) == ("answer", 0, 4)


def test_a_failed_call_may_be_made_again() -> None:
    """The model reads the error of a tool, which is no result that is known."""
    events, result, _ = both([turn(call(key="zzz")), turn(call(key="zzz")), "Nothing."])
    assert result.ended_by == "answer" and sum(isinstance(event, ToolResult) for event in events) == 2
    assert result.messages[2].is_error and "zzz" in result.messages[2].text


def test_the_turns_with_calls_are_bounded() -> None:
    """After `max_turns` turns with calls, the model answers without; so a run always ends."""
    replies = [turn(call("write", key="a", number=number)) for number in range(3)] + ["Enough."]
    _, result, _ = both(replies, max_turns=3)
    assert (str(result), result.ended_by, len(result.turns)) == ("Enough.", "turns", 4)
    stubborn = ScriptedModel(lambda messages: turn(call("write", key="a", number=len(messages))))
    run = stubborn.run(ASK, tools=Register().tools(), max_turns=2)
    assert run.result.ended_by == "turns" and len(run.result.turns) == 3 and not run.result.answer.tool_calls


def test_a_tool_choice_is_for_the_first_turn() -> None:
    """`required` does not force a second call; `none` forbids all."""
    _, result, _ = both([turn(call(key="a")), "One."], tool_choice="required")
    assert str(result) == "One."
    _, none, _ = both(["No calls."], tool_choice="none")
    assert (str(none), len(none.turns)) == ("No calls.", 1)


@pytest.mark.parametrize(
    ("verdict", "shown", "is_error", "runs"),
    [
        (True, "1", False, True),
        (False, "The user did not allow this call.", True, False),
        ("Ask tomorrow.", "Ask tomorrow.", True, False),
        (ToolResult(call(key="a"), 7), "7", False, False),
    ],
)
def test_a_person_decides_about_calls(verdict: Any, shown: str, is_error: bool, runs: bool) -> None:
    """`approve` lets a call run, refuses it with or without a reason, or answers it; also asynchronously."""
    register = Register()
    run = ScriptedModel([turn(call(key="a")), "Done."]).run(
        ASK, tools=register.tools(), approve=lambda asked: verdict if asked.arguments == {"key": "a"} else None
    )
    assert (run.result.messages[2].text, run.result.messages[2].is_error) == (shown, is_error)
    assert bool(register.log) is runs

    async def approve(asked: ToolCall) -> Any:
        await asyncio.sleep(0)
        return verdict

    async def ask() -> Any:
        model = ScriptedModel([turn(call(key="a")), "Done."])
        return await model.arun(ASK, tools=register.tools(), approve=approve).result()

    assert asyncio.run(ask()).messages[2].text == shown


def test_the_answer_has_a_value_beside_calls() -> None:
    """With `output_type` the calls run, and the answer is an instance."""

    class Reading(BaseModel):
        number: int

    run = ScriptedModel([turn(call(key="a")), '{"number": 1}']).run(ASK, tools=Register().tools(), output_type=Reading)
    assert run.result.value == Reading(number=1)


def test_wrong_arguments_are_named() -> None:
    """No turns, a wrong way to treat repetitions, a wrong verdict: an error that says what to give."""
    model = ScriptedModel([turn(call(key="a"))] * 4)
    for options in ({"tools": Register().tools(), "max_turns": 0}, {"tools": Register().tools(), "on_repeat": "x"}):
        with pytest.raises(ModelError) as error:
            model.run(ASK, **options)  # type: ignore[arg-type]
        assert error.value.hint
    with pytest.raises(ModelError, match="approve returned 3"):
        list(model.run(ASK, tools=Register().tools(), approve=lambda asked: 3))


def test_a_run_without_tools_is_one_answer() -> None:
    """The model answers; nothing can be called."""
    _, result, _ = both(["Hello."], tools=())
    assert (str(result), result.ended_by) == ("Hello.", "answer")


def test_leaving_a_run_ends_it() -> None:
    """After `close` there is no result, no tool runs, and no thread of the run is left."""
    gc.collect()
    before = threading.active_count()
    register = Register()
    with ScriptedModel([turn(call(key="a")), "Done."]).run(ASK, tools=register.tools()) as run:
        next(run)
    with pytest.raises(ModelError, match="has no result"):
        run.result  # noqa: B018
    assert not register.log and threading.active_count() <= before + 1
