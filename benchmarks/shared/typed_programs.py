"""Programs of calls: a grammar of well-typed ones, statement by statement, and an interpreter that is no ``exec``.

A program has statements ``name = value``, ``call(...)``, ``print(value)`` and ``return value``. A value is a call or a
name with a path of fields and indices, or a literal; arguments are such values too: calls nest, at most `MOST_NESTED`
deep and never inside of a call of the same tool. `Typed` gives the grammar of the next
statement, in which every name is bound, every field is in the schema of a tool's results, and a value of a nominal type
(``x-type``) comes from a result of this type or is a word of the request with a digit or a mark. `Interpreter` runs
these programs, and those of a larger part of Python that a model writes freely.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolgrammar.core import Grammar

#: A name that a program may bind.
NAME = r"(?!(?:return|if|for|in|is|as|or|and|not|def|del|from|pass|try|with|while|else)\b)[a-z][a-z0-9_]{0,23}"
#: Greatest number of calls inside of each other.
MOST_NESTED = 3
#: How a program begins and ends in the answer of a model.
OPENED, CLOSED = "```python\n", "```"
#: Keys of a schema that do not restrict its values.
_SAID = {"type", "title", "description", "default", "x-type", "examples"}
_SCALARS: dict[str, Callable[[], Grammar]] = {
    "integer": lambda: Grammar.from_regex(r"-?(0|[1-9]\d{0,11})"),
    "number": lambda: Grammar.from_regex(r"-?(0|[1-9]\d{0,11})(\.\d{1,6})?"),
    "boolean": lambda: Grammar.choice("True", "False"),
    "null": lambda: Grammar.literal("None"),
    "string": lambda: Grammar.from_regex(r'"[^"\\\n]{0,400}"' + r"|'[^'\\\n]{0,400}'"),
}


def inlined(schema: Any, definitions: Mapping[str, Any] | None = None, depth: int = 6) -> dict[str, Any]:
    """Return a schema without references and without null in unions; what is deeper than ``depth`` is anything."""
    if not isinstance(schema, Mapping) or depth == 0:
        return {}
    definitions = schema.get("$defs", definitions) or {}
    if "$ref" in schema:
        return inlined(definitions.get(str(schema["$ref"]).rpartition("/")[2]), definitions, depth - 1)
    options = [inlined(one, definitions, depth) for one in schema.get("anyOf", ())]
    options = [one for one in options if one.get("type") != "null"]
    if len(options) == 1:
        return options[0]
    made = {key: value for key, value in schema.items() if key not in ("$defs", "anyOf")}
    if options:
        made["anyOf"] = options
    if "properties" in made:
        made["properties"] = {key: inlined(one, definitions, depth - 1) for key, one in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in made:
            made[key] = inlined(made[key], definitions, depth - 1)
    return made


def fits(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return True if a value of a schema may be given where another one is wanted."""
    if "anyOf" in wanted:
        return any(fits(given, one) for one in wanted["anyOf"])
    if not wanted.keys() - _SAID and "type" not in wanted:
        return True
    if "x-type" in wanted:
        return given.get("x-type") == wanted["x-type"]
    kind, other = given.get("type"), wanted.get("type")
    if "enum" in wanted:
        return "enum" in given and set(map(str, given["enum"])) <= set(map(str, wanted["enum"]))
    if kind == "array" == other:
        return fits(given.get("items", {}), wanted.get("items", {}))
    return kind is not None and (kind == other or (kind, other) == ("integer", "number"))


def marked_words(request: str) -> list[str]:
    """Return the words of a request that have a digit or a mark: what a user writes as an id."""
    words = (word.strip(".,;:!?()[]\"'`") for word in request.split())
    return list(dict.fromkeys(word for word in words if re.search(r"[\d_@/#]", word)))


def _any_of(options: Sequence[Grammar | str]) -> Grammar | None:
    return Grammar.choice(*options) if options else None


class Typed:
    """The grammar of well-typed programs over some tools.

    Args:
        tools: parameters and results of each tool, as schemas that `inlined` made.
        request: what the user says.
        copied: texts are only words of the request that follow each other.
    """

    def __init__(self, tools: Mapping[str, tuple[Any, Any]], request: str, *, copied: bool = False) -> None:
        self.tools, self.copied = tools, copied
        self._words = marked_words(request)
        self._spans = list(re.finditer(r"[^\s\"'\\]+", request))
        self._request = request
        self._text_grammar = self._spanned() if copied else _SCALARS["string"]()
        self._calls: dict[tuple[str, frozenset[str]], Grammar | None] = {}
        self._values: dict[tuple[str, frozenset[str]], Grammar | None] = {}
        self._has_begun = False
        self.bound: dict[str, dict[str, Any]] = {}

    def next_statement(self, *, last: bool = False) -> Grammar:
        """Return the grammar of the next statement.

        Args:
            last: only ``return`` and the end are possible.
        """
        self._calls, self._values = {}, {}
        paths = [name + found for name, one in self.bound.items() if (found := self._path(one, {})) is not None]
        calls = {tool: call for tool in self.tools if (call := self._call(tool, frozenset())) is not None}
        ends = [call + (self._path(self.tools[tool][1], {}) or "") for tool, call in calls.items()]
        parts: list[Grammar | str] = [CLOSED] if self._has_begun or last else []
        if last:
            parts += [Grammar.sequence("return ", Grammar.choice(*paths), "\n")] if paths else []
            return Grammar.choice(*parts)
        literals = [_SCALARS[kind]() for kind in ("integer", "number", "boolean")] + [self._text_grammar]
        values = Grammar.choice(*ends, *paths, *literals)
        parts.append(Grammar.sequence(Grammar.from_regex(NAME), " = ", values, "\n"))
        parts += [call + "\n" for call in calls.values()]
        parts.append(Grammar.sequence("print(", Grammar.choice(*ends, *paths), ")\n"))
        parts.append(Grammar.sequence("return ", Grammar.choice(*ends, *paths), "\n"))
        return Grammar.choice(*parts)

    def bind(self, statement: str) -> bool:
        """Take a statement; return True if the program ends with it."""
        if statement.startswith((CLOSED, "return ")):
            return True
        (node,) = ast.parse(statement).body
        self._has_begun = True
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self.bound[node.targets[0].id] = self._type(node.value)
        return False

    def _type(self, node: ast.expr) -> dict[str, Any]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return dict(self.tools[node.func.id][1])
        if isinstance(node, ast.Name):
            return self.bound[node.id]
        if isinstance(node, ast.Attribute):
            return dict(self._type(node.value)["properties"][node.attr])
        if isinstance(node, ast.Subscript):
            inner, key = self._type(node.value), ast.literal_eval(node.slice)
            return dict(inner["properties"][key] if isinstance(key, str) else inner["items"])
        value = ast.literal_eval(node)
        kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
        return {"type": kinds[type(value)]}

    def _path(self, schema: Mapping[str, Any], wanted: Mapping[str, Any]) -> Grammar | None:
        """Return the grammar of the paths from a value to what is wanted, or None."""
        options: list[Grammar | str] = [""] if fits(schema, wanted) else []
        for key, inner in schema.get("properties", {}).items():
            found = self._path(inner, wanted)
            if found is not None:
                ways = [f'["{key}"]', f"['{key}']"] + [f".{key}"] * key.isidentifier()
                options.append(Grammar.choice(*ways) + found)
        if schema.get("type") == "array" and (found := self._path(schema.get("items", {}), wanted)) is not None:
            options.append(Grammar.from_regex(r"\[(-[1-9]|[0-9]|1[0-9])\]") + found)
        return _any_of(options)

    def _call(self, tool: str, outer: frozenset[str]) -> Grammar | None:
        """Return the grammar of the calls of a tool inside of other calls, or None: an argument has no value."""
        if tool in outer or len(outer) == MOST_NESTED:
            return None
        key = (tool, outer)
        if key not in self._calls:
            arguments = self._arguments(tool, outer | {tool})
            made = arguments and Grammar.sequence(f"{tool}(", arguments, ")")
            self._calls[key] = made and Grammar.rule("_".join([tool, *sorted(outer)]), lambda: made)
        return self._calls[key]

    def _arguments(self, tool: str, outer: frozenset[str]) -> Grammar | None:
        """Return the grammar of the arguments: by place up to some parameter, and by name after it."""
        schema = self.tools[tool][0]
        known, needed = list(schema.get("properties", {}).items()), set(schema.get("required", ()))
        values = {name: self.value(wanted, outer) for name, wanted in known}
        if any(values[name] is None for name in needed):
            return None
        made: dict[Any, Grammar] = {}

        def rest(index: int, named: bool, first: bool) -> Grammar:
            if index == len(known):
                return Grammar.literal("")
            key = (index, named, first)
            if key not in made:
                name, comma = known[index][0], "" if first else ", "
                value, options = values[name], []
                if value is not None:
                    options.append(Grammar.sequence(f"{comma}{name}=", value, rest(index + 1, True, False)))
                    if not named:
                        options.append(Grammar.sequence(comma, value, rest(index + 1, False, False)))
                if name not in needed:
                    options.append(rest(index + 1, True, first))
                made[key] = Grammar.choice(*options)
            return made[key]

        return rest(0, False, True)

    def value(self, wanted: Mapping[str, Any], outer: frozenset[str] = frozenset()) -> Grammar | None:
        """Return the grammar of the values for a parameter: literals, paths, and calls that are nested; or None.

        Args:
            wanted: the schema of the parameter.
            outer: the tools in whose calls the value is.
        """
        key = (json.dumps(wanted, sort_keys=True, default=str), outer)
        if key not in self._values:
            options: list[Grammar | str] = [one for one in [self._literal(wanted, outer)] if one is not None]
            for name, schema in self.bound.items():
                if (found := self._path(schema, wanted)) is not None:
                    options.append(name + found)
            for tool, (_, results) in self.tools.items():
                if results and (found := self._path(results, wanted)) is not None:
                    call = self._call(tool, outer)
                    options += [] if call is None else [call + found]
            self._values[key] = _any_of(options)
        return self._values[key]

    def _literal(self, wanted: Mapping[str, Any], outer: frozenset[str]) -> Grammar | None:
        if "anyOf" in wanted:
            return _any_of([one for each in wanted["anyOf"] if (one := self._literal(each, outer)) is not None])
        kind = wanted.get("type")
        if "x-type" in wanted:
            if kind == "string":
                return _any_of([mark + word + mark for word in self._words for mark in "\"'" if mark not in word])
            return _any_of([word for word in self._words if re.fullmatch(r"-?(0|[1-9]\d{0,11})", word)])
        if kind == "array" and "items" in wanted:
            one = self.value(wanted["items"], outer)
            some = "" if one is None else one + Grammar.repeat(Grammar.sequence(", ", one), 0, 7)
            return Grammar.sequence("[", Grammar.choice("", some), "]")
        if kind == "string" and "enum" not in wanted and (self.copied or not wanted.keys() - _SAID):
            return self._text_grammar
        if kind in _SCALARS and not wanted.keys() - _SAID:
            return _SCALARS[kind]()
        return Grammar.python_literal({key: one for key, one in wanted.items() if key not in ("default", "title")})

    def _spanned(self) -> Grammar:
        """Return the grammar of the texts that the request has."""
        spans, request = self._spans, self._request

        def after(index: int) -> Grammar:
            word = spans[index][0]
            options: list[Grammar | str] = [""]
            if index + 1 < len(spans):
                between = request[spans[index].end() : spans[index + 1].start()]
                if between.isspace() and "\n" not in between:
                    options.append(Grammar.sequence(between, rules[index + 1]))
            bare = word.rstrip(".,;:!?)")
            whole = Grammar.sequence(word, Grammar.choice(*options))
            return Grammar.choice(whole, bare) if bare and bare != word else whole

        rules = [
            Grammar.rule(f"word{index}", lambda index=index: after(index))  # type: ignore[misc]
            for index in range(len(spans))
        ]
        starts = Grammar.choice(*rules)
        return Grammar.choice(*(Grammar.sequence(mark, starts, mark) for mark in "\"'"))


# -- running -------------------------------------------------------------------------------------------------------


class ProgramError(Exception):
    """A program cannot go on: its text is no program of the language, or a call failed."""


class _Returned(Exception):
    """``return``, with its value."""


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.Not: operator.not_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda one, of: one in of, ast.NotIn: lambda one, of: one not in of,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len, "min": min, "max": max, "sum": sum, "sorted": sorted, "str": str, "int": int, "float": float,
    "bool": bool, "list": list, "abs": abs, "round": round, "any": any, "all": all, "enumerate": enumerate,
    "next": next,
}  # fmt: skip
_METHODS: dict[type, set[str]] = {
    str: {"lower", "upper", "strip", "split", "startswith", "endswith", "replace", "join", "format", "title"},
    dict: {"get", "keys", "values", "items"},
    list: {"append", "index", "count"},
}


class Interpreter:
    """Runs a program: no ``exec``, no attribute of Python's own but a few methods of texts, lists and objects.

    Args:
        call: runs a call of a tool, by its name and its arguments; raises an error if it fails.
        parameters: the names of the parameters of each tool.
        most_calls: a program with more calls fails.
        most_steps: a program with more steps of evaluation fails.
    """

    def __init__(
        self,
        call: Callable[[str, dict[str, Any]], Any],
        parameters: Mapping[str, Sequence[str]],
        *,
        most_calls: int = 20,
        most_steps: int = 5_000,
    ) -> None:
        self._call, self._parameters = call, parameters
        self._calls, self._steps = most_calls, most_steps
        self.names: dict[str, Any] = {}
        self.printed: list[Any] = []

    def run(self, text: str) -> Any:
        """Return what a program returns; else what it printed last, or the value of its last statement.

        Raises:
            ProgramError: it is not in the language, or failed.
        """
        value, self.printed = None, []
        try:
            for node in ast.parse(text).body:
                value = self._do(node)
        except _Returned as returned:
            return returned.args[0]
        except ProgramError:
            raise
        except Exception as error:  # what a wrong program raises: a field that is not there, a wrong operand
            raise ProgramError(f"{type(error).__name__}: {error}") from None
        if not self.printed:
            return value
        return self.printed[0] if len(self.printed) == 1 else "\n".join(map(shown, self.printed))

    def _do(self, node: ast.stmt) -> Any:
        if isinstance(node, ast.Expr):
            return self._value(node.value)
        if isinstance(node, ast.Return):
            raise _Returned(None if node.value is None else self._value(node.value))
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value = self._value(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._bind(target, value)
            return None
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.names[node.target.id] = _OPERATORS[type(node.op)](self.names[node.target.id], self._value(node.value))
            return None
        if isinstance(node, ast.If):
            for each in node.body if self._value(node.test) else node.orelse:
                self._do(each)
            return None
        if isinstance(node, ast.For):
            for item in self._value(node.iter):
                self._bind(node.target, item)
                for each in node.body:
                    self._do(each)
            return None
        if isinstance(node, ast.Pass):
            return None
        raise ProgramError(f"{type(node).__name__} is not in the language")

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one, each in zip(target.elts, value, strict=True):
                self._bind(one, each)
        else:
            raise ProgramError("only names are assigned")

    def _value(self, node: ast.expr) -> Any:
        self._steps -= 1
        if self._steps < 0:
            raise ProgramError("the program has too many steps")
        known = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if known is None:
            raise ProgramError(f"{type(node).__name__} is not in the language")
        return known(node)

    def _of_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _of_name(self, node: ast.Name) -> Any:
        return self.names[node.id]

    def _of_attribute(self, node: ast.Attribute) -> Any:
        return self._value(node.value)[node.attr]

    def _of_subscript(self, node: ast.Subscript) -> Any:
        found = self._value(node.value)
        if isinstance(node.slice, ast.Slice):
            ends = (node.slice.lower, node.slice.upper, node.slice.step)
            return found[slice(*(None if one is None else self._value(one) for one in ends))]
        return found[self._value(node.slice)]

    def _of_list(self, node: ast.List | ast.Tuple) -> Any:
        return [self._value(one) for one in node.elts]

    _of_tuple = _of_list

    def _of_dict(self, node: ast.Dict) -> Any:
        return {
            self._value(key): self._value(one)
            for key, one in zip(node.keys, node.values, strict=True)
            if key is not None
        }

    def _of_binop(self, node: ast.BinOp) -> Any:
        one, other = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.Mult) and not (isinstance(one, (int, float)) and isinstance(other, (int, float))):
            raise ProgramError("only numbers are multiplied")  # "a" * 10**9
        return _OPERATORS[type(node.op)](one, other)

    def _of_unaryop(self, node: ast.UnaryOp) -> Any:
        return _OPERATORS[type(node.op)](self._value(node.operand))

    def _of_boolop(self, node: ast.BoolOp) -> Any:
        is_and, value = isinstance(node.op, ast.And), None
        for one in node.values:
            value = self._value(one)
            if bool(value) != is_and:
                break
        return value

    def _of_compare(self, node: ast.Compare) -> Any:
        left = self._value(node.left)
        for kind, right in zip(node.ops, map(self._value, node.comparators), strict=True):
            if not _OPERATORS[type(kind)](left, right):
                return False
            left = right
        return True

    def _of_ifexp(self, node: ast.IfExp) -> Any:
        return self._value(node.body if self._value(node.test) else node.orelse)

    def _of_joinedstr(self, node: ast.JoinedStr) -> Any:
        return "".join(str(self._value(one)) for one in node.values)

    def _of_formattedvalue(self, node: ast.FormattedValue) -> Any:
        spec = "" if node.format_spec is None else self._value(node.format_spec)
        if re.search(r"\d{3}", spec):
            raise ProgramError("the format is too wide")
        return format(self._value(node.value), spec)

    def _of_listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        return list(self._comprehended(node.elt, node.generators))

    def _of_generatorexp(self, node: ast.GeneratorExp) -> Any:
        return iter(self._of_listcomp(node))

    def _comprehended(self, what: ast.expr, loops: Sequence[ast.comprehension]) -> Iterator[Any]:
        if not loops:
            yield self._value(what)
            return
        for item in self._value(loops[0].iter):
            self._bind(loops[0].target, item)
            if all(self._value(test) for test in loops[0].ifs):
                yield from self._comprehended(what, loops[1:])

    def _of_lambda(self, node: ast.Lambda) -> Any:
        names = [one.arg for one in node.args.args]

        def call(*given: Any) -> Any:
            self.names.update(zip(names, given, strict=True))
            return self._value(node.body)

        return call

    def _of_call(self, node: ast.Call) -> Any:
        if any(isinstance(one, ast.Starred) for one in node.args) or any(one.arg is None for one in node.keywords):
            raise ProgramError("starred arguments are not in the language")
        given = [self._value(one) for one in node.args]
        named = {str(one.arg): self._value(one.value) for one in node.keywords}
        if isinstance(node.func, ast.Attribute):
            owner, name = self._value(node.func.value), node.func.attr
            if name not in _METHODS.get(type(owner), ()):
                raise ProgramError(f"{type(owner).__name__} has no method {name!r}")
            return getattr(owner, name)(*given, **named)
        if not isinstance(node.func, ast.Name):
            raise ProgramError("only names are called")
        name = node.func.id
        if name in self._parameters:
            known = self._parameters[name]
            if len(given) > len(known) or set(known[: len(given)]) & set(named):
                raise ProgramError(f"wrong arguments for {name}")
            self._calls -= 1
            if self._calls < 0:
                raise ProgramError("the program has too many calls")
            return self._call(name, {**dict(zip(known, given, strict=False)), **named})
        if name == "print":
            self.printed.append(given[0] if len(given) == 1 else " ".join(map(shown, given)))
            return None
        if name not in _FUNCTIONS:
            raise ProgramError(f"there is no function {name!r}")
        return _FUNCTIONS[name](*given, **named)


def shown(value: Any) -> str:
    """Return a value as an answer: a text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


# -- what a model reads --------------------------------------------------------------------------------------------


def stubs(tools: Mapping[str, tuple[Any, Any]], said: Mapping[str, str]) -> str:
    """Return tools as Python: a line for each class of results, and for each function, without ``def``.

    Args:
        tools: parameters and results of each tool.
        said: what each tool does.
    """
    classes: dict[str, str] = {}

    def named(schema: Mapping[str, Any], name: str) -> str:
        if "x-type" in schema:
            return str(schema["x-type"])
        if "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema['enum']))}]"
        if "anyOf" in schema:
            return " | ".join(named(one, name) for one in schema["anyOf"])
        kind = schema.get("type")
        if kind == "array":
            return f"list[{named(schema.get('items', {}), name)}]"
        if kind == "object" and schema.get("properties"):
            title = str(schema.get("title", name))
            title = title if title.isidentifier() else name
            fields = "; ".join(f"{key}: {named(one, name + key.title())}" for key, one in schema["properties"].items())
            classes.setdefault(title, f"class {title}: {fields}")
            return title
        plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict"}
        return plain.get(str(kind), "Any")

    lines = []
    for tool, (parameters, results) in tools.items():
        needed = parameters.get("required", ())
        listed = ", ".join(
            f"{key}: {named(one, key.title())}{'' if key in needed else ' = ...'}"
            for key, one in parameters.get("properties", {}).items()
        )
        given = named(results, "".join(part.title() for part in tool.split("_"))) if results else "Any"
        lines.append(f"{tool}({listed}) -> {given}  # {said.get(tool, '')}")
    return "\n".join([*classes.values(), *lines])
