"""Grammars of decoded strings: the keyword ``x-grammar`` of a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..basics.recent_memo import RecentMemo
from ..errors import GrammarError, LimitError
from ..language.free_text import containing
from ..language.images import Spelling, image
from ..language.nodes import Nodes
from ..language.terms import Terms
from ..regex.foreign import to_ecma
from .ebnf import read_ebnf
from .expressions import Part, pattern, walk
from .lark import read_lark
from .programs import Programs, read_programs
from .rules import Rules

_EXAMPLE = '{"syntax": "lark", "definition": "start: ..."}'


@dataclass(frozen=True)
class StringGrammar:
    """A grammar of strings; equal to others of the same text.

    Attributes:
        syntax: a key of `READERS`.
        definition: the text of the grammar.
        rules: the language.
    """

    syntax: str
    definition: str
    rules: Rules | Programs = field(compare=False, repr=False)

    def term(self, terms: Terms) -> int | None:
        """Return the strings as a term; None if they are not a regular language, or too large a one."""
        return self.rules.term(terms)

    def node(self, nodes: Nodes, within: int | None, spelling: Spelling | None) -> int:
        """Return the texts of the strings that are in a term too, each character spelled (see `image`)."""
        return image(nodes, self.rules.build(nodes), within=within, spelling=spelling)

    def has_text_with(self, words: Sequence[str], also: Callable[[Terms], int] | None = None) -> bool:
        """Return True if a string contains each of some words, and is in another term too; or if that is too hard to
        say."""
        nodes = Nodes()
        parts = [containing(nodes.terms, (word,)) for word in words]
        within = nodes.terms.and_([*parts, *([] if also is None else [also(nodes.terms)])])
        try:
            return not nodes.is_empty(self.node(nodes, within, None))
        except LimitError:
            return True


def _regex(text: str) -> Rules:
    """Return the strings that a regular expression of Rust's ``regex`` matches as a whole, as OpenAI reads them."""
    try:
        return Rules(("regex", text), {"start": pattern(to_ecma(text, "rust"))}, "start")
    except GrammarError as error:
        hint = "write a regular expression as Rust's regex crate reads it, without look-arounds and back-references"
        raise type(error)(error.message, hint=hint, place=error.place) from None


def _ebnf(text: str) -> Rules:
    """Return the strings of a grammar in GBNF or EBNF."""
    return read_ebnf(text, is_exact=True).rules


def _literal(grammar: Any) -> Rules:
    """Return the grammar of the literals of a program."""
    rules = string_grammar(grammar).rules
    if isinstance(rules, Programs):
        raise GrammarError("a literal is no program", hint=f"for example {_EXAMPLE}")
    return rules


#: Readers of the syntaxes. Regular expressions are Rust's, as in OpenAI's custom tools.
READERS: Mapping[str, Callable[[str], Rules | Programs]] = {
    "lark": lambda text: read_lark(text, is_exact=True).rules,  # a string is spelled in more bytes than it has
    "regex": _regex,
    "gbnf": _ebnf,
    "ebnf": _ebnf,
    "program": lambda text: read_programs(text, _literal),
}


def string_grammar(value: Any) -> StringGrammar:
    """Return the grammar that a value of ``x-grammar`` describes: an object with ``syntax`` and ``definition``.

    Raises:
        GrammarError: it does not, the text is malformed, or it has parts that no string can have.
    """
    if not isinstance(value, Mapping) or set(value) != {"syntax", "definition"}:
        raise GrammarError("a grammar has the members syntax and definition", hint=f"for example {_EXAMPLE}")
    syntax, definition = value["syntax"], value["definition"]
    if not isinstance(syntax, str) or syntax not in READERS:
        raise GrammarError(f"unknown syntax of a grammar: {syntax!r}", hint=f"use one of {', '.join(READERS)}")
    if not isinstance(definition, str):
        raise GrammarError(f"the definition is {type(definition).__name__}, not text", hint=f"for example {_EXAMPLE}")
    known = _GRAMMARS.get((syntax, definition))
    if known is None:
        known = _read(syntax, definition)
        _GRAMMARS.put((syntax, definition), known, 1_000 + RULES_BYTES * len(definition))
    return known


def _read(syntax: str, definition: str) -> StringGrammar:
    """Return a grammar of a string. Raise GrammarError for control tokens and schemas, which a
    string cannot contain."""
    rules = READERS[syntax](definition)
    if isinstance(rules, Programs):
        return StringGrammar(syntax, definition, rules)
    rules.check()
    if rules.controls:
        raise GrammarError(
            f"the control token {min(rules.controls)} is not allowed in a string", hint="leave it out of the grammar"
        )
    if any(isinstance(part, Part) for expression in rules.rules.values() for part in walk(expression)):
        raise GrammarError("JSON of a schema is not allowed in a string", hint="write the rules of the JSON text")
    return StringGrammar(syntax, definition, rules)


#: Bytes of rules for each character of their text (measured).
RULES_BYTES = 100

#: The grammars of strings that were met lately, at most 16 MiB.
_GRAMMARS: RecentMemo[StringGrammar] = RecentMemo(1_024, 16 * 2**20)
