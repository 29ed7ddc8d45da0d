"""Programs that a model writes freely: an interpreter of a large part of Python that is no ``exec``."""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class ProgramError(Exception):
    """A program cannot go on: its text is no program of the language, or a call failed."""


class _Returned(Exception):
    """``return``, with its value."""


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.Not: operator.not_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda one, of: one in of, ast.NotIn: lambda one, of: one not in of,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len, "min": min, "max": max, "sum": sum, "sorted": sorted, "str": str, "int": int, "float": float,
    "bool": bool, "list": list, "abs": abs, "round": round, "any": any, "all": all, "enumerate": enumerate,
    "next": next,
}  # fmt: skip
_METHODS: dict[type, set[str]] = {
    str: {"lower", "upper", "strip", "split", "startswith", "endswith", "replace", "join", "format", "title"},
    dict: {"get", "keys", "values", "items"},
    list: {"append", "index", "count"},
}


class Interpreter:
    """Runs a program: no ``exec``, no attribute of Python's own but a few methods of texts, lists and objects.

    Args:
        call: runs a call of a tool, by its name and its arguments; raises an error if it fails.
        parameters: the names of the parameters of each tool.
        most_calls: a program with more calls fails.
        most_steps: a program with more steps of evaluation fails.
    """

    def __init__(
        self,
        call: Callable[[str, dict[str, Any]], Any],
        parameters: Mapping[str, Sequence[str]],
        *,
        most_calls: int = 20,
        most_steps: int = 5_000,
    ) -> None:
        self._call, self._parameters = call, parameters
        self._calls, self._steps = most_calls, most_steps
        self.names: dict[str, Any] = {}
        self.printed: list[Any] = []

    def run(self, text: str) -> Any:
        """Return what a program returns; else what it printed last, or the value of its last statement.

        Raises:
            ProgramError: it is not in the language, or failed.
        """
        value, self.printed = None, []
        try:
            for node in ast.parse(text).body:
                value = self._do(node)
        except _Returned as returned:
            return returned.args[0]
        except ProgramError:
            raise
        except Exception as error:  # what a wrong program raises: a field that is not there, a wrong operand
            raise ProgramError(f"{type(error).__name__}: {error}") from None
        if not self.printed:
            return value
        return self.printed[0] if len(self.printed) == 1 else "\n".join(map(shown, self.printed))

    def _do(self, node: ast.stmt) -> Any:
        if isinstance(node, ast.Expr):
            return self._value(node.value)
        if isinstance(node, ast.Return):
            raise _Returned(None if node.value is None else self._value(node.value))
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value = self._value(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._bind(target, value)
            return None
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.names[node.target.id] = _OPERATORS[type(node.op)](self.names[node.target.id], self._value(node.value))
            return None
        if isinstance(node, ast.If):
            for each in node.body if self._value(node.test) else node.orelse:
                self._do(each)
            return None
        if isinstance(node, ast.For):
            for item in self._value(node.iter):
                self._bind(node.target, item)
                for each in node.body:
                    self._do(each)
            return None
        if isinstance(node, ast.Pass):
            return None
        raise ProgramError(f"{type(node).__name__} is not in the language")

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, each in zip(target.elts, value, strict=True):
                self._bind(one, each)
        else:
            raise ProgramError("only names are assigned")

    def _value(self, node: ast.expr) -> Any:
        self._steps -= 1
        if self._steps < 0:
            raise ProgramError("the program has too many steps")
        known = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if known is None:
            raise ProgramError(f"{type(node).__name__} is not in the language")
        return known(node)

    def _of_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _of_name(self, node: ast.Name) -> Any:
        return self.names[node.id]

    def _of_attribute(self, node: ast.Attribute) -> Any:
        return self._value(node.value)[node.attr]

    def _of_subscript(self, node: ast.Subscript) -> Any:
        found = self._value(node.value)
        if isinstance(node.slice, ast.Slice):
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            return found[slice(*(None if one is None else self._value(one) for one in ends))]
        return found[self._value(node.slice)]

    def _of_list(self, node: ast.List | ast.Tuple) -> Any:
        return [self._value(one) for one in node.elts]

    _of_tuple = _of_list

    def _of_dict(self, node: ast.Dict) -> Any:
        return {
            self._value(key): self._value(one)
            for key, one in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    def _of_binop(self, node: ast.BinOp) -> Any:
        one, other = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.Mult) and not (isinstance(one, (int, float)) and isinstance(other, (int, float))):
            raise ProgramError("only numbers are multiplied")  # "a" * 10**9
        return _OPERATORS[type(node.op)](one, other)

    def _of_unaryop(self, node: ast.UnaryOp) -> Any:
        return _OPERATORS[type(node.op)](self._value(node.operand))

    def _of_boolop(self, node: ast.BoolOp) -> Any:
        is_and, value = isinstance(node.op, ast.And), None
        for one in node.values:
            value = self._value(one)
            if bool(value) != is_and:
                break
        return value

    def _of_compare(self, node: ast.Compare) -> Any:
        left = self._value(node.left)
        for kind, right in zip(node.ops, map(self._value, node.comparators), strict=True):
            if not _OPERATORS[type(kind)](left, right):
                return False
            left = right
        return True

    def _of_ifexp(self, node: ast.IfExp) -> Any:
        return self._value(node.body if self._value(node.test) else node.orelse)

    def _of_joinedstr(self, node: ast.JoinedStr) -> Any:
        return "".join(str(self._value(one)) for one in node.values)

    def _of_formattedvalue(self, node: ast.FormattedValue) -> Any:
        spec = "" if node.format_spec is None else self._value(node.format_spec)
        if re.search(r"\d{3}", spec):
            raise ProgramError("the format is too wide")
        return format(self._value(node.value), spec)

    def _of_listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        return list(self._comprehended(node.elt, node.generators))

    def _of_generatorexp(self, node: ast.GeneratorExp) -> Any:
        return iter(self._of_listcomp(node))

    def _comprehended(self, what: ast.expr, loops: Sequence[ast.comprehension]) -> Iterator[Any]:
        if not loops:
            yield self._value(what)
            return
        for item in self._value(loops[0].iter):
            self._bind(loops[0].target, item)
            if all(self._value(test) for test in loops[0].ifs):
                yield from self._comprehended(what, loops[1:])

    def _of_lambda(self, node: ast.Lambda) -> Any:
        names = [one.arg for one in node.args.args]

        def call(*given: Any) -> Any:
            self.names.update(zip(names, given, strict=True))
            return self._value(node.body)

        return call

    def _of_call(self, node: ast.Call) -> Any:
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            raise ProgramError("starred arguments are not in the language")
        given = [self._value(one) for one in node.args]
        named = {str(one.arg): self._value(one.value) for one in node.keywords}
        if isinstance(node.func, ast.Attribute):
            owner, name = self._value(node.func.value), node.func.attr
            if name not in _METHODS.get(type(owner), ()):
                raise ProgramError(f"{type(owner).__name__} has no method {name!r}")
            return getattr(owner, name)(*given, **named)
        if not isinstance(node.func, ast.Name):
            raise ProgramError("only names are called")
        name = node.func.id
        if name in self._parameters:
            known = self._parameters[name]
            if len(given) > len(known) or set(known[: len(given)]) & set(named):
                raise ProgramError(f"wrong arguments for {name}")
            self._calls -= 1
            if self._calls < 0:
                raise ProgramError("the program has too many calls")
            return self._call(name, {**dict(zip(known, given, strict=False)), **named})
        if name == "print":
            self.printed.append(given[0] if len(given) == 1 else " ".join(map(shown, given)))
            return None
        if name not in _FUNCTIONS:
            raise ProgramError(f"there is no function {name!r}")
        return _FUNCTIONS[name](*given, **named)


def shown(value: Any) -> str:
    """Return a value as an answer: a text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
