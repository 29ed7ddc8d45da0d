"""Which types are parts of which, as far as unions and intersections of plain types need it.

Objects, arrays and functions are compared for equality only: conditional types, for which TypeScript compares their
members, are refused (`types`).
"""

from __future__ import annotations

import re

from . import model as ts
from .context import Evaluator

_NUMBER_TEXT = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"


class Relations:
    """How the types of one program relate to each other.

    Args:
        reader: their evaluator.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader

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

    def belongs(self, member: ts.Type, union: ts.Type, at: ts.At) -> bool:
        """Return True if a member of a union is among the members of another one.

        Raises:
            UnsupportedSchemaError: that depends on the members of objects, arrays or functions; at this place.
        """
        others = self.reader.members(union, at)
        if any(self.narrower(member, other) for other in others):
            return True
        bare = [self.reader.bare(one, at) for one in (member, *others)]
        for one in bare:
            if isinstance(one, ts.Refused) and one.unknown is not None:
                raise one.at.source.refuse(one.at.node, one.reason, one.hint)
        if is_plain(bare[0]) or all(map(is_plain, bare[1:])):
            return False
        raise at.source.refuse(
            at.node, "members are compared here if they are literals or plain types", "write out the result"
        )

    def overlap(self, first: ts.Type, second: ts.Type) -> bool:
        """Return True if two types that are neither objects nor unions may have a value in common."""
        return (
            self.narrower(first, second)
            or self.narrower(second, first)
            or (isinstance(first, ts.Template) and isinstance(second, ts.Template))
        )

    def narrower(self, first: ts.Type, second: ts.Type) -> bool:
        """Return True if the first type is the second, or a plain type that is a part of it."""
        if first == second:
            return True
        mine, theirs = self.reader.bare(first), self.reader.bare(second)
        if theirs in (mine, ts.ANY, ts.UNKNOWN) or mine == ts.NEVER:
            return True
        if isinstance(mine, ts.Literal):
            if isinstance(theirs, ts.Template):
                return mine.kind == "string" and re.fullmatch(self.pattern(theirs), mine.value) is not None
            if isinstance(theirs, ts.Literal):  # a member of an enum is a plain value, too
                return theirs.enum is None and (mine.kind, mine.value) == (theirs.kind, theirs.value)
            return isinstance(theirs, ts.Keyword) and theirs.name == mine.kind
        return (isinstance(mine, ts.Template) and theirs == ts.STRING) or (mine == ts.UNDEFINED and theirs == ts.VOID)

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
                elif bare in (ts.STRING, ts.ANY):
                    choices.append(r"[\s\S]*")
                elif bare == ts.NUMBER:
                    choices.append(_NUMBER_TEXT)
                elif isinstance(bare, ts.Template):
                    choices.append(self.pattern(bare))
                else:
                    at = template.at
                    raise at.source.refuse(at.node, "a part of this template has no text", "use string or number in it")
            pieces.append(f"(?:{'|'.join(choices)})")
        return "".join(pieces)


def is_plain(type_: ts.Type) -> bool:
    """Return True for a type without members: a literal, a template or a keyword."""
    return isinstance(type_, (ts.Literal, ts.Template)) or (isinstance(type_, ts.Keyword) and type_ != ts.OBJECT)
