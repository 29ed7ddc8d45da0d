"""Taking JSON out of free text, for models that cannot be constrained: find it, and mend it if that was asked for."""

from __future__ import annotations

import json
from typing import Any

from .errors import MissingDependencyError, ParseError


def extract_json(text: str, *, repair: bool) -> Any:
    """The JSON value that a text holds.

    Looks for the whole text, then for a fenced block, then for the first object or array in it.

    Args:
        text: what a model wrote.
        repair: mend what does not parse, with the ``json-repair`` library.

    Raises:
        ParseError: there is no JSON in it.
        MissingDependencyError: mending is needed, and ``json-repair`` is not installed.
    """
    stripped = text.strip()
    decoder = json.JSONDecoder()
    starts = [0]
    if "```" in stripped:
        fence = stripped.index("```") + 3
        line = stripped.find("\n", fence)
        starts.append(line + 1 if line >= 0 else fence)
    starts.extend(sorted(index for index in (stripped.find("{"), stripped.find("[")) if index >= 0))
    for start in starts:
        body = stripped[start:].lstrip()
        try:
            value, end = decoder.raw_decode(body)
        except ValueError:
            continue
        if start or not body[end:].strip():
            return value
    if not repair:
        raise ParseError("the text holds no JSON value", hint="constrain the model, or allow repair")
    try:
        import json_repair
    except ImportError:
        raise MissingDependencyError(
            "broken JSON can be mended only with json-repair", hint="pip install 'toolgrammar[repair]'"
        ) from None
    value = json_repair.loads(stripped)
    if value == "" and stripped not in ('""', "''"):
        raise ParseError("the text holds no JSON value", hint="ask the model for JSON")
    return value
