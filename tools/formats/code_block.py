"""A program of calls as a block of code: the format ``program``, of `program_tool` alone.

Models that were trained on code write a better program in a block of code than in the argument of a call
(``benchmarks/answers/programs.py``). The block is the one call of a turn; the prompt shows the functions as Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from toolgrammar.core.conversation import ArgumentsDelta, CallStart, Event, ReasoningMarkers, ToolCall
from toolgrammar.core.errors import GrammarError, Place, UnsatisfiableSchemaError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import dump_json
from toolgrammar.core.reading import ReadingMark
from toolgrammar.core.schema import GRAMMAR
from toolgrammar.core.text_grammars import string_grammar

from ..tool import Tool
from .base import TurnSpec
from .pythonic.calls import write_python
from .stream import marker_search
from .template.format import TemplateFormat
from .template.parser import Syntax, TemplateParser

OPENED, CLOSED = "```python\n", "\n```"
_PROMPT = """You can use these Python functions:

```python
{functions}
```

To use them, write a program in a block of code, one statement a line: calls, assignments, and at the end `return` \
with what the user wants to know. Calls may stand in arguments. No imports, no loops, no definitions. An example for \
other functions:

```python
shop = find_shop(city="Oslo")
items = items_of(shop=shop.id)
return items[0].price
```"""


@dataclass(frozen=True)
class CodeBlock(TemplateFormat):
    """The format: ``$args`` is the program as it is."""

    def _calls_as(self, template: str, turn: TurnSpec) -> Grammar:
        """Return the grammar of the block; a turn has no tool but the one of `program_tool`."""
        others = [tool for tool in turn.tools if tool.program_argument is None]
        if others or len(turn.tools) > 1:
            name = others[0].name if others else turn.tools[1].name
            raise GrammarError(
                f"the format {self.name} writes calls of one tool, made by program_tool, and not of {name!r}",
                hint="give program_tool all functions, or leave out tool_format",
                place=Place(tool=name),
            )
        (tool,) = turn.tools
        return turn.part(tool, turn.grammars.number(self), partial(self._block, tool, turn))

    def _block(self, tool: Tool, turn: TurnSpec) -> Grammar:
        """Return the grammar of a block with a program.

        Raises:
            UnsatisfiableSchemaError: there is no program.
        """
        ((argument, schema),) = tool.parameters["properties"].items()
        grammar = schema.get(GRAMMAR)
        # So `program_tool` says that a conversation has no id for any function.
        if tool.parameters.get("not") == {}:
            raise UnsatisfiableSchemaError(
                "every function needs an id, and there is none", hint="give a conversation with one"
            )
        if grammar is None:
            program = Grammar.text(excluding=[CLOSED])
        else:
            strings = string_grammar(grammar)
            program = Grammar(strings.rules.build, ("program", strings))
        return Grammar.sequence(
            OPENED,
            *turn.marks(
                ReadingMark.of_tool(tool.name, 0),
                *ReadingMark.of_argument(argument),
            ),
            program,
            CLOSED,
            *turn.marks(ReadingMark.of_end(len(CLOSED))),
        )

    def _beginnings(self, tool: Tool) -> Iterator[str]:
        yield OPENED

    def _render_call(self, call: ToolCall, index: int) -> str:
        given = list(call.arguments.values())
        if len(given) == 1 and isinstance(given[0], str):
            return OPENED + given[0] + CLOSED
        arguments = ", ".join(f"{name}={write_python(value)}" for name, value in call.arguments.items())
        return f"{OPENED}{call.name}({arguments}){CLOSED}"  # of another tool: what a program would say

    def _parser_class(self, tools: Sequence[Tool]) -> Callable[..., TemplateParser]:
        found = ((tool.name, argument) for tool in tools if (argument := tool.program_argument) is not None)
        return partial(CodeBlockParser, *next(found, ("run_program", "input")))

    def prompt(self, tools: Sequence[Tool], brief: object = ()) -> str:
        """Return the functions as Python, and how to use them; empty without tools."""
        return "\n\n".join(
            f"{tool.description}\n\nWrite the program in a block of code:\n\n{OPENED}...{CLOSED}"
            if tool.program is None
            else _PROMPT.format(functions=tool.program.functions)
            for tool in tools
        )


class CodeBlockParser(TemplateParser):
    """Reads the first block of code as a call; its text is sent as it comes.

    Args:
        tool: the name of the tool.
        argument: the name of its argument.
    """

    def __init__(
        self,
        tool: str,
        argument: str,
        syntax: Syntax,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(syntax, finish, new_id)
        self._tool, self._argument = tool, argument
        self._end_mark = marker_search((CLOSED,))

    def _begin(self, opener: str) -> None:
        self._buffer.skip(len(opener))
        self._name, self._id, self._call_text = self._tool, self._new_id(), [opener]
        self._values, self._arguments = {self._argument: ""}, []
        self._state = self._read_program

    def _read_program(self, events: list[Event]) -> bool:
        """Read on in the program, up to the end of its block; its text is sent as the JSON string of the argument."""
        text, mark = self._buffer.take_before(self._end_mark, final=self._final)
        if not self._arguments:  # nothing is sent yet
            events.append(CallStart(self._index, self._id, self._name))
            self._write(f'{{{dump_json(self._argument)}: "', events)
        self._call_text.append(text)
        self._write(dump_json(text)[1:-1], events)
        if mark:
            self._write('"}', events)
            _, *program = self._call_text  # the first piece is the fence
            return self._end_call({self._argument: "".join(program)}, "".join(self._arguments), events)
        return self._unfinished(events)

    def _write(self, piece: str, events: list[Event]) -> None:
        self._arguments.append(piece)
        if piece:
            events.append(ArgumentsDelta(self._index, piece))


PROGRAM = CodeBlock(
    name="program",
    call=f"{OPENED}$args{CLOSED}",
    triggers=(OPENED,),
    openers=(OPENED,),
    head="(?!)",
    skips=("```",),
    joint="\n",
    glued=True,
    parallel=False,
    thinking=ReasoningMarkers.THINK,
    result="The program returned:\n$content",
)
