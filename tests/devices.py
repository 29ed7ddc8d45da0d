"""The torch device of models and masks in the tests: ``TOOLGRAMMAR_TEST_DEVICE=cuda`` runs them there (``nox -s cuda``)."""

from __future__ import annotations

import os

DEVICE = os.environ.get("TOOLGRAMMAR_TEST_DEVICE", "cpu")
