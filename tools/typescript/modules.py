"""Names in TypeScript: the declarations, imports and exports of files and namespaces, and name resolution.

TypeScript keeps types and values apart: a class and an enum are both, an interface and an alias are types, a function
and a constant are values. Namespaces of one name are one namespace; so are the parts of an interface.

The last name of ``A.B.C`` is *final*: it is looked for among types, or among values. A name before a dot may be a
namespace, or either.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .source import Source, child_of, has_word, parts

if TYPE_CHECKING:
    from tree_sitter import Node

_KINDS = {
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
    "enum_declaration": "enum",
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "class": "class",
    "function_signature": "function",
    "function_declaration": "function",
    "generator_function_declaration": "function",
}
_TYPES = ("interface", "type", "enum", "class")
_VALUES = ("enum", "class", "function", "const")
#: What an import may leave out at the end of a path.
_ENDINGS = ("", ".ts", ".d.ts", ".tsx", ".mts", ".d.mts", ".cts", ".d.cts", "/index.ts", "/index.d.ts")
#: The endings of files that an import may mean when it names a script.
_SCRIPTS = {".js": (".ts", ".d.ts", ".tsx"), ".mjs": (".mts", ".d.mts"), ".cjs": (".cts", ".d.cts"), ".jsx": (".tsx",)}
_WITHOUT_MEANING = ("comment", "empty_statement", "hash_bang_line", ";")


@dataclass(eq=False)
class Declaration:
    """One declared name.

    Attributes:
        name: the name.
        kind: ``interface``, ``type``, ``enum``, ``class``, ``function`` or ``const``.
        space: where it is declared.
        nodes: the declaring nodes; several for an interface, a class or an enum in parts, and for overloads.
        statements: the whole statements, where the comments stand.
        exported: it is exported.
    """

    name: str
    kind: str
    space: Space
    nodes: list[Node] = field(default_factory=list)
    statements: list[Node] = field(default_factory=list)
    exported: bool = False

    @property
    def node(self) -> Node:
        """The first declaring node."""
        return self.nodes[0]

    @property
    def path(self) -> str:
        """The name with the namespaces around it."""
        return f"{self.space.name}.{self.name}" if self.space.name else self.name


@dataclass(eq=False)
class Link:
    """A name for something declared elsewhere: an import, an alias, a renamed export.

    Attributes:
        node: where it says so, for messages.
        module: the module specifier; None for a name of the same file.
        path: the names to follow there; empty for the whole module.
    """

    node: Node
    module: str | None
    path: tuple[str, ...] = ()


@dataclass(eq=False)
class Missing:
    """A name whose file was not given."""

    module: str


class Space:
    """The declarations of a file or a namespace.

    Args:
        source: the file.
        parent: the namespace or file around it; None for a file.
        name: the namespace's full name; empty for a file.
        folder: the folder of the file.
    """

    def __init__(self, source: Source, parent: Space | None = None, name: str = "", folder: str = "") -> None:
        self.source = source
        self.parent = parent
        self.name = name
        self.folder = folder
        self.types: dict[str, Declaration] = {}
        self.values: dict[str, Declaration] = {}
        self.spaces: dict[str, Space] = {}
        self.links: dict[str, Link] = {}  # names that stand here for others
        self.exports: dict[str, Link] = {}  # names by which others are seen from outside
        self.stars: list[Link] = []  # export * from "x"


Target = Declaration | Space | Missing


class Program:
    """A text, and the files that it may import.

    Args:
        text: the text whose declarations are meant.
        files: other texts by path, relative to this one, or by module name. If the text itself is among them, paths
            are relative to the folder that they all are in.

    Raises:
        SchemaError: as `Source`; the other files are parsed when something imported from them is used.
    """

    def __init__(self, text: str, files: Mapping[str, str] | None = None) -> None:
        self.files = {posixpath.normpath(path): content for path, content in (files or {}).items()}
        self.declarations: list[Declaration] = []  # of the text, also in its namespaces, in order
        self.ignored: list[Node] = []  # statements of the text that declare nothing
        self._modules: dict[str, Space] = {}  # the files that are parsed, by path
        self._ambient: dict[str, Space] = {}  # what `declare module "name"` declares, by name
        self._following: set[Link] = set()  # the links that are followed at the moment
        own_path = next((path for path, content in self.files.items() if content == text), "")
        self.main = Space(Source(text), folder=posixpath.dirname(own_path))
        if own_path:
            self._modules[own_path] = self.main
        self._declare(self.main.source.root, self.main)
        for link in self.main.exports.values():  # `export { A }` and `export = N.A` stand apart from the declaration
            space: Space | None = self.main
            for name in link.path[:-1]:
                space = space.spaces.get(name) if space is not None else None
            if link.module is None and link.path and space is not None:
                for table in (space.types, space.values):
                    if link.path[-1] in table:
                        table[link.path[-1]].exported = True

    # -- looking up --------------------------------------------------------------------------------------------

    def find(self, path: tuple[str, ...], space: Space, *, values: bool = False) -> Target | None:
        """Return what a name, or names joined by dots, mean in a scope; None if that is not declared.

        Args:
            path: the names.
            space: the scope: they are looked for there and in the spaces around it.
            values: the last one is a value, not a type.
        """
        around: Space | None = space
        while around is not None:
            first = self._member(path[0], around, values=values, final=len(path) == 1)
            if first is not None:
                return self.inside(first, path[1:], values=values)
            around = around.parent
        return None

    def module(self, specifier: str, space: Space) -> Space | None:
        """Return the file that an import names, if it was given."""
        if specifier in self._ambient:
            return self._ambient[specifier]
        file = space
        while file.parent is not None:
            file = file.parent
        relative = specifier.startswith(".")
        base = posixpath.normpath(posixpath.join(file.folder, specifier)) if relative else specifier
        candidates = [base + ending for ending in _ENDINGS]
        for script, endings in _SCRIPTS.items():
            if base.endswith(script):
                candidates += [base.removesuffix(script) + ending for ending in endings]
        for path in candidates:
            if path in self._modules:
                return self._modules[path]
            if path in self.files:
                return self._read(Source(self.files[path], path), path)
        return None

    def _member(self, name: str, space: Space, *, values: bool, final: bool) -> Target | None:
        """Return what a name means inside one space; before a dot, a namespace comes first."""
        declared = (space.values if values else space.types).get(name)
        if not final:
            declared = declared or (space.types if values else space.values).get(name)
            if name in space.spaces:
                return space.spaces[name]
        if declared is not None:
            return declared
        if name in space.links:
            return self._follow(space.links[name], space, values=values, final=final)
        return space.spaces.get(name)

    def _follow(self, link: Link, space: Space, *, values: bool, final: bool = True) -> Target | None:
        """Return what a link leads to (`_linked`); None for a circle of links."""
        if link in self._following:  # names that only stand for each other
            return None
        self._following.add(link)
        try:
            return self._linked(link, space, values=values, final=final)
        finally:
            self._following.discard(link)

    def _linked(self, link: Link, space: Space, *, values: bool, final: bool) -> Target | None:
        """Return what a link leads to: None if that is not declared, `Missing` if its file was not given."""
        if link.module is None:
            target = self.find(link.path, space, values=values)
            return target or self.find(link.path, space, values=not values)
        module = self.module(link.module, space)
        if module is None:
            return Missing(link.module)
        return self.inside(module, link.path, values=values, final=final)

    def inside(
        self, target: Target, path: tuple[str, ...], *, values: bool = False, final: bool = True
    ) -> Target | None:
        """Return what names mean inside a namespace or module, as others see it."""
        for index, name in enumerate(path):
            if isinstance(target, Missing):
                return target
            is_last = final and index == len(path) - 1
            inner: Target | None = None
            if isinstance(target, Space):
                inner = self._exported(name, target, values=values, final=is_last, seen=set())
            elif target.kind == "enum" and is_last:
                return None  # a member; whoever asks knows about enums
            elif target.name in target.space.spaces:  # a namespace with the name of a declaration adds to it
                added = target.space.spaces[target.name]
                inner = self._exported(name, added, values=values, final=is_last, seen=set())
            if inner is None:
                return None
            target = inner
        return target

    def _exported(self, name: str, space: Space, *, values: bool, final: bool, seen: set[int]) -> Target | None:
        """Return what a module exports under a name, itself or by ``export *``; None if nothing.

        Args:
            name: as it is imported.
            space: the module.
            values: look for values, not for types.
            final: no dot follows the name.
            seen: the modules that were asked.
        """
        if id(space) in seen:
            return None
        seen.add(id(space))
        if name in space.exports:
            return self._follow(space.exports[name], space, values=values, final=final)
        target = self._member(name, space, values=values, final=final)
        if target is not None:
            return target
        missing: Target | None = None
        for star in space.stars:
            module = self.module(star.module or "", space)
            if module is None:
                missing = Missing(star.module or "")
            elif name != "default":  # which `export *` leaves out
                target = self._exported(name, module, values=values, final=final, seen=seen)
                if isinstance(target, Missing):
                    missing = target
                elif target is not None:
                    return target
        return missing

    # -- reading -----------------------------------------------------------------------------------------------

    def _read(self, source: Source, path: str) -> Space:
        space = self._modules[path] = Space(source, folder=posixpath.dirname(path))
        self._declare(source.root, space)
        return space

    def _declare(self, body: Node, space: Space) -> None:
        for statement in body.named_children:
            self._statement(statement, statement, space, exported=False)

    def _statement(self, node: Node, statement: Node, space: Space, *, exported: bool) -> None:
        """Enter what a statement declares, imports or exports in the tables of its space.

        Args:
            node: the statement, or the one inside ``export`` or ``declare``.
            statement: the whole statement, before which the comment stands.
            space: the file or namespace.
            exported: ``export`` stands before it.
        """
        kind = node.type
        if kind in _WITHOUT_MEANING:
            return
        if kind == "import_statement":
            self._import(node, space)
        elif kind == "import_alias":  # import A = B.C
            alias, target = parts(node)
            space.links[space.source.text(alias)] = Link(node, None, names_in(space.source, target))
        elif kind == "export_statement":
            self._export(node, statement, space)
        elif kind in ("ambient_declaration", "expression_statement", "statement_block"):
            # `declare ...`, `namespace A { ... }` without `declare`, `declare global { ... }`
            inner = parts(node)
            if kind == "expression_statement" and (len(inner) != 1 or inner[0].type != "internal_module"):
                self._ignore(node, space)
                return
            for child in inner:
                self._statement(child, statement if kind != "statement_block" else child, space, exported=exported)
        elif kind in ("internal_module", "module"):
            self._namespace(node, space)
        elif kind in ("lexical_declaration", "variable_declaration"):
            for child in parts(node):
                name = child.child_by_field_name("name") if child.type == "variable_declarator" else None
                if name is not None and name.type == "identifier":
                    self._add("const", child, statement, space, exported)
        elif kind in _KINDS and node.child_by_field_name("name") is not None:
            self._add(_KINDS[kind], node, statement, space, exported)
        elif kind not in _KINDS:
            self._ignore(node, space)

    def _ignore(self, node: Node, space: Space) -> None:
        if not space.source.name:
            self.ignored.append(node)

    def _namespace(self, node: Node, space: Space) -> None:
        """Enter what ``namespace A.B { ... }`` or ``declare module "name" { ... }`` declares."""
        name = child_of(node, "name")
        body = node.child_by_field_name("body")
        if body is None:
            return
        if name.type == "string":
            inner = self._ambient.setdefault(space.source.string(name), Space(space.source, space))
        else:
            inner = space
            for part in names_in(space.source, name):
                full = f"{inner.name}.{part}" if inner.name else part
                inner = inner.spaces.setdefault(part, Space(space.source, inner, full))
        self._declare(body, inner)

    def _add(self, kind: str, node: Node, statement: Node, space: Space, exported: bool) -> None:
        """Enter a declaration in its space; interfaces, enums and overloads of one name are one declaration."""
        source = space.source
        name = source.text(child_of(node, "name"))
        tables = [table for table, those in ((space.types, _TYPES), (space.values, _VALUES)) if kind in those]
        for table in tables:
            earlier = table.get(name)
            if earlier is None:
                continue
            kinds = {earlier.kind, kind}
            if kinds in ({"interface"}, {"interface", "class"}):
                # TypeScript joins them; a class is also a value.
                earlier.kind = "class" if "class" in kinds else "interface"
                if kind == "class":
                    space.values[name] = earlier
            elif kinds not in ({"enum"}, {"function"}):
                raise source.wrong(node, f"{name!r} is declared twice", "rename one of the declarations")
            earlier.nodes.append(node)
            earlier.statements.append(statement)
            earlier.exported |= exported
            return
        declaration = Declaration(name, kind, space, [node], [statement], exported)
        for table in tables:
            table[name] = declaration
        if not source.name:
            self.declarations.append(declaration)

    def _import(self, node: Node, space: Space) -> None:
        """Enter the names that an import binds."""
        text = space.source.text
        required = next((child for child in node.named_children if child.type == "import_require_clause"), None)
        if required is not None:  # import A = require("x")
            name, module = parts(required)
            space.links[text(name)] = Link(node, space.source.string(module))
            return
        source = node.child_by_field_name("source")
        clause = next((child for child in node.named_children if child.type == "import_clause"), None)
        if source is None or clause is None:
            return
        module_name = space.source.string(source)
        for child in parts(clause):
            if child.type == "identifier":  # import A from "x"
                space.links[text(child)] = Link(node, module_name, ("default",))
            elif child.type == "namespace_import":  # import * as A from "x"
                space.links[text(parts(child)[0])] = Link(node, module_name)
            else:  # import { A as B } from "x"
                for specifier in parts(child):
                    name = child_of(specifier, "name")
                    alias = specifier.child_by_field_name("alias") or name
                    space.links[text(alias)] = Link(node, module_name, (self._specified(name, space),))

    def _export(self, node: Node, statement: Node, space: Space) -> None:
        """Enter the names that an export statement exports, in each of its forms."""
        source = node.child_by_field_name("source")
        module = space.source.string(source) if source is not None else None
        clause = next((child for child in node.named_children if child.type == "export_clause"), None)
        star = next((child for child in node.named_children if child.type == "namespace_export"), None)
        if clause is not None:  # export { A as B }, with `from "x"` or not
            for specifier in parts(clause):
                local = child_of(specifier, "name")
                alias = specifier.child_by_field_name("alias") or local
                space.exports[self._specified(alias, space)] = Link(node, module, (self._specified(local, space),))
            return
        if star is not None:  # export * as A from "x"
            space.exports[self._specified(parts(star)[0], space)] = Link(node, module)
            return
        if module is not None:  # export * from "x"
            space.stars.append(Link(node, module))
            return
        if has_word(node, "namespace"):  # export as namespace A
            return
        default = has_word(node, "default")
        for child in parts(node):
            if child.type == "decorator":
                continue
            if child.type in ("identifier", "member_expression") and (default or has_word(node, "=")):
                # export default A; export = A.B
                space.exports["default"] = Link(node, None, names_in(space.source, child))
                continue
            self._statement(child, statement, space, exported=True)
            name_node = child.child_by_field_name("name")
            if default and name_node is not None:
                space.exports["default"] = Link(node, None, (space.source.text(name_node),))

    def _specified(self, node: Node, space: Space) -> str:
        """Return the name in an import or export, which may be a string."""
        return space.source.string(node) if node.type == "string" else space.source.text(node)


def names_in(source: Source, node: Node) -> tuple[str, ...]:
    """Return the names of ``a.b.c``."""
    return tuple(part.strip() for part in source.text(node).split("."))
