"""Docstrings: the description of a function, and those of its parameters.

Sections of Google's and NumPy's style, and fields of Sphinx (``:param x:``) and Epydoc (``@param x:``), are read one by
one, and so are the entries of a section. A docstring is unchecked prose, so text in none of these forms is skipped,
without loss of the descriptions around it.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

_PARAMETERS = r"(?i:(?:keyword |other )?(?:args|arguments|params|parameters))"
_GOOGLE_TITLE = re.compile(
    rf"(?:(?P<parameters>{_PARAMETERS})|Returns?|Yields?|Raises?|Except|Exceptions|Attributes|Examples?):\s*"
)
_NUMPY_TITLE = re.compile(
    rf"(?:(?P<parameters>{_PARAMETERS}|Receives?)|Returns?|Yields?|Raises?|Warns?|Warnings?|Attributes?|Examples?|Notes?"
    r"|References?|Related|See Also|Methods)\s*"
)
_UNDERLINE = re.compile(r"(?:-{3,}|={3,})\s*")
#: ``name: text``, ``name (type): text``, ``name - text``, or the text below the name. Marks of Markdown do not count.
_GOOGLE_ENTRY = re.compile(
    r"(?:[-+*•]\s+)?[*`\\]*(?P<name>\w+)(?!\w)[*`]*(?:\s*\(.*?\)\s*:|[^:\n]*?:|(?:\s*\(.*?\))?\s+[-–—]{1,2}\s|[^:\n]*\n)"
    r"(?P<text>.*)",
    re.DOTALL,
)
_FIELD = re.compile(r"[:@](?P<key>\w+)(?P<names>(?:\s[^\n]*?)?):(?P<text>(?:\s.*)?)", re.DOTALL)
_FIELDS_OF_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "kwarg"})

_Entries = Iterable[tuple[str, str]]


@dataclass
class Documentation:
    """The content of a docstring.

    Attributes:
        description: the text before the first section or field.
        parameters: the description of each parameter that has one.
    """

    description: str
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Documentation:
    """Return the content of a docstring, in one or several of the styles.

    Args:
        text: a docstring without its indentation, as `inspect.getdoc` returns it.
    """
    lines = (text or "").splitlines()
    first = len(lines)
    parameters: dict[str, str] = {}
    for index, entries in _parts(lines):
        first = min(first, index)
        for name, description in entries:
            cleaned = inspect.cleandoc(description).strip()
            if cleaned:
                parameters.setdefault(name, cleaned)
    return Documentation("\n".join(lines[:first]).strip(), parameters)


def _parts(lines: Sequence[str]) -> Iterator[tuple[int, _Entries]]:
    """Yield the index of the line of each section and field, and its parameters' names and texts; none of another
    section."""
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if title := _GOOGLE_TITLE.fullmatch(line):
            # Entries should be indented; where they are not, they end with the paragraph, or with the next title.
            flat = following.strip() and not following[0].isspace()
            body = itertools.takewhile(_is_flat if flat else _is_inside, _from(lines, index + 1))
            yield index, _google_entries(body) if title["parameters"] else ()
        elif _UNDERLINE.fullmatch(following) and (title := _NUMPY_TITLE.fullmatch(line)):
            yield index, _numpy_entries(_until_heading(lines, index + 2)) if title["parameters"] else ()
        elif found := _FIELD.fullmatch(line):
            names = found["names"].split()
            is_entry = found["key"] in _FIELDS_OF_PARAMETERS and bool(names)
            text = "\n".join([found["text"], *_continuation(_from(lines, index + 1))])
            yield index, [(names[-1].lstrip("*\\"), text)] if is_entry else ()


def _from(lines: Sequence[str], start: int) -> Iterator[str]:
    """Yield the lines from one on. No copy is made: a docstring may have many sections."""
    return (lines[index] for index in range(start, len(lines)))


def _google_entries(body: Iterable[str]) -> _Entries:
    """Yield name and text of the entries of a section: ``city (str): Name of it.``"""
    for entry in _entries(body):
        if found := _GOOGLE_ENTRY.fullmatch(entry):
            yield found["name"], found["text"]


def _numpy_entries(body: Iterable[str]) -> _Entries:
    """Yield name and text of the entries of a section: ``a, b : int``, and the text in the lines below."""
    for entry in _entries(body):
        head, _, text = entry.partition("\n")
        for name in head.partition(":")[0].split(","):
            yield name.strip().strip("`").lstrip("*\\"), text and f"\n{text}"


def _entries(body: Iterable[str]) -> Iterator[str]:
    """Yield the entries of a section: each begins with a line that is indented no more than the first one."""
    depth: int | None = None
    entry: list[str] = []
    for line in body:
        text = line.lstrip()
        if not text and depth is None:
            continue
        indent = len(line) - len(text)
        depth = indent if depth is None else depth
        if text and indent <= depth:
            if entry:
                yield "\n".join(entry)
            entry = [text]
        else:
            entry.append(line)
    if entry:
        yield "\n".join(entry)


def _is_inside(line: str) -> bool:
    """Return True for a line of the section above it: indented, or blank."""
    return not line or line[0].isspace()


def _is_flat(line: str) -> bool:
    """Return True for a line of a section whose entries are not indented."""
    return bool(line.strip()) and not _GOOGLE_TITLE.fullmatch(line)


def _until_heading(lines: Sequence[str], start: int) -> Iterator[str]:
    """Yield the lines from one on, up to the next that is underlined."""
    for index in range(start, len(lines)):
        if lines[index].strip() and index + 1 < len(lines) and _UNDERLINE.fullmatch(lines[index + 1]):
            return
        yield lines[index]


def _continuation(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that go on with the field above them: all until a field, or a paragraph that is not indented."""
    for before, line in itertools.pairwise(itertools.chain(["-"], lines)):
        if not _is_inside(line) and (not before.strip() or _FIELD.fullmatch(line)):
            return
        yield line
