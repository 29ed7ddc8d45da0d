"""Spans of OpenTelemetry: answers, calls and runs, in the published conventions, and what only a grammar knows."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions

from toolgrammar.adapters.server import create_app
from toolgrammar.core import Message, ModelError, ToolCall, load_model
from toolgrammar.core.basics.spans import CONTENTS, Span
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

EXPORTER = InMemorySpanExporter()
TOOL_CALL = Message("assistant", "", tool_calls=(ToolCall("1", "look_up", {"name": "Zoë"}),))


def look_up(name: str) -> str:
    """Look a name up."""
    if name == "nobody":
        raise KeyError(name)
    return f"{name} is 7"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The finished spans of a test; the process has one provider, as programs have."""
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)  # for the telemetry of frameworks under test
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if not getattr(provider, "has_our_exporter", False):
        provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
        provider.has_our_exporter = True  # type: ignore[attr-defined]
    monkeypatch.delenv(CONTENTS, raising=False)
    EXPORTER.clear()
    yield EXPORTER
    EXPORTER.clear()


def named(spans: InMemorySpanExporter) -> list[tuple[str, dict[str, Any]]]:
    """The names and attributes of our spans, in the order of their ends."""
    return [
        (span.name, dict(span.attributes or {}))
        for span in spans.get_finished_spans()
        if span.instrumentation_scope is not None and span.instrumentation_scope.name == "toolgrammar"
    ]


def test_an_answer_is_a_span_of_the_conventions(spans: InMemorySpanExporter) -> None:
    """Whole, streamed, asynchronous and in a batch: the same attributes, each a published one or with our prefix."""
    known = {
        value for name, value in vars(conventions).items() if name.startswith("GEN_AI_") and isinstance(value, str)
    }

    async def ask(model: Any, **options: Any) -> None:
        await model.agenerate("?", **options)
        await model.astream("?", **options).result()

    with load_model("embedded") as model:
        options: Any = {
            "output_type": {"type": "integer"},
            "max_tokens": 9,
            "seed": 1,
            "temperature": 0.5,
            "masses": True,
        }
        whole = model.generate("?", **options)
        list(model.stream("?", **options))
        model.generate_batch(["?"], **options)
        asyncio.run(ask(model, **options))
    told = named(spans)
    assert len(told) == 5 and {name for name, _ in told} == {"chat embedded"}
    passes = [attributes.pop("toolgrammar.forward_passes") for _, attributes in told]
    cached = [attributes.pop("gen_ai.usage.cache_read.input_tokens", 0) for _, attributes in told]
    assert passes[0] == whole.usage.forward_passes and cached[0] == whole.usage.cached_tokens
    assert all(attributes == told[0][1] for _, attributes in told)
    (_, attributes), usage = told[0], whole.usage
    assert {name for name in attributes if not name.startswith("toolgrammar.")} <= known
    assert attributes["gen_ai.operation.name"] == "chat" and attributes["gen_ai.output.type"] == "json"
    assert (attributes["gen_ai.request.seed"], attributes["gen_ai.request.max_tokens"]) == (1, 9)
    assert attributes["gen_ai.response.finish_reasons"] == (whole.finish_reason,)
    assert attributes["gen_ai.usage.output_tokens"] == usage.completion_tokens
    assert attributes["toolgrammar.forced_tokens"] == usage.forced_tokens
    assert attributes["toolgrammar.enforced"] is True and 0 < attributes["toolgrammar.removed_mass"] <= 1
    assert not any("messages" in name for name in attributes)


def test_contents_are_told_on_request_alone(spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the conventions' variable, the messages, tools, arguments and results are there; else none of their words."""
    words = ("Zoë", "is 7", "Look a name up")
    ScriptedModel([TOOL_CALL, "Seven."]).run("Who is Zoë?", tools=[look_up]).result  # noqa: B018
    for name, attributes in named(spans):
        hidden = {key: value for key, value in attributes.items() if key != "gen_ai.tool.description"}
        assert not any(word in str(hidden) for word in words), name
    EXPORTER.clear()
    monkeypatch.setenv(CONTENTS, "true")
    ScriptedModel([TOOL_CALL, "Seven."]).run("Who is Zoë?", tools=[look_up]).result  # noqa: B018
    told = dict(named(spans)[::-1])
    (chat,) = [attributes for name, attributes in told.items() if name.startswith("chat")]
    assert [said["role"] for said in json.loads(chat["gen_ai.input.messages"])] == ["user"]
    (answer,) = json.loads(chat["gen_ai.output.messages"])
    assert answer["parts"][0]["arguments"] == {"name": "Zoë"} and answer["finish_reason"] == "tool_calls"
    assert json.loads(chat["gen_ai.tool.definitions"])[0]["function"]["name"] == "look_up"
    call = told["execute_tool look_up"]
    assert json.loads(call["gen_ai.tool.call.arguments"]) == {"name": "Zoë"}
    assert call["gen_ai.tool.call.result"] == "Zoë is 7"
    agent = told["invoke_agent"]
    assert json.loads(agent["gen_ai.input.messages"]) == json.loads(chat["gen_ai.input.messages"])
    (last,) = json.loads(agent["gen_ai.output.messages"])
    assert last["parts"] == [{"type": "text", "content": "Seven."}] and last["finish_reason"] == "stop"


def test_the_message_of_an_error_is_a_content(spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer shows why a tool failed where contents are wanted, and nothing of it where they are not."""
    failing = Message("assistant", "", tool_calls=(ToolCall("1", "look_up", {"name": "nobody"}),))
    for wanted, said in ("false", None), ("true", "'nobody'"):
        monkeypatch.setenv(CONTENTS, wanted)
        EXPORTER.clear()
        ScriptedModel([failing, "Nobody."]).run("?", tools=[look_up]).result  # noqa: B018
        (call,) = [span for span in spans.get_finished_spans() if span.name == "execute_tool look_up"]
        assert call.status.description == said


def test_a_run_is_the_parent_of_its_answers_and_calls(spans: InMemorySpanExporter) -> None:
    """Both ways: an agent with two chats and a call between them, and nothing of it around the caller's own spans."""

    async def ask() -> None:
        async for _ in ScriptedModel([TOOL_CALL, "Seven."]).arun("?", tools=[look_up]):
            assert not trace.get_current_span().get_span_context().is_valid

    for way in (False, True):
        EXPORTER.clear()
        if way:
            asyncio.run(ask())
        else:
            for _ in ScriptedModel([TOOL_CALL, "Seven."]).run("?", tools=[look_up]):
                assert not trace.get_current_span().get_span_context().is_valid
        finished = spans.get_finished_spans()
        assert [span.name.split()[0] for span in finished] == ["chat", "execute_tool", "chat", "invoke_agent"]
        agent = finished[-1]
        assert agent.context is not None and agent.parent is None
        assert all(span.parent is not None and span.parent.span_id == agent.context.span_id for span in finished[:-1])
        assert (agent.attributes or {})["toolgrammar.turns"] == 2


def test_errors_are_told_by_their_kind(spans: InMemorySpanExporter) -> None:
    """A tool that fails, a request that cannot be answered, and an early end have an error type, and no message."""
    failing = Message("assistant", "", tool_calls=(ToolCall("1", "look_up", {"name": "nobody"}),))
    ScriptedModel([failing, "Nobody."]).run("?", tools=[look_up]).result  # noqa: B018
    with pytest.raises(ModelError):
        ScriptedModel([]).generate("?")
    with ScriptedModel(["Hello"]).stream("?") as stream:
        next(stream)
    kinds = [(name.split()[0], attributes.get("error.type")) for name, attributes in named(spans)]
    assert kinds == [
        ("chat", None), ("execute_tool", "KeyError"), ("chat", None), ("invoke_agent", None),
        ("chat", "ModelError"), ("chat", "GeneratorExit"),
    ]  # fmt: skip
    assert "nobody" not in str([span.to_json() for span in spans.get_finished_spans()])


def test_a_framework_s_own_span_gets_our_attributes(spans: InMemorySpanExporter) -> None:
    """Inside of a span for a chat there is no second one: it gets what only we know, and keeps its own attributes."""
    tracer = trace.get_tracer("framework")
    with tracer.start_as_current_span(
        "chat theirs", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "theirs"}
    ):
        ScriptedModel(["Hello"]).generate("?")
    assert not named(spans)
    (span,) = spans.get_finished_spans()
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.request.model"] == "theirs" and attributes["toolgrammar.enforced"] is True


def test_the_server_goes_on_with_a_client_s_trace(spans: InMemorySpanExporter) -> None:
    """With `traceparent`, whole or streamed, the answer's span belongs to the client's trace."""
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = {"traceparent": f"00-{trace_id}-{span_id}-01"}

    async def ask() -> None:
        transport = httpx.ASGITransport(create_app({"m": "embedded"}))
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            for stream in (False, True):
                asked = {
                    "model": "m",
                    "messages": [{"role": "user", "content": "?"}],
                    "max_tokens": 5,
                    "stream": stream,
                }
                (await client.post("/v1/chat/completions", json=asked, headers=headers)).raise_for_status()

    asyncio.run(ask())
    told = spans.get_finished_spans()
    assert [span.name for span in told] == ["chat embedded"] * 2
    for span in told:
        assert span.context is not None and span.parent is not None
        assert f"{span.context.trace_id:032x}" == trace_id and f"{span.parent.span_id:016x}" == span_id


def test_agent_framework_has_one_span_for_a_chat(spans: InMemorySpanExporter) -> None:
    """With its own tracing, a chat is one span, which has our attributes."""
    pytest.importorskip("agent_framework", reason="agent-framework is not installed")
    from agent_framework.observability import enable_instrumentation

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    enable_instrumentation()

    async def ask() -> None:
        client = ToolGrammarChatClient(ScriptedModel(["Hello"]))
        await client.get_response("Hello?")

    asyncio.run(ask())
    chats = [span for span in spans.get_finished_spans() if span.name.startswith("chat")]
    assert len(chats) == 1 and (chats[0].attributes or {})["toolgrammar.enforced"] is True


def test_nothing_is_imported_or_made_without_opentelemetry() -> None:
    """A program that has not imported it does not import it by an answer, a call or a run."""
    program = (
        "import sys\n"
        "from toolgrammar.core.testing import ScriptedModel\n"
        "def f(x: int) -> int:\n    'F.'\n    return x\n"
        'ScriptedModel([\'<tool_call>\\n{"name": "f", "arguments": {"x": 1}}\\n</tool_call>\', \'One.\'])'
        ".run('?', tools=[f]).result\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_serve_sends_spans_where_the_variables_say() -> None:
    """A collector gets the span of a request to `toolgrammar serve`, with the service's name; other words of the
    request do not leave the process."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the exporter is not installed")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    bodies: list[bytes] = []
    arrived = threading.Event()

    class Collector(BaseHTTPRequestHandler):
        """Keeps what is posted."""

        def do_POST(self) -> None:
            """Take spans."""
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            arrived.set()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    collector = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    program = "from toolgrammar.adapters.cli import main; main()"
    environment = {
        **os.environ,
        "OTEL_SDK_DISABLED": "false",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    command = [sys.executable, "-c", program, "serve", "embedded", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        try:
            assert server.stdout is not None
            (url,) = re.findall(r"http://\S+", server.stdout.readline())
            asked = {"model": "embedded", "messages": [{"role": "user", "content": "xylophone"}], "max_tokens": 5}
            httpx.post(f"{url}/v1/chat/completions", json=asked, timeout=60).raise_for_status()
            assert arrived.wait(60)
        finally:
            server.terminate()
            collector.shutdown()
            collector.server_close()
    sent = ExportTraceServiceRequest.FromString(bodies[0]).resource_spans[0]
    assert [one.value.string_value for one in sent.resource.attributes if one.key == "service.name"] == ["toolgrammar"]
    assert sent.scope_spans[0].spans[0].name == "chat embedded" and b"xylophone" not in b"".join(bodies)


def test_nothing_is_made_for_spans_that_nobody_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where OpenTelemetry is imported and records nothing, no tools are written out and nothing is hashed."""
    monkeypatch.setattr(trace, "get_tracer", lambda *_: trace.NoOpTracer())
    monkeypatch.setattr(Span, "digest", lambda value: pytest.fail("nobody asked for it"))
    tools = ToolSet.from_any([look_up])
    ScriptedModel(["Hello."]).generate("?", tools=tools)
    assert tools.call(ToolCall("1", "look_up", {"name": "Zoë"})) == "Zoë is 7"
