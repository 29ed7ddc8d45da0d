"""`client` and `async_client`: OpenAI's clients, whose transport is our application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.models import Model

from .. import _shared

try:
    import httpx
    import openai
except ImportError as error:
    raise _shared.missing("openai", "openai") from error

from ..server.app import create_app
from ..server.in_process import BASE_URL, InProcess, client_arguments
from ..server.limits import Limits


def client(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> openai.OpenAI:
    """Return a blocking client of OpenAI over models in this process.

    Close it (or use it as a context manager) to end its thread and free models that were given by their addresses; so
    does dropping it.

    Args:
        models: a model or its address, which requests then name as they name it here; or several by name.
        defaults: options of requests that do not say otherwise, for example a temperature.
        limits: bounds of requests.
        **options: more arguments of ``openai.OpenAI``, for example ``timeout``.

    Raises:
        ModelError: a model cannot be loaded.
        MissingDependencyError: a package of the extra ``openai`` is not installed.
    """
    return openai.OpenAI(
        **client_arguments(f"{BASE_URL}/v1", options), http_client=http_client(models, defaults=defaults, limits=limits)
    )


def async_client(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> openai.AsyncOpenAI:
    """Return an asynchronous client of OpenAI over models in this process; arguments and errors as for `client`."""
    http = async_http_client(models, defaults=defaults, limits=limits)
    return openai.AsyncOpenAI(**client_arguments(f"{BASE_URL}/v1", options), http_client=http)


def http_client(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
) -> httpx.Client:
    """Return what a framework takes as ``http_client`` that makes OpenAI's client itself.

    Whatever address it is given, requests go to the models in this process. Arguments and errors as for `client`.
    """
    process = InProcess(create_app(models, defaults=defaults, limits=limits), httpx)
    return httpx.Client(transport=process.transport(), base_url=f"{BASE_URL}/v1")


def async_http_client(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
) -> httpx.AsyncClient:
    """Return the asynchronous form of `http_client`."""
    process = InProcess(create_app(models, defaults=defaults, limits=limits), httpx)
    return httpx.AsyncClient(transport=process.async_transport(), base_url=f"{BASE_URL}/v1")
