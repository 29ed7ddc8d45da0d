"""`client` and `async_client`: OpenAI's clients, whose transport is our application."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.models import Model

from .. import _shared

try:
    import openai
    from openai import DefaultHttpxClient
except ImportError as error:
    raise _shared.missing("openai", "openai") from error

from ..server.app import create_app
from ..server.in_process import BASE_URL, InProcess, client_arguments
from ..server.limits import Limits


def _http() -> Any:
    """Return the module whose clients the installed SDK takes: httpx up to openai 2, httpx2 from openai 3."""
    bases = {base.__module__.partition(".")[0] for base in DefaultHttpxClient.__mro__}
    return importlib.import_module("httpx2" if "httpx2" in bases else "httpx")


def client(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> openai.OpenAI:
    """Return a blocking client of OpenAI over models in this process.

    Close it (or use it as a context manager) to end its thread and free models that were given by their addresses. One
    that is dropped keeps both until Python's garbage collector runs, since an SDK's client refers to itself.

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
) -> Any:
    """Return what a framework takes as ``http_client`` that makes OpenAI's client itself.

    Whatever address it is given, requests go to the models in this process. It is a client of httpx2 if the installed
    SDK imports that (openai 3), else of httpx. Arguments and errors as for `client`.
    """
    http = _http()
    process = InProcess(create_app(models, defaults=defaults, limits=limits), http)
    return http.Client(transport=process.transport(), base_url=f"{BASE_URL}/v1")


def async_http_client(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
) -> Any:
    """Return the asynchronous form of `http_client`."""
    http = _http()
    process = InProcess(create_app(models, defaults=defaults, limits=limits), http)
    return http.AsyncClient(transport=process.async_transport(), base_url=f"{BASE_URL}/v1")
