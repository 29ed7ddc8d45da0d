"""Texts of values that have no parts, and of listed values: each in all spellings that the options allow."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from ...errors import LimitError, Place
from ...json import json_bytes, type_of
from ...json.values import is_among
from ...language import node_kinds
from ...language.images import json_escaped
from ...language.nodes import Nodes
from ...text_grammars.strings import StringGrammar
from ..keywords.any_value import INTEGERS
from ..normal.conjunction import EVERY, Conjunction
from ..normal.strings import irregular, string_term
from ..read.located import Located
from ..read.options import SchemaOptions
from ..read.resolve import Document
from ..scalars.number_terms import Numbers
from ..scalars.numbers import MAX_LISTED, MAX_NEAR, MAX_RESIDUES, NumberRange, as_read, is_short_integer, leaves_out
from ..scalars.whitespace import spaces
from .object_witnesses import spelled_name

#: Ranges of all numbers, and of all integers.
UNBOUNDED = (EVERY.numbers, INTEGERS)


class ScalarLowering:
    """The part of a `Lowering` that writes values without parts, and listed ones.

    Attributes:
        nodes: the store.
        options: how the schema is read and written.
        syntax: how values are written; None: as JSON.
        flexible: whitespace between tokens is left open.
        space: the node of the whitespace between two tokens, where it is flexible; else EPSILON.
        comma: the text between two items or members, with its space where that is fixed.
        colon: the node between a name and its value.
        fixed_colon: the text of ``colon``, if whitespace is not flexible.
        is_marked: the document is for reading.
        here: the schema whose values are expanded now, for the place of an error; None: it is not known.
    """

    def __init__(self, document: Document, options: SchemaOptions, nodes: Nodes) -> None:
        self.options = options
        self.nodes = nodes
        self.syntax = options.syntax
        self.is_marked = options.is_marked
        self.flexible = options.whitespace == "flexible"
        self.space = nodes.text(spaces(nodes.terms)) if self.flexible else nodes.EPSILON
        gap = b" " if options.whitespace == "single" else b""
        self.comma = b"," + gap
        self.fixed_colon = b":" + gap
        loose = nodes.sequence([self.space, nodes.literal(b":"), self.space])
        self.colon = loose if self.flexible else nodes.literal(self.fixed_colon)
        self.here: Located | None = None
        self._any_order = options.property_order == "any"
        self._plain_integers = document.age == 0 or options.plain_integers
        self._numbers: Numbers | None = None
        self._typed: dict[tuple[str, bool], int] = {}

    def _in_parts(self, value: dict[str, Any] | list[Any] | tuple[Any, ...]) -> int:
        """Return every spelling of a listed object or array, made of those of its parts; by the lowering of them."""
        raise NotImplementedError

    # -- by type -----------------------------------------------------------------------------------------------

    def _scalar(self, kind: str, *, integer: bool = False) -> int:
        """Return all values of a type without parts (``integer``: of numbers, the integers); built once."""
        result = self._typed.get((kind, integer))
        if result is None:
            nodes = self.nodes
            if kind == "string":
                result = self.string(nodes.terms.ALL)
            elif kind == "boolean":
                result = nodes.words([(self._spell(value), nodes.EPSILON) for value in (True, False)])
            elif kind == "null":
                result = nodes.literal(self._spell(None))
            else:
                numbers = NumberRange(integer=integer)
                term = self.numbers.term(numbers, any_spelling=self._any_spelling(numbers))
                result = nodes.text(term if self.syntax is None else self.syntax.number(nodes.terms, term))
            self._typed[kind, integer] = result
        return result

    def _scalars(self, branch: Conjunction) -> int:
        """Return the texts of the values of an alternative that have no parts."""
        nodes = self.nodes
        types = branch.types
        numbers = branch.numbers
        excluded = branch.not_values
        parts: list[int] = []
        if "string" in types:
            is_any = branch.strings is EVERY.strings and not excluded
            parts.append(self._scalar("string") if is_any else self._written_strings(branch))
        if "number" in types:
            if not excluded and numbers in UNBOUNDED:
                parts.append(self._scalar("number", integer=numbers.integer))
            else:
                parts.append(nodes.text(self._number_term(branch)))
        if "boolean" in types:
            parts.append(self._booleans(excluded) if excluded else self._scalar("boolean"))
        if "null" in types and None not in excluded:
            parts.append(self._scalar("null"))
        return nodes.alt(parts)

    def _booleans(self, excluded: tuple[Any, ...]) -> int:
        """Return the texts of the booleans that are none of some values."""
        kept = [value for value in (True, False) if not is_among(value, excluded)]
        return self.nodes.words([(self._spell(value), self.nodes.EPSILON) for value in kept])

    def scalar_term(self, branch: Conjunction, kind: str) -> int:
        """Return the strings (decoded), or the numbers (compared as doubles), of an alternative as a term."""
        if kind == "string":
            return self.string_term(branch)
        return self._number_term(replace(branch, numbers=replace(branch.numbers, exact=True)))

    @property
    def numbers(self) -> Numbers:
        """The terms of numbers; made when first needed."""
        if self._numbers is None:
            self._numbers = Numbers(self.nodes.terms)
        return self._numbers

    # -- strings -----------------------------------------------------------------------------------------------

    def string(self, term: int) -> int:
        """Return the texts of the strings of a term."""
        return self.nodes.json_string(term) if self.syntax is None else self.syntax.string(self.nodes, term)

    def _written_strings(self, branch: Conjunction) -> int:
        """Return the texts of the strings of an alternative."""
        grammar, term = self.string_parts(branch)
        if grammar is None:
            return self.string(term)
        if self.syntax is not None:
            return self.syntax.string_of(self.nodes, grammar, term)
        quote = self.nodes.literal(b'"')
        return self.nodes.sequence([quote, grammar.node(self.nodes, term, json_escaped), quote])

    def string_parts(self, branch: Conjunction) -> tuple[StringGrammar | None, int]:
        """Return the strings of an alternative: those of a term that are of a grammar too; None: there is no
        grammar."""
        grammar = irregular(self.nodes.terms, branch.strings)
        if grammar is None:
            return None, self.string_term(branch)
        others = tuple([pattern for pattern in branch.strings.patterns if pattern != grammar])
        return grammar, self.string_term(replace(branch, strings=replace(branch.strings, patterns=others)))

    def string_term(self, branch: Conjunction) -> int:
        """Return the strings (decoded) of a conjunction, as a term."""
        terms = self.nodes.terms
        term = string_term(terms, branch.strings)
        excluded = [value for value in branch.not_values if isinstance(value, str)]
        return terms.and_([term, terms.not_(terms.words(excluded))]) if excluded else term

    # -- numbers -----------------------------------------------------------------------------------------------

    def _number_term(self, branch: Conjunction) -> int:
        """Return the spellings of the numbers of an alternative, in the syntax of the document; reports multiples that
        are left out."""
        terms = self.nodes.terms
        asked = branch.numbers
        if asked.is_empty:
            return terms.EMPTY
        if leaves_out(asked):
            self.nodes.exceed(
                LimitError(
                    f"several multipleOf together have more than {MAX_RESIDUES:,} residues: multiples more than "
                    f"{MAX_NEAR:,} steps from the one nearest to zero are left out",
                    hint=f"give bounds between which there are at most {MAX_LISTED} multiples of all of them",
                    place=Place(pointer=None if self.here is None else self.here.pointer, keyword="multipleOf"),
                )
            )
        loose = self._any_spelling(asked)
        parts = [self.numbers.term(asked, any_spelling=loose)]
        others = [value for value in branch.not_values if type_of(value) == "number"]
        if asked.integer and not loose:  # an integer has one spelling, but for zero
            # The lists of the items of an array share their texts: there may be thousands of lists.
            texts = {sys.intern(str(int(value))) for value in others if int(value) == value}
            parts.append(terms.not_(terms.words(sorted(texts | {"-0"} if "0" in texts else texts))))
        elif others:
            parts.append(self.numbers.normal())
            parts += [terms.not_(self.numbers.equal(value)) for value in others]
        term = terms.and_(parts)
        return term if self.syntax is None else self.syntax.number(terms, term)

    def _any_spelling(self, numbers: NumberRange) -> bool:
        """Return True if numbers of a range may be written in any of their spellings.

        In draft 4 an integer is a number "without a fraction or exponent part" (core, section 3.5): 1.0 is none.
        """
        return self.flexible and not (numbers.integer and self._plain_integers)

    def _equal(self, value: Any) -> int:
        """Return every spelling of a number."""
        if is_short_integer(value):
            return self.numbers.listed([value])
        number = as_read(value)
        only = NumberRange(integer=number == number.to_integral_value())
        return self.numbers.term(only.at_least(number, False).at_most(number, False), any_spelling=True)

    # -- listed values -----------------------------------------------------------------------------------------

    def listed(self, values: list[Any], *, integers: bool = False) -> int:
        """Return the texts of some values (``integers``: numbers among them were asked to be integers)."""
        nodes = self.nodes
        simple: dict[bytes, int] = {}
        others: list[int] = []
        plain_integers = integers and self._plain_integers
        # Of the listed numbers themselves: those inside of a listed array or object may always have any spelling.
        any_spelling = self.flexible and not plain_integers and (self.is_marked or not self.options.plain_integers)
        if plain_integers:
            values = [int(value) if type(value) is float and value.is_integer() else value for value in values]
        if any_spelling:  # all short integers are one term
            whole = [value for value in values if is_short_integer(value)]
            if whole:
                values = [value for value in values if not is_short_integer(value)]
                others.append(nodes.text(self.numbers.listed(whole)))
        for value in values:
            if self._is_loose(value, any_spelling):
                others.append(self._loose(value))
            else:
                simple[self._spell(value)] = node_kinds.EPSILON
        written = nodes.words(simple)
        return nodes.alt([written, *others]) if others else written

    def _is_loose(self, value: Any, any_spelling: bool) -> bool:
        """Return True if a listed value may have more than one spelling, or is written by a node (`_loose`) for another
        reason: marks inside of it, or another syntax. ``any_spelling``: a number may have any."""
        if isinstance(value, str):
            return self.syntax is not None
        if isinstance(value, (dict, list, tuple)):
            # Flexible whitespace is allowed inside of an empty one, too.
            has_freedom = self.syntax is not None or self._any_order
            return self.is_marked or self.flexible or (has_freedom and len(value) > 0)
        return any_spelling and type_of(value) == "number"

    def _loose(self, value: Any) -> int:
        """Return every spelling of a listed value that the options allow."""
        nodes = self.nodes
        if isinstance(value, str):
            return self.string(nodes.terms.literal(value))
        in_parts = self._any_order or self.syntax is not None or self.is_marked
        if isinstance(value, (dict, list, tuple)) and in_parts:
            return self._in_parts(value)
        if type_of(value) == "number" and self.flexible:
            return nodes.text(self._equal(value))
        return self._spaced(value)

    def _spell(self, value: Any) -> bytes:
        """Return the one spelling of a listed value (see `_is_loose`): in another syntax than JSON, no string."""
        if self.syntax is None:
            if type(value) is str:  # without the encoder, which takes longer to make than to use
                return spelled_name(value)
            if value is None or value is True or value is False:
                return b"null" if value is None else b"true" if value else b"false"
        elif value is None or isinstance(value, bool):
            return self.syntax.null if value is None else self.syntax.true if value else self.syntax.false
        elif isinstance(value, float):
            return self.syntax.listed_number(value)
        return json_bytes(value, separators=(self.comma.decode(), self.fixed_colon.decode()), allow_nan=False)

    def _spaced(self, value: Any) -> int:
        """Return a listed value with any whitespace between its tokens."""
        nodes = self.nodes
        if isinstance(value, dict):
            items = [
                nodes.sequence([nodes.literal(self.key(name)), self.colon, self._spaced(item)])
                for name, item in value.items()
            ]
            opening, closing = b"{", b"}"
        elif isinstance(value, (list, tuple)):
            items = [self._spaced(item) for item in value]
            opening, closing = b"[", b"]"
        elif type_of(value) == "number":
            return nodes.text(self._equal(value))
        else:
            return nodes.literal(self._spell(value))
        parts = [nodes.literal(opening), self.space]
        for index, item in enumerate(items):
            if index:
                parts += [nodes.literal(self.comma), self.space]
            parts += [item, self.space]
        return nodes.sequence([*parts, nodes.literal(closing)])

    def key(self, name: str) -> bytes:
        """Return a property name as JSON, without its colon."""
        return spelled_name(name)

    def keys(self, name: str) -> tuple[bytes, ...]:
        """Return the texts of a property name, without its colon; none if it cannot be written."""
        return (spelled_name(name),) if self.syntax is None else self.syntax.names(name)
