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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from ..basics.cached import cached_property
from ..dependent.written import Written
from ..errors import GrammarError
from ..language.node_kinds import EPSILON
from ..language.nodes import Nodes
from ..language.terms import Terms
from ..regex.compile import regex_term
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
_BEGINS = "(?:async|class|def|elif|else|except|for|from|if|import|try|while|with)[a-z0-9_]*"
_INDEX = r"\[(?:-[1-9]|0|[1-9]\d{0,3})\]"

#: A bound name and its type.
Bound = tuple[str, str]


class Parameter(NamedTuple):
    """A parameter of a function; ``slot`` is the name of its `Slot`."""

    name: str
    slot: str
    is_required: bool


class Function(NamedTuple):
    """A function: its parameters, in order, and the type of its results."""

    parameters: tuple[Parameter, ...]
    result: str


@dataclass(frozen=True)
class Slot:
    """What a parameter, or an item of a list, takes.

    Attributes:
        literal: its literals; None: it has none.
        takes: the types that are subsets of its own.
        items: the slot of the items, if it is a list of values of any length.
    """

    literal: Rules | None
    takes: frozenset[str]
    items: str | None = None


@dataclass(frozen=True)
class Programs:
    """The programs over some functions; equal to others of the same text.

    Attributes:
        text: the definition: see `read_programs`.
        functions: by name.
        slots: by name.
        types: by name, the types of the fields of an object, and of the items of a list (``"[]"``).
        constants: literals that a statement may bind, and their types.
        statements: greatest number of statements.
        nested: greatest number of calls inside of each other.
    """

    text: str
    functions: Mapping[str, Function] = field(compare=False)
    slots: Mapping[str, Slot] = field(compare=False)
    types: Mapping[str, Mapping[str, str]] = field(compare=False)
    constants: tuple[tuple[Rules, str], ...] = field(compare=False)
    statements: int = field(compare=False)
    nested: int = field(compare=False)

    #: As `Rules` has them.
    controls = frozenset[str]()

    def term(self, terms: Terms) -> None:
        """Return None: programs are no regular language."""

    def build(self, nodes: Nodes) -> int:
        """Return the node of all programs. The first statement depends on where the text begins."""

        def first(before: Written) -> int:
            return self.statement(nodes, (), len(before))

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
        for name, function in self.functions.items():
            required = sum(parameter.is_required for parameter in function.parameters)
            sizes.append(len(name) + len("()") + max(len("x, ") * required - len(", "), 0))
        return min(sizes)

    def statement(
        self, nodes: Nodes, bound: tuple[Bound, ...], at: int, count: int = 0, *, has_call: bool = False
    ) -> int:
        """Return the node of the rest of a program, from the beginning of a statement on.

        Args:
            nodes: the store.
            bound: the names so far.
            at: where the statement begins, in bytes.
            count: the number of statements before it.
            has_call: a call is among these.
        """
        key = ("statement", self, bound, at, count, has_call)
        return int(nodes.lazy(key, _Statement(Values(nodes, self, bound), at, count, has_call=has_call).node))

    @cached_property
    def leading(self) -> Mapping[str, frozenset[str]]:
        """For each slot, the types with a path to a type that it takes."""
        return {name: self._leading(slot.takes) for name, slot in self.slots.items()}

    def _leading(self, takes: frozenset[str]) -> frozenset[str]:
        """Return the types with a path to one of some types, and these."""
        found, grown = set[str](), set(takes)
        while grown - found:
            found |= grown
            grown = {name for name, parts in self.types.items() if not found.isdisjoint(parts.values())}
        return frozenset(found)

    @cached_property
    def givers(self) -> Mapping[str, tuple[str, ...]]:
        """For each slot, the functions whose results lead to a type that it takes."""
        return {
            name: tuple(each for each, function in self.functions.items() if function.result in leading)
            for name, leading in self.leading.items()
        }


@dataclass(frozen=True)
class _Next:
    """The statements after one that ends here: a dependent node.

    Attributes:
        programs: the language.
        bound: the names before the statement.
        at: where it began.
        count: the number of statements before it.
        bind: the type of the name that it binds; None: it binds none.
        has_call: a call is in it, or before it.
    """

    programs: Programs
    bound: tuple[Bound, ...]
    at: int
    count: int
    bind: str | None
    has_call: bool

    def build(self, nodes: Nodes) -> int:
        """Return the node. After a call, the empty text is in it, so it never forbids the end of a program."""
        texts = self.programs.texts(nodes, is_over=self.has_call)
        return int(nodes.dynamic(("next", self), texts, lambda before: self._resolve(nodes, before)))

    def _resolve(self, nodes: Nodes, before: Written) -> int:
        """Return the next statement after a text, in which the name that this one binds is read."""
        bound, text = self.bound, before.text()
        if self.bind is not None:
            name = re.compile(rb"\w+").match(text, self.at)
            assert name is not None
            bound = (*bound, (name.group().decode(), self.bind))
        return self.programs.statement(nodes, bound, len(text), self.count + 1, has_call=self.has_call)


class _Statement:
    """Maker of the nodes of a statement and the rest of the program; see `Programs.statement`.

    Its nodes are made when a text reaches them, and each names only the next ones, so that the work for a statement
    grows with the number of functions, not with its square.
    """

    def __init__(self, values: Values, at: int, count: int, *, has_call: bool) -> None:
        self._values, self._nodes, self._programs = values, values.nodes, values.programs
        self._at, self._count, self._has_call = at, count, has_call

    def node(self) -> int:
        """Return the node: ``return value``, ``name = value``, a call, ``print(value)``, or (after a call) nothing."""
        nodes, values, functions = self._nodes, self._values, self._programs.functions
        called = [name for name in functions if values.can_call(name, 0)]
        bound = values.bound if self._has_call else ()  # before a call, a program does not print or return
        whole = nodes.alt(
            [
                values.calls(called, 0, lambda name: values.path(functions[name].result, "")),
                *(nodes.seq(_text(nodes, name), values.path(kind, "")) for name, kind in bound),
            ]
        )
        parts = [] if nodes.is_empty(whole) else [nodes.seq(_text(nodes, "return "), whole)]
        if self._count < self._programs.statements:
            parts.append(nodes.sequence([self._new_name(), _text(nodes, " = "), self._bindable(called)]))
            parts.append(values.calls(called, 0, lambda _: self._end(None, has_call=True)))
            if not nodes.is_empty(whole):
                end = nodes.seq(_text(nodes, ")"), self._end(None, has_call=True))
                parts.append(nodes.sequence([_text(nodes, "print("), whole, end]))
        if self._has_call:
            parts.append(EPSILON)
        return int(nodes.alt(parts))

    def _bindable(self, called: list[str]) -> int:
        """Return the values that the statement may bind to a name, each with what follows it: calls, bound names with
        paths, and constants. Without a call in the program, the latter only in its first statements."""
        nodes, values, programs = self._nodes, self._values, self._programs
        has_call = self._has_call
        options = [values.calls(called, 0, lambda name: self._then(programs.functions[name].result, has_call=True))]
        if has_call or self._count < MAX_BEFORE:
            for name, kind in values.bound:
                options.append(nodes.seq(_text(nodes, name), self._then(kind, has_call=has_call)))
            for literal, kind in programs.constants:
                options.append(nodes.seq(_literal_node(nodes, literal), self._end(kind, has_call=has_call)))
        return int(nodes.alt(options))

    def _new_name(self) -> int:
        """Return the names that are neither bound, nor functions, nor words of Python."""
        terms = self._nodes.terms
        taken = sorted({*_RESERVED, *self._programs.functions, *(name for name, _ in self._values.bound)})
        names, begins = (regex_term(terms, regex, whole=True) for regex in (_NAME, _BEGINS))
        return int(self._nodes.text(terms.and_([names, terms.not_(terms.alt([begins, terms.words(taken)]))])))

    def _end(self, bind: str | None, *, has_call: bool) -> int:
        """Return the end of the line and the statements after it; after a call, also the end of the program.

        Args:
            bind: the type of the name that the statement binds; None: it binds none.
            has_call: a call is in the statement, or before it.
        """
        following = _Next(self._programs, self._values.bound, self._at, self._count, bind, has_call)
        after = self._nodes.seq(_text(self._nodes, "\n"), following.build(self._nodes))
        return int(self._nodes.alt([EPSILON, after])) if has_call else int(after)

    def _then(self, kind: str, *, has_call: bool) -> int:
        """Return what may follow a value of a type that is bound: its end, or a step and what may follow that."""
        key = ("then", self._programs, self._values.bound, self._at, self._count, has_call)
        return self._values.steps(key, kind, partial(self._end, has_call=has_call), None)


class Values:
    """The values of a statement: calls, bound names with paths, and literals, as nodes.

    Args:
        nodes: the store.
        programs: the language.
        bound: the names so far.
    """

    def __init__(self, nodes: Nodes, programs: Programs, bound: tuple[Bound, ...]) -> None:
        self.nodes, self.programs, self.bound = nodes, programs, bound
        self._can_call: dict[tuple[str, int], bool] = {}

    # -- what there is ---------------------------------------------------------------------------------------------

    def can_call(self, function: str, depth: int) -> bool:
        """Return True if a function has a call inside of ``depth`` others: all its required parameters have values."""
        if depth == self.programs.nested:
            return False
        key = function, depth
        if key not in self._can_call:
            parameters = self.programs.functions[function].parameters
            required = [parameter.slot for parameter in parameters if parameter.is_required]
            self._can_call[key] = all(self._has_value(slot, depth + 1, function) for slot in required)
        return self._can_call[key]

    def _has_value(self, name: str, depth: int, within: str) -> bool:
        """Return True if `value` has values for a slot, by its name."""
        slot, leading = self.programs.slots[name], self.programs.leading[name]
        if slot.literal is not None or slot.items is not None or any(kind in leading for _, kind in self.bound):
            return True
        return any(self.can_call(each, depth) for each in self.programs.givers[name] if each != within)

    # -- calls -----------------------------------------------------------------------------------------------------

    def calls(self, functions: Sequence[str], depth: int, after: Callable[[str], int]) -> int:
        """Return the calls of some functions, nested in ``depth`` others; ``after`` gives the node behind each call."""
        nodes = self.nodes
        entries = {f"{name}(".encode(): nodes.seq(self._arguments(name, depth), after(name)) for name in functions}
        return int(nodes.words(entries)) if entries else nodes.alt([])

    def _arguments(self, function: str, depth: int) -> int:
        """Return the arguments of a call, up to the bracket: by place, from some parameter on by name."""
        return self._lazy(("arguments", function, depth), lambda: self._made_arguments(function, depth))

    def _made_arguments(self, function: str, depth: int) -> int:
        """Return `_arguments`, not kept yet."""
        nodes, parameters = self.nodes, self.programs.functions[function].parameters
        found: dict[tuple[int, bool, bool], int] = {}

        def rest(index: int, *, must_name: bool, is_first: bool) -> int:
            """Return the arguments for the parameters from one on, and the bracket.

            Args:
                index: the number of the parameter.
                must_name: a parameter before it is named or left out, so arguments go by name.
                is_first: no argument is written yet.
            """
            if index == len(parameters):
                return _text(nodes, ")")
            key = (index, must_name, is_first)
            if key not in found:
                name, slot, is_required = parameters[index]
                comma = "" if is_first else ", "
                ways: list[int] = []
                if self._has_value(slot, depth + 1, function):
                    value = self.value(slot, depth + 1, function)
                    after = rest(index + 1, must_name=True, is_first=False)
                    ways.append(nodes.sequence([_text(nodes, f"{comma}{name}="), value, after]))
                    if not must_name:
                        after = rest(index + 1, must_name=False, is_first=False)
                        ways.append(nodes.sequence([_text(nodes, comma), value, after]))
                if not is_required:
                    ways.append(rest(index + 1, must_name=True, is_first=is_first))
                found[key] = nodes.alt(ways)
            return found[key]

        return rest(0, must_name=False, is_first=True)

    def value(self, slot: str, depth: int, within: str) -> int:
        """Return the values for a slot inside of ``depth`` calls, of which the function ``within`` is the innermost: it
        is not called in its own arguments."""
        excluded = within if within in self.programs.givers[slot] else ""  # all other functions share one rule
        return self._lazy(("value", slot, depth, excluded), lambda: self._made_value(slot, depth, within))

    def _made_value(self, name: str, depth: int, within: str) -> int:
        """Return `value`, not kept yet."""
        programs, nodes = self.programs, self.nodes
        slot, leading = programs.slots[name], programs.leading[name]
        ways = [] if slot.literal is None else [_literal_node(nodes, slot.literal)]
        ways += [nodes.seq(_text(nodes, each), self.path(kind, name)) for each, kind in self.bound if kind in leading]
        givers = [each for each in programs.givers[name] if each != within and self.can_call(each, depth)]
        ways.append(self.calls(givers, depth, lambda each: self.path(programs.functions[each].result, name)))
        if slot.items is not None:
            ways.append(self._list(slot.items, depth, within))
        return int(nodes.alt(ways))

    def _list(self, slot: str, depth: int, within: str) -> int:
        """Return lists of values for a slot; the other arguments are those of `value`."""
        nodes = self.nodes
        if not self._has_value(slot, depth, within):
            return _text(nodes, "[]")
        value, end = self.value(slot, depth, within), _text(nodes, "]")

        def more() -> int:
            return int(nodes.alt([end, nodes.sequence([_text(nodes, ", "), value, following])]))

        following = self._lazy(("items", value), more)
        return int(nodes.seq(_text(nodes, "["), nodes.alt([end, nodes.seq(value, following)])))

    # -- paths -----------------------------------------------------------------------------------------------------

    def path(self, kind: str, slot: str) -> int:
        """Return the paths from a value of a type to values that a slot takes; the slot ``""`` takes any value."""
        takes = self.programs.slots[slot].takes if slot else None

        def end(kind: str) -> int | None:
            return EPSILON if takes is None or kind in takes else None

        return self.steps(("path", self.programs, slot), kind, end, self.programs.leading[slot] if slot else None)

    def steps(
        self, key: tuple[Any, ...], kind: str, end: Callable[[str], int | None], leading: frozenset[str] | None
    ) -> int:
        """Return the paths from a value of a type, such as ``.items[0].price``, each with what follows it.

        Args:
            key: the key of the node, but for the type.
            kind: the type.
            end: returns what follows a path to a value of a type; None: no path ends there.
            leading: the types that lead to an end; None: all.
        """
        return int(self.nodes.lazy((*key, kind), lambda: self._made_steps(key, kind, end, leading), EPSILON))

    def _made_steps(
        self, key: tuple[Any, ...], kind: str, end: Callable[[str], int | None], leading: frozenset[str] | None
    ) -> int:
        """Return `steps`, not kept yet."""
        nodes, ended = self.nodes, end(kind)
        ways = [] if ended is None else [ended]
        for name, inner in self.programs.types.get(kind, {}).items():
            if leading is None or inner in leading:
                after = self.steps(key, inner, end, leading)
                if name == "[]":
                    ways.append(nodes.seq(nodes.text(regex_term(nodes.terms, _INDEX, whole=True)), after))
                else:
                    ways.append(nodes.words({step.encode(): after for step in _steps(name)}))
        return int(nodes.alt(ways))

    def _lazy(self, key: tuple[Any, ...], make: Callable[[], int]) -> int:
        """Return a node of these values, made when a text reaches it; it is not empty."""
        return int(self.nodes.lazy((*key, self.programs, self.bound), make, EPSILON))


def _text(nodes: Nodes, text: str) -> int:
    return int(nodes.literal(text.encode()))


def _literal_node(nodes: Nodes, literal: Rules) -> int:
    """Return a literal: one term if it is regular, of which masks know more than of rules."""
    term = literal.term(nodes.terms)
    return int(literal.build(nodes) if term is None else nodes.text(term))


def _steps(field: str) -> tuple[str, ...]:
    """Return the ways to write the step to a field."""
    return f".{field}", f'["{field}"]', f"['{field}']"


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
            _identifier(name): Function(
                tuple(Parameter(_identifier(key), str(slot), bool(needed)) for key, slot, needed in one["parameters"]),
                str(one["result"]),
            )
            for name, one in data["functions"].items()
        }
        slots = {
            name: Slot(one["literal"] and literals(one["literal"]), frozenset(map(str, one["takes"])), one.get("items"))
            for name, one in data["slots"].items()
        }
        types = {
            name: {key if key == "[]" else _identifier(key): str(kind) for key, kind in parts.items()}
            for name, parts in data["types"].items()
        }
        constants = tuple((literals(one), str(kind)) for one, kind in data["constants"])
        statements, nested = int(data["statements"]), int(data["nested"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GrammarError(
            f"the definition of programs cannot be read: {error}", hint="take it from program_tool(tools).parameters"
        ) from None
    used = [parameter.slot for function in functions.values() for parameter in function.parameters]
    used += [slot.items for slot in slots.values() if slot.items is not None]
    if missing := {*used} - {*slots}:
        raise GrammarError(f"the definition of programs has no slot {min(missing)!r}", hint="add it to slots")
    made = Programs(text, functions, slots, types, constants, statements, nested)
    if not any(Values(Nodes(), made, ()).can_call(name, 0) for name in functions):
        raise GrammarError(
            "no function can be called first: each needs a value that only another call gives",
            hint="give its parameter a literal, or add a function without it",
        )
    return made


def _identifier(name: Any) -> str:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ValueError(f"{name!r} is no name")
    return name
