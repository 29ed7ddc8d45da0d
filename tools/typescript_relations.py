"""Conditional types of TypeScript: which type extends which, and what ``infer`` finds.

The rules are those of TypeScript's assignability under ``strict``. Where they are not worked out here (overloaded
functions, templates against templates), the conditional type is refused rather than guessed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..core.errors import SchemaError
from .typescript_model import (
    ANY,
    BOOLEAN,
    NEVER,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    UNDEFINED,
    UNKNOWN,
    AllOf,
    Array,
    At,
    Documented,
    Element,
    Function,
    Keyword,
    Literal,
    Named,
    Object,
    Refused,
    Scope,
    Template,
    Tuple,
    Type,
    Union,
    Variable,
    text_of,
    union,
)
from .typescript_source import child_of, parts, walk

if TYPE_CHECKING:
    from tree_sitter import Node

    from .typescript_types import TypeReader

#: Properties of every array and of every string, number or boolean. Their types are not worked out.
_ARRAY_MEMBERS = frozenset(
    {
        "at", "concat", "copyWithin", "entries", "every", "fill", "filter", "find", "findIndex", "flat", "flatMap",
        "forEach", "includes", "indexOf", "join", "keys", "lastIndexOf", "map", "pop", "push", "reduce", "reduceRight",
        "reverse", "shift", "slice", "some", "sort", "splice", "toLocaleString", "toString", "unshift", "values",
    }
)  # fmt: skip
_STRING_MEMBERS = frozenset(
    {
        "length", "at", "charAt", "charCodeAt", "codePointAt", "concat", "endsWith", "includes", "indexOf",
        "lastIndexOf", "match", "matchAll", "normalize", "padEnd", "padStart", "repeat", "replace", "replaceAll",
        "search", "slice", "split", "startsWith", "substring", "toLowerCase", "toString", "toUpperCase", "trim",
        "trimEnd", "trimStart", "valueOf", "toFixed", "toExponential", "toPrecision", "toLocaleString",
    }
)  # fmt: skip
_NUMBER_TEXT = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"


class Relations:
    """How the types of one program relate to each other.

    Args:
        reader: what evaluates them.
    """

    def __init__(self, reader: TypeReader) -> None:
        self.reader = reader
        self._assumed: set[tuple[Type, Type]] = set()
        self._at: At | None = None

    # -- conditional types -------------------------------------------------------------------------------------

    def conditional(self, node: Node, scope: Scope) -> Type:
        """Return the branches that ``T extends U ? X : Y`` takes, for each member of ``T`` if that is a parameter."""
        left = child_of(node, "left")
        for name in ("consequence", "alternative"):
            scope.source.postpone(child_of(node, name))
        check = self.reader.type(left, scope)
        name = scope.source.text(left)
        if left.type != "type_identifier" or name not in scope.types:
            return self._branch(check, node, scope)
        members = self.reader.members(check, scope.at(left))
        if len(members) == 1:
            return self._branch(members[0], node, scope)
        return union([self._branch(member, node, scope.with_types({name: member})) for member in members])

    def _branch(self, check: Type, node: Node, scope: Scope) -> Type:
        reader = self.reader
        right = child_of(node, "right")
        at = scope.at(right)
        wanted = {scope.source.text(parts(one)[0]): one for one in walk(right) if one.type == "infer_type"}
        inner = scope
        target = reader.type(right, scope.with_types({name: Variable(name) for name in wanted}))
        if wanted:
            found: dict[str, list[Type]] = {name: [] for name in wanted}
            self._infer(check, target, found)
            inner = scope.with_types({name: union(types) if types else UNKNOWN for name, types in found.items()})
            target = reader.type(right, inner)
        bare = reader.bare(check, at)
        if bare == ANY and reader.bare(target) not in (ANY, UNKNOWN):
            return union([self._taken(node, "consequence", inner), self._taken(node, "alternative", scope)])
        holds = self.decided(check, target, at)
        for name, one in wanted.items():
            limit = parts(one)[1:]
            if holds and limit and not self.decided(inner.types[name], reader.type(limit[0], inner), at):
                holds = False
        return self._taken(node, "consequence", inner) if holds else self._taken(node, "alternative", scope)

    def _taken(self, node: Node, name: str, scope: Scope) -> Type:
        branch = child_of(node, name)
        scope.source.begin(branch)
        return self.reader.type(branch, scope)

    def whole(self, type_: Type, kept: list[Type]) -> Type:
        """Return the kept members of a union; the union itself, name and comments included, if all are."""
        return type_ if len(kept) == len(self.reader.members(type_)) else union(kept)

    # -- assignability -----------------------------------------------------------------------------------------

    def decided(self, first: Type, second: Type, at: At) -> bool:
        """Return whether ``first extends second``.

        Raises:
            UnsupportedSchemaError: that is not worked out here; at this place.
        """
        before, self._at = self._at, at
        try:
            return self.assignable(first, second)
        finally:
            self._at = before

    def overlap(self, first: Type, second: Type) -> bool:
        """Return whether two types that are no objects and no unions may have a value in common."""
        return (
            self.assignable(first, second)
            or self.assignable(second, first)
            or (isinstance(first, Template) and isinstance(second, Template))
        )

    def assignable(self, first: Type, second: Type) -> bool:
        """Return whether every value of the first type is one of the second."""
        if first == second or (first, second) in self._assumed:
            return True
        reader = self.reader
        mine, theirs = reader.bare(first), reader.bare(second)
        if theirs in (mine, ANY, UNKNOWN) or isinstance(theirs, Variable) or mine == NEVER:
            return True
        if theirs == NEVER:
            return False
        if mine == ANY:
            return True
        self._check_known(mine, theirs)
        if isinstance(mine, Union):
            return all(self.assignable(member, second) for member in mine.members)
        if isinstance(theirs, AllOf):
            return all(self.assignable(first, member) for member in theirs.members)
        if isinstance(theirs, Union):
            if mine == BOOLEAN and all(Literal.of(v) in reader.members(theirs) for v in (True, False)):
                return True
            return any(self.assignable(first, member) for member in theirs.members)
        if isinstance(mine, AllOf):
            return any(self.assignable(member, second) for member in mine.members)
        if mine in (NULL, UNDEFINED) or theirs in (NULL, UNDEFINED):
            return False
        if theirs == OBJECT:
            return isinstance(mine, (Object, Array, Tuple, Function)) or (
                isinstance(mine, Refused) and mine.name not in ("symbol", "bigint")
            )
        if isinstance(theirs, Object) and not (theirs.properties or theirs.indexes or theirs.call):
            return mine != UNKNOWN
        pair = (first, second)
        self._assumed.add(pair)
        try:
            return self._structural(mine, theirs)
        finally:
            self._assumed.discard(pair)

    def _structural(self, mine: Type, theirs: Type) -> bool:
        if isinstance(mine, Literal):
            if isinstance(theirs, Keyword):
                return theirs.name == mine.kind
            if isinstance(theirs, Template):
                return mine.kind == "string" and re.fullmatch(self.pattern(theirs), mine.value) is not None
        if isinstance(mine, Template):
            if theirs == STRING:
                return True
            if isinstance(theirs, Template):
                raise self._undecided()
        if isinstance(mine, (Literal, Keyword, Template)):
            if isinstance(theirs, Object) and all(one.name in _STRING_MEMBERS for one in theirs.properties):
                raise self._undecided()
            return False
        if isinstance(mine, Function) or isinstance(theirs, Function):
            return self._functions(mine, theirs)
        if isinstance(mine, (Array, Tuple)):
            return self._arrays(mine, theirs)
        if isinstance(mine, Object) and isinstance(theirs, Object):
            return self._objects(mine, theirs)
        if isinstance(mine, Refused) and isinstance(theirs, Refused):
            same = mine.name == theirs.name or (mine.name, theirs.name) == ("Promise", "PromiseLike")
            pairs = zip(mine.arguments, theirs.arguments, strict=False)
            return same and all(self.assignable(one, other) for one, other in pairs)
        if isinstance(mine, Refused) and isinstance(theirs, Object):
            raise self._undecided()
        return False

    def _arrays(self, mine: Array | Tuple, theirs: Type) -> bool:
        if isinstance(theirs, Object):
            for wanted in theirs.properties:
                if wanted.name == "length":
                    if not self.assignable(self._length(mine), wanted.type):
                        return False
                elif wanted.name in _ARRAY_MEMBERS:
                    raise self._undecided()
                elif not wanted.optional:
                    return False
            return all(index.key == NUMBER and self._arrays(mine, Array(index.type)) for index in theirs.indexes)
        if isinstance(theirs, Array):
            items = [mine.item] if isinstance(mine, Array) else [_value(one) for one in mine.elements]
            return all(self.assignable(item, theirs.item) for item in items)
        if not isinstance(theirs, Tuple):
            return False
        if isinstance(mine, Array):
            return all(one.rest and self.assignable(mine.item, one.type) for one in theirs.elements)
        most = len(theirs.elements)
        rest = next((index for index, one in enumerate(theirs.elements) if one.rest), None)
        if rest is not None and rest != most - 1:
            raise self._undecided()
        required = sum(not one.optional and not one.rest for one in theirs.elements)
        if sum(not one.optional and not one.rest for one in mine.elements) < required:
            return False
        for index, one in enumerate(mine.elements):
            if index >= most and rest is None:
                return False
            other = theirs.elements[min(index, most - 1)]
            if one.rest and not other.rest:
                return False
            if not self.assignable(_value(one), _value(other) if not other.rest else other.type):
                return False
        return True

    def _objects(self, mine: Object, theirs: Object) -> bool:
        if theirs.call is not None:
            if mine.call is None:
                return False
            raise self._undecided()
        weak = theirs.properties and not theirs.indexes and all(one.optional for one in theirs.properties)
        if weak and mine.properties and not any(mine.get(one.name) for one in theirs.properties):
            return False  # TypeScript takes this for a mistake
        for one in theirs.properties:
            known = mine.get(one.name)
            if known is None:
                if not one.optional:
                    return False
                continue
            if known.optional and not one.optional and not self.reader.undefined(one.type):
                return False
            target = union([one.type, UNDEFINED]) if one.optional else one.type
            if not self.assignable(known.type, target):
                return False
        for index in theirs.indexes:
            if mine.declared and not mine.indexes and self.reader.bare(index.type) != ANY:
                return False
            for known in mine.properties:
                value = self.reader.objects.value(Object(indexes=(index,)), known.name)
                if value is not None and not self.assignable(known.type, value):
                    return False
            for own in mine.indexes:
                if own.key in (index.key, NUMBER) and not self.assignable(own.type, index.type):
                    return False
        return True

    def _functions(self, mine: Type, theirs: Type) -> bool:
        if isinstance(theirs, Refused) and theirs.name == "Function":
            return isinstance(mine, Function)
        if not (isinstance(mine, Function) and isinstance(theirs, Function)):
            if isinstance(mine, Function) and isinstance(theirs, Object):
                raise self._undecided()
            return False
        if mine.construct != theirs.construct:
            return False
        values = self.reader.values
        result = values.result(theirs)
        if result != UNDEFINED and not self.assignable(values.result(mine), result):
            return False
        wanted, given = values.parameters(theirs), values.parameters(mine)
        if isinstance(wanted, Array) and self.reader.bare(wanted.item) in (ANY, NEVER):
            return True
        mine_parameters = given.elements if isinstance(given, Tuple) else None
        their_parameters = wanted.elements if isinstance(wanted, Tuple) else None
        if (
            mine_parameters is None
            or their_parameters is None
            or any(one.rest for one in (*mine_parameters, *their_parameters))
        ):
            raise self._undecided()
        if sum(not one.optional for one in mine_parameters) > len(their_parameters):
            return False
        pairs = zip(mine_parameters, their_parameters, strict=False)
        return all(self.assignable(other.type, one.type) for one, other in pairs)

    def _length(self, array: Array | Tuple) -> Type:
        assert self._at is not None
        return self.reader.objects.lookup(array, Literal.of("length"), self._at, self._at)

    def _check_known(self, *types: Type) -> None:
        """Refuse a type of which nothing is known: one whose file was not given, a result of a call."""
        for type_ in types:
            if isinstance(type_, Refused) and " " in type_.name:  # others have the name of a type
                raise type_.at.source.refuse(type_.at.node, type_.reason, type_.hint)

    def _undecided(self) -> SchemaError:
        assert self._at is not None
        return self._at.source.refuse(
            self._at.node, "whether one of these types extends the other is not worked out", "write out the result"
        )

    def pattern(self, template: Template) -> str:
        """Return a Python pattern of a template's strings."""
        pieces = []
        for part in template.parts:
            if isinstance(part, str):
                pieces.append(re.escape(part))
                continue
            choices = []
            for member in self.reader.members(part):
                bare = self.reader.bare(member)
                text = text_of(bare)
                if text is not None:
                    choices.append(re.escape(text))
                elif bare in (STRING, ANY, UNKNOWN) or isinstance(bare, Variable):  # unknown: what `infer` did not find
                    choices.append(r"[\s\S]*")
                elif bare == NUMBER:
                    choices.append(_NUMBER_TEXT)
                elif isinstance(bare, Template):
                    choices.append(self.pattern(bare))
                else:
                    raise self._undecided()
            pieces.append(f"(?:{'|'.join(choices)})")
        return "".join(pieces)

    # -- infer -------------------------------------------------------------------------------------------------

    def _infer(self, source: Type, target: Type, found: dict[str, list[Type]]) -> None:
        """Find what the variables of a target stand for, if a source is to be one of its values."""
        if isinstance(target, Variable):
            if target.name in found:
                found[target.name].append(source)
            return
        if isinstance(target, Documented):
            return self._infer(source, target.type, found)
        if isinstance(target, Named) and isinstance(source, Named) and target.declaration is source.declaration:
            for one, other in zip(source.arguments, target.arguments, strict=True):
                self._infer(one, other, found)
            return None
        if isinstance(target, Named) and not _mentions(target):
            return None
        mine, theirs = self.reader.bare(source), self.reader.bare(target)
        if isinstance(theirs, Variable):
            self._infer(source, theirs, found)
        elif isinstance(theirs, Union):
            variables = [one for one in theirs.members if isinstance(one, Variable)]
            others = [one for one in theirs.members if not isinstance(one, Variable)]
            left = []
            for member in self.reader.members(source):
                for other in others:
                    self._infer(member, other, found)
                if not any(self.assignable(member, other) for other in others):
                    left.append(member)
            for variable in variables:
                if left:
                    found[variable.name].append(union(left))
        elif isinstance(mine, Union):
            for member in mine.members:
                self._infer(member, target, found)
        elif isinstance(theirs, AllOf):
            for member in theirs.members:
                self._infer(source, member, found)
        elif isinstance(theirs, Array) and isinstance(mine, (Array, Tuple)):
            items = [mine.item] if isinstance(mine, Array) else [_value(one) for one in mine.elements]
            self._infer(union(items), theirs.item, found)
        elif isinstance(theirs, Tuple) and isinstance(mine, (Array, Tuple)):
            self._infer_places(mine, theirs, found)
        elif isinstance(theirs, Object) and isinstance(mine, Object):
            for wanted in theirs.properties:
                known = mine.get(wanted.name)
                if known is not None:
                    self._infer(self.reader.settled(known.type), self.reader.settled(wanted.type), found)
            for index in theirs.indexes:
                own = [*(one.type for one in mine.properties), *(one.type for one in mine.indexes)]
                values = [self.reader.settled(one) for one in own]
                self._infer(union(values), self.reader.settled(index.type), found)
        elif isinstance(theirs, Function):
            call = mine.call if isinstance(mine, Object) else mine
            if isinstance(call, Function) and call.construct == theirs.construct:
                functions = self.reader.values
                self._infer(functions.parameters(call), functions.parameters(theirs), found)
                self._infer(functions.result(call), functions.result(theirs), found)
        elif isinstance(theirs, Refused) and isinstance(mine, Refused):
            if mine.name == theirs.name or (mine.name, theirs.name) == ("Promise", "PromiseLike"):
                for one, other in zip(mine.arguments, theirs.arguments, strict=False):
                    self._infer(one, other, found)
        elif isinstance(theirs, Template) and isinstance(mine, Literal) and mine.kind == "string":
            self._infer_text(mine.value, theirs, found)
        elif isinstance(theirs, Template) and isinstance(mine, (Template, Keyword)) and mine != NULL:
            raise self._refused_template(theirs)
        return None

    def _refused_template(self, template: Template) -> SchemaError:
        return template.at.source.refuse(
            template.at.node, "`infer` in a template is worked out for literals only", "write out the result"
        )

    def _infer_places(self, mine: Array | Tuple, theirs: Tuple, found: dict[str, list[Type]]) -> None:
        if isinstance(mine, Array):
            for other in theirs.elements:
                if not other.rest:
                    return
                self._infer(mine if isinstance(other.type, Variable) else mine.item, other.type, found)
            return
        elements = list(mine.elements)
        wanted = list(theirs.elements)
        while wanted and not wanted[0].rest and elements and not elements[0].rest:
            self._infer(_value(elements.pop(0)), wanted.pop(0).type, found)
        while wanted and not wanted[-1].rest and elements and not elements[-1].rest:
            self._infer(_value(elements.pop()), wanted.pop().type, found)
        if len(wanted) == 1 and wanted[0].rest:
            inner = wanted[0].type
            if isinstance(inner, Variable):
                only = elements[0] if len(elements) == 1 and elements[0].rest else None
                self._infer(Array(only.type) if only is not None else Tuple(tuple(elements)), inner, found)
            else:
                self._infer(union([_value(one) for one in elements]), inner, found)

    def _infer_text(self, text: str, template: Template, found: dict[str, list[Type]]) -> None:
        """As TypeScript: each placeholder takes the least text, one character before another placeholder."""
        at = 0
        pieces = template.parts
        for index, part in enumerate(pieces):
            if isinstance(part, str):
                if not text.startswith(part, at):
                    return
                at += len(part)
                continue
            after = pieces[index + 1] if index + 1 < len(pieces) else None
            if after is None:
                end = len(text)
            elif isinstance(after, str):
                end = text.rfind(after, at) if index + 2 == len(pieces) else text.find(after, at)
                if end < 0:
                    return
            else:
                end = at + 1
            if isinstance(part, Variable) and part.name in found:
                found[part.name].append(Literal.of(text[at:end]))
            at = end


def _mentions(type_: Type) -> bool:
    """Whether a named type has a variable among its arguments."""
    waiting: list[Any] = [type_]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Variable):
            return True
        if isinstance(part, (Named, Refused)):
            waiting += part.arguments
        elif isinstance(part, (Array,)):
            waiting.append(part.item)
        elif isinstance(part, Documented):
            waiting.append(part.type)
        elif isinstance(part, (Union, AllOf)):
            waiting += part.members
        elif isinstance(part, Tuple):
            waiting += [one.type for one in part.elements]
        elif isinstance(part, (Object, Function, Template)) or type(part).__name__ in ("Deferred", "Both"):
            return True
    return False


def _value(element: Element) -> Type:
    return union([element.type, UNDEFINED]) if element.optional else element.type
