"""The error catalogue: the tree as drawn is the tree as it is, and every kind can be provoked through the public API."""

from __future__ import annotations

import asyncio
import pickle
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from toolgrammar.core import (
    GenerateParams,
    Grammar,
    JsonMode,
    Message,
    Model,
    Record,
    ToolCall,
    Vocabulary,
    errors,
    load_model,
)
from toolgrammar.core.grammar.sampling import single_bytes
from toolgrammar.core.masks.promised import take
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Policy, ToolSet


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def wait(seconds: float) -> None:
    """Do nothing for a while."""
    time.sleep(seconds)


TOOLS = ToolSet.from_any([add, wait])


def ask(status: int = 200, body: object = None, error: type[httpx.TransportError] | None = None) -> object:
    """Ask a model on a server that answers this to everything, or fails like this."""

    def answer(request: httpx.Request) -> httpx.Response:
        if error is not None:
            raise error("provoked")
        return httpx.Response(
            status, json={"error": "provoked"} if body is None else body, headers={"retry-after": "0"}
        )

    return RemoteModel("m@http://model.test/v1", transport=httpx.MockTransport(answer)).generate("x")


FILTERED = {"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]}
LIVE = {"properties": {"a": {"x-values": "ids"}}, "required": ["a"]}
NESTED = {
    "allOf": [
        {"oneOf": [{"required": [name], "properties": {name: {"type": "null"}}} for name in names]}
        for names in ([f"{side}{i}" for i in range(80)] for side in "ab")
    ]
}

#: The shortest way to each error, by code; the classes that only group others have none.
TRIGGERS: dict[str, Callable[[], object]] = {
    "invalid_schema": lambda: Grammar.from_json_schema({"type": "strng"}),
    "unsupported_schema": lambda: Grammar.from_json_schema({"format": "hostname"}, on_unsupported="error"),
    "unsatisfiable_schema": lambda: Grammar.from_json_schema({"type": "integer", "minimum": 2, "maximum": 1}).program,
    "grammar": lambda: Grammar.until(""),
    "pattern": lambda: Grammar.from_regex("(a"),
    "unsupported_pattern": lambda: Grammar.from_regex("(a)?\\1"),
    "vocabulary": lambda: Vocabulary([], eos=[]),
    "limit": lambda: Grammar.from_json_schema(NESTED).program,
    "budget": lambda: load_model("embedded").generate("x", json_mode=JsonMode({"const": "a" * 99}), max_tokens=2),
    "internal": lambda: take(Grammar.literal("a").bind(single_bytes()).matcher(), 98),
    "live_values": lambda: Grammar.from_json_schema(LIVE).bind(single_bytes()).matcher().accept_bytes(b'{"a": '),
    "cut_answer": lambda: ScriptedModel(['"a long text"']).generate_json("x", {"type": "string"}, max_tokens=8),
    "context_overflow": lambda: load_model("embedded", context_window=8).generate("a long prompt, too long by far"),
    "cancelled": lambda: ScriptedModel(["x"]).generate("x", GenerateParams(cancel=lambda: True)),
    "timeout": lambda: ScriptedModel(["x"]).generate("x", timeout=0.0),
    "model": lambda: load_model("nowhere"),
    "policy": lambda: Policy({"tools": {"t": {"a": "usr"}}}),
    "unknown_option": lambda: ScriptedModel(["x"]).generate("x", temprature=1),  # type: ignore[call-arg]
    "server": lambda: ask(400),
    "authentication": lambda: ask(401),
    "permission_denied": lambda: ask(403),
    "not_found": lambda: ask(404),
    "rate_limit": lambda: ask(429),
    "content_filter": lambda: ask(200, FILTERED),
    "server_failure": lambda: ask(503),
    "server_connection": lambda: ask(error=httpx.ConnectError),
    "server_timeout": lambda: ask(error=httpx.ReadTimeout),
    "unknown_tool": lambda: TOOLS.validate(ToolCall("1", "subtract", {})),
    "invalid_arguments": lambda: TOOLS.validate(ToolCall("1", "add", {"a": 1})),
    "tool_timeout": lambda: TOOLS.call(ToolCall("1", "wait", {"seconds": 0.5}), timeout=0.01),
    "parse": lambda: TOOLS.repair("Hello."),
    "record": lambda: Record.verify("no such file"),
    "tool_call": lambda: TOOLS.call(ToolCall("1", "add", {"a": 1, "b": 2}, error="malformed call: x")),
}
GROUPS = {"error", "schema"}


def classes() -> dict[str, type[errors.ToolGrammarError]]:
    """Every error class, by name."""
    return {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.ToolGrammarError)
    }


def test_the_drawn_tree_is_the_tree() -> None:
    """The tree in the module's docstring names each class once, below its parent."""
    drawn: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.search(r"[A-Za-z]+Error", line)
        if not found or not re.match(r"[ │├└─]*[A-Z]", line):
            continue
        depth = found.start()
        while path and path[-1][0] >= depth:
            path.pop()
        drawn[found[0]] = path[-1][1] if path else ""
        path.append((depth, found[0]))
    actual = {
        name: next((base.__name__ for base in kind.__bases__ if base in classes().values()), "")
        for name, kind in classes().items()
    }
    assert drawn == actual


def test_codes_are_unique_and_all_have_a_trigger() -> None:
    """Each class has its own code, and each is in the table of triggers (or has a test of its own)."""
    codes = [kind.code for kind in classes().values()]
    assert len(set(codes)) == len(codes)
    assert set(codes) - GROUPS - {"missing_dependency", "decoding"} == set(TRIGGERS)


@pytest.mark.parametrize("code", sorted(TRIGGERS))
def test_triggers(code: str) -> None:
    """The trigger raises an error of that code, with a message, and a hint or a place; it survives pickling."""
    with pytest.raises(errors.ToolGrammarError) as caught:
        TRIGGERS[code]()
    error = caught.value
    assert error.code == code
    assert error.message and (error.hint or str(error.place))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_what_may_succeed_later() -> None:
    """Busy, failing and silent servers may answer the next time; a wrong key, name or request stays wrong."""
    retryable = {"rate_limit", "server_failure", "server_connection", "server_timeout", "timeout", "tool_timeout"}
    assert {kind.code for kind in classes().values() if kind.retryable} == retryable


def test_server_errors_tell_the_status() -> None:
    """A server's error holds the status and how long it asks to wait; no answer means no status."""
    for status, kind in {
        400: errors.ServerError,
        404: errors.NotFoundError,
        408: errors.ServerTimeoutError,
        429: errors.RateLimitError,
        500: errors.ServerFailureError,
        529: errors.ServerFailureError,
    }.items():
        with pytest.raises(errors.ServerError) as caught:
            ask(status)
        assert (type(caught.value), caught.value.status_code) == (kind, status)
        assert caught.value.retry_after == (0.0 if status in (408, 429, 500, 529) else None)
    with pytest.raises(ConnectionError) as refused:
        ask(error=httpx.RemoteProtocolError)
    assert isinstance(refused.value, errors.ServerConnectionError) and refused.value.status_code is None
    with pytest.raises(errors.ServerError) as odd:  # not what a failing server sends, but what is no such server
        ask(200, {"hello": 1})
    assert not odd.value.retryable


@pytest.mark.parametrize("stream", [False, True])
def test_a_timeout_is_a_timeout_error(stream: bool) -> None:
    """The time for one answer ends local and remote generations in the same way, streamed or not."""

    class Slow(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            async def chunks() -> AsyncIterator[bytes]:
                yield b'data: {"choices": [{"delta": {"content": "half an ans"}}]}\n\n'
                await asyncio.sleep(60)

            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=chunks())

    for model in (ScriptedModel(["x" * 100]), RemoteModel("m@http://model.test/v1", transport=Slow())):
        seconds = 0.0 if isinstance(model, ScriptedModel) else 0.1
        with pytest.raises(TimeoutError) as caught:
            _ = list(model.stream("x", timeout=seconds)) if stream else model.generate("x", timeout=seconds)
        assert isinstance(caught.value, errors.GenerationTimeoutError)

        async def wait(model: Model = model, seconds: float = seconds) -> None:
            if stream:
                async for _ in model.astream("x", timeout=seconds):
                    pass
            else:
                await model.agenerate("x", timeout=seconds)

        with pytest.raises(errors.GenerationTimeoutError):
            asyncio.run(wait())


def test_decoding_error_names_a_vocabulary_that_cannot_finish() -> None:
    """A vocabulary without the bytes that a grammar needs is a decoding error."""
    model = ScriptedModel(["x"])
    tokens = [bytes((byte,)) if byte != ord("c") else None for byte in range(256)]
    model.backend.vocabulary = Vocabulary([*tokens, None], eos=[256])  # type: ignore[misc]
    with pytest.raises(errors.DecodingError, match="no token"):
        model.generate("x", grammar=Grammar.literal("cc"))


def test_missing_dependency_names_the_install_line() -> None:
    """Without its packages, a backend says what to install; the error is an ImportError too."""
    program = (
        "import sys; sys.modules['transformers'] = None\n"
        "from toolgrammar.core import load_model\n"
        "try: load_model('hf:x')\n"
        "except ImportError as error: print(type(error).__name__, error.code, error.hint)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == [
        "MissingDependencyError", "missing_dependency", "pip", "install", "'toolgrammar[transformers]'"
    ]  # fmt: skip


def test_place_reads_well() -> None:
    """What is known of the place is in the message."""
    error = errors.SchemaError("no", hint="do", place=errors.Place(pointer="", keyword="type", line=3, column=4))
    assert str(error) == "no (at the root, keyword 'type', line 3, column 4) Hint: do"
    assert Message("user", "x").text == "x"
