"""Runner of the benchmarks.

python -m benchmarks                      # the programs, with one line each
python -m benchmarks SUBJECT/NAME --help
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
SUBJECTS = {
    "masks": "masks and verdicts of schemas and grammars, beside other engines and judges",
    "answers": "answers of models, agents and readers: valid, right, cut",
    "formats": "wire formats, chat templates, and the parsers of other projects",
    "engines": "whole engines: vLLM, SGLang, and models in this process",
    "servers": "servers over HTTP: answers, load, attacks",
    "growth": "what grows with the vocabulary, the schema, the tools and the threads: time and memory",
}


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
        sys.argv = [f"python -m benchmarks {names[asked]}", *sys.argv[2:]]
        return module(names[asked]).main() or 0
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
