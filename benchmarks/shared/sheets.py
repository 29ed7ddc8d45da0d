"""Answers that are kept in a file as soon as they are there, so that a run that was stopped goes on.

A *sheet* is what is kept of one measurement, as plain data: the verdict about an answer and its costs, or what an
engine made of a schema. Its key says what was measured: the model and the request, say, or the engine and the schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Sheet = dict[str, Any]
Key = tuple[Any, ...]


class Sheets(dict[Key, Any]):
    """Answers by what they answer: a line of the file for each.

    Args:
        path: the file, or None: nothing is kept.
        settings: of the run, plain data, which the first line has; a file of other ones is an error.

    Raises:
        SystemExit: the file has sheets of other settings.
    """

    def __init__(self, path: Path | None, settings: Any = None) -> None:
        self._path = path
        text = path.read_text(encoding="utf-8") if path and path.is_file() else ""
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]  # a stop may have cut the last
        if settings is not None:
            head = json.dumps(settings) + "\n"
            if lines and lines[0] != head:
                raise SystemExit(f"{path} has sheets of other settings; name another file, or delete it")
            lines = lines or [head]
        if path and "".join(lines) != text:
            path.write_text("".join(lines), encoding="utf-8")
        super().__init__((tuple(key), sheet) for key, sheet in map(json.loads, lines[settings is not None :]))

    def __setitem__(self, key: Key, sheet: Any) -> None:
        super().__setitem__(key, sheet)
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, sheet]) + "\n")

    def answer(self, key: Key, write: Callable[..., Sheet], *given: Any) -> Sheet:
        """Return the sheet of a key, which ``write`` gives where there is none."""
        if key not in self:
            self[key] = write(*given)
        return self[key]
