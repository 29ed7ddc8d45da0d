"""Two independent validators of JSON Schema, by their libraries: a verdict counts where both give it."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core.validation import Validator

#: The dialect of a schema that names none.
NEWEST = "https://json-schema.org/draft/2020-12/schema"


class Judges:
    """The library ``jsonschema``, with patterns of ECMA-262 and exact decimals, and the library ``jsonschema-rs``.

    Args:
        schema: in the dialect that its ``$schema`` names; nothing outside of it is read.
        formats: ``format`` is an assertion.
    """

    def __init__(self, schema: Any, *, formats: bool = False) -> None:
        jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="jsonschema-rs is not installed (the extra dev)")
        self._first = Validator(schema, formats=formats)
        try:
            self._second: Any = jsonschema_rs.validator_for(
                schema if not isinstance(schema, dict) or "$schema" in schema else {"$schema": NEWEST, **schema},
                validate_formats=formats,
                offline=True,
            )
        except Exception:
            self._second = None

    def verdict(self, value: Any) -> bool | None:
        """Return True if a value is valid, False if it is not; None: the two differ, or one of them cannot tell."""
        if self._second is None:
            return None
        try:
            second = bool(self._second.is_valid(value))
            first = self._first.is_valid(value)
        except Exception:
            return None
        except BaseException as error:  # a recursion within a library of Rust, which is no Exception
            if type(error).__name__ != "PanicException":
                raise
            return None
        return first if first == second else None
