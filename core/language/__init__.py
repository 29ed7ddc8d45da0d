"""Languages as hash-consed values: regular languages of decoded text, and grammars of written text.

`Terms` holds regular languages over Unicode code points with intersection and complement; `Nodes` holds lazily
expanded grammars over bytes whose leaves are literals and terms. Both are stores: a language is a small integer in
its store, so a state is an integer, equality is identity, and everything is memoised.

Use this package to write a new kind of grammar; to constrain a model, use `toolgrammar.core.Grammar`. It does not know
tokens or vocabularies: those begin in ``toolgrammar.core.masks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from ..unicode.charset import CharSet as CharSet
    from .nodes import Head as Head, Nodes as Nodes
    from .terms import Terms as Terms

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            ".unicode.charset": "CharSet",
            "nodes": "Head Nodes",
            "terms": "Terms",
        },
    )
