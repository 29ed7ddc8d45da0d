"""Lowering of arguments in nested tags: members and items are nested elements, and strings are raw.

An element's text alone does not show its type, so the grammar and the reader share a `Reading`: the types that an
element may have, over all alternatives of the schema. Values that tags cannot express (undeclared names,
``uniqueItems``, an empty array where a string is allowed) are JSON inside their element.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...json.values import type_of
from ...language.nodes import Nodes
from ...language.reading_marks import ENDED, ENTERED, RAW, TAGGED, VALUE
from ...regex.compile import regex_term
from ...text_grammars.strings import StringGrammar
from ..normal.conjunction import EVERY, FALSE, ArrayPart, Arrays, Conjunction, Goal, ObjectPart, Objects
from ..normal.parts import fixed_positions, item_goal
from ..scalars.value_syntax import NestedTags, cannot_write_name, cannot_write_others, mark_node, size_of, without
from .arguments_object import MAX_KNOWN_NAMES, READINGS
from .array_items import ways_to_count
from .context import GoalNodes
from .merged_objects import MergedObjects
from .objects import ObjectLowering

_SCALARS = frozenset({"number", "boolean", "null"})


class Reading:
    """The values that an element may have: the values of some goals.

    Attributes:
        kinds: their JSON types.
    """

    def __init__(self, arguments: NestedArguments, goals: tuple[Goal, ...]) -> None:
        self._arguments = arguments
        self._branches = [branch for goal in goals for branch in arguments.branches(goal)]
        self._members: dict[str, Reading] = {}
        self._items: dict[int, Reading] = {}
        kinds: set[str] = set()
        for branch in self._branches:
            kinds.update(branch.types if branch.values is None else map(type_of, branch.values))
        self.kinds = frozenset(kinds)

    def member(self, name: str) -> Reading:
        """Return the reading of a member."""
        known = self._members.get(name)
        if known is None:
            goals = [goal for objects in self._objects() for goal in self._arguments.goals(objects, name)]
            known = self._arguments.reading(goals)
            if len(self._members) < MAX_KNOWN_NAMES:
                self._members[name] = known
        return known

    def _objects(self) -> Iterable[Objects]:
        for branch in self._branches:
            if branch.values is None and "object" in branch.types:
                yield branch.objects
            for value in branch.values or ():
                if isinstance(value, dict):
                    yield self._arguments.constant_object(value)

    def item(self, index: int) -> Reading:
        """Return the reading of an item."""
        arrays = list(self._arrays())
        index = min(index, max(map(fixed_positions, arrays), default=0))  # later items have the same goals
        if index not in self._items:
            goals = [item_goal(each, index) for each in arrays if each.most is None or index < each.most]
            self._items[index] = self._arguments.reading(goals)
        return self._items[index]

    def _arrays(self) -> Iterable[Arrays]:
        for branch in self._branches:
            if branch.values is None and "array" in branch.types:
                yield branch.arrays
            for value in branch.values or ():
                if isinstance(value, (list, tuple)):
                    yield self._arguments.constant_array(value)


class NestedArguments:
    """Lowering of a document's root in the syntax of `NestedTags`."""

    def __init__(self, lowering: GoalNodes, merged: MergedObjects, goal: Goal, style: NestedTags) -> None:
        self._lowering = lowering
        self._merged = merged
        self._nodes = lowering.nodes
        self._style = style
        self._shapes = ObjectLowering(lowering, merged)
        self._readings: dict[tuple[Goal, ...], Reading] = {}
        self._object_lowerings: dict[Reading, ObjectLowering] = {}
        self._root = goal

    @property
    def root(self) -> Reading:
        """The reading of the arguments object."""
        return self.reading([self._root])

    def reading(self, goals: Iterable[Goal]) -> Reading:
        """Return the reading of values of some goals; the same object for the same goals."""
        key = tuple(dict.fromkeys(goals))
        if key not in self._readings:
            self._readings[key] = Reading(self, key)
        return self._readings[key]

    def branches(self, goal: Goal) -> list[Conjunction]:
        """Return the alternatives of a goal."""
        return self._lowering.branches(goal)

    def goals(self, objects: Objects, name: str) -> list[Goal]:
        """Return the goals of a member."""
        shape = self._shapes.shape(objects)
        goals = [member.goal for member in shape.members if member.name == name]
        terms = self._nodes.terms
        return goals or [region.goal for region in shape.others if terms.matches(region.names, name)]

    def constant_object(self, value: Mapping[str, Any]) -> Objects:
        """Return the conjunction of one object."""
        constant = self._lowering.constant
        part = ObjectPart({name: constant(item) for name, item in value.items()}, additional=FALSE)
        return Objects(parts=(part,), required=tuple(value))

    def constant_array(self, value: list[Any] | tuple[Any, ...]) -> Arrays:
        """Return the conjunction of one array."""
        part = ArrayPart(tuple(map(self._lowering.constant, value)))
        return Arrays(parts=(part,), least=len(value), most=len(value))

    def node(self) -> int:
        """Return every text of the root.

        Raises:
            UnsupportedSchemaError: it has members that no tags can name.
        """
        parts = []
        for branch in self.branches(self._root):
            if branch.values is None:
                conjunctions = [branch.objects] if "object" in branch.types else []
            else:
                values = self._lowering.allowed(branch)
                conjunctions = [self.constant_object(value) for value in values if isinstance(value, dict)]
            for objects in conjunctions:
                self._check(objects)
                parts.append(self._in_tags(self.root, objects))
        return self._nodes.alt(parts)

    def _check(self, objects: Objects) -> None:
        """Raise `UnsupportedSchemaError` if an object has names that no tag has."""
        shape = self._shapes.shape(objects)
        for member in shape.members:
            if not self.is_name(member.name) and not self._lowering.is_false(member.goal):
                raise cannot_write_name(self._style.writer, member.name)
        if shape.others and shape.most != 0:
            raise cannot_write_others(self._style.writer)

    def is_name(self, name: str) -> bool:
        """Return True if a tag can have this name."""
        return self._style.spelled(name) is not None

    # -- elements ----------------------------------------------------------------------------------------------

    def body(self, reading: Reading, goal: Goal) -> int:
        """Return what an element may hold whose value is of a goal."""
        key = ("nested", self._lowering.number, reading, goal)
        return self._nodes.lazy(key, lambda: self._body(reading, goal))

    def element(self, name: str, body: int) -> int:
        """Return an element from its name on, without the name: `>body</name>`, with the marks of the style."""
        nodes, style = self._nodes, self._style
        end = f"</{name}>".encode()
        ended = self._lowering.marked(ENDED, size=size_of(style.mark) + len(end))
        return nodes.sequence([nodes.literal(b">"), body, mark_node(nodes, style.mark), nodes.literal(end), ended])

    def _body(self, reading: Reading, goal: Goal) -> int:
        """Return the text between the tags of a value. A string that would be read as another kind of value is left
        out."""
        nodes, lowering, kinds = self._nodes, self._lowering, reading.kinds
        terms = nodes.terms
        strings: list[int] = []
        grammars: list[tuple[StringGrammar, int]] = []
        parts: list[int] = []
        for branch in lowering.branches(goal):
            if branch.values is not None:
                for value in lowering.allowed(branch):
                    if isinstance(value, str):
                        strings.append(terms.words([value]))
                    elif isinstance(value, dict):
                        parts.append(self._object(reading, self.constant_object(value)))
                    elif isinstance(value, (list, tuple)):
                        parts.append(self._array(reading, self.constant_array(value)))
                    else:
                        parts.append(lowering.listed([value], integers=branch.numbers.integer))
                continue
            if "string" in branch.types:
                grammar, term = lowering.string_parts(branch)
                if grammar is None:
                    strings.append(term)
                else:
                    grammars.append((grammar, term))
            if scalars := branch.types & _SCALARS:
                parts.append(lowering.branch(branch.of_types(scalars)))
            if "object" in branch.types:
                parts.append(self._object(reading, branch.objects))
            if "array" in branch.types:
                parts.append(self._array(reading, branch.arrays))
        clear = terms.not_(terms.alt([regex_term(terms, READINGS[kind], whole=True) for kind in kinds - {"string"}]))
        mark = "".join(text for text, _ in self._style.mark)
        texts = [nodes.text(without(terms, terms.and_([terms.alt(strings), clear]), mark))]
        for grammar, term in grammars:
            texts.append(grammar.node(nodes, without(terms, terms.and_([term, clear]), mark), None))
        if lowering.is_marked:
            forms = ((TAGGED, parts), (RAW, texts))
            return nodes.alt([nodes.seq(lowering.marked(VALUE, form=form), nodes.alt(some)) for form, some in forms])
        return nodes.alt([*parts, *texts])

    def _object(self, reading: Reading, objects: Objects) -> int:
        """Return the objects of a conjunction: in tags if these can say them, else as JSON."""
        shape = self._shapes.shape(objects)
        names = [member.name for member in shape.members]
        has_any_name = bool(shape.others) and shape.most != 0
        may_look_like_items = "array" in reading.kinds and self._style.item in names
        if has_any_name or may_look_like_items or not all(map(self.is_name, names)):
            return self._as_json(replace(EVERY, types=frozenset({"object"}), objects=objects))
        if reading.kinds.isdisjoint({"string", "array"}):
            return self._in_tags(reading, objects)
        # The element of an empty object would be read as a text, or as an array.
        some = self._in_tags(reading, replace(objects, least=max(1, objects.least)))
        none = self._as_json(replace(EVERY, types=frozenset({"object"}), objects=replace(objects, most=0)))
        return self._nodes.alt([some, none])

    def _in_tags(self, reading: Reading, objects: Objects) -> int:
        """Return the objects of a conjunction in tags, where the values of the element are read as ``reading``."""
        if reading not in self._object_lowerings:
            members = _Members(self._nodes, self, reading, self._style)
            self._object_lowerings[reading] = ObjectLowering(self._lowering, self._merged, members)
        entered = self._lowering.marked(ENTERED, name="{")
        return self._nodes.seq(entered, self._object_lowerings[reading].node(objects))

    def _array(self, reading: Reading, arrays: Arrays) -> int:
        """Return the arrays of a conjunction: in tags, or as JSON where their items must not repeat."""
        if arrays.unique:
            return self._as_json(replace(EVERY, types=frozenset({"array"}), arrays=arrays))
        if arrays.most is not None and arrays.least > arrays.most:
            return self._nodes.EMPTY
        entered = self._lowering.marked(ENTERED, name="[")
        counted = (0,) * len(arrays.contains)
        if "string" not in reading.kinds:
            return self._nodes.seq(entered, self._items(reading, arrays, 0, counted))
        # The element of an empty array would be read as a text.
        least = max(1, arrays.least)
        some = self._nodes.seq(entered, self._items(reading, replace(arrays, least=least), 0, counted))
        none = self._as_json(replace(EVERY, types=frozenset({"array"}), arrays=replace(arrays, most=0)))
        return self._nodes.alt([some, none])

    def _as_json(self, values: Conjunction) -> int:
        return self._lowering.branch(values)

    def _items(self, reading: Reading, arrays: Arrays, count: int, counted: tuple[int, ...]) -> int:
        """Return the items of an array from a position on."""
        if arrays.most is None:  # from here on it does not matter how many there are
            count = min(count, max(arrays.least, 1, fixed_positions(arrays)))
        key = ("nested items", self._lowering.number, reading, arrays, count, counted)
        return self._nodes.lazy(key, lambda: self._expand_items(reading, arrays, count, counted))

    def _expand_items(self, reading: Reading, arrays: Arrays, count: int, counted: tuple[int, ...]) -> int:
        """Return the items from the one numbered ``count`` on; ``counted`` has, for each ``contains``, the number of
        items counted so far."""
        nodes, style = self._nodes, self._style
        options = []
        are_counted = all(
            number >= part.least and (part.most is None or number <= part.most)
            for number, part in zip(counted, arrays.contains, strict=True)
        )
        if count >= arrays.least and are_counted:
            options.append(nodes.EPSILON)
        if arrays.most is None or count < arrays.most:
            goal = item_goal(arrays, count)
            begin = nodes.seq(mark_node(nodes, style.mark), nodes.literal(f"<{style.item}".encode()))
            for asked, after in ways_to_count(self._merged, arrays, count, counted):
                body = self.body(reading.item(count), (*goal, *asked))
                rest = self._items(reading, arrays, count + 1, after)
                options.append(nodes.sequence([begin, self.element(style.item, body), rest]))
        return nodes.alt(options)


class _Members:
    """Syntax of the members of an object in tags."""

    def __init__(self, nodes: Nodes, arguments: NestedArguments, reading: Reading, style: NestedTags) -> None:
        self._nodes = nodes
        self._arguments = arguments
        self._reading = reading
        self.separator = nodes.EPSILON
        self.before_name = nodes.seq(mark_node(nodes, style.mark), nodes.literal(b"<"))
        self.ends_values = True

    def keys(self, name: str) -> tuple[bytes, ...]:
        """Return the texts of a name."""
        return (name.encode(),) if self._arguments.is_name(name) else ()

    def name(self, names: int) -> int:
        """Return nothing: names that the schema does not declare are not written in tags."""
        return self._nodes.EMPTY

    def value(self, name: str | None, goal: Goal) -> int:
        """Return the rest of an element after its name."""
        if name is None:
            return self._nodes.EMPTY
        return self._arguments.element(name, self._arguments.body(self._reading.member(name), goal))
