"""Runner of the benchmarks.

python -m benchmarks                      # the programs, with one line each
python -m benchmarks SUBJECT/NAME --help

A program is a module with a function ``main``, whose parameters are its options: those without a default are required,
by position or, after ``*``, by name. Their types say how they are read, and "Args" in its docstring what they are.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

HERE = Path(__file__).resolve().parent
SUBJECTS = {
    "masks": "masks and verdicts of schemas and grammars, beside other engines and judges",
    "answers": "answers of models, agents and readers: valid, right, cut",
    "formats": "wire formats, chat templates, and the parsers of other projects",
    "engines": "whole engines: vLLM, SGLang, and models in this process",
    "servers": "servers over HTTP: answers, load, attacks",
    "growth": "what grows with the vocabulary, the schema, the tools and the threads: time and memory",
}


#: What options are that many programs have.
HELP = {
    "data": "file with one JSON object a line, gzip or not",
    "deadline": "seconds that an engine may take for one schema",
    "keep": "write the result to benchmarks/results",
    "limit": "number of schemas, spread over the file",
    "max_tokens": "budget of an answer",
    "model": "as load_model takes it",
    "most_prompt": "leave out longer prompts, in tokens",
    "most_steps": "answers with calls in a turn",
    "name": "the model's name in the results",
    "only": "part of the names of what is run; all without it",
    "peers": "names of the peers, separated by commas",
    "requests": "number of requests",
    "seconds": "begin nothing new after this time",
    "sheets": "file that keeps each answer, from which a run goes on that was stopped",
    "workers": "number of processes",
}


def parser_of(main: Callable[..., Any], description: str | None, name: str) -> ArgumentParser:
    """Return the parser of a program's options, as the parameters of its ``main`` are."""
    parser = ArgumentParser(name, description=description, formatter_class=RawDescriptionHelpFormatter)
    hints = get_type_hints(main)
    said = HELP | dict(re.findall(r"^ +(\w+): (.+)$", inspect.getdoc(main) or "", re.MULTILINE))
    for each in inspect.signature(main).parameters.values():
        kind, given = hints[each.name], {"help": said.get(each.name, "").replace("%", "%%")}
        if get_origin(kind) in (Union, types.UnionType):
            kind = next(part for part in get_args(kind) if part is not type(None))
        required = each.default is each.empty
        by_place = required and each.kind is not each.KEYWORD_ONLY
        if not required:
            given["default"] = each.default
        elif not by_place:
            given["required"] = True
        if kind is bool:
            given["action"] = "store_true"
        else:
            if get_origin(kind) is Sequence:
                (kind,), given["nargs"] = get_args(kind), "+"
            if get_origin(kind) is Literal:
                kind, given["choices"] = str, get_args(kind)
            given["type"] = kind
        parser.add_argument(each.name if by_place else f"--{each.name.replace('_', '-')}", **given)
    return parser


def run(module: ModuleType, name: str, arguments: list[str]) -> int:
    """Run a program; return its exit code. One whose ``main`` has no parameters reads ``sys.argv`` itself."""
    sys.argv = [name, *arguments]
    if not inspect.signature(module.main).parameters:
        return module.main() or 0
    given = parser_of(module.main, module.__doc__, name).parse_args(arguments)
    return module.main(**vars(given)) or 0


def programs() -> dict[str, str]:
    """Return the first line of each program by its name, ``SUBJECT/NAME``; nothing is imported."""
    found = {"report": HERE / "report.py"}
    for subject in SUBJECTS:
        found |= {f"{subject}/{path.stem}": path for path in sorted((HERE / subject).glob("*.py"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in found.items()}
    return {
        name: text.lstrip("r").removeprefix('"""').partition("\n")[0].removesuffix('"""')
        for name, text in texts.items()
        if "\ndef main(" in text
    }


def module(name: str) -> ModuleType:
    """Import a program, or a part of one, by ``SUBJECT/NAME`` or by its name alone."""
    if "/" not in name:
        name = next((f"{path.parent.name}/{name}" for path in HERE.glob(f"*/{name}.py")), name)
    return importlib.import_module(".".join(("benchmarks", *name.split("/"))))


def main() -> int:
    """List the programs, or run one."""
    known = programs()
    names = {short: name for name in known for short in (name, name.rpartition("/")[2])}
    asked = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if asked in names:
        return run(module(names[asked]), f"python -m benchmarks {names[asked]}", sys.argv[2:])
    for subject, meaning in {"report": "", **SUBJECTS}.items():
        print(f"\n{subject}: {meaning}" if meaning else __doc__)
        for name in known:
            if name.partition("/")[0] == subject:
                print(f"  {name:<34}{known[name]}")
    if asked not in ("-h", "--help"):
        print(f"\nno program is called {asked!r}; the programs are above", file=sys.stderr)
    return 0 if asked in ("-h", "--help") else 2


if __name__ == "__main__":
    sys.exit(main())
