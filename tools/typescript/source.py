"""A TypeScript text as tree-sitter parses it: errors with line and column, and comments by position.

`modules` reads the declarations of the text, and `types` evaluates its types.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from toolgrammar.core.errors import (
    InvalidSchemaError,
    LimitError,
    MissingDependencyError,
    Place,
    SchemaError,
    UnsupportedSchemaError,
)

from . import jsdoc

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SECONDS = 3

#: Syntax that the grammar of tree-sitter does not know and that says nothing about values. The group is blanked out.
_NEWER = (
    re.compile(rb"\bexport\s+(type)\s*\*"),
    re.compile(rb"[<,]\s*((?:(?:in|out|const)\s+)+)[A-Za-z_$][\w$]*"),
)
_DIRECTIVE = re.compile(r"^//+\s*(eslint|@ts-|prettier|tslint|#(end)?region|<|biome)")
_ESCAPE = re.compile(r"\\(u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r\n|[\s\S])")
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


class Source:
    """A parsed text.

    Args:
        text: TypeScript.
        name: the file's path, for messages; empty for the text that the caller gave first.

    Raises:
        InvalidSchemaError: a syntax error, with line and column.
        LimitError: tree-sitter does not finish parsing it.
        MissingDependencyError: tree-sitter is not installed.
    """

    def __init__(self, text: str, name: str = "") -> None:
        self.name = name
        self.bytes = text.encode("utf-8", "surrogatepass")
        self.root: Node = _tree(self.bytes).root_node
        if self.root.has_error and (plain := self._without_newer_syntax()) != self.bytes:
            self.root = _tree(plain).root_node
        if self.root.has_error:
            raise self._syntax_error()
        self.comments: dict[int, Node] = {}  # by the byte at which they end
        self.trailing: dict[int, Node] = {}  # line comments after code, by line
        for node in walk(self.root):
            if node.type == "comment":
                self.comments[node.end_byte] = node
                if self.bytes[: node.start_byte].rpartition(b"\n")[2].strip():
                    self.trailing.setdefault(node.start_point[0], node)
        # By the first byte of a comment: the node that it describes. Outer nodes claim comments first, so a comment
        # before `string[]` belongs to the array.
        self.taken: dict[int, _Identity] = {}
        # By the span of a part that is read on demand: True if it was read.
        self.on_demand: dict[tuple[int, int], bool] = {}

    # -- text and places ---------------------------------------------------------------------------------------

    def text(self, node: Node) -> str:
        """Return the text of a node."""
        return self.bytes[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def place(self, node: Node, **more: Any) -> Place:
        """Return line and column (1-based, in characters) at which a node begins."""
        before = self.bytes[: node.start_byte].rpartition(b"\n")[2]
        return Place(line=node.start_point[0] + 1, column=len(before.decode("utf-8", "replace")) + 1, **more)

    def refuse(self, node: Node, reason: str, hint: str) -> UnsupportedSchemaError:
        """Return the error for something that TypeScript can say and a schema cannot."""
        return UnsupportedSchemaError(self._located(reason), hint=hint, place=self.place(node))

    def wrong(self, node: Node, reason: str, hint: str) -> InvalidSchemaError:
        """Return the error for something that is wrong in TypeScript too."""
        return InvalidSchemaError(self._located(reason), hint=hint, place=self.place(node))

    def string(self, node: Node) -> str:
        """Return the value of a string literal, its escapes decoded."""
        return unescape(self.text(node)[1:-1])

    # -- comments ----------------------------------------------------------------------------------------------

    def comment_before(self, node: Node) -> Node | str | None:
        """Return the comment on a node: the JSDoc block before it, or the lines of ``//`` above it.

        A comment belongs to the first node that asks for it; that one may ask again.
        """
        owner = _identity(node)
        lines: list[str] = []
        end = node.start_byte  # of the white space before the node, or before the comment above
        while True:
            start = len(self.bytes[:end].rstrip())
            comment = self.comments.get(start)
            if comment is None or self.taken.get(comment.start_byte, owner) != owner:
                break
            text = self.text(comment)
            if text.startswith("/**"):
                if lines:
                    break
                self.taken[comment.start_byte] = owner
                return comment
            if text.startswith("//"):
                is_apart = self.bytes[start:end].count(b"\n") > 1  # by a blank line
                if is_apart or self.trailing.get(comment.start_point[0]) is comment:
                    break
                self.taken[comment.start_byte] = owner
                if not _DIRECTIVE.match(text):
                    lines.insert(0, text.lstrip("/").strip())
            end = comment.start_byte
        return "\n".join(lines) or None

    def doc(self, node: Node) -> jsdoc.Doc:
        """Return the comment before a node, parsed."""
        comment = self.comment_before(node)
        if comment is None:
            return jsdoc.Doc()
        if isinstance(comment, str):
            return jsdoc.Doc(description=comment)
        try:
            return jsdoc.parse(self.text(comment))
        except jsdoc.JsDocError as error:
            raise self.wrong(comment, str(error), "see docs/tools.md for the tags") from None

    def comment_after(self, node: Node) -> str | None:
        """Return the text of the ``//`` comment behind a node, on the line on which the node ends; as
        `comment_before`, it belongs to the first node that asks for it."""
        owner = _identity(node)
        comment = self.trailing.get(node.end_point[0])
        if comment is None or comment.start_byte < node.end_byte or self.taken.get(comment.start_byte, owner) != owner:
            return None
        if self.bytes[node.end_byte : comment.start_byte].strip(b" \t,;"):  # something else stands between
            return None
        text = self.text(comment)
        if not text.startswith("//") or _DIRECTIVE.match(text):
            return None
        self.taken[comment.start_byte] = owner
        return text.lstrip("/").strip()

    def postpone(self, node: Node) -> None:
        """Note a part that is read only if something needs it."""
        self.on_demand.setdefault((node.start_byte, node.end_byte), False)

    def leave_out(self, node: Node) -> None:
        """Note a part that no schema needs, and take the comments on it: nobody else may read them."""
        self.postpone(node)
        self.comment_before(node)
        self.comment_after(node)

    def begin(self, node: Node) -> None:
        """Note that a postponed part is read after all."""
        self.on_demand[node.start_byte, node.end_byte] = True

    def unread(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """Yield the comments inside these nodes that nothing has read, except in parts that nothing needed."""
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if not self.on_demand.get((node.start_byte, node.end_byte), True):
                continue
            waiting.extend(node.children)
            if node.type == "comment" and node.start_byte not in self.taken:
                yield node

    # -- errors ------------------------------------------------------------------------------------------------

    def _located(self, reason: str) -> str:
        return f"{reason} (in {self.name!r})" if self.name else reason

    def shown(self, node: Node) -> str:
        """Return the beginning of a node's text, for messages."""
        line = self.text(node).split("\n")[0]
        return f"`{line if len(line) <= 40 else line[:37] + '...'}`"

    def _syntax_error(self) -> SchemaError:
        """Return the error for the first place that the parser could not read."""
        node = next(
            (n for n in walk(self.root) if n.is_missing or (n.is_error and not any(c.has_error for c in n.children))),
            self.root,
        )
        what = f"{node.type!r} is missing" if node.is_missing else f"cannot read {self.shown(node)}"
        return self.wrong(
            node,
            f"a syntax error in the TypeScript, or syntax that tree-sitter does not know: {what}",
            "tsc says which it is; correct the text, or write that declaration in another way",
        )

    def _without_newer_syntax(self) -> bytes:
        """Return the text with blanks for syntax that is newer than the grammar (`_NEWER`), where it is an error."""
        errors = [(n.start_byte, n.end_byte) for n in walk(self.root) if n.is_error or n.is_missing]
        plain = bytearray(self.bytes)
        for pattern in _NEWER:
            for match in pattern.finditer(self.bytes):
                if any(start <= match.end() and match.start() <= end for start, end in errors):
                    plain[match.start(1) : match.end(1)] = b" " * (match.end(1) - match.start(1))
        return bytes(plain)


#: A node by its span and type: tree-sitter makes a new object each time that a node is asked for.
_Identity = tuple[int, int, str]


def _identity(node: Node) -> _Identity:
    return node.start_byte, node.end_byte, node.type


def child_of(node: Node, name: str) -> Node:
    """Return the child in a field of tree-sitter's grammar, such as ``body``.

    Raises:
        InvalidSchemaError: it is missing.
    """
    child = node.child_by_field_name(name)
    if child is None:
        raise _incomplete(node)
    return child


def only_child(node: Node) -> Node:
    """Return the one child that is not a comment.

    Raises:
        InvalidSchemaError: there is none, or more.
    """
    children = parts(node)
    if len(children) != 1:
        raise _incomplete(node)
    return children[0]


def _incomplete(node: Node) -> InvalidSchemaError:
    """Return the error for text that the parser takes and TypeScript does not."""
    line, column = node.start_point
    return InvalidSchemaError(
        "a syntax error in the TypeScript that the parser does not notice",
        hint="run tsc for the exact error",
        place=Place(line=line + 1, column=column + 1),
    )


def parts(node: Node) -> list[Node]:
    """Return the named children that are not comments."""
    return [child for child in node.named_children if child.type != "comment"]


def operands(node: Node) -> list[Node]:
    """Return the members of a union or intersection, in order; the tree nests to the left."""
    leaves: list[Node] = []
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type == node.type:
            waiting.extend(reversed(parts(current)))
        else:
            leaves.append(current)
    return leaves


def has_word(node: Node, *words: str) -> bool:
    """Return True if one of these keywords or signs is a child of the node."""
    return any(child.type in words for child in node.children)


def in_generic(node: Node) -> bool:
    """Return True if a node is a declaration with type parameters, or a part of one."""
    inside: Node | None = node
    while inside is not None:
        for part in (inside, inside.child_by_field_name("declaration")):
            if part is not None and part.child_by_field_name("type_parameters") is not None:
                return True
        inside = inside.parent
    return False


def unescape(text: str) -> str:
    """Return the value of a JavaScript string literal's text between the quotes: ``r"a\\x41" -> "aA"``."""

    def decoded(match: re.Match[str]) -> str:
        digits = match[2] or match[3] or match[4]
        if digits:
            return chr(int(digits, 16))
        return _SHORT.get(match[1], match[1])

    plain = _ESCAPE.sub(decoded, text)
    # A pair of \u escapes is one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, in order; without recursion, since a text may nest as it likes."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


def _tree(source: bytes) -> Any:
    """Return the syntax tree. tree-sitter's recovery from a syntax error may have no end, so its time is bounded."""
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
            hint="it probably has a syntax error: run tsc to locate it",
        )
    return tree


def _parser() -> Any:
    """Return tree-sitter's parser of TypeScript.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import tree_sitter
        import tree_sitter_typescript
    except ImportError as error:
        raise MissingDependencyError(
            "TypeScript is read by tree-sitter, which is not installed",
            hint="pip install 'toolgrammar[typescript]'",
        ) from error
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_typescript.language_typescript()))
