"""Docstrings: the parts are read one by one, and what is in no form costs nothing but itself."""

import ast
import importlib.util
import itertools
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolgrammar.tools import ToolSet
from toolgrammar.tools.sources.docstrings import read_docstring

from ...counted import at_most

#: Packages that users take tools from.
PACKAGES = ("huggingface_hub", "transformers", "langchain_core", "openai", "crewai", "autogen_core", "mcp", "pydantic")

#: Maximum number of files of a package, evenly drawn.
MOST_FILES = 400


@pytest.mark.parametrize(
    "text",
    [
        "Create.\n\nArgs:\n    name: The name.\n\nRaises:\n    If nothing is found\n",
        "Create.\n\nArgs:\n    name: The name.\n\nRaises:\n    [`ValueError`](https://example.org)\n        If x.\n",
        "Create.\n\nAttributes:\n    free text\n\nArgs:\n    name: The name.\n",
        "Create.\n\nArgs:\n    name: The name.\n    A paragraph about all of them\n",
        "Create.\n\nArgs:\n    A paragraph about all of them\n\n    name: The name.\n",
        "Create.\n\nReturns:\n\nArgs:\n    name: The name.\n",
        "Create.\n\nArgs:\n    name (`dict[str: int]`, *optional*, defaults to `None`):\n        The name.\n",
        "Create.\n\nArgs:\n    name (str,\n        optional): The name.\n",
        "Create.\n\nArgs:\n    - **name** (`str`): The name.\n    * `other`: Another.\n",
        "Create.\n\nArgs:\n    name - The name.\n",
        "Create.\n\nArgs:\n    name: The name.\n   other: Another, one column to the left.\n",
        "Create.\n\nArgs:\n    name (str)\n        The name.\n",
        "Create.\n\nArgs:\nname: The name.\nother: Another.\n\nMore.\n",
        "Create.\n\nKeyword Args:\n    name: The name.\n",
        "Create.\n\nParameters:\n    name: The name.\n\nParameters:\n    other: Another.\n",
        "Create.\n\nParameters\n----------\nname : str\n    The name.\n\nReturns\n-------\n\nRaises\n------\nfree text\n",
        "Create.\n\nParameters\n---\nother, name : str\n    The name.\n",
        "Create.\n\nOther Parameters\n----------------\n*name : str\n    The name.\n\nOwn heading\n-----------\nx : int\n    X.\n",
        "Create.\n\n:param name: The name.\n:raises:\n:rtype\n:returns nothing\n",
        "Create.\n\n:param dict[str, int] | None name: The name.\n:return: all\n",
        "Create.\n\n:type name: str\n:param name:\n    The name.\n\nMore.\n",
        "Create.\n\n:param \\*name: The name.\n",
        "Create.\n\n@keyword name: The name.\n@return: all\n",
        "Create.\n\n@param name: The name.\n@type name: str\n@raise\n",
    ],
)
def test_one_line_in_no_form_costs_no_description(text: str) -> None:
    """Descriptions are found beside text that has no form, in each style and with each marking of a name."""
    read = read_docstring(text)
    assert read.description == "Create."
    assert read.parameters["name"] == "The name."


@pytest.mark.parametrize(
    ("text", "description"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        ("Two\nlines.\n\nMore.", "Two\nlines.\n\nMore."),
        (
            "See :func:`sort` below.\n:class:`Sorted` is returned.",
            "See :func:`sort` below.\n:class:`Sorted` is returned.",
        ),
        ("Sort.\n\nNotes: none.\n\nArgs: all of them.", "Sort.\n\nNotes: none.\n\nArgs: all of them."),
        ("Sort.\n\nHow it works\n------------\nQuickly.", "Sort.\n\nHow it works\n------------\nQuickly."),
        ("Sort.\n\nReturns:\n    [`X`](y) of z", "Sort."),
        ("Args:\n    name: The name.\n    other: Another.", ""),
    ],
)
def test_the_description_ends_where_the_sections_begin(text: str | None, description: str) -> None:
    """The description is what is before the first section or field, and nothing else in a text ends it."""
    assert read_docstring(text).description == description


def test_lines_of_an_entry_keep_their_own_indentation() -> None:
    """A description over several lines keeps its lists, without the indentation of the section."""
    read = read_docstring(
        "Do.\n\nArgs:\n    how: One of\n        - `a`:\n          fast\n        - `b`\n    other: x\n"
    )
    assert read.parameters == {"how": "One of\n- `a`:\n  fast\n- `b`", "other": "x"}


def test_the_tool_has_summary_and_descriptions() -> None:
    """A section that has no form does not make the whole docstring the tool's description."""

    def create(name: str, *, kind: str = "") -> None:
        """Create.

        Args:
            name: The name.
            kind (`str`, *optional*):
                The kind.

        Raises:
            [`ValueError`](https://example.org)
                If nothing is found
        """

    tool = ToolSet.from_any([create])["create"]
    assert tool.description == "Create."
    assert tool.parameters["properties"]["name"]["description"] == "The name."
    assert tool.parameters["properties"]["kind"]["description"] == "The kind."


# -- real docstrings ---------------------------------------------------------------------------------------------

_TITLE = re.compile(r"(?:Args|Arguments|Parameters|Params):\s*")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*\)|\[.*\])?\s*:(.*)")


def described_line_by_line(docstring: str) -> set[str]:
    """The names of a docstring's ``Args:``, as a reader of single lines sees them."""
    names: set[str] = set()
    depth: int | None = None
    inside = False
    lines = docstring.splitlines()
    for line, following in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        indent = len(line) - len(line.lstrip())
        if line.strip() and not indent:
            inside, depth = _TITLE.fullmatch(line) is not None, None
        elif inside and line.strip():
            depth = indent if depth is None else depth
            entry = _ENTRY.fullmatch(line.strip()) if indent == depth else None
            below = bool(following.strip()) and len(following) - len(following.lstrip()) > indent
            if entry and (entry[2].strip() or below):
                names.add(entry[1])
    return names


def functions_of(package: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function in the files of a package, which are read and not run."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    paths = sorted(Path(spec.submodule_search_locations[0]).rglob("*.py"))
    for path in paths[:: len(paths) // MOST_FILES + 1]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node


@pytest.mark.parametrize("package", PACKAGES)
def test_no_description_of_a_real_docstring_is_lost(package: str) -> None:
    """Of each parameter that single lines of an ``Args:`` describe, the description is found."""
    sections, found, lost = 0, 0, []
    for function in functions_of(package):
        text = ast.get_docstring(function) or ""
        given = function.args
        known = {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if a}
        wanted = described_line_by_line(text) & known
        sections += bool(wanted)
        read = read_docstring(text)
        found += len(wanted & set(read.parameters))
        lost += [(function.name, name) for name in wanted - set(read.parameters)]
        assert not wanted or "\nArgs:\n" not in f"\n{read.description}\n"
    assert not lost
    assert sections > 20 and found > 50


def test_docstrings_of_the_standard_library() -> None:
    """Any docstring at all can be read, and one without sections is its own description."""
    library = Path(sysconfig.get_path("stdlib"))
    count = 0
    for path in sorted(library.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                text = ast.get_docstring(node) or ""
                read = read_docstring(text)
                assert text.strip().startswith(read.description)
                count += bool(text)
    assert count > 1_000


@pytest.mark.parametrize(
    "part",
    ["Args:\n", "Args:\nx: y\n", "Args:\n  x: y\n", ":param x: y\n", "Args\n----\n", "Args\n---\nx\n  y\n", "x\n", "\n",
     "Args:\n  x (", "Args:\n  word-word", ":param x: y\n z\n\n k\n", "Returns:\nx\n"],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "Args:\n  x ", ":param "])
def test_work_grows_with_the_length(part: str, before: str) -> None:
    """A docstring of thousands of sections, fields or entries takes a few calls a line."""
    text = before + part * 4_000
    with at_most(40 * text.count("\n") + 40_000):
        read_docstring(text)
