"""Addresses of models on servers, and their secrets."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ...errors import ModelError

#: Prefix of the name of an environment variable that holds a secret.
FROM_ENVIRONMENT = "env:"

#: Base URLs of servers on this machine that listen at their own default port.
LOCAL_SERVERS = {
    "vllm": "http://localhost:8000/v1",
    "sglang": "http://localhost:30000/v1",
    "llama.cpp": "http://localhost:8080/v1",
    "ollama": "http://localhost:11434/v1",
}

_EXAMPLE = "openai:MODEL@http://localhost:8000/v1"


@dataclass(frozen=True)
class Address:
    """The address of a model.

    Attributes:
        model: its name on the server.
        base_url: the base URL of the server's API, without a trailing slash.
    """

    model: str
    base_url: str


def parse_address(rest: str, base_url: str | None, default: str | None = None, version: str = "") -> Address:
    """Parse a model's URI after its scheme: ``MODEL@URL``, or ``MODEL`` with a separate URL.

    Args:
        rest: the URI after its scheme.
        base_url: the separate URL.
        default: URL of the provider, or of a server on this machine, if neither names one.
        version: path of the API, for a URL without a path.

    Raises:
        ModelError: it has no model or no server.
    """
    cut = max(rest.rfind("@http://"), rest.rfind("@https://"))
    model, url = (rest, None) if cut < 0 else (rest[:cut], rest[cut + 1 :])
    if url is not None and base_url is not None:
        raise ModelError("the server is named twice", hint="in the model's address, or by base_url")
    url = (url or base_url or default or "").strip().rstrip("/")
    if not model or not url:
        missing = "model" if not model else "server"
        raise ModelError(f"the address lacks the {missing}", hint=f"for example {_EXAMPLE}")
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise ModelError("the server's address is not a URL", hint=f"for example {_EXAMPLE}") from None
    if not is_http or parts.query or parts.fragment:
        raise ModelError("the server's address is not http://HOST:PORT/PATH", hint=f"for example {_EXAMPLE}")
    if parts.username is not None or parts.password is not None:
        raise ModelError("the server's address contains a password", hint="give api_key='env:NAME' instead")
    return Address(model, url if parts.path or not version else f"{url}/{version}")


def secret_of(value: Any, what: str) -> str:
    """Return a secret: a text, a wrapped one (``get_secret_value``), or ``env:NAME``.

    Raises:
        ModelError: the environment variable does not exist, or the secret is not a text; the error does not show it.
    """
    value = value.get_secret_value() if hasattr(value, "get_secret_value") else value
    if not isinstance(value, str):
        raise ModelError(f"{what} is a {type(value).__name__}, not a string", hint=f"{what}='env:NAME'")
    if value.startswith(FROM_ENVIRONMENT):
        name = value.removeprefix(FROM_ENVIRONMENT)
        if not os.environ.get(name):
            raise ModelError(
                f"{what} is to be read from the environment variable {name}, which is not set",
                hint=f"export {name}=...",
            )
        value = os.environ[name]
    text: str = value.strip()
    if not text.isprintable() or not text.isascii():
        raise ModelError(
            f"{what} contains characters that are not allowed in a header", hint="is it the whole key, on one line?"
        )
    return text


def key_in_environment(names: Sequence[str]) -> str | None:
    """Return ``env:NAME`` for the first environment variable that is set; None if there is none."""
    return next((f"{FROM_ENVIRONMENT}{name}" for name in names if os.environ.get(name)), None)


def headers_of(
    api_key: Any, headers: Mapping[str, Any] | None, key_headers: Callable[[str], Mapping[str, str]]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the headers of every request, and the secrets in them.

    Args:
        api_key: the key, or None.
        headers: additional headers.
        key_headers: returns the headers with a key, and without one (``""``).

    Raises:
        ModelError: a value is not a text that a header may have, or its environment variable does not exist.
    """
    key = "" if api_key is None else secret_of(api_key, "api_key")
    sent = {"Accept": "application/json, text/event-stream", "User-Agent": "toolgrammar", **key_headers(key)}
    hidden = [key]
    for name, value in (headers or {}).items():
        sent[str(name)] = secret_of(value, f"the header {name}")
        hidden += sent[str(name)].split()  # a server may repeat the key of "Bearer KEY" alone
    # Shorter texts, such as "1", are no secrets, and to hide them would garble error messages.
    return sent, tuple(secret for secret in hidden if len(secret) > 5)
