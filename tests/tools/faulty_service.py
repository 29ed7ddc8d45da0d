"""A small HTTP service that keeps its word, but for the one fault that is named."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

RESULT = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "highs": {"type": "array", "items": {"type": "number"}}},
    "required": ["city", "highs"],
}
SCHEMAS: dict[str, Any] = {
    "city": {"type": "string", "minLength": 1, "maxLength": 8},
    "unit": {"enum": ["C", "F"]},
    "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "tags": {"type": "array", "items": {"enum": ["sun", "rain"]}, "maxItems": 2},
    "X-Level": {"type": "integer", "maximum": 3},
    "plan": {"type": "string", "pattern": "^[a-z]{3}$"},
}
PLACES = {"city": "path", "X-Level": "header", "plan": "cookie"}
BODY = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 5}, "urgent": {"type": "boolean"}},
    "required": ["text"],
    "additionalProperties": False,
}


def answers(status: str, schema: Any) -> dict[str, Any]:
    """The declared answers of an operation."""
    return {
        status: {"description": "fine", "content": {"application/json": {"schema": schema}}},
        "4XX": {"description": "refused"},
    }


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "weather", "version": "1"},
    "paths": {
        "/cities/{city}": {
            "get": {
                "operationId": "forecast",
                "parameters": [
                    {
                        "name": name,
                        "in": PLACES.get(name, "query"),
                        "required": name in ("city", "unit"),
                        "schema": schema,
                    }
                    for name, schema in SCHEMAS.items()
                ],
                "responses": answers("200", RESULT),
            },
            "delete": {
                "operationId": "erase",
                "parameters": [{"name": "city", "in": "path", "required": True, "schema": SCHEMAS["city"]}],
                "responses": {"204": {"description": "gone"}, "400": {"description": "refused"}},
            },
        },
        "/notes": {
            "post": {
                "operationId": "note",
                "requestBody": {"required": True, "content": {"application/json": {"schema": BODY}}},
                "responses": answers("201", {"type": "object", "required": ["id"]}),
            }
        },
    },
}


def read(request: Request) -> dict[str, Any]:
    """Return the parameters of a request as their schemas have them."""
    given: dict[str, Any] = {**request.path_params, **dict(request.query_params.items())}
    if "x-level" in request.headers:
        given["X-Level"] = request.headers["x-level"]
    given |= request.cookies
    if "tags" in given:
        given["tags"] = request.query_params.getlist("tags")
    for name in ("days", "X-Level"):
        if name in given and given[name].lstrip("-").isdigit():
            given[name] = int(given[name])
    return given


class Service:
    """The service.

    Attributes:
        fault: what it does wrong.
        seen: the methods and targets of requests.
    """

    def __init__(self) -> None:
        self.fault = ""
        self.seen: list[str] = []
        routes = [
            Route("/cities/{city}", self.forecast, methods=["GET"]),
            Route("/cities/{city}", self.erase, methods=["DELETE"]),
            Route("/notes", self.note, methods=["POST"]),
        ]
        self.app = Starlette(routes=routes)

    def erase(self, request: Request) -> Response:
        """Delete a city."""
        self.seen.append("DELETE")
        return Response(status_code=204 if len(request.path_params["city"]) <= 8 else 400)

    async def note(self, request: Request) -> Response:
        """Keep a note."""
        self.seen.append("POST")
        given = json.loads(await request.body() or b"null")
        schema = {} if self.fault == "takes any body" else BODY
        if not jsonschema.Draft202012Validator(schema).is_valid(given):
            return PlainTextResponse("refused", 422)
        return JSONResponse({"id": "text" if self.fault == "gives less" else 1}, 201)

    def forecast(self, request: Request) -> Response:
        """Tell the weather."""
        self.seen.append("GET")
        given = read(request)
        schemas = {**SCHEMAS}
        lenient = {
            "takes one more": {"days": {"type": "integer", "minimum": 1, "maximum": 15}},
            "takes longer paths": {"city": {"type": "string"}},
            "reads no header": {"X-Level": {}},
            "reads no cookie": {"plan": {}},
            "takes other texts": {"days": {}},
            "takes more items": {"tags": {"type": "array", "items": SCHEMAS["tags"]["items"]}},
        }
        schemas |= lenient.get(self.fault, {})
        required = ["city"] if self.fault == "takes less" else ["city", "unit"]
        schema = {"properties": schemas, "required": required}
        if not jsonschema.Draft202012Validator(schema).is_valid(given):
            return PlainTextResponse("refused", 400)
        if self.fault == "fails at the bound" and given.get("days") == 14:
            raise RuntimeError("days")
        if self.fault == "is not declared" and given["unit"] == "F":
            return JSONResponse({"city": "", "highs": []}, 203)
        if self.fault == "hangs" and given.get("X-Level") == 3:
            time.sleep(1)
        result: dict[str, Any] = {"city": given["city"], "highs": [1.5]}
        if self.fault == "gives another type" and given.get("plan"):
            result["highs"] = "1.5"
        if self.fault == "gives no JSON" and given.get("X-Level") == 3:
            return Response('{"city": ', media_type="application/json")
        if self.fault == "gives a page" and len(given["city"]) == 8:
            return PlainTextResponse("sunny")
        return JSONResponse(result)


@contextmanager
def running() -> Iterator[tuple[Service, str]]:
    """A running service and its URL."""
    import uvicorn

    service = Service()
    server = uvicorn.Server(uvicorn.Config(service.app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield service, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()
