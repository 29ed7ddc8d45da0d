"""Fields of a request's JSON body: each is read and checked, or is an error that names it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, Union

from toolgrammar.core.basics import option_meant
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


#: Similarity, as `difflib` counts it, from which a name of so many characters is a misspelt one: one letter in eight.
_MISSPELT = 0.875
_LONG = 5

#: Maximum number of unknown fields with different names in one request. Each is compared with the known names.
MAX_UNKNOWN = 100

_SCHEMA = "give the schema in the field of this protocol, see docs/server.md"
_OUT = "leave it out"
#: Options that an answer follows: a field that means one of them, in the words of any library, is not left without
#: effect. The hint is for a protocol that has no field with this meaning.
_FOLLOWED: Mapping[str, str] = {
    **dict.fromkeys(("output_type", "response_schema"), _SCHEMA),
    **dict.fromkeys(("grammar", "structured_outputs", "structural_tag"), "give it as grammar"),
    "max_tokens": "give the budget in the field of this protocol",
    "stop": "give the texts in the field of this protocol",
    "repetition_penalty": _OUT,
    **dict.fromkeys(("tools", "tool_choice"), "a protocol of conversations has them"),
    **dict.fromkeys(("template", "chat_template"), "the model's own template is used; send the conversation"),
    **dict.fromkeys(("min_tokens", "ignore_eos", "stop_token_ids", "bad_words", "logit_bias", "n", "best_of"), _OUT),
}


#: Unknown fields that describe the result of a tool, or are notes, whatever their values look like.
_NOT_OF_ARGUMENTS = ("return", "output", "response", "result", "meta", "annotation")
_SCHEMA_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_SCHEMA_KEYWORDS = frozenset({"properties", "$ref", "$defs", "anyOf", "oneOf", "allOf", "enum"})


def _is_schema(name: str, value: Any) -> bool:
    """Return True if an unknown field looks like the JSON Schema of arguments or of an answer."""
    if name.lstrip("_").lower().startswith(_NOT_OF_ARGUMENTS):
        return False
    kind = value.get("type") if isinstance(value, dict) else None
    is_typed = isinstance(kind, str) and kind in _SCHEMA_TYPES
    return is_typed or (isinstance(value, dict) and not _SCHEMA_KEYWORDS.isdisjoint(value))


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
        outer: the fields of the object around it; None for the body.

    Attributes:
        unused: paths of the fields that were taken and have no effect, in order, also of the objects around it.

    Raises:
        RequestError: the value is not an object.
    """

    def __init__(self, value: Any, path: str = "", outer: Fields | None = None) -> None:
        if not isinstance(value, dict):
            raise RequestError(f"{path or 'the body'} is not an object", field=path or None, hint="send a JSON object")
        self._left = {name: item for name, item in value.items() if item is not None}
        self._path = path
        self._known: set[str] = set()
        self.unused: list[str] = [] if outer is None else outer.unused
        #: Names of unknown fields, each with the names that are known beside it: they were compared.
        self._unknown: set[tuple[str, frozenset[str]]] = set() if outer is None else outer._unknown

    def within(self, value: Any, path: str) -> Fields:
        """Return the fields of an object inside this one."""
        return Fields(value, path, self)

    def path(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self._path}.{name}" if self._path else name

    def has(self, name: str) -> bool:
        """Return True if a field is given and was not taken."""
        return name in self._left

    def take(self, name: str) -> Any:
        """Return the value of a field, of any type; None if it is absent."""
        self._known.add(name)
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
        return [self.within(item, f"{self.path(name)}[{index}]") for index, item in enumerate(self.items(name))]

    def inner(self, name: str) -> Fields | None:
        """Return an object; None if it is absent."""
        value = self.take(name)
        return None if value is None else self.within(value, self.path(name))

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

    def not_offered(self, name: str, *same: Any) -> None:
        """Take a field that declares what the server does not have, and without which no answer is less valid.

        Args:
            name: the field.
            same: values that ask for what the server does anyway; others are named as unused.
        """
        value = self.take(name)
        if value is not None and value not in same:
            self.unused.append(self.path(name))

    def skip(self) -> None:
        """Take the whole object, which has no effect."""
        self.unused.append(self._path)
        self._left.clear()

    def end(self, *, lacks_schema: bool = False) -> None:
        """Take the fields that are left, which the server does not know: they have no effect, and are named as such.

        Args:
            lacks_schema: the object may have a schema, and has none: one in an unknown field was meant.

        Raises:
            RequestError: one of them is a constraint in another server's words, or a schema that was meant, or nearly
                the name of a known field, or the request has more than `MAX_UNKNOWN` of different names.
        """
        if not self._left:
            return
        known = frozenset(self._known)
        for name in self._left:
            if (meant := option_meant(name)) in _FOLLOWED and self._path in ("", "options"):
                same = [meant] if meant in known else sorted(one for one in known if option_meant(one) == meant)
                self._refuse_unknown(name, f"write {' or '.join(same)}" if same else _FOLLOWED[meant])
            if lacks_schema and _is_schema(name, self._left[name]):
                self._refuse_unknown(name, _SCHEMA)
            if (name, known) in self._unknown:
                continue
            if len(self._unknown) == MAX_UNKNOWN:
                path = self.path(name)
                raise RequestError(
                    f"more than {MAX_UNKNOWN} fields are not known to this server", field=path, hint="leave them out"
                )
            self._unknown.add((name, known))
            near = difflib.get_close_matches(name, self._known, 1, _MISSPELT) if len(name) >= _LONG else ()
            if near:
                self._refuse_unknown(name, f"did you mean {near[0]}?")
        for name in [*self._left]:
            self.not_offered(name)

    def end_exactly(self) -> None:
        """Refuse the fields that are left, in an object of which each field is a constraint."""
        for name in self._left:
            self._refuse_unknown(name, "leave it out")

    def _refuse_unknown(self, name: str, hint: str) -> None:
        path = self.path(name)
        raise RequestError(f"{path} is not known to this server", field=path, hint=hint)
