"""A request that ends in shared work takes its error along, and nothing of it is left: no other request notices."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import (
    CancelledError,
    Constraint,
    ConstraintCache,
    GenerationTimeoutError,
    Grammar,
    ToolGrammarError,
    UnsatisfiableSchemaError,
    errors,
)
from toolgrammar.core.automaton.lazy_dfa import Workspace
from toolgrammar.core.basics import pauses
from toolgrammar.core.basics.pauses import Ended, ended_by, pause
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet
from toolgrammar.tools.call_grammars import CallGrammars

from ..vocabularies import BYTES

#: Maximum number of pauses of one piece of work at which it is ended.
MAX_PAUSES = 12


def _slow(name: str, size: int = 9) -> dict[str, Any]:
    """A schema that takes some thousand terms, and so pauses."""
    return {"type": "string", "pattern": f"^{name}(a|b)*a(a|b){{{size}}}$", "minLength": 12}


def _tool(number: int) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"x": _slow(f"t{number}")}, "required": ["x"]}
    return {"type": "function", "function": {"name": f"tool{number}", "parameters": parameters}}


def _operation(number: int) -> dict[str, Any]:
    parameter = {"name": "x", "in": "query", "required": True, "schema": _slow(f"o{number}")}
    return {"get": {"operationId": f"op{number}", "parameters": [parameter], "responses": {}}}


OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "t", "version": "1"},
    "servers": [{"url": "https://api.test"}],
    "paths": {f"/p{number}": _operation(number) for number in range(3)},
}

Work = Callable[[CallGrammars, ConstraintCache], Constraint]


def _tools(source: Any, grammars: CallGrammars) -> ToolSet:
    return ToolSet(ToolSet.from_any(source), grammars=grammars)


def _of_tools(source: Any, **options: Any) -> Work:
    def work(grammars: CallGrammars, cache: ConstraintCache) -> Constraint:
        tools = _tools(source, grammars)
        return cache.bind(tools.grammar("hermes", **options), BYTES)

    return work


#: Work that requests share, by what they ask for.
WORK: dict[str, Work] = {
    "schema": lambda _, cache: cache.from_json_schema(_slow("s"), BYTES),
    "checked schema": lambda _, cache: cache.from_json_schema(
        {"type": "object", "properties": {f"p{i}": {"type": "integer", "minimum": i} for i in range(600)}}, BYTES
    ),
    "regex": lambda _, cache: cache.bind(Grammar.from_regex("x(a|b)*a(a|b){9}"), BYTES),
    "lark": lambda _, cache: cache.bind(Grammar.from_lark("start: /x(a|b)*a(a|b){9}/ | OTHER\nOTHER: /[0-9]+/"), BYTES),
    "tools": _of_tools([_tool(number) for number in range(3)], tool_choice="required"),
    "tools, written in other ways": _of_tools([_tool(number) for number in range(3)], other_spellings=True),
    "tools, optional": _of_tools(OPENAPI, tool_choice="required"),
}

TEXTS = [b"", b'"s', b"{", b"<tool_call>", b'<tool_call>\n{"name": "tool1", "arguments": {"x": "t1ab', b"xab"]


def seen(constraint: Constraint) -> list[bytes]:
    """What a constraint allows after some texts."""
    masks = []
    for text in TEXTS:
        matcher = constraint.matcher()
        if matcher.accept_bytes(text):
            out = np.zeros(constraint.words, dtype=np.uint32)
            matcher.fill_mask(out)
            masks.append(out.tobytes())
    return masks


class Asked:
    """One request for the work in a thread of its own."""

    def __init__(self, work: Callable[[], Constraint]) -> None:
        self.masks: list[bytes] | None = None
        self.error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.masks = seen(self._work())
        except BaseException as error:
            self.error = error

    def join(self) -> Asked:
        """Wait for the end of the thread."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self


def _caches() -> tuple[CallGrammars, ConstraintCache]:
    return CallGrammars(Workspace()), ConstraintCache()


@pytest.mark.parametrize("kind", [CancelledError, GenerationTimeoutError])
@pytest.mark.parametrize("name", WORK)
def test_an_ended_request_takes_its_error_along(name: str, kind: type[CancelledError]) -> None:
    """Wherever a request ends, it raises just its own error, and the next one gets what it would have got."""
    work = WORK[name]
    expected = seen(work(*_caches()))
    ended = 0
    for at in range(1, MAX_PAUSES + 1):
        count = 0
        error = kind("over")

        def check(at: int = at, error: CancelledError = error) -> None:
            nonlocal count
            count += 1
            if count == at:
                raise error

        grammars, cache = _caches()
        try:
            with ended_by(check):
                seen(work(grammars, cache))
        except CancelledError as raised:
            assert raised is error
            ended += 1
        assert seen(work(grammars, cache)) == expected
    assert ended > 1


@pytest.mark.parametrize("name", WORK)
def test_those_who_wait_go_on_with_the_work(name: str) -> None:
    """Wherever the request that does the work ends, the two that wait for it get what they asked for."""
    work = WORK[name]
    expected = seen(work(*_caches()))
    ended = 0
    for at in range(1, MAX_PAUSES + 1):
        count = 0
        grammars, cache = _caches()
        others: list[Asked] = []

        def check(at: int = at, others: list[Asked] = others, caches: Any = (grammars, cache)) -> None:
            nonlocal count
            count += 1
            if not others:
                others += [Asked(lambda: work(*caches)) for _ in range(2)]
            if count == at:
                end = time.monotonic() + 0.2  # most of them wait for the constraint by then
                while caches[1]._hits < 2 and time.monotonic() < end:
                    time.sleep(0.001)
                raise CancelledError("over")

        try:
            with ended_by(check):
                seen(work(grammars, cache))
        except CancelledError:
            ended += 1
        for other in others:
            assert other.join().error is None and other.masks == expected
    assert ended > 1


def test_one_who_waits_ends_on_its_own_time() -> None:
    """A request that waits for another one's work does not wait past its own end."""
    cache = ConstraintCache()
    is_over = threading.Event()
    begun = threading.Event()

    def hold() -> None:
        begun.set()
        is_over.wait(60)

    def slow() -> Constraint:
        with ended_by(hold):
            return cache.from_json_schema(_slow("s"), BYTES)

    first = Asked(slow)
    assert begun.wait(60)
    error = CancelledError("over")

    def check() -> None:
        raise error

    with pytest.raises(CancelledError) as caught, ended_by(check):
        cache.from_json_schema(_slow("s"), BYTES)
    assert caught.value is error
    is_over.set()
    assert first.join().masks


def test_a_fault_of_the_input_is_found_once() -> None:
    """Those who wait for work that fails by its input get the fault, each a copy: none does the work again."""
    cache = ConstraintCache()
    others: list[Asked] = []
    schema = {"type": "object", "properties": {f"p{i}": {"minimum": i} for i in range(400)}, "required": ["x"]}
    schema["properties"]["x"] = {"allOf": [_slow("x"), {"pattern": "^y"}]}

    def work() -> Constraint:
        return cache.from_json_schema(schema, BYTES)

    def check() -> None:
        if not others:
            others.extend(Asked(work) for _ in range(2))
            while cache._hits < 2:
                time.sleep(0.001)

    with pytest.raises(UnsatisfiableSchemaError) as caught, ended_by(check):
        work()
    raised = [other.join().error for other in others]
    assert [str(error) for error in raised] == [str(caught.value)] * 2 and len(
        {*map(id, raised), id(caught.value)}
    ) == 3
    assert cache.statistics.misses == 1


def test_errors_of_requests_are_those_of_writing() -> None:
    """A `DecodingError`, and what is not ours, is never a fault of the input; every other error of ours is."""
    assert not errors.is_fault(CancelledError("x")) and not errors.is_fault(GenerationTimeoutError("x"))
    assert not errors.is_fault(MemoryError()) and not errors.is_fault(RecursionError())
    assert errors.is_fault(UnsatisfiableSchemaError("x")) and errors.is_fault(errors.LimitError("x"))


def test_nothing_between_a_pause_and_its_block_takes_the_error() -> None:
    """Code that catches all exceptions, in the midst of the work, does not catch the end of a request."""
    error = CancelledError("over")

    def check() -> None:
        raise error

    def work() -> None:
        try:
            pause()
        except Exception as caught:
            raise UnsatisfiableSchemaError("wrapped") from caught

    with pytest.raises(CancelledError) as caught, ended_by(check):
        work()
    assert caught.value is error
    with pytest.raises(CancelledError), ended_by(check), ended_by(lambda: None):  # the inner block passes it on
        work()
    assert pauses._work.get() is None and not issubclass(Ended, Exception)


@pytest.mark.parametrize("tools", [[_tool(number) for number in range(40)], OPENAPI])
def test_a_timeout_while_tools_compile_is_a_timeout(tools: Any) -> None:
    """No tool is blamed for the end of a request, and none is left out because of it."""
    model = ScriptedModel(["hello"])
    offered: Mapping[str, Any] = {"tools": _tools(tools, CallGrammars(Workspace()))}
    with pytest.raises(GenerationTimeoutError) as caught:
        model.generate("x", timeout=0.0, **offered)
    assert caught.value.place.tool is None
    assert model.generate("x", **offered).text == "hello"


def test_work_that_ends_at_once_leaves_nothing_half_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """An automaton whose making was ended is collected like any other."""
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    for at in range(1, 5):
        count = 0

        def check(at: int = at) -> None:
            nonlocal count
            count += 1
            if count == at:
                raise CancelledError("over")

        try:
            with ended_by(check):
                Grammar.from_json_schema({"type": "string"}).begins("x")
        except ToolGrammarError:
            gc.collect()
    assert count and not unraisable
