"""``toolgrammar serve``: models behind the protocols of OpenAI and others, on a port."""

from __future__ import annotations

import errno
import gc
import inspect
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .json_input import read_json
from .memory import keep_little
from .model import fetched_model
from .output import complain, console, fail
from .source import executed

if TYPE_CHECKING:
    from toolgrammar.core.models import Model

#: Seconds that running requests get to end when the server is asked to stop.
GRACE = 30

#: Seconds after these in which the server ends by itself; then the process does, whatever it is at.
_LAST_SECONDS = 5

#: Seconds for which a connection without a request stays open: longer than clients keep it (httpx 5, aiohttp 15, Go and
#: Rust 90). A client that sends a request while the server closes the connection gets an error, and no answer.
KEEP_ALIVE = 120

#: Time after which a running thread gives the interpreter to one that waits; Python's default is five times as long.
_SWITCH_SECONDS = 0.001

#: Beginning of the address of a model in Ollama's store.
_OLLAMA = "gguf:ollama/"


def serve(
    models: Annotated[
        list[str],
        typer.Argument(help="Addresses of models: 'smollm2', 'hf:NAME-OR-PATH', or NAME=ADDRESS."),
    ],
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 takes a free one.", min=0, max=65535)] = 8000,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            help="API key of requests, as env:NAME (an environment variable), or ROLE=env:NAME for a role of the "
            "policy; any one of several is accepted."
        ),
    ] = None,
    temperature: Annotated[float, typer.Option(help="Default temperature of requests; 0 is greedy.")] = 0.0,
    tools_in_prompt: Annotated[
        str, typer.Option(help="What prompts have of tools by default: schemas, names, or auto (names of large sets).")
    ] = "schemas",
    values: Annotated[
        Path | None,
        typer.Option(
            help="Values that schemas of clients name in x-values: a JSON file (an object of lists), or a Python file, "
            "whose public functions give them (the file is executed)."
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="Policy of the calls that clients get: a file (JSON, or YAML).")
    ] = None,
    fetch_images: Annotated[
        list[str] | None,
        typer.Option(
            help="Host from which images of requests are fetched (HOST, *.HOST, HOST:PORT, or * for any public one); "
            "without it, an address of an image is an error."
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="File to which a record of answers and calls is appended, chained by hashes.")
    ] = None,
    record_key: Annotated[
        str | None, typer.Option(help="Key of the record's hashes, as env:NAME (an environment variable).")
    ] = None,
    max_running: Annotated[int, typer.Option(min=1, help="Maximum number of requests at a time, for each model.")] = 4,
    max_waiting: Annotated[int, typer.Option(min=0, help="Maximum number of requests that wait; more get 429.")] = 256,
    max_body: Annotated[int, typer.Option(min=1, help="Maximum size of a request's body, in bytes.")] = 4 << 20,
    body_seconds: Annotated[
        float, typer.Option(help="Seconds in which the head of a request, and its body, must arrive.", min=1)
    ] = 30.0,
    answer_seconds: Annotated[float, typer.Option(help="Seconds that one answer may take.", min=1)] = 600.0,
    grace: Annotated[int, typer.Option(help="Seconds that running requests get at the end.", min=0)] = GRACE,
    log_level: Annotated[
        str,
        typer.Option(help="Log level: debug, info, warning or error; lines of JSON on stderr."),
    ] = "info",
) -> None:
    """Serve models to clients of OpenAI and others; every tool call that is sent is valid.

    Endpoints: the protocols, /v1/models, /health, /ready, and /metrics for Prometheus. The first lines on standard
    output say what to give to a client. Ctrl-C or SIGTERM lets running requests end.

    Exit code: 0 stopped (143 by SIGTERM), 1 requests still ran after the grace, 2 a model cannot be loaded or the port
    is taken.
    """
    keep_little()
    from toolgrammar.adapters import _shared
    from toolgrammar.adapters.server import Limits, create_app
    from toolgrammar.core import Record
    from toolgrammar.core.grammar import Grammar
    from toolgrammar.core.models import LocalModel

    defaults = _shared.generation_params({"temperature": temperature, "tools_in_prompt": tools_in_prompt})
    # ROLE=env:NAME, or env:NAME without a role
    keys = {key_of("--api-key", key): role for role, _, key in (given.rpartition("=") for given in api_key or ())}
    named_values = {} if values is None else _values_of(values)
    recording: AbstractContextManager[Any] = nullcontext()
    if record is not None:
        recording = Record(record, key=key_of("--record-key", record_key).encode() if record_key else None)
    limits = Limits(
        max_running=max_running,
        max_waiting=max_waiting,
        max_body=max_body,
        body_seconds=body_seconds,
        answer_seconds=answer_seconds,
    )
    _log_to_stderr(log_level)
    _export_spans()
    _require_port(host, port)  # before the models are loaded, which may take minutes
    loaded = loaded_models(models)
    app = create_app(
        loaded,
        limits=limits,
        defaults=defaults,
        api_keys=keys,
        metrics=True,
        values=named_values,
        policy=policy,
        fetch_images=fetch_images or (),
    )
    for model in loaded.values():
        if isinstance(model, LocalModel):
            Grammar.json().bind(model.vocabulary).matcher()  # prepared now, not while the first request waits
    _shorten_pauses()
    try:
        with recording:
            has_keys = bool(keys)
            _run(app, host, port, grace, body_seconds, lambda address: _announce(address, [*loaded], has_keys, grace))
    finally:
        for model in loaded.values():
            model.close()


def _shorten_pauses() -> None:
    """Shorten the times for which the interpreter stops all threads, for the rest of the process."""
    # Modules and models stay: a full collection of garbage, during which no request is answered, need not visit them.
    gc.collect()
    gc.freeze()
    # A full collection stops all threads, for longer the more objects there are. By default one comes with 70,000 new
    # objects, and one hostile schema makes as many. What a request leaves behind is freed without collections.
    gc.set_threshold(10_000, 10, 100)
    # The event loop waits this long for each thread that reads a grammar or writes a mask.
    sys.setswitchinterval(_SWITCH_SECONDS)


def _values_of(path: Path) -> dict[str, Any]:
    """Return the values of a file, by name; what it cannot give ends the command with one line."""
    hint = 'give a JSON file such as {"projects": ["engine", "site"]}, or a Python file with functions'
    if not path.is_file():
        fail(f"{path} is not a file", hint)
    if path.suffix != ".py":
        try:
            named = read_json(str(path), path.read_text(encoding="utf-8-sig"), hint)
        except ValueError as error:
            fail(f"{path} is not UTF-8: {error}", hint)
        if not isinstance(named, dict) or not all(isinstance(one, list) for one in named.values()):
            fail(f"{path} is not an object of lists", hint)
        return named
    from toolgrammar.core.live import Values

    module = executed(path)
    functions = {
        name: one
        for name, one in vars(module).items()
        if not name.startswith("_")
        and (isinstance(one, Values) or (inspect.isfunction(one) and one.__module__ == module.__name__))
    }
    if not functions:
        fail(f"{path} has no public function", hint)
    return functions


def _require_port(host: str, port: int) -> None:
    """End with one line if nothing can listen at an address."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with socket.socket(family, kind, protocol) as probe:
                if os.name == "posix":  # as asyncio does: elsewhere the option means that others may share the port
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            hint = "another process has the port: give another --port"
        elif number == errno.EACCES:
            hint = "only administrators may take this port: give another --port, for example 8000"
        else:
            hint = "give an address of this machine: --host 127.0.0.1, or 0.0.0.0 for all of them"
        fail(f"cannot listen at {host}:{port}: {why}", hint)


def _run(app: Any, host: str, port: int, grace: int, seconds: float, announce: Callable[[str], None]) -> None:
    """Run a server until a signal ends it.

    Args:
        app: the ASGI application.
        host: the address to listen at.
        port: likewise; 0: a free one.
        grace: seconds that running requests get after a signal.
        seconds: longest time in which the head of a request must arrive.
        announce: is called with the server's address once it listens.
    """
    try:
        import uvicorn
    except ImportError:
        fail("uvicorn is not installed", "pip install 'toolgrammar[server]'")
    from toolgrammar.adapters.server.connections import protocol_of

    class Server(uvicorn.Server):
        """A server that tells its address once it listens."""

        async def startup(self, sockets: Any = None) -> None:
            """Listen, and announce the address, with the port that the system has chosen."""
            await super().startup(sockets)
            if self.started:
                bound = self.servers[0].sockets[0].getsockname()
                announce(f"http://{f'[{bound[0]}]' if ':' in bound[0] else bound[0]}:{bound[1]}")

        def handle_exit(self, sig: int, frame: Any) -> None:
            """End by a signal; abandon what still runs after the grace."""
            if not self.should_exit:
                watch = threading.Timer(grace + _LAST_SECONDS, _abandon, (grace,))
                watch.daemon = True
                watch.start()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=protocol_of(seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=KEEP_ALIVE,
    )
    server = Server(config)
    try:
        server.run()
    except KeyboardInterrupt:  # uvicorn raises the signal again after a graceful end
        return
    except SystemExit:
        fail(f"cannot listen at {host}:{port}", "another process may have the port: give another --port")


def _abandon(grace: int) -> None:
    """End the process at once: what still runs had its time."""
    logging.getLogger("toolgrammar.server").error("requests still ran after the grace of %d seconds: abandoned", grace)
    logging.shutdown()
    os._exit(1)


def _announce(address: str, names: list[str], has_keys: bool, grace: int) -> None:
    """Print what to give to clients, and a warning if anybody may use the server."""
    key = "YOUR-KEY" if has_keys else "none"
    shown = console()
    for line in (
        f"serving    {', '.join(names)} at {address}",
        f'OpenAI     OpenAI(base_url="{address}/v1", api_key="{key}"), model="{names[0]}"',
        f'Anthropic  Anthropic(base_url="{address}", api_key="{key}")',
        f'Ollama     Client(host="{address}")',
        f"stop       Ctrl-C (up to {grace} seconds for running requests)",
    ):
        shown.print(line, markup=False)
    if not has_keys and not address.startswith(("http://127.", "http://[::1]")):
        console(stderr=True).print("warning: anybody who reaches this address can use it: give --api-key", markup=False)
    sys.stdout.flush()


def loaded_models(models: list[str]) -> dict[str, Model]:
    """Load models by their addresses; return them by the names under which they are served."""
    from toolgrammar.core.models import load_model

    loaded: dict[str, Model] = {}
    for given in models:
        name, separator, address = given.partition("=")
        if not separator or any(sign in name for sign in ":/\\"):
            name = address = given
            if given.startswith(_OLLAMA):  # so that its clients find it under the name that they know
                name = given.removeprefix(_OLLAMA)
        if not name or not address or name in loaded:
            fail(f"{given!r} does not give a model a unique name", "for example small=hf:PATH")
        fetched_model(address)
        with console(stderr=True).status(f"loading {address}"):
            loaded[name] = load_model(address)
    return loaded


def key_of(option: str, given: str) -> str:
    """Return a key from the environment: on the command line every user of the machine could read it."""
    scheme, _, name = given.partition(":")
    if scheme != "env" or not name:
        fail(f"{option} is not of the form env:NAME", "put the key into an environment variable, and name that")
    key = os.environ.get(name, "")
    if not key:
        fail(f"the environment variable {name} is empty", "put the key there")
    return key


def _export_spans() -> None:
    """Send spans where the variables of OpenTelemetry say, if they do."""
    if not (os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")):
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        said = "no spans are sent: OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed"
        complain(said, "pip install 'toolgrammar[otel]'", "warning")
        return
    name = os.environ.get("OTEL_SERVICE_NAME", "toolgrammar")
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)  # which sends the last spans when the process ends


class _JsonLines(logging.Formatter):
    """One line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; the facts of a request are fields of their own."""
        facts = getattr(record, "facts", {})
        line = {"time": round(record.created, 3), "level": record.levelname.lower(), "event": record.getMessage()}
        if record.exc_info:
            facts = {**facts, "exception": self.formatException(record.exc_info)}
        return json.dumps({**line, **facts})


def _log_to_stderr(level: str) -> None:
    """Write the log as lines of JSON, from a level on."""
    number = getattr(logging, level.upper(), None)
    if not isinstance(number, int):
        fail(f"--log-level is {level!r}", "give debug, info, warning or error")
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines())
    # What uvicorn says of starting and stopping is on standard output, in words for people.
    for name, least in (("toolgrammar", number), ("uvicorn.error", number if level == "debug" else logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(max(number, least))
        logger.propagate = False
