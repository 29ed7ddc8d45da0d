"""Writes the tables of the documentation from the results that are kept beside this file, and draws the picture.

    python -m benchmarks report [--check]

A table stands between two comments, ``<!-- NAME: written by benchmarks/report.py -->`` and ``<!-- end of NAME -->``,
and shows ``benchmarks/results/NAME.json``. What is between them is written anew; the prose around it is by hand. A
table whose result is not kept stays as it is. With ``--check`` nothing is written: the exit status says whether
something would be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from benchmarks.shared.results_io import RESULTS, TABLES, Result
from benchmarks.shared.tables import COSTS, costs_picture

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
#: The pages with tables: each result is shown on one of them.
_PAGES = (
    "performance",
    "evidence",
    "adapters",
    "contracts",
    "decisions",
    "decoding",
    "formats",
    "policies",
    "programs",
    "repair",
    "servers",
    "text-grammars",
    "tools",
)
PAGES = (*(DOCS / f"{name}.md" for name in _PAGES), RESULTS / "README.md")
BLOCK = re.compile(r"(<!-- ([\w-]+): written by benchmarks/report\.py -->\n)(.*?)(<!-- end of \2 -->\n)", re.DOTALL)
#: The results that the summary is made of.
SUMMARISED = ("maskbench", "bfcl_calls")


def kept(name: str) -> Result | None:
    """A result, if it is kept; that of the summary is several."""
    if name == "summary":
        results = {each: kept(each) for each in SUMMARISED}
        return None if None in results.values() else results
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def written(page: str, results: Callable[[str], Result | None] = kept) -> str:
    """A page with its tables as the results have them.

    Raises:
        ValueError: a table that nobody writes, a comment without its other half.
    """
    found = [match[2] for match in BLOCK.finditer(page)]
    if unknown := set(found) - set(TABLES):
        raise ValueError(f"nobody writes the table {sorted(unknown)[0]}; there are {', '.join(TABLES)}")
    if page.count(": written by benchmarks/report.py -->") != len(found):
        raise ValueError("a table's first comment has no last one")

    def anew(match: re.Match[str]) -> str:
        result = results(match[2])
        return match[0] if result is None else f"{match[1]}{TABLES[match[2]](result)}\n{match[4]}"

    return BLOCK.sub(anew, page)


def main(check: bool = False) -> int:
    """Write the page and the picture, or say whether they are as the results are.

    Args:
        check: write nothing; exit with 1 if something would change
    """
    texts = {page: written(page.read_text(encoding="utf-8")) for page in PAGES}
    if (result := kept("maskbench")) is not None:
        texts[COSTS] = costs_picture(result)
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
        print(f"{'stale' if check else 'written'}: {path.relative_to(HERE.parent)}")
    return 1 if stale and check else 0
