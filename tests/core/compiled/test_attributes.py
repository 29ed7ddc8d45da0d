"""What begins as zero in a compiled class is set in its interpreted form: there, it would not exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolgrammar.core.compiled.modules import COMPILED

CORE = Path(__file__).resolve().parents[3] / "core"
DECLARED = [name for name in COMPILED if CORE.joinpath(*name.split(".")).with_suffix(".pxd").is_file()]


def declared(text: str) -> dict[str, set[str]]:
    """Return the attributes of each class of a ``.pxd`` file. A view of memory is left out: one that is not set is an
    error in both forms."""
    classes: dict[str, set[str]] = {}
    names: set[str] = set()
    for line in text.splitlines():
        line = line.partition("#")[0].rstrip()
        if found := re.match(r"cdef class (\w+)", line):
            names = classes.setdefault(found[1], set())
        elif line and not line[0].isspace():
            names = set()
        elif (found := re.match(r"\s+cdef (?:readonly |public )?([^(]+)$", line)) and "[" not in line:
            first, *others = found[1].split(",")
            names |= {name.split()[-1].lstrip("*") for name in (first, *others)} - {"__weakref__"}
    return classes


class Module:
    """The assignments of attributes in one module."""

    def __init__(self, name: str) -> None:
        tree = ast.parse(CORE.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.classes = {
            node.name: {inner.name: inner for inner in node.body if isinstance(inner, ast.FunctionDef)}
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        }

    def set_on(self, function: ast.FunctionDef, variable: str, methods: dict[str, ast.FunctionDef]) -> set[str]:
        """Return the attributes of a variable that a function sets, itself or by the methods of it that it calls."""
        found = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == variable:
                if isinstance(node.ctx, ast.Store):
                    found.add(node.attr)
                elif node.attr in methods and node.attr != function.name:
                    found |= self.set_on(methods[node.attr], "self", methods)
        return found

    def makers(self, kind: str) -> Iterator[tuple[str, set[str]]]:
        """Yield the name of each function that makes an object of a class, and the attributes that it sets."""
        methods = self.classes[kind]
        if "__init__" in methods:
            yield "__init__", self.set_on(methods["__init__"], "self", methods)
        for owned in (self.functions, *self.classes.values()):
            for function in owned.values():
                for node in ast.walk(function):
                    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                        if ast.unparse(node.value).startswith(f"{kind}.__new__("):
                            yield function.name, self.set_on(function, ast.unparse(target), methods)


@pytest.mark.parametrize("name", DECLARED)
def test_each_declared_attribute_is_set_where_an_object_is_made(name: str) -> None:
    """Whatever a ``.pxd`` file declares exists in the interpreted form as soon as the object does."""
    module = Module(name)
    text = CORE.joinpath(*name.split(".")).with_suffix(".pxd").read_text(encoding="utf-8")
    missing = {}
    for kind, attributes in declared(text).items():
        makers = dict(module.makers(kind))
        assert makers, f"nothing makes a {kind}"
        missing |= {f"{kind}, by {maker}": left for maker, found in makers.items() if (left := attributes - found)}
    assert missing == {}


def test_attributes_are_found() -> None:
    """The reading of declarations sees pointers, several names in one line, and no methods."""
    text = "cdef class A:\n    cdef readonly Terms terms\n    cdef int* base\n    cdef int[::1] view\n    cdef int f(self)\n"
    assert declared(text) == {"A": {"terms", "base"}}
    assert {"base", "block", "facts", "seed"} <= declared((CORE / "automaton/byte_rows.pxd").read_text())["ByteRows"]


SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(CORE.rglob("*.py"))}
#: How often each word, and each word after a dot, is in them.
WORDS = Counter(word for source in SOURCES.values() for word in re.findall(r"\b\w+\b", source))
ATTRIBUTES = Counter(word for source in SOURCES.values() for word in re.findall(r"\.(\w+)\b", source))


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_has_a_use(name: str) -> None:
    """Each attribute, function and import of a ``.pxd`` file is used in its module or in another one."""
    path = CORE.joinpath(*name.split("."))
    text = path.with_suffix(".pxd").read_text(encoding="utf-8")
    lines = [line.partition("#")[0] for line in text.splitlines()]
    own = "\n".join([*(line for line in lines if "cimport" not in line), SOURCES[path.with_suffix(".py")]])
    imported = [word for line in lines if "cimport" in line for word in line.partition("cimport")[2].split(",")]
    unused = [word.strip() for word in imported if not re.search(rf"\b{word.strip()}\b", own)]
    unused += [attribute for attribute in set().union(*declared(text).values()) if ATTRIBUTES[attribute] < 2]
    unused += [function for function in re.findall(r"cp?def [^(\n]*?(\w+)\(", text) if WORDS[function] < 2]
    assert unused == []


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.pyi")), ids=lambda path: path.stem)
def test_what_type_checkers_see_exists(path: Path) -> None:
    """Each name in a ``.pyi`` file is one of its module."""
    source = SOURCES[path.with_suffix(".py")]
    text = path.read_text(encoding="utf-8")
    pxd = path.with_suffix(".pxd")
    source += pxd.read_text(encoding="utf-8") if pxd.is_file() else ""
    names = re.findall(r"^ *(?:def|class) (\w+)|^    (\w+): (?!.*,$)", text, re.M)
    assert [name for pair in names for name in pair if name and not re.search(rf"\b{name}\b", source)] == []
