"""Programs of calls as strings: the syntax ``program`` of ``x-grammar``.

A program is a subset of Python (``tools/programs``): a statement a line, each of them ``name = value``, a call,
``print(value)`` or ``return value``; at least one has a call. A value is a call, a bound name with a path of fields and
indices, or a literal.
Every name is bound before it is used, every field is one of its object's, and every argument has a type that its
parameter takes. So the grammar of a statement depends on the names before it: it is a dependent node, which reads the
name that the statement before it binds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..basics.cached import cached_property
from ..dependent.written import Written
from ..errors import GrammarError
from ..language.nodes import Nodes
from ..language.terms import Terms
from ..regex.compile import regex_term
from .expressions import (
    EMPTY_TEXT,
    Choice,
    Complement,
    Expression,
    Intersection,
    Literal,
    Part,
    Reference,
    Regular,
    choice,
    pattern,
    sequence,
)
from .rules import Rules

#: The names that a statement may bind, but for words of the language and functions.
_NAME = "[a-z_][a-z0-9_]{0,31}"
#: Maximum number of statements before the first call.
MAX_BEFORE = 4
_RESERVED = re.findall(
    "[a-z]+",
    """and as assert async await break case class continue def del elif else except finally for from global if import in
    is lambda match nonlocal not or pass print raise return try type while with yield none true false""",
)
#: Words that begin a statement of Python, and no name: a model that writes one would go on in the middle of its name.
_BEGINS = pattern("(?:async|class|def|elif|else|except|for|from|if|import|try|while|with)[a-z0-9_]*")
_INDEX = pattern(r"-[1-9]|0|[1-9]\d{0,3}")

#: A bound name and its type.
Bound = tuple[str, str]


@dataclass(frozen=True)
class Slot:
    """What a parameter, or an item of a list, takes.

    Attributes:
        literal: its literals; None: it has none.
        takes: the types that are subsets of its own.
        items: the slot of the items, if it is a list of values of any length.
    """

    literal: Expression | None
    takes: frozenset[str]
    items: str | None = None


@dataclass(frozen=True)
class Programs:
    """The programs over some functions; equal to others of the same text.

    Attributes:
        text: the definition: see `read_programs`.
        functions: by name: the name, slot and necessity of each parameter, in order, and the type of the results.
        slots: by name.
        types: by name, the types of the fields of an object, and of the items of a list (``"[]"``).
        constants: literals that a statement may bind, and their types.
        statements: greatest number of statements.
        nested: greatest number of calls inside of each other.
    """

    text: str
    functions: Mapping[str, tuple[tuple[tuple[str, str, bool], ...], str]] = field(compare=False)
    slots: Mapping[str, Slot] = field(compare=False)
    types: Mapping[str, Mapping[str, str]] = field(compare=False)
    constants: tuple[tuple[Expression, str], ...] = field(compare=False)
    statements: int = field(compare=False)
    nested: int = field(compare=False)

    #: As `Rules` has them.
    controls = frozenset[str]()

    def term(self, terms: Terms) -> None:
        """Return None: programs are no regular language."""

    def build(self, nodes: Nodes) -> int:
        """Return the node of all programs. The first statement depends on where the text begins."""
        first = lambda before: self.statement(nodes, (), len(before))  # noqa: E731
        return int(nodes.dynamic(("program", self), self.texts(nodes, is_over=False), first))

    def texts(self, nodes: Nodes, *, is_over: bool) -> int:
        """Return the node of texts among which the rest of a program is.

        Shortest texts are looked for among these: as a call is still needed, none is shorter than the shortest call.

        Args:
            nodes: the store.
            is_over: the program may have ended.
        """
        least = 0 if is_over else self._least
        regex = "(?:[a-z_](?s:.)*)?" if is_over else f"[a-z_](?s:.){{{least - 1},}}"
        return int(nodes.text(regex_term(nodes.terms, regex, whole=True)))

    @cached_property
    def _least(self) -> int:
        """Lower bound of the length of a call, with required arguments of one character."""
        sizes = []
        for name, (parameters, _) in self.functions.items():
            needed = sum(is_needed for _, _, is_needed in parameters)
            sizes.append(len(name) + 2 + max(3 * needed - 2, 0))
        return min(sizes)

    def statement(self, nodes: Nodes, bound: tuple[Bound, ...], at: int, count: int = 0, calls: bool = False) -> int:
        """Return the node of the rest of a program.

        Args:
            nodes: the store.
            bound: the names so far.
            at: where the statement begins, in bytes.
            count: the number of statements before it.
            calls: a call is among these.
        """
        key = ("statement", self, bound, at, count, calls)
        return int(nodes.lazy(key, lambda: statement_rules(self, bound, at, count, calls).build(nodes)))

    @cached_property
    def leading(self) -> Mapping[str, frozenset[str]]:
        """For each slot, the types with a path to a type that it takes."""
        return {name: self._leading(slot.takes) for name, slot in self.slots.items()}

    def _leading(self, takes: frozenset[str]) -> frozenset[str]:
        found, grown = set[str](), set(takes)
        while grown - found:
            found |= grown
            grown = {name for name, parts in self.types.items() if not found.isdisjoint(parts.values())}
        return frozenset(found)


@dataclass(frozen=True)
class _Next:
    """The statements after one that ends here: a dependent node.

    Attributes:
        programs: the language.
        bound: the names before the statement.
        at: where it began.
        count: the number of statements before it.
        bind: the type of the name that it binds; None: it binds none.
        calls: a call is in it, or before it.
    """

    programs: Programs
    bound: tuple[Bound, ...]
    at: int
    count: int
    bind: str | None
    calls: bool

    controls = frozenset[str]()

    def build(self, nodes: Nodes) -> int:
        """Return the node. After a call, the empty text is in it, so it never forbids the end of a program."""
        texts = self.programs.texts(nodes, is_over=self.calls)
        return int(nodes.dynamic(("next", self), texts, lambda before: self._resolve(nodes, before)))

    def _resolve(self, nodes: Nodes, before: Written) -> int:
        bound, text = self.bound, before.text()
        if self.bind is not None:
            name = re.compile(rb"\w+").match(text, self.at)
            assert name is not None
            bound = (*bound, (name.group().decode(), self.bind))
        return self.programs.statement(nodes, bound, len(text), self.count + 1, self.calls)


def statement_rules(programs: Programs, bound: tuple[Bound, ...], at: int, count: int, calls: bool) -> Rules:
    """Return the rules of one statement and of what follows it; see `Programs.statement`.

    Their number grows as that of the functions, for each depth of calls."""
    return _Statement(programs, bound, at, count, calls).rules()


class _Statement:
    """The rules of one statement, while they are made."""

    def __init__(self, programs: Programs, bound: tuple[Bound, ...], at: int, count: int, calls: bool) -> None:
        self._programs, self._bound, self._at, self._count, self._calls = programs, bound, at, count, calls
        self._rules: dict[str, Expression] = {}
        self._known: dict[str, Expression | None] = {}

    def rules(self) -> Rules:
        """Return them."""
        programs = self._programs
        calls = {name: call for name in programs.functions if (call := self._call(name, 0)) is not None}
        values = [sequence(call, self._path(programs.functions[name][1], "")) for name, call in calls.items()]
        if self._calls:
            values += [sequence(Literal(name), self._path(kind, "")) for name, kind in self._bound]
        parts: list[Expression] = []
        if self._count < programs.statements:
            bindings = [sequence(call, self._then(programs.functions[name][1], True)) for name, call in calls.items()]
            if self._calls or self._count < MAX_BEFORE:
                bindings += [sequence(Literal(name), self._then(kind, self._calls)) for name, kind in self._bound]
                bindings += [sequence(text, self._end(kind, self._calls)) for text, kind in programs.constants]
            parts.append(sequence(self._new_name(), Literal(" = "), choice(*bindings)))
            parts += [sequence(call, self._end(None, True)) for call in calls.values()]
            if values:
                parts.append(sequence(Literal("print("), choice(*values), Literal(")"), self._end(None, True)))
        if values:
            parts.append(sequence(Literal("return "), choice(*values)))
        if self._calls:
            parts.append(EMPTY_TEXT)
        self._rules["root"] = Choice(tuple(parts))
        return Rules(("statement", programs, self._bound, self._at, self._count, self._calls), self._rules, "root")

    def _new_name(self) -> Expression:
        taken = [*_RESERVED, *self._programs.functions, *(name for name, _ in self._bound)]
        return Intersection((pattern(_NAME), Complement(Choice((_BEGINS, *map(Literal, sorted({*taken})))))))

    def _end(self, bind: str | None, calls: bool) -> Expression:
        """Return the end of the line and the statements after it; after a call, also the end of the program."""
        after = sequence(Literal("\n"), Part(_Next(self._programs, self._bound, self._at, self._count, bind, calls)))
        return choice(EMPTY_TEXT, after) if calls else after

    # -- paths -----------------------------------------------------------------------------------------------------

    def _then(self, kind: str, calls: bool) -> Expression:
        """Return what may follow a value of a type that is bound: its end, or a step and what may follow that."""
        return self._steps(f"then {calls}", kind, partial(self._end, calls=calls), None)

    def _path(self, kind: str, slot: str) -> Expression:
        """Return the paths from a value of a type to those that a slot takes; ``""``: to any."""
        takes = self._programs.slots[slot].takes if slot else None
        end = lambda kind: EMPTY_TEXT if takes is None or kind in takes else None  # noqa: E731
        return self._steps(slot, kind, end, self._programs.leading[slot] if slot else None)

    def _steps(
        self, slot: str, kind: str, end: Callable[[str], Expression | None], leading: frozenset[str] | None
    ) -> Expression:
        """Return the paths from a value of a type, as a rule.

        Args:
            slot: part of the rule's name.
            kind: the type.
            end: returns what follows a path that ends at a type; None: it may not end there.
            leading: the types that lead to an end; None: all.
        """
        name = f"path {kind} {slot}"
        if name not in self._rules:
            self._rules[name] = EMPTY_TEXT  # types may be recursive
            ended = end(kind)
            ways = [] if ended is None else [ended]
            for key, inner in self._programs.types.get(kind, {}).items():
                if leading is None or inner in leading:
                    step = sequence(Literal("["), _INDEX, Literal("]")) if key == "[]" else _field(key)
                    ways.append(sequence(step, self._steps(slot, inner, end, leading)))
            self._rules[name] = Choice(tuple(ways))
        return Reference(name)

    # -- values ----------------------------------------------------------------------------------------------------

    def _call(self, function: str, depth: int) -> Expression | None:
        """Return the calls of a function inside of ``depth`` others; None: there are none."""
        if depth == self._programs.nested:
            return None
        return self._once(f"call {function} {depth}", lambda: self._made_call(function, depth))

    def _value(self, slot: str, depth: int, within: str) -> Expression | None:
        """Return the values for a slot in a call of the function ``within``, which is no value itself; None: there are
        none."""
        result = self._programs.functions[within][1]
        but = within if result in self._programs.leading[slot] else ""  # others have one rule together
        return self._once(f"value {slot} {depth} {but}", lambda: self._made_value(slot, depth, within))

    def _once(self, rule: str, make: Callable[[], Expression | None]) -> Expression | None:
        """Return what ``make`` returns as a rule, made once."""
        if rule not in self._known:
            made = make()
            if made is not None:
                self._rules[rule] = made
            self._known[rule] = None if made is None else Reference(rule)
        return self._known[rule]

    def _made_call(self, function: str, depth: int) -> Expression | None:
        """Return `_call`, not kept yet: the arguments by place, from some parameter on by name."""
        parameters = self._programs.functions[function][0]
        values = {name: self._value(slot, depth + 1, function) for name, slot, _ in parameters}
        if any(values[name] is None for name, _, is_needed in parameters if is_needed):
            return None
        found: dict[tuple[int, bool, bool], Expression] = {}

        def rest(index: int, named: bool, first: bool) -> Expression:
            """Return the parameters from one on: those after a name have names, too."""
            if index == len(parameters):
                return Literal(")")
            key = (index, named, first)
            if key not in found:
                name, _, is_needed = parameters[index]
                value, comma, ways = values[name], "" if first else ", ", list[Expression]()
                if value is not None:
                    ways.append(sequence(Literal(f"{comma}{name}="), value, rest(index + 1, True, False)))
                    if not named:
                        ways.append(sequence(Literal(comma), value, rest(index + 1, False, False)))
                if not is_needed:
                    ways.append(rest(index + 1, True, first))
                rule = f"arguments {function} {depth} {index} {named} {first}"
                self._rules[rule] = choice(*ways)
                found[key] = Reference(rule)
            return found[key]

        return sequence(Literal(f"{function}("), rest(0, False, True))

    def _made_value(self, name: str, depth: int, within: str) -> Expression | None:
        """Return `_value`, not kept yet: a literal, a bound name or a call with a path, or a list."""
        programs, slot = self._programs, self._programs.slots[name]
        leading = programs.leading[name]
        ways = [] if slot.literal is None else [slot.literal]
        ways += [sequence(Literal(each), self._path(kind, name)) for each, kind in self._bound if kind in leading]
        for function, (_, result) in programs.functions.items():
            if function != within and result in leading and (call := self._call(function, depth)) is not None:
                ways.append(sequence(call, self._path(result, name)))
        if slot.items is not None:
            ways.append(self._list(slot.items, depth, within))
        return choice(*ways) if ways else None

    def _list(self, slot: str, depth: int, within: str) -> Expression:
        """Return lists of values for a slot."""
        value = self._value(slot, depth, within)
        if not isinstance(value, Reference):
            return Literal("[]")
        more = f"items {value.name}"
        self._rules[more] = choice(Literal("]"), sequence(Literal(", "), value, Reference(more)))
        return sequence(Literal("["), choice(Literal("]"), sequence(value, Reference(more))))


def _field(name: str) -> Expression:
    return choice(Literal(f".{name}"), Literal(f'["{name}"]'), Literal(f"['{name}']"))


def read_programs(text: str, literals: Callable[[Any], Rules]) -> Programs:
    """Return the programs of a definition: a JSON object, which ``tools/programs`` writes.

    Args:
        text: ``{"functions": {NAME: {"parameters": [[NAME, SLOT, IS_REQUIRED], ...], "result": TYPE}},
            "slots": {SLOT: {"literal": GRAMMAR or null, "takes": [TYPE, ...], "items": SLOT or null}},
            "types": {TYPE: {FIELD: TYPE, "[]": TYPE}}, "constants": [[GRAMMAR, TYPE], ...],
            "statements": 20, "nested": 3}``; a grammar is ``{"syntax": ..., "definition": ...}``.
        literals: reads a grammar.

    Raises:
        GrammarError: it is malformed.
    """
    try:
        data = json.loads(text)
        functions = {
            _identifier(name): (
                tuple((_identifier(key), str(slot), bool(needed)) for key, slot, needed in one["parameters"]),
                str(one["result"]),
            )
            for name, one in data["functions"].items()
        }
        slots = {
            name: Slot(_literal(one["literal"], literals), frozenset(map(str, one["takes"])), one.get("items"))
            for name, one in data["slots"].items()
        }
        types = {
            name: {key if key == "[]" else _identifier(key): str(kind) for key, kind in parts.items()}
            for name, parts in data["types"].items()
        }
        constants = tuple((_literal(one, literals) or EMPTY_TEXT, str(kind)) for one, kind in data["constants"])
        statements, nested = int(data["statements"]), int(data["nested"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GrammarError(
            f"the definition of programs cannot be read: {error}", hint="take it from program_tool(tools).parameters"
        ) from None
    used = [slot for parameters, _ in functions.values() for _, slot, _ in parameters]
    used += [slot.items for slot in slots.values() if slot.items is not None]
    if missing := {*used} - {*slots}:
        raise GrammarError(f"the definition of programs has no slot {min(missing)!r}", hint="add it to slots")
    made = Programs(text, functions, slots, types, constants, statements, nested)
    if not functions or all(_Statement(made, (), 0, 0, False)._call(name, 0) is None for name in functions):
        raise GrammarError(
            "no function can be called first: each needs a value that only another call gives",
            hint="give its parameter a literal, or add a function without it",
        )
    return made


def _identifier(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(f"{name!r} is no name")
    return name


def _literal(grammar: Any, literals: Callable[[Any], Rules]) -> Expression | None:
    if grammar is None:
        return None
    rules = literals(grammar)
    if not rules.is_regular(Reference(rules.root)):
        return Part(rules)

    def build(terms: Terms) -> int:
        term = rules.term(terms)
        assert term is not None
        return term

    return Regular(("literal", rules.key), build)
