"""Reader of structural tags: xgrammar's JSON (0.2.8), in its present and in its legacy form.

Free text is text: bytes that are not UTF-8, and control tokens that a tag does not name, are not written in it. JSON
Schemas mean what they mean everywhere else in this library, with undeclared members excluded, as in xgrammar's strict
mode.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NoReturn

from ..basics.options import OnUnsupported, Whitespace
from ..errors import GrammarError, LimitError, Place, ToolGrammarError, UnsupportedSchemaError
from ..json import escape
from ..language.least_text import LOWER_COUNTS, MAX_LEAST_TEXT, too_long
from ..language.nodes import Nodes
from ..schema.compile import CompiledSchema, compile_schema
from ..schema.read.options import SchemaOptions
from ..schema.scalars.value_syntax import Arguments, Mark, mark
from ..schema.scalars.whitespace import MAX_INDENT
from .dispatch import dispatch, free_text
from .ebnf import read_ebnf
from .expressions import (
    EMPTY_TEXT,
    Control,
    Expression,
    Literal,
    Part,
    Repeat,
    choice,
    pattern,
    sequence,
)
from .rules import ReadGrammar, Rules, fewest_chars
from .tokens import Tokens, tokens_of

#: Maximum nesting of formats.
MAX_NESTING = 100

_NAMES = r"""[^\s<>"'=]+"""


def _layouts(end: str, *forms: tuple[str, str, str, str], raw: str | None = None) -> tuple[Arguments, ...]:
    """Return layouts of arguments.

    Args:
        end: the markup that ends a value.
        forms: of each layout the markup before a name, between name and value, after a value, and between members.
        raw: the markup between the name and the value of a string, where it differs.
    """
    return tuple(
        Arguments(
            names=_NAMES,
            before_name=((before, False),),
            after_name=((between, False),),
            after_value=((after, False),),
            separator=((separator, False),) if separator else (),
            raw_end=end,
            after_name_raw=None if raw is None else ((raw, False),),
        )
        for before, between, after, separator in forms
    )


def _dsml(tag: str) -> tuple[Arguments, ...]:
    name, end = f'<{tag}parameter name="', f"</{tag}parameter>"
    forms = [(name, '" string="false">', end, separator) for separator in ("\n", "")]
    return _layouts(end, *forms, raw='" string="true">')


#: The styles of JSON Schemas that can be enforced, each in the layouts that models are trained to write, and without
#: white space. xgrammar takes other white space too.
STYLES: dict[str, tuple[Arguments, ...]] = {
    "qwen_xml": _layouts(
        "</parameter>",
        ("<parameter=", ">\n", "\n</parameter>", "\n"),
        ("<parameter=", ">", "</parameter>", "\n"),
        ("<parameter=", ">", "</parameter>", ""),
    ),
    "minimax_xml": _layouts(
        "</parameter>",
        ('<parameter name="', '">', "</parameter>", "\n"),
        ('<parameter name="', '">', "</parameter>", ""),
    ),
    "deepseek_xml": _dsml("｜DSML｜"),
    "deepseek_v4_1_xml": _dsml("｜DSML｜ "),
    "glm_xml": _layouts(
        "</arg_value>",
        ("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>", "\n"),
        ("<arg_key>", "</arg_key><arg_value>", "</arg_value>", ""),
    ),
}


#: Keywords beside which a schema says only that values are of its type.
_ANNOTATIONS = frozenset({"type", "title", "description", "$schema"})


@dataclass(frozen=True)
class _Inside:
    """The place of a format.

    Attributes:
        pointer: JSON pointer of the format.
        ends: the texts that end the innermost tag around it.
        depth: the number of formats around it.
    """

    pointer: str = ""
    ends: tuple[str, ...] = ()
    depth: int = 0

    def at(self, *keys: str | int) -> _Inside:
        """Return the place of a part of the format."""
        pointer = self.pointer + "".join(f"/{escape(str(key))}" for key in keys)
        return replace(self, pointer=pointer)

    def fail(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise an error at this location."""
        raise GrammarError(message, hint=hint, place=Place(pointer=self.pointer))


def read_structural_tag(
    tag: Any,
    *,
    whitespace: Whitespace = "flexible",
    on_unsupported: OnUnsupported = "narrow",
    controls: Collection[str] = (),
    tokens: Tokens | None = None,
) -> ReadGrammar:
    """Return the language of a structural tag.

    Args:
        tag: JSON text, or the object that it holds.
        whitespace: white space in JSON; a format may ask for less.
        on_unsupported: treatment of keywords of JSON Schemas that cannot be enforced exactly.
        controls: the names of the vocabulary's control tokens. A name inside a tag's begin, end or text means the
            token.
        tokens: returns the expression of a token; None: there is no vocabulary.

    Raises:
        GrammarError: it is malformed, or has a part that cannot be enforced; with a JSON pointer.
        LimitError: a pattern or a grammar in it is too large; with a JSON pointer.
        SchemaError: a JSON Schema in it is refused; with a JSON pointer.
    """
    if isinstance(tag, (str, bytes)):
        try:
            tag = json.loads(tag)
        except (ValueError, RecursionError) as error:
            raise GrammarError(
                f"the structural tag is not JSON: {error}", hint="pass the JSON text, or the object that it holds"
            ) from None
    if hasattr(tag, "model_dump"):
        tag = tag.model_dump(mode="json", by_alias=True)
    reader = _TagReader(whitespace, on_unsupported, controls, tokens or tokens_of(None))
    root = reader.top(tag)
    is_text = not controls and tokens is None  # else it has tokens of a vocabulary
    rules = Rules(("structural tag", root), {"root": root}, "root", json.dumps(tag) if is_text else None)
    return ReadGrammar(rules, tuple(reader.problems), tuple(reader.narrowed))


@dataclass
class _TagReader:
    whitespace: Whitespace
    on_unsupported: OnUnsupported
    controls: Collection[str]
    token: Tokens
    problems: list[ToolGrammarError] = field(default_factory=list)
    narrowed: list[UnsupportedSchemaError] = field(default_factory=list)

    def top(self, tag: Any) -> Expression:
        """Read a whole structural tag."""
        place = _Inside()
        if not isinstance(tag, Mapping):
            place.fail(f"a structural tag is an object, not {type(tag).__name__}")
        if tag.get("type", "structural_tag") != "structural_tag":
            place.fail(f"the type of a structural tag is 'structural_tag', not {tag['type']!r}")
        if "structures" in tag or "triggers" in tag:
            return self._legacy(tag, place)
        members = self._members(tag, place, ("format",), ("type",))
        return self._format(members["format"], place.at("format"))

    def _legacy(self, tag: Mapping[str, Any], place: _Inside) -> Expression:
        """Read the legacy form: begins, schemas, ends, and their triggers."""
        members = self._members(tag, place, ("structures", "triggers"), ("type", "at_least_one"))
        tags = []
        for number, item in enumerate(self._list(members["structures"], place.at("structures"))):
            inner = place.at("structures", number)
            parts = self._members(item, inner, ("begin", "end"), ("schema",))
            schema = parts.get("schema")
            if isinstance(schema, str):
                try:
                    schema = json.loads(schema)
                except (ValueError, RecursionError) as error:
                    inner.at("schema").fail(f"the schema is not JSON: {error}")
            begin, end = (self._text(parts[key], inner.at(key)) for key in ("begin", "end"))
            content = self._json(schema, inner.at("schema"), self.whitespace)
            tags.append((begin, sequence(content, self._marked(end)), inner))
        triggers = self._texts(members["triggers"], place.at("triggers"))
        at_least_one = self._flag(members, "at_least_one", place)  # SGLang's addition
        return self._triggered(tags, triggers, (), place, at_least_one=at_least_one, once=False)

    # -- values ------------------------------------------------------------------------------------------------

    def _members(
        self, value: Any, place: _Inside, required: Iterable[str], more: Iterable[str] = ()
    ) -> Mapping[str, Any]:
        """Return an object, checked: it has all ``required`` members, and no others than these and ``more``."""
        if not isinstance(value, Mapping):
            place.fail(f"expected an object, not {type(value).__name__}")
        for name in required:
            if name not in value:
                place.fail(f"the member {name!r} is missing")
        for name in value:
            if name not in required and name not in more:
                known = ", ".join([*required, *more])
                place.at(name).fail(f"the member {name!r} is not known", hint=f"known here: {known}")
        return value

    def _list(self, value: Any, place: _Inside) -> list[Any]:
        if not isinstance(value, (list, tuple)) or not value:
            place.fail("expected an array with at least one item")
        return list(value)

    def _text(self, value: Any, place: _Inside) -> str:
        if not isinstance(value, str):
            place.fail(f"expected a string, not {type(value).__name__}")
        return value

    def _texts(self, value: Any, place: _Inside, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """Return an array of strings that are not empty."""
        if may_be_empty and (value is None or list(value) == []):
            return ()
        texts = tuple(self._text(text, place.at(number)) for number, text in enumerate(self._list(value, place)))
        if "" in texts:
            place.at(texts.index("")).fail("the string is empty")
        return texts

    def _flag(self, members: Mapping[str, Any], name: str, place: _Inside, *, default: bool = False) -> bool:
        value = members.get(name, default)
        if not isinstance(value, bool):
            place.at(name).fail("expected true or false")
        return value

    def _count(self, value: Any, place: _Inside) -> int | None:
        """Return a bound; None if there is none."""
        if value is None:
            return None
        if isinstance(value, bool) or value != int(value) or value < 0:
            place.fail("expected an integer that is not negative, or null")
        return int(value)

    def _token(self, value: Any, place: _Inside) -> Control | Literal:
        """Return a token, given by its id or its text."""
        if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
            place.fail("expected the id or the text of a token")
        try:
            token = self.token(value)
        except GrammarError as error:
            place.fail(error.message, hint=error.hint)
        assert isinstance(token, (Control, Literal))
        return token

    def _tokens(self, value: Any, place: _Inside) -> list[Control | Literal]:
        return [self._token(token, place.at(number)) for number, token in enumerate(self._list(value, place))]

    def _excluded_tokens(self, members: Mapping[str, Any], place: _Inside) -> list[str]:
        """Return the texts of excluded tokens; control tokens are never written in free text."""
        if not members.get("exclude_tokens"):
            return []
        tokens = self._tokens(members["exclude_tokens"], place.at("exclude_tokens"))
        return [token.text for token in tokens if isinstance(token, Literal)]

    def _marked(self, text: str) -> Expression:
        """Return a text, in which the names of control tokens are these tokens."""
        pieces: list[Expression] = []
        for piece, is_control in mark(text, sorted(name for name in self.controls if len(name) > 2 and name in text)):
            pieces.append(Control(piece) if is_control else Literal(piece))
        return sequence(*pieces)

    # -- formats -----------------------------------------------------------------------------------------------

    def _format(self, value: Any, place: _Inside) -> Expression:
        """Return the texts of a format, read by the method of its type. ``place`` has its location, its depth, and the
        texts that end free text within it (``ends``)."""
        if place.depth > MAX_NESTING:
            place.fail(f"formats are nested more than {MAX_NESTING} levels deep", hint="flatten them")
        if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
            place.fail("a format is an object with a type", hint=f"known types: {', '.join(_FORMATS)}")
        read = _FORMATS.get(value["type"])
        if read is None:
            place.fail(f"the type {value['type']!r} is not known", hint=f"known types: {', '.join(_FORMATS)}")
        return read(self, value, replace(place, depth=place.depth + 1))

    def _const_string(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        members = self._members(value, place, ("value",), ("type",))
        return self._marked(self._text(members["value"], place.at("value")))

    def _json_schema(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        """Read a format of a JSON Schema, as JSON or as tags of a ``style``; ``max_whitespace_cnt`` may lessen the
        white space."""
        known = ("type", "style", "any_order", "max_whitespace_cnt", "excludes")
        members = self._members(value, place, ("json_schema",), known)
        if self._texts(members.get("excludes"), place.at("excludes"), may_be_empty=True):
            place.at("excludes").fail(
                "texts that no string of the JSON contains cannot be enforced",
                hint="give the strings a pattern in the schema, and leave excludes out",
            )
        most = self._count(members.get("max_whitespace_cnt"), place.at("max_whitespace_cnt"))
        spaces: dict[str, Any] = {"compact": 0, "single": 1, "flexible": MAX_INDENT + 1}
        whitespace = self.whitespace
        if most is not None and most < spaces[whitespace]:
            whitespace = "single" if most else "compact"
        any_order = self._flag(members, "any_order", place)
        style = members.get("style", "json")
        inner = place.at("json_schema")
        if style == "json":
            return self._json(members["json_schema"], inner, whitespace, any_order=any_order)
        return self._xml(members["json_schema"], inner, place.at("style"), style)

    def _qwen_xml_parameter(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        members = self._members(value, place, ("json_schema",), ("type",))
        return self._xml(members["json_schema"], place.at("json_schema"), place, "qwen_xml")

    def _json(self, schema: Any, place: _Inside, whitespace: Whitespace, *, any_order: bool = False) -> Expression:
        """Return the JSON texts of a schema. Objects have only declared members, unless it says otherwise."""
        options = SchemaOptions(
            whitespace=whitespace,
            additional_properties=False,
            property_order="any" if any_order else "schema",
            on_unsupported=self.on_unsupported,
            plain_integers=True,
        )
        return self._compiled(schema, options, place)

    def _xml(self, schema: Any, place: _Inside, style_place: _Inside, style: Any) -> Expression:
        """Return the texts of an object whose members are written as tags of a style; a style may have several layouts,
        any of which may be used, and where members have lines of their own, so may the first and the last. A plain
        string is free text, other values are JSON. An object without declared members is narrowed to the empty one."""
        layouts = STYLES.get(style) if isinstance(style, str) else None
        if layouts is None:
            style_place.fail(
                f"the style {style!r} cannot be enforced",
                hint=f"use one of json, {', '.join(STYLES)}; or the wire format of the model, with ToolSet.grammar",
            )
        kind = schema.get("type", "object") if isinstance(schema, Mapping) else "object"
        if kind == "string":
            if not _ANNOTATIONS.issuperset(schema):
                place.fail(
                    "a string without quotes, on its own and with constraints, cannot be enforced",
                    hint="use const_string, regex or or instead of json_schema",
                )
            return free_text((layouts[0].raw_end or "", *place.ends))
        if kind != "object":
            return self._json(schema, place, self.whitespace)
        if schema is None or schema is True or _ANNOTATIONS.issuperset(schema or ()):
            schema = {"type": "object", "additionalProperties": False}
            self.narrowed.append(
                UnsupportedSchemaError(
                    "tags need declared arguments: this schema has none",
                    hint="declare the properties, or use the style json",
                    place=Place(pointer=place.pointer, keyword="type"),
                    left_out="objects with members",
                )
            )
        before = len(self.narrowed), len(self.problems)
        parts = []
        for layout in layouts:
            del self.narrowed[before[0] :], self.problems[before[1] :]  # the same for each layout
            raw = layout.after_name_raw
            layout = replace(
                layout,
                before_name=self._marks(layout.before_name),
                after_name=self._marks(layout.after_name),
                after_value=self._marks(layout.after_value),
                after_name_raw=None if raw is None else self._marks(raw),
            )
            options = SchemaOptions(
                additional_properties=False, on_unsupported=self.on_unsupported, arguments=layout, plain_integers=True
            )
            part = self._compiled(schema, options, place)
            # Templates set members apart from the tags around them as from each other.
            around = choice(EMPTY_TEXT, Literal("\n")) if layout.separator else EMPTY_TEXT
            parts.append(sequence(around, part, around))
        return choice(*parts)

    def _marks(self, text: Mark) -> Mark:
        """Return markup in which the names of control tokens are these tokens."""
        return mark("".join(piece for piece, _ in text), sorted(self.controls))

    def _compiled(self, schema: Any, options: SchemaOptions, place: _Inside) -> Expression:
        """Return the texts of a JSON Schema."""
        try:
            # SGLang has no schema for a tool without parameters.
            compiled = compile_schema({} if schema is None else schema, options)
            self._check(compiled)
        except ToolGrammarError as error:
            raise _moved(error, place.pointer) from None
        self.problems += [_moved(problem, place.pointer) for problem in compiled.problems]
        self._keep_narrowed(compiled.narrowed, place)
        return Part(compiled)

    def _keep_narrowed(self, narrowed: Iterable[UnsupportedSchemaError], place: _Inside) -> None:
        """Keep what is left out of a part, with its location in the tag."""
        for problem in narrowed:
            moved = _moved(problem, place.pointer)
            assert isinstance(moved, UnsupportedSchemaError)
            self.narrowed.append(moved)

    @staticmethod
    def _check(compiled: CompiledSchema) -> None:
        """Raise an error if nothing is valid, or if a name cannot be written."""
        if compiled.is_surely_satisfiable():
            return
        nodes = Nodes()
        if nodes.is_empty(compiled.build(nodes)):
            raise compiled.unsatisfiable()
        nodes.clear()

    def _any_text(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        members = self._members(value, place, (), ("type", "excludes", "max_tokens", "max_chars"))
        excludes = self._texts(members.get("excludes"), place.at("excludes"), may_be_empty=True)
        most = self._count(members.get("max_chars"), place.at("max_chars"))
        return self._free((*excludes, *place.ends), members, place, most)

    def _any_tokens(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        members = self._members(value, place, (), ("type", "exclude_tokens", "max_tokens"))
        return self._free((*self._excluded_tokens(members, place), *place.ends), members, place, None)

    def _free(self, words: Iterable[str], members: Mapping[str, Any], place: _Inside, most: int | None) -> Expression:
        """Return free text of at most ``most`` characters (None: any number) without ``words``. A budget of tokens,
        except 0, is an error."""
        tokens = self._count(members.get("max_tokens"), place.at("max_tokens"))
        if tokens == 0:
            return EMPTY_TEXT
        if tokens is not None:
            place.at("max_tokens").fail(
                "a number of tokens cannot be enforced, only a number of characters",
                hint="use max_chars; a model of this library bounds reasoning with GenerateParams.thinking_budget",
            )
        return free_text(words, most)

    def _exclude_token(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        place.fail(
            "one token of any kind cannot be enforced, only text can",
            hint="use any_tokens, any_text with max_chars, or name the tokens in an or",
        )

    def _one_token(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        members = self._members(value, place, ("token",), ("type",))
        return self._token(members["token"], place.at("token"))

    def _grammar(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        """Read a format of an EBNF grammar, with its errors at their location in the tag."""
        members = self._members(value, place, ("grammar",), ("type",))
        inner = place.at("grammar")
        try:
            read = read_ebnf(self._text(members["grammar"], inner), tokens=self.token)
        except (GrammarError, LimitError) as error:
            where = replace(error.place, pointer=inner.pointer)
            raise type(error)(error.message, hint=error.hint, place=where) from None
        self._keep_narrowed(read.narrowed, inner)
        return Part(read.rules)

    def _regex(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        members = self._members(value, place, ("pattern",), ("type",))
        inner = place.at("pattern")
        try:
            return pattern(self._text(members["pattern"], inner))
        except (GrammarError, LimitError) as error:
            where = replace(error.place, pointer=inner.pointer)
            raise type(error)(error.message, hint=error.hint, place=where) from None

    def _elements(self, value: Mapping[str, Any], place: _Inside) -> list[Expression]:
        members = self._members(value, place, ("elements",), ("type",))
        elements = self._list(members["elements"], place.at("elements"))
        return [self._format(element, place.at("elements", number)) for number, element in enumerate(elements)]

    def _sequence(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        return self._written(sequence(*self._elements(value, place)), place)

    def _or(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        return choice(*self._elements(value, place))

    def _content(self, value: Mapping[str, Any], place: _Inside, more: tuple[str, ...] = ()) -> Expression:
        members = self._members(value, place, ("content", *more), ("type",))
        return self._format(members["content"], place.at("content"))

    def _optional(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        return Repeat(self._content(value, place), 0, 1)

    def _plus(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        return Repeat(self._content(value, place), 1, None)

    def _star(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        return Repeat(self._content(value, place), 0, None)

    def _repeat(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        content = self._content(value, place, ("min", "max"))
        least = self._count(value["min"], place.at("min")) or 0
        most = None if value["max"] == -1 else self._count(value["max"], place.at("max"))
        if most is not None and most < least:
            place.fail(f"the minimum {least} is greater than the maximum {most}", hint="use -1 for no maximum")
        return self._written(Repeat(content, least, most), place)

    @staticmethod
    def _written(expression: Expression, place: _Inside) -> Expression:
        """Return an expression that a model can write; else raise an error."""
        length = fewest_chars(expression)
        if MAX_LEAST_TEXT < length < inf:
            place.fail(too_long("each text", length), hint=LOWER_COUNTS)
        return expression

    # -- tags --------------------------------------------------------------------------------------------------

    def _tag(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        begin, rest = self._tag_parts(value, place)
        return sequence(begin if isinstance(begin, (Control, Literal)) else self._marked(begin), rest)

    def _tag_parts(self, value: Any, place: _Inside) -> tuple[str | Control | Literal, Expression]:
        """Return the begin of a tag, a string or a token, and what follows it: its content, in which free text ends at
        the tag's end, and the end."""
        members = self._members(value, place, ("begin", "content", "end"), ("type",))
        if members.get("type", "tag") != "tag":
            place.at("type").fail("the type of a tag is 'tag'")
        begin = self._begin_or_token(members["begin"], place.at("begin"))
        ends = members["end"]
        if isinstance(ends, Mapping):
            end = self._one_token(ends, place.at("end"))
            texts: tuple[str, ...] = (end.text,) if isinstance(end, Literal) else ()
        else:
            listed = [ends] if isinstance(ends, str) else self._list(ends, place.at("end"))
            texts = tuple(self._text(text, place.at("end")) for text in listed)
            end = choice(*map(self._marked, texts))
        inner = replace(place, ends=tuple(filter(None, texts)))
        return begin, sequence(self._format(members["content"], inner.at("content")), end)

    def _begin_or_token(self, value: Any, place: _Inside) -> str | Control | Literal:
        if not isinstance(value, Mapping):
            return self._text(value, place)
        token = self._one_token(value, place)
        assert isinstance(token, (Control, Literal))
        return token

    def _tag_list(self, value: Any, place: _Inside) -> list[tuple[str | Control | Literal, Expression, _Inside]]:
        """Return the tags of a list: for each its begin, its rest and its location."""
        return [
            (*self._tag_parts(tag, place.at(number)), place.at(number))
            for number, tag in enumerate(self._list(value, place))
        ]

    def _triggered_tags(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        """Read free text with tags, each of which begins with just one of the triggers, a string (see `_triggered`)."""
        known = ("type", "at_least_one", "stop_after_first", "excludes")
        members = self._members(value, place, ("triggers", "tags"), known)
        tags = []
        for begin, rest, inner in self._tag_list(members["tags"], place.at("tags")):
            if not isinstance(begin, str):
                inner.at("begin").fail(
                    "the begin of a tag with triggers must be a string", hint="use token_triggered_tags"
                )
            tags.append((begin, rest, inner))
        return self._triggered(
            tags,
            self._texts(members["triggers"], place.at("triggers")),
            self._texts(members.get("excludes"), place.at("excludes"), may_be_empty=True),
            place,
            at_least_one=self._flag(members, "at_least_one", place),
            once=self._flag(members, "stop_after_first", place),
        )

    def _triggered(
        self,
        tags: list[tuple[str, Expression, _Inside]],
        triggers: tuple[str, ...],
        excludes: tuple[str, ...],
        place: _Inside,
        *,
        at_least_one: bool,
        once: bool,
    ) -> Expression:
        """Return free text with tags, or tags alone.

        Args:
            tags: the begin, the rest and the location of each tag.
            triggers: prefixes of the begins.
            excludes: strings that free text does not contain.
            place: the location of the format.
            at_least_one: the text begins with a tag.
            once: nothing follows the first tag.
        """
        rules: list[tuple[Control | Literal, Expression]] = []
        for begin, rest, inner in tags:
            matching = [trigger for trigger in triggers if begin.startswith(trigger)]
            if len(matching) != 1:
                inner.at("begin").fail(
                    f"the begin {begin!r} starts with {len(matching)} of the triggers, not with one",
                    hint=f"triggers: {', '.join(map(repr, triggers))}",
                )
            pieces = mark(begin, sorted(name for name in self.controls if len(name) > 2 and name in begin))
            head, is_control = pieces[0]
            if is_control:
                rules.append((Control(head), sequence(self._marked(begin[len(head) :]), rest)))
            else:
                trigger = matching[0] if len(matching[0]) < len(head) else head
                rules.append((Literal(trigger), sequence(self._marked(begin[len(trigger) :]), rest)))
        whole = choice(*(sequence(self._marked(begin), rest) for begin, rest, _ in tags))
        return self._dispatched(rules, (*excludes, *place.ends), place, whole, at_least_one=at_least_one, once=once)

    def _dispatched(
        self,
        rules: list[tuple[Control | Literal, Expression]],
        words: tuple[str, ...],
        place: _Inside,
        whole: Expression,
        *,
        at_least_one: bool,
        once: bool,
    ) -> Expression:
        """Return free text without ``words`` in which triggers are followed by their parts.

        Args:
            rules: pairs of a trigger and the part after it.
            words: what free text does not contain.
            place: where errors are reported.
            whole: one tag, without text before it.
            at_least_one: begin with a tag.
            once: nothing follows the first tag.
        """
        if at_least_one and once:
            return whole
        try:
            text = dispatch(rules, not once, words)
        except GrammarError as error:
            place.fail(error.message, hint=error.hint)
        return sequence(whole, text) if at_least_one else text

    def _token_triggered_tags(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        """Read free text with tags, each of which begins with one of the trigger tokens."""
        known = ("type", "at_least_one", "stop_after_first", "exclude_tokens")
        members = self._members(value, place, ("trigger_tokens", "tags"), known)
        triggers = self._tokens(members["trigger_tokens"], place.at("trigger_tokens"))
        rules = []
        for begin, rest, inner in self._tag_list(members["tags"], place.at("tags")):
            if isinstance(begin, str):
                inner.at("begin").fail(
                    "the begin of a tag with trigger tokens must be a token", hint="use triggered_tags"
                )
            if triggers.count(begin) != 1:
                inner.at("begin").fail("the token is not one of the trigger tokens, or is repeated")
            rules.append((begin, rest))
        return self._dispatched(
            rules,
            (*self._excluded_tokens(members, place), *place.ends),
            place,
            choice(*(sequence(begin, rest) for begin, rest in rules)),
            at_least_one=self._flag(members, "at_least_one", place),
            once=self._flag(members, "stop_after_first", place),
        )

    def _tags_with_separator(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        """Read tags with a separator between them, and no other text; none, unless ``at_least_one``."""
        known = ("type", "at_least_one", "stop_after_first")
        members = self._members(value, place, ("tags", "separator"), known)
        tags = self._tag_list(members["tags"], place.at("tags"))
        one = choice(
            *(sequence(begin if not isinstance(begin, str) else self._marked(begin), rest) for begin, rest, _ in tags)
        )
        separator = self._marked(self._text(members["separator"], place.at("separator")))
        if not self._flag(members, "stop_after_first", place):
            one = sequence(one, Repeat(sequence(separator, one), 0, None))
        return one if self._flag(members, "at_least_one", place) else Repeat(one, 0, 1)

    def _pairs(self, value: Any, place: _Inside) -> list[tuple[Any, Expression]]:
        pairs = []
        for number, pair in enumerate(self._list(value, place)):
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                place.at(number).fail("expected a pair of a trigger and a format")
            pairs.append((pair[0], self._format(pair[1], place.at(number, 1))))
        return pairs

    def _dispatch(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        """Read free text in which each trigger, a string, is followed by its format. Of a trigger with control tokens
        in it, the part up to the first one (or that token) triggers; the rest belongs to what follows."""
        members = self._members(value, place, ("rules",), ("type", "loop", "excludes"))
        rules: list[tuple[Control | Literal, Expression]] = []
        for number, (trigger, part) in enumerate(self._pairs(members["rules"], place.at("rules"))):
            (text,) = self._texts([trigger], place.at("rules", number))
            (head, is_control), *rest = mark(text, sorted(name for name in self.controls if name in text))
            following = self._marked("".join(piece for piece, _ in rest))
            rules.append((Control(head) if is_control else Literal(head), sequence(following, part)))
        words = self._texts(members.get("excludes"), place.at("excludes"), may_be_empty=True)
        once = not self._flag(members, "loop", place, default=True)
        return self._dispatched(rules, words, place, EMPTY_TEXT, at_least_one=False, once=once)

    def _token_dispatch(self, value: Mapping[str, Any], place: _Inside) -> Expression:
        """Read free text in which each trigger, a token, is followed by its format."""
        members = self._members(value, place, ("rules",), ("type", "loop", "exclude_tokens"))
        rules = [
            (self._token(trigger, place.at("rules", number, 0)), part)
            for number, (trigger, part) in enumerate(self._pairs(members["rules"], place.at("rules")))
        ]
        words = tuple(self._excluded_tokens(members, place))
        once = not self._flag(members, "loop", place, default=True)
        return self._dispatched(rules, words, place, EMPTY_TEXT, at_least_one=False, once=once)


def _moved(error: ToolGrammarError, pointer: str) -> ToolGrammarError:
    """Return an error about a schema as one about the document that contains it."""
    place = replace(error.place, pointer=pointer + (error.place.pointer or ""))
    more = {"left_out": error.left_out} if isinstance(error, UnsupportedSchemaError) else {}
    return type(error)(error.message, hint=error.hint, place=place, **more)


_FORMATS: dict[str, Callable[[_TagReader, Mapping[str, Any], _Inside], Expression]] = {
    "const_string": _TagReader._const_string,
    "json_schema": _TagReader._json_schema,
    "qwen_xml_parameter": _TagReader._qwen_xml_parameter,
    "any_text": _TagReader._any_text,
    "grammar": _TagReader._grammar,
    "regex": _TagReader._regex,
    "sequence": _TagReader._sequence,
    "or": _TagReader._or,
    "optional": _TagReader._optional,
    "plus": _TagReader._plus,
    "star": _TagReader._star,
    "repeat": _TagReader._repeat,
    "tag": _TagReader._tag,
    "triggered_tags": _TagReader._triggered_tags,
    "tags_with_separator": _TagReader._tags_with_separator,
    "dispatch": _TagReader._dispatch,
    "token": _TagReader._one_token,
    "exclude_token": _TagReader._exclude_token,
    "any_tokens": _TagReader._any_tokens,
    "token_triggered_tags": _TagReader._token_triggered_tags,
    "token_dispatch": _TagReader._token_dispatch,
}
