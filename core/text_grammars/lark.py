r"""Reader of Lark grammars, in the dialect of llguidance (1.9), which OpenAI's custom tools take.

Terminals are regular languages, joined without a lexer: a text belongs to the grammar if any division into terminals
does. Text that ``%ignore`` names may follow every terminal, JSON value and token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Protocol

from ..errors import GrammarError, LimitError, ToolGrammarError, UnsupportedSchemaError
from ..language.terms import Terms
from ..regex.foreign import to_ecma
from ..unicode.casefold import fold
from ..unicode.charset import CharSet
from .dispatch import any_tokens, left_out_of_tokens
from .ebnf import MAX_NESTING, character
from .expressions import (
    EMPTY_TEXT,
    Buildable,
    Chars,
    Complement,
    Control,
    Expression,
    Intersection,
    Literal,
    Part,
    Reference,
    Repeat,
    Restricted,
    Stopped,
    at_most_bytes,
    choice,
    pattern,
    sequence,
    substring,
)
from .rules import ReadGrammar, Rules
from .source import Source
from .tokens import Tokens, tokens_of

_COMMENT = r"(?:#|//)[^\n]*"
_BLANK = re.compile(rf"(?:[ \t]|{_COMMENT})*")
_SPACE = re.compile(rf"(?:[ \t\r\n]|{_COMMENT})*")
_NEXT_ALTERNATIVE = re.compile(rf"(?:[ \t\r\n]|{_COMMENT}\n)*\|")
_RULE = re.compile(r"_?[a-z][_a-z0-9\-]*")
_TERMINAL = re.compile(r"_?[A-Z][_A-Z0-9\-]*")
_NAME = re.compile(r"_?(?:[a-z][_a-z0-9\-]*|[A-Z][_A-Z0-9\-]*)")
_PRIORITY = re.compile(r"\.-?[0-9]+")
_SLIPS = {
    "=": "a rule is: name: ...",
    ":": "a rule is: name: ...",
    "'": "a string is in double quotes",
    ",": "items follow each other without a comma",
    ";": "a rule ends with its line, without a ';'",
}
_INTEGER = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
_REGEX = re.compile(r"/(?![/*])((?:\\.|[^/\\\n])+)/([imslux]*)")
_TOKEN = re.compile(r"<(?:\[([^\]<>]*)\]|[^<>\s]+)>")
_IDS = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CODES = (
    re.compile(r"\\x([0-9a-fA-F]{2})"),
    re.compile(r"\\u([0-9a-fA-F]{4})"),
    re.compile(r"\\U([0-9a-fA-F]{8})"),
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", '"': '"', "/": "/", "\\": "\\"}
#: What a pattern is made of, as far as needed to find lazy repetitions and word boundaries.
_PIECES = re.compile(
    r"(?P<boundary>\\[bB])|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|(?P<lazy>(?:[*+?]|\{[0-9, ]+\})\?)|.", re.DOTALL
)
#: What decides which directives are a grammar's own: strings and patterns hold none.
_LEXEMES = re.compile(
    r"(?P<nested>%lark[ \t\r\n]*\{)|(?P<directive>%[a-z]+)|(?P<brace>[{}])"
    r"|(?:#|//)[^\n]*|\"(?:\\.|[^\"\\\n])*\"|/(?![/*])(?:\\.|[^/\\\n])+/|<[^<>\s]*>"
)
_WORDS = re.compile(r"\w+|\s+|[^\w\s]+")

#: The rule of ignored text. No name in a grammar has a percent sign.
_IGNORED = "%ignore"

#: Options of ``%llguidance``; ``no_forcing`` says something about tokens, and nothing about texts.
_GRAMMAR_OPTIONS = ("allow_initial_skip", "ignore_once", "no_forcing", "allow_invalid_utf8")

#: Maximum nesting of grammars.
MAX_NESTED = 20

#: Longest text of a rule with a budget of tokens, in bytes. A greater budget is narrowed to it.
MAX_BUDGET = 2_000

#: Options of rules that say something about captures or sampling, and nothing about texts.
_IDLE_OPTIONS = ("capture", "capture_name", "stop_capture", "temperature")

#: Lark's terminals for ``%import common``. Strings and comments end at the first end, as Lark's lazy patterns do.
_COMMON = r"""
DIGIT: "0".."9"
HEXDIGIT: "a".."f" | "A".."F" | DIGIT
INT: DIGIT+
SIGNED_INT: ["+" | "-"] INT
DECIMAL: INT "." INT? | "." INT
_EXP: ("e" | "E") SIGNED_INT
FLOAT: INT _EXP | DECIMAL _EXP?
SIGNED_FLOAT: ["+" | "-"] FLOAT
NUMBER: FLOAT | INT
SIGNED_NUMBER: ["+" | "-"] NUMBER
_STRING_INNER: /.*/
_STRING_ESC_INNER: /([^"\\\n]|\\[^\n])*/
ESCAPED_STRING: "\"" _STRING_ESC_INNER "\""
LCASE_LETTER: "a".."z"
UCASE_LETTER: "A".."Z"
LETTER: UCASE_LETTER | LCASE_LETTER
WORD: LETTER+
CNAME: ("_" | LETTER) ("_" | LETTER | DIGIT)*
WS_INLINE: /[ \t]+/
WS: /[ \t\f\r\n]+/
CR: /\r/
LF: /\n/
NEWLINE: (CR? LF)+
SH_COMMENT: /#[^\n]*/
CPP_COMMENT: /\/\/[^\n]*/
C_COMMENT: "/*" /([^*]|\*+[^*\/])*\*+\//
SQL_COMMENT: /--[^\n]*/
"""


class JsonLanguage(Buildable, Protocol):
    """The JSON texts of a schema."""

    @property
    def problems(self) -> Sequence[ToolGrammarError]:
        """The keywords that are left out."""

    @property
    def narrowed(self) -> Sequence[UnsupportedSchemaError]:
        """The keywords of which some valid values are left out."""


#: Compiles a JSON Schema, which may be refused.
CompileJson = Callable[[Any], JsonLanguage]


def read_lark(
    text: str,
    start: str = "start",
    tokens: Tokens | None = None,
    compile_json: CompileJson | None = None,
    *,
    is_exact: bool = False,
) -> ReadGrammar:
    """Return the rules of a grammar.

    Args:
        text: the grammar.
        start: the name of the start rule.
        tokens: returns the expression of a token; None: there is no vocabulary.
        compile_json: compiles the schemas of ``%json``; None: ``%json`` is an error.
        is_exact: a token budget is an error; else the rule is narrowed to texts that are surely within the budget.

    Raises:
        GrammarError: it is malformed, or has a part that cannot be enforced; with line and column.
    """
    reader = _LarkReader(Source(text, _SLIPS), start, tokens or tokens_of(None), compile_json, is_exact=is_exact)
    reader.statements()
    return ReadGrammar(reader.rules(), tuple(reader.problems), tuple(reader.narrowed))


@cache
def _common() -> Mapping[str, Expression]:
    """Return the terminals of ``common``, whose names begin so."""
    reader = _LarkReader(Source(_COMMON), "", tokens_of(None), None, prefix="common.")
    reader.statements()
    return reader.found


@dataclass
class _Options:
    """The options of a rule that say something about its texts."""

    is_lazy: bool = False
    suffix: Expression | None = None
    stop: Expression | None = None
    budget: tuple[int, int] | None = None  # of tokens, and its place

    @property
    def is_terminal(self) -> bool:
        """True if the rule is made of terminals."""
        return self.is_lazy or self.suffix is not None or self.stop is not None or self.budget is not None

    def restricted(self, item: Expression) -> Expression:
        """Return the texts of a rule. A stop that is the empty text is the end of the model's turn: it ends no text."""
        if self.suffix is not None:
            return Restricted(sequence(item, self.suffix), True, None)
        if self.stop is not None and self.stop != Literal(""):
            return Stopped(item, self.stop)
        return Restricted(item, True, None) if self.is_lazy else item


@dataclass
class _LarkReader:
    """The reader of one grammar. A grammar in braces has a reader of its own on the same source.

    Names carry the ``prefix`` of their grammar, so that rules of all grammars are in one dictionary. Texts that are
    ignored between terminals are a part of each terminal that a rule uses (`_lexeme`); within terminals
    (``_in_terminal``) nothing is ignored.
    """

    source: Source
    start: str
    tokens: Tokens
    compile_json: CompileJson | None
    prefix: str = ""  # of all names
    end: str = ""  # what ends the grammar, beside the end of the text
    is_exact: bool = False
    found: dict[str, Expression] = field(default_factory=dict)
    problems: list[ToolGrammarError] = field(default_factory=list)
    narrowed: list[UnsupportedSchemaError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._named: list[Expression] = []  # by tokens
        self._schemas: list[Expression] = []
        self._uses: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self._restricted: list[tuple[Expression, int]] = []  # these have to be regular
        self._budgets: list[tuple[str, Expression, int, int]] = []  # name, without the budget, tokens, place
        self._ignores: list[Expression] = []
        self._has_ignores = "%ignore" in self._own_text()
        self._initial_skip = False
        self._ignores_once = False
        self._inner_count = 0
        self._in_terminal = False
        self._depth = 0

    def _own_text(self) -> str:
        """Return the text of the grammar without those nested in it."""
        own, depths = "", [0]  # of brackets in each grammar around
        for match in _LEXEMES.finditer(self.source.text, self.source.position):
            if match["nested"]:
                depths.append(1)
            elif match["brace"]:
                depths[-1] += 1 if match["brace"] == "{" else -1
                if depths[-1] < 0 and len(depths) == 1:  # of the grammar itself
                    break
                if len(depths) > 1 and not depths[-1]:
                    depths.pop()
            elif len(depths) == 1 and match["directive"]:
                own += match["directive"]
        return own

    # -- statements ------------------------------------------------------------------------------------------------

    def statements(self) -> None:
        """Read all statements."""
        source = self.source
        source.match(_SPACE)
        while not (source.rest_is_empty or source.peek() == self.end):
            start = source.position
            if source.peek() == "%":
                self._directive(start)
            else:
                self._definition(start)
            source.match(_BLANK)
            if not (source.rest_is_empty or source.peek() in "\r\n" or source.peek() == self.end):
                expected = (
                    "'|', an operator or more of the terminal" if self._in_terminal else "'|' or more of the rule"
                )
                source.fail(f"expected the end of the line, {expected}")
            source.match(_SPACE)

    def rules(self) -> Rules:
        """Return the rules that were read, checked: all names are defined, terminals are not recursive, restricted
        rules are regular."""
        source = self.source
        root = self.rule_of_texts()
        key = ("lark", source.text, root, tuple(self._named), tuple(self._schemas))
        rules = Rules(key, self.found, root)
        for name, at in self._places.items():
            if _TERMINAL.fullmatch(name.rpartition(".")[2]) and name in rules.recursive:
                own = name.rpartition(".")[2]
                source.fail(f"the terminal {own!r} contains itself", at=at, hint="write a rule, in lower case")
        rules.check()
        for expression, at in self._restricted:
            if not rules.is_regular(expression):
                source.fail("the operand of &, ~, lazy, suffix or stop is too large", at=at, hint="write it shorter")
            if isinstance(expression, Stopped):
                self._check_stop(rules, expression, at)
        for budget in self._budgets:
            self._check_budget(rules, *budget)
        return rules

    def _check_budget(self, rules: Rules, name: str, expression: Expression, tokens: int, at: int) -> None:
        """Report the texts that a token budget leaves out.

        A token has at least one byte, so a text of n bytes is within a budget of n tokens in any tokenisation.
        """
        most = min(tokens, MAX_BUDGET)
        terms = Terms()
        whole, short = rules.term(terms, expression), rules.term(terms, at_most_bytes(most))
        assert whole is not None
        assert short is not None

        def has_texts(*parts: int) -> bool:
            try:
                return not terms.is_empty(terms.and_(parts))
            except LimitError:  # too hard to say
                return True

        if not has_texts(whole, short):
            self.source.fail(
                f"no text of the rule {name!r} has at most {most:,} bytes, so none is sure to have {tokens:,} tokens",
                at=at,
                hint="raise max_tokens",
            )
        if not tokens or not has_texts(whole, terms.not_(short)):
            return
        self.narrowed.append(
            UnsupportedSchemaError(
                f"how many tokens a text of the rule {name!r} has depends on the vocabulary",
                hint="bound the characters instead, as in /.{0,200}/",
                place=self.source.place(at, keyword="max_tokens"),
                left_out=f"texts of the rule of more than {most:,} bytes, also those of at most {tokens:,} tokens",
            )
        )

    def _check_stop(self, rules: Rules, expression: Stopped, at: int) -> None:
        """Check the stop of a rule: raise an error if it may be empty, or if its texts exceed a limit. ``at``: where to
        report it."""
        terms = Terms()
        stop = rules.term(terms, expression.stop)
        if stop is None or terms.nullable(stop):
            self.source.fail("the stop of a rule may be empty", at=at, hint='exclude the empty text, or write stop=""')
        try:
            rules.term(terms, expression)
        except LimitError as error:
            self.source.fail(error.message, at=at, hint="write a shorter stop, or suffix=...")

    def rule_of_texts(self) -> str:
        """Return the name of the rule that whole texts are of: the start rule, or one that allows ignored text before
        it. Check that all names are defined, and define the rule of ignored text."""
        source, length = self.source, len(self.prefix)
        if self.prefix + self.start not in self.found:
            source.fail(f"expected a rule {self.start!r}, the start rule")
        for name, at in self._uses.items():
            if name not in self.found:
                own = name[length:]
                hint = f"known names: {', '.join(each[length:] for each in self._places if '.' not in each[length:])}"
                if f"common.{own}" in _common():
                    hint = f"write %import common.{own}"
                source.fail(f"{own!r} is not defined", at=at, hint=hint)
        if not self._has_ignores:
            return self.prefix + self.start
        ignored = self.prefix + _IGNORED
        self.found[ignored] = Repeat(choice(*self._ignores), 0, 1 if self._ignores_once else None)
        if not self._initial_skip:
            return self.prefix + self.start
        root = f"{self.prefix}%start"
        self.found[root] = sequence(Reference(ignored), Reference(self.prefix + self.start))
        return root

    def _nested(self, start: int) -> Expression:
        """Read a grammar in braces, with names and ignored text of its own."""
        source = self.source
        if self._in_terminal:
            source.fail("a terminal cannot contain a grammar", at=start, hint="write it in a rule, in lower case")
        source.match(_SPACE)
        source.expect("{", "after %lark")
        depth = self.prefix.count(".") + 1
        if depth > MAX_NESTED:
            source.fail(f"grammars are nested more than {MAX_NESTED} levels deep", at=start, hint="write rules")
        self._inner_count += 1
        prefix = f"{self.prefix}{self._inner_count}."
        inner = _LarkReader(source, "start", self.tokens, self.compile_json, prefix, "}", self.is_exact)
        inner.statements()
        source.expect("}", "at the end of a nested grammar")
        root = inner.rule_of_texts()
        self.found |= inner.found
        self._places |= inner._places
        self._named += inner._named
        self._schemas += inner._schemas
        self._restricted += inner._restricted
        self._budgets += inner._budgets
        self.problems += inner.problems
        self.narrowed += inner.narrowed
        return Reference(root)

    def _directive(self, start: int) -> None:
        """Read ``%ignore``, ``%import`` or the options ``%llguidance``; ``start`` is its offset."""
        source = self.source
        if source.take("%ignore"):
            source.match(_BLANK)
            self._in_terminal = True
            self._ignores.append(self._choices())
            self._in_terminal = False
        elif source.take("%import"):
            self._import()
        elif source.take("%llguidance"):
            at = source.position
            options = self._json()
            if not isinstance(options, dict):
                source.fail("expected an object of options", at=at)
            for name, value in options.items():
                if name not in _GRAMMAR_OPTIONS:
                    source.fail(f"unknown option {name!r}", at=at, hint=f"known ones: {', '.join(_GRAMMAR_OPTIONS)}")
                if not isinstance(value, bool):
                    source.fail(f"the option {name!r} is {json.dumps(value)}", at=at, hint="write true or false")
            if options.get("allow_invalid_utf8"):
                source.fail("texts are UTF-8, so allow_invalid_utf8 cannot be true", at=at, hint="leave it out")
            self._initial_skip |= options.get("allow_initial_skip", False)
            self._ignores_once |= options.get("ignore_once", False)
        else:
            source.fail(
                "expected a rule, a terminal, %ignore, %import or %llguidance",
                at=start,
                hint="%declare, %override and %extend are not read; write the rules out",
            )

    def _import(self) -> None:
        """Read ``common.NAME``, ``common.NAME -> ALIAS`` or ``common (NAME, ...)``, and define the names in this
        grammar."""
        source = self.source
        source.match(_BLANK)
        start = source.position
        if not source.take("common"):
            source.fail("expected common, the only library", at=start, hint="copy other rules into the grammar")
        if source.take("."):
            name, at = self._imported()
            source.match(_BLANK)
            alias = name
            if source.take("->"):
                source.match(_BLANK)
                match = source.match(_TERMINAL)
                if match is None:
                    source.fail("expected a name of the terminal, in upper case")
                alias = match[0]
            self._define(self.prefix + alias, Reference(f"common.{name}"), at)
            return
        source.match(_BLANK)
        source.expect("(", "or '.' after common")
        source.match(_SPACE)
        while not source.take(")"):
            name, at = self._imported()
            self._define(self.prefix + name, Reference(f"common.{name}"), at)
            source.match(_SPACE)
            if source.peek() != ")":
                source.expect(",", "between names")
                source.match(_SPACE)

    def _imported(self) -> tuple[str, int]:
        """Read the name of a terminal of ``common``, whose terminals are added to the grammar; return it and its
        offset."""
        source = self.source
        start = source.position
        match = source.match(_TERMINAL)
        if match is None or f"common.{match[0]}" not in _common():
            known = ", ".join(name.removeprefix("common.") for name in _common())
            source.fail("expected a terminal of common", at=start, hint=f"known ones: {known}")
        self.found |= _common()
        return match[0], start

    def _define(self, name: str, expression: Expression, at: int) -> None:
        if name in self.found:
            own = name[len(self.prefix) :]
            self.source.fail(f"{own!r} is defined twice", at=at, hint="rename one of them")
        self.found[name] = expression
        self._places[name] = at

    def _definition(self, start: int) -> None:
        """Read a rule or terminal and define it. A rule with options such as ``lazy`` is read as a terminal, because
        its texts are restricted as a whole: nothing in it is ignored, and it must be regular, which is checked when all
        rules are known. A token budget is narrowed to as many bytes."""
        source = self.source
        source.match(re.compile(r"[!?]*"))
        at = source.position
        match = source.match(_RULE)
        self._in_terminal = match is None
        match = match or source.match(_TERMINAL)
        if match is None:
            source.fail("expected a rule (lower case), a terminal (upper case) or a directive", at=start)
        if source.peek() == "{":
            source.fail("templates are not read", hint="write the rules out")
        if source.peek(2) == "::":
            source.fail("rules with parameters are not read", hint="write a rule for each value")
        source.match(_PRIORITY)
        source.match(_BLANK)
        options_at = source.position
        options = _Options() if self._in_terminal else self._options()
        source.match(_BLANK)
        source.expect(":", f"after the name {match[0]!r}")
        source.match(_BLANK)
        self._in_terminal |= options.is_terminal
        name = self.prefix + match[0]
        self._define(name, EMPTY_TEXT, at)
        expression = self._choices()
        if options.is_terminal:
            expression = options.restricted(expression)
            self._restricted.append((expression, options_at))
            if options.budget is not None:
                tokens, budget_at = options.budget
                self._budgets.append((match[0], expression, tokens, budget_at))
                expression = Intersection((expression, at_most_bytes(min(tokens, MAX_BUDGET))))
            self._in_terminal = False
            expression = self._lexeme(expression)
        self.found[name] = expression

    def _options(self) -> _Options:
        """Read the options of a rule in brackets, if any; those without an effect on the texts are skipped."""
        source, options = self.source, _Options()
        if not source.take("["):
            return options
        while not source.take("]"):
            source.match(_BLANK)
            start = source.position
            match = source.match(_RULE)
            if match is None:
                source.fail("expected an option: lazy, suffix=..., stop=..., capture, temperature=...")
            option = match[0]
            source.match(_BLANK)
            has_value = source.take("=")
            source.match(_BLANK)
            if option == "lazy" and not has_value:
                options.is_lazy = True
            elif option in ("suffix", "stop") and has_value:
                self._in_terminal = True
                setattr(options, option, self._atom())
                self._in_terminal = False
            elif option in _IDLE_OPTIONS:
                if has_value and source.peek() == '"':
                    self._string()
                elif has_value and source.match(_NUMBER) is None:
                    source.fail("expected a number or a string")
            elif option == "max_tokens":
                options.budget = self._budget(start, has_value), start
            else:
                known = ", ".join(("lazy", "suffix", "stop", "max_tokens", *_IDLE_OPTIONS))
                source.fail(f"unknown option {option!r}", at=start, hint=f"known ones: {known}")
            source.match(_BLANK)
            if source.peek() != "]":
                source.expect(",", "or ']' after an option")
        if options.suffix is not None and options.stop is not None:
            source.fail("a rule has a suffix or a stop, not both", at=source.position - 1, hint="leave one of them out")
        return options

    def _budget(self, start: int, has_value: bool) -> int:
        """Read a budget of tokens."""
        source = self.source
        match = source.match(_INTEGER) if has_value else None
        if match is None:
            source.fail("expected a number of tokens: max_tokens=10")
        if self.is_exact:
            hint = "bound the characters, as in /.{0,200}/, or the whole answer by the budget of the request"
            source.fail("a token budget is not a property of the text", at=start, hint=hint)
        return source.number(match[0], start)

    # -- expressions -----------------------------------------------------------------------------------------------

    def _space(self) -> None:
        """Skip white space, with line feeds inside of brackets."""
        self.source.match(_SPACE if self._depth else _BLANK)

    def _choices(self) -> Expression:
        items = [self._conjunction()]
        while self.source.match(_NEXT_ALTERNATIVE):
            self.source.match(_BLANK)
            items.append(self._conjunction())
        return choice(*items)

    def _conjunction(self) -> Expression:
        """Read sequences joined by ``&``, which all have to match; only in terminals."""
        source = self.source
        start = source.position
        items = [self._sequence()]
        while source.peek() == "&":
            if not self._in_terminal:
                source.fail("& is only allowed in terminals", hint="give the rule a name in upper case")
            source.position += 1
            self._space()
            items.append(self._sequence())
        if len(items) == 1:
            return items[0]
        both = Intersection(tuple(items))
        self._restricted.append((both, start))
        return both

    def _sequence(self) -> Expression:
        """Read items up to the end of the alternative; its name (``-> name``) has no meaning here."""
        source = self.source
        items: list[Expression] = []
        while not source.rest_is_empty and source.peek() not in "|&)]}\r\n":
            if source.take("->"):
                source.match(_BLANK)
                if source.match(_NAME) is None:
                    source.fail("expected the name of the alternative")
                self._space()
                break
            items.append(self._repeated())
            self._space()
        return sequence(*items)

    def _repeated(self) -> Expression:
        """Read an item and its repetition, if there is one: ``*``, ``+``, ``?``, ``~n``, ``~n..m``, or counts in
        braces."""
        source = self.source
        start = source.position
        item = self._complement()
        self._space()
        if source.take("*"):
            return Repeat(item, 0, None)
        if source.take("+"):
            return Repeat(item, 1, None)
        if source.take("?"):
            return Repeat(item, 0, 1)
        bounds = source.match(re.compile(r"~[ \t]*([0-9]+)(?:[ \t]*\.\.[ \t]*([0-9]+))?"))
        if bounds is not None:
            least, most = (source.number(digits, start) for digits in (bounds[1], bounds[2] or bounds[1]))
            return self._bounded(item, least, most, start)
        bounds = source.match(re.compile(r"\{[ \t]*([0-9]*)[ \t]*(,?)[ \t]*([0-9]*)[ \t]*\}"))
        if bounds is not None and bounds[0].strip("{} \t") not in ("", ","):
            last = bounds[3] if bounds[2] else bounds[1]
            upper = source.number(last, start) if last else None
            return self._bounded(item, source.number(bounds[1] or "0", start), upper, start)
        if source.peek() == "{" or bounds is not None:
            source.fail("expected a repetition, {n}, {n,} or {n,m}", at=start)
        return item

    def _bounded(self, item: Expression, least: int, most: int | None, start: int) -> Expression:
        if most is not None and most < least:
            self.source.fail(f"the minimum {least} is greater than the maximum {most}", at=start)
        return Repeat(item, least, most)

    def _complement(self) -> Expression:
        """Read an item, or ``~`` and an item: all texts but its own; only in terminals."""
        source = self.source
        start = source.position
        if not source.take("~"):
            return self._atom()
        if not self._in_terminal:
            source.fail("~ is only allowed in terminals", at=start, hint="give the rule a name in upper case")
        self._space()
        without = Complement(self._atom())
        self._restricted.append((without, start))
        return without

    def _atom(self) -> Expression:
        """Read an item without operators: a group, string, pattern, token, nested grammar or schema, or a name. In a
        rule, terminals are followed by what is ignored."""
        source = self.source
        start = source.position
        if source.take("("):
            return self._group(")")
        if source.take("["):
            return Repeat(self._group("]"), 0, 1)
        first = source.peek()
        if first == '"':
            return self._literal(start)
        if first == "/":
            return self._lexeme(self._regex())
        if first == "<":
            return self._lexeme(self._token(start))
        if source.take("%regex"):
            return self._lexeme(self._structured(start))
        if source.take("%json"):
            return self._lexeme(self._schema(start))
        if source.take("%lark"):
            return self._lexeme(self._nested(start))
        if first == "@":
            source.fail("other grammar files are not read", hint="write it here, as %lark {...} or %json {...}")
        name = source.match(_NAME)
        if name is None:
            source.fail('expected a name, "string", /regex/, <token>, %json, %regex, %lark, ( or [')
        if source.peek(2) == "::":
            source.fail("rules with parameters are not read", at=start, hint="write a rule for each value")
        is_terminal = _TERMINAL.fullmatch(name[0]) is not None
        if self._in_terminal and not is_terminal:
            source.fail(
                f"a terminal cannot contain the rule {name[0]!r}", at=start, hint="give the rule a name in upper case"
            )
        if source.peek() == "{" and source.match(re.compile(r"\{(?![ \t]*[0-9,])")):
            source.fail("templates are not read", at=start, hint="write the rules out")
        self._uses.setdefault(self.prefix + name[0], start)
        reference = Reference(self.prefix + name[0])
        return self._lexeme(reference) if is_terminal else reference

    def _group(self, end: str) -> Expression:
        """Read the rest of a group, up to the bracket ``end``. Within groups (``_depth`` above 0), line feeds are white
        space."""
        source = self.source
        self._depth += 1
        if self._depth > MAX_NESTING:
            source.fail(f"brackets are nested more than {MAX_NESTING} levels deep", hint="give the inner ones a name")
        source.match(_SPACE)
        inner = self._choices()
        source.expect(end, "at the end of a group")
        self._depth -= 1
        return inner

    def _lexeme(self, expression: Expression) -> Expression:
        """Return a terminal, and after it what is ignored."""
        if self._in_terminal or not self._has_ignores:
            return expression
        return sequence(expression, Reference(self.prefix + _IGNORED))

    def _string(self) -> str:
        """Read a string in double quotes; return its text, with escapes decoded (a pair of surrogate escapes as its
        character)."""
        source = self.source
        start = source.position
        source.expect('"', "at the beginning of a string")
        text = ""
        while not source.take('"'):
            if source.rest_is_empty or source.peek() in "\r\n":
                source.fail("expected '\"' at the end of the string", at=start)
            pair = source.match(_PAIR)
            text += json.loads(f'"{pair[0]}"') if pair else character(source, _CODES, _ESCAPES)
        return text

    def _literal(self, start: int) -> Expression:
        """Read a string, a string with ``i`` (in either case), or a range of two characters (``"a".."z"``)."""
        source = self.source
        text = self._string()
        if source.match(re.compile(r"i(?![\w])")):
            return self._lexeme(sequence(*(Chars(fold(CharSet.of(each))) for each in text)))
        if not source.match(re.compile(r"[ \t]*\.\.(?=[ \t]*\")")):
            return Literal(text) if not text else self._lexeme(Literal(text))
        source.match(_BLANK)
        last = self._string()
        if len(text) != 1 or len(last) != 1 or last < text:
            source.fail("expected a range of two characters, the lower one first", at=start)
        return self._lexeme(Chars(CharSet.range(text, last)))

    def _regex(self) -> Expression:
        """Read ``/pattern/flags``. Lazy repetitions and word boundaries are errors: a terminal is matched as a whole,
        in which they have no meaning."""
        source = self.source
        start = source.position
        match = source.match(_REGEX)
        if match is None:
            source.fail("expected a pattern: /.../, and '/' at its end")
        for piece in _PIECES.finditer(match[1]):
            if piece["lazy"]:
                source.fail(
                    "a lazy repetition has no meaning in a terminal",
                    at=match.start(1) + piece.start(),
                    hint="exclude the end in a class, as in [^\"]*, or write the rule's option [lazy]",
                )
            if piece["boundary"]:
                source.fail(
                    "a word boundary has no meaning in a terminal",
                    at=match.start(1) + piece.start(),
                    hint="leave it out",
                )
        if "l" in match[2]:
            source.fail("the flag l is not read", at=start, hint="leave it out")
        return self._pattern(match[1], match[2].replace("u", ""), start)

    def _pattern(self, text: str, flags: str, start: int) -> Expression:
        """Return the texts of a regular expression of Rust's ``regex`` crate."""
        try:
            return pattern(to_ecma(f"(?{flags}:{text})" if flags else text, "rust"))
        except ToolGrammarError as error:
            hint = "write a regular expression of Rust's regex crate: without look-arounds and back-references"
            hint = error.hint if isinstance(error, LimitError) and error.hint else hint
            self.source.fail(f"the pattern is refused: {error.message}", at=start, hint=hint)

    def _token(self, start: int) -> Expression:
        """Read a token by its name or its ids, ``<[1,3-5]>``; or, as ``<[*]>`` and ``<[^...]>``, all or all others,
        which may only be repeated (`_other_tokens`)."""
        source = self.source
        if self._in_terminal:
            source.fail("a terminal cannot contain a token", hint="name the token in a rule, in lower case")
        match = source.match(_TOKEN)
        if match is None:
            source.fail("expected a token: <name> or <[id]>")
        wanted: list[Iterable[int | str]] = [[match[0]]]
        is_other = match[1] is not None and (match[1] == "*" or match[1].startswith("^"))
        if match[1] is not None:
            wanted = []
            for part in match[1].lstrip("^").split(",") if match[1] != "*" else ():
                ids = _IDS.fullmatch(part.strip())
                if ids is None:
                    hint = "name the tokens that are meant; for text, write a pattern"
                    source.fail("expected ids of tokens: <[1]>, <[1-5]>, <[1,3-5]>", at=start, hint=hint)
                first, last = (source.number(digits, start) for digits in (ids[1], ids[2] or ids[1]))
                if last < first:
                    source.fail(
                        f"the token ids {first} to {last} are out of range", at=start, hint="write the lower end first"
                    )
                wanted.append(range(first, last + 1))
        found: list[Control | Literal] = []
        for token in chain.from_iterable(wanted):  # the first one that does not exist ends this
            try:
                found.append(self.tokens(token))
            except GrammarError as error:
                source.fail(error.message, at=start, hint=error.hint)
        self._named += found
        return self._other_tokens(found, start) if is_other else choice(*found)

    def _other_tokens(self, excluded: Sequence[Control | Literal], start: int) -> Expression:
        """Read the ``*`` or ``+`` that has to follow ``<[*]>`` or ``<[^...]>``; the repetition is narrowed to text
        (`any_tokens`), which is reported."""
        source = self.source
        self._space()
        if source.peek() not in ("*", "+"):
            source.fail(
                "a single arbitrary token cannot be enforced: other tokens may have the same text",
                at=start,
                hint="write <[*]>* or <[*]>+, which is free text, or a pattern",
            )
        if self.is_exact:
            source.fail("any token cannot be enforced, only any text", at=start, hint="write /(?s:.*)/")
        self.narrowed.append(left_out_of_tokens(excluded, source.place(start)))
        return any_tokens(excluded, 0 if source.take("*") else int(source.take("+")))

    def _json(self) -> Any:
        """Read a JSON value."""
        source = self.source
        source.match(_SPACE)
        start = source.position
        try:
            value, source.position = json.JSONDecoder().raw_decode(source.text, start)
        except json.JSONDecodeError as error:
            source.fail(f"expected JSON ({error.msg})", at=min(error.pos, len(source.text)))
        except RecursionError:
            source.fail("the JSON is nested too deeply", at=start)
        return value

    def _schema(self, start: int) -> Expression:
        """Read the rest of ``%json {...}``: the texts of a JSON Schema; what it leaves out or does not enforce is
        noted."""
        if self._in_terminal:
            self.source.fail("a terminal cannot contain %json", at=start, hint="write it in a rule, in lower case")
        if self.compile_json is None:
            self.source.fail("%json is not allowed in a string", at=start, hint="write the rules of the JSON text")
        schema = self._json()
        try:
            compiled = self.compile_json(schema)
        except ToolGrammarError as error:
            place = f" ({error.place})" if error.place else ""
            self.source.fail(f"the schema is refused: {error.message}{place}", at=start, hint=error.hint)
        self.problems += compiled.problems
        self.narrowed += compiled.narrowed
        self._schemas.append(Part(compiled))
        return self._schemas[-1]

    def _structured(self, start: int) -> Expression:
        """Read ``%regex {...}``."""
        value = self._json()
        form, chunks = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (None, None)
        split = _SUBSTRINGS.get(str(form))
        is_list = isinstance(chunks, list) and all(isinstance(chunk, str) for chunk in chunks)
        if split is None or not (is_list if form == "substring_chunks" else isinstance(chunks, str)):
            self.source.fail(f"expected an object with one of {', '.join(_SUBSTRINGS)}", at=start)
        return substring(tuple(split(chunks)))


_SUBSTRINGS: dict[str, Callable[[Any], Sequence[str]]] = {
    "substring_chunks": list,
    "substring_words": _WORDS.findall,
    "substring_chars": list,
}
