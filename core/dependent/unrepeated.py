"""Names and items that must not repeat: a dependent node that forbids what was written before."""

from __future__ import annotations

from ..language.nodes import Nodes
from .written import Written


def unless_repeated(nodes: Nodes) -> int:
    """Return the node after a name of an object, or a string in an array, that forbids it if it is a repeated one.

    It is sound only after strings of a roomy language (`is_roomy`): each prefix has infinitely many continuations, so
    those that were written before leave no prefix without an end.
    """

    def check(before: Written) -> int:
        last, others = before.last_name()
        return nodes.EMPTY if last in others else nodes.EPSILON

    return nodes.dynamic("unless repeated", nodes.EPSILON, check, names_only=True)
