"""Where the functions of ``llama.h`` come from, and what is said where they cannot be had."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from toolgrammar.core import MissingDependencyError, ModelError
from toolgrammar.core.models.llama_cpp import library

pytestmark = pytest.mark.llama_cpp


def test_neither_package_is_an_error_that_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without llama-cpp-python and xllamacpp, the error says how to get one."""
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setattr(library, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="pip install xllamacpp"):
        library.llama_library()


def test_a_library_with_other_parameters_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is passed to a llama.cpp whose parameters do not lie where they are expected."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setattr(library, "CONTEXT_DEFAULTS", {**library.CONTEXT_DEFAULTS, "n_batch": 1})
    with pytest.raises(ModelError, match="not known here"):
        library.llama_library()
