"""Protocols between the lowering of a document and that of its objects, arrays and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from ...errors import LimitError, Place, SchemaError
from ...language.nodes import Nodes
from ...text_grammars.strings import StringGrammar
from ..normal.conjunction import Conjunction, Formula, Goal
from ..read.located import Located
from ..read.options import SchemaOptions
from ..scalars.value_syntax import ValueSyntax


class Supply(NamedTuple):
    """The values of a goal, as keys (see `value_key`), if they are few.

    Attributes:
        values: all of them, if ``is_complete``.
        is_complete: all values are known, and fewer than the number that was asked about.
        is_ample: there are at least that number. Neither: it is not known.
    """

    values: tuple[str, ...]
    is_complete: bool
    is_ample: bool


_Error = TypeVar("_Error", bound=LimitError | SchemaError)


def placed(error: _Error, located: Located | None) -> _Error:
    """Return an error at the place of a schema, if it has none of its own."""
    if located is None or error.place.pointer is not None:
        return error
    place = Place(pointer=located.pointer, keyword=error.place.keyword)
    return type(error)(error.message, hint=error.hint, place=place)


class GoalNodes(Protocol):
    """The lowering of one document: how JSON is written, and the nodes and the truth of goals.

    Attributes:
        nodes: the store that the document is lowered into.
        options: how the schema is read and written.
        number: part of the name of every rule: several documents may be lowered into one store.
        flexible: whitespace between tokens is left open.
        space: the whitespace between two tokens, if that is left open; else nothing.
        comma: the text between two items or members.
        fixed_colon: the text between a name and its value, where whitespace is not left open.
        syntax: how values are written; None: as JSON.
        here: the schema whose values are expanded now, for the place of an error; None: it is not known.
        is_live: the document has live values.
        is_marked: the document is for reading.
        knows_lists: all keywords of the document are enforced, and ``const`` and ``enum`` are among them.
    """

    nodes: Nodes
    options: SchemaOptions
    number: int
    flexible: bool
    space: int
    comma: bytes
    fixed_colon: bytes
    syntax: ValueSyntax | None
    here: Located | None
    is_live: bool
    is_marked: bool
    knows_lists: bool

    # -- goals ------------------------------------------------------------------------------------------------

    def is_false(self, goal: Goal) -> bool:
        """Return True if a goal obviously holds for no value."""

    def is_inhabited(self, goal: Goal) -> bool:
        """Return True if a goal surely holds for a value that can be written; False: it is not known."""

    def branches(self, goal: Goal) -> list[Conjunction]:
        """Return the alternatives of a goal."""

    def allowed(self, branch: Conjunction) -> list[Any]:
        """Return the values that an alternative lists and that satisfy the rest of it."""

    def holds(self, branch: Conjunction, value: Any) -> bool:
        """Return True if a decoded value satisfies a conjunction, its list of values aside."""

    def goal_holds(self, goal: Goal, value: Any) -> bool:
        """Return True if a decoded value satisfies a goal."""

    def supply(self, goal: Goal, most: int) -> Supply:
        """Return the values of a goal, if they are fewer than ``most``."""

    def meaning(self, formula: Formula) -> object:
        """Return a key that is equal for formulas that are known to be equivalent."""

    def are_apart(self, lefts: Goal, rights: Goal) -> bool:
        """Return True if facts show that no value satisfies two goals (False: perhaps some does)."""

    def constant(self, value: Any) -> Formula:
        """Return the formula of one value."""

    def problem(self, schema: Any) -> LimitError | SchemaError | None:
        """Return the first reason why a schema that is not a part of the document cannot be enforced."""

    def marked(self, kind: int, **fields: Any) -> int:
        """Return a `ReadingMark`; EPSILON if the document is not for reading."""

    # -- nodes ------------------------------------------------------------------------------------------------

    def value(self, goal: Goal) -> int:
        """Return the texts of a goal."""

    def subschema(self, located: Located) -> int:
        """Return the texts of a subschema."""

    def branch(self, branch: Conjunction) -> int:
        """Return the texts of one alternative."""

    def without(self, goal: Goal, excluded: frozenset[str], types: frozenset[str] = frozenset()) -> int:
        """Return the texts of a goal, but for some values (by their keys), and for all values of some JSON types."""

    def distinct_objects(self, goal: Goal) -> int | None:
        """Return the objects of a goal, as items of an array, without those that are equal to an item before; None if
        that is not possible without a state for each list of items (see `DistinctObjects`)."""

    def filter_values(self, goal: Goal, choices: Iterable[tuple[str, int]]) -> int:
        """Return the texts of the values that satisfy a goal, each with its continuation.

        Args:
            goal: the goal.
            choices: pairs of a value key and the node that follows the value.
        """

    def listed(self, values: list[Any], *, integers: bool = False) -> int:
        """Return the texts of some values (``integers``: numbers among them were asked to be integers)."""

    def keys(self, name: str) -> tuple[bytes, ...]:
        """Return the ways to write a property name, without its colon."""

    def string(self, term: int) -> int:
        """Return the texts of the strings of a term."""

    def is_nearly_any(self, goal: Goal) -> bool:
        """Return True if a goal holds for all but finitely many strings; False: not known."""

    def is_endless(self, goal: Goal) -> bool:
        """Return True if infinitely many numbers or objects surely satisfy a goal; False: not known. For items of
        ``uniqueItems``, which then never run out (strings are judged by `is_nearly_any`)."""

    def string_parts(self, branch: Conjunction) -> tuple[StringGrammar | None, int]:
        """Return the strings of an alternative: those of a term that are of a grammar too; None: there is no
        grammar."""

    def has_other_types(self, goal: Goal, types: frozenset[str]) -> bool:
        """Return True if a goal may have values of other JSON types than these."""

    # -- terms ------------------------------------------------------------------------------------------------

    def strings(self, goal: Goal) -> int:
        """Return the strings (decoded) of a goal."""

    def string_term(self, branch: Conjunction) -> int:
        """Return the strings (decoded) of an alternative."""

    def scalar_term(self, branch: Conjunction, kind: str) -> int:
        """Return the strings (decoded) or the numbers of an alternative."""


class MemberSyntax(Protocol):
    """Syntax of the members of an object, where it is not JSON's.

    Attributes:
        separator: the node between two members.
        before_name: the node before a name.
        ends_values: a value has an end of its own, so that what follows does not show that it is whole.
    """

    separator: int
    before_name: int
    ends_values: bool

    def keys(self, name: str) -> tuple[bytes, ...]:
        """Return the texts of a name; none if it cannot be written."""

    def name(self, names: int) -> int:
        """Return the texts of the names that are in a term."""

    def value(self, name: str | None, goal: Goal) -> int:
        """Return the rest of a member after its name: the value, with its markup."""
