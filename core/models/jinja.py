"""Jinja as chat templates use it, in a sandbox with bounded work.

The dialect is that of ``apply_chat_template`` in transformers: trimmed blocks, loop controls, a ``tojson`` that escapes
nothing, ``raise_exception``, ``strftime_now`` and the ``generation`` block. A template is a program that comes with a
model: it runs in Jinja's immutable sandbox, its loops and macros count their rounds, and its texts their characters.
"""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..errors import ModelError

#: Maximum rounds of the loops and macros of one rendering.
MAX_ROUNDS = 1_000_000

#: Maximum length of a text that a template makes, in characters.
MAX_TEXT = 1 << 26


@lru_cache(maxsize=256)
def compile_template(source: str) -> Any:
    """Return a compiled template; its ``render`` may raise whatever a template may.

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
    import jinja2
    from jinja2 import nodes
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.visitor import NodeTransformer

    class Generation(Extension):
        """``{% generation %}``, which marks what a model is trained on, and writes nothing."""

        tags = {"generation"}  # noqa: RUF012 - as Jinja's own extensions write it

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    rounds = threading.local()

    class Template(jinja2.Template):
        def render(self, *args: Any, **variables: Any) -> str:
            rounds.count, rounds.given = 0, (args, variables)
            pieces, size = [], 0
            for piece in self.generate(*args, **variables):
                size += len(piece)
                if size > MAX_TEXT:
                    raise SecurityError("the template writes too much")
                pieces.append(piece)
            return "".join(pieces)

    def bounded(text: Any) -> Any:
        if isinstance(text, str) and len(text) > MAX_TEXT:
            raise SecurityError("the template makes a text that is too long")
        return text

    class Counted(NodeTransformer):
        """Counts the rounds of loops and macros, and the characters that ``~`` joins."""

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
            return bounded("".join(map(str, parts)))

        def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
            if type(obj) is list and attr in _CHANGES:
                return not any(given is obj for given in _lists(rounds.given))
            return bool(super().is_safe_attribute(obj, attr, value))

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if operator == "*" and (not _is_number(left) or not _is_number(right)):
                sizes = [value if _is_number(value) else len(value) for value in (left, right)]
                if sizes[0] * sizes[1] > MAX_TEXT:
                    raise SecurityError("the template makes a text that is too long")
            elif operator == "**" and not (_is_number(left) and _is_number(right) and abs(left) < 1e6 and right < 64):
                raise SecurityError("the template raises to too high a power")
            elif operator == "%" and isinstance(left, str):
                raise SecurityError("the template formats a text with %")
            return bounded(super().call_binop(context, operator, left, right))

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment


#: Methods by which a template may change a list that it made itself; each adds no more than it is given.
_CHANGES = frozenset({"append", "insert", "pop"})


def _lists(value: Any) -> Iterator[list[Any]]:
    """Yield the lists in what a template is given."""
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


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
