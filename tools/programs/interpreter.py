"""An interpreter of programs of calls: it walks the syntax tree, and runs nothing but calls of the given functions."""

from __future__ import annotations

import ast
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolgrammar.core.conversation import ToolCall
from toolgrammar.core.errors import Place, ToolCallError

from ..calling import describe_failure, result_text

#: Maximum number of characters that a failure shows of a value.
MAX_SHOWN = 400
#: Maximum number of characters of a program.
MAX_PROGRAM = 20_000


@dataclass(eq=False)
class Pending:
    """A call that is under way.

    Attributes:
        task: what the runner waits for; the interpreter only hands it back.
        place: the line and the statement of the call.
    """

    task: Any
    place: tuple[int, str] = (0, "")


#: What a run asks for: the result of a call, or of one that is under way.
Asked: TypeAlias = "ToolCall | Pending"


class Interpreter:
    """One run of a program.

    `run` is a generator. It yields a `ToolCall`, and is sent the value of the call, or a `Pending` if the tool only
    reads. It yields a `Pending` where the program needs the value, and before any call of a tool that does not only
    read, and is sent the value. So calls that read run side by side, and a failure of one is known before any call that
    does more than read.

    Args:
        parameters: for each function, the name of its tool, and those of its parameters in order.
        max_calls: maximum number of calls.
        reading: the names of the tools that only read.
    """

    def __init__(
        self,
        parameters: Mapping[str, tuple[str, Sequence[str]]],
        max_calls: int,
        reading: Collection[str] = (),
    ) -> None:
        self._parameters, self._reading = parameters, reading
        self._calls_left = max_calls
        self._names: dict[str, Any] = {}
        self._printed: list[Any] = []
        self._pending: list[Pending] = []
        self._place = (0, "")

    def run(self, text: str) -> Generator[Asked, Any, Any]:
        """Yield each call, take its value, and return the result of the program.

        The result is the value of ``return``; without one, what was printed; without that, the value of the last
        statement that is no constant.

        Raises:
            ToolCallError: the text is no program, or a step of it failed; it says what was bound before.
        """
        value = None  # of the last statement that is no constant
        statements = _statements(text)
        try:
            for line, node in enumerate(statements, 1):
                self._place = line, ast.unparse(node)
                if isinstance(node, ast.Return) and node.value is not None:
                    value = yield from self._value(node.value)
                    yield from self._settle()
                    return value
                if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                    bound = self._names[node.targets[0].id] = yield from self._perhaps_pending(node.value)
                    value = value if isinstance(node.value, ast.Constant) else bound
                elif isinstance(node, ast.Expr) and _is_print(node.value):
                    self._printed.append((yield from self._value(node.value.args[0])))  # type: ignore[attr-defined]
                elif isinstance(node, ast.Expr):
                    value = yield from self._perhaps_pending(node.value)
                else:
                    raise _not_in(node)
            yield from self._settle()
            value = yield from self._now(value)
        except Exception as error:  # of a tool, or of a field or an index that is not there
            raise self._failed(*self._place, error) from error
        if len(self._printed) == 1:
            return self._printed[0]
        return "\n".join(map(result_text, self._printed)) if self._printed else value

    def _now(self, value: Any) -> Generator[Asked, Any, Any]:
        """Return a value; wait for that of a call under way, and put it in place of the `Pending` of all names."""
        if not isinstance(value, Pending):
            return value
        here, self._place = self._place, value.place  # a failure is one of the statement with the call
        result = yield value
        self._place = here
        self._names.update((name, result) for name, bound in self._names.items() if bound is value)
        return result

    def _settle(self) -> Generator[Asked, Any, None]:
        """Wait for all calls that are under way."""
        pending, self._pending = self._pending, []
        for one in pending:
            yield from self._now(one)

    def _value(self, node: ast.expr) -> Generator[Asked, Any, Any]:
        """Yield the calls of an expression, take their values, and return its value."""
        return (yield from self._now((yield from self._perhaps_pending(node))))

    def _perhaps_pending(self, node: ast.expr) -> Generator[Asked, Any, Any]:
        """Return the value of an expression: a `Pending` if it is a call, or the name of one, that is under way."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id not in self._names:
                raise ToolCallError(f"the name {node.id!r} is not bound", hint="bind it in a statement before")
            return self._names[node.id]
        if isinstance(node, ast.Attribute):
            return _step((yield from self._value(node.value)), node.attr)
        if isinstance(node, ast.Subscript):
            return _step((yield from self._value(node.value)), ast.literal_eval(node.slice))
        if isinstance(node, ast.List):
            items = []
            for item in node.elts:
                items.append((yield from self._value(item)))
            return items
        if isinstance(node, ast.Dict):
            made = {}
            for key, item in zip(node.keys, node.values, strict=True):
                if key is None:
                    raise _not_in(node)
                made[ast.literal_eval(key)] = yield from self._value(item)
            return made
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return (yield from self._call(node.func.id, node))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return ast.literal_eval(node)
        raise _not_in(node)

    def _call(self, function: str, node: ast.Call) -> Generator[Asked, Any, Any]:
        """Yield the calls of the arguments, then the call itself; return its value."""
        if function not in self._parameters:
            raise ToolCallError(f"there is no function {function!r}", hint=f"use {', '.join(self._parameters)}")
        tool, names = self._parameters[function]
        if len(node.args) > len(names) or any(one.arg is None for one in node.keywords):
            raise ToolCallError(f"wrong arguments of {function}", hint=f"it takes {', '.join(names)}")
        given = [*zip(names, node.args, strict=False), *((str(one.arg), one.value) for one in node.keywords)]
        arguments = {}
        for name, argument in given:
            if name in arguments:
                raise ToolCallError(f"{function} gets {name!r} twice", hint="give it once")
            arguments[name] = yield from self._value(argument)
        self._calls_left -= 1
        if self._calls_left < 0:
            raise ToolCallError("the program has too many calls", hint="raise max_calls, or write a shorter program")
        if tool not in self._reading:
            yield from self._settle()
        value = yield ToolCall("", tool, arguments)
        if isinstance(value, Pending):
            value.place = self._place
            self._pending.append(value)
        return value

    def _failed(self, line: int, statement: str, error: Exception) -> ToolCallError:
        """Return the error that a model reads: the statement, the reason, and the values of names before it."""
        known = ((name, value) for name, value in self._names.items() if not isinstance(value, Pending))
        values = "".join(f"\n{name} = {_short(value)}" for name, value in known)
        reason = f"line {line}, `{statement}`: {describe_failure(error)}"
        return ToolCallError(
            reason + (f"\nThe values before it:{values}" if values else ""),
            hint="call again with a program that goes on from here",
            place=Place(),
        )


def _statements(text: str) -> list[ast.stmt]:
    """Return the statements of a text.

    Raises:
        ToolCallError: it is too long, or no Python.
    """
    if len(text) > MAX_PROGRAM:
        raise ToolCallError(
            f"the program has {len(text):,} characters, at most {MAX_PROGRAM:,} are allowed", hint="split it"
        )
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ToolCallError(f"the text is no program: {error}", hint="write one statement a line") from None


def _is_print(node: ast.expr) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    return is_call and len(node.args) == 1 and not node.keywords  # type: ignore[attr-defined]


def _not_in(node: ast.AST) -> ToolCallError:
    return ToolCallError(f"{type(node).__name__} is not in the language of programs", hint="write calls and names")


def _step(value: Any, step: Any) -> Any:
    """Return a field of an object, or an item of a list."""
    if isinstance(value, Mapping) and isinstance(step, str):
        return value[step]
    if isinstance(value, Sequence) and not isinstance(value, str) and isinstance(step, int):
        return value[step]
    raise ToolCallError(f"{_short(value)} has no {step!r}", hint="use the fields that the results of the tool have")


def _short(value: Any) -> str:
    text = result_text(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."
