"""What a request may have: a row for each field, by which `Fields` reads it, and OpenAPI describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Union

from toolgrammar.core.generation import OPTIONS

_WORDS: Mapping[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "an object",
}
_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
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
    def wanted(self) -> str:
        """The types in words."""
        return " or ".join(_WORDS[kind] for kind in self.kinds if not (kind is int and float in self.kinds))

    def described(self) -> dict[str, Any]:
        """Return the row as JSON Schema."""
        if self.words:  # an optional word may be empty
            flags, empty = (True, False) if bool in self.kinds else (), () if self.needed else ("",)
            return {"enum": [*flags, *self.words, *empty], **self.schema}
        kinds = [kind for kind in self.kinds if not (kind is int and float in self.kinds)]
        if self.form is None:
            names = [_TYPES[kind] for kind in kinds]
            return {**({"type": names[0] if len(names) == 1 else names} if names else {}), **self.schema}
        least = {} if not self.least else {"minItems" if list in kinds else "minProperties": self.least}
        inner = self.form.described()
        of_dict = {"type": "object", "additionalProperties": inner} if isinstance(self.form, Row) else inner
        forms: Mapping[type, dict[str, Any]] = {list: {"type": "array", "items": inner}, dict: of_dict}
        parts = [forms.get(kind, {"type": _TYPES[kind]}) for kind in kinds]
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
        taken = {name: (row.needed, row.described()) for name, row in self.rows.items() if row.effect == "taken"}
        made: dict[str, Any] = {
            "type": "object",
            "properties": {
                name: one if needed or not one else {"anyOf": [one, {"type": "null"}]}
                for name, (needed, one) in taken.items()
            },
        }
        if self.needed:
            made["required"] = self.needed
        return {**made, "additionalProperties": False} if self.exact else made


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
        made = {id(one): None if one is None else _form(one) for one in forms.values()}
        self.forms = {word: made[id(one)] for word, one in forms.items()}
        self.default = default
        self.others = others

    def described(self) -> dict[str, Any]:
        """Return the forms as JSON Schema."""
        words: dict[int, list[str]] = {}
        for word, form in self.forms.items():
            words.setdefault(id(form), []).append(word)
        parts = []
        for same in words.values():
            form = self.forms[same[0]]
            made: dict[str, Any] = {"type": "object"} if form is None else form.described()
            absent = self.default in same
            key = {"enum": [*same, *([None] if absent else [])]}
            required = [*([] if absent else [self.key]), *made.get("required", ())]
            parts.append({**made, "properties": {self.key: key, **made.get("properties", {})}})
            if required:
                parts[-1]["required"] = required
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
