"""Jinja's immutable sandbox, in which the work of a chat template is counted and bounded.

A template is an untrusted program. Its *work* is the characters that it makes, writes, compares or searches, and
`VALUE_WORK` for each value of a list. The length of a text, a list or a number is checked before it is made.
"""

from __future__ import annotations

import datetime
import json
import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

#: Maximum number of iterations of the loops and macros in one rendering.
MAX_ROUNDS = 1_000_000

#: Maximum length, in characters, of a text in a template and of a prompt.
MAX_TEXT = 1 << 24

#: Maximum work of one rendering, in characters of intermediate texts.
MAX_WORK = 1 << 28

#: Maximum number of values in a list, or in a value that is converted to text (a list may contain another many times).
MAX_VALUES = 1 << 20

#: Work of one value of a list, beside that of a character.
VALUE_WORK = 64

#: Maximum length of a format of the time.
MAX_FORM = 256

#: Maximum number of bits of a whole number, and of decimal places to which a number is rounded.
MAX_BITS, MAX_PLACES = 1 << 16, 64

#: Slow filters: a factor for the characters of their texts, and the maximum length of these.
SLOW_FILTERS, SLOW_WEIGHT, MAX_SLOW = ("pprint", "striptags", "urlize", "wordwrap", "xmlattr"), 100, 100_000

#: Filters that look at no value of a list.
_AT_ONCE = frozenset({"length", "count", "first", "last", "random", "default", "d", "attr", "safe"})

#: Filters that look at each value of a list, but not into it.
_EACH = frozenset({"list", "batch", "slice", "reverse", "items", "map", "select", "reject", "selectattr", "rejectattr"})

#: Filters that take a text as a text; the others divide it, into characters, words or lines.
_OF_TEXT = frozenset(
    {
        *("e", "escape", "format", "forceescape", "replace", "string", "tojson", "trim", "upper", "lower"),
        *("capitalize", "center", "truncate", "int", "float", "filesizeformat", "abs", "round", "reverse"),
        *SLOW_FILTERS,
    }
)

#: Methods by which a template may change a list of its own; each adds no more than its argument.
_CHANGES = frozenset({"append", "insert", "pop"})

#: Values that are compared value by value.
_CONTAINERS = (list, tuple, dict)

#: Values whose size is counted.
_SIZED = (str, bytes, *_CONTAINERS)

#: Operators of comparisons, by their names in templates and as tests.
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "gteq": operator.ge,
    "lteq": operator.le,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}


# -- counting ------------------------------------------------------------------------------------------------------


class _Rendering(threading.local):
    """What the template that this thread renders has done so far, and its variables."""

    rounds = 0
    work = 0
    variables: Any = ()


_RENDERING = _Rendering()


def _charge(work: int) -> None:
    """Add work to that of the template that this thread renders; raise SecurityError beyond `MAX_WORK`."""
    _RENDERING.work += work
    if _RENDERING.work > MAX_WORK:
        raise SecurityError("the template takes too long")


def _charged(value: Any) -> Any:
    """Return a value that is to be written or read unchanged; its size counts as work."""
    if isinstance(value, _SIZED):
        _charge(_weight(value))
    return value


def _charged_one_by_one(values: Iterable[Any]) -> Iterator[Any]:
    """Yield values that are made when they are asked for, each of which counts as work."""
    for value in values:
        _charge(VALUE_WORK)
        yield value


def _bounded(made: Any) -> Any:
    """Return a result of the template unchanged; its length counts as work, and one that is too long is a
    SecurityError."""
    if isinstance(made, _SIZED):
        _check_length(len(made), of_values=not isinstance(made, (str, bytes)))
        _charge(len(made))
    elif isinstance(made, int) and made.bit_length() > MAX_BITS:
        raise SecurityError("the template makes a number that is too long")
    return made


def _check_length(length: float, *, of_values: bool = False) -> None:
    """Raise SecurityError if a text of so many characters, or a list of so many values, would be too long."""
    if length > (MAX_VALUES if of_values else MAX_TEXT):
        raise SecurityError("the template makes a text or list that is too long")


def _weight(value: Any) -> int:
    """Return the work of a value that is to be written or compared: its characters, and `VALUE_WORK` for each value in
    it. A value that occurs twice in it counts twice.

    Raises:
        SecurityError: there are too many.
    """
    waiting, count, size = [value], 0, 0
    while waiting:
        each = waiting.pop()
        count += 1
        if isinstance(each, Mapping):
            waiting += each.values()
            size += sum(len(str(name)) for name in each)
        elif isinstance(each, (list, tuple)):
            waiting += each
        elif isinstance(each, (str, bytes)):
            size += len(each)
        if count + len(waiting) > MAX_VALUES or size > MAX_TEXT:
            raise SecurityError("the template writes a value that is too large")
    return VALUE_WORK * (count - 1) + size


def _work_of_reading(value: Any, name: str) -> int:
    """Return the work of the filter ``name`` to read the value that it is applied to."""
    if not isinstance(value, (range, *_SIZED)):
        return 1
    if isinstance(value, (str, bytes)) and name in _OF_TEXT:
        return len(value)
    _check_length(len(value), of_values=True)
    return VALUE_WORK * len(value) + (0 if name in _EACH else _weight(value))


def _work_of_comparing(left: Any, name: str, right: Any) -> int:
    """Return the work of a comparison or of a search (``in``); ``name`` is that of the operator or of the test."""
    size = len(left) if isinstance(left, (str, bytes)) else 1
    if name in ("in", "notin"):
        if isinstance(right, (str, bytes)):
            return len(right) + size
        if isinstance(right, (list, tuple)):
            return len(right) * (VALUE_WORK + size) + (_weight(right) if isinstance(left, _CONTAINERS) else 0)
        return size
    if isinstance(left, _CONTAINERS) and isinstance(right, _CONTAINERS):
        is_equality = name in ("eq", "ne", "==", "!=", "equalto")
        if is_equality and len(left) != len(right):
            return 1  # Python compares the lengths first
        return _weight(left)
    # Texts are compared up to the end of the shorter one.
    return min(size, len(right)) if isinstance(right, (str, bytes)) else 1


# -- lengths of what is made ---------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _width(value: Any) -> float:
    """Return the maximum number of characters or items that an argument may request."""
    return abs(value) if _is_number(value) else len(value) if isinstance(value, (str, bytes)) else 0


def _widths(value: Any, args: tuple[Any, ...]) -> float:
    return sum(map(_width, args))


def _formatted(text: Any, args: tuple[Any, ...]) -> float:
    """Return the number of characters that the widths in a format request, including those in arguments:
    ``"{:>9}{:>{w}}"`` with ``w=5`` -> 9 + 2 * 5 or more."""
    form = str(text)
    widths = sum(float(digits) for digits in re.findall(r"[0-9]+", form))
    values = (value for each in args for value in (each.values() if isinstance(each, Mapping) else [each]))
    return widths + (form.count("{") + form.count("%")) * max(map(_width, values), default=0)


def _joined(one: Any, args: tuple[Any, ...]) -> int:
    """Return an upper bound of the characters that a separator adds between values; either may be the first."""

    def size(part: Any) -> int:
        return len(part) if hasattr(part, "__len__") else len(str(part))

    return size(one) * sum(map(size, args))


def _replaced(text: Any, args: tuple[Any, ...]) -> float:
    """Return an upper bound of the length of a text after a replacement."""
    text = text if isinstance(text, bytes) else str(text)
    old, new = [*args, "", ""][:2]
    if not isinstance(old, type(text)) or not isinstance(new, type(text)):
        return 0  # Python will refuse the call
    length: int = len(text) + text.count(old) * len(new)
    return length


def _spaced(value: Any, args: tuple[Any, ...]) -> float:
    """Return an upper bound of the characters between values in JSON: for each value, the widths of the indent and of
    the separators (``args``) once for each level of the deepest value."""
    flat = [each for arg in args for each in (arg if isinstance(arg, (list, tuple)) else [arg])]
    between = sum(_width(each) for each in flat if not isinstance(each, bool))
    level, depth, count = [value], 0, 0
    while level and between:
        depth += 1
        count += len(level)
        inner = [
            each.values() if isinstance(each, Mapping) else each for each in level if isinstance(each, _CONTAINERS)
        ]
        level = [each for values in inner for each in values]
    return count * depth * between


#: By the name of a filter or of a method of texts: a function of the value and of the other arguments, which returns an
#: upper bound of the length of the result, or of what is added to the value.
_LENGTHS: Mapping[str, Callable[[Any, tuple[Any, ...]], float]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "batch", "slice"), _widths),
    **dict.fromkeys(("format", "format_map"), _formatted),
    "indent": lambda text, args: (str(text).count("\n") + 1) * _widths(text, args),
    "expandtabs": lambda text, args: len(text) * _widths(text, args),
    "translate": lambda text, args: len(text) * sum(map(_weight, args)),
    "join": _joined,
    "replace": _replaced,
    "tojson": _spaced,
}


def _parts(text: str | bytes, sep: Any = None, maxsplit: Any = -1, **others: Any) -> int:
    """Return an upper bound of the number of parts into which ``str.split`` or ``str.splitlines`` splits a text."""
    if isinstance(maxsplit, int) and 0 <= maxsplit < MAX_VALUES:
        return maxsplit + 1
    if isinstance(sep, type(text)) and sep:
        return text.count(sep) + 1  # type: ignore[arg-type]
    if isinstance(text, str) and len(text) > MAX_VALUES:  # the length would be refused: white space is counted
        return 1 + sum(map(str.isspace, text))
    return len(text)


# -- filters, tests and operators ----------------------------------------------------------------------------------


def _own_arguments(function: Any) -> int:
    """Return the number of arguments that Jinja itself passes to a filter or test first, such as its context."""
    return 1 if hasattr(function, "jinja_pass_arg") else 0


def _checked_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter with checks of its arguments before the call and of its result after it: what it reads is counted
    as work, and the length of what it makes is bounded (`_LENGTHS`) before it is made."""
    skipped = _own_arguments(function)

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        value, others = args[skipped], (*args[skipped + 1 :], *named.values())
        if isinstance(value, Iterator) and name not in _EACH and name not in _AT_ONCE:
            value = list(value)  # to be measured, which would use up the iterator
            args = (*args[:skipped], value, *args[skipped + 1 :])
        if name not in _AT_ONCE:
            _charge(_work_of_reading(value, name))
            for each in others:
                _charged(each)
        if name in SLOW_FILTERS:
            if len(str(value)) > MAX_SLOW:
                raise SecurityError(f"the template gives a long text to the filter {name}")
            _charge(SLOW_WEIGHT * len(str(value)))
        elif name in _LENGTHS:
            _check_length(_LENGTHS[name](value, others), of_values=name in ("batch", "slice"))
        elif name == "sum" and any(isinstance(each, _CONTAINERS) for each in others):
            raise SecurityError("the template adds lists")
        elif name == "round" and any(_width(each) > MAX_PLACES for each in others):
            raise SecurityError("the template rounds to too many places")
        made = function(*args, **named)
        return _charged_one_by_one(made) if isinstance(made, Iterator) else _bounded(made)

    return call


def _counted_test(name: str, function: Any) -> Callable[..., Any]:
    """Return a test that counts its work before it runs: ``x is eq y`` that of a comparison, ``x is lower`` the length
    of a text."""
    skipped = _own_arguments(function)

    @wraps(function)
    def call(*args: Any) -> Any:
        left, *rest = args[skipped:]
        if rest:
            _charge(_work_of_comparing(left, name, rest[0]))
        elif isinstance(left, str):
            _charge(len(left))
        return function(*args)

    return call


class _Generation(Extension):
    """``{% generation %}``, which marks the part on which a model is trained, and writes only its content."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja's own extensions write it

    def parse(self, parser: Any) -> Any:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Counter(NodeTransformer):
    """Adds to a template what counts the iterations of loops, macros and blocks, and the characters joined by ``~``."""

    def _counted(self, node: Any) -> Any:
        """Add a call of `_Environment.count_round` with the work of one iteration to the beginning of the body."""
        work = 1 + sum(len(each.data) for each in node.find_all(nodes.TemplateData))
        work += sum(1 for _ in node.find_all(nodes.Expr))
        self.generic_visit(node)
        call = nodes.Call(nodes.EnvironmentAttribute("count_round"), [nodes.Const(work)], [], None, None)
        node.body.insert(0, nodes.ExprStmt(call, lineno=node.lineno))
        return node

    visit_For = visit_Macro = visit_CallBlock = visit_Block = _counted

    def visit_Concat(self, node: Any) -> Any:
        self.generic_visit(node)
        return nodes.Call(nodes.EnvironmentAttribute("join"), node.nodes, [], None, None, lineno=node.lineno)


class _Generator(CodeGenerator):
    """Writes Python that calls the environment where that of Jinja compares and slices by itself."""

    def visit_Compare(self, node: Any, frame: Any) -> None:
        """Write ``a < b < c`` as ``(environment.compare(a, 'lt', b) and environment.compare(b, 'lt', c))``."""
        operands = [node.expr, *(each.expr for each in node.ops)]
        for number, each in enumerate(node.ops):  # a chain is a conjunction
            self.write(" and environment.compare(" if number else "(environment.compare(")
            self.visit(operands[number], frame)
            self.write(f", {each.op!r}, ")
            self.visit(operands[number + 1], frame)
            self.write(")")
        self.write(")")

    def visit_Getitem(self, node: Any, frame: Any) -> None:
        self.write("environment.bounded(" if isinstance(node.arg, nodes.Slice) else "(")
        super().visit_Getitem(node, frame)
        self.write(")")


# -- the environment -----------------------------------------------------------------------------------------------


class _Template(jinja2.Template):
    def render(self, *args: Any, **variables: Any) -> str:
        """Return the text of the template for its variables; raise SecurityError beyond the bounds of its work and of
        its text."""
        _RENDERING.rounds = _RENDERING.work = 0
        _RENDERING.variables = args, variables
        pieces, size = [], 0
        for piece in self.generate(*args, **variables):
            size += len(piece)
            if size > MAX_TEXT:
                raise SecurityError("the template writes too much")
            pieces.append(piece)
        return "".join(pieces)


def _concat(pieces: Iterable[str]) -> str:
    """Join what a macro or a block of ``set`` writes."""
    written = list(pieces)
    _check_length(sum(map(len, written)))
    text: str = _bounded("".join(written))
    return text


class _Environment(ImmutableSandboxedEnvironment):
    template_class = _Template
    code_generator_class = _Generator
    concat = staticmethod(_concat)
    bounded = staticmethod(_bounded)
    intercepted_binops = frozenset({"*", "**", "+", "-", "%"})

    def compiled(self, source: str) -> Any:
        """Return a template; constant parts are computed now."""
        _RENDERING.rounds = _RENDERING.work = 0
        return self.from_string(source)

    def _parse(self, *args: Any) -> Any:
        return _Counter().visit(super()._parse(*args)).set_environment(self)

    @staticmethod
    def count_round(work: int) -> None:
        """Count an iteration of a loop, or a call of a macro or block, and its work."""
        _RENDERING.rounds += 1
        _charge(work)
        if _RENDERING.rounds > MAX_ROUNDS:
            raise SecurityError("the template takes too long")

    @staticmethod
    def compare(left: Any, name: str, right: Any) -> Any:
        """Return the result of a comparison, whose work is counted before."""
        _charge(_work_of_comparing(left, name, right))
        return _COMPARISONS[name](left, right)

    @staticmethod
    def join(*parts: Any) -> Any:
        """Return texts joined by ``~``."""
        return _bounded("".join(str(_charged(part)) for part in parts))

    def call(self, context: Any, function: Any, *args: Any, **named: Any) -> Any:
        """Call a function or method as the sandbox does; methods of texts whose result may be much longer than their
        arguments are measured before the call."""
        method = getattr(function, "__wrapped__", function)  # the sandbox wraps `format`
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if isinstance(owner, (str, bytes)):
            args = tuple(list(each) if isinstance(each, Iterator) else each for each in args)
            # Jinja passes some variables of its own, such as `_loop_vars`.
            others = (*args, *(each for option, each in named.items() if not option.startswith("_")))
            _charge(len(owner))
            for each in others:
                _charged(each)
            if name in _LENGTHS:
                _check_length(_LENGTHS[name](owner, others))
            elif name in ("split", "rsplit"):
                _check_length(_parts(owner, *args, **named), of_values=True)
            elif name == "splitlines":
                _check_length(_parts(owner), of_values=True)
        elif isinstance(owner, (list, tuple)) and name != "append":  # `index`, `count` and others search the list
            _charge(_work_of_comparing(args[0], "in", owner) if args else len(owner))
        elif name == "changed":  # Jinja's `loop.changed` compares its arguments with those of the last iteration
            for each in args:
                _charged(each)
        return _bounded(super().call(context, function, *args, **named))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return True if a template may read an attribute; of lists, it may change only those that it has made."""
        if type(obj) is list and attr in _CHANGES:
            return not any(given is obj for given in _lists(_RENDERING.variables))
        return bool(super().is_safe_attribute(obj, attr, value))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Do an operation that may make a large value (``*``, ``**``, ``+``, ``-``, ``%``) after checking the
        operands."""
        if operator == "*" and (not _is_number(left) or not _is_number(right)):
            sizes = [value if _is_number(value) else len(value) for value in (left, right)]
            _check_length(
                sizes[0] * sizes[1], of_values=isinstance(left, (list, tuple)) or isinstance(right, (list, tuple))
            )
        elif operator == "**" and not (_is_number(left) and _is_number(right) and abs(left) < 1e6 and right < 64):
            raise SecurityError("the template raises to too high a power")
        elif operator == "%" and isinstance(left, (str, bytes)):
            raise SecurityError("the template formats a text with %")
        return _bounded(super().call_binop(context, operator, left, right))


def _lists(value: Any) -> Iterator[list[Any]]:
    """Yield the lists in the variables of a template."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            yield value
        if isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


#: The sandbox of all chat templates.
ENVIRONMENT = _Environment(
    trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation], finalize=_charged
)
ENVIRONMENT.filters["tojson"] = _to_json
ENVIRONMENT.filters = {name: _checked_filter(name, each) for name, each in ENVIRONMENT.filters.items()}
ENVIRONMENT.tests = {name: _counted_test(name, each) for name, each in ENVIRONMENT.tests.items()}
del ENVIRONMENT.globals["lipsum"]  # makes texts of any length; no chat template needs it
ENVIRONMENT.globals["raise_exception"] = _refuse
ENVIRONMENT.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form[:MAX_FORM])
