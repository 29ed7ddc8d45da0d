"""Endpoints that tell of the server and its models, and errors where there is no endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .. import _shared
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
        self._endpoints = endpoints
        self._queues = queues
        self._metrics = metrics
        self._created = int(time.time())
        self.paths: dict[str, list[str]] = {}

    def routes(self) -> list[Route]:
        """Return the routes to them."""
        routes = [
            Route("/v1/responses/{name}", self._response, methods=["GET", "DELETE"]),
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1/models/{name:path}", self._model, methods=["GET"]),
            Route("/api/v0/models", self._models_v0, methods=["GET"]),
            Route("/api/v1/models", self._models_v1, methods=["GET"]),
            Route("/api/tags", self._tags, methods=["GET"]),
            Route("/api/ps", self._tags, methods=["GET"]),
            Route("/api/show", self._show, methods=["POST"]),
            Route("/api/version", self._version, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/ready", self._ready, methods=["GET"]),
            Route("/openapi.json", self._description, methods=["GET"]),
        ]
        return routes if self._metrics is None else [*routes, Route("/metrics", self._scrape, methods=["GET"])]

    def _facts(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._created, "owned_by": "toolgrammar"}

    async def _models(self, request: Request) -> Response:
        facts = [self._facts(name) for name in self._served]
        if "anthropic-version" in request.headers:
            return self._guarded(request, lambda: messages.models_of(facts))
        if "client_version" in request.query_params:  # so Codex asks, which has a form of its own
            return self._guarded(request, lambda: {"models": [self._codex_model(name) for name in self._served]})
        return self._guarded(request, lambda: {"object": "list", "data": facts})

    async def _models_v0(self, request: Request) -> Response:
        return self._guarded(request, lambda: {"object": "list", "data": self._in_lm_studio(lm_studio.model_of_v0)})

    async def _models_v1(self, request: Request) -> Response:
        return self._guarded(request, lambda: {"models": self._in_lm_studio(lm_studio.model_of_v1)})

    def _in_lm_studio(self, form: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
        served = {name: self._served.model(name) for name in self._served}
        return [form(name, one.context_window, images=one.capabilities.images) for name, one in served.items()]

    def _codex_model(self, name: str) -> dict[str, Any]:
        model = self._served.model(name)
        images, thinks = model.capabilities.images, _shared.thinks(model)
        return openai_form.codex_model(name, model.context_window, images=images, thinks=thinks)

    async def _model(self, request: Request) -> Response:
        def facts() -> dict[str, Any]:
            self._served.model(request.path_params["name"])
            made = self._facts(request.path_params["name"])
            return messages.model_of(made) if "anthropic-version" in request.headers else made

        return self._guarded(request, facts)

    async def _response(self, request: Request) -> Response:
        act = self._responses.forget if request.method == "DELETE" else self._responses.find

        def answer() -> Any:
            Fields(dict(request.query_params), responses.STORED)
            return act(request.path_params["name"])

        return self._guarded(request, answer)

    async def _tags(self, request: Request) -> Response:
        served = self._served
        return self._guarded(
            request, lambda: {"models": [ollama.facts_of(name, served.model(name)) for name in served]}, ollama.CHAT
        )

    async def _show(self, request: Request) -> Response:
        try:
            self._incoming.authorize(request)
            model = ollama.SHOW.read(Fields(await self._incoming.body(request), ollama.SHOW.form), self._served)
        except RequestError as error:
            return refused(ollama.CHAT, error)
        return as_json(ollama.shown(model))

    async def _version(self, request: Request) -> Response:
        return self._guarded(request, lambda: {"version": version("toolgrammar")}, ollama.CHAT)

    def _guarded(self, request: Request, make: Callable[[], Any], protocol: Protocol | None = None) -> Response:
        """Return what ``make`` returns as JSON, to a client with a key; errors are in the form of a protocol."""
        if protocol is None:
            protocol = messages.MESSAGES if "anthropic-version" in request.headers else CHAT_COMPLETIONS
        try:
            self._incoming.authorize(request)
            return as_json(make())
        except RequestError as error:
            return refused(protocol, error)

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

    async def _health(self, request: Request) -> Response:
        return as_json({"status": "ok"})

    async def _description(self, request: Request) -> Response:
        return self._guarded(
            request, lambda: description(self._endpoints, self._served, metrics=self._metrics is not None)
        )

    async def _ready(self, request: Request) -> Response:
        full = any(queue.is_full for queue in self._queues.values())
        return as_json({"status": "busy" if full else "ready"}, 503 if full else 200)

    async def _scrape(self, request: Request) -> Response:
        assert self._metrics is not None
        try:
            self._incoming.authorize(request)
        except RequestError as error:
            return refused(CHAT_COMPLETIONS, error)
        return Response(self._metrics.text(), headers={"Content-Type": self._metrics.media_type})
