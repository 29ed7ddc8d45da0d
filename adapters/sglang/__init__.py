"""A grammar backend for SGLang: exact masks in its engine, for schemas, regular expressions, EBNF and structural tags.

Installed beside SGLang, the package registers itself through the entry point ``sglang.srt.plugins``; start the server
with ``--grammar-backend toolgrammar``. SGLang has no promise for backends outside of its tree, so the version is
checked.
"""

from __future__ import annotations

from .plugin import NAME, SUPPORTED, register

__all__ = ["NAME", "SUPPORTED", "register"]
