"""Regular expressions of Rust and Python, as ECMA-262."""

from __future__ import annotations

import re
from typing import Literal

from ..basics.recent_memo import memoised_if_short
from ..errors import PatternError
from . import parser as ecma
from . import python as python_regex
from . import rust as rust_regex
from .printer import to_text


@memoised_if_short(256)
def to_ecma(pattern: str | re.Pattern[str], syntax: Literal["rust", "python"]) -> str:
    r"""Return a pattern of ECMA-262 (with the ``u`` flag) that matches in the same texts.

    Args:
        pattern: the pattern; a compiled one is Python's, and its flags count.
        syntax: how a text is read: as Rust's ``regex`` crate reads it, or as Python's ``re``.

    Returns:
        The pattern itself where ECMA-262 means the same by it.

    Raises:
        PatternError: it is malformed.
        UnsupportedPatternError: it is not regular, or has flags or assertions that are not read.
        LimitError: it is too large.
    """
    if isinstance(pattern, str) and syntax == "rust":
        tree = rust_regex.parse(pattern)
    else:
        tree = python_regex.parse(pattern)
    text = pattern if isinstance(pattern, str) else pattern.pattern
    try:
        if ecma.parse(text) == tree:
            return text
    except PatternError:
        pass
    return to_text(tree)
