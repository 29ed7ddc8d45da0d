"""Whether the hub of Hugging Face can be reached: its own library tries for minutes before it says so."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from ...errors import ModelError

#: Seconds in which the hub must take a connection.
SECONDS = 10.0


def is_offline(name: str, revision: str | None = None) -> bool:
    """Return True if a model is on this machine and the hub cannot be reached.

    Args:
        name: as transformers takes it: a folder, or a name on the hub.
        revision: the revision on the hub.

    Raises:
        ModelError: the hub cannot be reached, and the model is not on this machine.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    if Path(name).exists() or constants.HF_HUB_OFFLINE or getproxies():  # behind a proxy, only the library can tell
        return False
    address = urlsplit(os.environ.get("HF_ENDPOINT") or constants.ENDPOINT)
    host, port = address.hostname or "", address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((host, port), SECONDS).close()
    except OSError as error:
        if isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str):
            return True
        raise ModelError(
            f"{name!r} is not on this machine, and {host} cannot be reached: {error.strerror or error}",
            hint="connect to the network, or give the folder of a model: hf:PATH",
        ) from None
    return False
