"""The doors to an answer make the same checks: a local model, a model on a server of each kind, our server, the plug-ins.

What can have no answer is refused at each, before anything is sent or written; what can is refused at none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.adapters.vllm.envelope import envelope, read_envelope, wanted
from toolgrammar.core import JsonMode, Model, ToolGrammarError, Vocabulary
from toolgrammar.core.models.remote import RemoteModel

from ..core.backends import Noise

NEVER = {"type": "integer", "minimum": 2, "maximum": 1}


def members(**properties: Any) -> dict[str, Any]:
    """The schema of an object with these members, all required."""
    return {"type": "object", "properties": properties, "required": [*properties]}


def tool(name: str, parameters: Any) -> dict[str, Any]:
    """A tool of OpenAI's form."""
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


GOOD = tool("good", members())
BAD = tool("bad", members(a=NEVER))
OPTIONAL = {"type": "object", "properties": {"a": NEVER}}
BROKEN = {"type": "string", "pattern": "("}
NOWHERE = {"$ref": "#/no"}

#: Requests, and the code with which each door refuses them.
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "an answer": ("unsatisfiable_schema", {"schema": members(a=NEVER)}),
    "inside an answer": (
        "unsatisfiable_schema",
        {"schema": members(o={"type": "array", "items": NEVER, "minItems": 1})},
    ),
    "allOf": ("unsatisfiable_schema", {"schema": {"allOf": [members(a={"const": 1}), members(a={"const": 2})]}}),
    "not": ("unsatisfiable_schema", {"schema": members(a={"enum": ["x"], "not": {"const": "x"}})}),
    "oneOf": ("unsatisfiable_schema", {"schema": {"oneOf": [members(a={}), members(a={})]}}),
    "additionalProperties": (
        "unsatisfiable_schema",
        {"schema": {"type": "object", "required": ["a"], "additionalProperties": False}},
    ),
    "a tool": ("unsatisfiable_schema", {"tools": [BAD, GOOD]}),
    "an answer beside a tool": ("unsatisfiable_schema", {"tools": [GOOD], "schema": members(a=NEVER)}),
    "an answer beside a tool, inside": (
        "unsatisfiable_schema",
        {"tools": [GOOD], "schema": members(o={"type": "array", "items": NEVER, "minItems": 1})},
    ),
    "a demanded tool": ("unsatisfiable_schema", {"tools": [BAD], "tool_choice": "required"}),
    "a named tool": ("unsatisfiable_schema", {"tools": [BAD, GOOD], "tool_choice": "bad"}),
    "a malformed answer": ("invalid_schema", {"schema": members(a=BROKEN)}),
    "a malformed tool": ("invalid_schema", {"tools": [tool("t", members(a=BROKEN))]}),
    "a reference of an answer": ("invalid_schema", {"schema": members(a=NOWHERE)}),
    "a reference of a tool": ("invalid_schema", {"tools": [tool("t", members(a=NOWHERE))]}),
    "a type of a tool": ("invalid_schema", {"tools": [tool("t", members(a={"type": "strng"}))]}),
    "parameters that are no object": ("schema", {"tools": [tool("t", {"type": "string"})]}),
    "an unknown tool": ("unknown_tool", {"tools": [GOOD], "tool_choice": "other"}),
}

#: Requests that no door refuses.
TAKEN: dict[str, dict[str, Any]] = {
    "an impossible member that may be left out": {"schema": OPTIONAL},
    "an impossible tool beside the named one": {"tools": [BAD, GOOD], "tool_choice": "good"},
    "an impossible tool that may not be called": {"tools": [BAD], "tool_choice": "none"},
    "an impossible answer that a demanded call replaces": {
        "tools": [GOOD],
        "tool_choice": "required",
        "schema": members(a=NEVER),
    },
    "an answer with such a member beside a tool": {"tools": [GOOD], "schema": OPTIONAL},
    "a tool with such a member": {"tools": [tool("t", OPTIONAL)], "tool_choice": "required"},
}


@dataclass
class Tokens:
    """What the plug-ins know of a model."""

    vocabulary: Vocabulary | None = None
    chat_template: str = ""


@dataclass
class Silent:
    """A server that notes what it is asked to write, and answers that it failed."""

    kind: str
    asked: list[Mapping[str, Any]] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request; the question whether our plug-in is there is not noted."""
        if b'{\\"toolgrammar\\": 0}' in request.content:
            return httpx.Response(400, json={"error": {"message": "no such grammar"}})
        if request.method == "POST":
            self.asked.append(json.loads(request.content))
        return httpx.Response(404, json={"error": {"message": "none"}})

    def model(self) -> RemoteModel:
        """A model on it."""
        return RemoteModel("m@http://model.test/v1", server=self.kind, transport=httpx.MockTransport(self))


def options_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a request in Python."""
    options = dict(request)
    if "schema" in options:
        options["json_mode"] = JsonMode(schema=options.pop("schema"))
    return options


def asked_locally(request: Mapping[str, Any]) -> str | None:
    """Ask a local model; return the code of its error."""
    return code_of(lambda: Model(Noise(context_window=4_000)).generate("Hi", max_tokens=300, **options_of(request)))


def asked_of_a_server(kind: str) -> Callable[[Mapping[str, Any]], str | None]:
    """Ask a model on a server of a kind; return the code of an error before anything was sent."""

    def ask(request: Mapping[str, Any]) -> str | None:
        server = Silent(kind)
        code = code_of(lambda: server.model().generate("Hi", **options_of(request)))
        return None if server.asked else code

    return ask


def asked_of_the_plugins(request: Mapping[str, Any]) -> str | None:
    """Ask the plug-ins for vLLM and SGLang; return the code of their error."""

    def ask() -> None:
        if "schema" in request and "tools" not in request:
            wanted("JSON", json.dumps(request["schema"]), Tokens()).grammar.check()
        else:
            told = {"tool_choice": request.get("tool_choice", "auto"), "response_schema": request.get("schema")}
            read_envelope(envelope(request["tools"], **told), Tokens()).grammar.check()

    return code_of(ask)


def asked_of_our_server(request: Mapping[str, Any]) -> str | None:
    """Ask our server; return the code of its error."""
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 300, **request}
    if (choice := body.get("tool_choice")) not in (None, "required", "none"):
        body["tool_choice"] = {"type": "function", "function": {"name": choice}}
    if "schema" in body:
        named = {"name": "a", "schema": body.pop("schema")}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    process = InProcess(create_app({"m": Model(Noise(context_window=4_000))}), httpx)
    with httpx.Client(transport=process.transport(), base_url=BASE_URL, timeout=60) as client:
        answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code in (200, 400)
    return answer.json()["error"]["code"] if answer.status_code == 400 else None


def code_of(ask: Callable[[], object]) -> str | None:
    """The code of the error with which a request ends; None: with an answer."""
    try:
        ask()
    except ToolGrammarError as error:
        return error.code
    return None


DOORS: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "a local model": asked_locally,
    **{f"a server of the kind {kind}": asked_of_a_server(kind) for kind in ("openai", "vllm", "llama.cpp", "ollama")},
    **{
        f"a server of the kind {kind}": asked_of_a_server(kind) for kind in ("sglang", "anthropic", "gemini", "bedrock")
    },
    "the plug-ins": asked_of_the_plugins,
    "our server": asked_of_our_server,
}


@pytest.mark.parametrize("door", DOORS)
def test_what_has_no_answer_is_refused_at_each_door(door: str) -> None:
    """A request that no answer satisfies, or that is malformed, is the same error everywhere, before a request is sent."""
    found = {name: DOORS[door](request) for name, (_, request) in REFUSED.items()}
    codes = {name: code for name, (code, _) in REFUSED.items()}
    if door == "our server":  # what it sees while it reads the fields has the code of all fields
        found = {name: codes[name] if code == "request" else code for name, code in found.items()}
    assert found == codes


@pytest.mark.parametrize("door", DOORS)
def test_what_has_an_answer_is_taken_at_each_door(door: str) -> None:
    """What only looks impossible is sent, or written."""
    assert {name: DOORS[door](request) for name, request in TAKEN.items()} == dict.fromkeys(TAKEN)
