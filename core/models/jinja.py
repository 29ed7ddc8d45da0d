"""The Jinja of chat templates, in a sandbox with bounded work.

The dialect is that of ``apply_chat_template`` in transformers: trimmed blocks, loop controls, a ``tojson`` without HTML
escapes, ``raise_exception``, ``strftime_now`` and the ``generation`` block. A template is an untrusted program: it runs
in Jinja's immutable sandbox, and its work is counted: iterations of loops, macros and blocks, the characters that are
made, written, compared or searched, and the values of lists. Sizes are bounded before a text, a list or a number is
made.
"""

from __future__ import annotations

import datetime
import json
import operator
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import Any

from ..errors import ModelError

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

#: Methods of texts, and filters, whose first argument is a width.
_WIDE = ("center", "ljust", "rjust", "zfill", "indent", "batch", "slice")

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

#: Operators of comparisons, by their names in templates and as tests.
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "gteq": operator.ge,
    "lteq": operator.le,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}


@lru_cache(maxsize=256)
def compile_template(source: str) -> Any:
    """Return a compiled template; its ``render`` may raise any exception.

    Raises:
        ModelError: the template has a syntax error.
    """
    import jinja2

    try:
        return _environment().compiled(source)
    except (jinja2.TemplateError, RecursionError) as error:
        raise ModelError(f"the model's chat template is broken: {error}", hint="use another conversion") from error


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Return the sandbox in which chat templates run, made once. A template of a model file is not trusted: beyond
    Jinja's own sandbox, the lengths of texts and lists and the number of steps are bounded, before the work is done."""
    import jinja2
    from jinja2 import nodes
    from jinja2.compiler import CodeGenerator
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.visitor import NodeTransformer

    class Generation(Extension):
        """``{% generation %}``, which marks the part on which a model is trained, and writes only its content."""

        tags = {"generation"}  # noqa: RUF012 - as Jinja's own extensions write it

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    rendering = threading.local()  # the work of the template that this thread renders, and its variables

    class Template(jinja2.Template):
        def render(self, *args: Any, **variables: Any) -> str:
            rendering.rounds = rendering.work = 0
            rendering.variables = args, variables
            pieces, size = [], 0
            for piece in self.generate(*args, **variables):
                size += len(piece)
                if size > MAX_TEXT:
                    raise SecurityError("the template writes too much")
                pieces.append(piece)
            return "".join(pieces)

    def charge(work: int) -> None:
        """Add work to that of the template that this thread renders; raise SecurityError beyond `MAX_WORK`."""
        rendering.work = getattr(rendering, "work", 0) + work
        if rendering.work > MAX_WORK:
            raise SecurityError("the template takes too long")

    def counted(values: Iterable[Any]) -> Iterator[Any]:
        """Yield values that are made one by one, each of which counts as work."""
        for value in values:
            charge(VALUE_WORK)
            yield value

    def bounded(made: Any) -> Any:
        """Return a result of the template unchanged; its length counts as work, and one that is too long is a
        SecurityError."""
        if isinstance(made, (str, bytes, list, tuple, dict)):
            if len(made) > (MAX_TEXT if isinstance(made, (str, bytes)) else MAX_VALUES):
                raise SecurityError("the template makes a text or list that is too long")
            charge(len(made))
        elif isinstance(made, int) and made.bit_length() > MAX_BITS:
            raise SecurityError("the template makes a number that is too long")
        return made

    def writable(value: Any) -> Any:
        """Return a value that is to be written unchanged; its size counts as work."""
        if isinstance(value, (str, bytes, list, tuple, dict)):
            charge(_weight(value))
        return value

    def compare(left: Any, name: str, right: Any) -> Any:
        """Return the result of a comparison, whose work is counted before."""
        charge(_compared(left, name, right))
        return _COMPARISONS[name](left, right)

    def checked(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a filter with checks of its arguments before the call and of its result after it."""
        skipped = _own_arguments(function)

        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            value, rest = args[skipped], args[skipped + 1 :]
            if isinstance(value, Iterator) and name not in _EACH and name not in _AT_ONCE:
                value = list(value)
                args = (*args[:skipped], value, *rest)
            if name not in _AT_ONCE:
                charge(_read(value, name))
                for each in (*rest, *named.values()):
                    writable(each)
            if name in SLOW_FILTERS:
                if len(str(value)) > MAX_SLOW:
                    raise SecurityError(f"the template gives a long text to the filter {name}")
                charge(SLOW_WEIGHT * len(str(value)))
            elif name == "format":
                _check_length(_formatted(str(value), (*rest, *named.values())))
            elif name == "replace":
                _check_length(_replaced(str(value), rest, named))
            elif name == "join":
                _check_length(_joined([*rest, named.get("d", "")][0], value))
            elif name == "tojson":
                _check_length(_spaced(value, (*rest, *named.values())))
            elif name == "sum" and any(isinstance(each, _CONTAINERS) for each in (*rest, *named.values())):
                raise SecurityError("the template adds lists")
            elif name == "round" and any(_width(each) > MAX_PLACES for each in (*rest, *named.values())):
                raise SecurityError("the template rounds to too many places")
            elif name in _WIDE:
                lines = str(value).count("\n") + 1 if name == "indent" else 1
                _check_length(lines * sum(map(_width, (*rest, *named.values()))))
            made = function(*args, **named)
            return counted(made) if isinstance(made, Iterator) else bounded(made)

        return call

    def tested(function: Any, name: str) -> Callable[..., Any]:
        """Return a test whose work is counted before."""
        skipped = _own_arguments(function)

        @wraps(function)
        def call(*args: Any) -> Any:
            left, *rest = args[skipped:]
            if rest:
                charge(_compared(left, name, rest[0]))
            elif isinstance(left, str):
                charge(len(left))
            return function(*args)

        return call

    class Counted(NodeTransformer):
        """Counts the iterations of loops, macros and blocks, and the characters joined by ``~``."""

        def _counted(self, node: Any) -> Any:
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

    class Generator(CodeGenerator):
        """Calls the environment where the code of Jinja compares and slices by itself."""

        def visit_Compare(self, node: Any, frame: Any) -> None:
            operands = [node.expr, *(each.expr for each in node.ops)]
            for number, each in enumerate(node.ops):  # a chain is a conjunction
                self.write(" and environment.compare(" if number else "(environment.compare(")
                self.visit(operands[number], frame)
                self.write(f", {each.op!r}, ")
                self.visit(operands[number + 1], frame)
                self.write(")")
            self.write(")")

        def visit_Getitem(self, node: Any, frame: Any) -> None:
            is_slice = isinstance(node.arg, nodes.Slice)
            self.write("environment.bounded(" if is_slice else "(")
            super().visit_Getitem(node, frame)
            self.write(")")

    def concat(pieces: Iterable[str]) -> str:
        """Join what a macro or a block of ``set`` writes."""
        written = list(pieces)
        _check_length(sum(map(len, written)))
        text: str = bounded("".join(written))
        return text

    class Environment(ImmutableSandboxedEnvironment):
        template_class = Template
        code_generator_class = Generator
        intercepted_binops = frozenset({"*", "**", "+", "-", "%"})

        def compiled(self, source: str) -> Any:
            """Return a template; constant parts are computed now."""
            rendering.rounds = rendering.work = 0
            return self.from_string(source)

        def _parse(self, *args: Any) -> Any:
            return Counted().visit(super()._parse(*args)).set_environment(self)

        @staticmethod
        def count_round(work: int) -> None:
            rendering.rounds += 1
            charge(work)
            if rendering.rounds > MAX_ROUNDS:
                raise SecurityError("the template takes too long")

        @staticmethod
        def join(*parts: Any) -> Any:
            return bounded("".join(str(writable(part)) for part in parts))

        def call(self, context: Any, function: Any, *args: Any, **named: Any) -> Any:
            """Call a function or method as the sandbox does; methods of texts whose result may be much longer than
            their arguments are measured before the call."""
            method = getattr(function, "__wrapped__", function)  # the sandbox wraps `format`
            owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
            if isinstance(owner, (str, bytes)):
                args = tuple(list(each) if isinstance(each, Iterator) else each for each in args)
                charge(len(owner))
                for each in (*args, *named.values()):
                    writable(each)
                if name in _WIDE:
                    _check_length(sum(map(_width, args)))
                elif name == "expandtabs":
                    tabs = owner.count("\t") if isinstance(owner, str) else owner.count(b"\t")
                    _check_length(tabs * sum(map(_width, args)))
                elif name == "replace":
                    _check_length(_replaced(owner, args, named))
                elif name in ("format", "format_map"):
                    _check_length(_formatted(str(owner), (*args, *named.values())))
                elif name == "join" and args:
                    _check_length(_joined(owner, args[0]))
                elif name in ("split", "rsplit", "splitlines") and _parts(owner, args, named) > MAX_VALUES:
                    raise SecurityError("the template splits a text into too many parts")
                elif name == "translate" and args and isinstance(args[0], Mapping):
                    _check_length(len(owner) * max(map(_width, args[0].values()), default=0))
            elif isinstance(owner, (list, tuple)) and name != "append":
                charge(_compared(args[0], "in", owner) if args else len(owner))
            elif name == "changed":
                for each in args:
                    writable(each)
            return bounded(super().call(context, function, *args, **named))

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            if type(obj) is list and attr in _CHANGES:
                return not any(given is obj for given in _lists(rendering.variables))
            return bool(super().is_safe_attribute(obj, attr, value))

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            """Do an operation that may make a large value (``*``, ``**``, ``+``, ``-``, ``%``) after checking the
            operands."""
            if operator == "*" and (not _is_number(left) or not _is_number(right)):
                sizes = [value if _is_number(value) else len(value) for value in (left, right)]
                _check_length(sizes[0] * sizes[1], isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)))
            elif operator == "**" and not (_is_number(left) and _is_number(right) and abs(left) < 1e6 and right < 64):
                raise SecurityError("the template raises to too high a power")
            elif operator == "%" and isinstance(left, (str, bytes)):
                raise SecurityError("the template formats a text with %")
            return bounded(super().call_binop(context, operator, left, right))

    Environment.concat = staticmethod(concat)
    Environment.bounded, Environment.compare = staticmethod(bounded), staticmethod(compare)  # type: ignore[attr-defined]

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation], finalize=writable
    )
    environment.filters["tojson"] = _to_json
    environment.filters = {name: checked(each, name) for name, each in environment.filters.items()}
    environment.tests = {name: tested(each, name) for name, each in environment.tests.items()}
    del environment.globals["lipsum"]  # makes texts of any length; no chat template needs it
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form[:MAX_FORM])
    return environment


#: Methods by which a template may change a list of its own; each adds no more than its argument.
_CHANGES = frozenset({"append", "insert", "pop"})


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


def _own_arguments(function: Any) -> int:
    """Return the number of arguments that Jinja itself passes to a filter or test first, such as its context."""
    return 1 if hasattr(function, "jinja_pass_arg") else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _check_length(length: float, of_values: bool = False) -> None:
    """Check the length of a text, or of a list (``of_values``), before it is made.

    Raises:
        SecurityError: it is too long.
    """
    from jinja2.exceptions import SecurityError

    if length > (MAX_VALUES if of_values else MAX_TEXT):
        raise SecurityError("the template makes a text or list that is too long")


def _read(value: Any, name: str) -> int:
    """Return the work of a filter to read the value that it is applied to, in characters: see `VALUE_WORK`."""
    if not isinstance(value, (str, bytes, list, tuple, dict, range)):
        return 1
    if isinstance(value, (str, bytes)) and name in _OF_TEXT:
        return len(value)
    _check_length(len(value), of_values=True)
    return VALUE_WORK * len(value) + (0 if name in _EACH else _weight(value))


def _compared(left: Any, name: str, right: Any) -> int:
    """Return the work of a comparison or of a search."""
    size = len(left) if isinstance(left, (str, bytes)) else 1
    if name in ("in", "notin"):
        if isinstance(right, (str, bytes)):
            return len(right) + size
        if isinstance(right, (list, tuple)):
            return len(right) * (VALUE_WORK + size) + (_weight(right) if isinstance(left, _CONTAINERS) else 0)
        return size
    if isinstance(left, _CONTAINERS) and isinstance(right, _CONTAINERS):
        return _weight(left) if len(left) == len(right) or name not in ("eq", "ne", "==", "!=", "equalto") else 1
    return min(size, len(right)) if isinstance(right, (str, bytes)) else 1


#: Values that are compared value by value.
_CONTAINERS = (list, tuple, dict)

#: Characters that divide a text into words or lines.
_BREAKS = "".join(map(chr, (*range(9, 14), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B))))
_BREAKS += "\u2028\u2029\u202f\u205f\u3000"


def _parts(text: str | bytes, args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    """Return an upper bound of the number of parts into which a text is split."""
    separator, most, *_ = [*args, None, None]
    separator, most = named.get("sep", separator), named.get("maxsplit", most)
    if isinstance(most, int) and 0 <= most < MAX_VALUES:
        return most
    if isinstance(separator, type(text)) and separator:
        return text.count(separator) + 1  # type: ignore[arg-type]
    return 1 + sum(map(text.count, _BREAKS)) if isinstance(text, str) and len(text) > MAX_VALUES else len(text)


def _spaced(value: Any, args: tuple[Any, ...]) -> float:
    """Return an upper bound of the characters between values in JSON: separators, and the indent of each level."""
    flat = [each for arg in args for each in (arg if isinstance(arg, (list, tuple)) else [arg])]
    between = sum(_width(each) for each in flat if not isinstance(each, bool))
    level, depth, count = [value], 0, 0
    while level and between:
        depth += 1
        count += len(level)
        level = [
            inner
            for each in level
            if isinstance(each, (Mapping, list, tuple))
            for inner in (each.values() if isinstance(each, Mapping) else each)
        ]
    return count * depth * between


def _width(value: Any) -> float:
    """Return the maximum number of characters or items that an argument may request."""
    return abs(value) if _is_number(value) else len(value) if isinstance(value, (str, bytes)) else 0


def _formatted(text: str, args: tuple[Any, ...]) -> float:
    """Return the number of characters that the widths in a format request, including those in arguments."""
    widths = sum(float(digits) for digits in re.findall(r"[0-9]+", text))
    values = (value for each in args for value in (each.values() if isinstance(each, Mapping) else [each]))
    widest = max(map(_width, values), default=0)
    return widths + (text.count("{") + text.count("%")) * widest


def _joined(separator: Any, values: Any) -> float:
    """Return an upper bound of the characters that a separator adds between values."""
    return _width(separator) * len(values) if hasattr(values, "__len__") and not _is_number(separator) else 0


def _replaced(text: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    """Return an upper bound of the length of a text after a replacement."""
    old, new = [*args, *named.values(), "", ""][:2]
    if not isinstance(old, type(text)) or not isinstance(new, type(text)):
        return 0
    length: int = len(text) + text.count(old) * len(new)
    return length


def _weight(value: Any) -> int:
    """Return the work of the values and characters in a value that is to be written or compared, with repetitions.

    Raises:
        SecurityError: there are too many.
    """
    from jinja2.exceptions import SecurityError

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


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
