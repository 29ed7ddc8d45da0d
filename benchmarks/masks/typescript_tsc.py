"""Does our reading of TypeScript agree with TypeScript's own compiler?

    python -m benchmarks masks/typescript_tsc [--typescript 5.9.3] [--tsc path/to/tsc] [--bfcl DATA]

For every type of ``typescript_corpus.txt`` (of the tests), random JSON values of its schema and changes of these
are made. Each becomes a constant of the declared type in a TypeScript file, and the verdict of ``tsc --strict`` is
compared with that of the ``jsonschema`` library under our schema, read closed as tool calls are. Tags are left out on
both sides: the compiler does not read them. Where JSON and TypeScript differ on purpose, the reason is one of
`EXPECTED`; any other difference makes the exit code 1.

Then everything that `tools_to_typescript` and `schema_to_typescript` print (of the corpus, and of the functions of BFCL
if given) must compile.

Needs node. Without ``--tsc`` the npm package ``typescript`` is installed into a temporary folder.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema

from toolgrammar.core import Grammar
from toolgrammar.core.grammar import edits, random_text
from toolgrammar.tools import ToolSet, close_objects, schema_from_typescript, schema_to_typescript, tools_to_typescript

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "tools" / "typescript" / "typescript_corpus.txt"
STRANGE: list[Any] = [None, True, 0, -1.5, "", "zzz", [], ["zzz"], {}, {"zzz": 1}]
COUNT = 40

#: Where the verdicts differ on purpose: (what the case's text holds, whether the compiler is the laxer one, why).
EXPECTED: list[tuple[str, bool, str]] = [
    (r"\bobject\b", True, "`object` is a JSON object here; TypeScript's holds arrays too"),
    (r"interface T \{\}|\{\s*\}", True, "an empty object type takes no properties here; TypeScript's takes nearly all"),
    (r"\benum\b", False, "TypeScript's string enums are nominal: their JSON values are no members to the compiler"),
    (r"\bundefined\b", False, "a property that may be `undefined` may be left out here: JSON has no `undefined`"),
    (r"\bclass T\b", False, "methods, accessors and private fields of a class are left out here: its JSON has none"),
    (r"index: number", True, "arrays and strings have numbers for keys in TypeScript; here it is an object's keys"),
    (r"\|", True, "a value may have the properties of several members of a union for the compiler; here, of one"),
    (r"\$\{", True, "`${number}` is a number as JSON spells it here; TypeScript's is whatever Number() reads"),
    (r"index: number", True, "a number in a key has at most 15 digits and no exponent here"),
]


def corpus() -> Iterator[tuple[str, str]]:
    """Names and texts of the types of the corpus."""
    for part in re.split(r"^=== ", CORPUS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        if not name.startswith("tool: "):
            yield name, re.sub(r"/\*.*?\*/", "", rest.split("\n---\n")[0], flags=re.DOTALL)


def instances(schema: Any, rng: random.Random) -> list[Any]:
    """Values around a schema, all different: random ones that follow it, and changes of these."""
    found = {json.dumps(value): value for value in STRANGE}
    grammar = Grammar.from_json_schema(close_objects(schema))
    for _ in range(COUNT):
        value = json.loads(random_text(grammar, rng, 60))
        near = list(islice(edits(value), 2_000))
        for each in (value, *(change[-1] for change in rng.sample(near, min(2, len(near))))):
            found.setdefault(json.dumps(each, sort_keys=True), each)
    return list(found.values())


def compile_all(tsc: str, folder: Path, files: dict[str, str]) -> dict[str, set[int]]:
    """The lines of each file about which the compiler complains."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [tsc, "--noEmit", "--strict", "--pretty", "false", "--target", "es2022", *files]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200, check=False)
    errors: dict[str, set[int]] = {name: set() for name in files}
    for line in (result.stdout + result.stderr).splitlines():
        if match := re.match(r"(\S+?)\((\d+),\d+\): error", line):
            errors[match[1]].add(int(match[2]))
        elif line.startswith("error"):
            raise RuntimeError(line)
    return errors


def literal(value: Any) -> str:
    """A value as a TypeScript expression on one line."""
    return json.dumps(value).replace('"__proto__"', '["__proto__"]')


def compare(tsc: str, folder: Path, seed: int) -> tuple[Counter[str], list[str]]:
    """Verdicts on the instances of every case: counts, and the differences that nobody expects."""
    files: dict[str, str] = {}
    cases = []
    for index, (name, text) in enumerate(corpus()):
        schema = schema_from_typescript(text, "T")
        values = instances(schema, random.Random(f"{seed} {name}"))
        head = text.rstrip("\n") + "\nexport {};\n"
        files[f"case{index}.ts"] = head + "".join(f"const v{i}: T = {literal(v)};\n" for i, v in enumerate(values))
        cases.append((f"case{index}.ts", name, text, schema, values, head.count("\n") + 1))
    errors = compile_all(tsc, folder, files)
    counts: Counter[str] = Counter()
    surprises = []
    for file, name, text, schema, values, first in cases:
        if any(line < first for line in errors[file]):
            surprises.append(f"{name}: the declarations do not compile")
            continue
        validator = jsonschema.Draft202012Validator(close_objects(schema))
        for index, value in enumerate(values):
            ours, theirs = validator.is_valid(value), first + index not in errors[file]
            if ours == theirs:
                counts["both valid" if ours else "both invalid"] += 1
                continue
            reason = next((why for what, laxer, why in EXPECTED if laxer == theirs and re.search(what, text)), None)
            counts["expected: " + reason if reason else "unexpected"] += 1
            if reason is None:
                verdict = "accepted by tsc only" if theirs else "accepted by us only"
                surprises.append(f"{name}: {verdict}: {json.dumps(value)[:200]}")
    return counts, surprises


def printed(tsc: str, folder: Path, bfcl: Path | None) -> tuple[int, list[str]]:
    """How many printed texts there are, and those that do not compile."""
    files = {}
    for index, (_, text) in enumerate(corpus()):
        files[f"printed{index}.ts"] = schema_to_typescript(schema_from_typescript(text, "T")) + "export {};\n"
    if bfcl is not None:
        with gzip.open(bfcl, "rt", encoding="utf-8") as lines:
            for index, line in enumerate(lines):
                tools = ToolSet.from_any(json.loads(line)["functions"])
                files[f"tools{index}.ts"] = tools_to_typescript(tools) + "export {};\n"
    errors = compile_all(tsc, folder, files)
    wrong = [f"{name}:{line}: {files[name].splitlines()[line - 1]}" for name in files for line in errors[name]]
    return len(files), wrong


def main(typescript: str = "5.9.3", tsc: str = "", bfcl: Path | None = None, seed: int = 0) -> int:
    """Run both checks and print what they say.

    Args:
        typescript: version of the npm package
        tsc: a compiler that is installed
        bfcl: the functions of BFCL, printed and compiled too
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not tsc:
            command = ["npm", "install", "--silent", "--prefix", name, f"typescript@{typescript}"]
            subprocess.run(command, check=True)
            tsc = str(folder / "node_modules" / ".bin" / "tsc")
        version = subprocess.run([tsc, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        counts, surprises = compare(tsc, folder, seed)
        total, wrong = printed(tsc, folder, bfcl)
    print(f"tsc {version.removeprefix('Version ')}, {sum(counts.values())} values of {len(list(corpus()))} types")
    for what, count in counts.most_common():
        print(f"{count:6}  {what}")
    print(f"{total:6}  printed texts, {len(wrong)} lines that do not compile")
    for line in [*surprises, *wrong][:50]:
        print(line)
    return 1 if surprises or wrong else 0
