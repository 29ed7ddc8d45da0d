"""Objects to grammar nodes: members in the schema's order or in any, undeclared names, counts, and what must exist."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import LimitError
from ..language.lookback import last_name, names_before
from ..language.nodes import AFTER_NAME, BEYOND
from ..language.questions import is_roomy, listing
from ..language.regex import regex_term
from .conjunction import FALSE, Formula, Goal, ObjectPart, Objects

if TYPE_CHECKING:
    from .lower import Lowering
    from .outermost import Outermost

#: How many regions the patterns of one object may make.
MAX_REGIONS = 256

#: Languages of names of at most so many words are written as members, each at most once.
MAX_NAMES = 64

#: For how many lists of written names an object remembers what names are left.
MAX_REMEMBERED = 256


@dataclass(frozen=True)
class Member:
    """A declared property, and which of the shape's demands it may meet."""

    name: str
    goal: Goal
    required: bool
    meets: tuple[int, ...] = ()


@dataclass(frozen=True)
class Region:
    """Undeclared names that the same schemas speak of: their language (a term), and what their values must be.

    ``roomy``: every beginning of a name can go on to infinitely many names, so that names that were written already
    never stand in the way of all others.
    """

    names: int
    goal: Goal
    meets: tuple[int, ...]
    roomy: bool


@dataclass(frozen=True)
class ObjectShape:
    """Objects of a conjunction: declared members in order, regions of other members, what some member must satisfy,
    how many members there are, and the shape's own number."""

    members: tuple[Member, ...]
    others: tuple[Region, ...]
    demands: tuple[Formula, ...]
    least: int
    most: int | None
    number: int


class _Place(NamedTuple):
    """Where an object is: the first member that may come (in any order: the set of those written, as bits), how many
    members were written as far as that matters, which demands are still open, and whether nothing was written yet."""

    at: int
    members: int
    open: frozenset[int]
    first: bool


class ObjectLowering:
    """Lowers the objects of one document, or (``outermost``) the one that is written in a way of its own."""

    def __init__(self, lowering: Lowering, outermost: Outermost | None = None) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self._outermost = outermost
        #: Part of the name of every rule.
        self._number = lowering.number if outermost is None else (lowering.number, "outermost")
        self.any_order = lowering.options.property_order == "any"
        self._shapes: dict[Objects, ObjectShape] = {}
        self._followed: dict[tuple[int, int, int, frozenset[int]], int] = {}

    # -- shapes ------------------------------------------------------------------------------------------------

    def shape(self, objects: Objects) -> ObjectShape:
        """What several schemas say of objects, merged; made once."""
        found = self._shapes.get(objects)
        if found is None:
            found = self._shapes[objects] = self._merge(objects)
        return found

    def _merge(self, objects: Objects) -> ObjectShape:
        parts = objects.parts
        closed = (
            not self.lowering.options.additional_properties
            and any(part.names_properties or part.patterns for part in parts)
            and all(part.additional is None for part in parts)
            and not objects.others
        )
        silent = [part for rule in objects.others for part in rule.parts]
        silent += [part for exists in objects.exists for part in exists.beside or ()]
        names = dict.fromkeys(name for part in parts for name in part.properties)
        names.update(dict.fromkeys(objects.required))
        names.update(dict.fromkeys(exists.name for exists in objects.exists if exists.name is not None))
        names.update(dict.fromkeys(name for part in silent for name in part.properties))
        names.update(dict.fromkeys(sorted(objects.absent)))
        open_demands = [exists for exists in objects.exists if exists.name is None]
        required = {*objects.required, *(exists.name for exists in objects.exists if exists.name is not None)}
        members = []
        for name in names:
            matched = frozenset(
                pattern for pattern in self._patterns(objects) if self._matches(self._pattern(pattern), name)
            )
            goal, declared = self._goal(objects, matched, name)
            goal += [exists.formula for exists in objects.exists if exists.name == name]
            if (
                (closed and not declared)
                or name in objects.absent
                or not all(self._matches(self.lowering.strings((formula,)), name) for formula in objects.names)
            ):
                goal = [FALSE]
            meets = tuple(
                index
                for index, exists in enumerate(open_demands)
                if exists.pattern in matched
                or (exists.beside is not None and not _speaks(exists.beside, matched, name))
                or (exists.failing is not None and not self._matches(self.lowering.strings((exists.failing,)), name))
            )
            members.append(Member(name, tuple(goal), name in required, meets))
        regions = []
        for region in self._regions(objects, list(names), closed):
            listed = listing(self.nodes.terms, region.names, MAX_NAMES)
            if listed is None:
                regions.append(region)
            else:
                members += [Member(name, region.goal, False, region.meets) for name in sorted(listed)]
        formulas = tuple(exists.formula for exists in open_demands)
        return ObjectShape(tuple(members), tuple(regions), formulas, objects.least, objects.most, len(self._shapes))

    @staticmethod
    def _patterns(objects: Objects) -> dict[str, None]:
        """Every pattern that an object's names may match or not."""
        silent = [part for rule in objects.others for part in rule.parts]
        silent += [part for exists in objects.exists for part in exists.beside or ()]
        found = dict.fromkeys(pattern for part in (*objects.parts, *silent) for pattern in part.patterns)
        found.update(dict.fromkeys(exists.pattern for exists in objects.exists if exists.pattern is not None))
        return found

    def _goal(self, objects: Objects, matched: frozenset[str], name: str | None) -> tuple[list[Formula], bool]:
        """What is asked of a member's value, and whether some schema declares it (``name`` None: an undeclared one)."""
        goal: list[Formula] = []
        declared = False
        for part in objects.parts:
            named = [part.properties[name]] if name is not None and name in part.properties else []
            named += [formula for pattern, formula in part.patterns.items() if pattern in matched]
            declared = declared or bool(named)
            if not named and part.additional is not None:
                named = [part.additional]
            goal += named
        for rule in objects.others:
            if not _speaks(rule.parts, matched, name):
                goal.append(rule.formula)
        return goal, declared

    def _pattern(self, pattern: str) -> int:
        return regex_term(self.nodes.terms, pattern, whole=False)

    def _matches(self, term: int, name: str) -> bool:
        return self.nodes.terms.matches(term, name)

    def _regions(self, objects: Objects, names: list[str], closed: bool) -> Iterator[Region]:
        """Split the undeclared names by what is said of them; regions that hold no name are dropped."""
        terms = self.nodes.terms
        language = terms.not_(terms.words(names)) if names else terms.ALL
        language = terms.and_([language, *(self.lowering.strings((formula,)) for formula in objects.names)])
        demands = [exists for exists in objects.exists if exists.name is None]
        splitters: list[tuple[object, int]] = [(pattern, self._pattern(pattern)) for pattern in self._patterns(objects)]
        splitters += [
            (exists.failing, terms.not_(self.lowering.strings((exists.failing,))))
            for exists in demands
            if exists.failing is not None
        ]
        split: list[tuple[int, frozenset[object]]] = [] if terms.is_empty(language) else [(language, frozenset())]
        for key, matching in splitters:
            finer = []
            for language, matched in split:
                finer.append((terms.and_([language, matching]), matched | {key}))
                finer.append((terms.and_([language, terms.not_(matching)]), matched))
            split = [(language, matched) for language, matched in finer if not terms.is_empty(language)]
            if len(split) > MAX_REGIONS:
                raise LimitError(
                    f"the names of an object are told apart in more than {MAX_REGIONS} ways",
                    hint="make the patterns of patternProperties exclude each other",
                )
        for language, matched in split:
            patterns = frozenset(key for key in matched if isinstance(key, str))
            goal, declared = self._goal(objects, patterns, None)
            if (closed and not declared) or self.lowering.is_false(goal):
                continue
            meets = tuple(
                index
                for index, exists in enumerate(demands)
                if exists.pattern in patterns
                or (exists.beside is not None and not _speaks(exists.beside, patterns, None))
                or (exists.failing is not None and exists.failing in matched)
            )
            yield Region(language, tuple(goal), meets, is_roomy(terms, language))

    # -- members -----------------------------------------------------------------------------------------------

    def node(self, objects: Objects) -> int:
        """The objects that satisfy a conjunction."""
        nodes = self.nodes
        shape = self.shape(objects)
        start = _Place(0, 0, frozenset(range(len(shape.demands))), True)
        members = self._members(shape, start)
        return members if self._outermost else nodes.sequence([nodes.literal(b"{"), self.lowering.space, members])

    def _members(self, shape: ObjectShape, place: _Place) -> int:
        """What may stand after ``{`` or after a member."""
        key = ("members", self._number, shape.number, place)
        return self.nodes.lazy(key, lambda: self._expand(shape, place), as_empty_as=self._skeleton(shape))

    def _skeleton(self, shape: ObjectShape) -> int | None:
        """What decides whether an object can be completed, wherever it is: the values of its required members. None:
        more than that decides.

        It spares a look into the places of the object, of which there may be as many as sets of members.
        """
        nodes, lowering = self.nodes, self.lowering
        if shape.demands or shape.most is not None or (shape.least and not self.any_order):
            return None

        def expand() -> int:
            values = [self._value(member.name, member.goal) for member in shape.members if member.required]
            optional = [self._value(member.name, member.goal) for member in shape.members if not member.required]
            regions = nodes.alt([lowering.value(region.goal) for region in shape.others])
            # At least so many of the optional members have a value, or undeclared ones have: a table of sub-results.
            row = [nodes.EPSILON] + [regions] * max(0, shape.least - len(values))
            for value in reversed(optional) if len(row) > 1 else ():
                row = [row[0], *(nodes.alt([nodes.seq(value, less), same]) for less, same in pairwise(row))]
            return nodes.sequence([*values, row[-1], nodes.literal(b"}")])

        return nodes.lazy(("required", self._number, shape.number), expand)

    def _expand(self, shape: ObjectShape, place: _Place) -> int:
        nodes, lowering = self.nodes, self.lowering
        before = b"" if place.first else lowering.comma
        # With one spelling, the comma belongs to each key's literal; else it stands apart, with spaces around it.
        lead = b"" if lowering.flexible or self._outermost else before
        entries: dict[bytes, int] = {}
        done = True
        allowed = shape.most is None or place.members < shape.most
        for number, member in self._next(shape, place):
            if allowed and not lowering.is_false(member.goal):
                for key in self._keys(member.name):
                    entries[lead + key] = self._member(shape, place, number)
            if member.required:
                done = False
        keys = nodes.words(entries)
        if allowed and (done or self.any_order):
            after = place.at if self.any_order else len(shape.members)
            others = [
                nodes.sequence(
                    [
                        nodes.literal(lead),
                        self._name(shape, region),
                        self._colon,
                        self._value(None, (*region.goal, *demanded)),
                        self._after(shape, place, after, met),
                    ]
                )
                for region in shape.others
                for met, demanded in self._meeting(shape, place, region.meets)
            ]
            keys = nodes.alt([keys, *others])
        if self._outermost is not None:
            separator = nodes.EPSILON if place.first else self._outermost.separator
            keys = nodes.sequence([separator, self._outermost.before_name, keys])
        elif lowering.flexible and not place.first:
            keys = nodes.sequence([nodes.literal(lowering.comma), lowering.space, keys])
        if not done or place.open or place.members < shape.least:
            return keys
        closing = nodes.EPSILON if self._outermost else nodes.literal(b"}")
        return nodes.alt([closing, keys])  # the end first: it decides at once that there is a text

    def _member(self, shape: ObjectShape, place: _Place, number: int) -> int:
        """What follows the name of a declared member."""
        nodes = self.nodes
        member = shape.members[number]
        after = place.at | 1 << number if self.any_order else number + 1

        def expand() -> int:
            options = [
                nodes.seq(self._value(member.name, (*member.goal, *demanded)), self._after(shape, place, after, met))
                for met, demanded in self._meeting(shape, place, member.meets)
            ]
            return nodes.seq(self._colon, nodes.alt(options))

        if not self.any_order:  # what follows a member is the same from wherever one came to it
            key = shape.number, number, place.members, place.open
            found = self._followed.get(key)
            if found is None:
                found = self._followed[key] = expand()
            return found
        # In any order every place has all members that are left: they are looked into when they are written.
        skeleton = self._skeleton(shape)
        instead = None if skeleton is None else nodes.seq(self._value(member.name, member.goal), skeleton)
        return nodes.lazy(("member", self._number, shape.number, place, number), expand, as_empty_as=instead)

    def _next(self, shape: ObjectShape, place: _Place) -> Iterator[tuple[int, Member]]:
        """The members that may come next."""
        if self.any_order:
            for number, member in enumerate(shape.members):
                if not place.at >> number & 1:
                    yield number, member
            return
        for number in range(place.at, len(shape.members)):
            member = shape.members[number]
            yield number, member
            if member.required:
                break

    @staticmethod
    def _meeting(shape: ObjectShape, place: _Place, meets: Sequence[int]) -> Iterator[tuple[frozenset[int], Goal]]:
        """The sets of open demands that a member may be taken to meet, and what that asks of it."""
        able = [index for index in meets if index in place.open]
        for met in chain.from_iterable(combinations(able, size) for size in range(len(able) + 1)):
            yield frozenset(met), tuple(shape.demands[index] for index in met)

    def _after(self, shape: ObjectShape, place: _Place, at: int, met: frozenset[int]) -> int:
        members = place.members + 1 if shape.least > place.members or shape.most is not None else place.members
        return self.nodes.seq(self.lowering.space, self._members(shape, _Place(at, members, place.open - met, False)))

    def _name(self, shape: ObjectShape, region: Region) -> int:
        """A name that is not declared, compared as it reads, however it is escaped; never one that was written."""
        nodes, spelling = self.nodes, self.lowering.spelling
        name = self._written(region.names)
        if shape.most == 1:
            return name
        if region.roomy and spelling is None:
            return nodes.seq(name, nodes.dynamic("name", nodes.EPSILON, self._unless_repeated, AFTER_NAME))

        known: dict[tuple[str, ...], int] = {}  # the tokens of one mask all ask for the same few

        def fresh(text: bytes) -> int:
            written = tuple(names_before(text, len(text)) if spelling is None else spelling.names_before(text))
            found = known.get(written)
            if found is None:
                terms = nodes.terms
                found = self._written(terms.and_([region.names, terms.not_(terms.words(written))]))
                if len(known) >= MAX_REMEMBERED:
                    known.clear()
                known[written] = found
            return found

        key = ("fresh", region.names) if spelling is None else ("fresh", self._number, region.names)
        return nodes.dynamic(key, name, fresh, BEYOND)

    # -- how names and values are written ----------------------------------------------------------------------

    @property
    def _colon(self) -> int:
        return self.lowering.colon if self._outermost is None else self.nodes.EPSILON

    def _keys(self, name: str) -> tuple[bytes, ...]:
        return self.lowering.keys(name) if self._outermost is None else self._outermost.keys(name)

    def _written(self, names: int) -> int:
        """The names of a term."""
        if self._outermost is not None:
            return self._outermost.name(names)
        spelling = self.lowering.spelling
        return self.nodes.json_string(names) if spelling is None else spelling.name(self.nodes, names)

    def _value(self, name: str | None, goal: Goal) -> int:
        """A member's value (``name`` None: of an undeclared one); nothing, if the name cannot be written."""
        if name is not None and self.lowering.spelling is not None and not self._keys(name):
            return self.nodes.EMPTY
        return self.lowering.value(goal) if self._outermost is None else self._outermost.value(name, goal)

    def _unless_repeated(self, text: bytes) -> int:
        name, before = last_name(text)
        return self.nodes.EMPTY if name in before else self.nodes.EPSILON

    # -- listed values -----------------------------------------------------------------------------------------

    def holds(self, objects: Objects, value: dict[str, Any]) -> bool:
        """Whether a decoded object satisfies a conjunction."""
        shape = self.shape(objects)
        if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
            return False
        known = {member.name: member for member in shape.members}
        if any(member.required and member.name not in value for member in shape.members):
            return False
        unmet = set(range(len(shape.demands)))
        for name, item in value.items():
            place: Member | Region | None = known.get(name)
            if place is None:
                place = next((region for region in shape.others if self._matches(region.names, name)), None)
            if place is None or not self.lowering.goal_holds(place.goal, item):
                return False
            unmet -= {index for index in place.meets if self.lowering.goal_holds((shape.demands[index],), item)}
        return not unmet


def _speaks(parts: Iterable[ObjectPart], matched: frozenset[str], name: str | None) -> bool:
    """Whether some part speaks of a name (None: an undeclared one) that matches these patterns."""
    return any(name in part.properties or matched.intersection(part.patterns) for part in parts)


def spelled_name(name: str) -> bytes:
    """A property name as JSON."""
    return json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass")
