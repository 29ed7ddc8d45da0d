"""`Grammar`: an immutable description of a formal language, independent of any vocabulary."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from ..automaton.encoding import REFUSED
from ..automaton.lazy_dfa import LazyAutomaton, Program, Workspace
from ..basics.argument_checks import alternatives, checked_bounds, checked_text, checked_words
from ..basics.forks import shared_lock
from ..basics.options import OnUnsupported, PropertyOrder, Whitespace
from ..errors import (
    GrammarError,
    LimitError,
    SchemaError,
    ToolGrammarError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from ..language.free_text import text_until
from ..language.nodes import Nodes
from ..pages import table
from ..regex.starts import Starts, checked_starts, free_text_without
from .choices import cases_build, distinct_build
from .firsts import first_terms
from .notations import written
from .rules import Rule, check_rules, content_of, once, reached_from
from .source import source

if TYPE_CHECKING:
    from ..export.writers import Exported
    from ..masks.matcher import Constraint
    from ..schema import SchemaOptions
    from ..text_grammars.rules import ReadGrammar
    from ..vocabulary.vocabulary import Vocabulary
    from .comparison import Comparison
    from .examples import Example

#: The workspace of parts that are not given another one (see `Grammar.as_part`).
DEFAULT_WORKSPACE = Workspace()

#: Bytes of a grammar without its parts, schema and automaton (measured).
GRAMMAR_BYTES = 1_000


class Grammar:
    """A formal language: the set of texts that may be written.

    The class methods below make grammars; ``+`` concatenates two, ``|`` is the union of two, and `rule` makes them
    recursive. The automaton is derived lazily, by `matches` and `bind`, and shared by everything bound to the grammar.

    Attributes:
        schema: the JSON Schema that the grammar was made from; None for any other grammar.

    Law: ``(a + b).matches(x)`` iff ``x`` splits into a text of ``a`` and a text of ``b``; ``(a | b).matches(x)`` iff
    ``a.matches(x) or b.matches(x)``.
    """

    def __init__(
        self,
        build: Callable[[Nodes], int],
        key: tuple[Hashable, ...],
        unenforced: Sequence[ToolGrammarError] = (),
        parts: Sequence[Grammar] = (),
        sure: Callable[[], bool] | None = None,
        specials: Iterable[str] = (),
        narrowed: Sequence[UnsupportedSchemaError] = (),
        has_common: bool = False,
    ) -> None:
        self._build = build
        self._key = key  # the name of the maker, and its arguments
        self._has_rules: bool = key[0] == "rule"
        self._identity: tuple[Hashable, ...] | None = None
        self._hash: int | None = None
        self._digest: str | None = None
        self._is_part = False
        self._has_common = has_common  # it has some of `common_values`
        self._workspace: Workspace | None = None
        self._specials = frozenset(specials)
        self.schema: Any = None
        self._bytes = GRAMMAR_BYTES
        left_out, narrowed_here = list(unenforced), list(narrowed)
        for part in parts:  # one loop, as a request may have hundreds of tools, or one twice
            self._bytes += part._bytes
            if part._has_rules:
                self._has_rules = True
            if part._has_common:
                self._has_common = True
            if self._workspace is None:
                self._workspace = part._workspace
            if not part._specials <= self._specials:
                self._specials |= part._specials
            left_out += part._unenforced
            narrowed_here += part._narrowed
        # Whether the language surely has a text (False: perhaps); `_is_sure` asks once, and keeps the answer. Not with
        # rules: `check` skips a sure grammar, and one of undefined or left-recursive rules must be refused.
        self._sure: Callable[[], bool] | bool | None = None if self._has_rules else sure
        self._unenforced: tuple[ToolGrammarError, ...] = tuple(dict.fromkeys(left_out))
        self._narrowed: tuple[UnsupportedSchemaError, ...] = tuple(dict.fromkeys(narrowed_here))
        self._program: Program | None = None
        self._program_in_use: weakref.ref[Program] | None = None
        self._lock = shared_lock(self, "_lock", threading.Lock())

    # -- making ------------------------------------------------------------------------------------------------

    @classmethod
    def from_json_schema(
        cls,
        schema: Any,
        *,
        whitespace: Whitespace = "single",
        additional_properties: bool | None = None,
        property_order: PropertyOrder = "schema",
        on_unsupported: OnUnsupported = "narrow",
        formats: bool = True,
        strict_formats: bool = False,
        registry: Mapping[str, Any] | None = None,
        plain_integers: bool = False,
    ) -> Grammar:
        """Return the JSON texts that are valid under a schema.

        Args:
            schema: a JSON Schema (a dict, or a bool), or a Pydantic class: then what is written passes its
                ``model_validate_json``, validators that the user wrote apart. Dates that must be past or still to come
                are so for 24 hours from when the grammar is made.
            whitespace: ``"compact"`` writes none, ``"single"`` one space after ``,`` and ``:``, ``"flexible"`` accepts
                bounded runs of whitespace wherever JSON does.
            additional_properties: True: an object that does not mention ``additionalProperties`` takes undeclared
                members, as the standard says. False: it takes none, like the arguments of a function. None: True for a
                JSON Schema; an object of a Pydantic class has no members but its fields.
            property_order: ``"schema"``: members are written in the order in which the schema names them, others
                last; ``"any"``: in any order.
            on_unsupported: treatment of a keyword that cannot be enforced exactly. ``"narrow"``: some valid values are
                never written, and `narrowed` names them; where that is not possible, the schema is refused.
                ``"error"``: the schema is refused in any case. ``"validate"``: as ``"narrow"``, but instead of a
                refusal the keyword is left out and named in `unenforced`; validate the finished value.
            formats: True if ``format`` is enforced (as under ``format-assertion``), False if it is an annotation.
            strict_formats: a ``format`` that the specification does not know is refused; else it is an annotation.
            registry: schemas that references may name, by address. Nothing is ever fetched.
            plain_integers: integers, and numbers that the schema lists, have one spelling under ``"flexible"`` too: 1,
                not 1.0, which some readers do not take for an integer. Implied by a Pydantic class.

        Raises:
            InvalidSchemaError: the schema is malformed.
            UnsupportedSchemaError: a keyword cannot be enforced exactly; names its place.
            UnsatisfiableSchemaError: nothing can be valid.
        """
        from ..schema.read.options import schema_options

        if hasattr(schema, "model_json_schema"):
            from ..schema.pydantic.schema import class_schema
            from ..schema.read.dated import of_today

            made = class_schema(schema, additional_properties=bool(additional_properties))
            schema, plain_integers = of_today(made), True
        is_open = additional_properties is None or additional_properties
        said = (whitespace, is_open, property_order, on_unsupported, formats, strict_formats, registry, plain_integers)
        return cls._of_schema(schema, schema_options(*said))

    @classmethod
    def _of_schema(
        cls, schema: Any, options: SchemaOptions, narrowed: Sequence[UnsupportedSchemaError] = ()
    ) -> Grammar:
        """Return the texts of a schema, read and written by its options; ``narrowed``: what the schema has lost before,
        beside what this loses."""
        from ..schema.compile import compile_schema

        compiled = compile_schema(schema, options)
        is_json = options.syntax is None and options.arguments is None
        grammar = cls(
            compiled.build,
            ("schema", compiled),
            compiled.problems,
            sure=compiled.is_surely_satisfiable,
            specials=() if is_json else compiled.controls,
            narrowed=(*compiled.narrowed, *narrowed),
            has_common=compiled.document.has_common,
        )
        grammar.schema = schema if is_json else None
        grammar._bytes += compiled.byte_count()
        return grammar

    @classmethod
    def of_arguments(cls, schema: Any, narrowed: Sequence[UnsupportedSchemaError] = (), **options: Any) -> Grammar:
        """Return a tool's arguments in a notation other than JSON; ``options`` are fields of `SchemaOptions`, and
        ``narrowed`` is what the schema has lost before."""
        from ..schema.read.options import SchemaOptions

        return cls._of_schema(schema, SchemaOptions(**options), narrowed)

    @classmethod
    def json(cls, schema: Any = True, **options: Any) -> Grammar:
        """Return JSON texts, of any value or of a schema; arguments and errors as of `from_json_schema`."""
        return cls.from_json_schema(schema, **options)

    @classmethod
    def jsonl(cls, schema: Any = True, *, min_items: int = 0, max_items: int | None = None, **options: Any) -> Grammar:
        """Return JSON values, one a line, each line with its end; ``options`` as in `from_json_schema`.

        Raises as for `from_json_schema`.
        """
        if options.get("whitespace") == "flexible":
            raise GrammarError("a value of JSON Lines has no line break", hint="leave whitespace='flexible' out")
        return cls.repeat(cls.from_json_schema(schema, **options) + cls.literal("\n"), min_items, max_items)

    @classmethod
    def csv(
        cls,
        columns: Any,
        *,
        header: bool = True,
        newline: Literal["\r\n", "\n"] = "\r\n",
        min_rows: int = 0,
        max_rows: int | None = None,
    ) -> Grammar:
        """Return CSV (RFC 4180) with typed columns; the last line may have an end.

        Args:
            columns: an object schema or a Pydantic class, whose properties are the columns, in this order, or a list
                of names. A null, and the value of a property that is not required, is an empty field.
            header: the first line has the names of the columns.
            newline: the end of a line.
            min_rows: minimum number of lines apart from the header.
            max_rows: maximum number of such lines.

        Raises:
            GrammarError: a column may have arrays or objects; with the JSON pointer of its schema.
            SchemaError: as for `from_json_schema`.
        """
        from ..builtins.tables import csv_grammar

        read = csv_grammar(columns, header=header, newline=newline, min_rows=min_rows, max_rows=max_rows)
        return cls._read("builtin", read)

    @classmethod
    def markdown_table(cls, columns: Any, *, min_rows: int = 0, max_rows: int | None = None) -> Grammar:
        """Return tables in GitHub's Markdown: header, delimiters, and rows of typed cells. Arguments as in `csv`."""
        from ..builtins.tables import markdown_grammar

        return cls._read("builtin", markdown_grammar(columns, min_rows=min_rows, max_rows=max_rows))

    @classmethod
    def xml(cls, schema: Any = None, *, tags: Any = None, root: str | None = None) -> Grammar:
        """Return well-formed XML of a schema's values, or of given elements.

        Args:
            schema: a schema of objects: a member is an element, an array one element for each item, in the order of
                the properties; strings are escaped.
            tags: instead of a schema, the names of the elements, which may nest in any way; a dict has the names of
                their attributes.
            root: the name of the outermost element; with tags, None means any of them.

        Raises:
            GrammarError: a name is not an XML name, or a part of the schema has no form in XML; with a JSON pointer.
        """
        from ..builtins.xml import xml_grammar

        return cls._read("builtin", xml_grammar(schema, tags, root))

    @classmethod
    def yaml(cls, schema: Any = None) -> Grammar:
        """Return YAML that versions 1.1 and 1.2 read alike; with a schema, values of it: a block mapping with values in
        flow style where the schema is of an object with a required member, else all of it in flow style."""
        from ..builtins.yaml import yaml_grammar

        return cls._read("builtin", yaml_grammar(schema))

    @classmethod
    def python_literal(cls, schema: Any = None) -> Grammar:
        """Return literals that Python's ``ast.literal_eval`` reads; with a schema, those of its values."""
        from ..builtins.python_literal import python_grammar

        return cls._read("builtin", python_grammar(schema))

    @classmethod
    def sql_select(cls, tables: Mapping[str, Sequence[str] | Mapping[str, str]], *, joins: bool = True) -> Grammar:
        """Return SELECT statements over some tables, in capitals and with single spaces.

        Args:
            tables: the columns of each table; a dict has their types: ``"string"``, ``"number"``, ``"integer"`` or
                ``"boolean"``. Columns are compared with values of their type.
            joins: two different tables may be joined.
        """
        from ..builtins.sql import sql_grammar

        return cls._read("builtin", sql_grammar(tables, joins=joins))

    @classmethod
    def format(cls, name: str) -> Grammar:
        """Return the texts of a format, without quotes: ``"date"``, ``"date-time"``, ``"email"``, ``"uuid"``,
        ``"semver"``, ``"uri"``, ``"ipv4"``, and the other formats of JSON Schema."""
        from ..builtins.words import build_word, check_name

        check_name(name)
        return cls(lambda nodes: build_word(nodes, name), ("format", name), sure=lambda: True)

    @classmethod
    def from_regex(cls, pattern: str | re.Pattern[str]) -> Grammar:
        """Return the texts that match a regular expression as a whole (ECMA-262 with the ``u`` flag), written as UTF-8.

        Args:
            pattern: the expression; a compiled one is read as Python's ``re`` reads it, with its flags.

        Raises:
            PatternError: malformed, or not regular (back-references).
        """
        from ..regex.compile import regex_term

        if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
            from ..regex.foreign import to_ecma

            pattern = to_ecma(pattern, "python")
        checked_text(pattern, "a regular expression")
        regex_term(Nodes().terms, pattern, whole=True)  # errors now, not at first use
        return cls(lambda nodes: nodes.text(regex_term(nodes.terms, pattern, whole=True)), ("regex", pattern))

    @classmethod
    def from_ebnf(cls, text: str, *, root: str = "root", vocabulary: Vocabulary | None = None) -> Grammar:
        """Return the texts of a grammar in EBNF: llama.cpp's GBNF, and xgrammar's EBNF, which extends it.

        A text that both read has the meaning of GBNF. Rules may be recursive in any way, left-recursive too, which
        llama.cpp refuses. ``!<token>*`` is narrowed to text, as `narrowed` says.

        Args:
            text: rules, ``name ::= ...``, with xgrammar's macros and options.
            root: the name of the start rule.
            vocabulary: the vocabulary to which the tokens belong: ``<[id]>`` and ``Token(id)``, and ``<text>``, which
                without a vocabulary is the control token of that name.

        Raises:
            GrammarError: it is malformed, or has a part that cannot be enforced; with line and column.
            LimitError: too many rules begin with each other.
        """
        return cls._of_ebnf("ebnf", text, root, vocabulary)

    @classmethod
    def from_gbnf(cls, text: str, *, root: str = "root", vocabulary: Vocabulary | None = None) -> Grammar:
        """Return the same as `from_ebnf`, by the name that llama.cpp has for its notation."""
        return cls._of_ebnf("gbnf", text, root, vocabulary)

    @classmethod
    def _of_ebnf(cls, maker: str, text: str, root: str, vocabulary: Vocabulary | None) -> Grammar:
        from ..text_grammars.ebnf import read_ebnf
        from ..text_grammars.tokens import tokens_of

        return cls._read(maker, read_ebnf(text, root, tokens_of(vocabulary)), text)

    @classmethod
    def from_lark(
        cls,
        text: str,
        *,
        start: str = "start",
        whitespace: Whitespace = "flexible",
        on_unsupported: OnUnsupported = "narrow",
        vocabulary: Vocabulary | None = None,
    ) -> Grammar:
        """Return the texts of a Lark grammar, in the dialect of llguidance, which OpenAI's custom tools take.

        Terminals are joined without a lexer: every division of a text into terminals counts.

        Args:
            text: rules, terminals and directives.
            start: the name of the start rule.
            whitespace: white space in ``%json``, as in `from_json_schema`.
            on_unsupported: treatment of keywords in ``%json``, as in `from_json_schema`; and of token budgets:
                ``"error"`` refuses them, else a rule is narrowed to the texts that are surely within its budget.
            vocabulary: the vocabulary of the tokens ``<[id]>`` and ``<name>``, as in `from_gbnf`.

        Raises as for `from_ebnf`.
        """
        from ..schema import SchemaOptions, compile_schema
        from ..text_grammars.lark import read_lark
        from ..text_grammars.tokens import tokens_of

        options = SchemaOptions(whitespace, on_unsupported=on_unsupported)
        read = read_lark(
            text,
            start,
            tokens_of(vocabulary),
            lambda schema: compile_schema(schema, options),
            is_exact=on_unsupported == "error",
        )
        return cls._read("lark", read, text, start, whitespace, on_unsupported)

    @classmethod
    def from_any(cls, value: Any, *, vocabulary: Vocabulary | None = None) -> Grammar:
        """Return the grammar of a value in an option or request field named ``grammar``.

        Args:
            value: a `Grammar`; what `dumps` wrote, as text or as the object; an object with ``syntax`` (``lark``,
                ``gbnf``, ``ebnf`` or ``regex``) and ``definition``; a structural tag; or a text: EBNF if it defines
                rules by ``::=``, else Lark.
            vocabulary: the vocabulary of the tokens in it, as in `from_gbnf`.

        Raises:
            GrammarError: it is none of these, is malformed, or has a part that cannot be enforced.
        """
        from .data import grammar_of

        return cast("Grammar", grammar_of(cls, value, vocabulary))

    @classmethod
    def _read(cls, maker: str, read: ReadGrammar, *arguments: Hashable) -> Grammar:
        """Return a grammar that was read from text.

        Args:
            maker: the name of the maker.
            read: what was read.
            arguments: the arguments of the maker that are shown.
        """
        key = (maker, read.rules, *arguments)
        return cls(read.rules.build, key, read.problems, specials=read.rules.controls, narrowed=read.narrowed)

    @classmethod
    def from_structural_tag(
        cls,
        tag: Any,
        *,
        whitespace: Whitespace = "flexible",
        on_unsupported: OnUnsupported = "narrow",
        vocabulary: Vocabulary | None = None,
    ) -> Grammar:
        """Return the texts of a structural tag, in xgrammar's JSON: free text with parts that follow a schema.

        Args:
            tag: JSON text, the object that it holds, or xgrammar's ``StructuralTag``; the legacy form with
                ``structures`` and ``triggers`` too.
            whitespace: white space in JSON, as in `from_json_schema`; a format may ask for less.
            on_unsupported: treatment of keywords that cannot be enforced exactly, as in `from_json_schema`.
            vocabulary: the model's vocabulary. The name of one of its control tokens inside a tag means the token, and
                ids of tokens belong to it. None: everything is text, except for tokens given by name.

        Raises:
            GrammarError: it is malformed, or has a part that cannot be enforced; with a JSON pointer.
            SchemaError: a JSON Schema in it is refused; with a JSON pointer into the tag.
        """
        from ..text_grammars.structural_tags import read_structural_tag
        from ..text_grammars.tokens import tokens_of

        read = read_structural_tag(
            tag,
            whitespace=whitespace,
            on_unsupported=on_unsupported,
            controls=() if vocabulary is None else vocabulary.special,
            tokens=None if vocabulary is None else tokens_of(vocabulary),
        )
        return cls._read("structural_tag", read, whitespace, on_unsupported)

    @classmethod
    def literal(cls, text: str | bytes) -> Grammar:
        """Return the grammar of one text."""
        data = text if isinstance(text, bytes) else checked_text(text, "a literal").encode()
        return cls(lambda nodes: nodes.literal(data), ("literal", data), sure=lambda: True)

    @classmethod
    def special(cls, name: str) -> Grammar:
        """Return the control token called ``name`` in the vocabulary; text that spells the name does not count."""
        checked_text(name, "the name of a control token")
        return cls(lambda nodes: nodes.special(name), ("special", name), sure=lambda: True, specials=(name,))

    @classmethod
    def text(cls, *, excluding: Sequence[str] = (), min_chars: int = 0, excluding_starts: Starts = ()) -> Grammar:
        """Return free text of at least ``min_chars`` characters that has no string of ``excluding`` in it, and none of
        ``excluding_starts`` (a regular expression, one of some words, another expression) at its beginning."""
        key = checked_words(excluding), min_chars, checked_starts(excluding_starts)
        checked_bounds(min_chars, None, "characters")
        return cls(lambda nodes: nodes.text(free_text_without(nodes.terms, *key)), ("text", *key))

    @classmethod
    def until(cls, marker: str, *, excluding: Sequence[str] = ()) -> Grammar:
        """Return free text up to and including the first ``marker``, with none of ``excluding`` before it."""
        if not checked_text(marker, "the marker of until()"):
            raise GrammarError("the marker of until() is empty", hint="pass the text that ends the free part")
        words = checked_words(excluding)
        return cls(lambda nodes: nodes.text(text_until(nodes.terms, marker, words)), ("until", marker, words))

    @classmethod
    def sequence(cls, *parts: Grammar | str) -> Grammar:
        """Return the parts, one after the other. Here as everywhere, a string is the literal of it."""
        made = cls._parts_of(parts)
        key, build = ("sequence", *made), lambda nodes: nodes.sequence([part._node(nodes) for part in made])
        return cls(build, key, parts=made, sure=lambda: all(part._is_sure for part in made))

    @classmethod
    def choice(cls, *parts: Grammar | str | Iterable[Grammar | str]) -> Grammar:
        """Return any one of the parts, which may also be given as one list."""
        made = cls._parts_of(alternatives(parts))
        key, build = ("choice", *made), lambda nodes: nodes.alt([part._node(nodes) for part in made])
        return cls(build, key, parts=made, sure=lambda: any(part._is_sure for part in made))

    @classmethod
    def cases(cls, cases: Mapping[str, Grammar | str]) -> Grammar:
        """Return one of the keys, followed by its own part: a choice that is fast for thousands of keys.

        Keys may be the beginnings of others.
        """
        if not isinstance(cases, Mapping) or not cases:
            raise GrammarError("cases() needs at least one case", hint="pass a dict with at least one key")
        made = dict(zip(cases, cls._parts_of(tuple(cases.values())), strict=True))
        words = {checked_text(key, "a key of cases()").encode(): part for key, part in made.items()}
        key = ("cases", *made.items())
        name = _name(key, made.values())
        return cls(once(name, cases_build(words, name)), key, parts=tuple(made.values()))

    @classmethod
    def distinct(
        cls, parts: Sequence[Grammar | str], separator: Grammar | str, min: int = 0, max: int | None = None
    ) -> Grammar:
        """Return ``min`` to ``max`` of the parts, each at most once, in any order, ``separator`` between them."""
        *made, middle = cls._parts_of((*parts, separator))
        checked_bounds(min, max, "distinct()")
        most = len(made) if max is None or max > len(made) else max
        if most < min:
            raise GrammarError(
                f"distinct() cannot take {min} of {len(made)} parts", hint="0 <= min <= max <= number of parts"
            )
        key = ("distinct", middle, min, most, *made)
        name = _name(key, (*made, middle))
        build = distinct_build(made, middle, min, most, name)
        return cls(once(name, build), key, parts=(*made, middle))

    @classmethod
    def repeat(cls, part: Grammar | str, min: int = 0, max: int | None = None) -> Grammar:
        """Return ``min`` to ``max`` copies of a part, one after the other (None: no upper bound)."""
        checked_bounds(min, max, "repeat()")
        (made,) = cls._parts_of((part,))
        return cls(lambda nodes: nodes.repeat(made._node(nodes), min, max), ("repeat", made, min, max), parts=(made,))

    @classmethod
    def rule(cls, name: str, definition: Callable[[], Grammar]) -> Grammar:
        """Return a rule: its definition may contain the rule itself, which makes a grammar recursive.

        ::

            value = Grammar.rule("value", lambda: Grammar.from_regex("[0-9]+") | array)
            array = "[" + value + Grammar.repeat("," + value) + "]"

        The definition is called once, when the grammar is first bound, matched or compared. So it may use grammars that
        are assigned after the rule; rules may use each other. Make each rule once, outside of the definitions.

        Args:
            name: names the rule in errors.
            definition: returns the grammar of the rule.

        Raises:
            GrammarError: ``definition`` is not callable. When the grammar is bound, matched or compared: the definition
                uses a name that is not assigned, or returns no grammar; the rule has no finite text; or the rule is
                left-recursive (its text may begin with the rule itself).
        """
        checked_text(name, "the name of a rule")
        if not callable(definition):
            raise GrammarError(
                f"the definition of rule {name!r} is not callable", hint="wrap it: Grammar.rule(name, lambda: ...)"
            )
        rule = Rule(name, definition)
        return cls(lambda nodes: nodes.lazy(("rule", rule), lambda: rule.body._node(nodes)), ("rule", rule))

    @classmethod
    def _parts_of(cls, parts: Sequence[Grammar | str]) -> tuple[Grammar, ...]:
        """Return parts as grammars: a string is the literal of it."""
        for part in parts:
            if not isinstance(part, (Grammar, str, bytes)):
                raise GrammarError(f"a part of a grammar is {part!r}", hint="pass a Grammar, or a str for a fixed text")
        return tuple(part if isinstance(part, Grammar) else cls.literal(part) for part in parts)

    def as_part(self, workspace: Workspace | None = None) -> Grammar:
        """Return the same language as a reusable part: grammars made of such parts share one store, and what was
        derived for a part is reused.

        The store is that of a workspace, which is renewed when it is full. For the tools of an agent, whose sets change
        from request to request, this is far quicker. A grammar that is bound only once should have a store of its own,
        which is released sooner.

        Args:
            workspace: the holder of the store; None: `DEFAULT_WORKSPACE`. A combined grammar uses its first part's.
        """
        grammar = Grammar(self._build, self._key, parts=(self,), sure=lambda: self._is_sure)
        grammar.schema = self.schema
        grammar._is_part = True
        grammar._workspace = DEFAULT_WORKSPACE if workspace is None else workspace
        return grammar

    @property
    def unenforced(self) -> tuple[ToolGrammarError, ...]:
        """The keywords that were left out under ``on_unsupported="validate"``, each with its place and the reason."""
        return tuple(dict.fromkeys(problem for part in self._plain_parts() for problem in part._unenforced))

    @property
    def narrowed(self) -> tuple[UnsupportedSchemaError, ...]:
        """The keywords that cannot be enforced exactly, each with the valid values that are never written
        (``left_out``).

        If a text meets a limit, so that some of its continuations are left out, the limit is added.
        """
        program = self._program if self._program_in_use is None else self._program_in_use()
        met = () if program is None else program.narrowed
        return (*dict.fromkeys(problem for part in self._plain_parts() for problem in part._narrowed), *met)

    def byte_count(self) -> int:
        """Return the bytes of the grammar with its parts and schemas, without its automaton (estimated)."""
        return self._bytes

    @property
    def specials(self) -> frozenset[str]:
        """The names of the control tokens that a text may contain."""
        return frozenset().union(*[part._specials for part in self._plain_parts()])

    def _plain_parts(self) -> Sequence[Grammar]:
        """Return the parts without rules, rules followed; of a grammar without rules, itself."""
        return [part for part in reached_from(self)[0] if not part._has_rules] if self._has_rules else (self,)

    @property
    def _is_sure(self) -> bool:
        """True if the language is known to have a text; False if that is not known yet."""
        if callable(self._sure):
            self._sure = self._sure()
        return self._sure is True

    def check(self) -> None:
        """Raise an error unless the language has a text.

        Raises:
            UnsatisfiableSchemaError: it has none; names the place in the schema.
            GrammarError: a rule is not defined, never ends, or is left-recursive.
            LimitError: the grammar is nested too deeply.
        """
        if not self._is_sure:
            self.program  # noqa: B018
            self._sure = True

    def _node(self, nodes: Nodes) -> int:
        """Return the root node in a store."""
        if not self._is_part:
            return self._build(nodes)
        node = nodes.known.get(self)
        if node is None:
            node = nodes.known[self] = self._build(nodes)
        return node

    def __add__(self, other: Grammar | str) -> Grammar:
        return Grammar.sequence(self, other)

    def __radd__(self, other: str) -> Grammar:
        return Grammar.sequence(other, self)

    def __or__(self, other: Grammar | str) -> Grammar:
        return Grammar.choice(self, other)

    def __ror__(self, other: str) -> Grammar:
        return Grammar.choice(other, self)

    def compare(self, other: Grammar) -> Comparison:
        """Return what another grammar is, seen from this one: ``"equal"``, ``"narrower"``, ``"wider"``,
        ``"overlapping"``, ``"disjoint"`` or ``"undecided"``, with a smallest text for each difference.

        Grammars of JSON Schemas are compared as sets of values: the order of members, white space and the spelling of
        numbers do not count. Other grammars are compared as sets of texts, with a bound on the search. What cannot be
        decided is undecided, with the reason; nothing is guessed.

        Args:
            other: a grammar that was made with the same ``formats`` and ``additional_properties``, if of a schema.

        Raises:
            GrammarError: the other is no grammar.
        """
        from .comparison import compared

        return compared(self, other)

    # -- examples ----------------------------------------------------------------------------------------------

    def examples(self, n: int, seed: int = 0, *, cover: bool = True) -> list[Example]:
        """Return at most ``n`` different texts: the shortest, then a shortest one for each thing that the schema says
        (enum values, optional members, options of unions, bounds), then random ones. Those of a finite language, with
        at most 2**64 texts, are uniform: values of JSON are counted, however spelled. Equal seeds draw equally.

        Args:
            n: how many. If it is less than what can be shown, a random part of that is shown.
            seed: of the random draw.
            cover: False: random texts only.
        """
        from .examples import examples_of

        return examples_of(self, n, seed, cover)

    def counterexamples(self, n: int, seed: int = 0) -> list[Example]:
        """Return at most ``n`` texts outside of the language, each one edit from an example: a member less or more, a
        value of another type, a bound passed by one, a string changed in one character. Equal seeds draw equally."""
        from .examples import counterexamples_of

        return counterexamples_of(self, n, seed)

    # -- identity ----------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Grammar) and hash(self) == hash(other) and self._content() == other._content()
        )

    def __hash__(self) -> int:
        self._hash = hash(self._content()) if self._hash is None else self._hash
        return self._hash

    def _content(self) -> tuple[Hashable, ...]:
        """Return the makers and arguments of the grammar: equal for two grammars only if their languages are equal."""
        if self._has_rules and self._identity is None:
            self._identity = content_of(self)
        return self._identity or self._key

    @property
    def _rule(self) -> Rule:
        return cast(Rule, self._key[1])

    def __repr__(self) -> str:
        return source(self, _SCHEMA_DEFAULTS)

    def _repr_html_(self) -> str:
        return table([("Grammar", repr(self))])

    # -- as data -----------------------------------------------------------------------------------------------

    def dumps(self) -> str:
        """Return the grammar as JSON with a version, for `loads`: the description from which it was made.

        Raises:
            GrammarError: a part has no form as data, such as a structural tag that was read with a vocabulary.
        """
        from .data import dumped

        return dumped(self)

    @classmethod
    def loads(cls, text: str) -> Grammar:
        """Return the grammar that `dumps` wrote; equal to it, unless it has rules.

        Raises:
            GrammarError: it is malformed, or of another version.
        """
        from .data import loaded

        return loaded(cls, text)  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Callable[[str], Grammar], tuple[str]]:
        return Grammar.loads, (self.dumps(),)

    # -- other notations ---------------------------------------------------------------------------------------

    def to_gbnf(self, vocabulary: Vocabulary | None = None) -> Exported:
        """Return the grammar in GBNF, for llama.cpp. ``unsaid`` lists the constraints that GBNF cannot express.

        Args:
            vocabulary: the vocabulary of the ids of control tokens; None: control tokens are written by name.

        Raises:
            GrammarError: a fixed text is not UTF-8.
            LimitError: it has too many rules or states.
        """
        return written(self, "gbnf", vocabulary)

    def to_ebnf(self, vocabulary: Vocabulary | None = None) -> Exported:
        """Return the grammar in EBNF, for xgrammar; its control tokens need a vocabulary. Else as `to_gbnf`."""
        return written(self, "ebnf", vocabulary)

    def to_lark(self, vocabulary: Vocabulary | None = None) -> Exported:
        """Return the grammar in Lark, for llguidance. Else as `to_gbnf`."""
        return written(self, "lark", vocabulary)

    def to_regex(self) -> Exported:
        """Return a regular expression that matches the texts as a whole, for Python, ECMA-262 and Rust alike.

        Raises:
            GrammarError: the grammar is recursive, or has control tokens.
            LimitError: the expression is too long.
        """
        return written(self, "regex")

    # -- using -------------------------------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """The grammar's automaton, shared by everything bound to it; a new one after the last has grown too large.

        Raises:
            UnsatisfiableSchemaError: the language is empty.
            GrammarError: a rule is not defined, never ends, or is left-recursive.
            LimitError: the grammar is nested too deeply, or has too many rules.
        """
        with self._lock:
            program = self._program
            if self._program_in_use is not None:
                program = self._program_in_use()
            if program is None or program.is_full:
                try:
                    # A shared store may get any grammar later: it begins with the terms of common formats, too.
                    seed = first_terms(self._has_common or self._workspace is not None)
                    store = LazyAutomaton(seed=seed) if self._workspace is None else self._workspace.store(seed)
                    before = len(store.nodes.limits)  # number of limits that other grammars of the workspace exceeded
                    program = Program(self._checked_build, store)
                except RecursionError:
                    raise LimitError(
                        "the grammar is nested too deeply", hint="flatten it, or break the nesting with $ref"
                    ) from None
                if program.is_empty:
                    limits = program.store.nodes.limits[before:]
                    raise limits[0] if limits else self._unsatisfiable()
                if self._workspace is not None:  # grammars that are kept do not keep stores that others have filled
                    self._program_in_use = weakref.ref(program)
                else:
                    self._program = program
            return program

    def _checked_build(self, nodes: Nodes) -> int:
        if self._has_rules:
            check_rules(*reached_from(self), nodes)
        return self._build(nodes) if self._key[0] != "schema" else cast(Any, self._key[1]).build(nodes, whole=True)

    def _unsatisfiable(self) -> SchemaError:
        """Return the error for a grammar without any text."""
        kind, *rest = self._key
        if kind == "schema":
            compiled: Any = rest[0]
            return cast(SchemaError, compiled.unsatisfiable())
        for part in rest if kind == "sequence" else ():
            try:
                cast(Grammar, part).check()
            except SchemaError as error:
                return error.with_traceback(None)
        return UnsatisfiableSchemaError(
            "no text can satisfy the grammar", hint="look for constraints that contradict each other"
        )

    def _release(self) -> None:
        """Release the automaton; it is derived again when it is needed."""
        with self._lock:
            self._program = None

    def matches(self, data: bytes | str) -> bool:
        """Return True if ``data`` is a text of the language (control tokens cannot be given as text)."""
        return self._allows(data, whole=True)

    def begins(self, data: bytes | str) -> bool:
        """Return True if some text of the language begins with ``data`` (control tokens cannot be given as text)."""
        return self._allows(data, whole=False)

    def _allows(self, data: bytes | str, *, whole: bool) -> bool:
        """Return True if a text of the language begins with ``data``; with ``whole``, if it is ``data``."""
        text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(memoryview(data))
        try:
            program = self.program
        except UnsatisfiableSchemaError:
            return False
        with program.lock:
            state = program.after(text)
            return state != REFUSED and (not whole or program.automaton.accepts(state))

    def bind(self, vocabulary: Vocabulary) -> Constraint:
        """Return the grammar over a model's tokens: thread-safe, and shared by the `Matcher` of each text.

        Raises:
            ToolGrammarError: as `program`, and if the vocabulary lacks a control token of the grammar.
        """
        from ..masks.matcher import Constraint

        return Constraint(self.program, vocabulary, lambda: self.program, self.specials)


def _name(key: tuple[Hashable, ...], parts: Iterable[Grammar]) -> Hashable:
    """Return a name of a grammar for its nodes: equal for equal ones without rules. (The grammar would hold itself.)"""
    return object() if any(part._has_rules for part in parts) else Grammar(lambda nodes: nodes.EPSILON, key)


#: The options of `Grammar.from_json_schema` with their defaults, in the order of its arguments.
_SCHEMA_DEFAULTS: dict[str, Any] = Grammar.from_json_schema.__kwdefaults__ or {}
