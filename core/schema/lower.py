"""From normal form to grammar nodes, lazily: a subschema is lowered when a text reaches it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import LimitError
from ..language.charset import CharSet
from ..language.nodes import Nodes
from ..language.regex import regex_term
from .conjunction import ArrayPart, Conjunction, Goal, Normaliser, ObjectPart, same_value, type_of
from .formats import format_term
from .numbers import Numbers
from .options import SchemaOptions
from .resolve import Document, Located

#: Longest run of whitespace that the ``flexible`` policy takes between two tokens of JSON.
MAX_SPACES = 20

#: How many regions the patterns of one object may make.
MAX_REGIONS = 256

_TRUE = Located(True, "")
_FALSE = Located(False, "")


@dataclass(frozen=True)
class Member:
    """A declared property."""

    name: str
    goal: Goal
    required: bool


@dataclass(frozen=True)
class Region:
    """Undeclared names that the same schemas speak of: their language (a term), and what their values must be."""

    names: int
    goal: Goal


@dataclass(frozen=True)
class ObjectShape:
    """Objects of a conjunction: declared members in order, regions of other members, and its number."""

    members: tuple[Member, ...]
    others: tuple[Region, ...]
    number: int


class Lowering:
    """Lowers one document into one node store."""

    def __init__(self, document: Document, options: SchemaOptions, nodes: Nodes) -> None:
        self.normaliser = Normaliser(document)
        self.options = options
        self.nodes = nodes
        #: Part of the name of every rule: several documents may be lowered into one store.
        self.number = len(nodes.builders)
        self.numbers = Numbers(nodes.terms)
        flexible = options.whitespace == "flexible"
        spaces = nodes.terms.repeat(nodes.terms.chars(CharSet.of(" \t\n\r")), 0, MAX_SPACES)
        self.space = nodes.text(spaces) if flexible else nodes.EPSILON
        gap = b"" if options.whitespace == "compact" or flexible else b" "
        self._shapes: dict[tuple[ObjectPart, ...], ObjectShape] = {}
        #: What stands between two items or members: ``,`` and around it, as bytes where it has only one spelling.
        self.comma = b"," + gap
        self.colon = b":" + gap

    def root(self) -> int:
        """The node of the whole document."""
        return self.value((self.normaliser.document.root,))

    def value(self, goal: Goal) -> int:
        """The JSON texts for which all subschemas of a goal hold."""
        wanted = tuple(dict.fromkeys(part for part in goal if part.schema is not True and part.schema != {}))
        if any(part.schema is False for part in wanted):
            return self.nodes.EMPTY
        return self.nodes.lazy(("value", self.number, wanted), lambda: self._value(wanted))

    def _value(self, goal: Goal) -> int:
        nodes = self.nodes
        branches = self.normaliser.branches(goal)
        return nodes.alt([self._branch(branch) for branch in branches])

    def _branch(self, branch: Conjunction) -> int:
        nodes = self.nodes
        if branch.values is not None:
            listed = [value for value in branch.values if self.holds(branch, value)]
            if self.options.whitespace != "flexible":
                return nodes.words({self._spell(value): nodes.EPSILON for value in listed})
            # Objects and arrays may be spaced: they are no plain words then.
            simple = [value for value in listed if not isinstance(value, (dict, list, tuple)) or not value]
            spaced = [self._spaced(value) for value in listed if isinstance(value, (dict, list, tuple)) and value]
            return nodes.alt([nodes.words({self._spell(value): nodes.EPSILON for value in simple}), *spaced])
        parts = []
        types = branch.types
        if "object" in types:
            parts.append(self._object(branch))
        if "array" in types:
            parts.append(self._array(branch))
        if "string" in types:
            parts.append(self._string(branch))
        if "number" in types and not branch.number.is_empty:
            any_spelling = self.options.whitespace == "flexible"
            parts.append(nodes.text(self.numbers.term(branch.number, any_spelling=any_spelling)))
        if "boolean" in types:
            parts.append(nodes.words({b"true": nodes.EPSILON, b"false": nodes.EPSILON}))
        if "null" in types:
            parts.append(nodes.literal(b"null"))
        return nodes.alt(parts)

    def _spell(self, value: Any) -> bytes:
        """The one spelling of a listed value."""
        return json.dumps(
            value, ensure_ascii=False, separators=(self.comma.decode(), self.colon.decode()), allow_nan=False
        ).encode("utf-8", "surrogatepass")

    def _spaced(self, value: Any) -> int:
        """A listed value with any whitespace between its tokens."""
        nodes = self.nodes
        if isinstance(value, dict):
            items = [
                nodes.sequence([nodes.literal(self._key(name)), self._colon(), self._spaced(item)])
                for name, item in value.items()
            ]
            opening, closing = b"{", b"}"
        elif isinstance(value, (list, tuple)):
            items = [self._spaced(item) for item in value]
            opening, closing = b"[", b"]"
        else:
            return nodes.literal(self._spell(value))
        parts = [nodes.literal(opening), self.space]
        for index, item in enumerate(items):
            if index:
                parts += [nodes.literal(self.comma), self.space]
            parts += [item, self.space]
        return nodes.sequence([*parts, nodes.literal(closing)])

    # -- strings -----------------------------------------------------------------------------------------------

    def _string_term(self, branch: Conjunction) -> int:
        terms = self.nodes.terms
        parts = [regex_term(terms, pattern, whole=False) for pattern in branch.patterns]
        parts += [format_term(terms, name) for name in branch.formats]
        if branch.min_length or branch.max_length is not None:
            parts.append(terms.repeat(terms.ANY, branch.min_length, branch.max_length))
        return terms.and_(parts)

    def _string(self, branch: Conjunction) -> int:
        return self.nodes.json_string(self._string_term(branch))

    # -- objects -----------------------------------------------------------------------------------------------

    def _shape(self, parts: tuple[ObjectPart, ...]) -> ObjectShape:
        """Merge what several schemas say of objects; made once."""
        found = self._shapes.get(parts)
        if found is None:
            found = self._shapes[parts] = self._merge(parts)
        return found

    def _merge(self, parts: tuple[ObjectPart, ...]) -> ObjectShape:
        closed = (
            not self.options.additional_properties
            and any(part.names_properties or part.patterns for part in parts)
            and all(part.additional is None for part in parts)
        )
        names = dict.fromkeys(name for part in parts for name in part.properties)
        required = {name for part in parts for name in part.required}
        names.update(dict.fromkeys(name for part in parts for name in part.required))
        members = []
        for name in names:
            goal: list[Located] = []
            declared = False
            for part in parts:
                named = [part.properties[name]] if name in part.properties else []
                named += [schema for pattern, schema in part.patterns.items() if self._has(pattern, name)]
                declared = declared or bool(named)
                if not named and part.additional is not None:
                    named = [part.additional]
                goal += named
            if closed and not declared:
                goal.append(_FALSE)
            members.append(Member(name, tuple(goal), name in required))
        return ObjectShape(tuple(members), self._regions(parts, list(names), closed), len(self._shapes))

    def _has(self, pattern: str, name: str) -> bool:
        terms = self.nodes.terms
        return terms.matches(regex_term(terms, pattern, whole=False), name)

    def _regions(self, parts: tuple[ObjectPart, ...], names: list[str], closed: bool) -> tuple[Region, ...]:
        """Split the undeclared names by the patterns that match them; regions that hold no name are dropped."""
        terms = self.nodes.terms
        split: list[tuple[int, frozenset[str]]] = [
            (terms.not_(terms.words(names)) if names else terms.ALL, frozenset())
        ]
        for pattern in dict.fromkeys(pattern for part in parts for pattern in part.patterns):
            matching = regex_term(terms, pattern, whole=False)
            finer = []
            for language, matched in split:
                finer.append((terms.and_([language, matching]), matched | {pattern}))
                finer.append((terms.and_([language, terms.not_(matching)]), matched))
            split = [(language, matched) for language, matched in finer if not terms.is_empty(language)]
            if len(split) > MAX_REGIONS:
                raise LimitError(
                    f"the patternProperties of an object overlap in more than {MAX_REGIONS} ways",
                    hint="make the patterns exclude each other",
                )
        regions = []
        for language, matched in split:
            goal: list[Located] = []
            for part in parts:
                speaking = [schema for pattern, schema in part.patterns.items() if pattern in matched]
                if not speaking and part.additional is not None:
                    speaking = [part.additional]
                goal += speaking
            if (closed and not matched) or any(schema.schema is False for schema in goal):
                continue
            regions.append(Region(language, tuple(goal)))
        return tuple(regions)

    def _object(self, branch: Conjunction) -> int:
        nodes = self.nodes
        shape = self._shape(branch.objects)
        return nodes.sequence([nodes.literal(b"{"), self.space, self._members(shape, 0, True)])

    def _members(self, shape: ObjectShape, index: int, first: bool) -> int:
        """What may stand after ``{`` (``first``) or after a member, when members from ``index`` on are to come."""
        key = ("members", self.number, shape.number, index, first)
        return self.nodes.lazy(key, lambda: self._expand_members(shape, index, first))

    def _expand_members(self, shape: ObjectShape, index: int, first: bool) -> int:
        nodes = self.nodes
        before = b"" if first else self.comma
        entries: list[tuple[bytes, int]] = []
        may_end = True
        flexible = self.space != nodes.EPSILON
        # With one spelling, the comma belongs to each key's literal; else it stands apart, with spaces around it.
        lead = b"" if flexible else before
        for number in range(index, len(shape.members)):
            member = shape.members[number]
            node = nodes.seq(self.value(member.goal), self._after_member(shape, number + 1))
            entries.append((lead + self._key(member.name), nodes.seq(self._colon(), node)))
            if member.required:
                may_end = False
                break
        keys = nodes.words(entries)
        if may_end:
            others = [
                nodes.sequence(
                    [
                        nodes.literal(lead),
                        self._other_key(region),
                        self._colon(),
                        self.value(region.goal),
                        self._after_member(shape, len(shape.members)),
                    ]
                )
                for region in shape.others
            ]
            keys = nodes.alt([keys, *others])
        if flexible and not first:
            keys = nodes.sequence([nodes.literal(self.comma), self.space, keys])
        # The end first: it decides at once that the language is not empty.
        return nodes.alt([nodes.literal(b"}"), keys] if may_end else [keys])

    def _after_member(self, shape: ObjectShape, index: int) -> int:
        return self.nodes.seq(self.space, self._members(shape, index, False))

    def _key(self, name: str) -> bytes:
        """A property name, with its colon where that has only one spelling."""
        spelled = json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return spelled if self.options.whitespace == "flexible" else spelled + self.colon

    def _colon(self) -> int:
        nodes = self.nodes
        if self.options.whitespace != "flexible":
            return nodes.EPSILON
        return nodes.sequence([self.space, nodes.literal(b":"), self.space])

    def _other_key(self, region: Region) -> int:
        """Names that are not declared, compared as they read, however they are escaped."""
        key = self.nodes.json_string(region.names)
        if self.options.whitespace == "flexible":
            return key
        return self.nodes.seq(key, self.nodes.literal(self.colon))

    # -- arrays ------------------------------------------------------------------------------------------------

    def _array(self, branch: Conjunction) -> int:
        nodes = self.nodes
        parts = branch.arrays
        least = max((part.least for part in parts), default=0)
        most = min((part.most for part in parts if part.most is not None), default=None)
        if most is not None and least > most:
            return nodes.EMPTY
        return nodes.sequence([nodes.literal(b"["), self.space, self._items(parts, least, most, 0)])

    def _items(self, parts: tuple[ArrayPart, ...], least: int, most: int | None, count: int) -> int:
        """What may stand after ``[`` (``count`` 0) or after the item number ``count``."""
        fixed = max((len(part.prefix) for part in parts), default=0)
        # Beyond the prefix, positions differ only in how many items are still needed and how many are still allowed.
        if most is None:
            count = min(count, max(fixed, least, 1))
        key = ("items", self.number, parts, least, most, count)
        return self.nodes.lazy(key, lambda: self._expand_items(parts, least, most, count))

    def _expand_items(self, parts: tuple[ArrayPart, ...], least: int, most: int | None, count: int) -> int:
        nodes = self.nodes
        options = [nodes.literal(b"]")] if count >= least else []
        if most is None or count < most:
            goal: list[Located] = []
            for part in parts:
                if count < len(part.prefix):
                    goal.append(part.prefix[count])
                elif part.items is not None:
                    goal.append(part.items)
            item = nodes.sequence(
                [
                    nodes.EPSILON if count == 0 else nodes.seq(nodes.literal(self.comma), self.space),
                    self.value(tuple(goal)),
                    self.space,
                    self._items(parts, least, most, count + 1),
                ]
            )
            options.append(item)
        return nodes.alt(options)

    # -- listed values -----------------------------------------------------------------------------------------

    def holds(self, branch: Conjunction, value: Any) -> bool:
        """Whether a listed value satisfies the rest of its conjunction."""
        kind = type_of(value)
        if kind not in branch.types:
            return False
        if kind == "number":
            return branch.number.contains(value)
        if kind == "string":
            return self.nodes.terms.matches(self._string_term(branch), value)
        if kind == "array":
            return all(self._array_holds(part, value) for part in branch.arrays)
        if kind == "object":
            shape = self._shape(branch.objects)
            known = {member.name: member for member in shape.members}
            return all(not member.required or member.name in value for member in shape.members) and all(
                self._member_holds(known.get(name), shape, name, item) for name, item in value.items()
            )
        return True

    def _member_holds(self, member: Member | None, shape: ObjectShape, name: str, item: Any) -> bool:
        if member is not None:
            return self._goal_holds(member.goal, item)
        return any(
            self.nodes.terms.matches(region.names, name) and self._goal_holds(region.goal, item)
            for region in shape.others
        )

    def _array_holds(self, part: ArrayPart, value: Sequence[Any]) -> bool:
        if len(value) < part.least or (part.most is not None and len(value) > part.most):
            return False
        for index, item in enumerate(value):
            goal = part.prefix[index] if index < len(part.prefix) else part.items
            if goal is not None and not self._goal_holds((goal,), item):
                return False
        return True

    def _goal_holds(self, goal: Goal, value: Any) -> bool:
        return any(
            self.holds(branch, value)
            and (branch.values is None or any(same_value(value, each) for each in branch.values))
            for branch in self.normaliser.branches(goal)
        )
