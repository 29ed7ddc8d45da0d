"""Zero-width marks of reading grammars: the places of calls, names and values.

A reading grammar is made by the same builders as the grammar from which a text was written, with marks in it, so that
`toolgrammar.core.reading` can say where it is in the text. A mark is a dependent node (`node_kinds`): an automaton
stops there by itself. Grammars from which texts are written have no marks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .node_kinds import EPSILON, RESERVED

if TYPE_CHECKING:
    from .nodes import Nodes

#: Kinds of marks. TOOL: after the name of a tool. OPENED: before the name of a member that the schema does not declare;
#: NAMED: after a name. VALUE: before a value; ENTERED, CLOSED: after the brackets of an object or array (or where one
#: without brackets begins). ENDED: after the markup that ends a value. DONE: after the arguments of a call, and the
#: markup that follows them.
TOOL, OPENED, NAMED, VALUE, ENTERED, CLOSED, ENDED, DONE = range(8)

#: Forms of values. BARE: the value ends where the next mark is, separators aside, or with its bracket. TAGGED: it ends
#: at ENDED or DONE. RAW: as TAGGED, and it is a string without quotes and escapes.
BARE, TAGGED, RAW = range(3)


@dataclass(frozen=True)
class ReadingMark:
    """A mark.

    Attributes:
        kind: what is there.
        name: of the tool or member; empty: of a member as it is written from the mark OPENED on. ENTERED: the opening
            bracket in JSON.
        size: number of bytes (a control token is one) from the beginning of the name, or of the markup that ends the
            value, up to the mark.
        ending: number of bytes after a name up to the mark.
        form: of the value.
        syntax: the `ValueSyntax` of the values in this one, if it is not JSON's or that of the value around it.
    """

    kind: int
    name: str = ""
    size: int = 0
    ending: int = 0
    form: int = BARE
    syntax: Any = None

    @classmethod
    def of_tool(cls, name: str, size: int, ending: int = 0) -> ReadingMark:
        """Return the mark after the name of a tool."""
        return cls(TOOL, name, size, ending)

    @classmethod
    def of_end(cls, size: int) -> ReadingMark:
        """Return the mark after the arguments of a call, and so many bytes of markup behind them."""
        return cls(DONE, size=size)

    @classmethod
    def of_argument(cls, name: str) -> tuple[ReadingMark, ...]:
        """Return the marks before the only argument of a call: raw text, whose name is not written."""
        return cls(VALUE, form=TAGGED), cls(NAMED, name, 1, 1), cls(VALUE, form=RAW)

    @property
    def order(self) -> tuple[Any, ...]:
        """Its place among other marks."""
        return self.kind, self.form, self.syntax is None, self.name, self.size, self.ending

    def node(self, nodes: Nodes) -> int:
        """Return its node. The static language is one that no text has."""
        return nodes.dynamic(("reading mark", self), nodes.special(RESERVED), self)

    def __call__(self, before: object) -> int:
        """Return the empty text, for which it stands in any text."""
        return EPSILON
