"""Automata and masks: which tokens may come next.

`Program` derives a grammar's automaton lazily; `Constraint` binds it to a vocabulary; `Matcher` follows one text.
The hot part is ``kernel.py``, compiled by Cython where a compiler was there at install time (`COMPILED` says so).

Use `toolgrammar.core.Grammar.bind` to get here. This layer does not know schemas or tools.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from pathlib import Path

if os.environ.get("TOOLGRAMMAR_INTERPRETED", "") not in ("", "0"):
    # Force the interpreted modules, although compiled ones lie beside them and would be found first.
    for _name in ("rowtable", "kernel"):
        _spec = importlib.util.spec_from_file_location(f"{__name__}.{_name}", Path(__file__).with_name(f"{_name}.py"))
        assert _spec is not None and _spec.loader is not None
        _module = importlib.util.module_from_spec(_spec)
        sys.modules[_spec.name] = _module
        _spec.loader.exec_module(_module)

from .batch import MaskTable, apply_mask, fill_masks
from .kernel import COMPILED
from .matcher import Constraint, Matcher
from .program import Program

if not COMPILED:
    logging.getLogger("toolgrammar").warning(
        "the mask kernel runs interpreted, about a hundred times slower; install with a C compiler to compile it"
    )

__all__ = ["COMPILED", "Constraint", "MaskTable", "Matcher", "Program", "apply_mask", "fill_masks"]
