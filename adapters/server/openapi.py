"""The server's own description in OpenAPI 3.1: endpoints, the fields that a request may have, and forms of errors.

The fields are those of the forms by which requests are read (`rows`). Fields that have no effect, and those that are
refused whatever their value is, are left out. What a field may be beyond its JSON type (a path to an image, a schema
that can be enforced, a known tool) is checked by the server, and answered with 400.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

from .protocols.base import Endpoint

_TEXT: dict[str, Any] = {"type": "string"}

_ERRORS: Mapping[str, dict[str, Any]] = {
    "/api/": {"type": "object", "properties": {"error": _TEXT}, "required": ["error"]},
    "/v1/messages": {
        "type": "object",
        "properties": {
            "type": {"const": "error"},
            "error": {
                "type": "object",
                "properties": {"type": _TEXT, "message": _TEXT},
                "required": ["type", "message"],
            },
        },
        "required": ["type", "error"],
    },
    "/": {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "message": _TEXT,
                    "type": _TEXT,
                    "param": {"type": ["string", "null"]},
                    "code": {"type": ["string", "null"]},
                },
                "required": ["message", "type", "param", "code"],
            }
        },
        "required": ["error"],
    },
}
#: Statuses of errors, and what they mean.
_STATUSES = {
    "400": "a field is wrong, unknown or cannot be met",
    "401": "the API key is missing or wrong",
    "404": "there is no such model or response",
    "408": "the body did not arrive in time",
    "413": "the body or its schemas are too large",
    "415": "a browser's content type is not application/json",
    "429": "too many requests wait",
    "500": "an internal error",
    "502": "the model's own server failed",
    "504": "the answer took too long",
}


def description(endpoints: Iterable[Endpoint], others: Mapping[str, str], models: Iterable[str]) -> dict[str, Any]:
    """Return the description of a server.

    Args:
        endpoints: those that take a body.
        others: paths of those without one, and what each is for.
        models: names of the models.
    """
    known = {"enum": [*models]}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        body = endpoint.form.described()
        body["properties"]["model"] = known
        answer = _answer(endpoint.path, "stream" in endpoint.form.rows)
        paths[endpoint.path] = {
            "post": {
                "summary": endpoint.summary,
                "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
                "responses": {"200": answer, **_errors(endpoint.path)},
            }
        }
    for path, summary in others.items():
        responses: dict[str, Any] = {"200": _answer(path), **_errors(path)}
        if path == "/ready":
            responses["503"] = _answer(path)
        paths[path] = {"get": {"summary": summary, "responses": responses, **_parameters(path)}}
    stored = {"responses": {"200": _answer("/v1/responses"), **_errors("/v1/responses")}, **_parameters("{name}")}
    paths["/v1/responses/{name}"] = {
        "get": {"summary": "Return a response that is kept", **stored},
        "delete": {"summary": "Forget a response", **stored},
    }
    info = {"title": "toolgrammar serve", "version": version("toolgrammar")}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _parameters(path: str) -> dict[str, Any]:
    if "{name}" not in path:
        return {}
    return {"parameters": [{"name": "name", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}]}


def _answer(path: str, streams: bool = False) -> dict[str, Any]:
    content: dict[str, Any] = {"text/plain" if path == "/metrics" else "application/json": {}}
    if streams:
        content["application/x-ndjson" if path.startswith("/api/") else "text/event-stream"] = {}
    return {"description": "the answer", "content": content}


def _errors(path: str) -> dict[str, Any]:
    form = next(form for begin, form in _ERRORS.items() if path.startswith(begin))
    return {
        status: {"description": meaning, "content": {"application/json": {"schema": form}}}
        for status, meaning in _STATUSES.items()
    }
