"""Programs of calls: one tool whose argument is a short program over other tools.

`signatures` reads the types of parameters and results from the schemas of the tools, `stubs` shows them as Python,
`interpreter` runs a program, and `tool` makes the tool (`program_tool`). The language is the syntax ``program`` of
``x-grammar`` (``core/text_grammars/programs.py``): every format, server and framework that writes a custom tool writes
programs too.
"""

from __future__ import annotations

__all__: list[str] = []
