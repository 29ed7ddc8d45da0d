"""The command line, as ``python -m toolgrammar``."""

from __future__ import annotations

from toolgrammar.adapters.cli import main

main()
