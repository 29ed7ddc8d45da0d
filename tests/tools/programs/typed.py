"""Programs of random walks, judged by mypy against stubs of the same tools.

    python -m tests.tools.programs.typed [--programs 1000] [--seed 0] [--tasks | --dojo FOLDER]

The tools are random, or those of the tasks of ``benchmarks/answers/programs.py`` (BFCL's on the path; with ``--dojo``
AgentDojo's too).

Programs are written in a conversation without ids, so an argument of a named type has a value of a result. A mutant has
one name, field or argument of another place; those that mypy rejects have to be refused.
"""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from toolgrammar.core import Grammar
from toolgrammar.tools import ToolSet, program_tool

from .law import program_tools, vocabulary, walk


def judged(stubs: str, programs: list[str]) -> dict[int, str]:
    """Return what mypy objects to, by the number of the program.

    Args:
        stubs: the module of the functions.
        programs: the programs.
    """
    lines, owner = ["from typing import Any", "from tools import *", ""], [-1] * 3
    for number, text in enumerate(programs):
        body = [f"def program_{number}() -> Any:", *(f"    {line}" for line in text.split("\n") if line)]
        lines += body
        owner += [number] * len(body)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tools.pyi").write_text(stubs, encoding="utf-8")
        Path(folder, "programs.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-incremental", "programs.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stdout + done.stderr)
    found: dict[int, str] = {}
    for line in done.stdout.splitlines():
        place, _, said = line.partition(": error: ")
        if said:
            found.setdefault(owner[int(place.split(":")[1]) - 1], said)
    return found


def mutant(text: str, rng: random.Random) -> str | None:
    """Return a program with one name, field or call of another place; None: it has no other."""
    tree = ast.parse(text)
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Constant))]
    kind = rng.choice(("name", "field", "argument"))
    if kind == "name":
        names = [node for node in nodes if isinstance(node, ast.Name)]
        first = rng.choice(names)
        first.id = rng.choice([*{node.id for node in names}, "z"])
    elif kind == "field":
        fields = [node for node in nodes if isinstance(node, ast.Attribute)]
        if not fields:
            return None
        rng.choice(fields).attr = rng.choice([*{node.attr for node in fields}, "z"])
    else:
        calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
        if not calls:
            return None
        rng.choice(calls).args[0] = rng.choice([node for node in nodes if isinstance(node, ast.expr)])
    try:
        made = ast.unparse(tree)
        return None if made == ast.unparse(ast.parse(text)) or ast.dump(ast.parse(made)) == "" else made
    except (RecursionError, ValueError):
        return None


def written(tools: ToolSet, rng: random.Random, count: int) -> tuple[str, Grammar, list[str]]:
    """Return the stubs of a tool of programs, the grammar of its programs, and some of these."""
    (tool,) = tools.in_conversation([])
    grammar = Grammar.from_json_schema(tool.parameters["properties"]["input"])
    words, texts = vocabulary(), []
    for _ in range(count):
        texts.append(ast.literal_eval(walk(grammar, words, rng, masks=0).decode().replace("\\/", "/")))
    return tool.program.stubs, grammar, texts


def judge(seed: int, count: int, tools: ToolSet | None = None) -> Counter[str]:
    """Judge programs over some tools (None: random ones of the seed), and mutants of them; return how many there were.

    Raises:
        AssertionError: mypy rejects a program, or a mutant that it rejects is in the grammar.
    """
    rng = random.Random(seed)
    stubs, grammar, texts = written(tools or program_tools(rng), rng, count)
    for text in texts:
        ast.parse(text)
    found = judged(stubs, texts)
    if found:
        number, said = next(iter(found.items()))
        raise AssertionError(f"seed {seed}: mypy says {said!r} of {texts[number]!r}\n{stubs}")
    rng = random.Random(seed)
    mutants = [made for text in texts if (made := mutant(text, rng)) is not None]
    rejected = judged(stubs, mutants) if mutants else {}
    for number, said in rejected.items():
        if grammar.matches(json.dumps(mutants[number], ensure_ascii=False)):
            raise AssertionError(f"seed {seed}: mypy says {said!r} of the mutant {mutants[number]!r}\n{stubs}")
    return Counter(programs=len(texts), mutants=len(mutants), rejected=len(rejected))


def real_tools(folder: Path | None) -> Iterator[ToolSet]:
    """Yield the tools of programs of real tasks, in which a program can be begun without a request."""
    from benchmarks.shared.program_tasks import all_tasks

    known = set()
    for task in all_tasks(folder):
        names = tuple(sorted(tool.name for tool in task.tools))
        tools = ToolSet([program_tool(task.tools, statements=5)])
        if names not in known and tools.in_conversation([]).offered:
            known.add(names)
            yield tools


def main() -> None:
    """Judge many programs."""
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", action="store_true")
    parser.add_argument("--dojo", type=Path)
    given = parser.parse_args()
    counts, seed = Counter[str](), given.seed
    sets = list(real_tools(given.dojo)) if given.tasks or given.dojo else [None]
    while counts["programs"] < given.programs:
        counts += judge(seed, 200, sets[seed % len(sets)])
        seed += 1
    print(seed - given.seed if sets == [None] else len(sets), "tool sets", dict(counts))


if __name__ == "__main__":
    main()
