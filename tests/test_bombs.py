"""Small inputs that expand: closing schemas, reading requests and making grammars answers them, or refuses them with an error of ours, in counted steps.

Each way in reads all bombs in a process of its own. Calls of functions are counted; what compiled code does between
them is bounded by the time that the process gets, which is far more than it takes.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from .bombs import bombs, option_bombs
from .counted import at_most

ROOT = Path(__file__).resolve().parent.parent

# A process reads many bombs, and several take a minute or more.
pytestmark = [pytest.mark.begin_first, pytest.mark.timeout(900)]

#: Maximum number of calls of functions that one bomb may take. The work of one schema is bounded by its steps, of which
#: each is some hundred calls where it is plain Python. A tool of "60 lists that overlap" takes 9.4 million by itself, and
#: 18.8 million after certain other bombs in the same process.
MAX_CALLS = 20_000_000


def as_parameter(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as the only parameter of a tool."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    shared = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"type": "object", "properties": {"a": inner}, "required": ["a"], **shared}


def as_tool(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as the parameter of an OpenAI-style tool."""
    return {"type": "function", "function": {"name": "f", "parameters": as_parameter(schema)}}


def as_text(schema: dict[str, Any]) -> str:
    """The schema as JSON text, however deep it is."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return json.dumps(schema)
    finally:
        sys.setrecursionlimit(limit)


def read_closed(schema: dict[str, Any]) -> None:
    """Write out the closed reading, and the structural tag of a tool."""
    from toolgrammar.tools import ToolSet, close_objects

    close_objects(schema)
    ToolSet.from_any([as_tool(schema)]).to_structural_tag()


def read_requests(protocol: str, schema: dict[str, Any]) -> None:
    """Read requests to the server in one protocol: a schema of the answer, and a tool."""
    from toolgrammar.adapters.server.protocols import chat_completions, messages, ollama, responses
    from toolgrammar.adapters.server.served import Served
    from toolgrammar.core.errors import ToolGrammarError
    from toolgrammar.core.testing import ScriptedModel

    served = Served({"m": ScriptedModel([""])})
    form = {"type": "json_schema", "name": "n", "schema": schema}
    arguments = as_parameter(schema)
    said = {"messages": [{"role": "user", "content": "x"}]}
    reader, asked, answer, tool = {
        "chat": (chat_completions.CHAT_COMPLETIONS, said, {"response_format": form}, as_tool(schema)),
        "responses": (
            responses.Responses(),
            {"input": "x"},
            {"text": {"format": form}},
            {"type": "function", "name": "f", "parameters": arguments},
        ),
        "messages": (
            messages.MESSAGES,
            {**said, "max_tokens": 9},
            {"output_config": {"format": form}},
            {"name": "f", "input_schema": arguments},
        ),
        "ollama": (ollama.CHAT, said, {"format": schema}, as_tool(schema)),
    }[protocol]
    for more in (answer, {"tools": [tool]}):
        with contextlib.suppress(ToolGrammarError):
            reader.read(served.fields({"model": "m", **asked, **more}, reader.form), served)


def read_tools(schema: dict[str, Any]) -> None:
    """Make the grammar of a tool's calls."""
    from toolgrammar.tools import ToolSet

    ToolSet.from_any([as_tool(schema)]).grammar()


def read_envelopes(schema: dict[str, Any]) -> None:
    """Read what vLLM is handed: an envelope with a tool, and a schema of the answer; of a deep schema also its text.

    Other texts of schemas take the way of `read_schema`, and tools that of `read_tools`.
    """
    from toolgrammar.adapters.vllm.envelope import Tokens, envelope, read_envelope, wanted
    from toolgrammar.core.errors import GrammarError

    try:
        text = envelope([as_tool({"type": "string"})], response_schema=schema)
    except GrammarError:
        wanted("JSON", as_text(schema), Tokens())
    else:
        read_envelope(text, Tokens())


def read_schema(schema: dict[str, Any]) -> None:
    """Make the grammar of a schema, with members in any order."""
    from toolgrammar.core import Grammar

    Grammar.from_json_schema(schema, property_order="any")


def read_masks(order: Literal["schema", "any"], schema: dict[str, Any]) -> None:
    """Write the first tokens of a text, with members in one order, and complete it."""
    from toolgrammar.core import Grammar

    from .vocabularies import BYTES

    matcher = Grammar.from_json_schema(schema, property_order=order).bind(BYTES).matcher()
    for _ in range(12):
        allowed = [token for token in matcher.allowed_tokens() if token < 256]
        if allowed:
            matcher.accept(allowed[-1] if 0x7B not in allowed else 0x7B)
    matcher.shortest_completion()


def as_document(schema: dict[str, Any], version: str) -> dict[str, Any]:
    """The schema as the body of the one operation of an OpenAPI document, which has its definitions."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    shared = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    body = {"content": {"application/json": {"schema": inner}}, "required": True}
    operation = {"operationId": "f", "requestBody": body, "responses": {}}
    return {"openapi": version, "paths": {"/f": {"post": operation}}, **shared}


def read_documents(version: str, schema: dict[str, Any]) -> None:
    """Make the grammar of the operations of an OpenAPI document."""
    from toolgrammar.tools import ToolSet, tools_from_openapi

    ToolSet(tools_from_openapi(as_document(schema, version))).grammar()


WAYS_IN: dict[str, Callable[[dict[str, Any]], None]] = {
    "closed": read_closed,
    **{name: partial(read_requests, name) for name in ("chat", "responses", "messages", "ollama")},
    "schema": read_schema,
    "tools": read_tools,
    "vllm": read_envelopes,
    "masks": partial(read_masks, "schema"),
    "masks of any order": partial(read_masks, "any"),
    "openapi 3.0": partial(read_documents, "3.0.3"),
    "openapi 3.1": partial(read_documents, "3.1.0"),
}

#: Ways in that do the same work: each bomb takes one of them, and all of them with --slow.
ALIKE = (
    ("closed",),
    ("chat", "responses", "messages", "ollama"),
    ("schema", "tools", "vllm", "openapi 3.0", "openapi 3.1"),
    ("masks", "masks of any order"),
)


def read_all(way: str, place: int = 0, of: int = 1) -> None:
    """Read bombs one way in; say which one is read, and what went wrong.

    Args:
        way: a name of `WAYS_IN`.
        place: this way's place among those that share the bombs.
        of: number of those ways; bombs of one kind, which follow one another, are shared out in turn.
    """
    from toolgrammar.core.errors import ToolGrammarError

    for number, (name, schema) in enumerate(option_bombs() if way.startswith("masks") else bombs()):
        if (number + number // of) % of != place:
            continue
        print(f"reading {name}", flush=True)
        try:
            with at_most(MAX_CALLS):
                WAYS_IN[way](schema)
        except ToolGrammarError:
            pass
        except BaseException as error:
            print(f"WRONG {name}: {type(error).__name__}: {error}", flush=True)
    print("read all", flush=True)


def test_every_way_in_has_a_share() -> None:
    """Those that are alike share every bomb, and no way in is left out."""
    assert sorted(way for ways in ALIKE for way in ways) == sorted(WAYS_IN)
    for ways in ALIKE:
        taken = [{n for n in range(100) if (n + n // len(ways)) % len(ways) == place} for place in range(len(ways))]
        assert set.union(*taken) == set(range(100)) and sum(map(len, taken)) == 100


@pytest.mark.parametrize("way", WAYS_IN)
def test_each_way_in_bounds_its_work(way: str, thorough: bool) -> None:
    """Bombs of references, alternatives, counts, nesting, enumerations and patterns end in an answer or our error."""
    (ways,) = (ways for ways in ALIKE if way in ways)
    share = (0, 1) if thorough else (ways.index(way), len(ways))
    code = f"from tests.test_bombs import read_all; read_all({way!r}, *{share!r})"
    run = [sys.executable, "-X", "faulthandler", "-c", code]
    try:
        done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=840, check=False)
    except subprocess.TimeoutExpired as slow:
        said = slow.stdout.decode() if isinstance(slow.stdout, bytes) else slow.stdout or ""
        pytest.fail(f"too slow: {said.splitlines()[-1:]}")
    lines = done.stdout.splitlines()
    assert lines[-1:] == ["read all"], f"ended at {lines[-1:]}: {done.stderr[-2000:]}"
    assert not [line for line in lines if line.startswith("WRONG")]
