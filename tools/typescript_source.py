"""TypeScript text as tree-sitter reads it: syntax errors with their place, declarations by name, comments by position.

Nothing here knows what a type means; `typescript_types` does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.errors import (
    InvalidSchemaError,
    LimitError,
    MissingDependencyError,
    Place,
    SchemaError,
    UnsupportedSchemaError,
)

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SECONDS = 3

#: Statements that declare something a signature may use, and what they are called in messages.
_KINDS = {
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "function_signature": "function",
    "function_declaration": "function",
}
#: Statements that say nothing about a signature's types, and the way out.
_REFUSED = {
    "import_statement": "put the imported declarations into this text: nothing is read from other files",
    "import_alias": "use the full name",
    "class_declaration": "declare an interface with the same fields",
    "abstract_class_declaration": "declare an interface with the same fields",
    "lexical_declaration": "declare a function: declare function name(...): ...",
    "variable_declaration": "declare a function: declare function name(...): ...",
    "generator_function_declaration": "declare a plain function",
}
_WITHOUT_MEANING = ("comment", "empty_statement", "hash_bang_line", ";")
_DIRECTIVE = re.compile(r"^//+\s*(eslint|@ts-|prettier|tslint|#(end)?region|<|biome)")
_ESCAPE = re.compile(r"\\(u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r\n|[\s\S])")
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


@dataclass
class Declaration:
    """One declared name.

    Attributes:
        name: the name.
        kind: ``interface``, ``type``, ``enum`` or ``function``.
        nodes: the declaring nodes; several only for an interface declared in parts.
        statements: the whole statements, where the comments stand.
        exported: it is exported.
    """

    name: str
    kind: str
    nodes: list[Node] = field(default_factory=list)
    statements: list[Node] = field(default_factory=list)
    exported: bool = False


class Source:
    """A parsed text and its declarations, in order.

    Args:
        text: TypeScript.

    Raises:
        InvalidSchemaError: a syntax error, with line and column.
        UnsupportedSchemaError: a statement that declares no signature.
        LimitError: tree-sitter does not come to an end with it.
        MissingDependencyError: tree-sitter is not installed.
    """

    def __init__(self, text: str) -> None:
        self.bytes = text.encode("utf-8", "surrogatepass")
        self.root: Node = _tree(self.bytes).root_node
        if self.root.has_error:
            raise self._syntax_error()
        self.comments: dict[int, Node] = {}  # by the byte at which they end
        self.trailing: dict[int, Node] = {}  # the line comment behind something, by line
        for node in _walk(self.root):
            if node.type == "comment":
                self.comments[node.end_byte] = node
                if self.bytes[: node.start_byte].rpartition(b"\n")[2].strip():
                    self.trailing.setdefault(node.start_point[0], node)
        # Comments that were read, by their first byte, and what they speak of. Outer nodes are asked about first, so a
        # comment before `string[]` is the array's.
        self.taken: dict[int, tuple[int, int, str]] = {}
        self.declarations: dict[str, Declaration] = {}
        exported: list[str] = []
        self._declare(self.root, exported)
        for name in exported:
            for key in (name, f"{name}()"):
                if key in self.declarations:
                    self.declarations[key].exported = True

    # -- text and places ---------------------------------------------------------------------------------------

    def text(self, node: Node) -> str:
        """What stands there."""
        return self.bytes[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def place(self, node: Node, **more: Any) -> Place:
        """Line and column (1-based, in characters) at which a node begins."""
        before = self.bytes[: node.start_byte].rpartition(b"\n")[2]
        return Place(line=node.start_point[0] + 1, column=len(before.decode("utf-8", "replace")) + 1, **more)

    def refuse(self, node: Node, reason: str, hint: str) -> UnsupportedSchemaError:
        """What TypeScript can say and a schema cannot."""
        return UnsupportedSchemaError(reason, hint=hint, place=self.place(node))

    def wrong(self, node: Node, reason: str, hint: str) -> InvalidSchemaError:
        """What is wrong in TypeScript too."""
        return InvalidSchemaError(reason, hint=hint, place=self.place(node))

    def string(self, node: Node) -> str:
        """The value of a string literal, its escapes decoded."""
        return unescape(self.text(node)[1:-1])

    # -- comments ----------------------------------------------------------------------------------------------

    def comment_before(self, node: Node) -> Node | str | None:
        """The comment that speaks of what begins here: the JSDoc block before it, or the lines of ``//`` above it."""
        owner = (node.start_byte, node.end_byte, node.type)
        lines: list[str] = []
        end = node.start_byte
        while True:
            start = len(self.bytes[:end].rstrip())
            found = self.comments.get(start)
            if found is None or self.taken.get(found.start_byte, owner) != owner:
                break
            text = self.text(found)
            if text.startswith("/**"):
                if lines:
                    break
                self.taken[found.start_byte] = owner
                return found
            if text.startswith("//"):
                blank = self.bytes[start:end].count(b"\n") > 1
                if blank or self.trailing.get(found.start_point[0]) is found:
                    break
                self.taken[found.start_byte] = owner
                if not _DIRECTIVE.match(text):
                    lines.insert(0, text.lstrip("/").strip())
            end = found.start_byte
        return "\n".join(lines) or None

    def comment_behind(self, node: Node) -> str | None:
        """The ``//`` comment that ends the line on which something ends."""
        owner = (node.start_byte, node.end_byte, node.type)
        found = self.trailing.get(node.end_point[0])
        if found is None or found.start_byte < node.end_byte or self.taken.get(found.start_byte, owner) != owner:
            return None
        if self.bytes[node.end_byte : found.start_byte].strip(b" \t,;"):
            return None
        text = self.text(found)
        if not text.startswith("//") or _DIRECTIVE.match(text):
            return None
        self.taken[found.start_byte] = owner
        return text.lstrip("/").strip()

    def unread(self, nodes: list[Node]) -> Iterator[Node]:
        """JSDoc blocks inside these nodes that nothing has read."""
        for node in nodes:
            for inner in _walk(node):
                if inner.type == "comment" and inner.start_byte not in self.taken:
                    yield inner

    # -- declarations ------------------------------------------------------------------------------------------

    def _declare(self, body: Node, exported: list[str]) -> None:
        for statement in body.named_children:
            node, is_exported = _unwrapped(statement, exported, self.text)
            if node is None or node.type in _WITHOUT_MEANING:
                continue
            if node.type in ("internal_module", "module"):
                inner = node.child_by_field_name("body")
                if inner is not None:
                    self._declare(inner, exported)
                continue
            if node.type not in _KINDS:
                raise self.refuse(
                    node,
                    f"{self._shown(node)} is not a type or a function signature",
                    _REFUSED.get(node.type, "give interfaces, types, enums and function signatures only"),
                )
            self._add(_KINDS[node.type], node, statement, is_exported)

    def _add(self, kind: str, node: Node, statement: Node, exported: bool) -> None:
        name_node = node.child_by_field_name("name")
        if name_node is None:
            raise self.wrong(node, f"the {kind} has no name", "give it a name")
        name = self.text(name_node)
        # TypeScript keeps values and types apart: a function may have the name of a type.
        key = f"{name}()" if kind == "function" else name
        known = self.declarations.get(key)
        if known is None:
            self.declarations[key] = Declaration(name, kind, [node], [statement], exported)
        elif known.kind == kind == "interface":  # TypeScript joins them
            known.nodes.append(node)
            known.statements.append(statement)
            known.exported |= exported
        elif kind == "function" and known.kind == kind:
            raise self.refuse(node, f"the function {name!r} has overloads", "declare each signature under its own name")
        else:
            raise self.wrong(node, f"{name!r} is declared twice", "rename one of the declarations")

    def _shown(self, node: Node) -> str:
        line = self.text(node).split("\n")[0]
        return f"`{line if len(line) <= 40 else line[:37] + '...'}`"

    def _syntax_error(self) -> SchemaError:
        node = next(
            (n for n in _walk(self.root) if n.is_missing or (n.is_error and not any(c.has_error for c in n.children))),
            self.root,
        )
        what = f"{node.type!r} is missing" if node.is_missing else f"cannot read {self._shown(node)}"
        return self.wrong(node, f"a syntax error in the TypeScript: {what}", "correct the text; tsc says more about it")


def child_of(node: Node, name: str) -> Node:
    """The child of that name, which a node without syntax errors has."""
    found = node.child_by_field_name(name)
    assert found is not None, f"{node.type} without {name}"
    return found


def only_child(node: Node) -> Node:
    """The one child that is no comment."""
    (child,) = (child for child in node.named_children if child.type != "comment")
    return child


def unescape(text: str) -> str:
    """What a JavaScript string's inner text means."""

    def decoded(match: re.Match[str]) -> str:
        digits = match[2] or match[3] or match[4]
        if digits:
            return chr(int(digits, 16))
        return _SHORT.get(match[1], match[1])

    plain = _ESCAPE.sub(decoded, text)
    # A pair of \u escapes is one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _unwrapped(statement: Node, exported: list[str], text: Callable[[Node], str]) -> tuple[Node | None, bool]:
    """The declaration inside ``export`` and ``declare``, and whether it is exported."""
    node: Node | None = statement
    is_exported = False
    while node is not None and node.type in ("export_statement", "ambient_declaration", "expression_statement"):
        if node.type == "export_statement":
            is_exported = True
            clause = next((child for child in node.named_children if child.type == "export_clause"), None)
            if clause is not None and node.child_by_field_name("source") is None:
                for specifier in clause.named_children:
                    name = specifier.child_by_field_name("name")
                    if name is not None:
                        exported.append(text(name))
                return None, True
        inner = [child for child in node.named_children if child.type != "comment"]
        if node.type == "expression_statement" and (len(inner) != 1 or inner[0].type != "internal_module"):
            return node, is_exported
        if len(inner) != 1:
            return node, is_exported
        node = inner[0]
        if node.type == "identifier":  # export default Name
            exported.append(text(node))
            return None, True
    return node, is_exported


def _walk(node: Node) -> Iterator[Node]:
    """A node and all below it, in order; without recursion, since a text may nest as it likes."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


def _tree(source: bytes) -> Any:
    """The syntax tree. tree-sitter's search for a way around a syntax error may have no end, so it is bounded."""
    end = time.monotonic() + MAX_SECONDS
    try:
        tree = _parser().parse(
            lambda offset, point: source[offset : offset + 65_536],
            progress_callback=lambda offset, error: time.monotonic() > end,
        )
    except ValueError:  # what it raises when it is stopped
        tree = None
    if tree is None:
        raise LimitError(
            f"the TypeScript cannot be read in {MAX_SECONDS} seconds",
            hint="it has a syntax error, most likely: tsc says where",
        )
    return tree


def _parser() -> Any:
    try:
        import tree_sitter
        import tree_sitter_typescript
    except ImportError as error:
        raise MissingDependencyError(
            "TypeScript is read by tree-sitter, which is not installed",
            hint="pip install 'toolgrammar[typescript]'",
        ) from error
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_typescript.language_typescript()))
