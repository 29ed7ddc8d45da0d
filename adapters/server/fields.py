"""Fields of a request's JSON body: each is read and checked, or is an error that names it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, Union

from toolgrammar.core.errors import ToolGrammarError

T = TypeVar("T")

_WORDS: Mapping[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


class RequestError(ToolGrammarError, code="request"):
    """A field of a request is wrong, unknown, or asks for what the server cannot do.

    Args:
        message: what is wrong.
        field: path of the field, for example ``tools[0].type``; None if no single field is wrong.
        hint: what the caller can do about it.
        status: HTTP status of the response.
        details: what a protocol's own clients read of it beside the message, where there is such a form.
    """

    def __init__(
        self,
        message: str,
        *,
        field: Union[str, None] = None,
        hint: Union[str, None] = None,
        status: int = 400,
        details: Union[Mapping[str, Any], None] = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.field = field
        self.status = status
        self.details = details

    def __reduce__(self) -> Any:
        return _restored, (self.message, self.field, self.hint, self.status, self.details)


def _restored(
    message: str, field: str | None, hint: str | None, status: int, details: Mapping[str, Any] | None
) -> RequestError:
    return RequestError(message, field=field, hint=hint, status=status, details=details)


@contextmanager
def at_field(field: str) -> Iterator[None]:
    """Name the field in errors of ours that the block raises."""
    try:
        yield
    except RequestError:
        raise
    except ToolGrammarError as error:
        where = f" ({error.place})" if str(error.place) else ""
        raise RequestError(error.message + where, field=field, hint=error.hint) from error


class Fields:
    """The fields of one JSON object. A field whose value is null counts as absent.

    Args:
        value: the object.
        path: of the object in the request; empty for the body.

    Raises:
        RequestError: the value is not an object.
    """

    def __init__(self, value: Any, path: str = "") -> None:
        if not isinstance(value, dict):
            raise RequestError(f"{path or 'the body'} is not an object", field=path or None, hint="send a JSON object")
        self._left = {name: item for name, item in value.items() if item is not None}
        self._path = path

    def path(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        """Return True if a field is given and was not taken."""
        return name in self._left

    def take(self, name: str) -> Any:
        """Return the value of a field, of any type; None if it is absent."""
        return self._left.pop(name, None)

    def one_of(self, name: str, kinds: Sequence[type], default: Any = None) -> Any:
        """Return the value of a field that has one of several types."""
        value = self.take(name)
        if value is None:
            return default
        is_right = any(isinstance(value, kind) for kind in kinds)
        if not is_right or (isinstance(value, bool) and bool not in kinds):
            words = " or ".join(_WORDS[kind] for kind in kinds if not (kind is int and float in kinds))
            raise RequestError(f"{self.path(name)} is not {words}", field=self.path(name))
        return value

    def text(self, name: str, default: Any = None) -> Any:
        """Return a text."""
        return self.one_of(name, (str,), default)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return true or false."""
        return bool(self.one_of(name, (bool,), default))

    def whole(self, name: str, default: Any = None) -> Any:
        """Return a whole number."""
        return self.one_of(name, (int,), default)

    def number(self, name: str, default: Any = None) -> Any:
        """Return a number."""
        return self.one_of(name, (int, float), default)

    def items(self, name: str) -> list[Any]:
        """Return a list; an absent one is empty."""
        items: list[Any] = self.one_of(name, (list,), [])
        return items

    def objects(self, name: str) -> list[Fields]:
        """Return the objects in a list."""
        return [Fields(item, f"{self.path(name)}[{index}]") for index, item in enumerate(self.items(name))]

    def inner(self, name: str) -> Fields | None:
        """Return an object; None if it is absent."""
        value = self.take(name)
        return None if value is None else Fields(value, self.path(name))

    def required(self, name: str) -> None:
        """Check that a field is given."""
        if name not in self._left:
            raise RequestError(f"{self.path(name)} is missing", field=self.path(name), hint="give it")

    def word(self, name: str, words: Collection[str], default: str = "") -> str:
        """Return one of a few words."""
        value = self.text(name, default)
        if value not in words and value != default:
            known = ", ".join(map(repr, words))
            raise RequestError(f"{self.path(name)} is {value!r}", field=self.path(name), hint=f"give one of {known}")
        return str(value)

    def put(self, name: str, value: Any) -> None:
        """Add a field, as if the object had it."""
        self._left[name] = value

    def ignore(self, *names: str) -> None:
        """Drop fields that have no effect on the answer: labels of the caller, hints to caches."""
        for name in names:
            self.take(name)

    def refuse(self, name: str, *same: Any, hint: str = "leave it out") -> None:
        """Refuse a field that the server cannot act on, unless its value asks for nothing.

        Args:
            name: the field.
            same: values that ask for what the server does anyway.
            hint: what the caller can do instead.
        """
        value = self.take(name)
        if value is not None and not any(value == one and type(value) is type(one) for one in same):
            raise RequestError(f"{self.path(name)} is not supported", field=self.path(name), hint=hint)

    def end(self) -> None:
        """Refuse the fields that were not taken: the server does not know them."""
        for name in self._left:
            raise RequestError(
                f"{self.path(name)} is not known to this server", field=self.path(name), hint="leave it out"
            )
