"""The checks of keyword values by their shape, for rows that have no check of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

from ...errors import LimitError, Place, UnsupportedSchemaError
from ...json.values import TYPES
from ..read.located import Located
from .row import Check, Shape
from .values import MAX_DEPTH, MAX_INTEGER, is_json, is_small, pattern_problem, type_hint

#: Maximum number of arrays and objects in an ``enum``, where they may be written in several ways.
MAX_LOOSE = 1_000

#: Bytes of a listed value: in the schema, and as the text that is written (measured); strings have their characters.
VALUE_BYTES = 160

_TYPES = frozenset((*TYPES, "integer", "any"))


#: Names of the JSON types of Python's types, for errors.
_JSON_TYPES = (
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    (Mapping, "an object"),
    ((list, tuple), "an array"),
    (type(None), "null"),
)


def misfit(check: Check, located: Located, keyword: str, value: Any, wanted: str, hint: str | None = None) -> None:
    """Note a value of a type that the keyword never has; ``wanted`` says which type it has."""
    check.invalid(located, keyword, f"{keyword} must be {wanted}, not {json_name(value)}", hint)


def json_name(value: Any) -> str:
    """Return the JSON type of a value with its article, or the name of its Python type if it has none."""
    return next((name for types, name in _JSON_TYPES if isinstance(value, types)), type(value).__name__)


def are_names(values: Iterable[object]) -> bool:
    """Return True if all values are strings."""
    return all(isinstance(value, str) for value in values)


# -- schemas ---------------------------------------------------------------------------------------------------


def _is_one_of(types: tuple[type, ...], wanted: str) -> Callable[[Check, Located, str, Any], None]:
    """Return the check of values of some Python types."""

    def checked(check: Check, located: Located, keyword: str, value: Any) -> None:
        if not isinstance(value, types):
            misfit(check, located, keyword, value, wanted)

    return checked


def _alternatives(check: Check, located: Located, keyword: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        misfit(check, located, keyword, value, "an array of schemas")
    elif not value:
        check.invalid(located, keyword, f"{keyword} must not be empty")


def _by_name(check: Check, located: Located, keyword: str, value: Any) -> None:
    if not isinstance(value, (dict, Mapping)):
        misfit(check, located, keyword, value, "an object of schemas")
    elif not are_names(value):
        check.invalid(located, keyword, "property names must be strings")


def _by_pattern(check: Check, located: Located, keyword: str, value: Any) -> None:
    _by_name(check, located, keyword, value)
    if isinstance(value, (dict, Mapping)) and are_names(value):
        for pattern in value:
            _match(check, located, keyword, pattern)


def _dependencies(check: Check, located: Located, keyword: str, value: Any) -> None:
    if not isinstance(value, (dict, Mapping)):
        misfit(check, located, keyword, value, "an object")
        return
    for needed in value.values():
        is_valid = are_names(needed) if isinstance(needed, (list, tuple)) else isinstance(needed, _DEPENDENCY)
        if not is_valid:
            check.invalid(located, keyword, f"{keyword} must list property names")


#: Types of a dependency other than a list of names; Draft 3 had single names.
_DEPENDENCY = (dict, Mapping, bool, str)


def _requirements(check: Check, located: Located, keyword: str, value: Any) -> None:
    if not isinstance(value, (dict, Mapping)):
        misfit(check, located, keyword, value, "an object of arrays of names")
        return
    for names in value.values():
        if not isinstance(names, (list, tuple)) or not are_names(names):
            check.invalid(located, keyword, f"{keyword} must list property names")


# -- other values ----------------------------------------------------------------------------------------------


def _type(check: Check, located: Located, keyword: str, value: Any) -> None:
    names = (value,) if type(value) is str else value
    if not isinstance(names, (list, tuple)):
        misfit(check, located, keyword, value, "the name of a type, or an array of names")
        return
    for name in names:
        if type(name) is not str or name not in _TYPES:
            check.invalid(located, keyword, f"{name!r} is not a JSON type", type_hint(name))


def _names(check: Check, located: Located, keyword: str, value: Any) -> None:
    """Check ``required``: an array of names. (The hint is for Draft 3's booleans.)"""
    if not isinstance(value, (list, tuple)):
        misfit(
            check,
            located,
            keyword,
            value,
            "an array of names",
            "list the required members in the schema of their object",
        )
    elif not are_names(value):
        check.invalid(located, keyword, f"{keyword} must list property names")
    else:
        check.entries += len(value)


def _value(check: Check, located: Located, keyword: str, value: Any) -> None:
    _listed(check, located, keyword, (value,))


def _values(check: Check, located: Located, keyword: str, value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        misfit(check, located, keyword, value, "an array")
        return
    check.entries += len(value)
    check.values += len(value)
    check.value_bytes += VALUE_BYTES * len(value) + 2 * sum(len(each) for each in value if type(each) is str)
    _listed(check, located, keyword, value)


def _listed(check: Check, located: Located, keyword: str, values: Iterable[Any]) -> None:
    """Report the listed values that cannot be enforced: no JSON value, too deep, or too many arrays and objects that
    may be written in any order or spacing."""
    compounds = 0
    for item in values:
        if type(item) is str or item is None or type(item) is bool:
            continue
        compounds += isinstance(item, (dict, list, tuple))
        if not is_json(item):
            check.invalid(located, keyword, f"{keyword} holds something that is not a JSON value")
            return
        if not is_small(item):
            message = f"{keyword} holds a value more than {MAX_DEPTH} deep, or an integer of more than 600 digits"
            check.beyond(located, keyword, message, "describe it with properties and items, or use a smaller number")
            return
    if compounds > MAX_LOOSE and check.respells:
        message = f"{keyword} lists {compounds:,} arrays and objects, at most {MAX_LOOSE:,} can be written in any"
        hint = 'list fewer, or write them as they are listed: property_order="schema", whitespace="single"'
        place = Place(pointer=located.pointer, keyword=keyword)
        check.refuse(located, LimitError(f"{message} order or spacing", hint=hint, place=place))


def _pattern(check: Check, located: Located, keyword: str, value: Any) -> None:
    if type(value) is not str:
        misfit(check, located, keyword, value, "a string")
    else:
        _match(check, located, keyword, value, bounded=True)


def _match(check: Check, located: Located, keyword: str, pattern: str, *, bounded: bool = False) -> None:
    """Note a pattern that cannot be enforced, or only by one of its regular bounds if it may be ``bounded``."""
    problem = pattern_problem(pattern, bounded)
    if problem is not None:
        place = Place(pointer=located.pointer, keyword=keyword, offset=problem.place.offset)
        left_out = {"left_out": problem.left_out} if isinstance(problem, UnsupportedSchemaError) else {}
        check.refuse(located, type(problem)(problem.message, hint=problem.hint, place=place, **left_out))


# -- numbers ---------------------------------------------------------------------------------------------------


def is_readable(check: Check, located: Located, keyword: str, value: Any) -> bool:
    """Return True if a value is a number of at most 600 digits, or a bool, which the callers treat on their own; note
    the problem if it is not."""
    if type(value) is int and not -MAX_INTEGER < value < MAX_INTEGER:
        check.beyond(located, keyword, f"{keyword} has more than 600 digits", "use a smaller number")
    elif not isinstance(value, (int, float)):
        misfit(check, located, keyword, value, "a number")
    else:
        return True
    return False


def is_count(check: Check, located: Located, keyword: str, value: Any) -> bool:
    """Return True if a value is a natural number of at most 600 digits; note the problem if it is not."""
    if type(value) is int and not -MAX_INTEGER < value < MAX_INTEGER:
        return is_readable(check, located, keyword, value)
    if type(value) is bool or not isinstance(value, (int, float)) or not 0 <= value < inf or value % 1:
        check.invalid(located, keyword, f"{keyword} must be a whole number that is not negative")
        return False
    return True


def up_to(most: int) -> Callable[[Check, Located, str, Any], None]:
    """Return the check of a lower bound that can be enforced up to some number."""

    def lower_count(check: Check, located: Located, keyword: str, value: Any) -> None:
        if is_count(check, located, keyword, value):
            if value > most:
                message = f"{keyword} is {value:,}, and no model writes more than {most:,}"
                check.beyond(located, keyword, message, f"lower {keyword}")
            elif value > 1:
                check.most_parts *= value

    return lower_count


def _upper_count(check: Check, located: Located, keyword: str, value: Any) -> None:
    is_count(check, located, keyword, value)


def _bound(check: Check, located: Located, keyword: str, value: Any) -> None:
    if type(value) is bool and not keyword.startswith("exclusive"):  # flags in Draft 4
        misfit(check, located, keyword, value, "a number")
    elif is_readable(check, located, keyword, value) and not -inf < value < inf:
        check.invalid(located, keyword, f"{keyword} must be a finite number")


#: The check of each shape; other shapes have none, or each row of them has its own.
CHECKS: Mapping[Shape, Callable[[Check, Located, str, Any], None]] = {
    Shape.SCHEMA: _is_one_of((dict, bool, Mapping), "a schema"),
    Shape.SCHEMAS: _is_one_of((list, tuple), "an array of schemas"),
    Shape.ALTERNATIVES: _alternatives,
    Shape.ITEMS: _is_one_of((dict, bool, list, tuple, Mapping), "a schema, or an array of schemas"),
    Shape.BY_NAME: _by_name,
    Shape.BY_PATTERN: _by_pattern,
    Shape.DEPENDENCIES: _dependencies,
    Shape.REQUIREMENTS: _requirements,
    Shape.TYPE: _type,
    Shape.NAMES: _names,
    Shape.VALUES: _values,
    Shape.VALUE: _value,
    Shape.UPPER_COUNT: _upper_count,
    Shape.BOUND: _bound,
    Shape.PATTERN: _pattern,
    Shape.FLAG: _is_one_of((bool,), "true or false"),
}
