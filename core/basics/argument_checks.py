"""Checks of the arguments of the makers of `Grammar`: a wrong value raises an error that names it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import GrammarError


def checked_text(value: Any, what: str) -> str:
    """Return a text; ``what`` names it in the error.

    Raises:
        GrammarError: it is not a string, or contains a lone surrogate.
    """
    if not isinstance(value, str):
        raise GrammarError(f"{what} is {value!r}, not a text", hint="pass a str")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise GrammarError(f"{what} contains a lone surrogate: {value!r}", hint="pass text that UTF-8 can encode")
    return value


def checked_names(names: Any, what: str) -> list[str]:
    """Return distinct names; ``what`` names them in the error.

    Raises:
        GrammarError: they are not a list of strings, empty, or not distinct.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise GrammarError(f"{what} are {names!r}", hint="pass a list of names")
    made: list[str] = []
    for name in names:
        if checked_text(name, f"one of {what}") in made:
            raise GrammarError(f"{what} contain {name!r} twice", hint="leave one out")
        made.append(name)
    if not made:
        raise GrammarError(f"{what} are empty", hint="name at least one")
    return made


def checked_bounds(least: Any, most: Any, what: str) -> tuple[int, int | None]:
    """Return the bounds of a count; None: no upper bound.

    Raises:
        GrammarError: they are not integers from 0, or ``least`` exceeds ``most``.
    """
    for bound in (least,) if most is None else (least, most):
        if isinstance(bound, bool) or not isinstance(bound, int):
            raise GrammarError(f"a bound of {what} is {bound!r}", hint="pass whole numbers")
    if least < 0 or (most is not None and most < least):
        raise GrammarError(f"{what}: between {least} and {most} is impossible", hint="0 <= min <= max")
    return least, most


def checked_words(texts: Any) -> tuple[str, ...]:
    """Return the words of the argument ``excluding``.

    Raises:
        GrammarError: it is not a list of strings, or one of them is empty.
    """
    if isinstance(texts, str):
        raise GrammarError("excluding must be a list of strings, not a string", hint=f"pass excluding=[{texts!r}]")
    if not isinstance(texts, Sequence):
        raise GrammarError(f"excluding is {texts!r}", hint="pass a list of strings")
    if "" in texts:
        raise GrammarError("excluding contains the empty string, which is in every text", hint="leave it out")
    return tuple(checked_text(text, "a string of excluding") for text in texts)


def alternatives(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the parts of a choice, passed as arguments or as one list.

    Raises:
        GrammarError: there are none.
    """
    if len(parts) == 1 and isinstance(parts[0], Iterable) and not isinstance(parts[0], (str, bytes)):
        parts = tuple(parts[0])
    if not parts:
        raise GrammarError("choice() needs at least one alternative", hint="pass the alternatives as arguments")
    return parts


def plain_text(text: object) -> str:
    """Return a string as an exact `str`: it may be an instance of a subclass."""
    return text if type(text) is str else str.__str__(text)
