"""JSON pointers (RFC 6901), and the local references of JSON Schema, which are pointers in a URI fragment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote


def escape(step: object) -> str:
    """Return a name or an index as one reference token of a pointer."""
    return str(step).replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """Return the name that a reference token stands for."""
    return token.replace("~1", "/").replace("~0", "~")


def to_pointer(steps: Iterable[object]) -> str:
    """Return the pointer of a path of names and indices; of an empty path ``""``, the whole document."""
    return "".join("/" + escape(step) for step in steps)


def reference_steps(reference: str) -> list[str]:
    """Return the path of names and indices of a local reference (``#``, ``#/$defs/name``).

    Raises:
        LookupError: the reference is neither ``#`` nor begins with ``#/``.
    """
    if reference == "#":
        return []
    if not reference.startswith("#/"):
        raise LookupError(f"{reference!r} is not a JSON pointer into the document")
    is_plain = "%" not in reference and "~" not in reference
    return [token if is_plain else unescape(unquote(token)) for token in reference[2:].split("/")]


def step_into(value: Any, step: str) -> Any:
    """Return the member or item of a value for one step of a path.

    Raises:
        LookupError: there is no such member or item.
    """
    if isinstance(value, Mapping):
        return value[step]
    if isinstance(value, (list, tuple)) and step.isascii() and step.isdigit():
        return value[int(step)]
    raise LookupError(f"there is nothing at {step!r}")


def resolve_local(document: Any, reference: str) -> Any:
    """Return the part of a document to which a local reference (``#``, ``#/$defs/name``) refers.

    Raises:
        LookupError: the reference leaves the document, or cannot be resolved in it.
    """
    target = document
    for step in reference_steps(reference):
        target = step_into(target, step)
    return target
