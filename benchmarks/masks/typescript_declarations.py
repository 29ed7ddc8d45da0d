"""Which constructs of TypeScript do real declarations use?

    npm install --prefix FOLDER openai @anthropic-ai/sdk @modelcontextprotocol/sdk @octokit/types ai stripe ...
    python -m benchmarks masks/typescript_declarations FOLDER/node_modules

Counts the interfaces, type aliases and enums of all declaration files (``.d.ts``) that contain each construct. The
reader (`toolgrammar.tools.typescript`) refuses computations on types that less than 1% of them use.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import tree_sitter
import tree_sitter_typescript

if TYPE_CHECKING:
    from tree_sitter import Node

DECLARATIONS = ("interface_declaration", "type_alias_declaration", "enum_declaration")
AROUND = (
    *("program", "export_statement", "ambient_declaration", "module", "internal_module", "statement_block"),
    "expression_statement",
)
CONSTRUCTS = {
    "union_type": "unions",
    "generic_type": "type arguments",
    "intersection_type": "intersections",
    "enum_declaration": "enums",
    "type_query": "typeof",
    "lookup_type": "T[K]",
    "conditional_type": "conditional types",
    "index_type_query": "keyof",
    "tuple_type": "tuples",
    "mapped_type_clause": "mapped types",
    "infer_type": "infer",
    "template_literal_type": "template types",
    "binary_expression": "calculated values",
}

#: Maximum number of bytes of a file: longer ones are generated tables of one package.
MAX_BYTES = 3_000_000


def below(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += one.named_children


def declarations(root: Node) -> Iterator[Node]:
    """Yield the declarations of a file, those in namespaces too."""
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.type in DECLARATIONS:
            yield one
        elif one.type in AROUND:
            waiting += one.named_children


def main() -> None:
    """Count and print."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("modules", type=Path)
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_typescript.language_typescript()))
    found: Counter[str] = Counter()
    for path in sorted(arguments.parse_args().modules.rglob("*.d.ts")):
        text = path.read_bytes()
        for declaration in declarations(parser.parse(text).root_node) if len(text) <= MAX_BYTES else ():
            found["declarations"] += 1
            kinds = {CONSTRUCTS[node.type] for node in below(declaration) if node.type in CONSTRUCTS}
            names = {
                name.text.decode()
                for node in below(declaration)
                if node.type == "generic_type" and (name := node.child_by_field_name("name")) is not None and name.text
            }
            found.update(
                kinds | {f"{name}<>" for name in names if name in ("ReturnType", "Parameters", "Awaited", "Uppercase")}
            )
    for name, count in found.most_common():
        print(f"{name:20} {count:8,} {count / max(1, found['declarations']):7.2%}")
