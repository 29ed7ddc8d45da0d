"""``toolgrammar diff``: do the calls of yesterday still work today?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .contract_source import contracts_of
from .output import AsJson, console, fail, in_words_of_the_shell, print_json, show_verdicts, shown_json, working

if TYPE_CHECKING:
    from toolgrammar.tools import ToolChange, ToolChanges

#: Exit code if nothing is known to break, and something is not decided.
EXIT_UNDECIDED = 3

#: Colours of verdicts.
COLOURS = {"breaks": "bold red", "removed": "bold red", "undecided": "yellow", "compatible": "green", "added": "green"}

#: The name under which two JSON Schemas are compared.
_SCHEMA = "(schema)"

_SOURCE = (
    "A file (.json, .py, .ts, .yaml) of tools, of an OpenAPI document or of a JSON Schema; the URL or the command of "
    "an MCP server; module:object; or REVISION:FILE of git. Python files and commands are executed."
)


def diff(
    old: Annotated[str, typer.Argument(help=_SOURCE)],
    new: Annotated[str, typer.Argument(help="The same, today.")],
    formats: Annotated[bool, typer.Option(help="Whether format is an assertion, or an annotation.")] = True,
    as_json: AsJson = False,
) -> None:
    """Tell if every call that the old tools took is taken by the new ones, and if results stay what they were; if not,
    show a smallest call or result that breaks.

    Exit code: 0 nothing breaks, 1 something breaks, 2 one cannot be read, or they are not of one kind,
    3 nothing is known to break, and something is not decided.
    """
    with working(f"comparing {old} and {new}"):
        changes = _changes(old, new, formats)
    if as_json:
        print_json(changes.to_dict())
    else:
        _show(changes)
    raise typer.Exit({True: 0, False: 1, None: EXIT_UNDECIDED}[changes.compatible])


def _changes(old: str, new: str, formats: bool) -> ToolChanges:
    """Return what became of the tools, or of the one schema, that a user names."""
    from toolgrammar.tools import ToolSet
    from toolgrammar.tools.contracts import Contract, compared_contracts

    sides = [contracts_of(name) for name in (old, new)]
    are_tools = [isinstance(side, ToolSet) for side in sides]
    if are_tools[0] != are_tools[1]:
        which = are_tools.index(False)
        fail(f"{(old, new)[which]} is a JSON Schema, and {(new, old)[which]} has tools", "compare two of a kind")
    if all(are_tools):
        return sides[0].compare(sides[1], formats=formats)
    before, after = (Contract(_SCHEMA, side, kind="value") for side in sides)
    return compared_contracts([before], [after], formats=formats)


def _show(changes: ToolChanges) -> None:
    """Print the changes for people: those that break first."""
    from rich.text import Text

    order = [*COLOURS, "same"]
    by_verdict = sorted(changes, key=lambda change: order.index(change.verdict))
    total = show_verdicts([(change.verdict, change.name, _lines(change)) for change in by_verdict], COLOURS)
    number = f"{len(changes)} tool{'s' * (len(changes) != 1)}"
    if any(change.name == _SCHEMA for change in changes):
        number = "1 schema"
    console().print(Text(f"{number}: {total}" if total else "there is nothing to compare", "dim"))


def _lines(change: ToolChange) -> list[str]:
    """Return what is said of a change, line by line."""
    lines = []
    for broken in change.breaks:
        said = "may give this result" if broken.kind == "result" else f"breaks this {broken.kind}"
        lines.append(broken.reason if broken.text is None else f"{said}: {shown_json(broken.value)}")
        if broken.text is not None:
            lines.append(f"    {broken.reason}")
    if change.gains_text is not None:
        lines.append(f"takes more: {shown_json(change.gains)}")
    return [*lines, *(f"not decided: {in_words_of_the_shell(str(error))}" for error in change.undecided)]
