"""The Jinja of chat templates, compiled once; Jinja itself is imported when the first template is.

The dialect is that of ``apply_chat_template`` in transformers: trimmed blocks, loop controls, a ``tojson`` without HTML
escapes, ``raise_exception``, ``strftime_now`` and the ``generation`` block.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..errors import ModelError


@lru_cache(maxsize=256)
def compile_template(source: str) -> Any:
    """Return a compiled template; its ``render`` may raise any exception.

    Raises:
        ModelError: the template has a syntax error.
    """
    from jinja2 import TemplateError

    from .sandbox import ENVIRONMENT

    try:
        return ENVIRONMENT.compiled(source)
    except (TemplateError, RecursionError) as error:
        raise ModelError(f"the model's chat template is broken: {error}", hint="use another conversion") from error
