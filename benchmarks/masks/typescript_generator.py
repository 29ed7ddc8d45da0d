"""Do we read the declarations that ts-json-schema-generator reads, and do both schemas admit the same values?

    npm install --prefix FOLDER ts-json-schema-generator typescript
    python -m benchmarks masks/typescript_generator --modules FOLDER/node_modules [--show 20] DECLARATIONS...

``DECLARATIONS`` are folders or files of TypeScript. Every interface, class, enum and type alias at the top level of
each file is given to ts-json-schema-generator and to `schema_from_typescript`; generic ones are left out, since neither
has arguments for them. The other files of the same folder can be imported. Where both read a declaration, JSON values
are made up around both schemas, and their verdicts are compared (both closed, formats not checked).

Declarations that we refuse because JSON has no values for them (functions, promises, dates, regular expressions) count
as not read; how many these are is told apart, since the generator writes a string for a date and anything for a
function.

Where the verdicts differ, TypeScript's own checker is asked whether the value may be given to a constant of that type;
the last figure counts the verdicts in which neither the generator nor the checker is with us. With ``--third`` every
value is put to the checker, and those where it is against both schemas are listed too. Needs node.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema

from benchmarks.masks.typescript_tsc import STRANGE, instances, literal
from toolgrammar.core import ToolGrammarError, UnsupportedSchemaError
from toolgrammar.tools import close_objects, schema_from_typescript, tools_from_typescript

#: Reads a list of files from its input; writes a line of JSON for each declaration.
GENERATOR = r"""
const ts = require("typescript"), g = require("ts-json-schema-generator"), fs = require("fs");
const config = { ...g.DEFAULT_CONFIG, expose: "all", skipTypeCheck: true };
const options = { noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS, strict: true,
  moduleResolution: ts.ModuleResolutionKind.Node10, types: [], skipLibCheck: true };
const host = ts.createCompilerHost(options), plain = host.getSourceFile.bind(host), known = new Map();
host.getSourceFile = (name, ...rest) => {
  if (!/typescript.lib.lib\./.test(name)) return plain(name, ...rest);
  if (!known.has(name)) known.set(name, plain(name, ...rest));
  return known.get(name);
};
for (const file of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const program = ts.createProgram([file], options, host), source = program.getSourceFile(file);
  const seen = new Set();
  for (const node of source.statements) {
    const isType = ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node) || ts.isEnumDeclaration(node)
      || ts.isTypeAliasDeclaration(node);
    if (!isType || !node.name || seen.has(node.name.text)) continue;
    if ((node.typeParameters ?? []).some((parameter) => !parameter.default)) continue;
    seen.add(node.name.text);
    const line = { file, name: node.name.text };
    try {
      const parser = g.createParser(program, config), formatter = g.createFormatter(config);
      const generator = new g.SchemaGenerator(program, parser, formatter, config);
      line.schema = generator.createSchemaFromNodes([node]);
      if (!line.schema.$ref && line.schema.definitions[line.name]) line.schema.$ref = `#/definitions/${line.name}`;
    } catch (error) { line.error = String(error.message).split("\n")[0]; }
    console.log(JSON.stringify(line));
  }
}
"""
#: Reads lists of a file, a type's name and values as expressions; writes whether the checker takes each of them.
JUDGE = r"""
const ts = require("typescript"), fs = require("fs");
const options = { noEmit: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS, strict: true,
  moduleResolution: ts.ModuleResolutionKind.Node10, types: [], skipLibCheck: true };
const host = ts.createCompilerHost(options), plain = host.getSourceFile.bind(host), known = new Map();
let asked = "", text = "";
host.getSourceFile = (name, ...rest) => {
  if (name === asked) return ts.createSourceFile(name, text, options.target, true);
  if (!known.has(name)) known.set(name, plain(name, ...rest));
  return known.get(name);
};
for (const [file, name, values] of JSON.parse(fs.readFileSync(0, "utf8"))) {
  // The checker reads no values in declaration files.
  asked = file.replace(/\.d\.ts$/, ".checked.ts"), text = fs.readFileSync(file, "utf8") + "\n";
  const first = text.split("\n").length - 1;
  text += values.map((value, index) => `const toolgrammar${index}: ${name} = ${value};\n`).join("");
  const program = ts.createProgram([asked], options, host), source = program.getSourceFile(asked);
  const wrong = new Set(program.getSemanticDiagnostics(source).concat(program.getSyntacticDiagnostics(source))
    .map((error) => source.getLineAndCharacterOfPosition(error.start).line - first));
  console.log(JSON.stringify(values.map((_, index) => !wrong.has(index))));
}
"""
WORDS = {"definitions": "$defs"}
#: Refusals of what JSON has no values for: functions, promises, dates, symbols. The generator writes something else.
NO_JSON = re.compile("JSON has no values|is no JSON value")


def generated(modules: Path, files: list[Path]) -> Iterator[dict[str, Any]]:
    """What ts-json-schema-generator says of each declaration of some files."""
    yield from in_node(modules, GENERATOR, [str(path.resolve()) for path in files])


def judged(modules: Path, questions: list[tuple[str, str, list[Any]]]) -> list[list[bool]]:
    """Whether TypeScript's checker takes values as constants of a type: a file, the type's name, the values."""
    asked = [(file, name, [literal(value) for value in values]) for file, name, values in questions]
    return list(in_node(modules, JUDGE, asked)) if asked else []


def in_node(modules: Path, script: str, given: Any) -> Iterator[Any]:
    """The lines of JSON that a script writes."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "script.cjs"
        path.write_text(script, encoding="utf-8")
        result = subprocess.run(
            ["node", str(path)],
            input=json.dumps(given),
            env={**os.environ, "NODE_PATH": str(modules.resolve())},
            stdout=subprocess.PIPE,
            text=True,
            timeout=3600,
            check=True,
        )
    yield from map(json.loads, result.stdout.splitlines())


def modern(schema: Any) -> Any:
    """A schema of draft 7 in the words of 2020-12."""
    if isinstance(schema, list):
        return [modern(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "definitions", "patternProperties"):
            result[WORDS.get(key, key)] = {name: modern(sub) for name, sub in value.items()}
        elif key in ("const", "enum", "default", "examples", "required"):
            result[key] = value
        elif key == "$ref":
            result[key] = unquote(value).replace("#/definitions/", "#/$defs/")
        elif key == "items" and isinstance(value, list):
            result["prefixItems"] = modern(value)
        elif key == "additionalItems":
            result["items"] = modern(value)
        elif key != "$schema":
            result[key] = modern(value)
    return result


def resolvable(schema: Any) -> Any:
    """A schema whose references a validator finds: names of definitions hold slashes, quotes, anything."""
    names = {name: f"d{index}" for index, name in enumerate(schema.get("$defs", ()))}

    def renamed(part: Any) -> Any:
        if isinstance(part, list):
            return [renamed(item) for item in part]
        if not isinstance(part, dict):
            return part
        if isinstance(part.get("$ref"), str):
            part = {**part, "$ref": "#/$defs/" + names[part["$ref"].removeprefix("#/$defs/")]}
        return {key: value if key in ("const", "enum") else renamed(value) for key, value in part.items()}

    result = {key: renamed(value) for key, value in schema.items() if key != "$defs"}
    return {**renamed(result), "$defs": {names[name]: renamed(sub) for name, sub in schema.get("$defs", {}).items()}}


def texts_in(top: Path) -> dict[str, str]:
    """The files of a folder, by their path in it."""
    return {
        path.relative_to(top).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(top.rglob("*.ts"))
        if "node_modules" not in path.relative_to(top).parts
    }


def read(text: str, name: str, files: dict[str, str]) -> Any:
    """Our schema of a declaration; None if it is a list of functions, which are tools."""
    try:
        return schema_from_typescript(text, name, files=files)
    except UnsupportedSchemaError as error:
        if "methods alone" not in error.message or not tools_from_typescript(text, [name], files=files):
            raise
        return None


def compare(ours: Any, theirs: Any, seed: str) -> list[tuple[Any, bool, bool]]:
    """Values around both schemas, each with our verdict and theirs."""
    mine = jsonschema.Draft202012Validator(close_objects(ours))
    other = jsonschema.Draft202012Validator(theirs)
    rng = random.Random(seed)
    values = {json.dumps(value): value for value in STRANGE}
    for schema in (ours, theirs):
        if isinstance(schema, dict):
            values.update((json.dumps(value), value) for value in instances(schema, rng))
    return [(value, mine.is_valid(value), other.is_valid(value)) for value in values.values()]


def main() -> int:
    """Read all declarations twice and print how they compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("declarations", nargs="+", type=Path)
    parser.add_argument("--modules", type=Path, required=True, help="node_modules with both npm packages")
    parser.add_argument("--show", type=int, default=20, help="how many examples of each kind to print")
    parser.add_argument("--cache", type=Path, help="keep what the generator says in this file")
    parser.add_argument("--third", action="store_true", help="put every value to TypeScript's checker, and list more")
    options = parser.parse_args()
    tops = {}
    for path in options.declarations:
        for file in sorted(path.rglob("*.ts")) if path.is_dir() else [path]:
            tops[file.resolve()] = path.resolve() if path.is_dir() else path.resolve().parent
    if options.cache is not None and options.cache.exists():
        lines = [json.loads(line) for line in options.cache.read_text(encoding="utf-8").splitlines()]
    else:
        lines = list(generated(options.modules, list(tops)))
        if options.cache is not None:
            options.cache.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    refused, different = [], []
    values = 0
    questions: list[tuple[str, dict[str, Any], list[tuple[Any, bool, bool]]]] = []
    beside: dict[str, tuple[str, dict[str, str]]] = {}
    for line in lines:
        label = f"{line['file'].removeprefix(os.path.commonpath([*map(str, tops)]))} {line['name']}"
        if line["file"] not in beside:
            file = Path(line["file"])
            # Of a folder with a folder for each case, the case's own files.
            inner = file.relative_to(tops[file]).parts
            top = tops[file] / inner[0] if len(inner) > 1 else tops[file]
            beside[line["file"]] = file.read_text(encoding="utf-8"), texts_in(top)
        text, files = beside[line["file"]]
        try:
            ours = read(text, line["name"], files)
        except ToolGrammarError as error:
            kind = "no JSON values" if NO_JSON.search(error.message) else "other"
            if "schema" in line:
                counts[f"not read here ({kind})"] += 1
                reasons[re.sub(r"'[^']*'|`[^`]*`", "...", error.message)] += 1
                refused.append(f"{label}: {error}")
            else:
                counts["read by neither"] += 1
            continue
        except Exception as error:
            counts["crashed here"] += 1
            refused.append(f"{label}: CRASH {type(error).__name__}: {str(error)[:200]}")
            continue
        if "schema" not in line:
            counts["read here only"] += 1
            continue
        if ours is None:
            counts["read here as tools"] += 1
            continue
        counts["read by both"] += 1
        try:
            verdicts = compare(ours, resolvable(modern(line["schema"])), label)
        except Exception as error:
            counts["not compared"] += 1
            different.append(f"{label}: not compared: {type(error).__name__}: {str(error)[:100]}")
            continue
        values += len(verdicts)
        if not options.third:
            verdicts = [one for one in verdicts if one[1] != one[2]]
        if verdicts:
            questions.append((label, line, verdicts))
    answers = judged(options.modules, [(line["file"], line["name"], [v[0] for v in vs]) for _, line, vs in questions])
    for (label, _, verdicts), answer in zip(questions, answers, strict=True):
        found: dict[str, list[Any]] = {}
        for (value, mine, theirs), judge in zip(verdicts, answer, strict=True):
            counts["values that differ"] += mine != theirs
            counts["values that differ, and the checker is against us"] += mine != theirs == judge
            if not mine == theirs == judge:
                takes = sum((mine, theirs, judge)) == 1  # the one that is alone
                who = "ours" if theirs == judge else "theirs" if mine == judge else "the checker"
                found.setdefault(f"{who} alone {'takes' if takes else 'refuses'}", []).append(value)
        for what, cases in found.items():
            different.append(f"{label}: {what} {len(cases)}: {json.dumps(cases[0])[:160]}")
    good = counts["read by both"] + counts["read here as tools"]
    total = good + sum(n for what, n in counts.items() if what.startswith(("not read", "crash")))
    modules = options.modules
    for package in ("ts-json-schema-generator", "typescript"):
        print(package, json.loads((modules / package / "package.json").read_text(encoding="utf-8"))["version"])
    print(f"{len(lines)} declarations in {len(beside)} files; the generator reads {total}")
    for what, number in counts.most_common():
        print(f"{number:7}  {what}")
    print(f"{100 * good / max(total, 1):.1f} % of what it reads is read here")
    meant = total - counts["not read here (no JSON values)"]
    print(f"{100 * good / max(meant, 1):.1f} % of what it reads and JSON has values for")
    agreement = 100 * (1 - counts["values that differ"] / max(values, 1))
    print(f"{agreement:.3f} % of {values} verdicts are the same")
    alone = counts["values that differ, and the checker is against us"]
    print(f"{100 * (1 - alone / max(values, 1)):.3f} % are those of the generator or of TypeScript's checker")
    for title, items in (
        ("reasons", [f"{n} {what}" for what, n in reasons.most_common()]),
        ("not read", refused),
        ("different", different),
    ):
        print(f"\n{title}:")
        for item in items[: options.show]:
            print(f"  {item}")
    return 0
