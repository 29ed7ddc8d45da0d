"""Names and items that must not repeat: the dependent node that forbids an earlier name or string."""

from __future__ import annotations

from ..language.node_kinds import REPEATED_NAMES
from ..language.nodes import Nodes
from .written import Written


def unless_repeated(nodes: Nodes) -> int:
    """Return the dependent node that forbids the name of an object, or the string in an array, before it if it is
    repeated.

    Use it only after strings of a roomy language (`is_roomy`): each prefix has infinitely many continuations, so the
    finitely many earlier strings leave no prefix without a completion.
    """

    def check(before: Written) -> int:
        return nodes.EMPTY if before.is_repeated() else nodes.EPSILON

    return nodes.dynamic("unless repeated", nodes.EPSILON, check, REPEATED_NAMES)
