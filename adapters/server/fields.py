"""Fields of a request's JSON body: each is read and checked, or is an error that names it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Union

from toolgrammar.core.basics import option_meant
from toolgrammar.core.errors import ToolGrammarError

from .rows import Choice, Form, Row

#: Similarity, as `difflib` counts it, from which a name of so many characters is a misspelt one: one letter in eight.
_MISSPELT, _LONG = 0.875, 5
#: The same of the words that choose a form.
_MISSPELT_WORD = 0.85

#: Maximum number of unknown fields with different names in one request. Each is compared with the known names.
MAX_UNKNOWN = 100

_SCHEMA = "give the schema in the field of this protocol, see docs/server.md"
_OUT = "leave it out"
#: Options that an answer follows: a field that means one of them, in the words of any library, is not left without
#: effect. The hint is for a protocol that has no field with this meaning.
_FOLLOWED: Mapping[str, str] = {
    "output_type": _SCHEMA,
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
        named: dict[str, Any] = {"field": self.field, "hint": self.hint, "status": self.status, "details": self.details}
        return partial(RequestError, self.message, **named), ()


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
    """The fields of one JSON object, read by its form: ``fields["n"]`` is a value, or what an absent one counts as.

    Objects inside are `Fields`, too. A field whose value is null counts as absent.

    Args:
        value: the object.
        form: what it may have.
        path: of the object in the request; empty for the body.
        outer: the fields of the object around it; None for the body.

    Attributes:
        value: the object as it was sent.
        place: its path in the request.
        kind: the word that chose its form; empty if there is no choice.
        is_skipped: the object has no effect, and is named as unused.
        unused: paths of the fields that were taken and have no effect, in order, also of the objects around it.

    Raises:
        RequestError: the value is not an object; a field lacks, is wrong, or refused. An unknown one is a constraint in
            another server's words, or a schema that was meant, or nearly the name of a known field, or the request has
            more than `MAX_UNKNOWN` of different names. The others have no effect, and are named as unused.
    """

    def __init__(self, value: Any, form: Form | Choice, path: str = "", outer: Fields | None = None) -> None:
        self.place = path
        if not isinstance(value, dict):
            raise RequestError(f"{path or 'the body'} is not an object", field=path or None, hint="send a JSON object")
        self.value = value
        self.kind = ""
        self.is_skipped = False
        self.unused: list[str] = [] if outer is None else outer.unused
        #: Names of unknown fields, each with the form that lacks it: they were compared.
        self._unknown: set[tuple[str, Form]] = set() if outer is None else outer._unknown
        self._values: Mapping[str, Any] = {}
        given = {name: item for name, item in value.items() if item is not None}
        keys: list[str] = []  # the fields that chose the form, such as "type", then "execution"
        chosen: Form | Choice | None = form
        while isinstance(chosen, Choice):
            keys.append(chosen.key)
            chosen = self._chosen(chosen, given)
        if chosen is None:  # an object of a kind that has no effect here
            self.is_skipped = True
            self.unused.append(path)
        else:
            self._read(chosen, given, keys)

    def _chosen(self, choice: Choice, given: dict[str, Any]) -> Form | Choice | None:
        """Take the field of a choice out of those that are given, and return the form that its word chooses; None: the
        object has no effect."""
        word = given.pop(choice.key, None) or choice.default
        forms = choice.forms
        if isinstance(word, str) and word in forms:
            self.kind = self.kind or word
            return forms[word]
        if choice.others:
            near = difflib.get_close_matches(word, forms, 1, _MISSPELT_WORD) if isinstance(word, str) else []
            # {"type": "funktion", ...} and {"type": "x", "function": {...}} mean a function.
            meant = next((known for known in forms if isinstance(given.get(known), dict)), near[0] if near else None)
            if meant is None:
                return None
            raise self.error(choice.key, f"is {word!r}", f"did you mean {meant!r}?")
        if word is None:
            raise self._missing(choice.key)
        raise self._not_one_of(choice.key, word, [known for known in forms if known])

    def _read(self, form: Form, given: Mapping[str, Any], keys: Sequence[str]) -> None:
        """Read the fields by their rows; ``keys`` are the names of the fields that chose the form."""
        self._values = values = form.defaults.copy()
        unknown = []
        for name, value in given.items():
            row = form.rows.get(name)
            if row is None:
                unknown.append(name)
            elif row.effect == "taken":
                values[name] = self._value(name, row, value)
            elif row.effect == "unused":
                if value not in row.same:
                    self.unused.append(self.path(name))
            elif row.effect == "refused" and not any(value == one and type(value) is type(one) for one in row.same):
                raise self.error(name, "is not supported", row.hint, row.details)  # in Python, 0 == False
        for name in form.needed:
            if name not in given:
                raise self._missing(name)
        # A schema in an unknown field is then the one that is meant.
        self._lacks_schema = form.schema is not None and _lacks_schema(values.get(form.schema))
        for name in unknown:
            self._check_unknown(name, given[name], form, [*form.rows, *keys])
        self.unused += map(self.path, unknown)

    def _value(self, name: str, row: Row, value: Any) -> Any:
        """Return the value of a field, checked; objects in it as `Fields`. ``name`` is that of the field, or the place
        of the value in it: ``tools[0]``."""
        kinds = row.kinds
        if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            raise self.error(name, f"is not {row.wanted}")
        if row.words and isinstance(value, str) and value not in row.words:
            if not value and not row.needed:
                return row.default
            raise self._not_one_of(name, value, row.words)
        if row.least and len(value) < row.least:
            raise self.error(name, "is empty", f"give at least {row.least}")
        form = row.form
        if form is None or isinstance(value, str):
            return value
        if isinstance(form, Row) and isinstance(value, dict):
            return {key: self._value(f"{name}.{key}", form, one) for key, one in value.items()}
        if isinstance(form, Row):
            return [self._value(f"{name}[{index}]", form, one) for index, one in enumerate(value)]
        path = self.path(name)
        if isinstance(value, dict):
            return Fields(value, form, path, self)
        made = (Fields(one, form, f"{path}[{index}]", self) for index, one in enumerate(value))
        return [one for one in made if not one.is_skipped]

    def __getitem__(self, name: str) -> Any:
        return self._values.get(name)

    def replaced(self, value: Any, form: Form | Choice) -> Fields:
        """Return the fields of another object, whose errors name the place of this one."""
        return Fields(value, form, self.place, self)

    def of(self, *names: str) -> dict[str, Any]:
        """Return some of the fields."""
        return {name: self._values.get(name) for name in names}

    def path(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.place}.{name}" if self.place else name

    def require(self, *names: str) -> None:
        """Check that fields are given which their form does not need."""
        for name in names:
            if self[name] is None:
                raise self._missing(name)

    def skip(self, name: str = "") -> None:
        """Name a field, or the whole object, as one without effect."""
        self.unused.append(self.path(name) if name else self.place)

    def error(
        self, name: str, words: str, hint: str | None = None, details: Mapping[str, Any] | None = None
    ) -> RequestError:
        """Return the error of a field, which says its path and then the words: ``tools[0].type`` ``is missing``."""
        path = self.path(name)
        return RequestError(f"{path} {words}", field=path, hint=hint, details=details)

    def _not_one_of(self, name: str, value: Any, words: Sequence[str]) -> RequestError:
        return self.error(name, f"is {value!r}", f"give one of {', '.join(map(repr, words))}")

    def _missing(self, name: str) -> RequestError:
        return self.error(name, "is missing", "give it")

    def _check_unknown(self, name: str, value: Any, form: Form, known: Sequence[str]) -> None:
        """Refuse a field that the server does not know if it surely means something; else it has no effect.

        Args:
            name: its name.
            value: its value.
            form: the form that lacks it.
            known: names that it may misspell.
        """
        if form.exact:
            raise self._not_known(name, _OUT)
        option = option_meant(name)  # "guided_json" -> "output_type"
        if option in _FOLLOWED and self.place in ("", "options"):
            synonyms = sorted(field for field in form.defaults if option_meant(field) == option)
            names = [option] if option in synonyms else synonyms
            raise self._not_known(name, f"write {' or '.join(names)}" if names else _FOLLOWED[option])
        if self._lacks_schema and _is_schema(name, value):
            raise self._not_known(name, _SCHEMA)
        if (name, form) in self._unknown:  # of an object before, such as another tool
            return
        if len(self._unknown) == MAX_UNKNOWN:
            message = f"more than {MAX_UNKNOWN} fields are not known to this server"
            raise RequestError(message, field=self.path(name), hint="leave them out")
        self._unknown.add((name, form))
        near = difflib.get_close_matches(name, known, 1, _MISSPELT) if len(name) >= _LONG else ()
        if near:
            raise self._not_known(name, f"did you mean {near[0]}?")

    def _not_known(self, name: str, hint: str) -> RequestError:
        return self.error(name, "is not known to this server", hint)


def _lacks_schema(value: Any) -> bool:
    """Return True if a field that may have a schema has none, also in an object inside."""
    return value is None or (isinstance(value, Fields) and value._lacks_schema)
