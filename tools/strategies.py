"""Strategies of Hypothesis: texts of a grammar, and arguments of a tool, which shrink towards the shortest.

The package ``hypothesis`` is the extra ``toolgrammar[hypothesis]``.
"""

from __future__ import annotations

import json
from typing import Any

from toolgrammar.core.errors import MissingDependencyError
from toolgrammar.core.grammar import Grammar, single_bytes
from toolgrammar.core.masks import Constraint

from .closed_schema import close_objects
from .tool import Tool
from .toolset import ToolSet

try:
    from hypothesis import strategies as st
except ImportError:
    raise MissingDependencyError("Hypothesis is not installed", hint="pip install 'toolgrammar[hypothesis]'") from None

#: Length from which a text takes its shortest end, in bytes.
MAX_BYTES = 200

#: Bytes, the simplest first: Hypothesis shrinks towards the first of a list.
_SIMPLE = b"abcdefghijklmnopqrstuvwxyz0123456789"


def from_grammar(grammar: Grammar, *, max_bytes: int = MAX_BYTES) -> st.SearchStrategy[str]:
    """Return a strategy of texts of a grammar.

    At each step, one of four draws takes the next byte of the shortest text; shrinking leads to these draws.

    Args:
        grammar: of texts without control tokens.
        max_bytes: from this length on, in bytes, a text takes its shortest end.

    Raises:
        ToolGrammarError: the grammar has no text, or a limit is hit.
    """
    return _texts(grammar.bind(single_bytes()), max_bytes)


def from_tool(tool: Any, *, max_bytes: int = MAX_BYTES) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of the arguments of a tool: valid ones, as a model may write them.

    Args:
        tool: a `Tool`, or what `ToolSet.from_any` makes one of.
        max_bytes: as of `from_grammar`.

    Raises:
        SchemaError: it is no tool.
        ToolGrammarError: nothing is valid, or a limit is hit.
    """
    (one,) = (tool,) if isinstance(tool, Tool) else ToolSet.from_any([tool])
    return from_grammar(Grammar.from_json_schema(close_objects(one.parameters)), max_bytes=max_bytes).map(json.loads)


@st.composite
def _texts(draw: st.DrawFn, constraint: Constraint, max_bytes: int) -> str:
    """Draw a text: at each free byte the shortest way on or another byte, and beyond ``max_bytes`` the shortest end."""
    matcher = constraint.matcher()
    written = b""
    while not matcher.is_finished:
        piece = matcher.forced_bytes()
        if not piece:
            shortest = matcher.shortest_completion()  # empty: the text may end here
            if len(written) >= max_bytes:
                return (written + shortest).decode()
            others = [byte for byte in matcher.allowed_tokens() if byte < 256 and bytes((byte,)) != shortest[:1]]
            if not others or draw(st.integers(0, 3)) == 0:
                if not shortest:
                    return written.decode()
                piece = shortest[:1]
            else:
                others.sort(key=lambda byte: (byte not in _SIMPLE, _SIMPLE.find(byte), byte))
                piece = bytes((draw(st.sampled_from(others)),))
        matcher.accept_bytes(piece)
        written += piece
    return written.decode()
