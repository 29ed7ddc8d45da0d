"""Lowering of a document from normal form to grammar nodes: lazily, when a text reaches a subschema."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...errors import LimitError, SchemaError
from ...json import value_key, value_of_key
from ...json.values import is_among, same_value, type_of
from ...language import node_kinds, reading_marks
from ...language.nodes import Nodes
from ...language.queries import is_cofinite
from ...language.reading_marks import ReadingMark
from ..keywords.any_value import types_of
from ..normal.assertions import asserted, asserts_only
from ..normal.conjunction import EVERY, FALSE, ArrayPart, Arrays, Conjunction, Formula, Goal, ObjectPart, Objects, flat
from ..normal.inhabited import Inhabited
from ..normal.least_texts import LeastTexts, too_long
from ..normal.normalise import Normaliser
from ..normal.parts import item_goal
from ..normal.strings import irregular
from ..read.keywords import KEYWORDS
from ..read.located import Located, SignedSchema
from ..read.options import SchemaOptions
from ..scalars.value_syntax import Arguments, NestedTags
from .arguments_object import ArgumentsObject
from .arrays import ArrayLowering
from .context import Supply, placed
from .merged_objects import MergedObjects
from .nested_arguments import NestedArguments
from .object_plan import ObjectPlan
from .object_unions import MIN_OBJECTS, ObjectUnions
from .objects import ObjectLowering
from .scalars import UNBOUNDED, ScalarLowering
from .synonyms import followed, options_of
from .tagged_objects import tagged_objects
from .values import GoalValues

_SCALAR_ORDER = ("string", "number", "boolean", "null")
_SCALARS = frozenset(_SCALAR_ORDER)
_ONLY_STRINGS = frozenset({"string"})


@dataclass(slots=True, eq=False)
class _Subschema:
    """The rule of the values of a subschema."""

    lowering: Lowering
    located: Located

    def __call__(self) -> int:
        return self.lowering.expand(self.located)

    def otherwise(self) -> int | None:
        """Return the text of one value, if the values of the subschema exceed a limit; EMPTY if no value is known."""
        return self.lowering.witness(self.located)


class Lowering(ScalarLowering):
    """Lowering of one document into one node store.

    Attributes:
        number: part of the name of every rule: several documents may be lowered into one store.
        is_live: the document has live values.
    """

    def __init__(
        self,
        normaliser: Normaliser,
        options: SchemaOptions,
        nodes: Nodes,
        check: Callable[[Any, SchemaOptions], list[SchemaError | LimitError]],
    ) -> None:
        ScalarLowering.__init__(self, normaliser.document, options, nodes)
        self.normaliser = normaliser
        self._check = check
        self.number = len(nodes.builders)
        self.is_live = normaliser.document.is_live and not self.is_marked
        self.merged = MergedObjects(self)
        self.objects = ObjectLowering(self, self.merged)
        self.arrays = ArrayLowering(self, self.merged)
        self.unions = ObjectUnions(self.objects)
        self._values = GoalValues(self, self.merged)
        self._strings: dict[Goal, int] = {}
        self._chosen: dict[Goal, dict[str, bytes | int | None]] = {}  # see `_written_as`, by goal and key of the value
        self._known: dict[Goal, int] = {}
        self._subschemas: dict[object, int] = {}  # by key, which holds as long as the subschema is kept
        self._seen: list[Located] = []
        self._kept: dict[Goal, list[Conjunction]] = {}
        self._root: int | None = None
        self._inhabited = Inhabited(normaliser.document)
        self._elsewhere = Inhabited()  # of subschemas with a scope of their own; follows no references
        self._lists: dict[Conjunction, list[Any]] = {}
        # No keyword is left out, and the dialect has the validation vocabulary.
        document = normaliser.document
        self._direct = not normaliser.unenforced and document.knows("type")
        self.knows_lists = self._direct and document.knows("const") and document.knows("enum")
        self._least_texts = LeastTexts(self._alternatives) if document.may_be_vast else None

    def release(self) -> None:
        """Break the reference cycles with the parts of this object, which cannot be used afterwards."""
        del self.objects, self.unions, self.arrays, self._values, self.merged

    def root(self) -> int:
        """Return the node of the whole document."""
        if self._root is None:
            style = self.options.arguments
            if isinstance(style, NestedTags):
                root = self.nested_arguments(style).node()
            elif style is not None:
                root = self.arguments_object(style).node()
            else:
                root = self.value((SignedSchema(self.normaliser.document.root),))
            form = reading_marks.BARE if style is None else reading_marks.TAGGED
            self._root = self.nodes.seq(self.marked(reading_marks.VALUE, form=form, syntax=self.syntax), root)
        return self._root

    def marked(self, kind: int, **fields: Any) -> int:
        """Return a `ReadingMark`; EPSILON if the document is not for reading."""
        return ReadingMark(kind, **fields).node(self.nodes) if self.is_marked else node_kinds.EPSILON

    def arguments_object(self, style: Arguments) -> ArgumentsObject:
        """Return the lowering of the root with markup around its members."""
        return ArgumentsObject(self, self.merged, (SignedSchema(self.normaliser.document.root),), style)

    def nested_arguments(self, style: NestedTags) -> NestedArguments:
        """Return the lowering of the root in nested tags."""
        return NestedArguments(self, self.merged, (SignedSchema(self.normaliser.document.root),), style)

    def value(self, goal: Goal) -> int:
        """Return the texts of the values for which all formulas of a goal hold."""
        if len(goal) == 1 and isinstance(goal[0], SignedSchema) and goal[0].positive:
            return self.subschema(goal[0].located)
        known = self._known.get(goal)
        if known is not None:
            return known
        wanted = flat(goal)
        if wanted != goal:
            node = self.value(wanted)
        elif self.is_false(goal):
            node = self.nodes.EMPTY
        else:
            as_empty = self.nodes.EPSILON if self.is_inhabited(goal) else None
            node = self.nodes.lazy(("value", self.number, goal), lambda: self._value(goal), as_empty_as=as_empty)
        self._known[goal] = node
        return node

    def subschema(self, located: Located) -> int:
        """Return the JSON texts that a subschema describes."""
        known = self._subschemas.get(located.key)
        if known is not None:
            return known
        self._seen.append(located)
        node = self._described(located)
        self._subschemas[located.key] = node
        return node

    def _described(self, located: Located) -> int:
        """Return the node of a subschema: scalars at once, all else on first use, as recursive schemas need it."""
        schema = located.schema
        if schema is False:
            return self.nodes.EMPTY
        if schema is True or not schema:
            return self.value(())
        if self._direct and asserts_only(schema, "type"):
            types, integer = types_of(schema)
            if types <= _SCALARS:
                return self.nodes.alt([self._scalar(kind, integer=integer) for kind in _SCALAR_ORDER if kind in types])
        if self._direct and type(schema.get("const")) is str and schema.get("type", "string") == "string":
            if asserted(schema) <= {"const", "type"} and self.normaliser.document.knows("const"):
                return self.listed([schema["const"]])
        rule = _Subschema(self, located)
        sure = self.is_inhabited((SignedSchema(located),))
        return self.nodes.lazy(rule, rule, as_empty_as=self.nodes.EPSILON if sure else None)

    def _anything(self) -> int:
        """Return every value."""
        return self.branch(EVERY)

    def expand(self, located: Located) -> int:
        """Return the texts of a subschema, expanded. An error has its place."""
        above = self.here
        self.here = located
        try:
            return self._expanded(located)
        except (LimitError, SchemaError) as error:
            if error.place.pointer is not None:
                raise
            raise placed(error, located) from None
        finally:
            self.here = above

    def _expanded(self, located: Located) -> int:
        """Return the result of `expand`; an error may lack its place. Any schema is the union of its alternatives;
        schemas of simple forms are read without the normaliser, which takes longer."""
        document = self.normaliser.document
        located = document.enter(located)
        if isinstance(located.schema, bool):
            return self._union((SignedSchema(located),))
        if self._least_texts is not None:  # the lengths of all alternatives are asked for
            return self._union((SignedSchema(located),))
        if KEYWORDS.applicators.isdisjoint(located.schema):  # it has one alternative
            own = self.normaliser.assertions(located)
            return self.nodes.EMPTY if own is None else self.branch(own)
        if self._direct:
            target = followed(document, located)
            if target is None:  # a circle of references, for which the normaliser raises the error
                return self._union((SignedSchema(located),))
            if target is not located:
                return self.subschema(target)
            options = options_of(self.normaliser, located)
            if options is not None:
                tagged = self._tagged(options) if len(options) > 1 else None
                return self._options(options) if tagged is None else tagged
        return self._union((SignedSchema(located),))

    def _tagged(self, options: list[Located]) -> int | None:
        """Return the union of some schemas as `tagged_objects`; None if it is not one."""
        if not self.unions.is_used or self.objects.any_order or not self.knows_lists:
            return None
        document = self.normaliser.document
        targets: list[Located] = []
        for option in options:
            target = followed(document, document.enter(option))
            if target is None:
                return None
            targets.append(target)
        return tagged_objects(self, targets)

    def _options(self, options: list[Located]) -> int:
        """Return the union of some schemas; those of many plain objects are one node (see `ObjectUnions`)."""
        if len(options) < MIN_OBJECTS or not self.unions.is_used:
            return self.nodes.alt([self.subschema(option) for option in options])
        plans: list[ObjectPlan] = []
        parts: list[int] = []
        for option in options:
            plan = self._plan_of(option)
            if plan is None:
                parts.append(self.subschema(option))
            else:
                plans.append(plan)
        return self.nodes.alt([self.unions.node(plans), *parts])

    def _plan_of(self, option: Located) -> ObjectPlan | None:
        """Return the plan of a schema of objects that can be lowered together with others (`ObjectUnions.plan_of`);
        None for other schemas."""
        document = self.normaliser.document
        target = followed(document, document.enter(option))
        if target is None or isinstance(target.schema, bool) or not KEYWORDS.applicators.isdisjoint(target.schema):
            return None
        above, self.here = self.here, target
        try:
            own = self.normaliser.assertions(target)
            return None if own is None else self.unions.plan_of(own)
        except (LimitError, SchemaError):  # raised again, where the text reaches the option
            return None
        finally:
            self.here = above

    def after_tag(self, located: Located) -> int:
        """Return the rest of an object after its first member, for `tagged_objects`."""
        own = self.normaliser.assertions(self.normaliser.document.enter(located))
        return self.nodes.EMPTY if own is None else self.objects.after_first(own.objects)

    def is_inhabited(self, goal: Goal) -> bool:
        """Return True if a goal surely holds for a value that can be written; False: it is not known."""
        if self.syntax is not None:  # it may be unable to write the value
            return False
        if not goal:
            return True
        if self._least_texts is not None or len(goal) > 1:
            return False
        part = goal[0]
        if not isinstance(part, SignedSchema) or not part.positive:
            return False
        memo = self._inhabited if part.located.scope is None else self._elsewhere
        return memo.is_inhabited(part.located.schema)

    def witness(self, located: Located) -> int | None:
        """Return the text of one known value; None if one exists and is not known; EMPTY if it is not known whether one
        exists."""
        if not self.is_inhabited((SignedSchema(located),)):
            return self.nodes.EMPTY
        memo = self._inhabited if located.scope is None else self._elsewhere
        found = memo.witness(located.schema)
        return self.listed(found) if found else None

    def branches(self, goal: Goal) -> list[Conjunction]:
        """Return the alternatives of a goal, without those whose values are too long for any model; computed once.

        What is left out narrows the grammar, which the store reports (`Nodes.exceed`).

        Raises:
            LimitError: no alternative is left; it gives the length of the shortest value.
        """
        if self._least_texts is None:
            return self._alternatives(goal)
        branches = self._alternatives(goal)
        kept = self._kept.get(goal)
        if kept is None:
            kept = self._kept[goal] = self._least_texts.kept(branches)
            if len(kept) < len(branches):
                longest = max(map(self._least_texts.of, branches))
                self.nodes.exceed(placed(too_long(longest), self.here))
        if branches and not kept:
            raise too_long(min(map(self._least_texts.of, branches)))
        return kept

    def _alternatives(self, goal: Goal) -> list[Conjunction]:
        """Return all alternatives of a goal; computed once."""
        branches = self.normaliser.expanded.get(goal)
        if branches is None:
            branches = [] if self.is_false(goal) else self.normaliser.branches(flat(goal))
            self.normaliser.expanded[goal] = branches
        return branches

    def supply(self, goal: Goal, most: int) -> Supply:
        """Return the values of a goal, if they are fewer than ``most``."""
        return self._values.of(goal, most)

    def meaning(self, formula: Formula) -> object:
        """Return a key that is equal for formulas that are known to be equivalent."""
        return self.normaliser.contradictions.meaning(formula)

    def are_apart(self, lefts: Goal, rights: Goal) -> bool:
        """Return True if facts show that no value satisfies two goals (False: perhaps some does)."""
        return self.normaliser.contradictions.are_apart(lefts, rights)

    def constant(self, *values: Any) -> Formula:
        """Return the formula of one of some values."""
        return self.normaliser.constant(*values)

    def allowed(self, branch: Conjunction) -> list[Any]:
        """Return the values that an alternative lists and that satisfy the rest of it."""
        values = self._lists.get(branch)
        if values is None:
            values = [value for value in branch.values or () if self.holds(branch, value)]
            self._lists[branch] = values
        return values

    def problem(self, schema: Any) -> LimitError | SchemaError | None:
        """Return the first reason why a schema that is not a part of the document cannot be enforced."""
        return next(iter(self._check(schema, self.options)), None)

    def is_false(self, goal: Goal) -> bool:
        """Return True if a goal obviously holds for no value."""
        for part in goal:
            if isinstance(part, SignedSchema):
                if part.located.schema is (not part.positive):
                    return True
            elif part == FALSE:
                return True
        return False

    def _value(self, goal: Goal) -> int:
        """Return the union of a goal's alternatives. An error has the place of the first schema of the goal."""
        located = [part.located for part in goal if isinstance(part, SignedSchema)]
        above = self.here
        self.here = next((each for each in located if each.is_placed), located[0] if located else above)
        try:
            return self._union(goal)
        except (LimitError, SchemaError) as error:
            if error.place.pointer is not None:
                raise
            raise placed(error, self.here) from None
        finally:
            self.here = above

    def _union(self, goal: Goal) -> int:
        """Return the union of the alternatives of a goal; their strings become one term, so that a mask has one atom
        for them."""
        if not goal:
            return self._anything()
        branches = self.branches(goal)
        if len(branches) == 1:
            return self.branch(branches[0])
        strings: list[int] = []
        plans: list[ObjectPlan] = []
        parts: list[int] = []
        are_many = self.unions.is_used and len(branches) >= MIN_OBJECTS
        for branch in branches:
            term = self._strings_without_patterns(branch)
            if term is not None:
                strings.append(term)
            elif are_many and (plan := self.unions.plan_of(branch)) is not None:
                plans.append(plan)
            else:
                parts.append(self.branch(branch))
        if plans:
            parts.insert(0, self.unions.node(plans))
        if strings:
            parts.append(self.string(self.nodes.terms.alt(strings)))
        return self.nodes.alt(parts)

    def _strings_without_patterns(self, branch: Conjunction) -> int | None:
        """Return the strings of an alternative as a term, if it has only strings, and excludes those that match a
        pattern; else None.

        Such alternatives come from ``oneOf``, and all depend on the same patterns: they are followed as one language.
        """
        if branch.values is not None or not branch.strings.not_patterns or branch.types != _ONLY_STRINGS:
            return None
        return None if irregular(self.nodes.terms, branch.strings) is not None else self.string_term(branch)

    def branch(self, branch: Conjunction) -> int:
        """Return the texts of one alternative."""
        if branch.values is not None:
            return self.listed(self.allowed(branch), integers=branch.numbers.integer)
        parts: list[int] = []
        if "object" in branch.types:
            parts.append(self.objects.node(branch.objects))
        if "array" in branch.types:
            parts.append(self.arrays.node(branch.arrays))
        if not _SCALARS.isdisjoint(branch.types):
            parts.append(self._scalars(branch))
        return parts[0] if len(parts) == 1 else self.nodes.alt(parts)

    # -- values that differ from others ------------------------------------------------------------------------

    def without(self, goal: Goal, excluded: frozenset[str], types: frozenset[str] = frozenset()) -> int:
        """Return the values of a goal without some values, and without all values of some JSON types.

        Args:
            goal: the goal.
            excluded: the keys of the values that are left out (see `value_key`).
            types: the types that are left out.
        """
        if not excluded and not types:
            return self.value(goal)
        key = ("without", self.number, goal, excluded, types)
        return self.nodes.lazy(key, lambda: self._without(goal, excluded, types))

    def _without(self, goal: Goal, excluded: frozenset[str], types: frozenset[str]) -> int:
        """Return the result of `without`, expanded."""
        arrays = frozenset(key for key in excluded if key[0] == "[")
        objects = frozenset(key for key in excluded if key[0] == "{")
        scalars = tuple(value_of_key(key) for key in sorted(excluded) if key[0] not in "[{")
        self.nodes.weight += sum(map(sys.getsizeof, (excluded, arrays, objects)))  # the bytes that this rule keeps
        parts = []
        for branch in self.branches(goal):
            if branch.values is not None:
                new = [value for value in self.allowed(branch) if value_key(value) not in excluded]
                new = [value for value in new if type_of(value) not in types]
                parts.append(self.listed(new, integers=branch.numbers.integer))
                continue
            kept = branch.types - types
            if "object" in kept:
                parts.append(self.objects.node(branch.objects, objects))
            if "array" in kept:
                parts.append(self.arrays.node(branch.arrays, arrays))
            scalar_types = kept & _SCALARS
            if scalar_types:
                # Exact: a number that a reader rounds to an excluded one is excluded too.
                numbers = replace(branch.numbers, exact=True) if excluded else branch.numbers
                not_values = branch.not_values + scalars
                parts.append(self._scalars(replace(branch, types=scalar_types, not_values=not_values, numbers=numbers)))
        return self.nodes.alt(parts)

    def has_other_types(self, goal: Goal, types: frozenset[str]) -> bool:
        """Return True if a goal may have values of other JSON types than these."""
        for branch in self.branches(goal):
            own = branch.types if branch.values is None else set(map(type_of, branch.values))
            if not own <= types:
                return True
        return False

    def distinct_objects(self, goal: Goal) -> int | None:
        """Return the objects of a goal, as items of an array, without those that are equal to an item before; None if
        some of them have no deciding member (see `DistinctObjects`)."""
        parts: list[int] = []
        for branch in self.branches(goal):
            if branch.values is not None:
                if any(type(value) is dict for value in branch.values):
                    return None
            elif "object" in branch.types:
                node = self.objects.distinct(branch.objects)
                if node is None:
                    return None
                parts.append(node)
        return self.nodes.alt(parts)

    def filter_values(self, goal: Goal, choices: Iterable[tuple[str, int]]) -> int:
        """Return the texts of those of some values that satisfy a goal, each with its continuation.

        Args:
            goal: the goal.
            choices: the key of each value, and the node that follows it.
        """
        nodes = self.nodes
        words: dict[bytes, int] = {}
        parts = []
        texts = self._chosen.setdefault(goal, {})
        for key, after in choices:
            if key not in texts:
                texts[key] = self._written_as(goal, value_of_key(key))
            written = texts[key]
            if isinstance(written, bytes):
                words[written] = after
            elif written is not None:
                parts.append(nodes.seq(written, after))
        return nodes.alt([nodes.words(words), *parts])

    def _written_as(self, goal: Goal, value: Any) -> bytes | int | None:
        """Return the one spelling of a value of a goal, or the node of all that the options allow; None if the goal
        does not hold of it."""
        branches = [branch for branch in self.branches(goal) if self.branch_holds(branch, value)]
        if not branches:
            return None
        plain_integers = self._plain_integers and all(branch.numbers.integer for branch in branches)
        any_spelling = self.flexible and not plain_integers and not self.options.plain_integers  # see `listed`
        value = self._ordered(goal, value)
        if self._is_loose(value, any_spelling):
            return self.listed([value], integers=plain_integers)
        return self._spell(value)

    def _ordered(self, goal: Goal, value: Any) -> Any:
        """Return a value of a goal with its members in the order in which they are written."""
        for branch in self.branches(goal) if isinstance(value, (dict, list)) else ():
            if not self.branch_holds(branch, value):
                continue
            if branch.values is not None:
                return next(listed for listed in branch.values if same_value(value, listed))
            if isinstance(value, list):
                return [self._ordered(item_goal(branch.arrays, at), item) for at, item in enumerate(value)]
            goals = self.objects.goals(branch.objects, value)
            return {name: self._ordered(goal, value[name]) for name, goal in goals.items()}
        return value

    def strings(self, goal: Goal) -> int:
        """Return the strings (decoded) for which a goal holds, as a term."""
        term = self._strings.get(goal)
        if term is None:
            terms = self.nodes.terms
            parts: list[int] = []
            for branch in self.branches(goal):
                if branch.values is not None:
                    # Not from `allowed`, which judges listed objects too: their names may be the strings of this goal.
                    words = [word for word in branch.values if isinstance(word, str) and self.holds(branch, word)]
                    parts.append(terms.words(words) if words else terms.EMPTY)
                elif "string" in branch.types:
                    parts.append(self.string_term(branch))
            term = self._strings[goal] = terms.alt(parts)
        return term

    def is_nearly_any(self, goal: Goal) -> bool:
        """Return True if a goal holds for all but finitely many strings; False: not known."""
        terms = self.nodes.terms
        regular = all(irregular(terms, branch.strings) is None for branch in self.branches(goal))
        return regular and is_cofinite(terms, self.strings(goal))

    def is_endless(self, goal: Goal) -> bool:
        """Return True if infinitely many numbers or objects surely satisfy a goal; False: not known. For items of
        ``uniqueItems``, which then never run out (strings are judged by `is_nearly_any`)."""
        for branch in self.branches(goal):
            if branch.values is None:
                if "number" in branch.types and branch.numbers in UNBOUNDED:
                    return True
                if "object" in branch.types and self.objects.are_endless(branch.objects):
                    return True
        return False

    def _in_parts(self, value: dict[str, Any] | list[Any] | tuple[Any, ...]) -> int:
        """Return every spelling of a listed object or array: it is lowered as a schema whose parts are constants."""
        if isinstance(value, dict):
            part = ObjectPart({name: self.constant(item) for name, item in value.items()}, additional=FALSE)
            return self.objects.node(Objects(parts=(part,), required=tuple(value)))
        prefix = ArrayPart(tuple(self.constant(item) for item in value))
        return self.arrays.node(Arrays(parts=(prefix,), least=len(value), most=len(value)))

    # -- judging values --------------------------------------------------------------------------------------

    def holds(self, branch: Conjunction, value: Any) -> bool:
        """Return True if a decoded value satisfies a conjunction, its list of values aside."""
        if type(value) is str and branch.strings is EVERY.strings and not branch.not_values:
            return "string" in branch.types
        kind = type_of(value)
        if kind not in branch.types or is_among(value, branch.not_values):
            return False
        if kind == "number":
            return branch.numbers is EVERY.numbers or branch.numbers.contains(value)
        if kind == "string":
            if branch.strings is EVERY.strings:  # and it is none of ``not_values``
                return True
            return self.nodes.terms.matches(self.string_term(branch), value)
        if kind == "array":
            return self.arrays.holds(branch.arrays, value)
        return kind != "object" or self.objects.holds(branch.objects, value)

    def goal_holds(self, goal: Goal, value: Any) -> bool:
        """Return True if a decoded value satisfies a goal."""
        return any(self.branch_holds(branch, value) for branch in self.branches(goal))

    def branch_holds(self, branch: Conjunction, value: Any) -> bool:
        """Return True if a decoded value satisfies an alternative."""
        if branch.values is not None and not is_among(value, branch.values):
            return False
        return self.holds(branch, value)
