"""The documentation is true: its code runs and prints what it says, its links lead somewhere, its tables are current."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import io
import json
import linecache
import re
import subprocess
import sys
import textwrap
import types
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.adapters.openai import http_client
from toolgrammar.core import Grammar, JsonMode
from toolgrammar.core.errors import MissingDependencyError
from toolgrammar.core.schema import every_problem
from toolgrammar.core.schema.scalars import formats
from toolgrammar.core.schema.scalars.bounded_formats import BOUNDED

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: The first line of a block that is compiled and not run, with the reason.
NOT_RUN = re.compile(r"# not run: \S")
#: The real model, which a page that names it needs.
REAL_MODEL = '"smollm2"'


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        line: number of its first line.
        language: the word after the fence.
        content: its text.
        output: the content of a ``text`` block that follows immediately, or None.
    """

    line: int
    language: str
    content: str
    output: str | None


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page; a python block followed by a text block prints that text."""
    text = page.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    result = []
    for match, after in zip(fences, [*fences[1:], None], strict=False):
        between = "" if after is None else text[match.end() : after.start()].replace("</div>", "").strip()
        follows = after is not None and after[1] == "text" and not between
        line = text.count("\n", 0, match.start()) + 2
        result.append(Block(line, match[1], match[2], after[2] if after is not None and follows else None))
    return result


def execute(name: str, block: Block, namespace: dict[str, Any]) -> str:
    """Run a block in a namespace and return its output. Tracebacks and `inspect` see the page's own lines."""
    source = "\n" * (block.line - 1) + block.content
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    code = compile(source, name, "exec")
    printed = io.StringIO()
    if not NOT_RUN.match(block.content):
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
    return printed.getvalue()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai")  # CrewAI reads its own deprecated fields
@pytest.mark.timeout(300)  # a real model on a busy machine
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The python blocks of a page run in order, as one program, and print the text blocks after them."""
    programs = [block for block in blocks(page) if block.language == "python"]
    if any(REAL_MODEL in block.content and not NOT_RUN.match(block.content) for block in programs):
        request.getfixturevalue("smollm2_file")
    module = types.ModuleType(f"page_{page.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # Pydantic looks annotations up there
    for block in programs:
        printed = execute(str(page), block, module.__dict__)
        if block.output is not None:
            assert printed == block.output, f"{page.name}:{block.line}"


@pytest.mark.parametrize("name", ["toolgrammar.core", "toolgrammar.tools"])
def test_example_of_a_package_runs(name: str) -> None:
    """The example in a package's docstring runs."""
    documentation = inspect.getdoc(importlib.import_module(name)) or ""
    example = re.search(r"::\n\n((?:    .*\n|\n)+)", documentation)
    assert example is not None
    execute(f"<{name}>", Block(1, "python", textwrap.dedent(example[1]), None), {"__name__": "example"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file of the repository."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_demo_prints_what_the_readme_shows(smollm2_file: Path) -> None:
    """``toolgrammar demo`` prints the README's block, all but the seconds."""
    shown = next(block for block in blocks(ROOT / "README.md") if block.content.startswith("model "))
    command = [sys.executable, "-c", "from toolgrammar.adapters.cli import main; main()", "demo"]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=100, check=True)

    def timeless(text: str) -> str:
        return re.sub(r"\d+\.\d+ s in all$", "... s", text.strip(), flags=re.MULTILINE)

    assert timeless(result.stdout) == timeless(shown.content)


def test_readme_commands_are_the_ones_that_ci_runs() -> None:
    """The README's two commands make and enter a virtual environment; ``.ci/run`` runs the second, word for word."""
    first, second = (block.content for block in blocks(ROOT / "README.md") if block.language == "bash")
    enter = "python3 -m venv {0} && . {0}/bin/activate && "  # outside of one, Debian's and Homebrew's pip refuse
    assert first == enter.format(".venv") + "pip install . && toolgrammar demo\n"
    install = "python -m pip install -U pip && .ci/develop && "
    assert second == enter.format(".ci/venv") + install + "python -m pytest -n logical --dist loadfile\n"
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").endswith("\n" + second)
    assert first in [block.content for block in blocks(ROOT / "docs" / "index.md") if block.language == "bash"]


def test_server_page_shows_what_the_server_answers(smollm2_file: Path) -> None:
    """The first screen of server.md: its curl, Python and JavaScript send one request, and the answer is the one shown."""
    page = blocks(ROOT / "docs" / "server.md")
    curl = next(block.content for block in page if block.content.startswith("curl"))
    request = json.loads(curl[curl.index("'{") + 1 : curl.rindex("}'") + 1])
    shown = json.loads(next(block.content for block in page if block.language == "json"))
    script = next(block.content for block in page if block.language == "js")
    literal = script[script.index("create({") + len("create(") : script.index(");\nconsole")]
    assert json.loads(re.sub(r",(\s*})", r"\1", re.sub(r"(\w+):", r'"\1":', literal))) == request
    with http_client({"small": "smollm2"}) as http:
        answer = http.post("http://server/v1/chat/completions", json=request).json()
        python = next(block.content for block in page if block.content.startswith("# not run: needs the server"))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(python.replace("OpenAI(base_url", "OpenAI(http_client=http, base_url"), {"http": http})
    (choice,) = answer["choices"]
    (call,) = choice["message"]["tool_calls"]
    (wanted,) = shown["choices"]
    assert choice["finish_reason"] == wanted["finish_reason"]
    assert call["function"] == wanted["message"]["tool_calls"][0]["function"]
    assert "get_weather" in printed.getvalue() and "Oslo" in printed.getvalue()


def test_changelog_knows_this_version() -> None:
    """The newest version in the changelog is the installed one."""
    newest = re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version("toolgrammar")


BEGIN, END = "<!-- the table below is written by the tests -->\n", "<!-- end of the table -->\n"


def test_support_table_is_what_the_library_does(request: pytest.FixtureRequest) -> None:
    """The table in ``docs/json-schema.md`` is the one that the tests make."""
    sys.path.insert(0, str(ROOT / "tests" / "core" / "schema"))
    try:
        import support_table
    finally:
        sys.path.pop(0)
    path = ROOT / "docs" / "json-schema.md"
    page = path.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if request.config.getoption("--write-ratchet"):
        support_table.write()
        path.write_text(before + BEGIN + support_table.table() + END + after, encoding="utf-8")
        page = path.read_text(encoding="utf-8")
    assert page == before + BEGIN + support_table.table() + END + after


def test_formats_are_the_ones_that_the_library_knows() -> None:
    """The page names every format that is enforced, narrowed or refused."""
    page = (ROOT / "docs" / "json-schema.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("Enforced: "))
    enforced, rest = row.split("Narrowed: ")
    narrowed, refused = rest.split("Refused: ")
    assert set(re.findall(r"`([a-z0-9-]+)`", narrowed)) == BOUNDED.keys()
    assert {name for name in formats.REFUSED if f"`{name}`" not in refused} == set()
    named = re.findall(r"`([a-z0-9-]+)`", enforced)
    assert formats.SPECIFIED - BOUNDED.keys() <= set(named)
    of_pydantic = {name for name in formats.ENFORCED - formats.SPECIFIED if not name.startswith("python-")}
    assert {name for name in of_pydantic if not re.fullmatch(r"uuid\d", name) and f"`{name}`" not in page} == set()
    assert [name for name in named if every_problem({"type": "string", "format": name})] == []
    assert [name for name in named if not Grammar.from_json_schema({"format": name}).matches('"~ %"')] == named


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("core.schema.normal.normalise", "MAX_BRANCHES"),
        ("core.schema.normal.normalise", "MAX_COMPOUNDS"),
        ("core.schema.normal.normalise", "MAX_STEPS"),
        ("core.schema.normal.normalise", "MAX_TOTAL"),
        ("core.schema.normal.unevaluated", "MAX_OPTIONS"),
        ("core.schema.scalars.numbers", "MAX_RESIDUES"),
        ("core.schema.keywords.strings", "MAX_LEAST_LENGTH"),
        ("core.schema.keywords.arrays", "MAX_LEAST_ITEMS"),
        ("core.schema.keywords.objects", "MAX_LEAST_PROPERTIES"),
        ("core.language.least_text", "MAX_LEAST_TEXT"),
        ("core.schema.keywords.shapes", "MAX_LOOSE"),
        ("core.schema.keywords.any_value", "MAX_DIFFERENT"),
        ("core.automaton.lazy_dfa", "MAX_TEXT"),
        ("core.schema.lower.merged_objects", "MAX_REGIONS"),
        ("core.schema.lower.merged_objects", "MAX_DEMANDS"),
        ("core.schema.lower.merged_objects", "MAX_WAYS"),
        ("core.schema.lower.object_witnesses", "MAX_MET"),
        ("core.schema.scalars.whitespace", "MAX_SPACES"),
        ("core.schema.scalars.whitespace", "MAX_INDENT"),
        ("core.schema.scalars.numbers", "MAX_DIGITS"),
        ("core.language.term_kinds", "MAX_TERMS"),
        ("core.automaton.completion.strings", "MAX_SEARCHED"),
        ("core.language.node_kinds", "MAX_NODES"),
        ("core.automaton.lazy_dfa", "SCARCE_NODES"),
        ("core.language.node_kinds", "SHARED_ROOM"),
        ("core.automaton.states", "MAX_THREADS"),
        ("core.regex.assertions", "MAX_PASTS"),
        ("core.regex.equations", "MAX_STATES"),
        ("core.regex.parser", "MAX_NESTING"),
        ("core.regex.parser", "MAX_REPEAT"),
        ("core.regex.parser", "MAX_SIZE"),
        ("core.generation.reasoning", "DEFAULT_BUDGET"),
        ("core.models.decisions", "MAX_QUESTIONS"),
        ("core.models.decisions", "MAX_LABELS"),
        ("core.models.decisions", "MAX_LEVELS"),
        ("core.models.decisions", "MAX_ORDERS"),
        ("core.models.images", "LARGEST_FILE"),
        ("core.models.images", "MOST_PIXELS"),
        ("core.models.images", "MOST_OF_ALL"),
        ("core.conversation.messages", "MOST_PAGE_PIXELS"),
        ("core.models.llama_cpp.backend", "DEFAULT_WINDOW"),
        ("core.models.remote.asking", "DEFAULT_WINDOW"),
        ("core.models.remote.transport", "MAX_BODY"),
        ("core.vocabulary.disk_cache", "MAX_FILES"),
        ("core.validation", "MAX_SECONDS"),
        ("core.validation", "PATTERN_SECONDS"),
        ("core.schema.lower.arrays", "MAX_SPECIAL"),
        ("core.schema.lower.arrays", "MAX_AWAITED"),
        ("core.schema.keywords.values", "MAX_DEPTH"),
        ("core.schema.lower.values", "MAX_STEPS"),
        ("core.vocabulary.vocabulary", "MAX_TOKEN_BYTES"),
        ("tools.dialects", "MAX_DEPTH"),
        ("tools.call_grammars", "MAX_CALL_GRAMMARS"),
        ("core.grammar.rules", "MAX_RULES"),
        ("core.export.rules", "MAX_RULES"),
        ("core.export.rules", "MAX_STATES"),
        ("core.export.writers", "MAX_PATTERN"),
        ("tools.typescript.source", "MAX_SECONDS"),
        ("tools.typescript.algebra", "MAX_TYPE_DEPTH"),
        ("tools.typescript.algebra", "MAX_TYPE_ALTERNATIVES"),
        ("tools.typescript.types", "MAX_TYPE_INSTANCES"),
        ("tools.toolset", "MAX_CALLS"),
        ("tools.tool", "MAX_NAME_LENGTH"),
    ],
)
def test_limits_are_the_constants_of_the_library(module: str, name: str) -> None:
    """``docs/limits.md`` shows the value of each limit, in a row of its module."""
    page = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if f"`{module.replace('.', '/')}.py`" in line]
    value = getattr(importlib.import_module(f"toolgrammar.{module}"), name)
    assert [row for row in rows if re.search(rf"(?<![\d,]){value:,}(?!,?\d)", row)] != []


def test_fields_of_json_mode() -> None:
    """``docs/json-mode.md`` has a row for each field of `JsonMode`, and for nothing else."""
    page = (ROOT / "docs" / "json-mode.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == {each.name for each in fields(JsonMode)}


def test_architecture_names_every_package() -> None:
    """``docs/architecture.md`` describes every package of core."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = [path.parent.name for path in (ROOT / "core").glob("*/__init__.py")]
    assert [name for name in packages if f"core/{name}/" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page: Path) -> None:
    """Every file and folder of the repository that a page names in backquotes exists."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    paths = re.findall(
        r"`((?:core|tools|adapters|tests|docs|benchmarks|examples|\.ci)/(?:[\w./-]*(?:\.\w+|/))?)`", text
    )
    assert [path for path in paths if not (ROOT / path).exists()] == []
    modules = {path.name for folder in ("core", "tools", "adapters", "tests") for path in (ROOT / folder).rglob("*.py")}
    names = re.findall(r"`(\w+\.py)`", text)
    assert [name for name in names if name not in modules and not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_objects_exist(page: Path) -> None:
    """Every dotted name of the library that a page has in backquotes can be imported."""
    for name in re.findall(r"`(toolgrammar\.(?:core|tools|adapters)(?:\.\w+)*)`", page.read_text(encoding="utf-8")):
        module, _, attribute = name.rpartition(".")
        try:
            assert importlib.util.find_spec(module) is not None, name
            assert hasattr(importlib.import_module(module), attribute) or importlib.util.find_spec(name), name
        except MissingDependencyError:  # of an adapter whose framework is not installed
            package = ROOT / "adapters" / module.split(".")[2] / "__init__.py"
            assert f'"{attribute}"' in package.read_text(encoding="utf-8"), name


def test_modules_have_docstrings() -> None:
    """Every module of the library has a docstring."""
    silent = [
        str(path.relative_to(ROOT))
        for folder in ("core", "tools", "adapters")
        for path in (ROOT / folder).rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []
