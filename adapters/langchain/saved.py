"""Saving of models by LangChain's ``dumps``, and loading by ``load``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .. import _shared

try:
    from langchain_core.load.serializable import Serializable
except ImportError as error:
    raise _shared.missing("langchain-core", "langchain") from error


class Saved(Serializable):
    """A model of LangChain that is saved by the address of its local model and the options for loading it."""

    if TYPE_CHECKING:
        options: dict[str, Any]
        loaded: Any

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Return the package by which saved models are found again, not the module inside of it."""
        return ["toolgrammar", "adapters", "langchain"]

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: objects whose model has an address can be saved and loaded; see `to_json` for the others."""
        return True

    def to_json(self) -> Any:
        """Return the object for LangChain's ``dumps``: its arguments, or a note that it cannot be saved.

        A model made from a loaded one cannot be saved: it has no address.
        """
        try:
            json.dumps(self.options)
        except TypeError:  # a dtype, say
            return self.to_json_not_implemented()
        return super().to_json() if self.loaded.uri is not None else self.to_json_not_implemented()
