"""The Jinja of chat templates, in a sandbox with bounded work.

The dialect is that of ``apply_chat_template`` in transformers: trimmed blocks, loop controls, a ``tojson`` without HTML
escapes, ``raise_exception``, ``strftime_now`` and the ``generation`` block. A template is an untrusted program: it runs
in Jinja's immutable sandbox; the iterations of its loops and macros are counted, and the characters of its texts, of
each one and of all together. If an argument is a width or a count, the length is checked before the text is made.
"""

from __future__ import annotations

import datetime
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import Any

from ..errors import ModelError

#: Maximum number of iterations of the loops and macros in one rendering.
MAX_ROUNDS = 1_000_000

#: Maximum length, in characters, of a text in a template and of a prompt.
MAX_TEXT = 1 << 24

#: Maximum number of characters of all intermediate texts of one rendering.
MAX_WORK = 1 << 28

#: Maximum number of values in a value that is converted to text; a list may contain another one many times.
MAX_VALUES = 1 << 20

#: Slow filters: a factor for the characters of their texts, and the maximum length of these.
SLOW_FILTERS, SLOW_WEIGHT, MAX_SLOW = ("pprint", "striptags", "urlize", "wordwrap", "xmlattr"), 100, 100_000

#: Methods of texts, and filters, whose first argument is a width.
_WIDE = ("center", "ljust", "rjust", "zfill", "indent", "batch", "slice")

#: Filters that convert their argument to text.
_WRITING = (
    "e",
    "escape",
    "format",
    "forceescape",
    "join",
    "replace",
    "string",
    "tojson",
    "trim",
    "upper",
    "lower",
    "title",
)


@lru_cache(maxsize=256)
def compile_template(source: str) -> Any:
    """Return a compiled template; its ``render`` may raise any exception.

    Raises:
        ModelError: the template has a syntax error.
    """
    import jinja2

    try:
        return _environment().from_string(source)
    except (jinja2.TemplateError, RecursionError) as error:
        raise ModelError(f"the model's chat template is broken: {error}", hint="use another conversion") from error


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Return the sandbox in which chat templates run, made once. A template of a model file is not trusted: beyond
    Jinja's own sandbox, the lengths of texts and lists and the number of steps are bounded, before the work is done."""
    import jinja2
    from jinja2 import nodes
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

    rounds = threading.local()

    class Template(jinja2.Template):
        def render(self, *args: Any, **variables: Any) -> str:
            rounds.count = rounds.work = 0
            rounds.given = args, variables
            pieces, size = [], 0
            for piece in self.generate(*args, **variables):
                size += len(piece)
                if size > MAX_TEXT:
                    raise SecurityError("the template writes too much")
                pieces.append(piece)
            return "".join(pieces)

    def charge(work: int) -> None:
        """Add work to that of the template that this thread renders; raise SecurityError beyond `MAX_WORK`."""
        rounds.work = getattr(rounds, "work", 0) + work
        if rounds.work > MAX_WORK:
            raise SecurityError("the template takes too long")

    def bounded(made: Any) -> Any:
        """Return a result of the template unchanged; its length counts as work, and one that is too long is a
        SecurityError."""
        if isinstance(made, (str, bytes, list, tuple)):
            if len(made) > (MAX_TEXT if isinstance(made, (str, bytes)) else MAX_VALUES):
                raise SecurityError("the template makes a text or list that is too long")
            charge(len(made))
        return made

    def writable(value: Any) -> Any:
        """Return a value that is to be written unchanged; the size of a list or dictionary, which is written whole,
        counts as work."""
        if isinstance(value, (list, tuple, dict)):
            charge(_weight(value))
        return value

    def checked(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a filter with checks of its arguments before the call and of its result after it."""
        given = 1 if hasattr(function, "jinja_pass_arg") else 0  # 1 if Jinja passes an argument of its own first

        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            value, rest = args[given], args[given + 1 :]
            if name in _WRITING or name in SLOW_FILTERS:
                for each in (value, *rest, *named.values()):
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
            elif name in _WIDE:
                lines = str(value).count("\n") + 1 if name == "indent" else 1
                _check_length(lines * sum(map(_width, (*rest, *named.values()))))
            return bounded(function(*args, **named))

        return call

    class Counted(NodeTransformer):
        """Counts the iterations of loops and macros, and the characters joined by ``~``."""

        def _counted(self, node: Any) -> Any:
            self.generic_visit(node)
            call = nodes.Call(nodes.EnvironmentAttribute("count_round"), [], [], None, None)
            node.body.insert(0, nodes.ExprStmt(call, lineno=node.lineno))
            return node

        visit_For = visit_Macro = visit_CallBlock = _counted

        def visit_Concat(self, node: Any) -> Any:
            self.generic_visit(node)
            return nodes.Call(nodes.EnvironmentAttribute("join"), node.nodes, [], None, None, lineno=node.lineno)

    class Environment(ImmutableSandboxedEnvironment):
        template_class = Template
        intercepted_binops = frozenset({"*", "**", "+", "%"})

        def _parse(self, *args: Any) -> Any:
            return Counted().visit(super()._parse(*args)).set_environment(self)

        @staticmethod
        def count_round() -> None:
            rounds.count += 1
            if rounds.count > MAX_ROUNDS:
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
                elif name == "translate" and args and isinstance(args[0], Mapping):
                    _check_length(len(owner) * max(map(_width, args[0].values()), default=0))
            return bounded(super().call(context, function, *args, **named))

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            if type(obj) is list and attr in _CHANGES:
                return not any(given is obj for given in _lists(rounds.given))
            return bool(super().is_safe_attribute(obj, attr, value))

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            """Do an operation that may make a large value (``*``, ``**``, ``+``, ``%``) after checking the operands."""
            if operator == "*" and (not _is_number(left) or not _is_number(right)):
                sizes = [value if _is_number(value) else len(value) for value in (left, right)]
                _check_length(sizes[0] * sizes[1])
            elif operator == "**" and not (_is_number(left) and _is_number(right) and abs(left) < 1e6 and right < 64):
                raise SecurityError("the template raises to too high a power")
            elif operator == "%" and isinstance(left, str):
                raise SecurityError("the template formats a text with %")
            return bounded(super().call_binop(context, operator, left, right))

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation], finalize=writable
    )
    environment.filters["tojson"] = _to_json
    environment.filters = {name: checked(each, name) for name, each in environment.filters.items()}
    del environment.globals["lipsum"]  # makes texts of any length; no chat template needs it
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
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


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _check_length(length: float) -> None:
    """Check the length of a text before it is made.

    Raises:
        SecurityError: the text is too long.
    """
    from jinja2.exceptions import SecurityError

    if length > MAX_TEXT:
        raise SecurityError("the template makes a text that is too long")


def _width(value: Any) -> float:
    """Return the maximum number of characters or items that an argument may request."""
    return abs(value) if _is_number(value) else len(value) if isinstance(value, (str, bytes)) else 0


def _formatted(text: str, args: tuple[Any, ...]) -> float:
    """Return the number of characters that the widths in a format request, including those in arguments."""
    widths = sum(float(digits) for digits in re.findall(r"[0-9]+", text))
    given = max((_width(value) for each in args for value in _flat(each)), default=0)
    return widths + (text.count("{") + text.count("%")) * given


def _flat(value: Any) -> list[Any]:
    return [*value.values()] if isinstance(value, Mapping) else [value]


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
    """Return the number of values and of characters in a value that is to be written, with repetitions.

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
    return count + size


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
