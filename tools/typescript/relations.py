"""Conditional types of TypeScript: which type extends which.

The rules are TypeScript's assignability under ``strict``. Where they are not implemented (overloaded functions,
templates against templates), the conditional type is refused, not guessed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolgrammar.core.errors import SchemaError

from . import model as ts
from .context import Evaluator
from .inference import Inference
from .source import child_of, has_word, parts, walk

if TYPE_CHECKING:
    from tree_sitter import Node


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
_FUNCTION_MEMBERS = frozenset(
    {"apply", "arguments", "bind", "call", "caller", "length", "name", "prototype", "toString"}
)
_NUMBER_TEXT = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"


class Relations:
    """How the types of one program relate to each other.

    Args:
        reader: their evaluator.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader
        self._inference = Inference(reader)
        self._assumed: set[tuple[ts.Type, ts.Type]] = set()
        self._at: ts.At | None = None

    # -- conditional types -------------------------------------------------------------------------------------

    def conditional(self, node: Node, scope: ts.Scope) -> ts.Type:
        """Return the branches that ``T extends U ? X : Y`` takes, for each member of ``T`` if that is a parameter."""
        left = child_of(node, "left")
        for name in ("consequence", "alternative"):
            scope.source.postpone(child_of(node, name))
        check = self.reader.type(left, scope)
        name = scope.source.text(left)
        if left.type != "type_identifier" or name not in scope.types:
            return self._branch(check, node, scope)
        members = self.reader.distributed(check, scope.at(left))
        if len(members) == 1:
            return self._branch(members[0], node, scope)
        return ts.union([self._branch(member, node, scope.with_types({name: member})) for member in members])

    def _branch(self, check: ts.Type, node: Node, scope: ts.Scope) -> ts.Type:
        reader = self.reader
        right = child_of(node, "right")
        at = scope.at(right)
        wanted = {scope.source.text(parts(one)[0]): one for one in walk(right) if one.type == "infer_type"}
        inner = scope
        target = reader.type(right, scope.with_types({name: ts.Variable(name) for name in wanted}))
        if wanted:
            bindings: dict[str, list[ts.Type]] = {name: [] for name in wanted}
            self._inference.match(check, target, bindings)
            inner = scope.with_types(
                {name: ts.union(types) if types else ts.UNKNOWN for name, types in bindings.items()}
            )
            target = reader.type(right, inner)
        bare = reader.bare(check, at)
        if bare == ts.ANY and reader.bare(target) not in (ts.ANY, ts.UNKNOWN):
            return ts.union([self._taken(node, "consequence", inner), self._taken(node, "alternative", scope)])
        holds = self.decided(check, target, at)
        for name, one in wanted.items():
            limit = parts(one)[1:]
            if holds and limit and not self.decided(inner.types[name], reader.type(limit[0], inner), at):
                holds = False
        return self._taken(node, "consequence", inner) if holds else self._taken(node, "alternative", scope)

    def _taken(self, node: Node, name: str, scope: ts.Scope) -> ts.Type:
        branch = child_of(node, name)
        scope.source.begin(branch)
        return self.reader.type(branch, scope)

    def without_null(self, type_: ts.Type) -> ts.Type:
        """Return the type without ``null`` and ``undefined``."""
        bare = self.reader.bare(type_)
        if bare in (ts.UNKNOWN, ts.ANY):
            return bare
        members = self.reader.members(type_)
        kept = [member for member in members if self.reader.bare(member) not in (ts.NULL, ts.UNDEFINED, ts.VOID)]
        return self.whole(type_, kept)

    def whole(self, type_: ts.Type, kept: list[ts.Type]) -> ts.Type:
        """Return the kept members of a union; the union itself, name and comments included, if all are."""
        return type_ if len(kept) == len(self.reader.distributed(type_)) else ts.union(kept)

    # -- assignability -----------------------------------------------------------------------------------------

    def decided(self, first: ts.Type, second: ts.Type, at: ts.At) -> bool:
        """Return True if ``first extends second``.

        Raises:
            UnsupportedSchemaError: that is not worked out here; at this place.
        """
        before, self._at = self._at, at
        try:
            return self.assignable(first, second)
        finally:
            self._at = before

    def overlap(self, first: ts.Type, second: ts.Type) -> bool:
        """Return True if two types that are neither objects nor unions may have a value in common."""
        return (
            self.narrower(first, second)
            or self.narrower(second, first)
            or (isinstance(first, ts.Template) and isinstance(second, ts.Template))
        )

    def narrower(self, first: ts.Type, second: ts.Type) -> bool:
        """Return True if the first type is a part of the second; `assignable`, but for TypeScript's leniency."""
        if isinstance(first, ts.Literal) and isinstance(second, ts.Literal):
            return first == second
        return not (first == ts.NUMBER and isinstance(second, ts.Literal)) and self.assignable(first, second)

    def assignable(self, first: ts.Type, second: ts.Type) -> bool:
        """Return True if every value of the first type is one of the second."""
        if first == second or (first, second) in self._assumed:
            return True
        reader = self.reader
        mine, theirs = reader.bare(first), reader.bare(second)
        if theirs in (mine, ts.ANY, ts.UNKNOWN) or isinstance(theirs, ts.Variable) or mine == ts.NEVER:
            return True
        if theirs == ts.NEVER:
            return False
        self._check_known(mine, theirs)
        if mine == ts.ANY:
            return True
        if isinstance(mine, ts.Union):
            return all(self.assignable(member, second) for member in reader.distributed(mine))
        if isinstance(mine, ts.Object) and reader.impossible(mine):
            return True
        if isinstance(theirs, ts.AllOf):
            return all(self.assignable(first, member) for member in theirs.members)
        if isinstance(theirs, ts.Union):
            if mine == ts.BOOLEAN and all(ts.Literal.of(v) in reader.members(theirs) for v in (True, False)):
                return True
            return any(self.assignable(first, member) for member in theirs.members)
        if isinstance(mine, ts.AllOf):
            return any(self.assignable(member, second) for member in mine.members)
        if mine == ts.UNDEFINED and theirs == ts.VOID:
            return True
        if mine in (ts.NULL, ts.UNDEFINED, ts.VOID) or theirs in (ts.NULL, ts.UNDEFINED, ts.VOID):
            return False
        if theirs == ts.OBJECT:
            return isinstance(mine, (ts.Object, ts.Array, ts.Tuple, ts.Function)) or (
                isinstance(mine, ts.Refused) and mine.name not in ("symbol", "bigint")
            )
        if isinstance(theirs, ts.Object) and not (theirs.properties or theirs.indexes or theirs.call):
            return mine != ts.UNKNOWN
        pair = (first, second)
        self._assumed.add(pair)
        try:
            return self._structural(mine, theirs)
        finally:
            self._assumed.discard(pair)

    def _structural(self, mine: ts.Type, theirs: ts.Type) -> bool:
        if mine == ts.OBJECT:
            mine = ts.Object(declared=True)
        if mine == ts.NUMBER and isinstance(theirs, ts.Literal):
            return theirs.kind == "number" and theirs.enum is not None  # numbers may be flags of an enum
        if isinstance(mine, ts.Literal):
            if isinstance(theirs, ts.Keyword):
                return theirs.name == mine.kind
            if isinstance(theirs, ts.Literal):
                return self._literals(mine, theirs)
            if isinstance(theirs, ts.Template):
                return mine.kind == "string" and re.fullmatch(self.pattern(theirs), mine.value) is not None
        if isinstance(mine, ts.Template):
            if theirs == ts.STRING:
                return True
            if isinstance(theirs, ts.Template):
                raise self._undecided()
        if isinstance(mine, (ts.Literal, ts.Keyword, ts.Template)):
            return isinstance(theirs, ts.Object) and self._primitive(mine, theirs)
        if isinstance(theirs, ts.Refused) and theirs.name == "Function":
            called = isinstance(mine, ts.Object) and mine.call is not None
            return called or isinstance(mine, ts.Function) or mine == theirs
        if isinstance(mine, ts.Function) or isinstance(theirs, ts.Function):
            return self._functions(mine, theirs)
        if isinstance(mine, (ts.Array, ts.Tuple)):
            return self._arrays(mine, theirs)
        if isinstance(mine, ts.Object) and isinstance(theirs, ts.Object):
            return self._objects(mine, theirs)
        if isinstance(mine, ts.Refused) and isinstance(theirs, ts.Refused):
            same = mine.name == theirs.name or (mine.name, theirs.name) == ("Promise", "PromiseLike")
            pairs = zip(mine.arguments, theirs.arguments, strict=False)
            return same and all(self.assignable(one, other) for one, other in pairs)
        if isinstance(mine, ts.Refused) and isinstance(theirs, ts.Object):
            raise self._undecided()
        return False

    def _literals(self, mine: ts.Literal, theirs: ts.Literal) -> bool:
        """Relate two different literals: a member of an enum is also a plain value, but not conversely."""
        if (mine.kind, mine.value) != (theirs.kind, theirs.value):
            return False
        if mine.enum is None or theirs.enum is None:
            return theirs.enum is None or mine.kind == "number"
        one, other = mine.enum, theirs.enum
        if one is other:
            return True
        if one.name != other.name or any(has_word(node, "const") for node in (*one.nodes, *other.nodes)):
            return False
        return self.reader.values.enum_values(one).items() <= self.reader.values.enum_values(other).items()

    def _primitive(self, mine: ts.Literal | ts.Keyword | ts.Template, theirs: ts.Object) -> bool:
        """Return a string, number or boolean as an object: it has the members of its class."""
        if theirs.call is not None:
            return False
        texts = mine != ts.BOOLEAN and mine != ts.NUMBER and (not isinstance(mine, ts.Literal) or mine.kind == "string")
        for index in theirs.indexes:
            if not (texts and self.reader.bare(index.key) == ts.NUMBER and self.assignable(ts.STRING, index.type)):
                return False
        members = [one for one in theirs.properties if one.name in _STRING_MEMBERS]
        if any(not one.optional and one.name not in _STRING_MEMBERS for one in theirs.properties):
            return False
        for one in members:
            if one.name != "length" or not texts:
                raise self._undecided()
            if not self.assignable(ts.NUMBER, one.type):
                return False
        return bool(members or theirs.indexes)

    def _arrays(self, mine: ts.Array | ts.Tuple, theirs: ts.Type) -> bool:
        if isinstance(theirs, ts.Object):
            if theirs.call is not None:
                return False
            members = {"length", *_ARRAY_MEMBERS}
            if self._weak(theirs) and not any(one.name in members for one in theirs.properties):
                return False
            for wanted in theirs.properties:
                if wanted.name == "length":
                    if not self.assignable(self._length(mine), wanted.type):
                        return False
                elif wanted.name in _ARRAY_MEMBERS:
                    raise self._undecided()
                elif not wanted.optional:
                    return False
            return all(
                index.key == ts.NUMBER and self._arrays(mine, ts.Array(index.type, readonly=True))
                for index in self._asked(theirs)
            )
        if not isinstance(theirs, (ts.Array, ts.Tuple)) or (mine.readonly and not theirs.readonly):
            return False
        own = (ts.Element(mine.item, rest=True),) if isinstance(mine, ts.Array) else mine.elements
        if isinstance(theirs, ts.Array):
            return self.assignable(ts.union([ts.element_type(one) for one in own]), theirs.item)
        return self._places(own, theirs.elements)

    def _places(self, mine: tuple[ts.Element, ...], theirs: tuple[ts.Element, ...]) -> bool:
        """Relate the elements of two tuples: elements before a rest from the start, elements after it from the end."""
        rests = [index for index, one in enumerate(theirs) if one.rest]
        if len(rests) > 1 or sum(one.rest for one in mine) > 1:
            raise self._undecided()
        if not any(one.rest for one in mine) and len(mine) < _least(theirs):
            return False
        if not rests and (any(one.rest for one in mine) or len(mine) > len(theirs)):
            return False
        for index, one in enumerate(mine):
            place = index
            if rests and index >= rests[0]:
                after = len(theirs) - 1 - rests[0]
                place = len(theirs) - 1 - min(len(mine) - 1 - index, after)
            other = theirs[place]
            needed = not other.optional and not other.rest
            if needed and (one.optional or one.rest):
                return False
            if not self.assignable(ts.element_type(one), ts.element_type(other)):
                return False
        return True

    def _weak(self, type_: ts.Object) -> bool:
        """Return True if all properties are optional: TypeScript takes a value without any of them for a mistake."""
        plain = not type_.indexes and type_.call is None
        return plain and bool(type_.properties) and all(one.optional for one in type_.properties)

    def _asked(self, type_: ts.Object) -> list[ts.Index]:
        """Return the index signatures that constrain an object: beside a signature of all strings, others of ``any`` do
        not."""
        bare = self.reader.bare
        texts = any(bare(index.key) == ts.STRING for index in type_.indexes)
        return [index for index in type_.indexes if not (texts and bare(index.type) == ts.ANY)]

    def _objects(self, mine: ts.Object, theirs: ts.Object) -> bool:
        if theirs.call is not None and (mine.call is None or not self._functions(mine.call, theirs.call)):
            return False
        own = mine.properties or mine.call is not None
        if own and self._weak(theirs) and not any(mine.get(one.name) for one in theirs.properties):
            return False
        for one in theirs.properties:
            own_property = mine.get(one.name)
            if own_property is None:
                if mine.call is not None and one.name in _FUNCTION_MEMBERS:
                    raise self._undecided()
                if not one.optional:
                    return False
                continue
            if own_property.optional and not one.optional and not self.reader.undefined(one.type):
                return False
            target = ts.union([one.type, ts.UNDEFINED]) if one.optional else one.type
            if not self.assignable(own_property.type, target):
                return False
        return all(self._index(mine, index) for index in self._asked(theirs))

    def _index(self, mine: ts.Object, wanted: ts.Index) -> bool:
        """Return True if an object follows an index signature: by its own, or else by its properties, if TypeScript
        sees that it has no others."""
        key = self.reader.bare(wanted.key)
        own = [(self.reader.bare(index.key), index.type) for index in mine.indexes]
        same = [type_ for own_key, type_ in own if _covers(own_key, key)]
        if same:
            return any(self.assignable(type_, wanted.type) for type_ in same)
        if mine.declared or mine.call is not None:
            return False
        for one in mine.properties:
            if self.reader.objects.indexed(ts.Object(indexes=(wanted,)), one.name) is not None:
                type_ = one.type
                if one.optional and key == ts.NUMBER:
                    type_ = ts.union([type_, ts.UNDEFINED])
                elif self.reader.bare(type_) != ts.UNDEFINED:
                    kept = [member for member in self.reader.members(type_) if self.reader.bare(member) != ts.UNDEFINED]
                    type_ = ts.union(kept) if one.optional else type_
                if not self.assignable(type_, wanted.type):
                    return False
        return all(self.assignable(type_, wanted.type) for own_key, type_ in own if _covers(key, own_key))

    def _functions(self, mine: ts.Type, theirs: ts.Type) -> bool:
        if not (isinstance(mine, ts.Function) and isinstance(theirs, ts.Function)):
            if isinstance(mine, ts.Object) and mine.call is not None and isinstance(theirs, ts.Function):
                return self._functions(mine.call, theirs)
            if isinstance(mine, ts.Function) and isinstance(theirs, ts.Object):
                if theirs.call is not None and not self._functions(mine, theirs.call):
                    return False
                if not theirs.properties and not theirs.indexes:
                    return True
                if (
                    self._weak(theirs)
                    or self._asked(theirs)
                    or any(not one.optional and one.name not in _FUNCTION_MEMBERS for one in theirs.properties)
                ):
                    return False
                raise self._undecided()
            return False
        if mine.construct != theirs.construct:
            return False
        if mine.overloaded or theirs.overloaded:
            raise self._undecided()
        values = self.reader.values
        result = values.result(theirs)
        if result != ts.VOID and not self.assignable(values.result(mine), result):
            return False
        wanted, given = values.parameters(theirs), values.parameters(mine)
        if isinstance(wanted, ts.Array) and self.reader.bare(wanted.item) in (ts.ANY, ts.NEVER):
            return True
        mine_parameters = given.elements if isinstance(given, ts.Tuple) else None
        their_parameters = wanted.elements if isinstance(wanted, ts.Tuple) else None
        if (
            mine_parameters is None
            or their_parameters is None
            or any(one.rest for one in (*mine_parameters, *their_parameters))
        ):
            raise self._undecided()
        if sum(not one.optional for one in mine_parameters) > len(their_parameters):
            return False
        lenient = theirs.node.type in ("method_signature", "method_definition", "abstract_method_signature")
        for own, wanted_one in zip(mine_parameters, their_parameters, strict=False):
            one, other = ts.element_type(own), ts.element_type(wanted_one)
            if not (self.assignable(other, one) or (lenient and self.assignable(one, other))):
                return False
        return True

    def _length(self, array: ts.Array | ts.Tuple) -> ts.Type:
        assert self._at is not None
        return self.reader.objects.lookup(array, ts.Literal.of("length"), self._at, self._at)

    def _check_known(self, *types: ts.Type) -> None:
        """Refuse an unknown type: a type of a file that was not given, or the result of a call."""
        for type_ in types:
            if isinstance(type_, ts.Refused) and type_.unknown is not None:
                raise type_.at.source.refuse(type_.at.node, type_.reason, type_.hint)

    def _undecided(self) -> SchemaError:
        assert self._at is not None
        return self._at.source.refuse(
            self._at.node, "whether one of these types extends the other is not worked out", "write out the result"
        )

    def pattern(self, template: ts.Template) -> str:
        """Return a Python pattern of a template's strings."""
        pieces = []
        for part in template.parts:
            if isinstance(part, str):
                pieces.append(re.escape(part))
                continue
            choices = []
            for member in self.reader.members(part):
                bare = self.reader.bare(member)
                text = ts.text_of(bare)
                if text is not None:
                    choices.append(re.escape(text))
                elif bare in (ts.STRING, ts.ANY, ts.UNKNOWN) or isinstance(bare, ts.Variable):
                    # UNKNOWN is a variable of `infer` for which nothing was found.
                    choices.append(r"[\s\S]*")
                elif bare == ts.NUMBER:
                    choices.append(_NUMBER_TEXT)
                elif isinstance(bare, ts.Template):
                    choices.append(self.pattern(bare))
                else:
                    raise self._undecided()
            pieces.append(f"(?:{'|'.join(choices)})")
        return "".join(pieces)


def _least(elements: tuple[ts.Element, ...]) -> int:
    """Return the minimum number of items of a tuple."""
    return max((index + 1 for index, one in enumerate(elements) if not one.optional and not one.rest), default=0)


def _covers(known: ts.Type, key: ts.Type) -> bool:
    """Return True if an index signature of the keys ``known`` covers the keys ``key``."""
    return known == key or (known == ts.STRING and (key == ts.NUMBER or isinstance(key, ts.Template)))
