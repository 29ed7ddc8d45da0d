"""Live values in the kernel: marks in a schema, the answers to them, and what an automaton asks for.

The keyword ``x-values`` of a JSON Schema names a source of values. The language of its member is a dependent node
before the member's name: its static language is that of the rest of the schema, and after a text it is that of the
values that the source gives for the members that the text has. The text of a grammar has no sources: each matcher has a
`LiveAnswers`, which asks (see `core/live`) and keeps what was answered, so each question of one answer is asked once.

A source may take long and may use this library, so it is not asked under the lock of a store: a dependent node raises
`Unasked`, and the matcher asks and tries again. A shortest completion never asks, because its members are not written;
it keeps room for a value of `Mark.longest` bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import LimitError, LiveValuesError, Place

#: The keyword of a JSON Schema.
KEYWORD = "x-values"

#: Default length in bytes for which a budget keeps room.
LONGEST = 64


@dataclass(frozen=True)
class Mark:
    """The value of ``x-values`` in one place.

    Attributes:
        source: the name of the `Values`.
        after: the names that it reads.
        longest: see `Values`.
        member: the name of the member.
        given: those of ``after`` that are no members, so that the program gives them (`given`).
    """

    source: str
    after: tuple[str, ...]
    longest: int
    member: str
    given: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Any, member: str, before: Sequence[str]) -> Mark:
        """Return the mark that a well-formed value of the keyword describes; ``before`` are the names that stand before
        the member."""
        if isinstance(value, str):
            value = {"source": value}
        after = value.get("after")
        names = tuple(before if after is None else after)
        return cls(value["source"], names, value.get("longest", LONGEST), member, tuple(value.get("given", ())))

    def read(self, objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the values of the names that it reads in the open objects, innermost first: the nearest of each."""
        found: dict[str, Any] = {}
        for written in objects:
            for name in self.after:
                if name in written:
                    found.setdefault(name, written[name])
        return found


@dataclass(frozen=True, eq=False)
class Answer:
    """What a callable answered.

    Attributes:
        schema: the JSON Schema of the values: an ``enum``, or what the callable returned; None: there is no value.
        text: the schema as JSON text, by which equal answers have the same nodes; empty: there is none.
        error: the failure; None: it did not fail.
        is_list: it returned a list of values.
        tool: the tool of the call; None: there is none.
    """

    schema: dict[str, Any] | None = None
    text: str = ""
    error: LiveValuesError | None = None
    is_list: bool = True
    tool: str | None = None


class LiveAnswers(Protocol):
    """The answers for one text, as the kernel sees them.

    Attributes:
        missing: the error for the last member without a value, in case nothing else can follow a text.
    """

    missing: LiveValuesError | None

    def known(self, mark: Mark, text: bytes, is_plan: bool) -> Answer | None:
        """Return the answer for a text; None if it is a completion's (``is_plan``) and not known.

        Raises:
            Unasked: it is not known.
        """

    def warn(self, mark: Mark, answers: Sequence[Answer]) -> None:
        """Log, once, that an optional member cannot be written although callables give values."""

    def answer(self, mark: Mark, text: bytes, controls: Sequence[str]) -> None:
        """Ask for the values after a text, and memoise them. Called without the lock of a store."""


class Unasked(LimitError):
    """A dependent node needs values that were not asked for yet. Raised and caught within the library.

    Args:
        live: whose values they are.
        mark: their `Mark`.
        text: the text before them.
    """

    def __init__(self, live: LiveAnswers, mark: Mark, text: bytes) -> None:
        super().__init__("the values of a parameter are not known yet")
        self.live = live
        self.mark = mark
        self.text = text

    def answer(self, controls: Sequence[str]) -> None:
        """Ask, and memoise the answer.

        Args:
            controls: the names of the control tokens of the text.
        """
        self.live.answer(self.mark, self.text, controls)


def no_values(mark: Mark, answers: Sequence[Answer]) -> LiveValuesError:
    """Return the error for a required member without any value.

    Args:
        mark: its mark, or the first one.
        answers: what its callables answered.
    """
    place = Place(tool=answers[0].tool, parameter=mark.member)
    listed = [answer.schema["enum"] for answer in answers if answer.is_list and answer.schema is not None]
    if listed and len(listed) == len(answers):
        shown = json.dumps(listed[0][0], ensure_ascii=False)[:100]
        return LiveValuesError(
            f"the callable gives {sum(map(len, listed))} values, and none is one that the schema allows; the first "
            f"is {shown}",
            hint="let it return values of the parameter's type (Values on the items of a list are those of one item)",
            place=place,
        )
    return LiveValuesError(
        "there is no value for a required parameter",
        hint="make the parameter optional, or offer the tool only while there are values",
        place=place,
    )


def unbound(mark: Mark) -> LiveValuesError:
    """Return the error for a text whose matcher has no callables."""
    return LiveValuesError(
        f"nothing gives the values of {mark.source!r}",
        hint="give its callable: constraint.matcher(values=LiveValues({name: callable}))",
        place=Place(parameter=mark.member),
    )
