"""Type inference in conditional types: what ``infer`` finds in the type that is checked."""

from __future__ import annotations

from typing import Any

from toolgrammar.core.errors import SchemaError

from . import model as ts
from .context import Evaluator


class Inference:
    """Inference among the types of one program.

    Args:
        reader: their evaluator.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader

    def match(self, source: ts.Type, target: ts.Type, found: dict[str, list[ts.Type]]) -> None:
        """Bind the variables of a target so that a source is assignable to it."""
        if isinstance(target, ts.Variable):
            if target.name in found:
                found[target.name].append(source)
            return
        if isinstance(target, ts.Documented):
            return self.match(source, target.type, found)
        if isinstance(target, ts.Named) and isinstance(source, ts.Named) and target.declaration is source.declaration:
            for one, other in zip(source.arguments, target.arguments, strict=True):
                self.match(one, other, found)
            return None
        if isinstance(target, ts.Named) and not _mentions(target):
            return None
        mine, theirs = self.reader.bare(source), self.reader.bare(target)
        if isinstance(theirs, ts.Variable):
            self.match(source, theirs, found)
        elif isinstance(theirs, ts.Union):
            variables = [one for one in theirs.members if isinstance(one, ts.Variable)]
            others = [one for one in theirs.members if not isinstance(one, ts.Variable)]
            left = []
            for member in self.reader.members(source):
                for other in others:
                    self.match(member, other, found)
                if not any(self.reader.relations.assignable(member, other) for other in others):
                    left.append(member)
            for variable in variables:
                if left:
                    found[variable.name].append(ts.union(left))
        elif isinstance(mine, ts.Union):
            for member in mine.members:
                self.match(member, target, found)
        elif isinstance(theirs, ts.AllOf):
            for member in theirs.members:
                self.match(source, member, found)
        elif isinstance(theirs, ts.Array) and isinstance(mine, (ts.Array, ts.Tuple)):
            items = [mine.item] if isinstance(mine, ts.Array) else [ts.element_type(one) for one in mine.elements]
            self.match(ts.union(items), theirs.item, found)
        elif isinstance(theirs, ts.Tuple) and isinstance(mine, (ts.Array, ts.Tuple)):
            self._infer_places(mine, theirs, found)
        elif isinstance(theirs, ts.Object) and isinstance(mine, ts.Object):
            for wanted in theirs.properties:
                mine_property = mine.get(wanted.name)
                if mine_property is not None:
                    self.match(self.reader.settled(mine_property.type), self.reader.settled(wanted.type), found)
            for index in theirs.indexes:
                own = [*(one.type for one in mine.properties), *(one.type for one in mine.indexes)]
                values = [self.reader.settled(one) for one in own]
                self.match(ts.union(values), self.reader.settled(index.type), found)
        elif isinstance(theirs, ts.Function):
            call = mine.call if isinstance(mine, ts.Object) else mine
            if isinstance(call, ts.Function) and call.construct == theirs.construct:
                functions = self.reader.values
                self.match(functions.parameters(call), functions.parameters(theirs), found)
                self.match(functions.result(call), functions.result(theirs), found)
        elif isinstance(theirs, ts.Refused) and isinstance(mine, ts.Refused):
            if mine.name == theirs.name or (mine.name, theirs.name) == ("Promise", "PromiseLike"):
                for one, other in zip(mine.arguments, theirs.arguments, strict=False):
                    self.match(one, other, found)
        elif isinstance(theirs, ts.Template) and isinstance(mine, ts.Literal) and mine.kind == "string":
            self._infer_text(mine.value, theirs, found)
        elif isinstance(theirs, ts.Template) and isinstance(mine, (ts.Template, ts.Keyword)) and mine != ts.NULL:
            raise self._refused_template(theirs)
        return None

    def _refused_template(self, template: ts.Template) -> SchemaError:
        return template.at.source.refuse(
            template.at.node, "`infer` in a template is only evaluated for literals", "write out the result"
        )

    def _infer_places(self, mine: ts.Array | ts.Tuple, theirs: ts.Tuple, found: dict[str, list[ts.Type]]) -> None:
        if isinstance(mine, ts.Array):
            for other in theirs.elements:
                if not other.rest:
                    return
                self.match(mine if isinstance(other.type, ts.Variable) else mine.item, other.type, found)
            return
        elements = list(mine.elements)
        wanted = list(theirs.elements)
        while wanted and not wanted[0].rest and elements and not elements[0].rest:
            self.match(ts.element_type(elements.pop(0)), wanted.pop(0).type, found)
        while wanted and not wanted[-1].rest and elements and not elements[-1].rest:
            self.match(ts.element_type(elements.pop()), wanted.pop().type, found)
        if len(wanted) == 1 and wanted[0].rest:
            inner = wanted[0].type
            if isinstance(inner, ts.Variable):
                only = elements[0] if len(elements) == 1 and elements[0].rest else None
                self.match(ts.Array(only.type) if only is not None else ts.Tuple(tuple(elements)), inner, found)
            else:
                self.match(ts.union([ts.element_type(one) for one in elements]), inner, found)

    def _infer_text(self, text: str, template: ts.Template, found: dict[str, list[ts.Type]]) -> None:
        """Match a text as TypeScript does: each placeholder takes the least text, one character before another one."""
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
            if isinstance(part, ts.Variable) and part.name in found:
                found[part.name].append(ts.Literal.of(text[at:end]))
            at = end


def _mentions(type_: ts.Type) -> bool:
    """Return True if a named type has a variable among its arguments."""
    waiting: list[Any] = [type_]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ts.Variable):
            return True
        if isinstance(part, (ts.Named, ts.Refused)):
            waiting += part.arguments
        elif isinstance(part, (ts.Array,)):
            waiting.append(part.item)
        elif isinstance(part, ts.Documented):
            waiting.append(part.type)
        elif isinstance(part, (ts.Union, ts.AllOf)):
            waiting += part.members
        elif isinstance(part, ts.Tuple):
            waiting += [one.type for one in part.elements]
        elif isinstance(part, (ts.Object, ts.Function, ts.Template)) or type(part).__name__ in ("Deferred", "Both"):
            return True
    return False
