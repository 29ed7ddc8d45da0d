"""`client` and `async_client`: Anthropic's clients, whose transport is our application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.models import Model

from .. import _shared

try:
    import anthropic
    import httpx2
except ImportError as error:
    raise _shared.missing("anthropic", "anthropic") from error

from ..server.app import create_app
from ..server.in_process import BASE_URL, InProcess, client_arguments
from ..server.limits import Limits


def client(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> anthropic.Anthropic:
    """Return a blocking client of Anthropic over models in this process.

    Close it (or use it as a context manager) to end its thread and free models that were given by their addresses.

    Args:
        models: a model or its address, which requests then name as they name it here; or several by name.
        defaults: options of requests that do not say otherwise, for example a temperature.
        limits: bounds of requests.
        **options: more arguments of ``anthropic.Anthropic``, for example ``timeout``.

    Raises:
        ModelError: a model cannot be loaded.
        MissingDependencyError: a package of the extra ``anthropic`` is not installed.
    """
    process = InProcess(create_app(models, defaults=defaults, limits=limits), httpx2)
    http = httpx2.Client(transport=process.transport(), base_url=BASE_URL)
    return anthropic.Anthropic(**client_arguments(BASE_URL, options), http_client=http)


def async_client(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
    **options: Any,
) -> anthropic.AsyncAnthropic:
    """Return an asynchronous client of Anthropic over models in this process; arguments and errors as for `client`."""
    process = InProcess(create_app(models, defaults=defaults, limits=limits), httpx2)
    http = httpx2.AsyncClient(transport=process.async_transport(), base_url=BASE_URL)
    return anthropic.AsyncAnthropic(**client_arguments(BASE_URL, options), http_client=http)
