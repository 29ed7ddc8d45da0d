"""Policies: what may flow into which argument of which tool, for each role.

`Policy` is read from Python data or a file (`notation.py`), and compiled to keywords that tool sets have already
(`compiled.py`): ``x-seen``, ``x-copied``, lists of values and narrower schemas. So masks, checks of calls, adapters and
the server enforce it as they enforce these. `origins.py` says of a finished call where each of its values comes from.

A *rule* of an argument lists the *sources* from which its value may come; one of them suffices. A *layer* has the rules
of all tools for one role, and of several layers (``policy & other``) all hold. *Steps* are the names that lead from the
arguments of a call to a value in them; ``*`` is each item of a list, or each other member of an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolgrammar.core.faces import lazy

if TYPE_CHECKING:
    from .origins import Origin as Origin
    from .policy import Policy as Policy
    from .report import Possible as Possible, Reach as Reach
    from .schema import SCHEMA as SCHEMA

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__, {"origins": "Origin", "policy": "Policy", "report": "Possible Reach", "schema": "SCHEMA"}
    )
