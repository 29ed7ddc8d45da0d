"""Lowering of the arguments object: the outermost object, with markup around its members instead of JSON's."""

from __future__ import annotations

from typing import Any

from ...json.values import type_of
from ...language.reading_marks import ENDED, RAW, TAGGED, VALUE
from ...regex.compile import regex_term
from ...text_grammars.strings import StringGrammar
from ..normal.conjunction import FALSE, Conjunction, Goal, ObjectPart, Objects
from ..scalars.value_syntax import Arguments, cannot_write_name, cannot_write_others, mark_node, size_of, without
from .context import GoalNodes
from .merged_objects import MergedObjects
from .objects import ObjectLowering

#: By type: the texts that readers of raw values take for a value of that type instead of a string.
READINGS = {
    "null": r"[ \t\n\r]*(?:null|None)[ \t\n\r]*",
    "boolean": r"[ \t\n\r]*(?:true|false|True|False)[ \t\n\r]*",
    "number": r"[ \t\n\r]*-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][\-+]?[0-9]+)?[ \t\n\r]*",
    "object": r"[ \t\n\r]*\{[\s\S]*",
    "array": r"[ \t\n\r]*\[[\s\S]*",
}

#: Maximum number of names of members of which the kinds or the reading is kept: a text may have any names.
MAX_KNOWN_NAMES = 4096


class ArgumentsObject:
    """Lowering of a document's root in the syntax of `Arguments`.

    A raw string is never a text that is read as another type that the member may have (`READINGS`), unless strings have
    markup of their own.
    """

    def __init__(self, lowering: GoalNodes, merged: MergedObjects, goal: Goal, style: Arguments) -> None:
        self.style = style
        self._lowering = lowering
        self._nodes = nodes = lowering.nodes
        self.objects = ObjectLowering(lowering, merged, self)
        self._branches = [branch for branch in lowering.branches(goal) if "object" in branch.types]
        self._kinds: dict[str, frozenset[str]] = {}
        self.separator = mark_node(nodes, self.style.separator)
        self.before_name = mark_node(nodes, self.style.before_name)
        self._after_name = mark_node(nodes, self.style.after_name)
        self._after_value = mark_node(nodes, self.style.after_value)
        self.ends_values = bool(self.style.after_value)

    def node(self) -> int:
        """Return every text of the root.

        Raises:
            UnsupportedSchemaError: a member's name cannot be written, or raw strings could be mistaken for members that
                the schema does not declare.
        """
        alternatives = [objects for branch in self._branches for objects in self._plain_objects(branch)]
        for objects in alternatives:
            self._check(objects)
        return self._nodes.alt([self.objects.node(objects) for objects in alternatives])

    def kinds(self, name: str) -> frozenset[str]:
        """Return the types that a member's value may have."""
        known = self._kinds.get(name)
        if known is None:
            kinds: set[str] = set()
            for branch in self._branches:
                for objects in self._plain_objects(branch):
                    for goal in self._goals(objects, name):
                        for value in self._lowering.branches(goal):
                            kinds.update(value.types if value.values is None else map(type_of, value.values))
            known = frozenset(kinds)
            if len(self._kinds) < MAX_KNOWN_NAMES:
                self._kinds[name] = known
        return known

    def keys(self, name: str) -> tuple[bytes, ...]:
        """Return the texts of a name."""
        spelled = self.style.spelled(name)
        return () if spelled is None else (spelled.encode(),)

    def name(self, names: int) -> int:
        """Return the texts of the names that are in a term."""
        terms = self._nodes.terms
        return self._nodes.text(terms.and_([names, regex_term(terms, self.style.names, whole=True)]))

    def value(self, name: str | None, goal: Goal) -> int:
        """Return the rest of a member after its name: the value, with its markup."""
        nodes = self._nodes
        if self.style.raw_end is None or name is None:
            value = nodes.seq(self._lowering.marked(VALUE), self._lowering.value(goal))
            return nodes.sequence([self._after_name, value, self._after_value])
        return nodes.lazy(("outermost", self._lowering.number, name, goal), lambda: self._raw(name, goal))

    def _raw(self, name: str, goal: Goal) -> int:
        """Return the value of an argument in markup: strings as they are, all other values as JSON or in marks of their
        type. A string that would be read as another value is left out."""
        nodes, terms, lowering, style = self._nodes, self._nodes.terms, self._lowering, self.style
        strings: list[int] = []
        grammars: list[tuple[StringGrammar, int]] = []
        others: list[int] = []  # values as JSON
        marks = dict(style.after_name_by_type)
        marked: list[int] = []  # values of the types that have markup of their own
        tagged = lowering.marked(VALUE, form=TAGGED)
        for branch in lowering.branches(goal):
            types = branch.types if branch.values is None else frozenset(map(type_of, lowering.allowed(branch)))
            if "string" in types:
                grammar, term = self._strings(branch)
                if grammar is None:
                    strings.append(term)
                else:
                    grammars.append((grammar, term))
            others.append(self._of_types(branch, types - {"string", *marks}))
            for kind in sorted(marks.keys() & types):
                value = self._of_types(branch, frozenset({kind}))
                marked.append(nodes.sequence([mark_node(nodes, marks[kind]), tagged, value]))
        if style.python_words:
            others += [nodes.literal(repr(word).encode()) for word in (True, False, None) if self._takes(goal, word)]
        readings = sorted(self.kinds(name) - {"string"}) if style.after_name_raw is None else ()
        clear = terms.not_(terms.alt([regex_term(terms, READINGS[kind], whole=True) for kind in readings]))
        raw = [self._raw_string(None, terms.and_([terms.alt(strings), clear]))]
        raw += [self._raw_string(grammar, terms.and_([term, clear])) for grammar, term in grammars]
        raw_mark = self._after_name if style.after_name_raw is None else mark_node(nodes, style.after_name_raw)
        plain = nodes.sequence([self._after_name, tagged, nodes.alt(others)])
        written = nodes.alt([nodes.seq(raw_mark, nodes.alt(raw)), plain, *marked])
        return nodes.sequence([written, self._after_value, lowering.marked(ENDED, size=size_of(style.after_value))])

    def _strings(self, branch: Conjunction) -> tuple[StringGrammar | None, int]:
        """Return the strings of an alternative, as `GoalNodes.string_parts` does; listed ones are a term."""
        if branch.values is None:
            return self._lowering.string_parts(branch)
        words = [value for value in self._lowering.allowed(branch) if isinstance(value, str)]
        return None, self._nodes.terms.words(words)

    def _of_types(self, branch: Conjunction, types: frozenset[str]) -> int:
        """Return the texts, in JSON, of the values of an alternative that have one of some types."""
        if branch.values is None:
            return self._lowering.branch(branch.of_types(types))
        return self._lowering.listed([value for value in self._lowering.allowed(branch) if type_of(value) in types])

    def _raw_string(self, grammar: StringGrammar | None, term: int) -> int:
        """Return the strings of a term, and of a grammar if there is one, as raw text or between the marks of a
        block. As raw text, no string contains what ends it, or begins as a block does."""
        nodes, terms, style = self._nodes, self._nodes.terms, self.style

        def text(within: int) -> int:
            return nodes.text(within) if grammar is None else grammar.node(nodes, within, None)

        plain = terms.and_([term, terms.not_(style.ended(terms))])
        begun = self._lowering.marked(VALUE, form=RAW)
        if style.block is None:
            return nodes.seq(begun, text(plain))
        begin, end = ("".join(piece for piece, _ in mark) for mark in style.block)
        plain = terms.and_([plain, terms.not_(terms.seq(terms.literal(begin), terms.ALL))])
        before, after = (mark_node(nodes, mark) for mark in style.block)
        ended = self._lowering.marked(ENDED, size=size_of(style.block[1]))
        block = nodes.sequence([before, begun, text(without(terms, term, end)), after, ended])
        return nodes.alt([nodes.seq(begun, text(plain)), block])

    def _takes(self, goal: Goal, value: bool | None) -> bool:
        """Return True if a goal has true, false or null."""
        return any(
            self._lowering.holds(branch, value)
            and (branch.values is None or any(item is value for item in branch.values))
            for branch in self._lowering.branches(goal)
        )

    def _plain_objects(self, branch: Conjunction) -> list[Objects]:
        """Return the objects of a branch, each listed value as a conjunction of its own."""
        if branch.values is None:
            return [branch.objects]
        values = [value for value in branch.values if self._lowering.holds(branch, value)]
        return [self._constant(value) for value in values if isinstance(value, dict)]

    def _check(self, objects: Objects) -> None:
        """Raise `UnsupportedSchemaError` if an object has names that the markup cannot write."""
        shape = self.objects.shape(objects)
        for member in shape.members:
            if not self.keys(member.name) and not self._lowering.is_false(member.goal):
                raise cannot_write_name(self.style.writer, member.name)
        if shape.others and self.style.raw_end is not None and shape.most != 0:
            raise cannot_write_others(self.style.writer)

    def _constant(self, value: dict[str, Any]) -> Objects:
        constant = self._lowering.constant
        part = ObjectPart({name: constant(item) for name, item in value.items()}, additional=FALSE)
        return Objects(parts=(part,), required=tuple(value))

    def _goals(self, objects: Objects, name: str) -> list[Goal]:
        """Return the goals that the value of a member may have."""
        shape = self.objects.shape(objects)
        goals = [member.goal for member in shape.members if member.name == name]
        if goals:
            return goals
        return [region.goal for region in shape.others if self._nodes.terms.matches(region.names, name)]
