"""Tools and schemas as TypeScript declarations, for prompts; `reader` reads them back.

A schema is printed as the type that holds most of it. The rest is in the JSDoc comment before the type, as
tags, or as ``@schema {...}`` where there is no tag. So nothing is lost: reading the text back gives schemas with the
same values and the same annotations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolgrammar.core.json import escape, type_of, unescape
from toolgrammar.core.schema import KEYWORDS, TYPES

from ..tool import Tool
from . import jsdoc

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
# Ninety words read better as text than as a list.
_RESERVED = frozenset(
    """abstract any arguments as async await bigint boolean break case catch class const continue debugger declare
    default delete do else enum eval export extends false finally for from function get if implements import in
    infer instanceof interface is keyof let module namespace never new null number object of package private
    protected public readonly require return set static string super switch symbol this throw true try type typeof
    undefined unique unknown using var void while with yield Array ReadonlyArray Record Partial Required Readonly
    Pick Omit Exclude Extract NonNullable Date Map Set Promise RegExp URL Function String Number Boolean
    Object""".split()  # noqa: SIM905
)
_DEFINITION = re.compile(r"#/(\$defs|definitions)/([^/]+)")
_BASES = frozenset({"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"})
_SIMPLE = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}
_KINDS = frozenset(TYPES)
#: Keywords of objects only, and of arrays only: in a union of types they go with the type.
_KEYWORDS_OF = {kind: frozenset(KEYWORDS.named(types=(kind,))) for kind in ("object", "array")}
_STEP = "  "
_LINE = 100


def tools_to_typescript(tools: Iterable[Tool]) -> str:
    """Return the tools as ``declare function`` statements, after the types that they refer to.

    Args:
        tools: the tools, or a `ToolSet`.

    Law: ``tools_from_typescript(tools_to_typescript(tools))`` has the same names, descriptions and order, and schemas
    with the same values and annotations (definitions may have other names, and stand elsewhere).
    """
    printer = _Printer()
    functions = [printer.function(tool) for tool in tools]
    return "\n\n".join([*printer.declared(), *functions]) + "\n"


def schema_to_typescript(schema: Mapping[str, Any] | bool, name: str = "Answer") -> str:
    """Return a schema as an exported type of that name, the types that it refers to before it.

    Law: ``schema_from_typescript(schema_to_typescript(schema))`` has the same values and annotations.
    """
    printer = _Printer()
    own = printer.fresh(name)
    body = printer.root(schema if isinstance(schema, bool) else dict(schema), f"{name}_value")
    return "\n\n".join([*printer.declared(), printer.declaration(own, body, "export ")]) + "\n"


@dataclass(frozen=True)
class _Printed:
    """A type, and the keywords of the schema that it expresses.

    Attributes:
        text: the type.
        keywords: the schema's keywords that it expresses.
        kinds: the JSON types of its values, as far as that is known here: tags may speak of these.
        tags: further tags that it needs.
        forced: keywords whose tag would not replace what the type expresses: these go into ``@schema``.
    """

    text: str
    keywords: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    forced: frozenset[str] = frozenset()


class _Printer:
    """One text: the names that are taken in it, and the declarations made so far."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # of a definition, by its content
        self._taken: set[str] = set()
        self._functions: set[str] = set()
        self._declarations: dict[str, str] = {}

    def declared(self) -> list[str]:
        """Return the declarations of named types, in the order in which they were met."""
        return list(self._declarations.values())

    # -- tools and names ---------------------------------------------------------------------------------------

    def function(self, tool: Tool) -> str:
        """Return a tool as a function: its properties as parameters, or one parameter ``_`` for all of them."""
        identifier = _unique(tool.name if _is_name(tool.name) else _sanitised(tool.name), self._functions)
        name_tag: tuple[str, ...] = ()
        if identifier != tool.name:
            name_tag = (f"@name {tool.name if _is_plain(tool.name) else _json(tool.name)}",)
        schema = self.root(tool.parameters, f"{tool.name}_arguments")
        rest = {key: value for key, value in schema.items() if key not in ("type", "properties", "required")}
        described = {"description": tool.description} if tool.description else {}
        if _is_signature(schema):
            comment = _comment({**rest, **described}, _Printed("", kinds=frozenset({"object"}), tags=name_tag), "")
            required = schema.get("required", ())
            members = [self._member(name, sub, name in required, _STEP) for name, sub in schema["properties"].items()]
            inner = "".join(f"{member},\n" for member in members)
            return f"{comment}declare function {identifier}({chr(10) + inner if inner else ''}): unknown;"
        comment = _comment(described, _Printed("", tags=name_tag), "")
        if "$ref" in schema:
            schema = {key: value for key, value in schema.items() if key != "type"}
        return f"{comment}declare function {identifier}(_: {self._type(schema, '')}): unknown;"

    def root(self, schema: Any, name: str) -> Any:
        """Return a whole schema without its definitions, which are declared; references have the names of this text.

        A schema whose references cannot be renamed is ``{"$opaque": schema}``.

        Args:
            schema: the schema.
            name: of the type that is declared for the schema, if it refers to itself.
        """
        if not isinstance(schema, dict):
            return schema
        whole = {key: value for key, value in schema.items() if key != "$schema"}
        body = {key: value for key, value in whole.items() if key not in ("$defs", "definitions")}
        definitions: dict[str, Any] = {
            f"#/{key}/{escape(own)}": sub for key in ("$defs", "definitions") for own, sub in whole.get(key, {}).items()
        }
        used = _reachable(body, {**definitions, "#": body})
        if used - set(definitions) - {"#"} or any(key in _BASES for key in _keywords(whole)):
            # Such references, to any place or with a base URI, hold only as long as the schema stays as it is.
            return {"$opaque": whole, **({"type": "object"} if whole.get("type") == "object" else {})}
        needed = {ref: sub for ref, sub in {**definitions, "#": body}.items() if ref in used}
        renamed: dict[str, str] = {}  # the names of the references in this text
        new: list[str] = []  # those whose definition, with all that it refers to, is in no earlier schema
        for reference, sub in needed.items():
            inner = _reachable(sub, needed)
            identity = json.dumps([reference, sub, {ref: needed[ref] for ref in sorted(inner)}], sort_keys=True)
            if identity not in self._names:
                match = _DEFINITION.fullmatch(reference)
                own = unescape(match[2]) if match else name
                self._names[identity] = self.fresh(own)
                self._declarations[self._names[identity]] = ""  # its place
                new.append(reference)
            renamed[reference] = self._names[identity]
        for reference in new:
            own = renamed[reference]
            self._declarations[own] = self.declaration(own, _with_names(needed[reference], renamed))
        return {"$ref": f"#/$defs/{renamed['#']}"} if "#" in used else _with_names(body, renamed)

    def fresh(self, name: str) -> str:
        """Return a name for a type that is not taken yet."""
        return _unique(name if _is_name(name) else _sanitised(name), self._taken)

    def declaration(self, name: str, schema: Any, prefix: str = "") -> str:
        """Return a named type."""
        printed = self._expression(schema, "")
        comment = _comment(_rest(schema, printed), printed, "")
        if printed.text.startswith("{\n") and isinstance(schema, dict) and schema.get("type") == "object":
            return f"{comment}{prefix}interface {name} {printed.text}"
        return f"{comment}{prefix}type {name} = {printed.text};"

    # -- types -------------------------------------------------------------------------------------------------

    def _member(self, name: str, schema: Any, required: bool, indent: str) -> str:
        """Return ``/** ... */ name?: type``, on lines of its own."""
        printed = self._expression(schema, indent)
        # tree-sitter takes `abstract` for a modifier.
        key = name if _IDENTIFIER.fullmatch(name) and name != "abstract" else _literal(name)
        return (
            f"{_comment(_rest(schema, printed), printed, indent)}{indent}{key}{'' if required else '?'}: {printed.text}"
        )

    def _type(self, schema: Any, indent: str) -> str:
        """Return a type with its comment before it, on the same line."""
        printed = self._expression(schema, indent)
        return _comment(_rest(schema, printed), printed, None) + printed.text

    def _expression(self, schema: Any, indent: str) -> _Printed:
        """Return the type that holds most of a schema: a name, literals, a union, or one of the JSON types."""
        if schema is False:
            return _Printed("never")
        if schema is True or schema == {}:
            return _Printed("unknown")
        if "$opaque" in schema:
            return _Printed("object" if "type" in schema else "unknown", frozenset({"type"}))
        reference = schema.get("$ref")
        if isinstance(reference, str):  # a `type` beside it is said by `@schema`
            return _Printed(reference.removeprefix("#/$defs/"), frozenset({"$ref"}), forced=frozenset({"type"}))
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if (
            isinstance(values, list)
            and values
            and all(map(_is_scalar, values))
            and not ("const" in schema and "enum" in schema)
        ):
            fits = "type" not in schema or all(_fits(value, schema["type"]) for value in values)
            expressed = {"const", "enum", "type"} if fits else {"const", "enum"}
            return _Printed(
                " | ".join(map(_literal, _distinct(values))), frozenset(expressed), frozenset(map(type_of, values))
            )
        union = self._union_of(schema, indent)
        if union is not None:
            return union
        kind = schema.get("type")
        kinds = list(dict.fromkeys(kind)) if isinstance(kind, list) else [kind]
        if len(kinds) > 1:
            return self._union_of_kinds(schema, kinds, indent)
        if kinds[0] == "object":
            return self._object(schema, indent)
        if kinds[0] == "array":
            return self._array(schema, indent)
        if kinds[0] in _SIMPLE:
            tags = ("@integer",) if kinds[0] == "integer" else ()
            kind = "number" if kinds[0] == "integer" else kinds[0]
            return _Printed(_SIMPLE[kinds[0]], frozenset({"type"}), frozenset({kind}), tags)
        return _Printed("unknown", kinds=_KINDS)

    def _union_of(self, schema: dict[str, Any], indent: str) -> _Printed | None:
        """Return the type of ``anyOf``, and of ``oneOf`` where reading it back gives the same."""
        key = next((key for key in ("anyOf", "oneOf") if key in schema), None)
        if key is None or set(schema) & ({"type", "allOf", "anyOf", "oneOf"} - {key}):  # a type has no place for both
            return None
        members = schema[key]
        if len(members) < 2 or any(member in members[:i] for i, member in enumerate(members)):  # `A | A` is read as A
            return None
        tags: tuple[str, ...] = ()
        if key == "oneOf":
            kinds = [set(_kinds(member)) for member in members]
            if sum(map(len, kinds)) != len(set().union(*kinds)):  # not told apart by their type
                if not all("$ref" in member or _is_bare_object(member) for member in members if member is not True):
                    return None
                tags = ("@oneOf",)
        return _Printed(self._alternatives(members, indent), frozenset({key}), tags=tags)

    def _alternatives(self, members: list[Any], indent: str) -> str:
        parts = [self._type(member, indent) for member in members]
        # A comment before the first member would be the whole union's.
        return ("| " if parts[0].startswith("/**") else "") + " | ".join(parts)

    def _union_of_kinds(self, schema: dict[str, Any], kinds: list[str], indent: str) -> _Printed:
        """Return the union of the types of a list: ``"type": ["string", "null"] -> string | null``; keywords of objects
        and of arrays go with these."""
        if "number" in kinds and "integer" in kinds:
            kinds = [kind for kind in kinds if kind != "integer"]
        tags = ("@integer",) if "integer" in kinds else ()
        json_types = frozenset("number" if kind == "integer" else kind for kind in kinds)
        if not any(set(schema) & _KEYWORDS_OF[kind] for kind in kinds if kind in _KEYWORDS_OF):
            names = {**_SIMPLE, "object": "object", "array": "unknown[]"}
            return _Printed(" | ".join(names[kind] for kind in kinds), frozenset({"type"}), json_types, tags)
        expressed = {"type"}
        members = []
        for kind in kinds:
            own = {key for key in schema if key in _KEYWORDS_OF.get(kind, ())}
            members.append({"type": kind, **{key: schema[key] for key in own}})
            expressed |= own
        return _Printed(self._alternatives(members, indent), frozenset(expressed))

    def _object(self, schema: dict[str, Any], indent: str) -> _Printed:
        """Return the type of an object, and which keywords it expresses; the others become tags of a comment."""
        expressed = {"type"}
        properties = schema.get("properties")
        required = list(schema.get("required", ()))
        extra = schema.get("additionalProperties")
        patterns = schema.get("patternProperties", {})
        objects = frozenset({"object"})
        if not properties and not patterns and extra not in (None, False):
            expressed |= {"additionalProperties"} | ({"properties"} if "properties" in schema else set())
            value = self._type(extra, indent)
            # TypeScript takes `type T = Record<string, T>` for a circle, and the other form not.
            text = f"{{ [key: string]: {value} }}" if "$ref" in _keywords(extra) else f"Record<string, {value}>"
            return _Printed(text, frozenset(expressed), objects)
        inner = indent + _STEP
        members = [self._member(name, sub, name in required, inner) for name, sub in (properties or {}).items()]
        if properties is not None and set(required) <= set(properties):
            expressed |= {"required", "properties"}
        elif properties is not None:
            expressed.add("properties")
        # To the compiler, properties have the type that an index signature gives them.
        is_same = extra in (True, {}) or all(sub == extra for sub in (properties or {}).values())
        if properties and not patterns and extra not in (None, False) and is_same:
            # An optional property may be `undefined`, and so must what the signature gives it.
            optional = extra not in (True, {}) and not set(properties) <= set(required)
            members.append(f"{inner}[key: string]: {self._type(extra, inner)}{' | undefined' * optional}")
            expressed.add("additionalProperties")
        if not members:
            return _Printed("{}" if properties is not None else "object", frozenset(expressed), objects)
        return _Printed(
            "{\n" + "".join(f"{member};\n" for member in members) + indent + "}", frozenset(expressed), objects
        )

    def _array(self, schema: dict[str, Any], indent: str) -> _Printed:
        """Return the type of an array or tuple, and which keywords it expresses."""
        arrays = frozenset({"array"})
        items = schema.get("items", {})
        prefix = schema.get("prefixItems")
        if not isinstance(prefix, list) or not prefix:
            text = self._type(items, indent)
            bare = re.fullmatch(r"[\w$]+(?:\[\])*|Record<[^/|]*>", text)
            return _Printed(f"{text}[]" if bare else f"({text})[]", frozenset({"type", "items"}), arrays)
        least, most, count = schema.get("minItems"), schema.get("maxItems"), len(prefix)
        if least != count or not (most == count or (items is False and (most is None or most > count))):
            return _Printed("unknown[]", frozenset({"type"}), arrays)
        expressed = {"type", "prefixItems", "minItems", "maxItems"} | ({"items"} if items in (False, {}) else set())
        return _Printed(f"[{', '.join(self._type(item, indent) for item in prefix)}]", frozenset(expressed), arrays)


# -- comments --------------------------------------------------------------------------------------------------


def _rest(schema: Any, printed: _Printed) -> dict[str, Any]:
    """Return the keywords that the comment must say."""
    if not isinstance(schema, dict):
        return {}
    if "$opaque" in schema:
        return dict(schema["$opaque"])
    return {key: value for key, value in schema.items() if key not in printed.keywords}


def _comment(keywords: dict[str, Any], printed: _Printed, indent: str | None) -> str:
    """Return the comment that holds these keywords: as prose and tags, or all in ``@schema`` if these are not exact.

    Args:
        keywords: the keywords of the schema that its type does not express.
        printed: the type.
        indent: the white space before it; None: the comment stands on its line, before it.
    """
    if not keywords and not printed.tags:
        return ""
    if isinstance(keywords.get("description", ""), str):
        text = _laid_out(_prose_and_tags(keywords, printed), indent)
        if _says(text.strip(), keywords):
            return text
    return _laid_out([*printed.tags, *(["@schema " + _json(keywords)] if keywords else [])], indent)


def _prose_and_tags(keywords: dict[str, Any], printed: _Printed) -> list[str]:
    """Return the lines of a comment: the description, the tags, and ``@schema`` with keywords that have no tag."""
    description = keywords.get("description", "")
    tags = {key: _tag(key, value, printed) for key, value in keywords.items() if key != "description"}
    without_tag = {key: keywords[key] for key, tag in tags.items() if tag is None}
    return [
        *(description.split("\n") if description else ()),
        *printed.tags,
        *(tag for tag in tags.values() if tag is not None),
        *(["@schema " + _json(without_tag)] if without_tag else ()),
    ]


def _says(comment: str, keywords: dict[str, Any]) -> bool:
    """Return True if reading a comment back gives exactly these keywords."""
    try:
        doc = jsdoc.parse(comment)
    except jsdoc.JsDocError:
        return False
    read_back = {**doc.keywords, **doc.schema}
    if doc.description:
        read_back.setdefault("description", doc.description)
    return read_back == keywords and _same_types(read_back, keywords) and "*/" not in comment[3:-2]


def _tag(key: str, value: Any, printed: _Printed) -> str | None:
    """Return the tag of a keyword; None where only ``@schema`` can hold it."""
    if key == "deprecated":
        return "@deprecated" if value is True else None
    about = jsdoc.CONSTRAINTS.get(key)
    if key not in jsdoc.CONSTRAINTS or key in printed.forced or (about is not None and about not in printed.kinds):
        return None
    if key == "default":
        if printed.kinds == {"string"} and not isinstance(value, str):  # it would be read as its text
            return None
        return f"@default {_json(value)}"
    if key == "examples":
        return f"@examples {_json(value)}" if isinstance(value, list) else None
    if isinstance(value, bool):
        return f"@{key}" if value and key == "uniqueItems" else f"@{key} {json.dumps(value)}"
    if isinstance(value, (int, float)):
        return f"@{key} {json.dumps(value)}"
    return f"@{key} {value}" if isinstance(value, str) else None


def _laid_out(lines: list[str], indent: str | None) -> str:
    """Return a comment: on one line if it is short and its prose is; ``indent`` as `_comment` has it."""
    if indent is None:
        return f"/** {' '.join(lines)} */ "
    if len(lines) == 1 or (
        sum(map(len, lines)) + len(lines) < _LINE and all(line.startswith("@") for line in lines[1:])
    ):
        return f"{indent}/** {' '.join(lines)} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines) + f"{indent} */\n"


def _json(value: Any) -> str:
    """Return JSON that neither ends a comment nor begins a tag."""
    return (
        json.dumps(value, ensure_ascii=False).replace("*/", "*\\/").replace("@", "\\u0040").replace("\u2028", "\\u2028")
    )


def _same_types(first: Any, second: Any) -> bool:
    """Return True for equal values whose JSON is equal too: 1 and true are not."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _is_signature(schema: dict[str, Any]) -> bool:
    """Return True if a tool's arguments can be the parameters of a function: by name, those that are required first."""
    properties, required = schema.get("properties"), list(schema.get("required", ()))
    if not isinstance(properties, dict) or {"$ref", "$opaque", "description"} & set(schema):
        return False
    is_named = all(_is_name(key) and key != "_" for key in properties)
    first = list(properties)[: len(required)]
    return is_named and set(required) <= set(properties) and first == [key for key in properties if key in required]


# -- values and names ------------------------------------------------------------------------------------------


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and abs(value) < 1e15)


def _literal(value: Any) -> str:
    # Lone surrogates, and what TypeScript ends a line at, are escaped.
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())


def _distinct(values: list[Any]) -> list[Any]:
    """Return each value once; 1 and true are different."""
    by_text: dict[str, Any] = {}
    for value in values:
        by_text.setdefault(json.dumps(value), value)
    return list(by_text.values())


def _fits(value: Any, kinds: Any) -> bool:
    names = kinds if isinstance(kinds, list) else [kinds]
    return type_of(value) in names or ("integer" in names and type_of(value) == "number" and value == int(value))


def _kinds(schema: Any) -> frozenset[str]:
    """Return the JSON types that a schema names; all of them if it names none."""
    if not isinstance(schema, dict) or "type" not in schema:
        return _KINDS
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return frozenset("number" if name == "integer" else name for name in names)


def _is_bare_object(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object" and not set(schema) & {"enum", "const", "anyOf"}


def _is_name(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None and name not in _RESERVED


def _is_plain(name: str) -> bool:
    return re.fullmatch(r"[\w.:/-]+", name) is not None


def _sanitised(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9_$]+", "_", name).strip("_") or "tool"
    return f"{text}_" if text in _RESERVED else text if _IDENTIFIER.fullmatch(text) else f"_{text}"


def _unique(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken: ``User_2``; it is taken then."""
    chosen, number = name, 1
    while chosen in taken:
        number += 1
        chosen = f"{name}_{number}"
    taken.add(chosen)
    return chosen


# -- walking ---------------------------------------------------------------------------------------------------


def _keywords(schema: Any) -> Iterator[str]:
    for part in KEYWORDS.every_schema(schema):
        yield from part


def _reachable(schema: Any, definitions: Mapping[str, Any]) -> set[str]:
    """Return every reference in a schema, and in what it refers to."""
    reached: set[str] = set()
    waiting = [schema]
    while waiting:
        for part in KEYWORDS.every_schema(waiting.pop()):
            reference = part.get("$ref")
            if isinstance(reference, str) and reference not in reached:
                reached.add(reference)
                waiting.append(definitions.get(reference, True))
    return reached


def _with_names(schema: Any, names: Mapping[str, str]) -> Any:
    """Return the schema with its references by their names in this text."""
    return KEYWORDS.map_schemas(
        schema, lambda part: {**part, "$ref": f"#/$defs/{names[part['$ref']]}"} if "$ref" in part else part
    )
