"""Normal form: a goal as a union of typed conjunctions, with negation pushed inwards.

``$ref`` and ``allOf`` are merged, ``anyOf`` forks, ``oneOf``, ``if`` and ``dependencies`` become and/or/not, and a
negated schema becomes one alternative per keyword. Only what speaks of one and the same value is expanded: subschemas
of members and items stay formulas, and are normalised when a text reaches them, so that recursion costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple, Union
from weakref import proxy

from ..errors import InvalidSchemaError, LimitError, Place
from .assertions import Assertions
from .conjunction import (
    EVERY,
    TRUE,
    All,
    Any_,
    But,
    Conjunction,
    Formula,
    Goal,
    Literal,
    Objects,
    meet,
    negated,
)
from .contradiction import Contradictions, holds_already
from .disjoint import disjoint
from .negation import has, negation
from .resolve import Document, Located
from .unevaluated import Scope, Seen, reported, settled, subsets

#: How many alternatives one place of a schema may have after and/or are multiplied out.
MAX_BRANCHES = 3_000

#: How many steps the expansion of one place may take.
MAX_STEPS = 40_000

#: How many steps all expansions for one grammar may take: alternatives that breed alternatives from level to level.
MAX_TOTAL = 80_000

_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})


class _Step(NamedTuple):
    """A formula to be expanded, the references that led to it, and the scopes that it reports to."""

    formula: Formula
    above: frozenset[object]
    scopes: tuple[Scope, ...]


_UNSEEN = Seen()

#: The rest of the steps, as a linked list: alternatives share it.
_Steps = Union[tuple[_Step, "_Steps"], None]


class Normaliser(Assertions):
    """Brings the goals of a document to normal form. For one thread at a time.

    Args:
        open_objects: objects take members that nothing declares, unless they say otherwise. (Where they do not, an
            option that adds nothing may still declare a member.)

    Attributes:
        steps: how many steps all expansions took so far.
        rough: above zero while ``oneOf`` is taken for a plain union.
    """

    def __init__(
        self,
        document: Document,
        unenforced: Collection[tuple[object, str]] = (),
        formats: bool = True,
        *,
        open_objects: bool = True,
    ) -> None:
        super().__init__(document, unenforced, formats)
        self._open_objects = open_objects
        self.steps = 0
        self.rough = 0
        self._overlaps: dict[Located, list[frozenset[int]]] = {}
        self._negations: dict[tuple[Located, bool], Formula] = {}
        # They do not own what owns them: a dropped grammar is freed at once, not by the garbage collector.
        self._contradictions = Contradictions(proxy(self))

    # -- the expansion -----------------------------------------------------------------------------------------

    def branches(self, goal: Goal) -> list[Conjunction]:
        """The alternatives of a goal; empty when it can never hold.

        Raises:
            InvalidSchemaError: a schema refers to itself without describing anything.
            LimitError: the alternatives are too many.
        """
        done: list[Conjunction] = []
        steps: _Steps = None
        for formula in reversed(goal):
            steps = (_Step(formula, frozenset(), ()), steps)
        todo: list[tuple[Conjunction, _Steps, Seen]] = [(EVERY, steps, _UNSEEN)]
        taken = 0
        scopes = 0
        while todo:
            conjunction, steps, seen = todo.pop()
            taken += 1
            self.steps += 1
            if taken > MAX_STEPS or len(done) > MAX_BRANCHES or self.steps > MAX_TOTAL:
                raise self._too_many(goal)
            if steps is None:
                finished = settled(conjunction, seen, self)
                if finished is not None:
                    done.append(finished)
                continue
            step, rest = steps
            formula = step.formula
            if isinstance(formula, All):
                for part in reversed(formula.parts):
                    rest = (_Step(part, step.above, step.scopes), rest)
                todo.append((conjunction, rest, seen))
            elif isinstance(formula, Any_):
                decided = self._open_objects and not step.scopes
                if decided and any(holds_already(conjunction, part) for part in formula.parts):
                    todo.append((conjunction, rest, seen))
                    continue
                for part in reversed(formula.parts):
                    todo.append((conjunction, (_Step(part, step.above, step.scopes), rest), seen))
            elif isinstance(formula, But):
                scope = Scope(scopes, formula.located, formula.keyword)
                scopes += 1
                seen = seen._replace(opened=(*seen.opened, scope))
                todo.extend(self._held(conjunction, rest, seen, formula.located, step.above, (scope,)))
            elif isinstance(formula, Conjunction):
                merged = self._meet(conjunction, formula)
                if merged is not None:
                    todo.append((merged, rest, seen))
            else:
                located = formula.located
                schema = located.schema
                if isinstance(schema, bool):
                    if schema == formula.positive:
                        todo.append((conjunction, rest, seen))
                    continue
                located = self.document.enter(located)
                key = (located.key, formula.positive)
                refers = not _REFERENCES.isdisjoint(schema)  # a loop passes through the same reference again
                if refers and key in step.above:
                    raise InvalidSchemaError(
                        "a schema refers to itself without describing anything",
                        hint="break the loop of $ref",
                        place=Place(pointer=located.pointer, keyword="$ref"),
                    )
                above = step.above | {key} if refers else step.above
                if not formula.positive:
                    todo.append((conjunction, (_Step(self._negation(located), above, ()), rest), seen))
                    continue
                inner = step.scopes
                if not _UNEVALUATED.isdisjoint(schema) and any(self.asserts(located, word) for word in _UNEVALUATED):
                    scope = Scope(scopes, located)
                    scopes += 1
                    seen = seen._replace(opened=(*seen.opened, scope))
                    inner = (*inner, scope)
                todo.extend(self._held(conjunction, rest, seen, located, above, inner))
        return done

    def _meet(self, left: Conjunction, right: Conjunction) -> Conjunction | None:
        """What satisfies both; None when they are seen to exclude each other."""
        both = meet(left, right)
        objects = EVERY.objects
        if both is None or left.objects is objects or right.objects is objects or "object" not in both.types:
            return both
        if not self._contradictions.between(left.objects, right.objects):
            return both
        types = both.types - {"object"}
        return replace(both, types=types) if types else None

    def _held(
        self,
        conjunction: Conjunction,
        rest: _Steps,
        seen: Seen,
        located: Located,
        above: frozenset[object],
        scopes: tuple[Scope, ...],
    ) -> Iterator[tuple[Conjunction, _Steps, Seen]]:
        """How it goes on when a schema holds; not at all if that contradicts what is known."""
        own = self.assertions(located)
        merged = None if own is None else self._meet(conjunction, own)
        if merged is None:
            return
        for part in reversed(self._applied(located, scopes)):
            rest = (_Step(part, above, scopes), rest)
        yield merged, rest, reported(self, located, seen, scopes) if scopes else seen

    def _negation(self, located: Located) -> Formula:
        """The negation of a schema; made once."""
        key = located, self.rough > 0
        found = self._negations.get(key)
        if found is None:
            found = self._negations[key] = negation(self, located)
        return found

    def _too_many(self, goal: Goal) -> LimitError:
        pointer = next((part.located.pointer for part in goal if isinstance(part, Literal)), "")
        return LimitError(
            f"more than {MAX_BRANCHES:,} alternatives at one place",
            hint="simplify nested anyOf, oneOf and not, or give each alternative a property with its own const",
            place=Place(pointer=pointer),
        )

    # -- a schema that must hold -------------------------------------------------------------------------------

    def _applied(self, located: Located, scopes: tuple[Scope, ...]) -> list[Formula]:
        """What a schema asks of the same value by way of other schemas."""
        schema = located.schema
        found: list[Formula] = []
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if self.asserts(located, keyword):
                found.append(Literal(self.document.resolve(located, keyword)))
                if keyword == "$ref" and self.document.ref_hides_siblings:
                    return found
        if self.asserts(located, "allOf"):
            found += [Literal(located.child("allOf", index)) for index in range(len(schema["allOf"]))]
        if self.asserts(located, "not"):
            found.append(Literal(located.child("not"), False))
        if self.asserts(located, "if") and (scopes or schema.keys() & {"then", "else"}):
            condition = Literal(located.child("if"))
            found.append(
                Any_(
                    (
                        All((condition, Literal(located.child("then")) if "then" in schema else TRUE)),
                        All((negated(condition), Literal(located.child("else")) if "else" in schema else TRUE)),
                    )
                )
            )
        found += [Any_((_lacks(name), All((has(name), needed)))) for name, needed in self.dependencies(located)]
        if self.asserts(located, "oneOf"):
            found.append(self._one_of(located))
        if self.asserts(located, "anyOf"):
            options = tuple(Literal(located.child("anyOf", index)) for index in range(len(schema["anyOf"])))
            broken = any(scope.broken for scope in scopes)
            found.append(subsets(options, located, broken) if scopes else Any_(options))
        return found

    def overlaps(self, located: Located) -> list[frozenset[int]]:
        """For each option of a ``oneOf``, the others that are not provably disjoint from it."""
        found = self._overlaps.get(located)
        if found is None:
            options = [Literal(located.child("oneOf", index)) for index in range(len(located.schema["oneOf"]))]
            if len(options) == 1:
                return [frozenset()]
            sets: list[set[int]] = [set() for _ in options]
            # While this is found out, any oneOf (this one may stand inside itself) is taken for a union, which it is
            # part of: what is disjoint from the union is disjoint from it.
            self.rough += 1
            try:
                branches = [self.branches((option,)) for option in options]
                for one, two in combinations(range(len(options)), 2):
                    if not disjoint(self, branches[one], branches[two]):
                        sets[one].add(two)
                        sets[two].add(one)
            finally:
                self.rough -= 1
            found = self._overlaps[located] = [frozenset(each) for each in sets]
        return found

    def _one_of(self, located: Located) -> Formula:
        options = [Literal(located.child("oneOf", index)) for index in range(len(located.schema["oneOf"]))]
        if self.rough:
            return Any_(tuple(options))
        overlaps = self.overlaps(located)
        return Any_(
            tuple(
                All((option, *(negated(options[other]) for other in sorted(others))))
                for option, others in zip(options, overlaps, strict=True)
            )
        )


def _lacks(name: str) -> Formula:
    """Everything but an object that has a member of this name."""
    return Conjunction(objects=Objects(absent=frozenset((name,))))
