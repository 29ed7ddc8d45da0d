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
from typing import Any, NamedTuple, TypeVar

from ..basics.options import OnUnsupported, Whitespace
from ..errors import GrammarError, LimitError, Place, ToolGrammarError, UnsupportedSchemaError
from ..language.least_text import LOWER_COUNTS, MAX_LEAST_TEXT, too_long
from ..language.nodes import Nodes
from ..schema.compile import CompiledSchema, compile_schema
from ..schema.read.options import SchemaOptions
from ..schema.scalars.value_syntax import Arguments, Mark, mark
from ..schema.scalars.whitespace import MAX_INDENT
from .dispatch import free_text
from .ebnf import read_ebnf
from .expressions import EMPTY_TEXT, Control, Expression, Literal, Part, Repeat, choice, pattern, sequence
from .rules import ReadGrammar, Rules, fewest_chars
from .tag_members import Inside, Members, relocated, tagged_text, text_of
from .tag_styles import STYLES
from .tokens import Tokens, tokens_of

_Read = TypeVar("_Read")

#: Maximum nesting of formats.
MAX_NESTING = 100

#: Keywords beside which a schema says only that values are of its type.
_ANNOTATIONS = frozenset({"type", "title", "description", "$schema"})


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


class _Tag(NamedTuple):
    """A tag.

    Attributes:
        begin: a string, or a token.
        rest: what follows the begin: the content and the end.
        place: the location of the tag.
    """

    begin: str | Control | Literal
    rest: Expression
    place: Inside


@dataclass
class _TagReader:
    """Reader of one structural tag. A method for each type of format reads it to an expression.

    Attributes:
        whitespace: white space in JSON; a format may ask for less.
        on_unsupported: treatment of keywords of JSON Schemas that cannot be enforced exactly.
        controls: the names of the vocabulary's control tokens.
        token: returns the expression of a token.
        problems: the keywords of JSON Schemas that are left out.
        narrowed: the parts of which some valid texts are left out.
    """

    whitespace: Whitespace
    on_unsupported: OnUnsupported
    controls: Collection[str]
    token: Tokens
    problems: list[ToolGrammarError] = field(default_factory=list)
    narrowed: list[UnsupportedSchemaError] = field(default_factory=list)

    def top(self, tag: Any) -> Expression:
        """Read a whole structural tag."""
        place = Inside()
        if not isinstance(tag, Mapping):
            place.fail(f"a structural tag is an object, not {type(tag).__name__}")
        if tag.get("type", "structural_tag") != "structural_tag":
            place.fail(f"the type of a structural tag is 'structural_tag', not {tag['type']!r}")
        if "structures" in tag or "triggers" in tag:
            return self._legacy(tag, place)
        members = Members.of(tag, place, ("format",), ("type",))
        return self._format(*members.get("format"))

    def _legacy(self, tag: Mapping[str, Any], place: Inside) -> Expression:
        """Read the legacy form: begins, schemas, ends, and their triggers."""
        members = Members.of(tag, place, ("structures", "triggers"), ("type", "at_least_one"))
        tags = []
        for item, inner in members.items("structures"):
            parts = Members.of(item, inner, ("begin", "end"), ("schema",))
            schema, schema_place = parts.get("schema")
            if isinstance(schema, str):
                try:
                    schema = json.loads(schema)
                except (ValueError, RecursionError) as error:
                    schema_place.fail(f"the schema is not JSON: {error}")
            begin, end = parts.text("begin"), parts.text("end")
            content = self._json(schema, schema_place, self.whitespace)
            tags.append((begin, sequence(content, self._marked(end)), inner))
        triggers = members.texts("triggers")
        at_least_one = members.flag("at_least_one")  # SGLang's addition
        return self._triggered(tags, triggers, (), place, at_least_one=at_least_one, once=False)

    # -- values ------------------------------------------------------------------------------------------------

    def _token(self, value: Any, place: Inside) -> Control | Literal:
        """Return a token, given by its id or its text."""
        if isinstance(value, bool) or not isinstance(value, (int, str)) or value == "":
            place.fail("expected the id or the text of a token")
        try:
            token = self.token(value)
        except GrammarError as error:
            place.fail(error.message, hint=error.hint)
        assert isinstance(token, (Control, Literal))
        return token

    def _tokens(self, members: Members, name: str) -> list[Control | Literal]:
        """Return the tokens of an array."""
        return [self._token(token, place) for token, place in members.items(name)]

    def _excluded_tokens(self, members: Members) -> list[str]:
        """Return the texts of excluded tokens; control tokens are never written in free text."""
        if not members.values.get("exclude_tokens"):
            return []
        return [token.text for token in self._tokens(members, "exclude_tokens") if isinstance(token, Literal)]

    def _marked(self, text: str) -> Expression:
        """Return a text, in which the names of control tokens are these tokens."""
        return sequence(*(Control(piece) if is_control else Literal(piece) for piece, is_control in self._pieces(text)))

    def _pieces(self, text: str) -> Mark:
        """Return the pieces of a text, each with whether it is the name of a control token."""
        return mark(text, sorted(name for name in self.controls if len(name) > 2 and name in text))

    # -- formats -----------------------------------------------------------------------------------------------

    def _format(self, value: Any, place: Inside) -> Expression:
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

    def _const_string(self, value: Mapping[str, Any], place: Inside) -> Expression:
        members = Members.of(value, place, ("value",), ("type",))
        return self._marked(members.text("value"))

    def _json_schema(self, value: Mapping[str, Any], place: Inside) -> Expression:
        """Read a format of a JSON Schema, as JSON or as tags of a ``style``; ``max_whitespace_cnt`` may lessen the
        white space."""
        known = ("type", "style", "any_order", "max_whitespace_cnt", "excludes")
        members = Members.of(value, place, ("json_schema",), known)
        if members.texts("excludes", may_be_empty=True):
            place.at("excludes").fail(
                "texts that no string of the JSON contains cannot be enforced",
                hint="give the strings a pattern in the schema, and leave excludes out",
            )
        most = members.count("max_whitespace_cnt")
        longest: dict[str, Any] = {"compact": 0, "single": 1, "flexible": MAX_INDENT + 1}
        whitespace = self.whitespace
        if most is not None and most < longest[whitespace]:
            whitespace = "single" if most else "compact"
        any_order = members.flag("any_order")
        schema, inner = members.get("json_schema")
        style = members.values.get("style", "json")
        if style == "json":
            return self._json(schema, inner, whitespace, any_order=any_order)
        return self._xml(schema, inner, place.at("style"), style)

    def _qwen_xml_parameter(self, value: Mapping[str, Any], place: Inside) -> Expression:
        members = Members.of(value, place, ("json_schema",), ("type",))
        return self._xml(*members.get("json_schema"), place, "qwen_xml")

    def _json(self, schema: Any, place: Inside, whitespace: Whitespace, *, any_order: bool = False) -> Expression:
        """Return the JSON texts of a schema. Objects have only declared members, unless it says otherwise."""
        options = SchemaOptions(
            whitespace=whitespace,
            additional_properties=False,
            property_order="any" if any_order else "schema",
            on_unsupported=self.on_unsupported,
            plain_integers=True,
        )
        return self._compiled(schema, options, place)

    def _xml(self, schema: Any, place: Inside, style_place: Inside, style: Any) -> Expression:
        """Return the texts of a schema in a style: an object has its members as tags, in any layout of the style; a
        string is free text; other values are JSON.

        Args:
            schema: the schema.
            place: its location.
            style_place: the location of the style.
            style: the name of the style, not checked yet.
        """
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
        if schema is None or schema is True or _ANNOTATIONS.issuperset(schema or ()):  # only the empty object
            schema = {"type": "object", "additionalProperties": False}
            self.narrowed.append(
                UnsupportedSchemaError(
                    "tags need declared arguments: this schema has none",
                    hint="declare the properties, or use the style json",
                    place=Place(pointer=place.pointer, keyword="type"),
                    left_out="objects with members",
                )
            )
        narrowed, problems = len(self.narrowed), len(self.problems)
        parts = []
        for layout in layouts:
            del self.narrowed[narrowed:], self.problems[problems:]  # they are the same for each layout
            parts.append(self._in_layout(schema, layout, place))
        return choice(*parts)

    def _in_layout(self, schema: Any, layout: Arguments, place: Inside) -> Expression:
        """Return the texts of an object whose members are written as tags of one layout."""
        raw = layout.after_name_raw
        arguments = replace(
            layout,
            before_name=self._marks(layout.before_name),
            after_name=self._marks(layout.after_name),
            after_value=self._marks(layout.after_value),
            after_name_raw=None if raw is None else self._marks(raw),
        )
        options = SchemaOptions(
            additional_properties=False, on_unsupported=self.on_unsupported, arguments=arguments, plain_integers=True
        )
        # In templates, the first and the last member are set apart from the tags around them as from each other.
        around = choice(EMPTY_TEXT, Literal("\n")) if layout.separator else EMPTY_TEXT
        return sequence(around, self._compiled(schema, options, place), around)

    def _marks(self, text: Mark) -> Mark:
        """Return markup in which the names of control tokens are these tokens."""
        return mark("".join(piece for piece, _ in text), sorted(self.controls))

    def _compiled(self, schema: Any, options: SchemaOptions, place: Inside) -> Expression:
        """Return the texts of a JSON Schema."""
        try:
            # SGLang has no schema for a tool without parameters.
            compiled = compile_schema({} if schema is None else schema, options)
            self._check_satisfiable(compiled)
        except ToolGrammarError as error:
            raise relocated(error, place.pointer) from None
        self.problems += [relocated(problem, place.pointer) for problem in compiled.problems]
        self._keep_narrowed(compiled.narrowed, place)
        return Part(compiled)

    def _keep_narrowed(self, narrowed: Iterable[UnsupportedSchemaError], place: Inside) -> None:
        """Keep what is left out of a part, with its location in the tag."""
        for problem in narrowed:
            moved = relocated(problem, place.pointer)
            assert isinstance(moved, UnsupportedSchemaError)
            self.narrowed.append(moved)

    @staticmethod
    def _check_satisfiable(compiled: CompiledSchema) -> None:
        """Raise an error if nothing is valid, or if a name cannot be written."""
        if compiled.is_surely_satisfiable():
            return
        nodes = Nodes()
        if nodes.is_empty(compiled.build(nodes)):
            raise compiled.unsatisfiable()
        nodes.clear()

    def _any_text(self, value: Mapping[str, Any], place: Inside) -> Expression:
        members = Members.of(value, place, (), ("type", "excludes", "max_tokens", "max_chars"))
        excludes = members.texts("excludes", may_be_empty=True)
        most = members.count("max_chars")
        return self._free((*excludes, *place.ends), members, most)

    def _any_tokens(self, value: Mapping[str, Any], place: Inside) -> Expression:
        members = Members.of(value, place, (), ("type", "exclude_tokens", "max_tokens"))
        return self._free((*self._excluded_tokens(members), *place.ends), members, None)

    def _free(self, words: Iterable[str], members: Members, most: int | None) -> Expression:
        """Return free text of at most ``most`` characters (None: any number) without ``words``. A budget of tokens,
        except 0, is an error."""
        tokens = members.count("max_tokens")
        if tokens == 0:
            return EMPTY_TEXT
        if tokens is not None:
            members.place.at("max_tokens").fail(
                "a number of tokens cannot be enforced, only a number of characters",
                hint="use max_chars; a model of this library bounds reasoning with GenerateParams.thinking_budget",
            )
        return free_text(words, most)

    def _exclude_token(self, value: Mapping[str, Any], place: Inside) -> Expression:
        place.fail(
            "one token of any kind cannot be enforced, only text can",
            hint="use any_tokens, any_text with max_chars, or name the tokens in an or",
        )

    def _one_token(self, value: Mapping[str, Any], place: Inside) -> Expression:
        members = Members.of(value, place, ("token",), ("type",))
        return self._token(*members.get("token"))

    def _grammar(self, value: Mapping[str, Any], place: Inside) -> Expression:
        members = Members.of(value, place, ("grammar",), ("type",))
        read = self._in_place(members, "grammar", lambda text: read_ebnf(text, tokens=self.token))
        self._keep_narrowed(read.narrowed, place.at("grammar"))
        return Part(read.rules)

    def _regex(self, value: Mapping[str, Any], place: Inside) -> Expression:
        return self._in_place(Members.of(value, place, ("pattern",), ("type",)), "pattern", pattern)

    @staticmethod
    def _in_place(members: Members, name: str, read: Callable[[str], _Read]) -> _Read:
        """Return what a text is read as, with its errors at their location in the tag."""
        text = members.text(name)
        try:
            return read(text)
        except (GrammarError, LimitError) as error:
            where = replace(error.place, pointer=members.place.at(name).pointer)
            raise type(error)(error.message, hint=error.hint, place=where) from None

    def _elements(self, value: Mapping[str, Any], place: Inside) -> list[Expression]:
        members = Members.of(value, place, ("elements",), ("type",))
        return [self._format(element, inner) for element, inner in members.items("elements")]

    def _sequence(self, value: Mapping[str, Any], place: Inside) -> Expression:
        return self._written(sequence(*self._elements(value, place)), place)

    def _or(self, value: Mapping[str, Any], place: Inside) -> Expression:
        return choice(*self._elements(value, place))

    def _content(self, value: Mapping[str, Any], place: Inside) -> Expression:
        return self._format(*Members.of(value, place, ("content",), ("type",)).get("content"))

    def _repeat(self, value: Mapping[str, Any], place: Inside) -> Expression:
        members = Members.of(value, place, ("content", "min", "max"), ("type",))
        content = self._format(*members.get("content"))
        least = members.count("min") or 0
        most = None if value["max"] == -1 else members.count("max")
        if most is not None and most < least:
            place.fail(f"the minimum {least} is greater than the maximum {most}", hint="use -1 for no maximum")
        return self._written(Repeat(content, least, most), place)

    @staticmethod
    def _written(expression: Expression, place: Inside) -> Expression:
        """Return an expression that a model can write; else raise an error."""
        length = fewest_chars(expression)
        if MAX_LEAST_TEXT < length < inf:
            place.fail(too_long("each text", length), hint=LOWER_COUNTS)
        return expression

    # -- tags --------------------------------------------------------------------------------------------------

    def _tag(self, value: Mapping[str, Any], place: Inside) -> Expression:
        return self._whole(self._tag_parts(value, place))

    def _whole(self, tag: _Tag) -> Expression:
        """Return the texts of a tag."""
        begin = self._marked(tag.begin) if isinstance(tag.begin, str) else tag.begin
        return sequence(begin, tag.rest)

    def _tag_parts(self, value: Any, place: Inside) -> _Tag:
        """Read a tag. Free text in its content ends at the tag's end."""
        members = Members.of(value, place, ("begin", "content", "end"), ("type",))
        if members.values.get("type", "tag") != "tag":
            place.at("type").fail("the type of a tag is 'tag'")
        begin = self._begin_or_token(*members.get("begin"))
        ends, at_end = members.get("end")
        if isinstance(ends, Mapping):
            end = self._one_token(ends, at_end)
            texts: tuple[str, ...] = (end.text,) if isinstance(end, Literal) else ()
        else:
            listed = [ends] if isinstance(ends, str) else [each for each, _ in members.items("end")]
            texts = tuple(text_of(text, at_end) for text in listed)
            end = choice(*map(self._marked, texts))
        inner = replace(place, ends=tuple(filter(None, texts)))
        return _Tag(begin, sequence(self._format(value["content"], inner.at("content")), end), place)

    def _begin_or_token(self, value: Any, place: Inside) -> str | Control | Literal:
        """Return the begin of a tag: a string, or the token of a format ``token``."""
        if not isinstance(value, Mapping):
            return text_of(value, place)
        token = self._one_token(value, place)
        assert isinstance(token, (Control, Literal))
        return token

    def _tag_list(self, members: Members) -> list[_Tag]:
        """Return the tags of an object."""
        return [self._tag_parts(tag, place) for tag, place in members.items("tags")]

    def _triggered_tags(self, value: Mapping[str, Any], place: Inside) -> Expression:
        """Read free text with tags whose begin is a string, and starts with just one of the triggers (`_triggered`)."""
        known = ("type", "at_least_one", "stop_after_first", "excludes")
        members = Members.of(value, place, ("triggers", "tags"), known)
        tags = []
        for begin, rest, inner in self._tag_list(members):
            if not isinstance(begin, str):
                inner.at("begin").fail(
                    "the begin of a tag with triggers must be a string", hint="use token_triggered_tags"
                )
            tags.append((begin, rest, inner))
        return self._triggered(
            tags,
            members.texts("triggers"),
            members.texts("excludes", may_be_empty=True),
            place,
            at_least_one=members.flag("at_least_one"),
            once=members.flag("stop_after_first"),
        )

    def _triggered(
        self,
        tags: list[tuple[str, Expression, Inside]],
        triggers: tuple[str, ...],
        excludes: tuple[str, ...],
        place: Inside,
        *,
        at_least_one: bool,
        once: bool,
    ) -> Expression:
        """Return free text with tags, or tags alone.

        Args:
            tags: of each tag the begin, what follows the begin, and the location.
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
            # What is looked for in free text is the trigger; but if the begin has a control token, no more than that
            # token, or the text before it.
            head, is_control = self._pieces(begin)[0]
            if is_control:
                rules.append((Control(head), sequence(self._marked(begin[len(head) :]), rest)))
            else:
                trigger = matching[0] if len(matching[0]) < len(head) else head
                rules.append((Literal(trigger), sequence(self._marked(begin[len(trigger) :]), rest)))
        whole = choice(*(sequence(self._marked(begin), rest) for begin, rest, _ in tags))
        return tagged_text(rules, (*excludes, *place.ends), place, whole, at_least_one=at_least_one, once=once)

    def _token_triggered_tags(self, value: Mapping[str, Any], place: Inside) -> Expression:
        """Read free text with tags, each of which begins with one of the trigger tokens."""
        known = ("type", "at_least_one", "stop_after_first", "exclude_tokens")
        members = Members.of(value, place, ("trigger_tokens", "tags"), known)
        triggers = self._tokens(members, "trigger_tokens")
        rules = []
        for begin, rest, inner in self._tag_list(members):
            if isinstance(begin, str):
                inner.at("begin").fail(
                    "the begin of a tag with trigger tokens must be a token", hint="use triggered_tags"
                )
            if triggers.count(begin) != 1:
                inner.at("begin").fail("the token is not one of the trigger tokens, or is repeated")
            rules.append((begin, rest))
        return tagged_text(
            rules,
            (*self._excluded_tokens(members), *place.ends),
            place,
            choice(*(sequence(begin, rest) for begin, rest in rules)),
            at_least_one=members.flag("at_least_one"),
            once=members.flag("stop_after_first"),
        )

    def _tags_with_separator(self, value: Mapping[str, Any], place: Inside) -> Expression:
        """Read tags with a separator between them, and no other text; none, unless ``at_least_one``."""
        known = ("type", "at_least_one", "stop_after_first")
        members = Members.of(value, place, ("tags", "separator"), known)
        tags = self._tag_list(members)
        one = choice(*map(self._whole, tags))
        separator = self._marked(members.text("separator"))
        if not members.flag("stop_after_first"):
            one = sequence(one, Repeat(sequence(separator, one), 0, None))
        return one if members.flag("at_least_one") else Repeat(one, 0, 1)

    def _pairs(self, members: Members) -> list[tuple[Any, Inside, Expression]]:
        """Return the rules of an object: for each its trigger, the location of the rule, and its format."""
        pairs = []
        for pair, place in members.items("rules"):
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                place.fail("expected a pair of a trigger and a format")
            pairs.append((pair[0], place, self._format(pair[1], place.at(1))))
        return pairs

    def _dispatch(self, value: Mapping[str, Any], place: Inside) -> Expression:
        """Read free text in which each trigger, a string, is followed by its format. Of a trigger with control tokens
        in it, the part up to the first one (or that token) triggers; the rest belongs to what follows."""
        members = Members.of(value, place, ("rules",), ("type", "loop", "excludes"))
        rules: list[tuple[Control | Literal, Expression]] = []
        for trigger, inner, part in self._pairs(members):
            text = text_of(trigger, inner.at(0))
            if not text:
                inner.at(0).fail("the string is empty")
            (head, is_control), *rest = mark(text, sorted(name for name in self.controls if name in text))
            following = self._marked("".join(piece for piece, _ in rest))
            rules.append((Control(head) if is_control else Literal(head), sequence(following, part)))
        words = members.texts("excludes", may_be_empty=True)
        once = not members.flag("loop", default=True)
        return tagged_text(rules, words, place, EMPTY_TEXT, at_least_one=False, once=once)

    def _token_dispatch(self, value: Mapping[str, Any], place: Inside) -> Expression:
        """Read free text in which each trigger, a token, is followed by its format."""
        members = Members.of(value, place, ("rules",), ("type", "loop", "exclude_tokens"))
        rules = [(self._token(trigger, inner.at(0)), part) for trigger, inner, part in self._pairs(members)]
        words = tuple(self._excluded_tokens(members))
        once = not members.flag("loop", default=True)
        return tagged_text(rules, words, place, EMPTY_TEXT, at_least_one=False, once=once)


_FORMATS: dict[str, Callable[[_TagReader, Mapping[str, Any], Inside], Expression]] = {
    "const_string": _TagReader._const_string,
    "json_schema": _TagReader._json_schema,
    "qwen_xml_parameter": _TagReader._qwen_xml_parameter,
    "any_text": _TagReader._any_text,
    "grammar": _TagReader._grammar,
    "regex": _TagReader._regex,
    "sequence": _TagReader._sequence,
    "or": _TagReader._or,
    "optional": lambda reader, value, place: Repeat(reader._content(value, place), 0, 1),
    "plus": lambda reader, value, place: Repeat(reader._content(value, place), 1, None),
    "star": lambda reader, value, place: Repeat(reader._content(value, place), 0, None),
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
