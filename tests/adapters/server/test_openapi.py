"""The server's own description: it has every endpoint, and errors are as it says."""

from __future__ import annotations

import re
from typing import Any

import httpx
import jsonschema
import pytest
from starlette.routing import Route

from toolgrammar.adapters.openai import http_client
from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core import Model
from toolgrammar.core.testing import ScriptedModel


def described(metrics: bool) -> Any:
    """What an application tells of itself."""
    process = InProcess(create_app({"noise": ScriptedModel(["x"])}, metrics=metrics), httpx)
    with httpx.Client(transport=process.transport(), base_url=BASE_URL) as client:
        return client.get("/openapi.json").json()


DESCRIBED = described(metrics=True)
POSTS = sorted(path for path, methods in DESCRIBED["paths"].items() if "post" in methods)


def test_every_endpoint_is_described(noise: Model) -> None:
    """With its methods; metrics only where there are some."""
    app = create_app({"noise": noise}, metrics=True)
    routes = {
        re.sub(r":\w+", "", route.path): {method.lower() for method in (route.methods or ()) if method != "HEAD"}
        for route in app.routes
        if isinstance(route, Route)
    }
    assert {path: set(methods) for path, methods in DESCRIBED["paths"].items()} == routes
    assert DESCRIBED["paths"].keys() - described(metrics=False)["paths"] == {"/metrics"}


@pytest.mark.parametrize("path", POSTS)
def test_errors_are_as_described(noise: Model, path: str) -> None:
    """Each described field, given a value of a wrong type, is a 400 that names it, in the described form."""
    endpoint: Any = DESCRIBED["paths"][path]["post"]
    schema = endpoint["requestBody"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    form = endpoint["responses"]["400"]["content"]["application/json"]["schema"]
    message: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Hi"}],
        "prompt": "Hi",
        "input": "Hi",
        "max_tokens": 4,
    }
    message |= {"state": {"text": "Hi"}, "questions": [{"type": "predicate", "instructions": "Is it so?"}]}
    if path == "/v1/systemone":
        message["questions"] = {"so": {"type": "noul", "instructions": "Is it so?"}}
    least = {"model": "noise", **{name: message[name] for name in schema["required"] if name != "model"}}
    short = {"max_tokens": 4, "max_output_tokens": 16, "options": {"num_predict": 4}}  # noise does not end by itself
    least |= {name: value for name, value in short.items() if name in schema["properties"]}
    jsonschema.validate(least, schema)
    with http_client({"noise": noise}) as client:
        assert answered(client, path, least).status_code == 200
        for name in schema["properties"].keys() - {"state"}:  # which may be any value
            wrong = {**least, name: 5.5 if name not in ("temperature", "min_p", "repetition_penalty", "top_p") else "x"}
            if name == "seed":
                wrong[name] = "x"
            response = answered(client, path, wrong)
            assert response.status_code == 400, name
            jsonschema.validate(response.json(), form)
            assert name in response.text


def answered(client: httpx.Client, path: str, body: Any) -> httpx.Response:
    """Return the response to a request."""
    return client.post(f"http://server{path}", json=body)
