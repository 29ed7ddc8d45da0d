"""Members of the objects of a structural tag, each read as its type, and its free text; with errors at their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NoReturn

from ..errors import GrammarError, Place, ToolGrammarError, UnsupportedSchemaError
from ..json import escape
from .dispatch import dispatch
from .expressions import Control, Expression, Literal, sequence


@dataclass(frozen=True)
class Inside:
    """The place of a format.

    Attributes:
        pointer: JSON pointer of the format.
        ends: the texts that end the innermost tag around it.
        depth: the number of formats around it.
    """

    pointer: str = ""
    ends: tuple[str, ...] = ()
    depth: int = 0

    def at(self, *keys: str | int) -> Inside:
        """Return the place of a part of the format."""
        pointer = self.pointer + "".join(f"/{escape(str(key))}" for key in keys)
        return replace(self, pointer=pointer)

    def fail(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise an error at this location."""
        raise GrammarError(message, hint=hint, place=Place(pointer=self.pointer))


@dataclass(frozen=True)
class Members:
    """The members of an object.

    Attributes:
        values: their values, by name.
        place: the location of the object.
    """

    values: Mapping[str, Any]
    place: Inside

    @classmethod
    def of(cls, value: Any, place: Inside, required: Iterable[str], more: Iterable[str] = ()) -> Members:
        """Return an object, checked: it has all ``required`` members, and no others than these and ``more``."""
        if not isinstance(value, Mapping):
            place.fail(f"expected an object, not {type(value).__name__}")
        for name in required:
            if name not in value:
                place.fail(f"the member {name!r} is missing")
        for name in value:
            if name not in required and name not in more:
                known = ", ".join([*required, *more])
                place.at(name).fail(f"the member {name!r} is not known", hint=f"known here: {known}")
        return cls(value, place)

    def get(self, name: str) -> tuple[Any, Inside]:
        """Return a value (None: there is none) and its location."""
        return self.values.get(name), self.place.at(name)

    def items(self, name: str) -> Iterator[tuple[Any, Inside]]:
        """Yield the items of an array with at least one, each with its location."""
        return items_of(*self.get(name))

    def text(self, name: str) -> str:
        """Return a string."""
        return text_of(*self.get(name))

    def texts(self, name: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """Return an array of strings that are not empty."""
        value, place = self.get(name)
        if may_be_empty and value in (None, [], ()):
            return ()
        texts = tuple(text_of(text, inner) for text, inner in items_of(value, place))
        if "" in texts:
            place.at(texts.index("")).fail("the string is empty")
        return texts

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return true or false."""
        value = self.values.get(name, default)
        if not isinstance(value, bool):
            self.place.at(name).fail("expected true or false")
        return value

    def count(self, name: str) -> int | None:
        """Return a bound; None if there is none."""
        value, place = self.get(name)
        if value is None:
            return None
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number and 0 <= value < inf and value == int(value)):
            place.fail("expected an integer that is not negative, or null")
        return int(value)


def items_of(value: Any, place: Inside) -> Iterator[tuple[Any, Inside]]:
    """Return the items of an array with at least one, each with its location."""
    if not isinstance(value, (list, tuple)) or not value:
        place.fail("expected an array with at least one item")
    return ((item, place.at(number)) for number, item in enumerate(value))


def text_of(value: Any, place: Inside) -> str:
    """Return a string."""
    if not isinstance(value, str):
        place.fail(f"expected a string, not {type(value).__name__}")
    return value


def relocated(error: ToolGrammarError, pointer: str) -> ToolGrammarError:
    """Return an error about a schema as one about the document that contains it."""
    place = replace(error.place, pointer=pointer + (error.place.pointer or ""))
    more = {"left_out": error.left_out} if isinstance(error, UnsupportedSchemaError) else {}
    return type(error)(error.message, hint=error.hint, place=place, **more)


def tagged_text(
    rules: Sequence[tuple[Control | Literal, Expression]],
    words: Sequence[str],
    place: Inside,
    whole: Expression,
    *,
    at_least_one: bool,
    once: bool,
) -> Expression:
    """Return the free text of a structural tag in which triggers are followed by their parts, or tags alone.

    Args:
        rules: pairs of a trigger and the part after it.
        words: what free text does not contain.
        place: where errors are reported.
        whole: one tag, without text before it.
        at_least_one: begin with a tag.
        once: nothing follows the first tag.

    Raises:
        GrammarError: see `dispatch`; with the place.
    """
    if at_least_one and once:
        return whole
    try:
        text = dispatch(rules, words, loop=not once)
    except GrammarError as error:
        place.fail(error.message, hint=error.hint)
    return sequence(whole, text) if at_least_one else text
