"""Schemas in several files: each file of the folder to which a schema refers becomes a definition in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote

from .json_input import read_json

#: Returns the content of a file by its name in the folder; None: there is no such file.
Reader = Callable[[str], Any]


def in_folder(folder: Path) -> Reader:
    """Return the reader of the JSON files below a folder."""

    def read(name: str) -> Any:
        path = (folder / name).resolve()
        if path.suffix != ".json" or not path.is_relative_to(folder.resolve()) or not path.is_file():
            return None
        return read_json(str(path), path.read_text(encoding="utf-8-sig"), "check the text with a JSON editor")

    return read


def bundled(schema: Any, read: Reader) -> Any:
    """Return a schema with the files that it and they refer to among its definitions, under their names as ``$id``.

    What is elsewhere stays as it is: nothing is fetched, and a reference to it is refused with the schema.
    """
    draft = str(schema.get("$schema", "")) if isinstance(schema, Mapping) else ""
    is_old = "/draft-0" in draft
    id_keyword, definitions = "id" if "/draft-04" in draft else "$id", "definitions" if is_old else "$defs"
    files: dict[str, Any] = {}
    pending = [("", schema)]  # names and contents; the loop adds the files that it finds
    for base, content in pending:
        for reference in _references(content):
            name = _file_of(reference, base)
            if name is not None and name not in files and isinstance(other := read(name), dict):
                files[name] = {**_extensible(other, is_old), id_keyword: name}
                pending.append((name, other))
    if not files:
        return schema
    own = schema.get(definitions)
    return {**_extensible(schema, is_old), definitions: {**(own if isinstance(own, Mapping) else {}), **files}}


def _file_of(reference: str, base: str) -> str | None:
    """Return the file to which a reference in the file ``base`` refers: ``("../c.json#/x", "a/b.json") -> "c.json"``;
    None: it is the same file, or outside of the folder."""
    if reference[:1] in ("#", "/") or ":" in reference:
        return None
    name = normpath(join(dirname(base), unquote(reference.partition("#")[0])))
    return None if name.startswith("..") else name


def _extensible(schema: Any, is_old: bool) -> dict[str, Any]:
    """Return a schema to which members may be added: before Draft 2019-09 they count for nothing beside ``$ref``."""
    if not is_old or "$ref" not in schema:
        return dict(schema)
    named = {name: schema[name] for name in ("$schema", "definitions") if name in schema}
    return {**named, "allOf": [{"$ref": schema["$ref"]}]}


def _references(content: Any) -> Iterator[str]:
    pending = [content]
    for part in pending:
        if isinstance(part, (dict, list)):
            pending += part.values() if isinstance(part, dict) else part
        if isinstance(part, dict) and isinstance(reference := part.get("$ref"), str):
            yield reference
