"""Failures by which clients act: an overflow is trimmed or compacted, a filter and a limit are told apart.

Clients know them by the words of the message, by its code or its type. `CLIENTS` has what the newest version of each
looks for, as data; the clients of this environment judge with their own code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import litellm
import openai
import pytest
from litellm.litellm_core_utils.exception_mapping_utils import ExceptionCheckers, exception_type

from toolgrammar.core import Model
from toolgrammar.core.models.remote import RemoteModel

from ...core.backends import Noise

litellm.suppress_debug_info = True

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
MESSAGES, OLLAMA, GENERATE = "/v1/messages", "/api/chat", "/api/generate"
OPENAI = (CHAT, COMPLETIONS, RESPONSES)


@dataclass
class Told:
    """What a client reads of a failure: the status (200 in a stream), and the fields of the error."""

    path: str
    status: int
    message: str
    code: str = ""
    kind: str = ""

    @property
    def text(self) -> str:
        """The text of the exception of OpenAI's SDK, which has had no code in it since 3.0."""
        return self.message if self.status == 200 else f"Error code: {self.status} - {self.message}"


def says(*phrases: str) -> Callable[[Told], bool]:
    """Recognise a failure by one of these phrases, in lower case."""
    return lambda told: any(phrase in told.text.lower() for phrase in phrases)


def chat_openai(told: Told) -> bool:
    """langchain-openai 1.7.4; earlier ones do not look at the code."""
    if told.status == 200:
        return "exceeds the context window" in told.message
    return told.status == 400 and "prompt is too long" in told.message


def pydantic_ai(told: Told) -> bool:
    """pydantic-ai 2.68."""
    if told.path == MESSAGES:
        return told.kind == "invalid_request_error" and "prompt is too long" in told.message.lower()
    return told.code == "context_length_exceeded" and says("maximum context length")(told)


def deepagents(told: Told) -> bool:
    """deepagents 0.7.32; an error in a stream has no status, and is known by LangChain's class."""
    phrases = ("context_length_exceeded", "maximum context length", "exceeds the context window", "prompt is too long")
    return (told.status in (400, 413, 422) or told.status == 200) and says(*phrases)(told)


def codex(told: Told) -> bool:
    """Codex 0.169: the code of a failed response in a stream."""
    return told.status == 200 and told.code == "context_length_exceeded"


CLIENTS: dict[str, tuple[tuple[str, ...], Callable[[Told], bool]]] = {
    "ChatOpenAI": (OPENAI, chat_openai),
    "ChatAnthropic 1.7.10": ((MESSAGES,), lambda told: told.status == 400 and "prompt is too long" in told.message),
    "Claude Code": ((MESSAGES,), lambda told: re.search(r"prompt is too long", told.message) is not None),
    "deepagents": ((*OPENAI, MESSAGES, OLLAMA, GENERATE), deepagents),
    "pydantic-ai": ((CHAT, RESPONSES, MESSAGES), pydantic_ai),
    "strands 1.62, OpenAI": (OPENAI, says("maximum context length", "context_length_exceeded", "context length")),
    "strands 1.62, Anthropic": ((MESSAGES,), says("prompt is too long:")),
    "strands 1.62, Ollama": ((OLLAMA, GENERATE), says("exceeds the available context")),
    "VS Code's sessions": ((OLLAMA, GENERATE), says("exceeds the available context size")),
    "LiteLLM": (
        (*OPENAI, MESSAGES, OLLAMA, GENERATE),
        lambda told: ExceptionCheckers.is_error_str_context_window_exceeded(told.text),
    ),
}


def body_of(path: str, text: str, *, stream: bool, schema: Any = None) -> dict[str, Any]:
    """A request with a text of the user, in each protocol."""
    body: dict[str, Any] = {"model": "m", "stream": stream}
    if path in (COMPLETIONS, GENERATE):
        body["prompt"] = text
    elif path == RESPONSES:
        body["input"] = text
    else:
        body["messages"] = [{"role": "user", "content": text}]
    if path == MESSAGES:
        body["max_tokens"] = 400
    if schema is not None:
        named = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        own = {"type": "json_schema", "name": "a", "schema": schema}
        body |= {
            CHAT: {"response_format": named},
            COMPLETIONS: {"response_format": named, "max_tokens": 400},
            RESPONSES: {"text": {"format": own}},
            MESSAGES: {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        }.get(path, {"format": schema})
    return body


def told_by(client: httpx.Client, path: str, body: dict[str, Any]) -> list[Told]:
    """What is read of a failed request: the response, or each event of a stream that has an error."""
    answer = client.post(path, json=body)
    if answer.headers["content-type"].startswith("application/json"):
        told = answer.json()["error"]
        told = {"message": told} if isinstance(told, str) else told
        return [Told(path, answer.status_code, told["message"], told.get("code") or "", told.get("type") or "")]
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    errors = [event.get("error") or (event.get("response") or {}).get("error") for event in events]
    return [Told(path, 200, e["message"], e.get("code") or "", e.get("type") or "") for e in errors if e]


def too_small(request: httpx.Request) -> httpx.Response:
    """A server of another kind, whose words few clients know."""
    if request.method == "GET":
        return httpx.Response(404, json={})
    error = {"code": 400, "type": "exceed_context_size_error", "message": "exceed_context_size: try increasing it"}
    return httpx.Response(400, json={"error": error})


WIDE = {"type": "string", "minLength": 300}
PATHS = (*OPENAI, MESSAGES, OLLAMA, GENERATE)
CAUSES = [(cause, path) for cause in ("the prompt", "the prompt with the shortest answer") for path in PATHS]
CAUSES += [("another server", path) for path in (CHAT, RESPONSES, MESSAGES, OLLAMA)]  # it takes conversations only


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("cause", "path"), CAUSES)
def test_an_overflow_is_known_to_every_client(
    cause: str, path: str, stream: bool, http: Callable[..., httpx.Client]
) -> None:
    """A prompt that does not fit, for whatever reason, has the words, code and status of each client of the protocol."""
    if cause == "another server":
        model: Model = RemoteModel("m@http://other.test/v1", transport=httpx.MockTransport(too_small))
        body = body_of(path, "Hi", stream=stream)
    else:
        model = Model(Noise())
        size = model.context_window
        text, schema = ("x" * 2 * size, None) if cause == "the prompt" else ("x" * (size - 200), WIDE)
        body = body_of(path, text, stream=stream, schema=schema)
    told = told_by(http({"m": model}), path, body)
    known = [client for client, (paths, _) in CLIENTS.items() if path in paths]
    if stream and path == RESPONSES:
        known.append("Codex")
    judges = {**{client: judge for client, (_, judge) in CLIENTS.items()}, "Codex": codex}
    assert told and known
    for client in known:
        assert all(map(judges[client], told)), (client, told)


def test_the_numbers_of_an_overflow_are_in_anthropics_words(http: Callable[..., httpx.Client]) -> None:
    """Claude Code compacts by the numbers in ``prompt is too long: N tokens > M maximum``."""
    model = Model(Noise())
    (told,) = told_by(http({"m": model}), MESSAGES, body_of(MESSAGES, "x" * 2 * model.context_window, stream=False))
    found = re.search(r"prompt is too long: (\d+) tokens > (\d+) maximum", told.message)
    assert found and int(found[1]) > int(found[2]) == model.context_window


def sdk_error(told: Told) -> openai.APIStatusError:
    """The exception of OpenAI's SDK for a failure."""
    response = httpx.Response(told.status, request=httpx.Request("POST", "http://m.test"))
    body = {"message": told.message, "type": told.kind, "code": told.code}
    kind = {400: openai.BadRequestError, 401: openai.AuthenticationError, 429: openai.RateLimitError}[told.status]
    return kind(told.text, response=response, body=body)


def filtered(request: httpx.Request) -> httpx.Response:
    """A server that withholds each answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "content_filter"}
    return httpx.Response(200, json={"choices": [choice]}) if request.method == "POST" else httpx.Response(404)


def busy(request: httpx.Request) -> httpx.Response:
    """A server that takes no more."""
    return httpx.Response(429 if request.method == "POST" else 404, json={"error": {"message": "slow down"}})


@pytest.mark.parametrize(
    ("server", "code", "words", "theirs"),
    [
        (filtered, "content_policy_violation", "content filtering policy", litellm.ContentPolicyViolationError),
        (busy, "rate_limit_exceeded", "429", litellm.RateLimitError),
        (too_small, "context_length_exceeded", "prompt is too long", litellm.ContextWindowExceededError),
    ],
)
def test_other_failures_have_the_codes_of_openai(
    server: Callable[[httpx.Request], httpx.Response],
    code: str,
    words: str,
    theirs: type[Exception],
    http: Callable[..., httpx.Client],
) -> None:
    """A filtered answer, a limit of requests and an overflow of a model on a server are LiteLLM's errors of that name."""
    model = RemoteModel("m@http://other.test/v1", transport=httpx.MockTransport(server), max_retries=0)
    (told,) = told_by(http({"m": model}), CHAT, body_of(CHAT, "Hi", stream=False))
    assert told.code == code and words in told.message
    with pytest.raises(theirs):
        exception_type(model="m", original_exception=sdk_error(told), custom_llm_provider="openai")


def test_a_wrong_key_and_an_unknown_model_have_the_codes_of_openai(http: Callable[..., httpx.Client]) -> None:
    """A wrong key is ``invalid_api_key``, a model that is not served ``model_not_found``."""
    client = http({"m": Model(Noise())}, api_keys=["right"])
    (told,) = told_by(client, CHAT, body_of(CHAT, "Hi", stream=False))
    assert (told.status, told.code) == (401, "invalid_api_key")
    client.headers["authorization"] = "Bearer right"
    (told,) = told_by(client, CHAT, {**body_of(CHAT, "Hi", stream=False), "model": "gpt-9"})
    assert (told.status, told.code) == (404, "model_not_found")
