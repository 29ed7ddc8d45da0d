"""How many real TypeScript declarations are read, and what the others need?

    npm install --prefix FOLDER --ignore-scripts openai @anthropic-ai/sdk @modelcontextprotocol/sdk stripe ...
    python -m benchmarks masks/typescript_declarations FOLDER/node_modules

Of each package, some interfaces, type aliases and enums without type parameters are drawn from its declaration files
(``.d.ts``) and read with all its files. A construct is refused by name (`toolgrammar.tools.typescript`) if fewer than
1% of the drawn declarations need it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from toolgrammar.core import ToolGrammarError
from toolgrammar.tools import schema_from_typescript

#: Maximum number of bytes of a file: longer ones are generated tables of one package.
MAX_BYTES = 3_000_000
DECLARED = re.compile(
    r"^[ \t]*(?:export )?(?:declare )?(?:interface|type|enum|const enum) (\w+)\b(?!\s*<)", re.MULTILINE
)
ENDINGS = (".d.ts", ".d.mts", ".d.cts")


def packages(modules: Path) -> Iterator[Path]:
    """Yield the folders of the packages."""
    for folder in sorted(one for one in modules.iterdir() if one.is_dir() and not one.name.startswith(".")):
        yield from sorted(folder.iterdir()) if folder.name.startswith("@") else [folder]


def declaration_files(package: Path, modules: Path) -> dict[str, str]:
    """Return the declaration files of a package by their path, each once if it has several endings."""
    files: dict[str, str] = {}
    seen: set[Path] = set()
    for ending in ENDINGS:
        for path in sorted(package.rglob(f"*{ending}")):
            stem = path.with_name(path.name.removesuffix(ending))
            inner = "node_modules" in path.relative_to(package).parts
            if stem not in seen and not inner and path.stat().st_size <= MAX_BYTES:
                seen.add(stem)
                files[path.relative_to(modules).as_posix()] = path.read_text(encoding="utf-8", errors="replace")
    return files


def main(modules: Path, of_each: int = 150, seed: int = 5) -> None:
    """Count and print.

    Args:
        of_each: declarations of a package
    """
    draw = random.Random(seed)
    drawn = read = 0
    refusals: Counter[str] = Counter()
    for package in packages(modules):
        files = declaration_files(package, modules)
        names = [(path, name) for path, text in files.items() for name in dict.fromkeys(DECLARED.findall(text))]
        for path, name in draw.sample(names, min(of_each, len(names))):
            drawn += 1
            try:
                schema_from_typescript(files[path], name, files=files)
                read += 1
            except ToolGrammarError as error:
                refusals[re.sub(r"['`].*?['`]", "X", error.message.split(" (in ")[0])] += 1
    print(f"{drawn:,} declarations drawn, {read:,} read")
    for reason, count in refusals.most_common():
        print(f"{count:8,} {count / max(1, drawn):7.2%} {reason}")
