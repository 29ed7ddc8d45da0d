"""The tool whose argument is a program over other tools."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import WithJsonSchema

from toolgrammar.core.basics import cached_property
from toolgrammar.core.conversation import Message, ToolCall
from toolgrammar.core.errors import GrammarError, SchemaError, ToolCallError, ToolGrammarError

from ..calling import ToolResult, is_async
from ..tool import Tool, text_parameters
from ..toolset import ToolSet
from .definition import Definition
from .interpreter import Asked, Interpreter, Pending
from .signatures import Signatures
from .stubs import module, shown

#: Maximum number of ids of a conversation that a program may write: the latest.
MAX_WORDS = 400
_DESCRIPTION = """Run a short program over these functions, and return what it returns:

{functions}

Write one statement a line: calls, assignments, and at the end `return` with what the user wants to know. Calls may \
stand in arguments. No imports, no loops, no definitions. An example for other functions:

shop = find_shop(city="Oslo")
items = items_of(shop=shop.id)
return items[0].price"""


def program_tool(
    tools: Any, *, name: str = "run_program", max_calls: int = 50, statements: int = 20, nested: int = 3
) -> Tool:
    """Return a tool whose argument is a short program over other tools: [programs](../programs.md).

    ::

        tools = ToolSet([program_tool([find_customer, orders_of])])

    Args:
        tools: a `ToolSet`, or what makes one. A program reaches the fields that their results have by schema: the
            annotation of what a function returns, or ``output_schema``.
        name: of the tool.
        max_calls: maximum number of calls of a run.
        statements: maximum number of statements.
        nested: maximum number of calls inside of each other.

    Raises:
        SchemaError: no tool can be called in a program; says why.
        ToolGrammarError: a maximum is below 1.
    """
    for what, most in (("max_calls", max_calls), ("statements", statements), ("nested", nested)):
        if most < 1:
            raise ToolGrammarError(f"{what} is {most}", hint="give at least 1")
    return Program(tools if isinstance(tools, ToolSet) else ToolSet(tools), name, max_calls, statements, nested).tool()


@dataclass(frozen=True)
class Program:
    """What a tool of programs runs, and how.

    Attributes:
        tools: the tools that a program calls, as a `ToolSet`.
        name, max_calls, statements, nested: as for `program_tool`.
    """

    tools: ToolSet
    name: str
    max_calls: int
    statements: int
    nested: int

    @cached_property
    def _signatures(self) -> Signatures:
        return Signatures(tuple(self.tools.offered.values()))

    @cached_property
    def _definition(self) -> Definition:
        return Definition(self._signatures.functions)

    def tool(self) -> Tool:
        """Return the tool.

        Raises:
            SchemaError: no function can be called in a program.
        """
        description = _DESCRIPTION.format(functions=self.functions)
        plain = Tool(self.name, description, text_parameters(None), program=self)
        return self._bound(plain, None)

    def in_conversation(self, messages: Sequence[Message], tool: Tool) -> Tool:
        """Return a tool of programs (``tool``) for a conversation, in which a program may write its ids.

        If there is no program (each function needs an id, and there is none), the tool takes no arguments at all.
        """
        tools = self.tools.in_conversation(messages)
        program = self if tools is self.tools else replace(self, tools=tools)
        try:
            return program._bound(tool.readable, _ids(messages, self.name))
        except GrammarError:
            return tool.changed(parameters={**text_parameters(None), "not": {}}).read_as(tool.readable)

    def _bound(self, readable: Tool, words: Sequence[str] | None) -> Tool:
        """Return the tool with its grammar and its function.

        Args:
            readable: the tool that models see.
            words: the ids that a program may write; None: any word that may be one.

        Raises:
            SchemaError: no tool can be called in a program.
            GrammarError: there is no program with these words.
        """
        functions, tools = self._signatures.functions, self.tools
        if not functions:
            why = "; ".join(f"{name}: {reason}" for name, reason in self._signatures.left_out.items())
            raise SchemaError(
                f"no tool can be called in a program: {why or 'there are none'}", hint="call these tools one by one"
            )
        definition = self._definition.text(words, statements=self.statements, nested=self.nested)
        parameters_of = {
            name: (one.tool.name, [each.name for each in one.parameters]) for name, one in functions.items()
        }
        reading = {one.name for one in tools if one.annotations.get("readOnlyHint") is True}

        def run(input: str) -> Any:
            steps = Interpreter(parameters_of, self.max_calls).run(input)
            asked = _resumed(steps, None, tools)
            while isinstance(asked, ToolCall):  # without `reading`, nothing is pending
                asked = _resumed(steps, tools.execute(asked), tools)
            assert isinstance(asked, StopIteration)
            return asked.value

        async def arun(input: str) -> Any:
            steps = Interpreter(parameters_of, self.max_calls, reading).run(input)
            tasks: list[asyncio.Task[ToolResult]] = []
            asked = _resumed(steps, None, tools)
            try:
                while not isinstance(asked, StopIteration):
                    if isinstance(asked, Pending):
                        asked = _resumed(steps, await asked.task, tools)
                    elif asked.name in reading:
                        tasks.append(asyncio.ensure_future(tools.aexecute(asked)))
                        asked = steps.send(Pending(tasks[-1]))  # never the end, which waits for what is pending
                    else:
                        asked = _resumed(steps, await tools.aexecute(asked), tools)
            finally:
                for task in tasks:
                    task.cancel()
            return asked.value

        has_async = any(is_async(one.function) for one in tools if one.function is not None)
        grammar = {"syntax": "program", "definition": definition}
        function, parameters = arun if has_async else run, text_parameters(grammar)
        # Frameworks read a function's name, docstring and annotations.
        text = Annotated[str, "The program", WithJsonSchema(parameters["properties"]["input"])]
        function.__annotations__ = {"input": text, "return": Any}
        function.__name__, function.__qualname__, function.__doc__ = self.name, self.name, readable.description
        return readable.changed(parameters=parameters, function=function, program=self).read_as(readable)

    @property
    def functions(self) -> str:
        """The functions as a model reads them: a line for each class of results, and for each function."""
        return shown(self._signatures.functions)

    @property
    def left_out(self) -> dict[str, str]:
        """Why a tool cannot be called in a program of any conversation, by its name."""
        return Signatures(tuple(self.tools)).left_out

    @property
    def stubs(self) -> str:
        """The functions as a module for type checkers, named types as ``NewType``."""
        return module(self._signatures.functions)


def _resumed(steps: Generator[Asked, Any, Any], result: ToolResult | None, tools: ToolSet) -> Asked | StopIteration:
    """Go on with a program after the result of a call, or (None) begin. Return what it asks for next, or its end, which
    has its value.

    Raises:
        ToolCallError: the program failed, by this result or in what follows.
    """
    try:
        if result is None:
            return next(steps)
        if result.is_error:
            return steps.throw(ToolCallError(result.error or ""))
        return steps.send(_plain(result, tools[result.call.name]))
    except StopIteration as end:
        return end


def _plain(result: ToolResult, tool: Tool) -> Any:
    """Return a result as plain data; the text of a tool that promises an object is read as JSON."""
    data = result.to_dict()["result"]
    if isinstance(data, str) and (tool.output_schema or {}).get("type") in ("object", "array"):
        try:
            return json.loads(data)
        except ValueError:
            return data
    return data


def _ids(messages: Sequence[Message], name: str) -> tuple[str, ...]:
    """Return the words that may be ids, with a digit or a mark, of the user and of results of the tool ``name``: the
    latest `MAX_WORDS`."""
    found: dict[str, None] = {}  # an ordered set
    for message in messages:
        if message.role == "user" or (message.role == "tool" and message.name == name):
            for word in message.text.split():
                bare = word.strip(".,;:!?()[]{}\"'`")
                if re.search(r"[\d_@/#:-]", bare) and len(bare) <= 128 and not re.search(r"[\"'\\]", bare):
                    found.pop(bare, None)  # a repeated word is as late as its last occurrence
                    found[bare] = None
    return tuple(found)[-MAX_WORDS:]
