"""Shapes of objects, merged from several schemas: declared members, regions of undeclared names, demands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...dependent.roomy import is_roomy
from ...errors import LimitError, Place
from ...language.queries import is_cofinite, listing
from ...regex.compile import regex_term
from ..normal.conjunction import (
    FALSE,
    TRUE,
    AnyExists,
    AnyOf,
    Exists,
    Formula,
    Goal,
    ObjectPart,
    Objects,
    is_deniable,
    negated,
)
from ..normal.parts import covers, member_goal
from .context import GoalNodes
from .object_shape import Meets, Member, ObjectShape, Region

#: Maximum number of regions that the patterns of one object make.
MAX_REGIONS = 256

#: Maximum number of patterns of an object that are compared in pairs: does a name match both?
MAX_PAIRED = 64

#: Maximum number of demands (`AnyExists`, or `Exists` of any name) of an object. A state has one bit for each.
MAX_DEMANDS = 1_000

#: Maximum number of different formulas of demands for a member's value of which all combinations are made without a
#: test for emptiness.
MAX_SUBSETS = 3

#: Maximum number of combinations of conditions (demands, or `Contains`) that one value may meet.
MAX_WAYS = 128

#: Maximum number of alternatives of the formula for a value that does not meet a demand.
MAX_SIMPLE = 4

#: Maximum number of names of a region that become members of their own.
MAX_NAMES = 64

#: Bytes that a member takes, with its name, its schema and what is known of it (measured): in a schema of its own, and
#: in one that is merged from several, whose members are made anew for each combination.
MEMBER_BYTES, MERGED_BYTES = 700, 300

_NO_PART = ObjectPart()


class _Outcome(NamedTuple):
    """What one value does to the demands with one formula.

    Attributes:
        demands: these demands, as bits.
        is_met: the value meets them.
        asked: the formula that the value must satisfy so that this is the outcome.
        formula: the formula of the demands.
    """

    demands: int
    is_met: bool
    asked: Formula
    formula: Formula


#: The outcomes of one value, by formula. Formulas that no such value can satisfy are left out.
_Outcomes = tuple[_Outcome, ...]


@dataclass(slots=True, eq=False)
class _NameClass:
    """Names that match the same patterns.

    Attributes:
        patterns: the patterns.
        names: the names, a term.
        roomy: as in `Region`; None: not computed yet.
    """

    patterns: frozenset[str]
    names: int
    roomy: bool | None = None


class MergedObjects:
    """Shapes of the objects of one document."""

    def __init__(self, lowering: GoalNodes) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self._open = lowering.options.additional_properties
        self._known: dict[Objects, ObjectShape] = {}
        self._sets: dict[tuple[Goal, Meets], list[_Outcomes]] = {}  # the results of `_together`
        self._besides: dict[frozenset[str], int] = {}  # the results of `beside`
        self._splits: dict[tuple[str, ...], list[_NameClass] | None] = {}  # the results of `_split`, by the patterns

    def of(self, objects: Objects) -> ObjectShape:
        """Return the shape of a conjunction; computed once."""
        shape = self._known.get(objects)
        if shape is None:
            shape = self._merge(objects)
            self._known[objects] = shape
        return shape

    def meeting(self, goal: Goal, meets: Meets, open: int) -> list[tuple[int, Goal]]:
        """Return the sets of open demands, as bits, that a member may meet, each with the further goal of its value.

        If there are many demands, only the maximal sets are returned: to meet more demands is never a loss.

        Args:
            goal: the goal of the value.
            meets: the demands that the member may meet.
            open: the demands that are open.

        Raises:
            LimitError: the demands have too many different formulas for the member.
        """
        key = goal, meets
        sets = self._sets.get(key)
        if sets is None:
            sets = self._sets[key] = self._together(goal, meets)
        goals: dict[tuple[int, Goal], None] = {}
        for outcomes in sets:
            asked = tuple([each.asked for each in outcomes if each.demands & open and each.asked is not TRUE])
            goals[sum([each.demands for each in outcomes if each.is_met]) & open, asked] = None
        return list(goals)

    def _together(self, goal: Goal, meets: Meets) -> list[_Outcomes]:
        """Return the sets of demands that a value of a goal may meet: two ways for each formula of the demands, met or
        not, without the combinations that no value has.

        Where the formulas are many, or members may come in any order, the sets are exact: a value that meets a demand
        is told apart from one that does not, so that few sets are possible for one value. Else "not met" asks nothing.
        """
        meaning = self.lowering.meaning
        groups: dict[object, tuple[int, Formula]] = {}  # by meaning: the demands, as bits, and their formula
        for index, formula in meets:
            demands, first = groups.get(meaning(formula), (0, formula))
            groups[meaning(formula)] = demands | 1 << index, first
        is_exact = len(groups) > MAX_SUBSETS or self.lowering.options.property_order == "any"
        # Each with all that is known of such a value: if the sets are exact, as one formula, expanded once.
        ways: list[tuple[_Outcomes, Goal]] = [((), self._alternatives(goal) if is_exact else goal)]
        apart = self.lowering.are_apart
        for demands, formula in groups.values():
            if formula == TRUE:  # to meet more loses nothing
                ways = [((*way, _Outcome(demands, True, TRUE, TRUE)), facts) for way, facts in ways]
                continue
            met = _Outcome(demands, True, formula, formula)
            denied = negated(formula) if is_exact and is_deniable(formula) else None
            is_simple = denied is not None and len(self.lowering.branches((denied,))) <= MAX_SIMPLE
            unmet = _Outcome(demands, False, denied if denied is not None and is_simple else TRUE, formula)
            more: list[tuple[_Outcomes, Goal]] = []
            for way, facts in ways:
                if is_exact and any(each.is_met and apart((each.formula,), (formula,)) for each in way):
                    more.append((way, facts))
                    continue
                met_facts = self._alternatives((*facts, formula)) if is_exact else (*facts, formula)
                if is_exact and met_facts == (FALSE,):  # no such value meets it
                    more.append((way, facts))
                    continue
                # A formula that is apart from this one is not met anyway.
                kept = tuple([each for each in way if each.is_met or not apart((each.formula,), (formula,))])
                more.append(((*kept, met), met_facts))
                if denied is None:
                    more.append((way, facts))
                elif (unmet_facts := self._alternatives((*facts, denied))) != (FALSE,):
                    more.append(((*way, unmet), unmet_facts))
            ways = more
            if len(ways) > MAX_WAYS:
                raise too_many_ways()
        return [way for way, _ in ways]

    def _alternatives(self, goal: Goal) -> Goal:
        """Return the alternatives of a goal as a goal, which is expanded only once."""
        found = self.lowering.branches(goal)
        return (FALSE,) if not found else (found[0],) if len(found) == 1 else (AnyOf(tuple(found)),)

    def _merge(self, objects: Objects) -> ObjectShape:
        """Return the shape of a conjunction of objects; one part without patterns and demands needs no regions of
        names."""
        parts = objects.parts
        if len(parts) < 2 and not (
            objects.unevaluated
            or objects.exists
            or objects.names
            or objects.absent
            or objects.any_exists
            or objects.exclusive
        ):
            only = parts[0] if parts else _NO_PART
            if not only.patterns:
                return self._alone(only, objects)
        return self._joined(objects)

    def _joined(self, objects: Objects) -> ObjectShape:
        """Return the shape of a conjunction of several schemas: one goal for each declared name, one for each region of
        other names that the same patterns match.

        Raises:
            LimitError: it has too many demands, or too many regions.
        """
        demands = _demands(objects)
        if len(objects.any_exists) > MAX_DEMANDS:
            raise LimitError(
                f"more than {MAX_DEMANDS:,} conditions on one object, or alternatives of it that must all fail",
                hint="close objects (additionalProperties: false), give each alternative a property with its own "
                "const, or use anyOf",
            )
        closed = self._is_closed(objects)
        exclusive = tuple(dict.fromkeys(objects.exclusive))
        patterns = [(pattern, self._pattern(pattern)) for pattern in self._patterns(objects)]
        names = _member_names(objects)
        members = self._members(objects, names, patterns, demands, closed)
        regions = []
        for region in self._regions(objects, names, patterns, closed):
            listed = None if region.roomy else listing(self.nodes.terms, region.names, MAX_NAMES)
            if listed is None:
                regions.append(region)
            else:
                members += [Member(name, region.goal, False, region.meets) for name in sorted(listed)]
        reached: list[Member | Region] = [*members, *regions]
        for each in reached:
            if each.meets:  # for its error, if there are too many: before any member is written
                self.meeting(each.goal, each.meets, -1)
        absent = tuple(some.absent for some in demands)
        self.nodes.weight += MERGED_BYTES * len(members)
        return ObjectShape(tuple(members), tuple(regions), absent, exclusive, objects.least, objects.most)

    def _is_closed(self, objects: Objects) -> bool:
        """Return True if the option ``additional_properties`` closes objects: their schemas declare members, and say
        nothing of others."""
        parts = objects.parts
        return (
            not self._open
            and any(part.names_properties or part.patterns for part in parts)
            and all(part.additional is None for part in parts)
            and not objects.unevaluated
        )

    def _members(
        self,
        objects: Objects,
        names: Iterable[str],
        patterns: list[tuple[str, int]],
        demands: list[AnyExists],
        closed: bool,
    ) -> list[Member]:
        """Return the members of some names; a member that no object can have has the goal FALSE.

        Args:
            objects: the conjunction.
            names: the names.
            patterns: the patterns of names, with their terms.
            demands: the demands.
            closed: see `_is_closed`.
        """
        asked: dict[str, list[Formula]] = {}
        for exists in objects.exists:
            if exists.name is not None:
                asked.setdefault(exists.name, []).append(exists.formula)
        required = {*objects.required, *asked}
        barred = set(objects.absent)
        for each in objects.exclusive:  # a required member bars the others; two of them bar each other
            needed = each & required
            if needed:
                barred.update(each if len(needed) > 1 else each - needed)
        valid_names = [self.lowering.strings((formula,)) for formula in objects.names]
        goals, declared_names = self._plain_goals(objects.parts, names)
        matched: frozenset[str] = frozenset()
        members = []
        for name in names:
            if patterns:
                matched = frozenset(pattern for pattern, term in patterns if self._matches(term, name))
            if matched or objects.unevaluated:
                goal, declared = member_goal(objects, matched, name)
            else:
                goal, declared = goals[name], name in declared_names
            goal += asked.get(name, ())
            is_valid = all(self._matches(term, name) for term in valid_names)
            if (closed and not declared) or name in barred or not is_valid:
                goal = [FALSE]
            meets = self._met(demands, matched, name) if demands else ()
            members.append(Member(name, tuple(goal), name in required, meets))
        return members

    def _alone(self, part: ObjectPart, objects: Objects) -> ObjectShape:
        """Return the shape of one schema without patterns, the most frequent case, in which nothing is merged."""
        properties = part.properties
        additional = part.additional
        if additional is None and part.names_properties and not self._open:
            additional = FALSE
        goal: Goal = () if additional is None else (additional,)
        required = frozenset(objects.required)
        members = [Member(name, (formula,), name in required) for name, formula in properties.items()]
        for name in dict.fromkeys(objects.required):
            if name not in properties:
                members.append(Member(name, goal, True))
        regions: tuple[Region, ...] = ()
        if not self.lowering.is_false(goal):
            names = properties.keys() if len(members) == len(properties) else [member.name for member in members]
            regions = (Region(self.beside(names), goal, (), True),)
        self.nodes.weight += MEMBER_BYTES * len(members)
        return ObjectShape(tuple(members), regions, (), (), objects.least, objects.most)

    def _met(self, demands: list[AnyExists], matched: frozenset[str], name: str) -> Meets:
        """Return the demands that a member of this name, which matches the patterns ``matched``, may meet."""

        def fails(formula: Formula) -> bool:
            return self._matches(self.lowering.strings((negated(formula),)), name)

        return tuple(
            (index, formula)
            for index, some in enumerate(demands)
            if (formula := _asked(some, matched, name, fails)) is not None
        )

    def beside(self, names: Iterable[str]) -> int:
        """Return the term of all names except these; computed once."""
        excluded = frozenset(names)
        term = self._besides.get(excluded)
        if term is None:
            terms = self.nodes.terms
            term = self._besides[excluded] = terms.not_(terms.words(excluded)) if excluded else terms.ALL
        return term

    @staticmethod
    def _patterns(objects: Objects) -> dict[str, None]:
        """Return every pattern of names on which the goal of a member may depend."""
        patterns: dict[str, None] = {}
        for part in (*objects.parts, *_excepted(objects)):
            if part.patterns:
                patterns.update(dict.fromkeys(part.patterns))
        for exists in _every(objects):
            if exists.pattern is not None:
                patterns[exists.pattern] = None
        return patterns

    @staticmethod
    def _plain_goals(parts: Iterable[ObjectPart], names: Iterable[str]) -> tuple[dict[str, list[Formula]], set[str]]:
        """Return the goal of each member whose name no pattern matches, and the names that are declared.

        It goes part by part, as most have few members.
        """
        goals: dict[str, list[Formula]] = {name: [] for name in names}
        declared_names: set[str] = set()
        for part in parts:
            declared_names.update(part.properties)
            for name, formula in part.properties.items():
                goals[name].append(formula)
            if part.additional is not None:
                for name, goal in goals.items():
                    if name not in part.properties:
                        goal.append(part.additional)
        return goals, declared_names

    def _pattern(self, pattern: str) -> int:
        return regex_term(self.nodes.terms, pattern, whole=False)

    def _matches(self, term: int, name: str) -> bool:
        return self.nodes.terms.matches(term, name)

    def _regions(
        self, objects: Objects, names: Iterable[str], patterns: list[tuple[str, int]], closed: bool
    ) -> Iterator[Region]:
        """Yield the undeclared names, split by the schemas that apply to them; empty regions are left out.

        Args:
            objects: the conjunction.
            names: the declared names.
            patterns: the patterns of names, with their terms.
            closed: see `_is_closed`.

        Raises:
            LimitError: there are too many.
        """
        terms = self.nodes.terms
        language = self.beside(names)
        if objects.names:
            language = terms.and_([language, *(self.lowering.strings((formula,)) for formula in objects.names)])
        demands = _demands(objects)
        # What splits the names, with the term of the names for which it holds: patterns, and formulas that names fail.
        splitters: list[tuple[object, int]] = list(patterns)
        splitters += [
            (exists.failing, self.lowering.strings((negated(exists.failing),)))
            for exists in _every(objects)
            if exists.failing is not None
        ]
        if not splitters and not demands and is_cofinite(terms, language):  # one region, of almost all names
            goal, declared = member_goal(objects, frozenset(), None)
            if not ((closed and not declared) or self.lowering.is_false(tuple(goal))):
                yield Region(language, tuple(goal), (), True)
            return
        if not objects.names and len(patterns) == len(splitters) <= MAX_PAIRED:
            classes = self._split(patterns)
            if classes is not None:
                yield from self._pattern_regions(objects, language, classes, demands, closed)
                return
        split: list[tuple[int, frozenset[object]]] = [(language, frozenset())]
        if not is_cofinite(terms, language) and terms.is_empty(language):
            split = []
        for splitter, matching in splitters:
            finer = []
            for language, matched in split:
                finer.append((terms.and_([language, matching]), matched | {splitter}))
                finer.append((terms.and_([language, terms.not_(matching)]), matched))
            split = [(language, matched) for language, matched in finer if not terms.is_empty(language)]
            if len(split) > MAX_REGIONS:
                raise LimitError(
                    f"patterns split the property names of an object into more than {MAX_REGIONS} sets",
                    hint="make the patterns of patternProperties exclude each other",
                )
        for language, matched in split:
            those = frozenset(splitter for splitter in matched if isinstance(splitter, str))  # the patterns
            goal, declared = member_goal(objects, those, None)
            if (closed and not declared) or self.lowering.is_false(tuple(goal)):
                continue
            yield Region(language, tuple(goal), _met_by(demands, those, matched), is_roomy(terms, language))

    def _pattern_regions(
        self, objects: Objects, undeclared: int, classes: list[_NameClass], demands: list[AnyExists], closed: bool
    ) -> Iterator[Region]:
        """Yield the same, where only patterns split the names, into these classes, and all but some finitely many names
        are ``undeclared``."""
        terms = self.nodes.terms
        for each in classes:
            goal, declared = member_goal(objects, each.patterns, None)
            if (closed and not declared) or self.lowering.is_false(tuple(goal)):
                continue
            if each.roomy is None:
                each.roomy = is_roomy(terms, each.names)
            # Of infinitely many continuations of each prefix, infinitely many are left without the declared names.
            names = terms.and_([undeclared, each.names])
            if each.roomy or not terms.is_empty(names):
                meets = _met_by(demands, each.patterns, each.patterns) if demands else ()
                yield Region(names, tuple(goal), meets, each.roomy or is_roomy(terms, names))

    def _split(self, patterns: list[tuple[str, int]]) -> list[_NameClass] | None:
        """Return the classes of names by the patterns that they match; None if they are too many.

        Computed once, as many objects have the same patterns. Most patterns exclude each other: each pair is compared
        once, and a class is not intersected with the complements of patterns that it excludes.
        """
        key = tuple([pattern for pattern, _ in patterns])
        if key not in self._splits:
            terms = self.nodes.terms
            # Of each class: the indices of the patterns that its names match; those of other patterns, without the ones
            # that exclude a matched one; and its names.
            split: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [((), (), terms.ALL)]
            for index, (_, matching) in enumerate(patterns):
                apart = {other for other in range(index) if terms.is_empty(terms.and_([patterns[other][1], matching]))}
                finer: list[tuple[tuple[int, ...], tuple[int, ...], int]] = []
                for matched, unmatched, names in split:
                    if not apart.isdisjoint(matched):
                        finer.append((matched, unmatched, names))
                        continue
                    meeting = tuple([other for other in unmatched if other not in apart])
                    both = [matching, *(patterns[other][1] for other in matched)]
                    with_it = terms.and_([*both, *(terms.not_(patterns[other][1]) for other in meeting)])
                    if not terms.is_empty(with_it):
                        finer.append(((*matched, index), meeting, with_it))
                    without = terms.and_([names, terms.not_(matching)])
                    if not terms.is_empty(without):
                        finer.append((matched, (*unmatched, index), without))
                split = finer
                if len(split) > MAX_REGIONS:
                    break
            found = [_NameClass(frozenset([key[index] for index in matched]), names) for matched, _, names in split]
            self._splits[key] = found if len(split) <= MAX_REGIONS else None
        return self._splits[key]


def too_many_ways(keyword: str | None = None) -> LimitError:
    """Return the error for too many combinations of conditions on one value."""
    return LimitError(
        f"more than {MAX_WAYS} combinations of conditions are possible for the value of one property or item",
        hint="give each alternative of oneOf a property with its own const, use anyOf, or give fewer contains",
        place=Place(keyword=keyword),
    )


def _member_names(objects: Objects) -> list[str]:
    """Return every name of which a conjunction says something, in the order of its schemas: declared, required,
    demanded, or forbidden."""
    names: dict[str, None] = {}
    for part in objects.parts:
        names.update(dict.fromkeys(part.properties))
    names.update(dict.fromkeys(objects.required))
    names.update(dict.fromkeys(exists.name for exists in objects.exists if exists.name is not None))
    for part in _excepted(objects):
        names.update(dict.fromkeys(part.properties))
    names.update(dict.fromkeys(sorted(objects.absent)))
    for some in objects.any_exists:
        names.update(dict.fromkeys(exists.name for exists in some.options if exists.name is not None))
        names.update(dict.fromkeys(sorted(some.absent)))
    names.update(dict.fromkeys(sorted(frozenset().union(*objects.exclusive))))
    return list(names)


def _every(objects: Objects) -> Iterator[Exists]:
    """Yield each condition that some member must meet, alone or as one of several."""
    yield from objects.exists
    for some in objects.any_exists:
        yield from some.options


def _demands(objects: Objects) -> list[AnyExists]:
    """Return the demands: the conditions on some member that is not known by its name."""
    return [*(AnyExists((exists,)) for exists in objects.exists if exists.name is None), *objects.any_exists]


def _asked(
    some: AnyExists, matched: frozenset[str], name: str | None, fails: Callable[[Formula], bool]
) -> Formula | None:
    """Return the formula that the value of a member must satisfy to meet a demand; None: it cannot meet it.

    Args:
        some: the demand.
        matched: the patterns that the member's name matches.
        name: its name (None: an undeclared one).
        fails: returns True if the name does not satisfy a formula.
    """
    formulas = [
        exists.formula
        for exists in some.options
        if (exists.name is not None and exists.name == name)
        or exists.pattern in matched
        or (exists.beside is not None and not covers(exists.beside, matched, name))
        or (exists.failing is not None and fails(exists.failing))
    ]
    return None if not formulas else formulas[0] if len(formulas) == 1 else AnyOf(tuple(formulas))


def _met_by(demands: list[AnyExists], patterns: frozenset[str], matched: frozenset[object]) -> Meets:
    """Return the demands that an undeclared member may meet whose name matches some patterns.

    Args:
        demands: the demands.
        patterns: the patterns that the name matches.
        matched: these, and the formulas that the name does not satisfy.
    """
    return tuple(
        (index, formula)
        for index, some in enumerate(demands)
        if (formula := _asked(some, patterns, None, matched.__contains__)) is not None
    )


def _excepted(objects: Objects) -> list[ObjectPart]:
    """Return the parts to whose members an unevaluated rule or a demand does not apply."""
    parts = [part for rule in objects.unevaluated for part in rule.parts]
    return parts + [part for exists in _every(objects) for part in exists.beside or ()]
