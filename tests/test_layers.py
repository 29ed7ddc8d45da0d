"""The arrows of the architecture point down: adapters > tools > core, and the layers inside core."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("core", "tools", "adapters")

# A module may import its own room and those before it. The longest prefix decides.
PIPELINE = (
    # what every room may use
    "core.faces",
    "core.compiled",
    "core.json",
    "core.errors",
    "core.basics",
    "core.pages",
    # languages
    "core.unicode",
    "core.language",
    "core.automaton.encoding",  # numbers
    "core.dependent",
    "core.regex",
    # grammars as text
    "core.text_grammars",
    # JSON Schema
    "core.schema.scalars",
    "core.schema.read.scope",
    "core.schema.read.located",
    "core.schema.normal.conjunction",
    "core.schema.normal.unions",
    "core.schema.keywords",
    "core.schema.read",
    "core.schema.normal",
    "core.schema.lower",
    "core.schema.check",
    "core.schema.pydantic",
    "core.schema",
    "core.text_grammars.tag_members",
    "core.text_grammars.tag_styles",
    "core.text_grammars.structural_tags",
    # grammars of common notations
    "core.builtins",
    "core.export",
    # automata, and the tokens that they allow
    "core.automaton",
    "core.vocabulary",
    "core.masks",
    "core.grammar",
    "core.reading",
    "core.repair",
    "core.validation",
    "core.record",
    "core.live",
    # writing
    "core.conversation",
    "core.generation",
    "core.models",
    "core.testing",
    "core",  # the front door: it may show everything before it
    # tools: from signatures to grammars of calls, and from text to calls that run
    "tools.type_names",
    "tools.dialects",
    "tools.tool",
    "tools.typescript",
    "tools.sources",
    "tools.call_grammars",
    "tools.formats.leniencies",
    "tools.formats.stream",
    "tools.formats.base",
    "tools.formats.reasoning",
    "tools.formats.bare_json",
    "tools.formats.described",
    "tools.formats.literals",
    "tools.formats.template",
    "tools.formats.xml",
    "tools.formats.nested",
    "tools.formats.pythonic",
    "tools.formats.gemma",
    "tools.formats.functionary",
    "tools.formats.harmony",
    "tools.formats.tag_families",
    "tools.formats.families",
    "tools.formats.probe",
    "tools.formats.learned",
    "tools.formats.format_file",
    "tools.formats",
    "tools",
    "adapters",
)
RANKS = {room: number for number, room in enumerate(PIPELINE)}


@dataclass(frozen=True)
class Arrow:
    """One import of one module of the package by another.

    Attributes:
        source: the importing module, for example ``core.grammar``.
        target: the imported module.
        line: where.
        typing_only: it stands under ``if TYPE_CHECKING``.
    """

    source: str
    target: str
    line: int
    typing_only: bool


def module_name(path: Path) -> str:
    """``core/regex/parser.py`` -> ``core.regex.parser``; a package's ``__init__`` is the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> list[Path]:
    """Every module of the package, and every stub of a compiled one."""
    return sorted(
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py*") if path.suffix in (".py", ".pyi")
    )


def rank(module: str) -> int:
    """The layer of a module."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if (prefix := ".".join(parts[:length])) in RANKS:
            if prefix == "core" and length < len(parts):
                raise AssertionError(f"{module} has no layer: add it to PIPELINE")
            return RANKS[prefix]
    raise AssertionError(f"{module} has no layer: add it to PIPELINE")


def is_module(name: str) -> bool:
    """Return True if a dotted name is a module of the package (not a value in one)."""
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def imports(path: Path) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import statement, wherever it stands, and whether only type checkers see it."""

    def walk(node: ast.AST, typing_only: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, typing_only
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for child in node.body:
                yield from walk(child, True)
            for child in node.orelse:
                yield from walk(child, typing_only)
        else:
            for child in ast.iter_child_nodes(node):
                yield from walk(child, typing_only)

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), False)


def arrows(path: Path) -> Iterator[Arrow]:
    """The imports of our modules in one module, relative or through ``toolgrammar``."""
    source = module_name(path)
    package = source.split(".") if path.name == "__init__.py" else source.split(".")[:-1]
    for node, typing_only in imports(path):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names if alias.name.startswith("toolgrammar.")]
            targets = [name.removeprefix("toolgrammar.") for name in targets]
        else:
            if node.level:
                base = [*package[: len(package) - node.level + 1], *filter(None, (node.module or "").split("."))]
            elif (node.module or "").split(".")[0] == "toolgrammar":
                base = (node.module or "").split(".")[1:]
            else:
                continue
            stem = ".".join(base)
            names = [f"{stem}.{alias.name}" for alias in node.names]
            targets = [name if is_module(name) else stem for name in names]
        for target in targets:
            yield Arrow(source, target, node.lineno, typing_only)


@functools.cache
def all_arrows() -> list[Arrow]:
    """The imports of our modules in all modules."""
    return [arrow for path in sources() for arrow in arrows(path)]


def test_imports_point_down() -> None:
    """No module imports a later room, neither inside a function nor for type checkers."""
    up = [
        f"{arrow.source}:{arrow.line} imports {arrow.target}"
        for arrow in all_arrows()
        if rank(arrow.target) > rank(arrow.source)
    ]
    assert up == []


def test_no_module_imports_itself_in_a_circle() -> None:
    """Imports form no cycle, those inside functions and those for type checkers counted."""
    imported: dict[str, set[str]] = {module_name(path): set() for path in sources()}
    for arrow in all_arrows():
        if arrow.source != arrow.target:
            imported[arrow.source].add(arrow.target)
    while leaves := {module for module, targets in imported.items() if not targets & imported.keys()}:
        imported = {module: targets for module, targets in imported.items() if module not in leaves}
    assert sorted(imported) == []


def test_two_rooms_are_split() -> None:
    """As whole rooms, two pairs import each other: the numbers of automata are below dependent nodes, and structural
    tags above schemas."""

    def room(module: str) -> str:
        return ".".join(module.split(".")[:2]) if module.startswith("core.") else module.split(".")[0]

    pairs = {(room(arrow.source), room(arrow.target)) for arrow in all_arrows()}
    mutual = {source for source, target in pairs if source != target and (target, source) in pairs}
    assert mutual == {"core.automaton", "core.dependent", "core.schema", "core.text_grammars"}


def test_front_door_is_for_users() -> None:
    """Modules of core import each other where they live, not through the package's front door."""
    through = [
        f"{arrow.source}:{arrow.line}"
        for arrow in all_arrows()
        if arrow.target == "core" and arrow.source.startswith("core.")
    ]
    assert through == []


#: Modules of core that stand alone, without a package.
ALONE = ("core.errors", "core.faces", "core.record", "core.validation")


#: Maximum number of names of core that tools and adapters import. It only falls; 150 is the goal.
MAX_NAMES = 178


def names_of(path: Path) -> set[str]:
    """The names in the ``__all__`` of a package."""
    return set(getattr(importlib.import_module(f"toolgrammar.{module_name(path)}"), "__all__", ()))


def seam() -> Iterator[tuple[str, str, str]]:
    """Each name of core that tools or adapters import: where, the module it comes from, and the name."""
    for path in sources():
        if path.relative_to(ROOT).parts[0] == "core":
            continue
        for node, _ in imports(path):
            if (
                isinstance(node, ast.ImportFrom)
                and not node.level
                and (node.module or "").startswith("toolgrammar.core")
            ):
                module = (node.module or "").removeprefix("toolgrammar.")
                for alias in node.names:
                    yield f"{module_name(path)}:{node.lineno}", module, alias.name


def test_tools_and_adapters_import_faces_of_core() -> None:
    """Tools and adapters import the public names of core's packages, and no module inside of them."""
    inside = []
    for where, module, name in seam():
        face = ROOT.joinpath(*module.split("."), "__init__.py")
        if module in ALONE or name == "*":
            continue
        if not face.is_file() or name not in names_of(face):
            inside.append(f"{where} imports {name} of {module}")
    assert inside == []


def test_the_seam_is_narrow() -> None:
    """Tools and adapters take few names of core, each from one face: a new one joins an object that has a name already,
    or another goes."""
    found = {(module, name) for _, module, name in seam()}
    assert len(found) <= MAX_NAMES
    objects = [(name, getattr(importlib.import_module(f"toolgrammar.{module}"), name, None)) for module, name in found]
    assert [name for name, each in objects if [one is each for _, one in objects].count(True) > 1] == []


def test_every_name_of_a_face_is_there() -> None:
    """A face imports each of its names, and none is also a module of its package, which would replace it."""
    wrong = []
    for path in (ROOT / "core").rglob("__init__.py"):
        face = importlib.import_module(f"toolgrammar.{module_name(path)}")
        modules = {each.stem for each in path.parent.glob("*.py")} | {
            each.parent.name for each in path.parent.glob("*/__init__.py")
        }
        for name in names_of(path):
            if name in modules or not hasattr(face, name):
                wrong.append(f"{module_name(path)}: {name}")
    assert wrong == []


def test_languages_know_no_threads() -> None:
    """The stores of languages, and dependent nodes, start no thread, wait for nothing and log nothing."""
    waiting = {"asyncio", "concurrent", "contextvars", "logging", "queue", "socket", "subprocess", "time"}
    rooms = ("core.unicode", "core.language", "core.dependent")
    found = []
    for path in sources():
        if module_name(path).startswith(rooms):
            for node, _ in imports(path):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                found += [
                    f"{module_name(path)}:{node.lineno} {name}" for name in names if name.split(".")[0] in waiting
                ]
    assert found == []


def test_properties_take_no_lock() -> None:
    """Cached properties are those of `core/basics/cached.py`: before Python 3.12 functools' have a lock, for ever locked in
    a process that was forked while another thread computed one."""
    theirs = re.compile(r"from functools import [^\n]*\bcached_property\b|functools\.cached_property\(")
    found = [module_name(path) for path in sources() if theirs.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_the_network_in_numpy_is_a_model() -> None:
    """The engine does not know the network in NumPy: `load_model` opens it."""
    users = {arrow.source for arrow in all_arrows() if arrow.target.startswith("core.models.numpy_llama")}
    outside = {source for source in users if not source.startswith("core.models.numpy_llama")}
    assert outside == {"core.models.load"}


def test_adapters_do_not_know_each_other() -> None:
    """An adapter imports no other adapter but the server, which the clients in this process and the command line use;
    the command line starts vLLM, too, and ``python -m toolgrammar`` is the command line.

    What all of them share lies in packages with a leading underscore.
    """
    crossing = []
    for arrow in all_arrows():
        source, target = arrow.source.split("."), arrow.target.split(".")
        if source[0] != "adapters" or target[0] != "adapters" or len(source) < 2 or len(target) < 2:
            continue
        known = (source[1], *{"cli": ("server", "vllm"), "toolgrammar": ("cli",)}.get(source[1], ("server",)))
        if target[1] not in known and not target[1].startswith("_"):
            crossing.append(f"{arrow.source}:{arrow.line} imports {arrow.target}")
    assert crossing == []


def test_no_second_copy_of_a_module() -> None:
    """No module says ``import core``: at the repository root that would load a second copy of it."""
    found = []
    for path in sources():
        for node, _ in imports(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            level = 0 if isinstance(node, ast.Import) else node.level
            found += [
                f"{module_name(path)}:{node.lineno} {name}"
                for name in names
                if not level and name.split(".")[0] in (*FOLDERS, "tests")
            ]
    assert found == []


def test_every_package_has_an_init() -> None:
    """A folder with modules is a package with an ``__init__.py``: without one it would be missing from the wheel."""
    # A distribution is a package of its own.
    folders = {path.parent for path in sources() if path.parent.name != "distribution"}
    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_arrows_are_found() -> None:
    """The walk sees relative and absolute imports, those inside functions, and those for type checkers."""
    seen = {(arrow.source, arrow.target, arrow.typing_only) for arrow in all_arrows()}
    assert ("core.conversation.events", "core.conversation.messages", False) in seen  # relative
    assert ("tools.toolset", "core.grammar", False) in seen  # absolute, across wings
    assert ("core.generation.params", "core.grammar", True) in seen  # for type checkers
    assert ("core.models.load", "core.models.remote", False) in seen  # inside a function


@pytest.mark.timeout(600)
@pytest.mark.parametrize("package", FOLDERS)
def test_each_module_can_be_imported_first(package: str) -> None:
    """Every module that needs no optional package can be the first one imported, without a warning."""
    # The extra of an adapter has its name.
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.optional-dependencies]\n")[2]
    extras = re.findall(r"^([\w-]+) = \[", declared.partition("\n[")[0], re.MULTILINE)
    optional = tuple(f"adapters.{name.replace('-', '_')}" for name in extras)
    modules = [module_name(path) for path in sources() if path.relative_to(ROOT).parts[0] == package]
    modules = [f"toolgrammar.{name}" for name in modules if not name.startswith(optional) and "__main__" not in name]
    # One process, but each module is imported into a table without the modules of its package and later ones: circular
    # imports show, and what is before them need not be loaded again for each.
    here = tuple(f"toolgrammar.{each}" for each in FOLDERS[FOLDERS.index(package) :])
    program = (
        "import sys, importlib, warnings\n"
        f"for name in {modules!r}:\n"
        f"    for loaded in [m for m in sys.modules if m.startswith({here!r})]:\n"
        "        del sys.modules[loaded]\n"
        "    importlib.import_module(name)\n"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert result.returncode == 0, result.stderr
