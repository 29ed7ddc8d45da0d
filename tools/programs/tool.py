"""The tool whose argument is a program over other tools."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolgrammar.core.conversation import Message, ToolCall
from toolgrammar.core.errors import GrammarError, SchemaError

from ..calling import ToolResult, is_async
from ..tool import Tool, text_parameters
from ..toolset import ToolSet
from .interpreter import Interpreter
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


def program_tool(tools: Any, **settings: Any) -> Tool:
    """Return a tool whose argument is a short program over other tools: [programs](../programs.md).

    ::

        tools = ToolSet([program_tool([find_customer, orders_of])])

    Args:
        tools: a `ToolSet`, or what makes one. A program reaches the fields that their results have by schema: the
            annotation of what a function returns, or ``output_schema``.
        **settings: ``name``, ``max_calls``, ``statements`` and ``nested``, as `Program` has them.

    Raises:
        SchemaError: no tool can be called in a program; says why.
    """
    return Program(tools if isinstance(tools, ToolSet) else ToolSet(tools), **settings).tool()


@dataclass(frozen=True)
class Program:
    """What a tool of programs runs, and how.

    Attributes:
        tools: the tools that a program calls, as a `ToolSet`.
        name: of the tool that runs programs.
        max_calls: maximum number of calls of a run.
        statements: maximum number of statements.
        nested: maximum number of calls inside of each other.
        messages: the conversation; None: none is known.
    """

    tools: ToolSet
    name: str = "run_program"
    max_calls: int = 50
    statements: int = 20
    nested: int = 3
    messages: tuple[Message, ...] | None = None

    def tool(self, shown_as: Tool | None = None) -> Tool:
        """Return the tool.

        Args:
            shown_as: the tool without a conversation, which models see.

        Raises:
            SchemaError: no function can be called in a program.
        """
        usable = self.tools if self.messages is None else self.tools.in_conversation(self.messages)
        signatures = Signatures(tuple(usable.offered.values()))
        if not signatures.functions:
            why = "; ".join(f"{name}: {reason}" for name, reason in signatures.left_out.items())
            raise SchemaError(f"no tool can be called in a program: {why}", hint="call these tools one by one")
        words = None if self.messages is None else _words(self.messages, self.name)
        definition = signatures.definition(words, statements=self.statements, nested=self.nested)
        parameters = text_parameters({"syntax": "program", "definition": definition})
        names = {
            name: (one.tool.name, [each.name for each in one.parameters]) for name, one in signatures.functions.items()
        }

        def interpreter() -> Interpreter:
            return Interpreter(names, self.max_calls)

        def run(input: str) -> Any:
            steps, value = interpreter().run(input), None
            while True:
                try:
                    call = steps.send(value)
                except StopIteration as end:
                    return end.value
                try:
                    value = _plain(usable.call(call), usable[call.name])
                except Exception as error:  # the program fails by it
                    value = steps.throw(error)

        async def arun(input: str) -> Any:
            steps, value = interpreter().run(input), None
            while True:
                try:
                    call = steps.send(value)
                except StopIteration as end:
                    return end.value
                try:
                    value = _plain(await usable.acall(call), usable[call.name])
                except Exception as error:
                    value = steps.throw(error)

        waits = any(is_async(one.function) for one in usable if one.function is not None)
        description = _DESCRIPTION.format(functions=shown(signatures.functions))
        made = Tool(self.name, description, parameters, arun if waits else run, program=self)
        plain = shown_as or made.changed(parameters=text_parameters(None), program=None)
        return made.read_as(plain)

    def in_conversation(self, messages: Sequence[Message], tool: Tool) -> Tool:
        """Return a tool of programs for a conversation, whose ids a program may write."""
        try:
            return replace(self, messages=tuple(messages)).tool(tool.readable)
        except GrammarError:  # every call needs an id, and there is none
            return tool.changed(parameters={**text_parameters(None), "not": {}}).read_as(tool.readable)

    @property
    def left_out(self) -> dict[str, str]:
        """Why a tool cannot be called in a program, by its name."""
        return Signatures(tuple(self.tools)).left_out

    @property
    def stubs(self) -> str:
        """The functions as a module for type checkers, named types as ``NewType``."""
        return module(Signatures(tuple(self.tools)).functions)


def _plain(value: Any, tool: Tool) -> Any:
    """Return a result as plain data; the text of a tool that promises an object is read as JSON."""
    data = ToolResult(ToolCall("", tool.name, {}), value).to_dict()["result"]
    if isinstance(data, str) and (tool.output_schema or {}).get("type") in ("object", "array"):
        try:
            return json.loads(data)
        except ValueError:
            return data
    return data


def _words(messages: Sequence[Message], name: str) -> tuple[str, ...]:
    """Return the words of the user, and of the results of programs, that may be ids: with a digit or a mark."""
    found: dict[str, None] = {}
    for message in messages:
        if message.role == "user" or (message.role == "tool" and message.name == name):
            for word in message.text.split():
                bare = word.strip(".,;:!?()[]{}\"'`")
                if re.search(r"[\d_@/#:-]", bare) and len(bare) <= 128 and not re.search(r"[\"'\\]", bare):
                    found.pop(bare, None)
                    found[bare] = None
    return tuple(found)[-MAX_WORDS:]
