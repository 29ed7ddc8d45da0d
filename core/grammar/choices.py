"""Nodes of large choices, expanded as a text reaches them: the parts of `cases`, and what may follow the used parts of
`distinct`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ..language.nodes import Nodes


def cases_build(parts: Mapping[bytes, Any], name: Hashable) -> Callable[[Nodes], int]:
    """Return the builder of a choice of words, each followed by its own part.

    Args:
        parts: by word, in UTF-8: the grammar of its part.
        name: of the choice in a store; equal choices have equal names.
    """

    def build(nodes: Nodes) -> int:
        def case(word: bytes, part: Any) -> int:
            node: int | None = None if part._has_rules else nodes.known.get(part)
            if node is None:  # the part is built when a text has come to it
                as_empty = nodes.EPSILON if part._is_sure else None  # a part that is known to have a text is not empty
                node = nodes.lazy(("case", name, word), lambda: part._node(nodes), as_empty_as=as_empty)
            return node

        return nodes.words({word: case(word, part) for word, part in parts.items()})

    return build


def distinct_build(
    parts: Sequence[Any], separator: Any, least: int, most: int, name: Hashable
) -> Callable[[Nodes], int]:
    """Return the builder of texts with ``least`` to ``most`` of the parts, each at most once, in any order,
    ``separator`` between them.

    Args:
        parts: their grammars.
        separator: its grammar.
        least: minimum number of parts.
        most: maximum number of parts.
        name: of the choice in a store; equal choices have equal names.
    """

    def build(nodes: Nodes) -> int:
        built = [part._node(nodes) for part in parts]
        between = separator._node(nodes)

        def rest(used: frozenset[int]) -> int:
            def expand() -> int:
                """Return what may follow the parts in ``used``."""
                options = [nodes.EPSILON] if len(used) >= least else []
                lead = between if used else nodes.EPSILON
                if len(used) < most:
                    unused = [index for index in range(len(built)) if index not in used]
                    more = [nodes.seq(built[index], rest(used | {index})) for index in unused]
                    options.append(nodes.seq(lead, nodes.alt(more)))
                return nodes.alt(options)

            return nodes.lazy(("distinct", name, used), expand)

        return rest(frozenset())

    return build
