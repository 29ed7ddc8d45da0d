"""Types of TypeScript written as JSON Schema.

Every named type becomes an entry of ``$defs`` and is referred to, so recursion costs nothing; a generic type becomes
one entry for each list of arguments. A type that JSON has no values for is refused here, where a schema needs it, with
the line and column of its text.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any

from toolgrammar.core.json import type_of
from toolgrammar.core.schema import TYPES

from . import jsdoc
from . import model as ts
from .algebra import NO_VALUES
from .source import in_generic
from .types import TypeReader

#: Types of the library that are no string, number or object in JSON; a date is a string.
_WITHOUT_FORM = frozenset(
    {
        "bigint", "symbol", "Function", "Promise", "PromiseLike", "RegExp", "Map", "ReadonlyMap", "WeakMap", "Set",
        "ReadonlySet", "WeakSet",
    }
)  # fmt: skip
_KINDS = frozenset(TYPES)


class SchemaWriter:
    """The schemas of one program's types.

    Args:
        reader: what evaluates them.
    """

    def __init__(self, reader: TypeReader) -> None:
        self.reader = reader
        self.definitions: dict[str, dict[str, Any] | bool] = {}
        self._keys: dict[ts.Named, str] = {}  # the names of definitions, written or not
        self._waiting: deque[ts.Named] = deque()  # the named types that are not written yet
        self._open: dict[ts.Type, str | None] = {}  # what is being written, and its name if it refers to itself
        self._declared = Counter(declaration.name for declaration in reader.program.declarations)

    def schema(self, type_: ts.Type, at: ts.At) -> Any:
        """Return the schema of a type, and add the named types that it needs to `definitions`.

        Args:
            type_: any type.
            at: its place, for errors.

        Raises:
            UnsupportedSchemaError: JSON has no values for a part of it, or a part is not evaluated.
        """
        made = self._schema(type_, at)
        while self._waiting:
            named = self._waiting.popleft()
            key = self._keys[named]
            declaration = named.declaration
            where = ts.At(declaration.space.source, declaration.node)
            self.definitions[key] = True  # until it is written
            self.definitions[key] = self._schema(self.reader.step(named), where)
            self._check_grounded(key, where)
        return made

    def kinds(self, type_: ts.Type, seen: frozenset[ts.Type] = frozenset()) -> frozenset[str]:
        """Return the JSON types that a type's values may have; ``seen`` are the types around it, for recursion."""
        if type_ in seen:
            return frozenset()
        seen |= {type_}
        bare = self.reader.bare(type_)
        if isinstance(bare, ts.Union):
            return frozenset().union(*(self.kinds(member, seen) for member in bare.members))
        if isinstance(bare, ts.Literal):
            return frozenset({bare.kind})
        if isinstance(bare, (ts.Array, ts.Tuple)):
            return frozenset({"array"})
        if isinstance(bare, ts.Object):
            return frozenset({"object"})
        if isinstance(bare, ts.Keyword):
            if bare.name in ("any", "unknown"):
                return _KINDS
            return _KINDS & {bare.name}
        return frozenset()

    # -- types -------------------------------------------------------------------------------------------------

    def _schema(self, type_: ts.Type, at: ts.At) -> Any:
        """Return the schema of a type; a named type is a reference, and waits to be written."""
        if isinstance(type_, ts.Named):
            return {"$ref": f"#/$defs/{self._key(type_)}"}
        with self.reader.nested(at):
            if isinstance(type_, ts.Documented):
                return self.documented(type_.type, self._schema(type_.type, type_.at), type_.doc, type_.at)
            if isinstance(type_, (ts.Deferred, ts.Both, ts.Object)):
                return self._recursive(type_, at)
            return self._plain(type_, at)

    def _recursive(self, type_: ts.Deferred | ts.Both | ts.Object, at: ts.At) -> Any:
        """Return the schema of a type without a name; if it contains itself, it gets one, and is a reference."""
        if type_ in self._open:
            key = self._open[type_]
            if key is None:
                key = self._open[type_] = self._free_name("T")
                self.definitions[key] = True  # until it is written
            return {"$ref": f"#/$defs/{key}"}
        self._open[type_] = None
        try:
            if isinstance(type_, ts.Object):
                made: Any = self._object(type_, at)
            else:
                made = self._schema(self.reader.step(type_), at)
        finally:
            key = self._open.pop(type_)
        if key is None:
            return made
        self.definitions[key] = made
        self._check_grounded(key, at)
        return {"$ref": f"#/$defs/{key}"}

    def _plain(self, type_: ts.Type, at: ts.At) -> Any:
        """Return the schema of a type that is neither named nor an object."""
        if isinstance(type_, ts.Keyword):
            if type_.name == "symbol":
                raise at.source.refuse(at.node, "JSON has no values of the type 'symbol'", "use a string")
            if type_.name in ("any", "unknown"):
                return {}
            return False if type_ in (ts.NEVER, ts.UNDEFINED, ts.VOID) else {"type": type_.name}
        if isinstance(type_, ts.Literal):
            return literal_schema([type_.value])
        if isinstance(type_, ts.Array):
            items = self._value(type_.item, type_.at or at, "in an array")
            return {"type": "array", "items": items} if items != {} else {"type": "array"}
        if isinstance(type_, ts.Tuple):
            return self._tuple(type_, at)
        if isinstance(type_, ts.Union):
            # Members that JSON has no values for are left out if others have some; else the first of them is refused.
            members = [member for member in type_.members if not self._has_no_values(member)]
            if all(member in (ts.UNDEFINED, ts.VOID) for member in members):
                members = list(type_.members)
            return union_schema([self._schema(member, at) for member in members])
        if isinstance(type_, ts.Refused):
            raise type_.at.source.refuse(type_.at.node, type_.reason, type_.hint)
        assert isinstance(type_, ts.Function)
        what = "a constructor" if type_.construct else "a function"
        raise type_.scope.source.refuse(
            type_.node, f"{what} is not a JSON value", "leave it out, or give its result's type"
        )

    def _value(self, type_: ts.Type, at: ts.At, where: str) -> Any:
        """Return the schema of a type whose value must be there; ``where`` says in what, for the error."""
        if self.reader.may_be_undefined(type_):
            raise at.source.refuse(at.node, f"JSON has no `undefined` {where}", "use null")
        return self._schema(type_, at)

    def _tuple(self, type_: ts.Tuple, at: ts.At) -> Any:
        """Return the schema of a tuple, the names of its items as titles."""
        items: list[Any] = []
        for element in type_.elements:
            where = element.at or at
            value = self._value(element.type, where, "in a tuple")
            schema = self.documented(element.type, value, element.doc, where)
            has_title = element.label is not None and isinstance(schema, dict)
            items.append({"title": element.label, **schema} if has_title else schema)
        prefix = {"prefixItems": items, "minItems": len(items)} if items else {}
        return {"type": "array", **prefix, "maxItems": len(items)}

    def _object(self, type_: ts.Object, at: ts.At) -> Any:
        """Return the schema of an object; methods and callbacks are left out."""
        if type_.call is not None:
            what = "a constructor" if type_.call.construct else "a function"
            raise type_.call.scope.source.refuse(
                type_.call.node, f"{what} is not a JSON value", "leave it out, or declare properties: name: type"
            )
        values = [one for one in type_.properties if not one.method and not self._is_callback(one)]
        if type_.properties and not values and not type_.index:
            node = type_.properties[0].at or at
            raise node.source.refuse(node.node, "an object of methods alone is not a JSON value", "declare properties")
        properties: dict[str, Any] = {}
        required: list[str] = []
        for one in values:
            where = one.at or at
            properties[one.name] = self._property(one, where)
            if one.definite or not (one.optional or self.reader.may_be_undefined(one.type)):
                required.append(one.name)
        made: dict[str, Any] = {"type": "object"}
        if properties or type_.index is None:
            made["properties"] = properties
        if required:
            made["required"] = required
        if type_.index is not None:
            index, where = type_.index, type_.index.at or at
            value = self.documented(index.type, self._schema(index.type, where), index.doc, where)
            made["additionalProperties"] = value if value != {} else True
        return made

    def _property(self, one: ts.Property, at: ts.At) -> Any:
        return self.documented(one.type, self._schema(one.type, at), one.doc, at)

    def _has_no_values(self, type_: ts.Type) -> bool:
        """Return True if JSON has no value for a type, not even in another form, as a date has as a string."""
        bare = self.reader.bare(type_)
        if isinstance(bare, ts.Refused):
            return bare.name in _WITHOUT_FORM or bare.name == NO_VALUES
        return (
            isinstance(bare, ts.Function)
            or bare == ts.SYMBOL
            or (isinstance(bare, ts.Object) and bare.call is not None)
        )

    def _is_callback(self, one: ts.Property) -> bool:
        """Return True if a property is a function (or one of several) that may be absent: ``onDone?: () => void``."""
        members = [self.reader.bare(member) for member in self.reader.members(one.type)]
        functions = [
            isinstance(bare, ts.Function)
            or (isinstance(bare, ts.Refused) and bare.name == "Function")
            or (isinstance(bare, ts.Object) and bare.call is not None)
            for bare in members
            if bare not in (ts.UNDEFINED, ts.VOID)
        ]
        return bool(functions) and all(functions) and (one.optional or ts.UNDEFINED in members or ts.VOID in members)

    # -- comments ----------------------------------------------------------------------------------------------

    def documented(self, type_: ts.Type, schema: Any, doc: jsdoc.Doc | None, at: ts.At) -> Any:
        """Return the schema of a type, constrained by the comment on it.

        Raises:
            InvalidSchemaError: the comment constrains another kind of value.
        """
        if doc is None or not (doc.constrains or doc.description):
            return schema
        made: dict[str, Any] = dict(schema_of(schema))
        kinds = self.kinds(type_)
        node, source = at.node, at.source
        if doc.integer:
            if "number" not in kinds:
                raise source.wrong(node, "@integer constrains numbers, and the type has none", "put it before a number")
            stated = made.get("type", sorted(kinds))
            names = [stated] if isinstance(stated, str) else stated
            whole = list(dict.fromkeys("integer" if name == "number" else name for name in names))
            made["type"] = whole[0] if len(names) == 1 else whole
        if doc.one_of:
            if "anyOf" not in made:
                raise source.wrong(node, "@oneOf constrains unions, and the type is not one", "put it before a union")
            made["oneOf"] = made.pop("anyOf")
        for keyword, value in doc.keywords.items():
            about = jsdoc.CONSTRAINTS.get(keyword)  # the JSON type that it constrains; None: any
            if about is not None and about not in kinds:
                if in_generic(node):  # the tag is for other type arguments
                    continue
                raise source.wrong(
                    node,
                    f"@{keyword} constrains {about}s, and the type is {' or '.join(sorted(kinds)) or 'empty'}",
                    "put it before what it constrains, for example (/** @minLength 1 */ string)[]",
                )
            if keyword == "default" and kinds == {"string"} and not isinstance(value, str):  # `@default 3`: "3"
                value = json.dumps(value)
            if about is not None and keyword in made and keyword != "additionalProperties":  # both hold
                made["allOf"] = [*made.get("allOf", ()), {keyword: value}]
            else:
                made[keyword] = value
        if doc.description:
            made["description"] = doc.description
        made.update(doc.schema)
        if "$defs" not in doc.schema:
            self._define_referenced(doc.schema, at)
        return made

    def _define_referenced(self, schema: Any, at: ts.At) -> None:
        """Add the types that the keywords of ``@schema`` refer to to the definitions."""
        if isinstance(schema, list):
            for item in schema:
                self._define_referenced(item, at)
        elif isinstance(schema, dict):
            for value in schema.values():
                self._define_referenced(value, at)
            reference = schema.get("$ref")
            if isinstance(reference, str):
                name = reference.removeprefix("#/$defs/")
                for declaration in self.reader.program.declarations:
                    if declaration.name == name and declaration.kind not in ("function", "const"):
                        self._schema(self.reader.named(declaration, (), at), at)  # a reference, which defines the type

    # -- names -------------------------------------------------------------------------------------------------

    def _key(self, named: ts.Named) -> str:
        """Return the name in ``$defs`` of a type, which is written later if it is new: ``Page<User> -> Page_User``."""
        made = self._keys.get(named)
        if made is not None:
            return made
        declaration = named.declaration
        name = declaration.path if self._declared[declaration.name] > 1 else declaration.name
        name = "_".join([name, *map(self._label, named.arguments)])
        key = self._free_name(name, is_declared=not named.arguments)
        self._keys[named] = key
        self._waiting.append(named)
        return key

    def _free_name(self, name: str, *, is_declared: bool = False) -> str:
        """Return a name for a definition: this one, or with a number behind it if it is taken; names of declared types
        are kept for these."""
        taken = {*self._keys.values(), *self.definitions, *(() if is_declared else self._declared)}
        names = itertools.chain([name], (f"{name}_{index}" for index in itertools.count(2)))
        return next(one for one in names if one not in taken)

    def _label(self, type_: ts.Type) -> str:
        """Return a word for a type argument in the name of a definition."""
        if isinstance(type_, ts.Documented):
            return self._label(type_.type)
        if isinstance(type_, ts.Named):
            return type_.declaration.name
        if isinstance(type_, ts.Keyword):
            return type_.name
        if isinstance(type_, ts.Literal):
            return type_.kind
        return {ts.Array: "array", ts.Tuple: "array", ts.Object: "object"}.get(type(type_), "T")

    def _check_grounded(self, key: str, at: ts.At) -> None:
        """Refuse a type that is defined as itself, or as itself or something else: ``type T = T | string``."""
        waiting, seen = [self.definitions[key]], set()
        while waiting:
            part = waiting.pop()
            if not isinstance(part, dict):
                continue
            waiting += [*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())]
            reference = part.get("$ref")
            if isinstance(reference, str) and reference not in seen:
                seen.add(reference)
                name = reference.removeprefix("#/$defs/")
                if name == key:
                    raise at.source.wrong(at.node, f"the type {key!r} is defined by itself", "put it inside an object")
                waiting.append(self.definitions.get(name, True))


def literal_schema(values: Sequence[Any]) -> dict[str, Any]:
    """Return the schema of literals, with ``type``: ``["a", "b"] -> {"type": "string", "enum": ["a", "b"]}``, one as
    ``const``."""
    kinds = list(dict.fromkeys("integer" if type(value) is int else type_of(value) for value in values))
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    if set(kinds) == {"boolean"} and len(set(values)) == 2:
        return {"type": "boolean"}
    kind: Any = kinds[0] if len(kinds) == 1 else kinds
    return {"type": kind, "const": values[0]} if len(values) == 1 else {"type": kind, "enum": list(values)}


def union_schema(members: Iterable[Any]) -> dict[str, Any] | bool:
    """Return the union of schemas: literals as one ``enum``, bare types as one ``type``, everything else as ``anyOf``.

    A member that is a union itself is taken apart, and false is no member.
    """
    distinct: dict[str, Any] = {}  # by their JSON
    for member in members:
        for part in member["anyOf"] if isinstance(member, dict) and set(member) == {"anyOf"} else [member]:
            if part is not False:
                distinct.setdefault(json.dumps(part, sort_keys=True, default=str), part)
    parts = list(distinct.values())
    if not parts:
        return False
    if len(parts) == 1:
        whole: dict[str, Any] | bool = schema_of(parts[0])
        return whole
    if any(part == {} or part is True for part in parts):
        return {}
    literals = [part for part in parts if _is_literal(part)]
    if literals and all(_is_literal(part) or part == _NULL for part in parts):
        return _joined_literals(parts)
    if all(set(part) == {"type"} for part in parts):
        names = [part["type"] if isinstance(part["type"], list) else [part["type"]] for part in parts]
        return {"type": list(dict.fromkeys(itertools.chain(*names)))}
    if len(literals) > 1:  # one member in the place of the first
        first, *others = literals
        joined = _joined_literals(literals)
        parts = [joined if part is first else part for part in parts if not any(part is other for other in others)]
    return {"anyOf": parts}


#: The schema of null.
_NULL = {"type": "null"}


def _joined_literals(parts: Sequence[Any]) -> dict[str, Any]:
    """Return the union of schemas of literals, and of null, as one."""
    return literal_schema(
        _unique([value for part in parts for value in ([None] if part == _NULL else _literals(part))])
    )


def schema_of(schema: Any) -> Any:
    """Return the schema as a dict where it has words; ``{"not": {}}`` for nothing."""
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


def _is_literal(schema: Any) -> bool:
    return isinstance(schema, dict) and set(schema) in ({"type", "const"}, {"type", "enum"})


def _literals(schema: dict[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema["enum"])


def _unique(values: list[Any]) -> list[Any]:
    """Return each value once; 1 and true are different."""
    return list({(type(value), value): value for value in values}.values())
