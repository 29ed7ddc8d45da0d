"""What a request may have: a row for each field, by which `Fields` reads it, and OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Union

from toolgrammar.core.generation import OPTIONS

#: For each type of a JSON value: its name in errors, and in JSON Schema.
_NAMES: Mapping[type, tuple[str, str]] = {
    str: ("a text", "string"),
    bool: ("true or false", "boolean"),
    int: ("a whole number", "integer"),
    float: ("a number", "number"),
    list: ("a list", "array"),
    dict: ("an object", "object"),
}


@dataclass(frozen=True)
class Row:
    """What a field may be, and what it does. A row that is called is a row with changes: ``TEXT(needed=True)``.

    Attributes:
        kinds: types of its JSON value; empty: any.
        words: the texts that it may be; empty: any.
        form: of the object, or of what is in the list; None: any.
        default: what an absent field counts as.
        needed: it must be there.
        effect: ``"taken"``: the protocol reads it. ``"label"``: it has no effect on an answer. ``"refused"``: the
            server cannot act on it. ``"unused"``: it declares what the server does not have.
        same: values of a refused or unused field that ask for what the server does anyway.
        hint: what the caller can do instead of a refused field.
        details: what a protocol's own clients read of the refusal beside the message.
        least: minimum length of a list or number of members.
        schema: what its JSON Schema has beside the type.
    """

    kinds: tuple[type, ...] = ()
    words: tuple[str, ...] = ()
    form: Union[Form, Choice, Row, None] = None
    default: Any = None
    needed: bool = False
    effect: Literal["taken", "label", "refused", "unused"] = "taken"
    same: tuple[Any, ...] = ()
    hint: str = "leave it out"
    details: Union[Mapping[str, Any], None] = None
    least: int = 0
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **changes: Any) -> Row:
        """Return the row with changes."""
        return replace(self, **changes)

    def __or__(self, other: Row) -> Row:
        """Return the row of a field that may be what either row says: ``TEXT | LIST``."""
        return replace(
            self,
            kinds=(*self.kinds, *other.kinds),
            default=other.default if self.default is None else self.default,
            needed=self.needed or other.needed,
            words=self.words or other.words,
            form=self.form or other.form,
            schema={**other.schema, **self.schema},
        )

    @property
    def _own_kinds(self) -> list[type]:
        """The types that have no other among them: a whole number is a number."""
        return [kind for kind in self.kinds if not (kind is int and float in self.kinds)]

    @property
    def wanted(self) -> str:
        """The types in words."""
        return " or ".join(_NAMES[kind][0] for kind in self._own_kinds)

    def described(self) -> dict[str, Any]:
        """Return the row as JSON Schema."""
        if self.words:
            flags = (True, False) if bool in self.kinds else ()
            absent = () if self.needed else ("",)  # an empty word counts as none
            return {"enum": [*flags, *self.words, *absent], **self.schema}
        kinds = self._own_kinds
        if self.form is None:
            names = [_NAMES[kind][1] for kind in kinds]
            return {**({"type": names[0] if len(names) == 1 else names} if names else {}), **self.schema}
        least = {} if not self.least else {"minItems" if list in kinds else "minProperties": self.least}
        inner = self.form.described()
        of_dict = {"type": "object", "additionalProperties": inner} if isinstance(self.form, Row) else inner
        forms: Mapping[type, dict[str, Any]] = {list: {"type": "array", "items": inner}, dict: of_dict}
        parts = [forms.get(kind, {"type": _NAMES[kind][1]}) for kind in kinds]
        return {**(parts[0] if len(parts) == 1 else {"anyOf": parts}), **least, **self.schema}


Rows = Mapping[str, Row]


class Form:
    """The fields of an object.

    Args:
        rows: what each may be, by name.
        exact: each field is a constraint, so that an unknown one is an error.
        schema: name of the field that may have a schema. Where it is absent, a schema in an unknown field was meant.
    """

    def __init__(self, rows: Rows, *, exact: bool = False, schema: str | None = None) -> None:
        self.rows = rows
        self.exact = exact
        self.schema = schema
        self.defaults = {name: row.default for name, row in rows.items() if row.effect == "taken"}
        self.needed = [name for name, row in rows.items() if row.needed]

    def described(self) -> dict[str, Any]:
        """Return the form as JSON Schema; null stands for any field that may be absent."""
        properties = {name: self.rows[name].described() for name in self.defaults}
        for name, schema in properties.items():
            if schema and not self.rows[name].needed:
                properties[name] = {"anyOf": [schema, {"type": "null"}]}
        described: dict[str, Any] = {"type": "object", "properties": properties}
        if self.needed:
            described["required"] = self.needed
        return {**described, "additionalProperties": False} if self.exact else described


class Choice:
    """Forms of an object, of which the word in one of its fields chooses.

    Args:
        key: name of the field.
        forms: by word; None: such an object has no effect.
        default: the word of an object without one; None: it must have one.
        others: an object with another word has no effect, unless the word is a misspelt one.
    """

    def __init__(
        self,
        key: str,
        forms: Mapping[str, Shape | None],
        default: str | None = None,
        *,
        others: bool = False,
    ) -> None:
        self.key = key
        # One form for all words of the same rows, which `described` lists together.
        by_rows = {id(shape): None if shape is None else _form(shape) for shape in forms.values()}
        self.forms = {word: by_rows[id(shape)] for word, shape in forms.items()}
        self.default = default
        self.others = others

    def described(self) -> dict[str, Any]:
        """Return the forms as JSON Schema: each with the words that choose it."""
        parts = []
        for form in dict.fromkeys(self.forms.values()):
            words: list[str | None] = [word for word, chosen in self.forms.items() if chosen is form]
            part: dict[str, Any] = {"type": "object"} if form is None else form.described()
            if self.default in words:
                words.append(None)  # null counts as absent
            else:
                part["required"] = [self.key, *part.get("required", ())]
            parts.append({**part, "properties": {self.key: {"enum": words}, **part.get("properties", {})}})
        if self.others:
            other = {"type": "string", "not": {"enum": [*self.forms]}}
            parts.append({"type": "object", "properties": {self.key: other}, "required": [self.key]})
        return parts[0] if len(parts) == 1 else {"anyOf": parts}


#: A form, or the rows of one.
Shape = Union[Rows, Form, Choice]


def _form(shape: Shape) -> Form | Choice:
    return shape if isinstance(shape, (Form, Choice)) else Form(shape)


TEXT, FLAG, WHOLE, NUMBER = Row((str,)), Row((bool,), default=False), Row((int,)), Row((int, float))
LIST, OBJECT, ANY = Row((list,), default=()), Row((dict,)), Row()
TEXTS = LIST(form=TEXT)
#: A number of things that are at least one.
COUNT = WHOLE(schema={"minimum": 1})
#: A label of the caller, or a hint to a cache.
LABEL = Row(effect="label")


def word(*words: str, **more: Any) -> Row:
    """Return the row of one of a few words."""
    return Row((str,), words, **more)


def inner(shape: Shape, **more: Any) -> Row:
    """Return the row of an object."""
    return Row((dict,), form=_form(shape), **more)


def objects(shape: Shape, **more: Any) -> Row:
    """Return the row of a list of objects; an absent one is empty."""
    return Row((list,), form=_form(shape), **{"default": (), **more})


def members(shape: Shape, **more: Any) -> Row:
    """Return the row of an object whose members, whatever their names, are objects of one form."""
    return Row((dict,), form=inner(shape), **more)


def refused(*same: Any, **more: Any) -> Row:
    """Return the row of a field that the server cannot act on."""
    return Row(effect="refused", same=same, **more)


def not_offered(*same: Any) -> Row:
    """Return the row of a field that declares what the server does not have, without which no answer is less valid."""
    return Row(effect="unused", same=same)


def option(name: str) -> Row:
    """Return the row of an option of `GenerateParams`, which checks the range."""
    schema = OPTIONS[name].allowed.schema
    kinds: Mapping[Any, tuple[type, ...]] = {"boolean": (bool,), "integer": (int,), "number": (int, float)}
    return Row(kinds.get(schema.get("type"), (str,)), schema=schema)
