"""Endpoints that tell of the server and its models, and errors where there is no endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .exchange import Incoming, as_json, refused
from .fields import Fields, RequestError
from .limits import Queue
from .metrics import Metrics
from .openapi import description
from .protocols import lm_studio, messages, ollama, openai_form, responses
from .protocols.base import Endpoint, Protocol
from .protocols.chat_completions import CHAT_COMPLETIONS
from .served import Served

#: Known endpoints of the protocols that this server does not have, and what they do.
_ABSENT: Mapping[str, str] = {
    **dict.fromkeys(("/v1/embeddings", "/api/embed", "/api/embeddings"), "make embeddings"),
    **dict.fromkeys(("/v1/rerank", "/v1/score"), "rank texts"),
    **dict.fromkeys(("/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations"), "read or make sound"),
    **dict.fromkeys(("/v1/images/generations", "/v1/images/edits"), "make images"),
    **dict.fromkeys(("/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete"), "change its models"),
}


class Telling(NamedTuple):
    """An endpoint without a body, which tells something of the server.

    Attributes:
        path: of the endpoint.
        summary: what it tells, in a line.
        tell: returns the response to a request, or its JSON.
        protocol: in whose form errors are; None: Anthropic's for its clients, OpenAI's for others.
        is_open: it needs no key.
    """

    path: str
    summary: str
    tell: Callable[[Request], Any]
    protocol: Protocol | None = None
    is_open: bool = False


class About:
    """The endpoints.

    Args:
        served: the models.
        incoming: checks keys, and reads bodies.
        stored: responses that clients may ask for again.
        endpoints: the endpoints of protocols, for the description.
        queues: the requests of each model.
        metrics: what was counted; None: it is not served.

    Attributes:
        paths: the methods of each path of the application.
    """

    def __init__(
        self,
        served: Served,
        incoming: Incoming,
        stored: responses.Responses,
        endpoints: Sequence[Endpoint],
        queues: Mapping[str, Queue],
        metrics: Metrics | None,
    ) -> None:
        self._served = served
        self._incoming = incoming
        self._responses = stored
        self._queues = queues
        self._created = int(time.time())
        self.paths: dict[str, list[str]] = {}
        self._tellings = tellings = [
            Telling("/v1/models", "List the models", self._models),
            Telling("/v1/models/{name}", "Describe a model", self._model),
            Telling(
                "/api/v0/models",
                "List the models, as LM Studio did before 0.4",
                lambda _: {"object": "list", "data": served.described(lm_studio.model_of_v0)},
            ),
            Telling(
                "/api/v1/models",
                "List the models, as LM Studio does",
                lambda _: {"models": served.described(lm_studio.model_of_v1)},
            ),
            Telling("/api/tags", "List the models, as Ollama does", self._tags, ollama.CHAT),
            Telling("/api/ps", "List the models that are loaded, as Ollama does", self._tags, ollama.CHAT),
            Telling("/api/version", "Tell the version", lambda _: {"version": version("toolgrammar")}, ollama.CHAT),
            Telling("/health", "Tell that the process lives", lambda _: {"status": "ok"}, is_open=True),
            Telling("/ready", "Tell whether it takes requests", self._ready, is_open=True),
            Telling("/openapi.json", "Tell this description", lambda _: description(endpoints, summaries, served)),
        ]
        if metrics is not None:
            summary = "Tell counts and durations, in the text format of Prometheus"
            tellings.append(Telling("/metrics", summary, lambda _: metrics.response(), CHAT_COMPLETIONS))
        summaries = {telling.path: telling.summary for telling in tellings}

    def routes(self) -> list[Route]:
        """Return the routes to them."""
        return [
            Route("/v1/responses/{name}", self._response, methods=["GET", "DELETE"]),
            Route("/api/show", self._show, methods=["POST"]),
            *(
                # The name of a model may have slashes.
                Route(telling.path.replace("{name}", "{name:path}"), partial(self._told, telling), methods=["GET"])
                for telling in self._tellings
            ),
        ]

    async def _told(self, telling: Telling, request: Request) -> Response:
        """Return the response of an endpoint, to a client with a key."""
        try:
            if not telling.is_open:
                self._incoming.authorize(request)
            told = telling.tell(request)
        except RequestError as error:
            by_client = messages.MESSAGES if "anthropic-version" in request.headers else CHAT_COMPLETIONS
            return refused(telling.protocol or by_client, error)
        return told if isinstance(told, Response) else as_json(told)

    def _facts(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._created, "owned_by": "toolgrammar"}

    def _models(self, request: Request) -> dict[str, Any]:
        facts = [self._facts(name) for name in self._served]
        if "anthropic-version" in request.headers:
            return messages.models_of(facts)
        if "client_version" in request.query_params:  # so Codex asks, which has a form of its own
            return {"models": self._served.described(openai_form.codex_model)}
        return {"object": "list", "data": facts}

    def _model(self, request: Request) -> dict[str, Any]:
        self._served.model(request.path_params["name"])
        facts = self._facts(request.path_params["name"])
        return messages.model_of(facts) if "anthropic-version" in request.headers else facts

    def _tags(self, request: Request) -> dict[str, Any]:
        return {"models": self._served.described(ollama.facts_of)}

    def _ready(self, request: Request) -> Response:
        full = any(queue.is_full for queue in self._queues.values())
        return as_json({"status": "busy" if full else "ready"}, 503 if full else 200)

    async def _response(self, request: Request) -> Response:
        """Return a stored response, or forget it."""
        act = self._responses.forget if request.method == "DELETE" else self._responses.find

        def tell(_: Request) -> Any:
            Fields(dict(request.query_params), responses.STORED)  # refuses what cannot be done
            return act(request.path_params["name"])

        return await self._told(Telling(request.url.path, "", tell), request)

    async def _show(self, request: Request) -> Response:
        try:
            self._incoming.authorize(request)
            model = ollama.SHOW.read(Fields(await self._incoming.body(request), ollama.SHOW.form), self._served)
        except RequestError as error:
            return refused(ollama.CHAT, error)
        return as_json(ollama.shown(model))

    async def unrouted(self, request: Request, error: Exception) -> Response:
        """Return the error for an endpoint or a method that does not exist, in the form of its protocol."""
        path, status = request.url.path, getattr(error, "status_code", 404)
        forms = {"/api/": ollama.CHAT, "/v1/messages": messages.MESSAGES}
        protocol = next((form for begin, form in forms.items() if path.startswith(begin)), CHAT_COMPLETIONS)
        if status == 405:
            hint = f"it takes {' and '.join(self.paths.get(path, ()))}"
            answer = refused(protocol, RequestError(f"{path} does not take {request.method}", hint=hint, status=status))
            answer.headers.update(getattr(error, "headers", None) or {})  # which methods it takes
            return answer
        if path in _ABSENT:
            hint = "its models write text; ask another server for this"
            return refused(protocol, RequestError(f"this server does not {_ABSENT[path]}", hint=hint, status=501))
        hint = f"the endpoints are {', '.join(self.paths)}"
        return refused(protocol, RequestError(f"unknown endpoint {path}", hint=hint, status=404))
