"""The commands ``check``, ``sample`` and ``match``: outputs, places, pages and exit codes."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from toolgrammar.adapters.cli import app
from toolgrammar.core import Grammar
from toolgrammar.core.generation import Match
from toolgrammar.core.grammar.sampling import random_text

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "maxLength": 12},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "array", "items": {"$ref": "#/$defs/day"}, "minItems": 1, "maxItems": 3},
        "host": {"type": "string", "format": "hostname"},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
    "$defs": {"day": {"type": "integer", "minimum": 1, "maximum": 31}},
}

MODULE = '''
from pydantic import BaseModel

class Order(BaseModel):
    """An order."""
    number: int

class Shelf:
    rules = {"enum": ["a", "b"]}

def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b

TEXT = '{"const": 1}'
BROKEN = '{"const": 1'
'''


def invoke(*arguments: str, text: str | None = None) -> tuple[int, str, str]:
    """Run a command; return the exit code, the output and the complaints."""
    result = CliRunner().invoke(app, list(arguments), input=text, env={"NO_COLOR": "1"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with the schema, over several lines."""
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA, indent=2), encoding="utf-8")
    return str(file)


def test_samples_are_valid_and_seeded(path: str) -> None:
    """Each line is valid under the schema by the jsonschema library; equal seeds draw equally, others differ."""
    code, out, _ = invoke("sample", path, "-n", "20", "--seed", "4")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 20
    for line in lines:
        jsonschema.validate(json.loads(line), SCHEMA)
    assert len(set(lines)) > 10
    assert any("days" in line for line in lines)
    assert json.loads(invoke("sample", path, "-n", "20", "--seed", "4", "--json")[1])["samples"] == lines
    assert invoke("sample", path, "--seed", "5")[1] != invoke("sample", path, "--seed", "4")[1]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}},
        {"type": "string", "pattern": "^é+$"},
        {"type": "number"},
        True,
    ],
    ids=["string", "recursive", "characters-of-two-bytes", "number", "anything"],
)
def test_every_sample_ends_and_matches(schema: Any) -> None:
    """Samples of languages without a longest text end soon after the length that is asked for, and match."""
    grammar = Grammar.from_json_schema(schema)
    source = random.Random(1)
    for _ in range(20):
        text = random_text(grammar, source, 30)
        assert grammar.matches(text)
        assert len(text.encode()) < 400


def test_check_names_line_and_column(path: str) -> None:
    """A finding has the line and the column at which its keyword's value stands in the file."""
    code, out, _ = invoke("check", path, "--json")
    report = json.loads(out)
    assert code == 0 and report["verdict"] == "narrowed" and len(report["samples"]) == 5
    (finding,) = report["narrowed"]
    line = Path(path).read_text(encoding="utf-8").splitlines()[finding["line"] - 1]
    assert line[finding["column"] - 1 :].startswith('"hostname"')
    assert f"line {finding['line']}, column {finding['column']}: /properties/host format" in invoke("check", path)[1]


def test_schemas_of_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``module:object`` takes Pydantic classes, functions, dicts and JSON texts of a module of the working directory."""
    (tmp_path / "shop_of_tests.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert json.loads(invoke("sample", "shop_of_tests:Order", "-n", "1")[1]).keys() == {"number"}
    assert invoke("sample", "shop_of_tests:Shelf.rules", "-n", "1")[1] in ('"a"\n', '"b"\n')
    assert "a" in json.loads(invoke("sample", "shop_of_tests:add", "-n", "1")[1])
    assert invoke("sample", "shop_of_tests:TEXT", "-n", "1")[1] == "1\n"
    (tmp_path / "broken_shop_of_tests.py").write_text("raise KeyError('closed')", encoding="utf-8")
    for name in ("shop_of_tests:Nothing", "no_such_module:x", "broken_shop_of_tests:x", "shop_of_tests:BROKEN"):
        code, out, err = invoke("check", name)
        assert code == 2 and out == "" and "Traceback" not in err and name.partition(":")[0] in err


def test_a_member_named_twice_ends_the_command(tmp_path: Path) -> None:
    """A schema in which an object has two members of one name is refused, as a reader would drop one of them."""
    (tmp_path / "twice.json").write_text('{"properties": {"a": {"minLength": 1, "minLength": 2}}}', encoding="utf-8")
    code, out, err = invoke("check", str(tmp_path / "twice.json"))
    assert code == 2 and out == "" and "two members 'minLength'" in err


@pytest.mark.parametrize(
    ("text", "size", "expected", "pointer"),
    [
        ('{"city": "Oslo", "unit": "kelvin"}', 26, '`celsius"` or `fahrenheit"`', "/unit"),
        ('{"town"', 2, '`city": "`', ""),
        ('{"city": "Oslo"}', 15, "`, ", ""),
        ('{"city": "O', 11, "any character but", "/city"),
        ('{"city": "Oslo", "unit": "celsius", "days": [32', 46, "", "/days/0"),
        ("", 0, "{", ""),
    ],
)
def test_match_says_how_far_and_what_was_expected(text: str, size: int, expected: str, pointer: str) -> None:
    """The length is that of the longest beginning of a text of the grammar, by trial of each; words and place go with it."""
    grammar = Grammar.from_json_schema(SCHEMA)
    found = Match.of(grammar, text)
    assert not found.matches
    assert found.size == size == max(end for end in range(len(text) + 1) if grammar.begins(text[:end]))
    assert expected in found.expected
    assert found.pointer == pointer


def test_match_exit_codes_and_output(path: str, tmp_path: Path) -> None:
    """0 for a text that matches, 1 for another, 2 for a wrong request; JSON has the same facts."""
    good = '{"city": "Oslo", "unit": "celsius"}'
    assert invoke("match", path, good)[:2] == (0, "matches\n")
    assert invoke("match", path, "-", text=good + "\n")[0] == 0
    assert invoke("match", path, text=good + "\n")[0] == 0
    (tmp_path / "text.json").write_text(json.dumps(json.loads(good), indent=2), encoding="utf-8")
    assert invoke("match", path, "--file", str(tmp_path / "text.json"))[0] == 0
    assert invoke("match", path, "--file", str(tmp_path / "text.json"), "--whitespace", "compact")[0] == 1
    code, out, _ = invoke("match", path, '{"city": "Oslo",\n "unit": "kelvin"}')
    assert code == 1
    assert "line 2, column 11" in out and '`celsius"`' in out and "/unit" in out and "'kelvin' is not one of" in out
    report = json.loads(invoke("match", path, '{"city": "Oslo",\n "unit": "kelvin"}', "--json")[1])
    assert (report["line"], report["column"], report["matches"], report["is_valid_json"]) == (2, 11, False, False)
    for wrong in (
        ("match", path),
        ("match", path, good, "--file", "x"),
        ("match", "-", "-"),
        ("match", path, good, "--order=x"),
    ):
        code, out, err = invoke(*wrong)
        assert code == 2 and out == "" and err.startswith("error")


def test_match_tells_order_from_validity(path: str) -> None:
    """A value that is valid, with its members in another order, is said to be valid, and with which option it matches."""
    text = '{"unit": "celsius", "city": "Oslo"}'
    code, out, _ = invoke("match", path, text)
    assert code == 1 and "valid under the schema" in out and "It matches with --order any." in out
    assert json.loads(invoke("match", path, text, "--json")[1])["matches_with"] == {"order": "any"}
    out = invoke("match", path, text.replace(" ", ""), "--whitespace", "single")[1]
    assert "It matches with --order any --whitespace flexible." in out
    assert invoke("match", path, text, "--order=any")[0] == 0


MISTAKEN = """{
  "type": "object",
  "properties": {
    "city": {"type": "string", "minLenght": 3},
    "mail": {"type": "string", "format": "emial"},
    "bad": {"type": "integer", "minimum": 10, "maximum": 5},
    "none": {"enum": []},
    "note": {"type": "string", "remark": 3}
  }
}"""


def test_check_names_probable_mistakes(tmp_path: Path) -> None:
    """Misspelt keywords and formats, and members that can never be written, are warnings at their lines, not exact."""
    file = tmp_path / "schema.json"
    file.write_text(MISTAKEN, encoding="utf-8")
    code, out, _ = invoke("check", str(file), "--json")
    report = json.loads(out)
    assert code == 0 and report["verdict"] == "doubtful"
    assert [(finding["line"], finding["code"]) for finding in report["warnings"]] == [
        (6, "unsatisfiable_schema"), (7, "unsatisfiable_schema"), (4, "unread_keyword"), (5, "unread_format"),
    ]  # fmt: skip
    assert [finding["keyword"] for finding in report["annotations"]] == ["remark"]
    out = invoke("check", str(file))[1]
    assert "exactly" not in out and "did you mean 'email'?" in out and "constrain nothing: remark" in out
    html = tmp_path / "out.html"
    invoke("check", str(file), "--html", str(html))
    page = html.read_text(encoding="utf-8")
    assert '<p class="fair">' in page and '<p class="hint">did you mean &#x27;minLength&#x27;?</p>' in page


def test_samples_show_the_schema(tmp_path: Path) -> None:
    """Most optional members are in the random outputs, nothing is invented, and what has no value is left out."""
    file = tmp_path / "schema.json"
    file.write_text(MISTAKEN, encoding="utf-8")
    samples = [json.loads(line) for line in invoke("sample", str(file), "-n", "20")[1].splitlines()]
    assert all(sample.keys() <= {"city", "mail", "note"} for sample in samples)
    assert sum(map(len, samples)) > 20 * 3 * 0.6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1,\n "b": [1,2,],\n}', ("line 2, column 12", '\n     "b": [1,2,],\n', "^\n", "remove the comma")),
        ("{'a': 1}", ("double quotes",)),
        ('{"a": True}', ("true, false and null",)),
        ("type: object\nproperties:\n", ("Expecting value", "YAML")),
        ("{\n", ("line 2, column 1",)),
        ('{"a": "\u2028" 1}', ("line 1, column 11", '" 1}\n')),
    ],
)
def test_broken_json_is_shown(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    """A file that is not JSON is refused with its line, a caret under the mistake, and the usual cause."""
    file = tmp_path / "schema.json"
    file.write_text(text, encoding="utf-8")
    code, out, err = invoke("check", str(file))
    assert code == 2 and out == "" and all(word in err for word in words), err


def test_files_of_other_kinds(tmp_path: Path) -> None:
    """A byte order mark is skipped; a file of Python is refused with the form that names an object in it."""
    file = tmp_path / "schema.json"
    file.write_text('{"type": "null"}', encoding="utf-8-sig")
    assert invoke("check", str(file))[0] == 0 and invoke("match", str(file), "null")[0] == 0
    (tmp_path / "shop.py").write_text(MODULE, encoding="utf-8")
    code, _, err = invoke("sample", str(tmp_path / "shop.py"))
    assert code == 2 and "shop:NAME" in err


def test_a_function_is_read_as_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arguments of a function take no other members, as in a tool set."""
    (tmp_path / "closed_shop_of_tests.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert invoke("match", "closed_shop_of_tests:add", '{"a": 1, "b": 2}')[0] == 0
    assert invoke("match", "closed_shop_of_tests:add", '{"a": 1, "c": 2}')[0] == 1


HOSTILE = "</code></script><img src=x onerror=alert(1)>&\"'\x01\ud800"


def test_check_page_escapes_and_holds_all(tmp_path: Path) -> None:
    """The page has findings, outputs and the schema; names of the schema stay text."""
    file = tmp_path / "schema.json"
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], HOSTILE: {"const": HOSTILE}}}  # type: ignore[dict-item]
    file.write_text(json.dumps(schema, indent=2), encoding="utf-8")
    html = tmp_path / "out.html"
    code, out, _ = invoke("check", str(file), "--html", str(html))
    assert code == 0 and str(html) in out
    page = html.read_text(encoding="utf-8")
    assert "<img" not in page and "hostname" in page and page.count("<pre>") == 5
    assert "<mark>&quot;hostname&quot;</mark>" in page


@pytest.mark.parametrize("width", [1280, 500])
def test_check_page_in_a_browser(open_page: Callable[..., Any], tmp_path: Path, path: str, width: int) -> None:
    """The page opens without complaint, and is no wider than the screen."""
    html = tmp_path / "out.html"
    invoke("check", path, "--html", str(html))
    script = "document.title = 'overflow ' + (document.documentElement.scrollWidth > innerWidth)"
    opened = open_page(html.read_text(encoding="utf-8"), script, width)
    assert opened.complaints == []
    assert "<title>overflow false</title>" in opened.document


def test_pipes_have_no_colour(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written into a pipe has no escape sequence, also without NO_COLOR."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    for arguments in (["check", path], ["match", path, "{"], ["--help"], ["check", "--help"]):
        result = CliRunner().invoke(app, arguments)
        assert not re.search("\x1b\\[", result.stdout + result.stderr)


@pytest.fixture
def grammars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one grammar in every form."""
    monkeypatch.chdir(tmp_path)
    sums = 'root ::= root "+" [0-9] | [0-9]'
    (tmp_path / "sums.gbnf").write_text(sums)
    (tmp_path / "sums.ebnf").write_text(sums)
    (tmp_path / "sums.lark").write_text('start: start "+" /[0-9]/ | /[0-9]/')
    (tmp_path / "sums.json").write_text(Grammar.from_gbnf(sums).dumps())
    (tmp_path / "rules.json").write_text(json.dumps({"syntax": "gbnf", "definition": sums}))
    (tmp_path / "sum_module.py").write_text(f"from toolgrammar.core import Grammar\nsums = Grammar.from_gbnf({sums!r})")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["sums.gbnf", "sums.ebnf", "sums.lark", "sums.json", "rules.json", "sum_module:sums", "-"]
)
def test_grammars(grammars: Path, name: str) -> None:
    """A grammar stands wherever a schema may: as text, as data, as an object of a module, on standard input."""
    given = (grammars / "sums.gbnf").read_text() if name == "-" else None
    code, output, _ = invoke("check", name, "--html", "page.html", text=given)
    assert code == 0 and "every rule can be enforced exactly" in output
    assert "<h2>The grammar</h2>" in Path("page.html").read_text()
    code, output, _ = invoke("sample", name, "-n", "3", text=given)
    assert code == 0 and all(re.fullmatch(r"[0-9](\+[0-9])*", line) for line in output.splitlines())
    if given is None:
        assert invoke("match", name, "1+2")[0] == 0
        code, output, _ = invoke("match", name, "1+x")
        assert code == 1 and "line 1, column 3" in output and "a digit" in output
        code, output, _ = invoke("repair", name, "1+2 ")
        assert code == 0 and output == "1+2\n"


def test_grammars_that_cannot_be_read(grammars: Path) -> None:
    """A broken grammar is refused with line and column; what needs a schema says so."""
    (grammars / "broken.lark").write_text('start: a\na: "x" )')
    code, output, _ = invoke("check", "broken.lark", "--json")
    (problem,) = json.loads(output)["problems"]
    assert code == 1 and (problem["line"], problem["column"]) == (2, 8) and "end of the line" in problem["message"]
    code, _, complaint = invoke("repair", "sums.gbnf", "x", "--format", "hermes")
    assert code == 2 and "sums.gbnf is a grammar, but --format needs tools or a JSON Schema" in complaint


def test_check_of_tools(tmp_path: Path) -> None:
    """Of a set each tool is told, with what is never given together, and the tools that look the same."""
    ids = {name: {"type": "string"} for name in ("id", "name")}
    either = {"type": "object", "properties": ids, "oneOf": [{"required": ["id"]}, {"required": ["name"]}]}
    never = {"type": "object", "properties": {**ids, "x": {"type": "integer", "minimum": 2, "maximum": 1}}}
    tools = [
        {"name": "find", "description": "Find it.", "inputSchema": either},
        {"name": "seek", "description": "Find it.", "inputSchema": either},
        {"name": "drop", "inputSchema": never},
    ]
    (tmp_path / "tools.json").write_text(json.dumps({"tools": tools}), encoding="utf-8")
    code, output, _ = invoke("check", str(tmp_path / "tools.json"))
    assert code == 0
    assert "/properties/id: is never given together with name [excluded_parameters]" in output
    assert "warning: takes the same calls as 'find'" in output
    assert "/properties/x: warning: this can never be written" in output
    assert "3 checked" in output
    told = {
        each["tool"]: each for each in json.loads(invoke("check", str(tmp_path / "tools.json"), "--json")[1])["tools"]
    }
    assert [told[name]["verdict"] for name in ("find", "seek", "drop")] == ["exact", "doubtful", "doubtful"]
    assert [each["code"] for each in told["find"]["notes"]] == ["excluded_parameters"]
    assert [each["code"] for each in told["seek"]["warnings"]] == ["alike_tools"]
    tools[2]["inputSchema"] = {"type": "object", "properties": {"x": {"type": "text-ish"}}}
    (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    code, output, _ = invoke("check", str(tmp_path / "tools.json"))
    assert code == 1
    assert "drop: cannot be enforced" in output
    assert invoke("check", str(tmp_path / "tools.json"), "--html", str(tmp_path / "page.html"))[0] == 2
    (tmp_path / "tools.ts").write_text("export declare function f(a: string): void;\n", encoding="utf-8")
    assert "1 checked" in invoke("check", str(tmp_path / "tools.ts"))[1]
