"""Check of names and items that must not repeat: the place after one that forbids it if it was written before."""

from __future__ import annotations

from ..language.node_kinds import AFTER_NAME
from ..language.nodes import Nodes
from .written import Written


def unless_repeated(nodes: Nodes) -> int:
    """Return the place after a name of an object, or a string in an array, that forbids it if it is a repeated one.

    It is sound only where every prefix of the string is one of infinitely many strings (`is_roomy`): then those that
    were written before leave no prefix without an end.
    """

    def check(before: Written) -> int:
        last, others = before.last_name()
        return nodes.EMPTY if last in others else nodes.EPSILON

    return nodes.dynamic("unless repeated", nodes.EPSILON, check, AFTER_NAME)
